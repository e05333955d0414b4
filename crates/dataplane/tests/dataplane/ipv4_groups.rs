//! Groups of IPv4 hosts (D272 to D274): against scapy's packets (`scapy_13_ipv4_groups.pcap`), and against a model that
//! recomputes everything.

use crate::common::group::{self, BASE, EDGE, HEADEND, REGION, SID, address};
use crate::common::{Bench, golden, port_mac};
use proptest::prelude::*;
use srdma_capture::Reader;
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_group::*;
use srdma_testkit::ipv4_groups as model;
use srdma_testkit::{checksums, multicast};
use srdma_wire::{MacAddress, PathMtu, Prefix};
use std::fs::File;
use std::io::BufReader;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

const SOURCE: &str = "10.1.0.1";
const PROXY: &str = "10.255.0.100";
const RECEIVERS: [(&str, u32); 2] = [("10.2.0.1", 0x111), ("10.2.0.2", 0x222)];

/// The frames of the capture.
const WRITE: usize = 0;
const TUNNELLED: usize = 2;
const COPIES: [usize; 2] = [3, 4];
const SEND: usize = 5;
const SEND_COPY: usize = 7;
const ACKS: [usize; 2] = [8, 9];
const ACK_TO_SOURCE: usize = 10;
const WRITE_TO_REGION: usize = 12;

fn captured() -> Vec<Vec<u8>> {
    golden("scapy_13_ipv4_groups.pcap")
}

fn mapped(text: &str) -> Ipv6Addr {
    text.parse::<Ipv4Addr>().unwrap().to_ipv6_mapped()
}

fn receivers() -> Vec<multicast::Receiver> {
    let receiver = |(address, qpn): (&str, u32)| multicast::Receiver {
        address: mapped(address),
        qpn,
        region: None,
        psn_offset: 0,
    };
    RECEIVERS.map(receiver).to_vec()
}

/// N6 above N1, which has the receivers.
fn record(receivers: &[multicast::Receiver]) -> Record {
    let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0))];
    let receivers = receivers.iter().map(|receiver| group::member(receiver, 1)).collect();
    let record = group::record(&nodes, receivers);
    let source = Source { address: mapped(SOURCE), ..record.source };
    Record { proxy: mapped(PROXY), source, path_mtu: PathMtu::Octets4096, ..record }
}

fn neighbour(bench: &mut Bench, port: u16, text: &str) {
    let next_hop = NextHop { port: PortId(port), address: mapped(text) };
    bench.apply(Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, port as u8]) });
}

fn add(bench: &mut Bench, record: Record, node: usize) {
    let group = Group::new(record).unwrap();
    bench.apply(Command::AddGroup(Box::new(group.at(NodeIndex(node)).unwrap())));
}

/// N1: its parent at port 0, its receivers at port 1.
fn edge_of(record: Record, change: impl FnOnce(&mut NodeConfig)) -> Bench {
    let mut bench = Bench::with(EDGE, 2, change);
    let prefix = Prefix::host(address(SID));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac: false } });
    for receiver in &record.receivers {
        neighbour(&mut bench, 1, &receiver.address.to_ipv4_mapped().unwrap().to_string());
    }
    bench.route("2001:db8:6::/48", 0);
    add(&mut bench, record, 1);
    bench
}

fn edge() -> Bench {
    edge_of(record(&receivers()), |config| config.verify_icrc = true)
}

/// N6: the source at port 0, which has an IPv4 address, N1 at port 1.
fn headend_of(record: Record) -> Bench {
    let mut bench = Bench::with(HEADEND, 2, |config| {
        config.ports[0].addresses = vec![mapped("10.1.0.254")];
        config.ports[1].addresses = vec![address("2001:db8:6::61")];
    });
    neighbour(&mut bench, 0, SOURCE);
    bench.route("5f00:0:1::/48", 1);
    bench.route("2001:db8:a::/48", 1);
    add(&mut bench, record, 0);
    bench
}

fn headend() -> Bench {
    headend_of(record(&receivers()))
}

/// The flow label is the headend's affair.
fn without_flow_label(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] &= 0xF0;
    packet[2..4].fill(0);
    packet
}

fn only_drop(bench: &Bench, port: u16) -> &'static str {
    let drops = bench.drops(port);
    assert!(matches!(&drops[..], [(_, 1)]), "{drops:?}");
    drops[0].0
}

/// D272, D273: in outer headers whose list and Segment List have IPv4-mapped addresses, and translated.
#[test]
fn the_headend_translates_and_encapsulates() {
    let packets = captured();
    let sent = headend().send(0, &packets[WRITE]);
    let expected = without_flow_label(packets[TUNNELLED].clone());
    assert_eq!(sent.into_iter().map(|(port, it)| (port, without_flow_label(it))).collect::<Vec<_>>(), [(1, expected)]);
}

/// D272: the copies are IPv4 packets, of the Proxy Address, two hops less.
#[test]
fn the_edge_sends_ipv4() {
    let packets = captured();
    let expected: Vec<_> = COPIES.map(|copy| (1, packets[copy].clone())).to_vec();
    assert_eq!(edge().send(0, &packets[TUNNELLED]), expected);
}

/// From the source's packet to the receivers', through both nodes: with a UDP checksum, and to another region (D27).
#[test]
fn packets_pass_both_nodes() {
    let packets = captured();
    let through = |record: &Record, packet: usize| {
        let tunnelled = headend_of(record.clone()).send(0, &packets[packet]).remove(0).1;
        edge_of(record.clone(), |config| config.verify_icrc = true).send(0, &tunnelled).remove(0).1
    };
    let mut record = record(&receivers());
    assert_eq!(through(&record, SEND), packets[SEND_COPY]);
    record.region = Some(SourceRegion { base: 0x7F00_1122_0000, length: 1 << 20, rkey: 0x1234 });
    for (receiver, rkey) in record.receivers.iter_mut().zip(0x9001..) {
        receiver.region = Some(ReceiverRegion { base: 0x7E00_0000_0000, rkey });
    }
    assert_eq!(through(&record, WRITE), packets[WRITE_TO_REGION]);
}

/// D12, D272: ACKs of receivers come in IPv4, go up in IPv6 in the node's own name, and reach the source in IPv4.
#[test]
fn responses_go_up_in_ipv6_and_reach_the_source_in_ipv4() {
    let packets = captured();
    let (mut at_edge, mut at_root) = (edge(), headend());
    at_root.send(0, &packets[WRITE]);
    at_edge.send(0, &packets[TUNNELLED]);
    assert_eq!(at_edge.send(1, &packets[ACKS[0]]), []);
    let up = at_edge.send(1, &packets[ACKS[1]]);
    let [(0, response)] = &up[..] else { panic!("{up:?}") };
    assert_eq!(response[8..24], address(EDGE).octets());
    assert_eq!(response[24..40], mapped(PROXY).octets());
    assert_eq!(response[response.len() - 4..], checksums::icrc(&response[..response.len() - 4]));
    assert_eq!(at_root.send(1, response), [(0, packets[ACK_TO_SOURCE].clone())]);
}

/// D17, D272: an edge without a record learns the group from the list, whose addresses are IPv4-mapped. A list of both
/// versions is refused, as a record is (D273).
#[test]
fn an_edge_learns_a_group_of_ipv4() {
    let packets = captured();
    let learns = || {
        let mut bench = Bench::with(EDGE, 2, |config| config.verify_icrc = true);
        let prefix = Prefix::host(address(SID));
        bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndMt { require_hmac: false } });
        for (receiver, _) in RECEIVERS {
            neighbour(&mut bench, 1, receiver);
        }
        bench.route("2001:db8:6::/48", 0);
        bench.apply(Command::SetLearning(Learning {
            proxies: vec![Prefix::of_ipv4(Ipv4Addr::new(10, 255, 0, 0), 24).unwrap()],
            parent: address(HEADEND),
            parent_sid: None,
            policy: Policy::default(),
            max_groups: 1,
            max_receivers: 2,
            idle_ns: 1_000_000_000,
        }));
        bench
    };
    let (mut at_edge, mut at_root) = (learns(), headend());
    at_root.send(0, &packets[WRITE]);
    let expected: Vec<_> = COPIES.map(|copy| (1, packets[copy].clone())).to_vec();
    assert_eq!(at_edge.send(0, &packets[TUNNELLED]), expected);
    assert_eq!(at_edge.node.groups().collect::<Vec<_>>(), [FIRST_LEARNT_GROUP]);
    assert_eq!(at_edge.send(1, &packets[ACKS[0]]), []);
    let up = at_edge.send(1, &packets[ACKS[1]]);
    let [(0, response)] = &up[..] else { panic!("{up:?}") };
    assert_eq!(at_root.send(1, response), [(0, packets[ACK_TO_SOURCE].clone())]);

    let mut mixed = packets[TUNNELLED].clone();
    let receiver = mapped(RECEIVERS[1].0).octets();
    let at = mixed.windows(16).position(|octets| octets == receiver).expect("it is in the list");
    mixed[at..at + 16].copy_from_slice(&address("2001:db8:2::2").octets());
    let mut bench = learns();
    assert_eq!(bench.send(0, &mixed), []);
    assert_eq!(only_drop(&bench, 0), "bad_receiver");
    assert_eq!(bench.node.groups().count(), 0);
}

/// D29: so does a CNP.
#[test]
fn a_cnp_reaches_the_source_in_ipv4() {
    let (mut at_edge, mut at_root) = (edge(), headend());
    let cnp = srdma_testkit::packets::cnp(mapped(RECEIVERS[0].0), mapped(PROXY), 0xABCD);
    let up = at_edge.send(1, &model::in_ipv4(&cnp));
    let to_source = at_root.send(1, &up[0].1);
    let [(0, cnp)] = &to_source[..] else { panic!("{to_source:?}") };
    assert_eq!((cnp[0], cnp[28]), (0x45, 0x81));
    assert_eq!((&cnp[12..16], &cnp[16..20]), (&[10, 255, 0, 100][..], &[10, 1, 0, 1][..]));
    assert_eq!(model::sealed(cnp.clone()), *cnp);
}

/// The source's request that a group cannot carry is refused in IPv4 (D26).
#[test]
fn a_read_is_refused_in_ipv4() {
    let mut bench = headend();
    let mut read = model::in_ipv4(&group::inner(0x0A, 0, &[], false));
    read[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 255, 0, 100]);
    read[28] = 0x0C;
    let sent = bench.send(0, &model::sealed(read));
    let [(0, nak)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((nak[0], nak[28], nak[40]), (0x45, 0x11, 0x61));
    assert_eq!(model::sealed(nak.clone()), *nak);
    assert_eq!(only_drop(&bench, 0), "not_multicastable");
}

/// D150: what the edge sends again is IPv4 too.
#[test]
fn repaired_packets_are_ipv4() {
    let mut record = record(&receivers());
    record.policy.repair.mode = RepairMode::Tree;
    let group = Group::new(record.clone()).unwrap();
    let mut entry = group.at(NodeIndex(1)).unwrap();
    entry.repair = Some(RepairEntry { window_packets: 64, parent_repairs: false, children: Vec::new(), levels: 1 });
    let mut bench = edge_of(record, |_| ());
    bench.apply(Command::AddGroup(Box::new(entry)));
    let packets = captured();
    let mut give = |port: u16, packet: &[u8]| {
        let frame = [&port_mac(port).0[..], &[2, 0, 0, 0, 1, port as u8], &crate::common::ethertype(packet), packet];
        let frame = Frame::from_octets(&frame.concat(), &mut bench.pool).unwrap();
        bench.now += Duration::from_micros(1);
        bench.node.receive(bench.now, PortId(port), &mut vec![frame], &mut bench.pool);
        std::iter::from_fn(|| bench.give_out(PortId(1))).map(|frame| frame[14..].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(give(0, &packets[TUNNELLED]), COPIES.map(|copy| packets[copy].clone()));
    let mut nak = packets[ACKS[0]].clone();
    nak[40] = 0x60;
    assert_eq!(give(1, &model::sealed(nak)), [packets[COPIES[0]].clone()]);
}

/// D272, D274: what is not translated, and what is no packet of the group.
#[test]
fn refusals_have_names() {
    let packets = captured();
    let refused = |changes: &[(usize, u8)]| {
        let mut packet = packets[WRITE].clone();
        changes.iter().for_each(|(at, octet)| packet[*at] = *octet);
        let checksum = model::header_checksum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        let mut bench = headend();
        assert_eq!(bench.send(0, &packet), []);
        only_drop(&bench, 0)
    };
    assert_eq!(refused(&[(6, 0x20)]), "not_rocev2");
    assert_eq!(refused(&[(7, 1)]), "not_rocev2");
    assert_eq!(refused(&[(9, 6)]), "not_rocev2");
    assert_eq!(refused(&[(23, 0xB8)]), "not_rocev2");
    // A host that is not in the group, behind the same port.
    assert_eq!(refused(&[(15, 9)]), "unexpected_responder");
    // Four octets of the UDP header as an option: a header of 24 octets, whose checksum the model does not have.
    let mut options = packets[WRITE].clone();
    options.splice(20..20, [1; 4]);
    options[0] = 0x46;
    let octets = options.len() as u16;
    options[2..4].copy_from_slice(&octets.to_be_bytes());
    options[10..12].fill(0);
    let sum: u32 = options[..24].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    options[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut bench = headend();
    assert_eq!(bench.send(0, &options), []);
    assert_eq!(only_drop(&bench, 0), "extension_headers");
}

/// D274: what comes in IPv6 on a link is no IPv4 host's, neither a request nor a response.
#[test]
fn ipv6_packets_with_mapped_sources_are_refused() {
    let packets = captured();
    let mut bench = headend();
    assert_eq!(bench.send(0, &model::in_ipv6(&packets[WRITE])), []);
    assert_eq!(only_drop(&bench, 0), "bad_source");
    let mut bench = edge();
    bench.send(0, &packets[TUNNELLED]);
    assert_eq!(bench.send(1, &model::in_ipv6(&packets[ACKS[0]])), []);
    assert_eq!(only_drop(&bench, 1), "bad_source");
}

/// D274: a port with classes puts copies and responses in that of their Type of Service, and marks them there.
#[test]
fn ports_with_classes_mark_copies() {
    let packets = captured();
    let mut bench = edge();
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].marking = Some(Marking { k_min_octets: 0, k_max_octets: 0, p_max: 1.0 });
    bench.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    // ECT(0) becomes CE, which the ICRC does not cover.
    let marked = COPIES.map(|copy| {
        let mut copy = packets[copy].clone();
        copy[1] = 3;
        (1, model::sealed(copy))
    });
    let sent = bench.send(0, &packets[TUNNELLED]);
    // The first one meets an empty queue.
    assert_eq!(sent, [(1, packets[COPIES[0]].clone()), marked[1].clone()]);
    let classes: Vec<u64> =
        (0..8).map(|class| bench.node.class_counters(PortId(1), class).unwrap().sent.frames).collect();
    assert_eq!(classes, [2, 0, 0, 0, 0, 0, 0, 0]);
}

/// D259, D274: errors about a source's packets are ICMPv4.
#[test]
fn the_source_gets_icmpv4_errors() {
    let packets = captured();
    let error = |bench: &mut Bench, packet: &[u8]| {
        let sent = bench.send(0, packet);
        let [(0, error)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(
            (error[0], error[9], &error[12..16], &error[16..20]),
            (0x45, 1, &[10, 1, 0, 254][..], &[10, 1, 0, 1][..])
        );
        (error[20], error[21], u16::from_be_bytes([error[26], error[27]]))
    };
    let mut last_hop = packets[WRITE].clone();
    last_hop[8] = 1;
    assert_eq!(error(&mut headend(), &model::sealed(last_hop)), (11, 0, 0));
    // Outer header, SRH and two receivers in a TLV of 64 octets; the translation is longer by 20.
    let long = model::in_ipv4(&group::inner(0x00, 0, &[1; 4096], false));
    let mut long = [&long[..12], &[10, 1, 0, 1, 10, 255, 0, 100], &long[20..]].concat();
    long.resize(4600, 0);
    long[2..4].copy_from_slice(&4600u16.to_be_bytes());
    long[24..26].copy_from_slice(&4580u16.to_be_bytes());
    assert_eq!(error(&mut headend(), &model::sealed(long)), (3, 4, 4608 - 40 - 24 - 64 - 20));
}

/// D36, D274: at a border no host sends from a Proxy Address; the group's packets pass.
#[test]
fn borders_admit_packets_of_groups() {
    let packets = captured();
    let bordered = |mut bench: Bench, port: u16| {
        bench.apply(Command::SetDomain(Domain {
            sids: vec![crate::common::prefix("5f00::/16")],
            infrastructure: ["2001:db8:6::/48", "2001:db8:a::/48"].map(crate::common::prefix).to_vec(),
            proxies: vec![Prefix::of_ipv4(Ipv4Addr::new(10, 255, 0, 0), 16).unwrap()],
        }));
        bench.apply(Command::SetBorder { port: PortId(port), sources: Vec::new() });
        bench
    };
    let mut root = bordered(headend(), 0);
    assert_eq!(root.send(0, &packets[WRITE]).len(), 1);
    let mut forged = packets[WRITE].clone();
    forged[12..16].copy_from_slice(&[10, 255, 0, 100]);
    assert_eq!(root.send(0, &model::sealed(forged)), []);
    assert_eq!(only_drop(&root, 0), "forged_source");
    let mut edge = bordered(edge(), 1);
    assert_eq!(edge.send(0, &packets[TUNNELLED]).len(), 2);
    edge.send(1, &packets[ACKS[0]]);
    assert_eq!(edge.send(1, &packets[ACKS[1]]).len(), 1);
    assert_eq!(edge.drops(1), []);
}

/// D273: members of the other family are refused, in entries too.
#[test]
fn an_entry_has_one_family() {
    let group = Group::new(record(&receivers())).unwrap();
    let refused = |node: usize, change: &dyn Fn(&mut GroupEntry)| {
        let mut bench = Bench::new(HEADEND, 2);
        let mut entry = group.at(NodeIndex(node)).unwrap();
        change(&mut entry);
        bench.node.apply(Command::AddGroup(Box::new(entry))).unwrap_err().to_string()
    };
    let other = address("2001:db8:2::1");
    let texts = [
        refused(0, &|entry| entry.parent = Parent::Source(Source { address: other, qpn: entry.designated_qpn })),
        refused(0, &|entry| entry.headend.as_mut().unwrap().lists[0].receivers[1].address = other),
        refused(1, &|entry| entry.receivers[0].address = other),
    ];
    for text in texts {
        let expected = "group 1: mixed address families: 2001:db8:2::1 and Proxy Address 10.255.0.100 are not both";
        assert!(text.starts_with(expected), "{text}");
    }
}

/// A member that is no neighbour is behind an IPv4 route; a group that has ended leaves nothing behind.
#[test]
fn the_proxy_address_goes_with_its_group() {
    let packets = captured();
    let mut bench = headend();
    bench.apply(Command::RemoveGroup(GroupId(1)));
    assert_eq!(bench.send(0, &packets[WRITE]).len(), 1, "network unreachable");
    assert_eq!(only_drop(&bench, 0), "no_route");
    let mut up = group::response(0x11, EDGE, 100, &[0x1F, 0, 0, 1]);
    up[24..40].copy_from_slice(&mapped(PROXY).octets());
    bench.send(1, &up);
    assert_eq!(only_drop(&bench, 1), "no_route");
}

/// The REQ of a soft-RoCE host (`testdata/cm/rxe_ipv4.pcap`), from one of these hosts to the Proxy Address, with a time
/// to live.
fn cm_request(source: &str, ttl: u8) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cm/rxe_ipv4.pcap");
    let mut reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut packet = reader.next().unwrap().unwrap().octets[14..].to_vec();
    assert!(packet.len() == 308 && packet[4..6] != [0, 0], "numbered, as Linux does it");
    packet[8] = ttl;
    packet[12..16].copy_from_slice(&source.parse::<Ipv4Addr>().unwrap().octets());
    packet[16..20].copy_from_slice(&PROXY.parse::<Ipv4Addr>().unwrap().octets());
    model::sealed(packet)
}

/// D292: connection management goes to the host that answers it, as an atomic datagram, from the source and from
/// receivers; without a host, or a route to it, it is dropped.
#[test]
fn connection_management_goes_to_its_host() {
    let host = "10.0.0.1";
    let forwarded = |packet: &[u8]| {
        let mut packet = packet.to_vec();
        packet[4..6].fill(0);
        packet[8] -= 1;
        model::sealed(packet)
    };
    let with = |cm_host: Option<&str>, is_reachable: bool| {
        let mut bench = Bench::with(HEADEND, 3, |config| {
            config.ports[0].addresses = vec![mapped("10.1.0.254")];
            config.cm_host = Some(address("2001:db8:c::1"));
            config.cm_host_ipv4 = cm_host.map(mapped);
        });
        neighbour(&mut bench, 0, SOURCE);
        bench.route("5f00:0:1::/48", 1);
        bench.route("2001:db8:c::/48", 1);
        if is_reachable {
            neighbour(&mut bench, 2, host);
        }
        add(&mut bench, record(&receivers()), 0);
        bench
    };
    let mut bench = with(Some(host), true);
    for (port, source) in [(0, SOURCE), (1, RECEIVERS[0].0)] {
        let packet = cm_request(source, 63);
        assert_eq!(bench.send(port, &packet), [(2, forwarded(&packet))], "{source}");
    }
    assert_eq!(bench.send(0, &captured()[WRITE]).len(), 1, "data go down");
    let mut damaged = cm_request(SOURCE, 63);
    damaged[100] ^= 1;
    let sent = bench.send(0, &damaged);
    assert_ne!(sent[0].1, model::sealed(sent[0].1.clone()), "damage stays damage");

    let mut without_host = with(None, true);
    assert_eq!(without_host.send(0, &cm_request(SOURCE, 63)), []);
    assert_eq!(only_drop(&without_host, 0), "not_rocev2");
    let mut without_route = with(Some(host), false);
    without_route.send(0, &cm_request(SOURCE, 63));
    assert_eq!(only_drop(&without_route, 0), "no_route");
    let mut last = with(Some(host), true);
    last.send(0, &cm_request(SOURCE, 1));
    assert_eq!(only_drop(&last, 0), "hop_limit_exceeded");
}

fn any_receivers() -> impl Strategy<Value = Vec<multicast::Receiver>> {
    let psn_offset = prop_oneof![Just(0), 0u32..1 << 24];
    prop::collection::vec((2u32..1 << 24, any::<u32>(), 0u64..1 << 47, psn_offset), 1..9).prop_map(|entries| {
        let receiver = |(host, (qpn, rkey, base, psn_offset)): (u8, (u32, u32, u64, u32))| multicast::Receiver {
            address: Ipv4Addr::new(10, 2, 0, host).to_ipv6_mapped(),
            qpn,
            region: Some((base, rkey)),
            psn_offset,
        };
        (1..).zip(entries).map(receiver).collect()
    })
}

/// A request of the source, with any Type of Service, Identification and flag DF.
fn request(opcode: u8, offset: u64, payload: &[u8], with_checksum: bool, (tos, id): (u8, u16)) -> Vec<u8> {
    let mut packet = model::in_ipv4(&group::inner(opcode, offset, payload, with_checksum));
    packet[1] = tos;
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[6] = if id.is_multiple_of(2) { 0x40 } else { 0 };
    packet[12..20].copy_from_slice(&[10, 1, 0, 1, 10, 255, 0, 100]);
    model::sealed(packet)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Through headend and edge, the copies are what full recomputation gives: header checksum, ICRC over IPv4 and UDP
    /// checksum, with the RETH moved and PSNs of their own (D10, D27, D270, D272).
    #[test]
    fn copies_are_the_models(
        receivers in any_receivers(),
        opcode in 0u8..12,
        offset in 0u64..1 << 19,
        len in prop_oneof![0usize..64, 0usize..4097],
        with_checksum in any::<bool>(),
        recompute in any::<bool>(),
        tos in 0u8..=255,
        id in any::<u16>(),
    ) {
        let payload: Vec<u8> = (0..len).map(|index| (index * 31) as u8).collect();
        let packet = request(opcode, offset, &payload, with_checksum, (tos, id));
        let mut record = record(&receivers);
        record.region = Some(REGION);
        record.policy.lists = ListMode::Provisioned;
        let sent = headend_of(record.clone()).send(0, &packet);
        prop_assert_eq!(sent.len(), 1);
        let mut translated = model::in_ipv6(&packet);
        translated[7] -= 1;
        prop_assert_eq!(&sent[0].1[40 + 24..], &translated);
        let mut edge = edge_of(record, |config| {
            config.verify_icrc = true;
            if recompute {
                config.icrc = IcrcMode::Recompute;
            }
        });
        let copies = receivers.iter().map(|receiver| (1, model::copy_for(&translated, receiver, BASE)));
        prop_assert_eq!(edge.send(0, &sent[0].1), copies.collect::<Vec<_>>());
    }

    /// The same where the ICRC begins in one chunk of the frame and ends in the next.
    #[test]
    fn an_icrc_in_two_chunks_is_translated(receivers in any_receivers(), len in 3760usize..3800) {
        let packet = request(0x04, 0, &vec![7; len], false, (0, 0));
        let mut record = record(&receivers);
        record.policy.lists = ListMode::Provisioned;
        let sent = headend_of(record.clone()).send(0, &packet);
        let mut translated = model::in_ipv6(&packet);
        translated[7] -= 1;
        prop_assert_eq!(sent.len(), 1);
        prop_assert_eq!(&sent[0].1[40 + 24..], &translated);
        let copies = receivers.iter().map(|receiver| (1, model::copy_for(&translated, receiver, BASE)));
        prop_assert_eq!(edge_of(record, |_| ()).send(0, &sent[0].1), copies.collect::<Vec<_>>());
    }

    /// D10: damage on the way is not repaired, whichever translation it meets.
    #[test]
    fn damage_is_not_repaired(receivers in any_receivers(), at in 40usize..1000, bit in 0u8..8) {
        let mut packet = request(0x04, 0, &[9; 1000], false, (0, 0));
        packet[at] ^= 1 << bit;
        let record = record(&receivers);
        let sent = headend_of(record.clone()).send(0, &packet);
        let copies = edge_of(record, |_| ()).send(0, &sent[0].1);
        prop_assert_eq!(copies.len(), receivers.len());
        for (_, copy) in copies {
            prop_assert_eq!(model::header_checksum(&copy).to_be_bytes(), [copy[10], copy[11]]);
            let end = copy.len() - 4;
            prop_assert_ne!(&model::icrc(&copy[..end])[..], &copy[end..]);
        }
    }
}
