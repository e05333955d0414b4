//! Fast CNPs inside a multicast tree (D46): from wherever the congestion is, they end at the right source QP.

use crate::common::Bench;
use crate::common::group::{self, EDGE, HEADEND, PROXY, SOURCE, encapsulated, inner, member, receiver};
use crate::fast_cnp::packets::*;
use srdma_dataplane::{Command, FastCnpConfig, Notified};
use srdma_frame::Element;
use srdma_group::{Group, ListMode, NodeIndex, Policy, Record};
use srdma_testkit::multicast::Receiver;

/// A switch between the edge and its receivers, and one above the edge.
const BELOW: &str = "2001:db8:53::b";
const ABOVE: &str = "2001:db8:53::a";

const SOURCE_QPN: u32 = 0x77;
const DESIGNATED: u32 = 0xABCD;

fn receivers() -> Vec<Receiver> {
    vec![receiver(1, 0x111, None), receiver(2, 0x222, None)]
}

fn group() -> Group {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, group::SID, Some(0))];
    let members = receivers().iter().map(|receiver| member(receiver, 1)).collect();
    let policy = Policy { lists: ListMode::Provisioned, ..group::prompt() };
    Group::new(Record { policy, ..group::record(&nodes, members) }).unwrap()
}

/// The root: the source behind port 0, the tree behind port 1.
fn root(config: FastCnpConfig) -> Bench {
    let mut bench = Bench::new(HEADEND, 2);
    bench.route("::/0", 1);
    bench.route(SOURCE, 0);
    bench.apply(Command::AddGroup(Box::new(group().at(NodeIndex(0)).unwrap())));
    turn_on(&mut bench, config);
    bench
}

/// The edge: the root behind port 0, switches and receivers behind port 1.
fn edge() -> Bench {
    let mut bench = group::edge(false);
    bench.route("::/0", 0);
    bench.route("2001:db8:53::b", 1);
    bench.apply(Command::AddGroup(Box::new(group().at(NodeIndex(1)).unwrap())));
    turn_on(&mut bench, config());
    bench
}

/// The copy that the edge makes for the second receiver.
fn copy() -> Vec<u8> {
    let copies = edge().send(0, &encapsulated(&inner(0x04, 0, &[5; 8], false)));
    let (_, copy) = copies.into_iter().find(|(_, copy)| copy[39] == 2).unwrap();
    copy
}

/// A transit switch of no group, with everything behind port 0.
fn plain_switch(loopback: &str) -> Bench {
    let mut bench = Bench::new(loopback, 1);
    bench.route("::/0", 0);
    turn_on(&mut bench, FastCnpConfig { capable: vec![prefix("::/0")], ..config() });
    bench
}

fn sent_by(bench: &mut Bench, packet: &[u8]) -> Vec<u8> {
    let (mark, sent) = congested(bench, packet);
    assert_eq!(mark, Notified::Sender);
    let [(_, octets)] = &sent[..] else { panic!("{sent:?}") };
    octets.clone()
}

/// The packet that the root sends to the source.
fn at_source(root: &mut Bench, packet: &[u8]) -> Vec<u8> {
    let sent = root.send(1, packet);
    let [(0, octets)] = &sent[..] else { panic!("{sent:?}, {:?}", root.drops(1)) };
    octets.clone()
}

/// The CNP that a source is given: from the Proxy Address, to the source's queue pair, its payload zero.
fn assert_standard_cnp(octets: &[u8]) {
    let traffic_class_cleared = [&[0x60, 0, 0, 0], &octets[4..]].concat();
    let mut expected = cnp(PROXY, SOURCE, SOURCE_QPN);
    expected[..4].copy_from_slice(&[0x60, 0, 0, 0]);
    // Which UDP source port a CNP has is its sender's choice: the ICRC of what was chosen must be good.
    expected[40..42].copy_from_slice(&octets[40..42]);
    expected[7] = octets[7];
    let icrc = srdma_testkit::checksums::icrc(&expected[..76]);
    expected[76..].copy_from_slice(&icrc);
    assert_eq!(traffic_class_cleared, expected);
}

/// Above the edge the data packet's own source is notified, and the Proxy Address is its peer: a source with Fast CNP
/// support gets it as it was sent, any other a standard CNP from the root.
#[test]
fn above_the_edge_the_source_is_notified() {
    let packet = encapsulated(&inner(0x04, 0, &[5; 8], false));
    let sent = sent_by(&mut plain_switch(ABOVE), &packet);
    assert_eq!(sent, fast_cnp(ABOVE, SOURCE, PROXY, DESIGNATED));

    let mut knowing = root(config());
    assert_eq!(at_source(&mut knowing, &sent), forwarded(sent.clone()), "2001:db8:1::1 is known to be capable");
    let mut unknowing = root(FastCnpConfig { capable: Vec::new(), ..config() });
    assert_standard_cnp(&at_source(&mut unknowing, &sent));
    assert_eq!(unknowing.node.fast_cnp_counters().translated, 1);
}

/// At the root itself, when its own port to the tree is congested.
#[test]
fn the_root_notifies_its_source() {
    let packet = encapsulated(&inner(0x04, 0, &[5; 8], false));
    let (mark, sent) = congested(&mut root(config()), &packet);
    assert_eq!((mark, sent), (Notified::Sender, vec![(0, fast_cnp(HEADEND, SOURCE, PROXY, DESIGNATED))]));
    let mut unknowing = root(FastCnpConfig { capable: Vec::new(), ..config() });
    let (_, sent) = congested(&mut unknowing, &packet);
    let [(0, octets)] = &sent[..] else { panic!("{sent:?}") };
    assert_standard_cnp(octets);
}

/// Below the edge: the Fast CNP goes to the Proxy Address, which is the edge; it counts for the branch that the option
/// names, goes up the tree as a CNP, and comes out at the source's queue pair.
#[test]
fn below_the_edge_it_counts_for_the_branch() {
    let sent = sent_by(&mut plain_switch(BELOW), &copy());
    assert_eq!(sent, fast_cnp(BELOW, PROXY, "2001:db8:2::2", 0x222));
    let mut edge = edge();
    let upward = edge.send(1, &sent);
    let [(0, octets)] = &upward[..] else { panic!("{upward:?}, {:?}", edge.drops(1)) };
    assert_eq!(octets[8..24], address(EDGE).octets());
    assert_eq!(octets[60..64], [0, 0, 0, 1], "it stands for one");
    let counters = edge.node.group_counters(srdma_group::GroupId(1)).unwrap();
    assert_eq!((counters.cnps_received, counters.cnps_sent), (1, 1));
    assert_eq!(edge.node.fast_cnp_counters().aggregated, 1);
    assert_standard_cnp(&at_source(&mut root(config()), octets));

    // CCount: those that follow within the window are counted, and go at its end as one.
    for _ in 0..3 {
        assert!(edge.send(1, &sent).is_empty());
    }
    edge.now = edge.node.next_deadline().unwrap();
    edge.node.tick(edge.now, &mut edge.pool);
    let upward = edge.drain();
    assert_eq!(upward.len(), 1);
    assert_eq!(upward[0].1[60..64], [0, 0, 0, 3]);
}

/// The edge's own port to a receiver: the edge need send nothing to itself.
#[test]
fn an_edge_counts_its_own() {
    let mut edge = edge();
    let (mark, upward) = congested(&mut edge, &copy());
    assert_eq!((mark, upward.len()), (Notified::Sender, 1));
    assert_standard_cnp(&at_source(&mut root(config()), &upward[0].1));
    let counters = edge.node.fast_cnp_counters();
    assert_eq!((counters.counted_here, counters.sent, counters.not_sent), (1, 0, 0));
}

/// A Fast CNP that is not from an accepted switch, about a copy of this edge, changes no count.
#[test]
fn fast_cnps_that_an_edge_refuses() {
    let good = fast_cnp(BELOW, PROXY, "2001:db8:2::2", 0x222);
    let mut damaged = good.clone();
    damaged[90] ^= 1;
    let too_short = with_options(cnp(BELOW, PROXY, 0x222), &[0x9E, 4, 0, 0, 0, 0]);
    for (port, packet, reason) in [
        (1, fast_cnp("2001:db8:dd::1", PROXY, "2001:db8:2::2", 0x222), "fast_cnp_foreign_source"),
        (0, good.clone(), "fast_cnp_foreign_source"),
        (1, fast_cnp(BELOW, PROXY, "2001:db8:2::3", 0x222), "unexpected_responder"),
        (1, fast_cnp(BELOW, PROXY, "2001:db8:2::2", 0x223), "unexpected_responder"),
        (1, damaged, "bad_icrc"),
        (1, too_short, "fast_cnp_too_short"),
    ] {
        let mut edge = edge();
        assert!(edge.send(port, &packet).is_empty());
        assert_eq!(edge.drops(port), [(reason, 1)]);
        assert_eq!(edge.node.group_counters(srdma_group::GroupId(1)).unwrap().cnps_received, 0);
    }
    let mut off = edge();
    off.apply(Command::RemoveFastCnp);
    assert!(off.send(1, &good).is_empty());
    assert_eq!(off.drops(1), [("unexpected_responder", 1)], "off: a response without a group");
}

/// A returned trace reports no congestion, and the trace cannot be forwarded, since the source's path is not that of
/// one receiver. So it is dropped at the edge, counted, and slows no sender down. A receiver's Fast CNP without a trace
/// is a CNP.
#[test]
fn a_trace_that_a_receiver_returns_ends_at_the_edge() {
    let mut edge = edge();
    assert!(edge.send(1, &returned_trace("2001:db8:2::2", PROXY, 0x222)).is_empty());
    assert_eq!(edge.drops(1), [("fast_cnp_returned_trace", 1)]);
    let counters = edge.node.group_counters(srdma_group::GroupId(1)).unwrap();
    assert_eq!((counters.cnps_received, counters.cnps_sent), (0, 0));
    assert_eq!(edge.node.next_deadline(), None, "no state is left");
    let upward = edge.send(1, &fast_cnp("2001:db8:2::2", PROXY, "2001:db8:2::2", 0x222));
    assert_eq!(upward.len(), 1);
    assert_eq!(edge.node.group_counters(srdma_group::GroupId(1)).unwrap().cnps_received, 1);
}
