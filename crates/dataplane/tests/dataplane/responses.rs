//! The reverse path on the wire: responses that a node accepts from below, and those that it sends upstream (D11–D14,
//! D18, D26, D29, D33).

use crate::common::group::{self, HEADEND as ROOT, PROXY, SOURCE, address};
use crate::common::{Bench, next_hop};
use srdma_dataplane::{Command, Node, RouteAction, SidBehavior, TableId};
use srdma_group::*;
use srdma_testkit::checksums;
use srdma_wire::{PathMtu, Prefix, Psn, Qpn};
use std::net::Ipv6Addr;

const DESIGNATED: u32 = 0xABCD;
const SOURCE_QPN: u32 = 0x77;
const FIRST_PSN: u32 = 0xFF_FFFE;

/// The root N6 with children N4 and N5 at its ports 1 and 2; the source is at port 0.
fn tree() -> Group {
    let nodes = [
        ("N6", ROOT, "5f00:0:6:e000::", None),
        ("N4", "2001:db8:4::1", "5f00:0:4:e000::", Some(0)),
        ("N5", "2001:db8:5::1", "5f00:0:5:e000::", Some(0)),
        ("N3", "2001:db8:3::1", "5f00:0:3:e000::", Some(2)),
    ];
    let receiver = |text: &str, qpn, edge| Receiver::new(address(text), Qpn::new(qpn).unwrap(), NodeIndex(edge));
    let receivers = vec![
        receiver("2001:db8:a::1", 0x101, 1),
        receiver("2001:db8:a::2", 0x102, 1),
        receiver("2001:db8:b::1", 0x103, 3),
    ];
    let record = group::record(&nodes, receivers);
    // N5 is no neighbour of N3, which tunnels to it.
    let mut nodes = record.tree.nodes().to_vec();
    nodes[3].parent_sid = Some(address("5f00:0:5:d6::"));
    Group::new(Record {
        id: GroupId(7),
        initial_psn: Psn::new(FIRST_PSN),
        path_mtu: PathMtu::Octets1024,
        link_mtu: 1500,
        tree: Tree::new(nodes).unwrap(),
        ..record
    })
    .unwrap()
}

fn route(bench: &mut Bench, prefix: &str, len: u8, port: u16) {
    let prefix = Prefix::new(address(prefix), len).unwrap();
    let action = RouteAction::Via(vec![next_hop(port)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
}

fn root() -> Bench {
    root_with(group::prompt())
}

fn root_with(policy: Policy) -> Bench {
    let mut bench = Bench::new(ROOT, 3);
    route(&mut bench, SOURCE, 128, 0);
    for (prefix, port) in [("2001:db8:4::", 1), ("2001:db8:5::", 2), ("5f00:0:4::", 1), ("5f00:0:5::", 2)] {
        route(&mut bench, prefix, 48, port);
    }
    let entry = tree().at(NodeIndex(0)).unwrap();
    bench.apply(Command::AddGroup(Box::new(GroupEntry { policy, ..entry })));
    bench
}

/// A RoCEv2 packet: BTH, the rest, and a valid ICRC.
fn rocev2(source: &str, qpn: u32, opcode: u8, psn: u32, ack_request: bool, rest: &[u8]) -> Vec<u8> {
    let udp_len = (8 + 12 + rest.len() + 4) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(udp_len.to_be_bytes());
    packet.extend([17, 64]);
    packet.extend(address(source).octets());
    packet.extend(address(PROXY).octets());
    packet.extend([0xC0, 0x01, 0x12, 0xB7]);
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0, opcode, 0, 0xFF, 0xFF, if opcode == 0x81 { 0x40 } else { 0 }]);
    packet.extend(&qpn.to_be_bytes()[1..]);
    packet.push(u8::from(ack_request) << 7);
    packet.extend(&psn.to_be_bytes()[1..]);
    packet.extend(rest);
    let icrc = checksums::icrc(&packet);
    packet.extend(icrc);
    packet
}

fn response(source: &str, psn: u32, syndrome: u8) -> Vec<u8> {
    rocev2(source, DESIGNATED, 0x11, psn, false, &[syndrome, 0, 0, 5])
}

fn data(psn: u32) -> Vec<u8> {
    rocev2(SOURCE, DESIGNATED, 0x04, psn, true, &[1; 64])
}

/// Source, destination, queue pair, opcode, PSN and first octet behind the BTH of a response, its ICRC checked.
fn read(packet: &[u8]) -> (Ipv6Addr, Ipv6Addr, u32, u8, u32, u8) {
    let end = packet.len() - 4;
    assert_eq!(checksums::icrc(&packet[..end])[..], packet[end..]);
    let at = |start: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[start..start + 16]).unwrap());
    let number = |start: usize| u32::from_be_bytes([0, packet[start], packet[start + 1], packet[start + 2]]);
    (at(8), at(24), number(53), packet[48], number(57), packet[60])
}

/// Responses to the source: opcode, PSN, syndrome.
fn upstream(sent: &[(u16, Vec<u8>)]) -> Vec<(u8, u32, u8)> {
    let to_source = |packet: &Vec<u8>| {
        let (source, destination, qpn, opcode, psn, syndrome) = read(packet);
        assert_eq!((source, destination, qpn), (address(PROXY), address(SOURCE), SOURCE_QPN));
        (opcode, psn, syndrome)
    };
    sent.iter().filter(|(port, _)| *port == 0).map(|(_, packet)| to_source(packet)).collect()
}

/// MT-5.2-1, D4: each child gets the packet under its own SID, with the same SRH, the inner octets unchanged except the
/// hop limit (D1).
#[test]
fn the_headend_encapsulates_once_for_each_child() {
    let sent = root().send(0, &data(FIRST_PSN));
    let mut inner = data(FIRST_PSN);
    inner[7] -= 1;
    let destinations: Vec<(u16, [u8; 16])> =
        sent.iter().map(|(port, packet)| (*port, packet[24..40].try_into().unwrap())).collect();
    let expected = [(1, address("5f00:0:4:e000::").octets()), (2, address("5f00:0:5:e000::").octets())];
    assert_eq!(destinations, expected);
    for (_, packet) in &sent {
        assert_eq!(&packet[8..24], &address(ROOT).octets());
        // SRH: next header IPv6, type 4, Segments Left 1, Last Entry 0, and the Proxy Address as the only segment.
        assert_eq!((packet[6], packet[40], &packet[42..45]), (43, 41, &[4, 1, 0][..]));
        assert_eq!(&packet[48..64], &address(PROXY).octets());
        assert!(packet.ends_with(&inner));
    }
    assert_eq!(sent[0].1[40..], sent[1].1[40..]);
}

/// MT-5.3.1-3, MT-5.3.1-4, D11, D12, D13: the source gets the minimum, from the Proxy Address, at its own queue pair.
#[test]
fn the_source_gets_the_minimum_psn() {
    let mut bench = root();
    bench.send(0, &data(FIRST_PSN));
    bench.send(0, &data(FIRST_PSN + 1));
    bench.send(0, &data(0));
    assert_eq!(upstream(&bench.send(1, &response("2001:db8:4::1", 0, 0x1F))), []);
    // Across the wrap of the PSN; credits never limit (D18).
    assert_eq!(upstream(&bench.send(2, &response("2001:db8:5::1", FIRST_PSN, 0x03))), [(0x11, FIRST_PSN, 0x1F)]);
    assert_eq!(upstream(&bench.send(2, &response("2001:db8:5::1", 0, 0x1F))), [(0x11, 0, 0x1F)]);
}

/// D14, D15, D33, MT-9-2: checks of responses by sender, port and content.
#[test]
fn other_responses_are_dropped_by_name() {
    let dropped = |port: u16, packet: &[u8]| {
        let mut bench = root();
        bench.send(0, &data(FIRST_PSN));
        assert_eq!(bench.send(port, packet), vec![]);
        bench.drops(port)[0].0
    };
    let good = response("2001:db8:4::1", FIRST_PSN, 0x1F);
    assert_eq!(dropped(1, &response("2001:db8:9::1", FIRST_PSN, 0x1F)), "unexpected_responder");
    assert_eq!(dropped(2, &good), "unexpected_responder");
    let mut damaged = good.clone();
    damaged[59] ^= 1;
    assert_eq!(dropped(1, &damaged), "bad_icrc");
    let other_qpn = rocev2("2001:db8:4::1", 0x99, 0x11, FIRST_PSN, false, &[0x1F, 0, 0, 5]);
    assert_eq!(dropped(1, &other_qpn), "wrong_qpn");
    assert_eq!(dropped(1, &response("2001:db8:4::1", FIRST_PSN, 0x40)), "reserved_syndrome");
    assert_eq!(dropped(1, &response("2001:db8:4::1", FIRST_PSN + 0x20_0000, 0x1F)), "implausible_psn");
    // A receiver's own request, and a READ response (D12).
    let request = rocev2("2001:db8:4::1", DESIGNATED, 0x04, 5, true, &[1; 4]);
    assert_eq!(dropped(1, &request), "not_a_response");
    let read_response = rocev2("2001:db8:4::1", DESIGNATED, 0x10, FIRST_PSN, false, &[0x1F, 0, 0, 1]);
    assert_eq!(dropped(1, &read_response), "not_a_response");
    // Before any data went down there is nothing to answer (rule R1).
    let mut quiet = root();
    assert_eq!(quiet.send(1, &good), vec![]);
    assert_eq!(quiet.drops(1), [("nothing_sent", 1)]);
}

/// D26, D24: READ and ATOMIC are answered with NAK invalid request, once everything before is confirmed by all.
#[test]
fn read_and_atomic_are_refused_in_order() {
    for (opcode, rest) in [(0x0C, 16), (0x13, 28), (0x14, 28)] {
        let mut bench = root();
        bench.send(0, &data(FIRST_PSN));
        let refused = rocev2(SOURCE, DESIGNATED, opcode, FIRST_PSN + 1, true, &vec![0; rest]);
        assert_eq!(bench.send(0, &refused), vec![]);
        bench.send(1, &response("2001:db8:4::1", FIRST_PSN, 0x1F));
        let sent = bench.send(2, &response("2001:db8:5::1", FIRST_PSN, 0x1F));
        assert_eq!(upstream(&sent), [(0x11, FIRST_PSN, 0x1F), (0x11, FIRST_PSN + 1, 0x61)]);
        // A repeated request is refused again.
        assert_eq!(upstream(&bench.send(0, &refused)), [(0x11, FIRST_PSN + 1, 0x61)]);
        assert_eq!(bench.drops(0), [("not_multicastable", 2)]);
    }
}

/// Packets of the source other than requests are dropped.
#[test]
fn the_source_sends_requests_only() {
    let mut bench = root();
    assert_eq!(bench.send(0, &rocev2(SOURCE, DESIGNATED, 0x11, 5, false, &[0x1F, 0, 0, 1])), vec![]);
    assert_eq!(bench.send(0, &rocev2(SOURCE, 0x99, 0x04, 5, false, &[1; 4])), vec![]);
    assert_eq!(bench.drops(0), [("not_multicastable", 1), ("wrong_qpn", 1)]);
}

fn cnp(source: &str, count: u32) -> Vec<u8> {
    let mut rest = count.to_be_bytes().to_vec();
    rest.extend([0; 12]);
    rocev2(source, DESIGNATED, 0x81, 0, false, &rest)
}

/// MT-5.3.3-1, MT-5.3.3-2, MT-5.3.3-4, D29: the first CNP at once, then one for the branch with the highest count; the
/// source sees standard ones.
#[test]
fn cnps_are_counted_by_path_and_forwarded_once_a_window() {
    let mut bench = root();
    let first = bench.send(1, &cnp("2001:db8:4::1", 3));
    assert_eq!(upstream(&first), [(0x81, 0, 0)]);
    assert_eq!(&first[0].1[60..76], &[0; 16], "no count leaves the tree");
    assert_eq!(first[0].1[52], 0x40, "BECN");
    assert_eq!(bench.send(1, &cnp("2001:db8:4::1", 1)), vec![]);
    assert_eq!(bench.send(2, &cnp("2001:db8:5::1", 9)), vec![]);
    let end = srdma_frame::Element::next_deadline(&bench.node).unwrap();
    assert_eq!(end.as_ns(), 50_000);
    bench.now = end;
    srdma_frame::Element::tick(&mut bench.node, end, &mut bench.pool);
    assert_eq!(upstream(&bench.drain()), [(0x81, 0, 0)]);
    let counters = bench.node.group_counters(GroupId(7)).unwrap();
    assert_eq!((counters.cnps_received, counters.cnps_sent), (3, 2));
}

/// D12, D43: a CNP that carries options, as a Fast CNP does, is a CNP of the branch that it comes from; its ICRC counts
/// the header as absent. From any other sender it is dropped.
#[test]
fn a_cnp_may_carry_options() {
    let with_option = |source| {
        let mut packet = cnp(source, 1);
        let mut header = vec![17, 2, 0x9E, 16];
        header.extend(address("2001:db8:a::1").octets());
        header.extend([1, 2, 0, 0]);
        packet.splice(40..40, header);
        (packet[5], packet[6]) = (packet[5] + 24, 60);
        packet
    };
    let mut bench = root();
    assert_eq!(upstream(&bench.send(1, &with_option("2001:db8:4::1"))), [(0x81, 0, 0)]);
    assert_eq!(bench.send(1, &with_option("2001:db8:9::1")), []);
    assert_eq!(bench.drops(1), [("unexpected_responder", 1)]);
}

/// The edge of that index, its parent at port 0, receivers at port 1.
fn edge(index: usize, loopback: &str, policy: Policy) -> Bench {
    let mut bench = Bench::new(loopback, 2);
    for (prefix, len, port) in [(ROOT, 128, 0), ("5f00:0:5::", 48, 0), ("2001:db8:a::", 48, 1), ("2001:db8:b::", 48, 1)]
    {
        route(&mut bench, prefix, len, port);
    }
    let entry = tree().at(NodeIndex(index)).unwrap();
    bench.apply(Command::AddGroup(Box::new(GroupEntry { policy, ..entry })));
    bench
}

/// D12, D29: a node that is not the root sends from its own address, keeps the group's addresses, and encapsulates to a
/// parent that is not its neighbour. From a receiver a CNP counts one, whatever it carries.
#[test]
fn an_edge_sends_responses_to_its_parent() {
    let edge = |index, loopback| edge(index, loopback, group::prompt());
    let sent = edge(1, "2001:db8:4::1").send(1, &cnp("2001:db8:a::1", 1000));
    let (source, destination, qpn, opcode, ..) = read(&sent[0].1);
    assert_eq!((sent[0].0, opcode, qpn), (0, 0x81, DESIGNATED));
    assert_eq!((source, destination), (address("2001:db8:4::1"), address(PROXY)));
    assert_eq!(sent[0].1[60..64], [0, 0, 0, 1]);

    let sent = edge(3, "2001:db8:3::1").send(1, &cnp("2001:db8:b::1", 0));
    let outer = &sent[0].1;
    assert_eq!((outer[6], &outer[8..24]), (41, &address("2001:db8:3::1").octets()[..]));
    assert_eq!(&outer[24..40], &address("5f00:0:5:d6::").octets());
    let (source, destination, ..) = read(&outer[40..]);
    assert_eq!((source, destination), (address("2001:db8:3::1"), address(PROXY)));
}

/// A packet with this Traffic Class, which the ICRC counts as ones.
fn with_class(mut packet: Vec<u8>, traffic_class: u8) -> Vec<u8> {
    packet[0] = 0x60 | traffic_class >> 4;
    packet[1] = packet[1] & 0x0F | traffic_class << 4;
    packet
}

fn class_of(packet: &[u8]) -> u8 {
    packet[0] << 4 | packet[1] >> 4
}

/// Octet 1 of the BTH, which has MigReq, of an IPv6 packet without options.
const MIGRATION: usize = 40 + 8 + 1;

/// A packet whose BTH has MigReq set, its ICRC computed again.
fn with_migration_request(mut packet: Vec<u8>) -> Vec<u8> {
    packet[MIGRATION] |= 0x40;
    packet.truncate(packet.len() - 4);
    let icrc = checksums::icrc(&packet);
    packet.extend(icrc);
    packet
}

/// D227: ACKs have the DSCP of the branch's response, without its ECN field, and the data's MigReq; CNPs have CS6 and
/// no MigReq.
#[test]
fn responses_have_the_class_of_the_branches() {
    let mut bench = root();
    bench.send(0, &with_migration_request(data(FIRST_PSN)));
    bench.send(1, &with_class(response("2001:db8:4::1", FIRST_PSN, 0x1F), 26 << 2 | 3));
    let acks = bench.send(2, &with_class(response("2001:db8:5::1", FIRST_PSN, 0x1F), 34 << 2 | 3));
    assert_eq!(upstream(&acks), [(0x11, FIRST_PSN, 0x1F)]);
    assert_eq!((class_of(&acks[0].1), acks[0].1[MIGRATION]), (34 << 2, 0x40));

    let cnps = bench.send(1, &with_class(cnp("2001:db8:4::1", 1), 10 << 2));
    assert_eq!(upstream(&cnps), [(0x81, 0, 0)]);
    assert_eq!((class_of(&cnps[0].1), cnps[0].1[MIGRATION]), (48 << 2, 0));

    // A response that is refused has no say, and MigReq follows the data.
    bench.send(0, &data(FIRST_PSN + 1));
    bench.send(1, &with_class(response("2001:db8:4::1", FIRST_PSN + 1, 0x1F), 26 << 2));
    bench.send(1, &with_class(response("2001:db8:4::1", FIRST_PSN + 0x20_0000, 0x1F), 8 << 2));
    bench.send(0, &rocev2(SOURCE, DESIGNATED, 0x0C, 0, true, &[0; 16]));
    let acks = bench.send(2, &with_class(response("2001:db8:5::1", FIRST_PSN + 1, 0x1F), 26 << 2));
    assert_eq!(upstream(&acks), [(0x11, FIRST_PSN + 1, 0x1F), (0x11, 0, 0x61)]);
    assert!(acks.iter().all(|(_, packet)| (class_of(packet), packet[MIGRATION]) == (26 << 2, 0)));
}

/// D227: the policy's DSCPs hold in inner and outer headers.
#[test]
fn a_policy_has_the_dscp_of_responses() {
    let policy = Policy {
        ack_dscp: Some(Dscp::try_from(18).unwrap()),
        cnp_dscp: Dscp::try_from(40).unwrap(),
        ..group::prompt()
    };
    let mut bench = edge(3, "2001:db8:3::1", policy);
    let cnps = bench.send(1, &cnp("2001:db8:b::1", 0));
    assert_eq!((class_of(&cnps[0].1), class_of(&cnps[0].1[40..])), (40 << 2, 40 << 2));
    assert_eq!(Dscp::try_from(64).unwrap_err().to_string(), "64 is no DSCP: they end with 63");

    let mut bench = root_with(policy);
    bench.send(0, &data(FIRST_PSN));
    bench.send(1, &with_class(response("2001:db8:4::1", FIRST_PSN, 0x1F), 26 << 2));
    let acks = bench.send(2, &with_class(response("2001:db8:5::1", FIRST_PSN, 0x1F), 26 << 2));
    assert_eq!((upstream(&acks), class_of(&acks[0].1)), (vec![(0x11, FIRST_PSN, 0x1F)], 18 << 2));
}

/// D2: one Proxy Address, one group; and a group can be left.
#[test]
fn a_proxy_address_belongs_to_one_group() {
    let mut bench = root();
    let other = GroupEntry { id: GroupId(8), ..tree().at(NodeIndex(0)).unwrap() };
    let error = bench.node.apply(Command::AddGroup(Box::new(other))).unwrap_err();
    assert_eq!(error.to_string(), "Proxy Address 2001:db8:ff::100 of group 8 already belongs to group 7");
    bench.apply(Command::RemoveGroup(GroupId(7)));
    assert_eq!(bench.node.groups().count(), 0);
    bench.send(0, &data(FIRST_PSN));
    assert_eq!(bench.drops(0), [("no_route", 1)]);
}

/// The headend sends an error to the source when its packets are too long for the tree (RFC 9524 section 2.2.3 allows
/// it).
#[test]
fn too_long_packets_are_reported_to_the_source() {
    let mut bench = root();
    let long = rocev2(SOURCE, DESIGNATED, 0x04, FIRST_PSN, true, &[1; 1400]);
    let sent = bench.send(0, &long);
    assert_eq!(sent.len(), 1);
    let error = &sent[0].1;
    assert_eq!((error[6], error[40], error[41]), (58, 2, 0));
    let overhead = tree().overhead().octets() as u32;
    assert_eq!(error[44..48], (1500 - overhead).to_be_bytes());
    assert_eq!(bench.drops(0), [("packet_too_big", 1)]);
}

/// Queues are limited; equal-cost routes are shared by flows, and a flow stays on one.
#[test]
fn queues_are_limited_and_flows_shared() {
    let mut bench = Bench::with(ROOT, 3, |config| config.ports[1].queue_limit_octets = 0);
    let prefix = Prefix::new(address("2001:db8:ff::"), 48).unwrap();
    let action = RouteAction::Via(vec![next_hop(1)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    assert_eq!(bench.send(0, &data(1)), vec![]);
    assert_eq!(bench.drops(0), [("queue_full", 1)]);

    let action = RouteAction::Via(vec![next_hop(0), next_hop(2)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    let mut shares = [0; 3];
    for qpn in 0..1000 {
        let port_of = |bench: &mut Bench, psn| {
            let sent = bench.send(0, &rocev2(SOURCE, qpn, 0x04, psn, true, &[1; 4]));
            sent[0].0
        };
        let port = port_of(&mut bench, 1);
        assert_eq!(port, port_of(&mut bench, 2), "queue pair {qpn} stays on its path");
        shares[usize::from(port)] += 1;
    }
    assert!(shares[0] > 400 && shares[2] > 400, "{shares:?}");
}

/// A SID that is added again is another one under the same name, its counters new.
#[test]
fn sids_are_replaced() {
    let mut bench = root();
    let prefix = Prefix::host(address("fd00::e"));
    let to_sid = {
        let mut packet = data(FIRST_PSN);
        packet[24..40].copy_from_slice(&address("fd00::e").octets());
        packet
    };
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac: false } });
    bench.send(0, &to_sid);
    assert_eq!(bench.drops(0), [("end_mt_no_segment", 1)]);
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(GroupId(7)) });
    assert_eq!(bench.node.sid_counters().map(|(_, traffic)| traffic.frames).collect::<Vec<_>>(), [0]);
    assert_eq!(bench.send(0, &to_sid).len(), 2);
    assert_eq!(bench.node.sid_counters().map(|(_, traffic)| traffic.frames).collect::<Vec<_>>(), [1]);
}

/// Refused commands name what was wrong.
#[test]
fn refused_commands_have_a_reason() {
    let mut bench = root();
    let mut refused = |command| -> String { Node::apply(&mut bench.node, command).unwrap_err().to_string() };
    let prefix = Prefix::new(address("2001:db8:77::"), 48).unwrap();
    let table = TableId(0);
    let none = RouteAction::Via(Vec::new());
    assert_eq!(refused(Command::AddRoute { table, prefix, action: none }), "route 2001:db8:77::/48 has no next hop");
    let beyond = RouteAction::Via(vec![next_hop(9)]);
    assert_eq!(refused(Command::AddRoute { table, prefix, action: beyond }), "port 9 does not exist, the node has 3");
    assert_eq!(refused(Command::RemoveRoute { table, prefix }), "there is no route 2001:db8:77::/48");
    assert_eq!(refused(Command::RemoveGroup(GroupId(3))), "group 3 is not known to this node");
}
