//! A node with scapy as its IS-IS neighbour: the node uses what it learns.

use crate::daemon::bench::{Bench, HOSTS, PATIENCE, UP, golden};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// A router of the WAN: packets towards the hosts are sent slowly, and senders are notified. The path to system 9 is
/// configured, so that only its SIDs are learnt.
const CONFIGURATION: &str = "\
[[neighbour]]
address = 'fe80::8%uplink'
mac = '02:00:00:00:00:08'
[[neighbour]]
address = 'fe80::9%hosts'
mac = '02:00:00:00:00:09'
[[route]]
prefix = '5f00:0:9::/48'
via = ['fe80::8%uplink']
[[route]]
prefix = '5f00:0:300::/48'
via = ['fe80::9%hosts']
[[sid]]
sid = '5f00:0:200::/48'
behavior = 'uN'
[[egress]]
port = 'hosts'
rate_bits_per_s = 100_000
paced = true
class = [{ class = 0, notify_octets = 1 }]
[fast_cnp]
senders = ['2001:db8:1::/48']
[isis]
net = '49.0001.0000.0000.0001.00'
circuit = [{ port = 'uplink' }]
";

/// Scapy's hello of system 9, circuit 9, which is up and names circuit 1 of system 1.
pub(crate) const HELLO: &str = "\
09002b0000050200000000090031fefe03831401001101000002000000000009001e002e0001040349000181018ef00f0000000009\
00000000000100000001";

/// Scapy's LSP of system 9, with the C-flag, END.C, END.E and system 1 as its neighbour: that of `scapy_08_isis`, with
/// one TLV more.
const LSP: &str = "\
0180c200001502000000000900c2fefe03831b01001401000000bf04af0000000000090000000000012f91030104034900018101\
8e8903706539f2130a0000090019026000170829082a082c082d081b640000000000000000305f000000000954051a0000305f00\
000000090000000000000000000006010420100050051a0080015f0000000009c000000000000000000006010420101000051a00\
80025f0000000009d000000000000000000006010420101000ec0c0000000a00305f0000000009160b0000000000010000000a00";

/// A packet of scapy's that system 9 has put into a tunnel by this node.
fn in_a_tunnel() -> Vec<u8> {
    let inner = golden("scapy_01_rocev2_base").remove(0);
    let mut packet = vec![0x60, 0, 0, 0, 0, inner.len() as u8, 41, 64];
    packet.extend([0x5F, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0x5F, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(inner);
    packet
}

/// END.E of system 9, by its LSP.
fn is_to_end_e(packet: &[u8]) -> bool {
    packet[24..40] == [0x5F, 0, 0, 0, 0, 9, 0xD0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// D63, CN-5.1-2: senders behind the ingress PE are notified by way of the END.E that the PE announces.
#[test]
#[ignore = "needs root"]
fn an_end_e_that_was_learnt_is_used() {
    let bench = Bench::new("af_packet", CONFIGURATION);
    let (mut left, mut right) = (bench.host(UP), bench.host(HOSTS));
    let mut node = bench.start();
    node.wait_for("ready");
    let packet = in_a_tunnel();
    (0..5).for_each(|_| left.send(&packet));
    assert!(!right.receive(1, |packet| packet[24..30] == [0x5F, 0, 0, 0, 3, 0]).is_empty(), "uN");
    assert!(!left.take().iter().any(|packet| is_to_end_e(packet)), "no system has announced it");

    left.send_frame(&hex::decode(HELLO).expect("digits"));
    node.wait_for("neighbour up port=\"uplink\" neighbour=\"0000.0000.0009\"");
    left.send_frame(&hex::decode(LSP).expect("digits"));
    let end = Instant::now() + PATIENCE;
    let notification = loop {
        assert!(Instant::now() < end, "no Fast CNP comes");
        (0..3).for_each(|_| left.send(&packet));
        std::thread::sleep(Duration::from_millis(50));
        if let Some(notification) = left.take().into_iter().find(|packet| is_to_end_e(packet)) {
            break notification;
        }
    };
    // An IPv6 packet in an IPv6 header without an SRH (CN-4.2-2), for the sender of the inner packet.
    assert_eq!(
        (notification[6], &notification[64..80]),
        (41, &hex::decode("20010db8000100000000000000000001").expect("digits")[..])
    );
    node.signal(Signal::SIGTERM);
    node.wait_for("stopped");
    assert_eq!(node.ends(), Some(0));
}
