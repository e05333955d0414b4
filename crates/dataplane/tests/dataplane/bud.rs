//! Bud nodes (D246): nodes below them get what a transit node sends, their own receivers what an edge sends.

use crate::common::group::*;
use crate::common::{Bench, port_mac};
use srdma_dataplane::{Command, DropReason, Event, SidBehavior};
use srdma_frame::{Element, Frame, PortId};
use srdma_group::*;
use srdma_testkit::multicast;
use srdma_wire::{Prefix, Psn};
use std::time::Duration;

const BUD: &str = "2001:db8:4::1";
const BUD_SID: &str = "5f00:0:4:e000::";
const CHILD: &str = "2001:db8:b::1";
const CHILD_SID: &str = "5f00:0:2:e000::";

const ACK: [u8; 4] = [0x1F, 0, 0, 1];
const NAK: [u8; 4] = [0x60, 0, 0, 1];

/// Those of the bud node, at its port 1.
fn own() -> Vec<multicast::Receiver> {
    vec![receiver(1, 0x101, Some((0x10_0000, 7))), receiver(2, 0x102, Some((0x20_0000, 8)))]
}

/// N6 at port 0 above N4 with two receivers at port 1 and N2 at port 2.
fn below_headend(change: impl FnOnce(&mut Record)) -> Bench {
    let nodes =
        [("N6", HEADEND, "5f00:0:6:e000::", None), ("N4", BUD, BUD_SID, Some(0)), ("N2", CHILD, CHILD_SID, Some(1))];
    bench_of(&nodes, 1, change)
}

/// The source at port 0 of the headend, N4, with two receivers at port 1 and N2 at port 2.
fn headend(change: impl FnOnce(&mut Record)) -> Bench {
    bench_of(&[("N4", BUD, BUD_SID, None), ("N2", CHILD, CHILD_SID, Some(0))], 0, change)
}

fn bench_of(nodes: &[(&str, &str, &str, Option<usize>)], position: usize, change: impl FnOnce(&mut Record)) -> Bench {
    let elsewhere = receiver(3, 0x103, Some((0x30_0000, 9)));
    let receivers = own().iter().map(|own| member(own, position)).chain([member(&elsewhere, position + 1)]).collect();
    let mut record = Record { region: Some(REGION), ..record(nodes, receivers) };
    record.policy.lists = ListMode::Provisioned;
    change(&mut record);
    let mut bench = Bench::new(BUD, 3);
    let routes =
        [("2001:db8:1::", 0), ("2001:db8:6::", 0), ("2001:db8:2::", 1), ("5f00:0:2::", 2), ("2001:db8:b::", 2)];
    routes.iter().for_each(|(locator, port)| bench.route(&format!("{locator}/48"), *port));
    let prefix = Prefix::host(address(BUD_SID));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(GroupId(1)) });
    let entry = Group::new(record).unwrap().at(NodeIndex(position)).unwrap();
    assert_eq!(entry.role, NodeRole::Bud);
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench
}

fn to(mut packet: Vec<u8>, destination: &str) -> Vec<u8> {
    packet[24..40].copy_from_slice(&address(destination).octets());
    packet
}

fn one_hop_on(mut packet: Vec<u8>) -> Vec<u8> {
    packet[7] -= 1;
    packet
}

/// A SEND Only.
fn data(psn: u8) -> Vec<u8> {
    let mut packet = inner(0x04, 0, &[psn; 64], false);
    packet[59] = psn;
    with_icrc(packet)
}

fn with_icrc(mut packet: Vec<u8>) -> Vec<u8> {
    let end = packet.len() - 4;
    let icrc = srdma_testkit::checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

fn without_flow_label(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    packet
}

/// Gives a packet to a port of a node that may keep it; returns what leaves.
fn give(bench: &mut Bench, port: u16, packet: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let frame = [&port_mac(port).0[..], &[2, 0, 0, 0, 1, port as u8, 0x86, 0xDD], packet].concat();
    let frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
    bench.node.receive(bench.now, PortId(port), &mut vec![frame], &mut bench.pool);
    let leaving = (0..3).flat_map(|port| {
        std::iter::from_fn(|| bench.give_out(PortId(port))).map(move |it| (port, it[14..].to_vec())).collect::<Vec<_>>()
    });
    leaving.collect()
}

fn expected_psn(bench: &Bench) -> Option<u32> {
    bench.node.acknowledgements(GroupId(1)).unwrap().minimum_psn().map(Psn::get)
}

/// SENDs and WRITEs, with and without a UDP checksum: the nodes below get the packet with another destination, the
/// receivers the copies of the model.
#[test]
fn copies_are_those_of_a_transit_node_and_of_an_edge() {
    for (opcode, with_checksum) in
        [(0x00, false), (0x04, true), (0x06, false), (0x0A, true), (0x0B, true), (0x08, false)]
    {
        let mut bench = below_headend(|_| ());
        let inner = inner(opcode, 0x40, &[7; 200], with_checksum);
        let mut expected = copies(&inner, &own());
        expected.push((2, to(one_hop_on(encapsulated(&inner)), CHILD_SID)));
        assert_eq!(bench.send(0, &to(encapsulated(&inner), BUD_SID)), expected, "opcode {opcode:#x}");
        assert_eq!(bench.node.group_counters(GroupId(1)).unwrap().copies, 3);
    }
}

/// The headend's receivers get what they would behind another node: two hops less.
#[test]
fn a_headend_copies_to_receivers_of_its_own() {
    for opcode in [0x04, 0x0A] {
        let mut bench = headend(|_| ());
        let packet = inner(opcode, 0x40, &[7; 200], true);
        let sent = bench.send(0, &packet);
        let one_hop_less = one_hop_on(packet);
        assert_eq!(sent[..2], copies(&one_hop_less, &own()));
        let mut encapsulated = to(encapsulated(&one_hop_less), CHILD_SID);
        encapsulated[8..24].copy_from_slice(&address(BUD).octets());
        // The Traffic Class goes outward.
        encapsulated[..2].copy_from_slice(&[one_hop_less[0], one_hop_less[1] & 0xF0]);
        assert_eq!((sent[2].0, without_flow_label(sent[2].1.clone())), (2, encapsulated));
    }
}

/// A tree of one node: the source and all receivers are at the same leaf switch.
#[test]
fn a_headend_needs_no_other_node() {
    let receivers: Vec<Receiver> = own().iter().map(|own| member(own, 0)).collect();
    let record = Record { region: Some(REGION), ..record(&[("N4", BUD, BUD_SID, None)], receivers) };
    let mut bench = Bench::new(BUD, 2);
    [("2001:db8:1::/48", 0), ("2001:db8:2::/48", 1)].iter().for_each(|(prefix, port)| bench.route(prefix, *port));
    bench.apply(Command::AddGroup(Box::new(Group::new(record).unwrap().at(NodeIndex(0)).unwrap())));
    assert_eq!(bench.send(0, &data(100)), copies(&one_hop_on(data(100)), &own()));
    assert_eq!(bench.send(1, &response(0x11, "2001:db8:2::1", 100, &ACK)), []);
    let upstream = bench.send(1, &response(0x11, "2001:db8:2::2", 100, &ACK));
    assert_eq!((upstream.len(), upstream[0].0, &upstream[0].1[57..61]), (1, 0, &[0, 0, 100, 0x1F][..]));
}

/// RFC 6040: receivers see a mark of the outer header, the nodes below get both headers as they came.
#[test]
fn a_mark_of_the_outer_header_reaches_receivers() {
    let mut bench = below_headend(|_| ());
    let mut packet = to(encapsulated(&data(100)), BUD_SID);
    packet[1] |= 0x30;
    let mut marked = data(100);
    marked[1] |= 0x30;
    let sent = bench.send(0, &packet);
    assert_eq!(sent[..2], copies(&marked, &own()));
    assert_eq!(sent[2], (2, to(one_hop_on(packet), CHILD_SID)));
}

/// D12, D14: the minimum is that of nodes and receivers, and neither speaks for the other.
#[test]
fn responses_of_nodes_and_receivers_are_aggregated() {
    let mut bench = below_headend(|_| ());
    bench.send(0, &to(encapsulated(&data(100)), BUD_SID));
    assert_eq!(bench.send(1, &response(0x11, "2001:db8:2::1", 100, &ACK)), []);
    assert_eq!(bench.send(2, &response(0x11, CHILD, 100, &ACK)), []);
    assert_eq!(expected_psn(&bench), Some(100));
    let upstream = bench.send(1, &response(0x11, "2001:db8:2::2", 100, &ACK));
    assert_eq!((upstream.len(), upstream[0].0, &upstream[0].1[57..61]), (1, 0, &[0, 0, 100, 0x1F][..]));
    assert_eq!(upstream[0].1[8..24], address(BUD).octets());
    assert_eq!(expected_psn(&bench), Some(101));
}

/// A WRITE outside of the region: the nodes below decide for themselves.
#[test]
fn receivers_get_no_write_outside_of_their_region() {
    let mut bench = below_headend(|_| ());
    let packet = to(encapsulated(&inner(0x0A, REGION_OCTETS, &[7; 64], false)), BUD_SID);
    assert_eq!(bench.send(0, &packet), [(2, to(one_hop_on(packet), CHILD_SID))]);
    assert_eq!(bench.drops(0), [("outside_region", 1)]);
}

/// What is for the End.MT SID of a former edge is dropped by name.
#[test]
fn a_bud_node_is_no_edge_of_its_group() {
    let mut bench = below_headend(|_| ());
    let prefix = Prefix::host(address(SID));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac: false } });
    for tlvs in [vec![], vec![end_mt_tlv(BUD, &own())]] {
        let tlvs: Vec<&[u8]> = tlvs.iter().map(Vec::as_slice).collect();
        assert_eq!(bench.send(0, &with_tlvs(&data(100), &tlvs)), []);
    }
    assert_eq!(bench.drops(0), [("bud_as_edge", 2)]);
}

/// D25: a receiver that is silent is evicted, a node never.
#[test]
fn evictions_are_requested_for_receivers_alone() {
    let mut bench = below_headend(|record| record.policy.on_failure = OnFailure::Evict);
    bench.send(0, &to(encapsulated(&data(100)), BUD_SID));
    bench.send(1, &response(0x11, "2001:db8:2::1", 100, &ACK));
    for _ in 0..100 {
        bench.now += Duration::from_millis(100);
        bench.node.tick(bench.now, &mut bench.pool);
        bench.send(0, &to(encapsulated(&data(101)), BUD_SID));
        bench.send(0, &to(encapsulated(&data(100)), BUD_SID));
        bench.send(1, &response(0x11, "2001:db8:2::1", 101, &ACK));
    }
    let evicted: Vec<_> = bench.node.take_events().map(|Event::EvictionRequested { receiver, .. }| receiver).collect();
    assert_eq!(evicted, [own()[1].address]);
}

/// D152: each branch is sent again what it lacks, in the form that it was sent first, by a headend and by a node below.
#[test]
fn losses_are_repaired_for_both_kinds_of_branches() {
    let repairing = |record: &mut Record| record.policy.repair.mode = RepairMode::Tree;
    for is_headend in [false, true] {
        let mut bench = if is_headend { headend(repairing) } else { below_headend(repairing) };
        let outer = |inner: Vec<u8>| if is_headend { inner } else { to(encapsulated(&inner), BUD_SID) };
        let first: Vec<_> = (100..=102).map(|psn| give(&mut bench, 0, &outer(data(psn)))).collect();
        assert!(first.iter().all(|sent| sent.len() == 3));
        let again = give(&mut bench, 1, &response(0x11, "2001:db8:2::2", 101, &NAK));
        assert_eq!(again, [first[1][1].clone(), first[2][1].clone()], "headend: {is_headend}");
        let again = give(&mut bench, 2, &response(0x11, CHILD, 102, &NAK));
        let without_labels = |sent: Vec<(u16, Vec<u8>)>| -> Vec<_> {
            sent.into_iter().map(|(port, octets)| (port, without_flow_label(octets))).collect()
        };
        assert_eq!(without_labels(again), without_labels(vec![first[2][2].clone()]), "headend: {is_headend}");
        // All have all: nothing is kept.
        give(&mut bench, 1, &response(0x11, "2001:db8:2::1", 102, &ACK));
        give(&mut bench, 1, &response(0x11, "2001:db8:2::2", 102, &ACK));
        assert_eq!(give(&mut bench, 2, &response(0x11, CHILD, 102, &ACK)).len(), 1);
        assert_eq!(bench.pool.in_use(), 0, "every chunk comes back");
    }
}

/// Packets that go down to nodes, and of which receivers are sent no copy, are not sent to them for a NAK either: one
/// that ends before its outer header says, and one whose hops end here. The queue of the port keeps its count of octets.
#[test]
fn receivers_are_not_sent_again_what_they_were_not_sent() {
    let mut longer = to(encapsulated(&data(101)), BUD_SID);
    longer.push(0);
    longer[5] += 1;
    let mut last_hop = data(101);
    last_hop[7] = 1;
    let last_hop = to(encapsulated(&with_icrc(last_hop)), BUD_SID);
    for (packet, reason) in [(longer, DropReason::Truncated), (last_hop, DropReason::HopLimitExceeded)] {
        let mut bench = below_headend(|record| record.policy.repair.mode = RepairMode::Tree);
        give(&mut bench, 0, &to(encapsulated(&data(100)), BUD_SID));
        assert_eq!(give(&mut bench, 0, &packet), [(2, to(one_hop_on(packet), CHILD_SID))]);
        assert_eq!(bench.drops(0), [(reason.name(), 1)]);
        let first = give(&mut bench, 0, &to(encapsulated(&data(102)), BUD_SID));
        let again = give(&mut bench, 1, &response(0x11, "2001:db8:2::2", 101, &NAK));
        assert_eq!(again, [first[1].clone()]);
        assert_eq!(bench.node.own_drops().get(reason), 1);
    }
}

/// Roles follow from what hangs on a node.
#[test]
fn roles_of_trees_are_checked() {
    let node = |role, parent: Option<usize>, multicast: Option<&str>| TreeNode {
        name: "N".into(),
        loopback: address(if parent.is_some() { CHILD } else { BUD }),
        sid: address(if parent.is_some() { CHILD_SID } else { BUD_SID }),
        parent: parent.map(NodeIndex),
        parent_sid: None,
        role,
        multicast: multicast.map(address),
        joined: None,
        renewed: 0,
        can_repair: false,
    };
    let tree = |nodes| Tree::new(nodes).map_err(|error| error.to_string());
    let edge_above = tree(vec![node(NodeRole::Edge, None, None), node(NodeRole::Edge, Some(0), None)]);
    assert!(edge_above.unwrap_err().contains("its role is `bud`"));
    let multicast = tree(vec![node(NodeRole::Transit, None, Some("ff3e::1")), node(NodeRole::Bud, Some(0), None)]);
    assert!(multicast.unwrap_err().contains("IPv6 multicast group"));
}
