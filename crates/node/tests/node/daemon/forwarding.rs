//! Packets that a node forwards on real links, compared with scapy and Linux.

use crate::daemon::bench::{Bench, HOSTS, UP, golden};

/// Router 2 of the kernel's captures, and the edge of scapy's.
pub(crate) const CONFIGURATION: &str = "\
[[neighbour]]
address = 'fe80::9%hosts'
mac = '02:00:00:00:00:09'
[[route]]
prefix = '2001:db8:2::/64'
via = ['fe80::9%hosts']
[[route]]
prefix = '5f00:0:300::/48'
via = ['fe80::9%hosts']
[[sid]]
sid = '5f00:0:200::/48'
behavior = 'End'
flavors = ['NEXT-CSID']
[[sid]]
sid = '5f00:0:1:e000::'
behavior = 'End.MT'
[[group]]
id = 1
proxy = '2001:db8:ff::100'
designated_qpn = 0xabcd
initial_psn = 100
role = 'edge'
sid = '5f00:0:1:e000::'
parent = { loopback = '2001:db8:6::1' }
receiver = [{ address = '2001:db8:2::1', qpn = 0x111 }, { address = '2001:db8:2::2', qpn = 0x222 }]
";

fn is_to(packet: &[u8], prefix: &[u8]) -> bool {
    packet[24..].starts_with(prefix)
}

/// A packet of scapy's to two receivers, and both copies.
pub(crate) fn end_mt() -> (Vec<u8>, Vec<Vec<u8>>) {
    (golden("scapy_02_endmt_in").remove(0), golden("scapy_03_endmt_out"))
}

/// Whether a packet is one of the copies.
pub(crate) fn is_copy(packet: &[u8]) -> bool {
    is_to(packet, &[0x20, 0x01, 0x0D, 0xB8, 0, 2])
}

fn forwards(driver: &str, kind: &str) {
    let bench = Bench::new(driver, CONFIGURATION);
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    let mut node = bench.start();
    assert!(node.wait_for("attached port=\"uplink\"").contains(kind));
    node.wait_for("ready");

    // One container of micro-SIDs: uN shifts it (PP-5.2-2).
    let (before, after) = ([0x5F, 0, 0, 0, 2, 0], [0x5F, 0, 0, 0, 3, 0]);
    let sent: Vec<_> =
        golden("kernel_t1_usid_red_2r1-r2").into_iter().filter(|packet| is_to(packet, &before)).collect();
    let expected: Vec<_> =
        golden("kernel_t1_usid_red_3r2-r3").into_iter().filter(|packet| is_to(packet, &after)).collect();
    assert!(!sent.is_empty() && sent.len() == expected.len());
    sent.iter().for_each(|packet| left.send(packet));
    assert_eq!(right.receive(expected.len(), |packet| is_to(packet, &after)), expected);

    // End.MT: a copy for each of two receivers (MT-5.2-3).
    let (packet, copies) = end_mt();
    left.send(&packet);
    assert_eq!(right.receive(2, is_copy), copies);
}

#[test]
#[ignore = "needs root"]
fn packets_are_scapys_and_the_kernels_by_af_packet() {
    forwards("af_packet", "AF_PACKET");
}

#[test]
#[ignore = "needs root"]
fn packets_are_scapys_and_the_kernels_by_af_xdp() {
    forwards("auto", "AF_XDP native");
}

/// Neither a neighbour nor a route stands in the file.
#[test]
#[ignore = "needs root"]
fn neighbours_and_routes_come_from_the_kernel() {
    let configuration = "[[sid]]\nsid = '5f00:0:1:e000::'\nbehavior = 'End.MT'\n";
    let bench = Bench::new("auto", configuration);
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    let mut node = bench.start();
    node.wait_for("ready");
    let neighbour = ["ip", "neigh", "replace", "fe80::9", "lladdr", "02:00:00:00:00:09", "dev", "hosts"];
    bench.in_node(&neighbour);
    bench.in_node(&["ip", "-6", "route", "add", "2001:db8:2::/64", "via", "fe80::9", "dev", "hosts"]);
    let (packet, copies) = end_mt();
    let mut received = Vec::new();
    while received.len() < 2 {
        left.send(&packet);
        received.extend(right.take().into_iter().filter(|packet| is_copy(packet)));
    }
    assert_eq!(received[..2], copies);
}
