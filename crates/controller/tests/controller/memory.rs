//! Memory of a controller whose clients do not read (D101).

use crate::access::{client, guarded, refusal};
use crate::fleet::registration;
use crate::in_etcd::again;
use crate::running::*;
use srdma_controller::{OnDisk, StateStore, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The folder of the controller's store.
const FOLDER: &str = "SRDMA_TEST_MEMORY";

const STREAMS: usize = 256;
const EVENTS: usize = 2000;

/// Limit of the growth of the resident memory by a stream, KiB. A copy of the events would take 200 and more.
const MAX_KIB_PER_STREAM: u64 = 64;

/// A controller in this process, which the test below starts and kills. It writes its address when it is ready.
fn control(folder: &Path) {
    let store = Arc::new(OnDisk::open(&folder.join("store")).unwrap());
    run(config(), StateStore::Own(store), None, || std::process::exit(1), &mut |addresses| {
        std::fs::write(folder.join("writing"), addresses[0].to_string()).unwrap();
        std::fs::rename(folder.join("writing"), folder.join("ready")).unwrap();
    })
    .unwrap();
}

/// Resident memory of a process, KiB (proc(5)).
fn resident_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Opens a stream of all kept events, and reads its beginning only.
fn open_stream(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: 0\r\n\r\n").unwrap();
    let mut start = [0; 300];
    stream.read_exact(&mut start).unwrap();
    (stream, String::from_utf8_lossy(&start).into_owned())
}

/// The streams of clients that do not read have no copies of the events, and their number is limited.
#[test]
fn streams_that_are_not_read_take_little_memory() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return control(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "memory::streams_that_are_not_read_take_little_memory";
    let mut child = again(name, FOLDER, folder.path().to_str().unwrap());
    let address = until("the controller is ready", || std::fs::read_to_string(folder.path().join("ready")).ok());
    let address: SocketAddr = address.parse().unwrap();
    let client = srdma_api::Client::new(&format!("http://{address}"), None, None).unwrap();
    let mut node = registration(1);
    node.name = "N".repeat(64);
    for _ in 0..EVENTS {
        client.register(&node).unwrap();
    }
    let first = open_stream(address);
    assert!(first.1.starts_with("HTTP/1.1 200") && first.1.contains("node-up"), "{}", first.1);
    let before = resident_kib(child.id());
    let streams: Vec<_> = (1..STREAMS).map(|_| open_stream(address)).collect();
    let growth = resident_kib(child.id()).saturating_sub(before);
    let (_, refused) = open_stream(address);
    child.kill().unwrap();
    child.wait().unwrap();
    println!("{} streams: {growth} KiB, {} KiB each", streams.len(), growth / streams.len() as u64);
    assert!(growth <= MAX_KIB_PER_STREAM * STREAMS as u64, "{growth} KiB for {} streams", streams.len());
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too-many-streams"), "{refused}");
}

/// A node has no use for events.
#[test]
fn the_token_of_a_node_opens_no_stream() {
    let folder = tempfile::tempdir().unwrap();
    let store = OnDisk::open(&folder.path().join("store")).unwrap();
    let running = Running::start(guarded(), Arc::new(store), None);
    let events = |name: &str| client(&running, name).events(Some("0")).map(drop);
    assert_eq!(refusal(events("node")), "forbidden");
    for name in ["root", "a", "reader"] {
        events(name).unwrap();
    }
}
