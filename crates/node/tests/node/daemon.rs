//! A node on real interfaces, in namespaces of its own.

mod bench;
mod fast_path;
mod forwarding;
mod isis;
mod isis_at_rest;
mod life;
mod queues;

use srdma_node::daemon;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;

/// Names the configuration of the node that [`node_process`] runs.
const CONFIGURATION: &str = "SRDMA_TEST_NODE";

/// Not a test, but what the tests start as a process of its own: signals are a process's.
#[test]
fn node_process() {
    let Some(file) = std::env::var_os(CONFIGURATION) else {
        return;
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().init();
    match daemon::run(Path::new(&file), Arc::default()) {
        Ok(()) => exit(0),
        Err(error) => {
            eprintln!("srdma: {error}");
            let code = if error.is_in_use() { 3 } else { 2 };
            exit(if error.was_running() { 1 } else { code });
        }
    }
}
