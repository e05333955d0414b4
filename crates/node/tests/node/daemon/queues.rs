//! A node of several data threads at interfaces of several queues, by AF_XDP: each thread has its own (D222).

use crate::daemon::bench::{Bench, HOSTS, PATIENCE, UP};
use crate::daemon::fast_path::micro;
use crate::daemon::forwarding::{CONFIGURATION, end_mt, is_copy};
use srdma_node::daemon::read_status;
use std::time::{Duration, Instant};

const FLOWS: u8 = 64;

/// The packet as one of another flow: its flow label is different.
fn of_flow(packet: &[u8], flow: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[2..4].copy_from_slice(&[1, flow]);
    packet
}

#[test]
#[ignore = "needs root"]
fn each_data_thread_receives_at_its_queue_and_all_packets_are_forwarded() {
    let bench = Bench::new("af_xdp", CONFIGURATION);
    let text = std::fs::read_to_string(bench.file()).expect("the node's file");
    std::fs::write(bench.file(), text.replace("[daemon]\n", "[daemon]\nworkers = 2\n")).expect("written");
    for (port, interface) in [(UP, "uplink"), (HOSTS, "hosts")] {
        bench.in_node(&["ethtool", "-L", interface, "rx", "2", "tx", "2"]);
        bench.in_host(port, &["ethtool", "-L", "eth0", "rx", "2", "tx", "2"]);
    }
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    let mut node = bench.start();
    node.wait_for("ready");

    let (sent, expected) = micro();
    (0..FLOWS).for_each(|flow| left.send(&of_flow(&sent[0], flow)));
    let is_expected = |packet: &[u8]| packet[24..].starts_with(&[0x5F, 0, 0, 0, 3, 0]);
    let mut forwarded = right.receive(FLOWS.into(), is_expected);
    // Only packets of a flow stay in their order.
    forwarded.sort();
    let mut all: Vec<Vec<u8>> = (0..FLOWS).map(|flow| of_flow(&expected[0], flow)).collect();
    all.sort();
    assert_eq!(forwarded, all);

    // A group has one owner, at whatever queue its packets arrive.
    let (packet, copies) = end_mt();
    left.send(&packet);
    assert_eq!(right.receive(2, is_copy), copies);

    let end = Instant::now() + PATIENCE;
    loop {
        let snapshot = read_status(&bench.status()).expect("the node's status");
        assert!(
            snapshot.ports.iter().all(|port| port.driver.as_deref() == Some("AF_XDP native")),
            "{:#?}",
            snapshot.ports
        );
        let received: Vec<u64> = snapshot.workers.iter().map(|worker| worker.received).collect();
        if received.len() == 2 && received.iter().all(|frames| *frames > 0) {
            break;
        }
        assert!(Instant::now() < end, "frames by data thread: {received:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
