//! Bad input: a drop counted under a reason of its own, no state left, no notification sent.

use crate::common::Bench;
use crate::fast_cnp::packets::*;
use srdma_dataplane::{Command, Connection, FastCnpConfig};
use srdma_wire::{Instant, Qpn};

const OTHER: &str = "2001:db8:53::2";

fn first_hop() -> Bench {
    let mut bench = switch();
    let translated = vec![prefix("2001:db8:1::/48")];
    turn_on(&mut bench, FastCnpConfig { translated, learn_connections: true, ..config() });
    let connection = Connection {
        host: address(SENDER),
        host_qpn: Qpn::new(0x77).unwrap(),
        peer: address(RECEIVER),
        peer_qpn: Qpn::new(0xABCD).unwrap(),
    };
    bench.apply(Command::AddConnection(connection));
    bench
}

fn with(options: &[u8]) -> Vec<u8> {
    with_options(cnp(OTHER, SENDER, 0xABCD), options)
}

/// Every kind of bad Fast CNP, and the name that it is dropped under.
fn bad_packets() -> Vec<(Vec<u8>, &'static str)> {
    let option = [&[0x9E, 16][..], &address(RECEIVER).octets()].concat();
    let good = [&option[..], &[1, 2, 0, 0]].concat();
    let trace = |remaining: u8, ioam_type: u8| {
        let trace = [0, ioam_type, 0, 1, 8, remaining, 2, 0, 0, 0, 7, 7, 7, 7];
        with(&[&[1, 0, 0x9E, 30][..], &trace, &address(RECEIVER).octets(), &[1, 2, 0, 0]].concat())
    };
    let twice = [&option[..], &option, &[1, 0]].concat();
    let long = [&[0x9E, 20][..], &[0; 20]].concat();
    let mut overrun = with(&good);
    overrun[43] = 200;
    let mut no_cnp = with_options(data(OTHER, SENDER, 0xABCD), &good);
    no_cnp[64 + 8] = 0x04;
    let routing_behind = {
        let mut packet = with(&good);
        packet.splice(64..64, [17, 0, 3, 0, 0, 0, 0, 0]);
        (packet[5], packet[40]) = (packet[5] + 8, 43);
        packet
    };
    vec![
        (with(&[0x9E, 4, 0, 0, 0, 0]), "fast_cnp_too_short"),
        (with(&long), "fast_cnp_too_short"),
        (overrun, "fast_cnp_too_long"),
        (with(&twice), "fast_cnp_twice"),
        (routing_behind, "fast_cnp_wrong_place"),
        (trace(2, 0), "fast_cnp_bad_trace"),
        (trace(127, 0), "fast_cnp_bad_trace"),
        (trace(0, 3), "fast_cnp_bad_trace"),
        (with(&[&option[..], &[0xDE, 2, 0, 0]].concat()), "fast_cnp_unknown_option"),
        (no_cnp, "fast_cnp_not_a_cnp"),
        (fast_cnp("2001:db8:dd::1", SENDER, RECEIVER, 0xABCD), "fast_cnp_foreign_source"),
        (fast_cnp(OTHER, SENDER, RECEIVER, 0xABCE), "fast_cnp_no_connection"),
    ]
}

#[test]
fn every_kind_has_a_name() {
    for (number, (packet, reason)) in bad_packets().iter().enumerate() {
        let mut bench = first_hop();
        assert!(bench.send(1, packet).is_empty(), "packet {number}");
        assert_eq!(bench.drops(1), [(*reason, 1)], "packet {number}");
        assert_eq!(bench.node.fast_cnp_counters(), Default::default(), "packet {number}");
    }
}

/// A second of them at a million a second: counted, one by one, and the node is as it was.
#[test]
fn a_million_a_second_leaves_nothing_behind() {
    const EACH: u64 = 1_000_000 / 12;
    let mut bench = first_hop();
    let bad = bad_packets();
    for step in 0..EACH {
        for (number, (packet, _)) in bad.iter().enumerate() {
            bench.now = Instant::from_ns((step * 12 + number as u64) * 1000);
            assert!(bench.send(1, packet).is_empty());
        }
    }
    assert_eq!(bench.drops(1).iter().map(|(_, count)| *count).sum::<u64>(), 12 * EACH);
    assert_eq!(bench.node.fast_cnp_counters(), Default::default());
    let good = bench.send(1, &fast_cnp(OTHER, SENDER, RECEIVER, 0xABCD));
    assert_eq!(good, [(0, forwarded(cnp(RECEIVER, SENDER, 0x77)))]);
}
