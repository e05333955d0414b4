//! A controller without requests.

use crate::in_etcd::again;
use crate::running::config;
use srdma_controller::{OnDisk, StateStore, run};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The folder of the controller's store.
const FOLDER: &str = "SRDMA_TEST_AT_REST";

/// Time of observation, and the limit of CPU time in it, in clock ticks of 10 ms.
const OBSERVED: Duration = Duration::from_secs(2);
const MAX_TICKS: u64 = 20;

/// A controller in this process, which the test below starts and kills. It creates a file when it is ready.
fn control(folder: &Path) {
    let store = Arc::new(OnDisk::open(&folder.join("store")).unwrap());
    run(config(), StateStore::Own(store), None, || std::process::exit(1), &mut |_| {
        std::fs::File::create(folder.join("ready")).unwrap().write_all(b"ready").unwrap();
    })
    .unwrap();
}

/// User and system time of a process, in clock ticks (proc(5)).
fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Only the timer runs once the first writes are durable.
#[test]
fn an_idle_controller_uses_no_cpu_time() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return control(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = again("at_rest::an_idle_controller_uses_no_cpu_time", FOLDER, folder.path().to_str().unwrap());
    crate::running::until("the controller is ready", || folder.path().join("ready").exists().then_some(()));
    let before = cpu_ticks(child.id());
    std::thread::sleep(OBSERVED);
    let ticks = cpu_ticks(child.id()) - before;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ticks <= MAX_TICKS, "{ticks} ticks of CPU time in {OBSERVED:?} without a request");
}
