//! Hosts that do not support the option, and forged errors of such hosts (FC-4-3, D47).

use crate::common::Bench;
use crate::fast_cnp::packets::*;
use srdma_dataplane::Notified;
use srdma_wire::Instant;
use srdma_wire::icmpv6::Icmpv6Error;

/// An ICMPv6 error from a host to the switch that quotes a packet.
fn error(host: &str, error: Icmpv6Error, quoted: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 58, 64];
    packet.extend(address(host).octets());
    packet.extend(address(SWITCH).octets());
    let mut message = [0; 1240];
    let len = error.emit(address(host), address(SWITCH), quoted, &mut message).unwrap();
    packet[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    packet.extend(&message[..len]);
    packet
}

/// A switch that has notified the sender.
fn notified_node() -> Bench {
    let mut bench = switch();
    turn_on(&mut bench, config());
    assert_eq!(congested(&mut bench, &data(SENDER, RECEIVER, 7)).0, Notified::Sender);
    bench
}

fn is_told(bench: &mut Bench, ns: u64) -> bool {
    bench.now = Instant::from_ns(ns);
    let (mark, sent) = congested(bench, &data(SENDER, RECEIVER, 7));
    assert_eq!(sent.len(), usize::from(mark == Notified::Sender));
    mark == Notified::Sender
}

/// The pointer is what the kernel sends: 42 octets into the packet, where the option's type stands.
#[test]
fn a_host_that_refuses_is_marked_for_a_while() {
    let mut bench = notified_node();
    let refusal = error(SENDER, Icmpv6Error::UnrecognisedOption(42), &fast_cnp(SWITCH, SENDER, RECEIVER, 7));
    assert!(bench.send(0, &refusal).is_empty());
    assert!(bench.drops(0).is_empty(), "taken, not dropped");
    assert!(!is_told(&mut bench, 60_000_000));
    assert!(is_told(&mut bench, 300_000_000_000), "after five minutes it is asked again");
    let counters = bench.node.fast_cnp_counters();
    assert_eq!((counters.refusals, counters.incapable, counters.sent), (1, 1, 2));
}

/// Whatever is not the answer of that host to a Fast CNP that this node has sent changes nothing.
#[test]
fn forged_refusals_change_nothing() {
    let sent = fast_cnp(SWITCH, SENDER, RECEIVER, 7);
    let unrecognised = |pointer| Icmpv6Error::UnrecognisedOption(pointer);
    let mut bad_checksum = error(SENDER, unrecognised(42), &sent);
    bad_checksum[42] ^= 1;
    for (name, packet) in [
        ("another host answers", error("2001:db8:1::2", unrecognised(42), &sent)),
        ("points elsewhere", error(SENDER, unrecognised(43), &sent)),
        ("points outside", error(SENDER, unrecognised(4_000_000_000), &sent)),
        ("a flow that was not sent", error(SENDER, unrecognised(42), &fast_cnp(SWITCH, SENDER, RECEIVER, 8))),
        ("of another switch", error(SENDER, unrecognised(42), &fast_cnp("2001:db8:53::2", SENDER, RECEIVER, 7))),
        ("a standard CNP", error(SENDER, unrecognised(42), &cnp(SWITCH, SENDER, 7))),
        ("cut short", error(SENDER, unrecognised(42), &sent[..60])),
        ("nothing quoted", error(SENDER, unrecognised(42), &[])),
        ("another error", error(SENDER, Icmpv6Error::ErroneousField(42), &sent)),
        ("bad checksum", bad_checksum),
    ] {
        let mut bench = notified_node();
        assert!(bench.send(0, &packet).is_empty());
        assert_eq!(bench.drops(0), [("local_delivery", 1)], "{name}");
        assert!(is_told(&mut bench, 60_000_000), "{name}");
    }
}
