//! A node on real interfaces, in namespaces of its own.

#[path = "daemon/bench.rs"]
mod bench;
#[path = "daemon/forwarding.rs"]
mod forwarding;
#[path = "daemon/isis.rs"]
mod isis;
#[path = "daemon/isis_at_rest.rs"]
mod isis_at_rest;
#[path = "daemon/life.rs"]
mod life;

use srdma_node::daemon;
use std::path::Path;
use std::process::exit;

/// Names the configuration of the node that [`node_process`] runs.
const CONFIGURATION: &str = "SRDMA_TEST_NODE";

/// Not a test, but what the tests start as a process of its own: signals are a process's.
#[test]
fn node_process() {
    let Some(file) = std::env::var_os(CONFIGURATION) else {
        return;
    };
    match daemon::run(Path::new(&file), &mut |event| eprintln!("{event}")) {
        Ok(()) => exit(0),
        Err(error) => {
            eprintln!("srdma: {error}");
            exit(if error.was_running() { 1 } else { 2 });
        }
    }
}
