//! Traces of a group's paths (D242): the edge sends that of the link to a receiver with most load, nodes above add
//! theirs and send on that of the path with most load, and the source gets it as a receiver would return one.

use crate::common::Bench;
use crate::common::group::{self, EDGE, HEADEND, PROXY, SID, SOURCE, member, receiver};
use crate::fast_cnp::packets::*;
use srdma_dataplane::*;
use srdma_frame::PortId;
use srdma_group::{Group, ListMode, NodeIndex, Policy, Record};
use srdma_testkit::checksums;
use srdma_wire::fast_cnp::{FastCnp, OptionTypes};
use srdma_wire::ioam::{LinkLoad, Trace};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, Prefix};
use std::net::Ipv6Addr;
use std::time::Duration;

const OTHER_EDGE: &str = "2001:db8:b::1";
const OTHER_SID: &str = "5f00:0:2:e000::";
const DESIGNATED: u32 = 0xABCD;
const INTERVAL: Duration = Duration::from_micros(5);

/// The root with two edges: receivers 1 and 2 below the first one, 3 below the other.
fn group() -> Group {
    let nodes =
        [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", EDGE, SID, Some(0)), ("N2", OTHER_EDGE, OTHER_SID, Some(0))];
    let members = [(1, 1), (2, 1), (3, 2)].map(|(host, edge)| member(&receiver(host, 0x111, None), edge)).to_vec();
    let policy = Policy { lists: ListMode::Provisioned, ..Policy::default() };
    Group::new(Record { policy, ..group::record(&nodes, members) }).unwrap()
}

fn ioam(node_id: u32, group_interval: Option<Duration>) -> Command {
    let interface = |port| IoamInterface { port: PortId(port), id: Some(port), id_wide: None, fills: true };
    let namespace = IoamNamespace { id: 1, data: None, data_wide: Some(WideData::LinkLoad), opaque: None };
    Command::SetIoam(Box::new(IoamConfig {
        node_id: Some(node_id),
        namespaces: vec![namespace],
        interfaces: (0..3).map(interface).collect(),
        timestamps: TimestampFormat::Ptp,
        group_interval,
        ..IoamConfig::default()
    }))
}

/// An edge: the root behind port 0, receivers 1 and 3 behind port 1, receiver 2 behind port 2.
fn edge(loopback: &str, sid: &str, index: usize) -> Bench {
    let mut bench = Bench::new(loopback, 3);
    let behavior = SidBehavior::EndMt { require_hmac: false };
    bench.apply(Command::AddSid { prefix: Prefix::host(address(sid)), behavior });
    for (prefix, port) in [("::/0", 0), ("2001:db8:2::1", 1), ("2001:db8:2::2", 2), ("2001:db8:2::3", 1)] {
        bench.route(prefix, port);
    }
    bench.apply(Command::AddGroup(Box::new(group().at(NodeIndex(index)).unwrap())));
    bench.apply(ioam(index as u32, Some(INTERVAL)));
    bench
}

/// The root: the source behind port 0, one edge behind port 1, the other behind port 2.
fn root() -> Bench {
    let mut bench = Bench::new(HEADEND, 3);
    for (prefix, port) in [("::/0", 1), (SOURCE, 0), (OTHER_EDGE, 2), (OTHER_SID, 2)] {
        bench.route(prefix, port);
    }
    bench.apply(Command::AddGroup(Box::new(group().at(NodeIndex(0)).unwrap())));
    bench.apply(ioam(6, Some(INTERVAL)));
    turn_on(&mut bench, config());
    bench
}

fn at(us: u64) -> Instant {
    Instant::from_ns(1_000_000 + us * 1000)
}

/// What goes upstream with a trace after an ACK of a receiver.
fn acknowledged(edge: &mut Bench, us: u64, host: u16) -> Vec<Vec<u8>> {
    edge.now = at(us);
    let (from, port) = (format!("2001:db8:2::{host}"), if host == 2 { 2 } else { 1 });
    let sent = edge.send(port, &group::response(0x11, &from, 100, &[0x1F, 0, 0, 1]));
    sent.into_iter().filter(|(port, packet)| (*port, packet[6]) == (0, 60)).map(|(_, packet)| packet).collect()
}

/// So many frames of 1,500 octets leave by the port of a receiver.
fn load(bench: &mut Bench, host: u16, frames: usize) {
    let packet = data(SENDER, &format!("2001:db8:2::{host}"), 5);
    let packet = [&packet[..4], &1446_u16.to_be_bytes(), &packet[6..], &vec![0; 1486 - packet.len()]].concat();
    for _ in 0..frames {
        assert_eq!(bench.send(0, &packet)[0].1.len(), 1486);
    }
}

/// An edge's trace for the root, of a link of which 4 % per frame is in use.
fn trace_of(mut edge: Bench, host: u16, frames: usize) -> Vec<u8> {
    assert_eq!(acknowledged(&mut edge, 0, host).len(), 1);
    load(&mut edge, host, frames);
    acknowledged(&mut edge, 5, host).remove(0)
}

/// Node, interface, time in µs and octets sent of each sample, as they are read.
fn samples(packet: &[u8]) -> Vec<(u32, u16, u32, u64)> {
    let packet = Packet::parse(packet, packet.len()).unwrap();
    let fast_cnp = FastCnp::find(&packet, OptionTypes::default()).unwrap().unwrap();
    assert_eq!(fast_cnp.original_destination, address(PROXY));
    let sample = |node: srdma_wire::ioam::NodeData<'_>| {
        let load = LinkLoad::from_data(node.namespace_data_wide.unwrap());
        assert_eq!((load.rate_mbit_per_s, node.queue_depth), (100_000, Some(0)));
        let us = node.timestamp_fraction.unwrap() / 1000 - 1000;
        (node.node_id.unwrap(), node.egress.unwrap(), us, load.sent_octets)
    };
    Trace::parse(fast_cnp.trace.unwrap()).unwrap().nodes().map(|node| sample(node.unwrap())).collect()
}

/// Source, destination, queue pair, and the payload of a CNP, whose ICRC is checked without its options (D43).
fn read(packet: &[u8]) -> (Ipv6Addr, Ipv6Addr, u32, [u8; 16]) {
    let options_len = 8 * (usize::from(packet[41]) + 1);
    let mut standard = [&packet[..40], &packet[40 + options_len..]].concat();
    let payload_len = (standard.len() - 40) as u16;
    standard[4..6].copy_from_slice(&payload_len.to_be_bytes());
    standard[6] = 17;
    let end = standard.len() - 4;
    assert_eq!(checksums::icrc(&standard[..end])[..], standard[end..]);
    let at = |start: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&standard[start..start + 16]).unwrap());
    let qpn = u32::from_be_bytes([0, standard[53], standard[54], standard[55]]);
    (at(8), at(24), qpn, standard[60..76].try_into().unwrap())
}

/// By hand: 40 frames of 1,500 octets are 0.96 of what 100 Gbit/s send in 5 µs.
#[test]
fn an_edge_sends_the_trace_of_the_most_loaded_link_once_in_an_interval() {
    let mut edge = edge(EDGE, SID, 1);
    let first = acknowledged(&mut edge, 0, 1);
    assert_eq!(first.iter().map(|packet| samples(packet).len()).collect::<Vec<_>>(), [1], "nothing to compare with");
    load(&mut edge, 1, 10);
    load(&mut edge, 2, 40);
    assert_eq!(acknowledged(&mut edge, 4, 1), Vec::<Vec<u8>>::new(), "within the interval");
    let upward = acknowledged(&mut edge, 5, 1);
    let [packet] = &upward[..] else { panic!("{upward:?}") };
    let (source, destination, qpn, payload) = read(packet);
    assert_eq!((source, destination, qpn), (address(EDGE), address(PROXY), DESIGNATED));
    assert_eq!(payload[..8], [0, 0, 0, 0, 0, 0, 0x03, 0xC0], "no CNP; a load of 960");
    // Of the link to receiver 2, although it was receiver 1 that responded; the earlier sample is read first.
    assert_eq!(samples(packet), [(1, 2, 0, 0), (1, 2, 5, 60_000)]);
    let counters = edge.node.group_counters(srdma_group::GroupId(1)).unwrap();
    assert_eq!((counters.cnps_received, counters.cnps_sent), (0, 0));
    edge.apply(ioam(1, None));
    assert_eq!(acknowledged(&mut edge, 20, 1), Vec::<Vec<u8>>::new(), "off");
}

#[test]
fn the_source_gets_the_trace_of_the_whole_path() {
    let mut root = root();
    root.now = at(6);
    let sent = root.send(1, &trace_of(edge(EDGE, SID, 1), 2, 40));
    let [(0, packet)] = &sent[..] else { panic!("{sent:?}, {:?}", root.drops(1)) };
    assert_eq!(read(packet), (address(PROXY), address(SOURCE), DESIGNATED, [0; 16]));
    let of_edge = [(1, 2, 0, 0), (1, 2, 5, 60_000)];
    assert_eq!(samples(packet), [&[(6, 1, 6, 0)][..], &of_edge].concat());
    // Once more: the root has something to compare with, too.
    root.now = at(11);
    let sent = root.send(1, &trace_of(edge(EDGE, SID, 1), 2, 40));
    assert_eq!(samples(&sent[0].1), [&[(6, 1, 6, 0), (6, 1, 11, 0)][..], &of_edge].concat());
    let counters = root.node.group_counters(srdma_group::GroupId(1)).unwrap();
    assert_eq!((counters.cnps_received, counters.cnps_sent), (0, 0));
}

/// The path with most load counts, be the load below the root or at the root's own link.
#[test]
fn of_two_paths_the_one_with_more_load_goes_upstream() {
    let mut root = root();
    let [one, other] = [trace_of(edge(EDGE, SID, 1), 2, 40), trace_of(edge(OTHER_EDGE, OTHER_SID, 2), 3, 30)];
    let send = |root: &mut Bench, us, port, packet: &[u8]| {
        root.now = at(us);
        root.send(port, packet).iter().map(|(_, packet)| samples(packet).last().unwrap().0).collect::<Vec<u32>>()
    };
    assert_eq!(send(&mut root, 6, 2, &other), [2], "the first one");
    assert_eq!(send(&mut root, 7, 1, &one), [1], "worse");
    assert_eq!(send(&mut root, 11, 2, &other), [0; 0], "not so bad");
    // The root's own link to the other edge is full meanwhile: 41 frames in 5 µs.
    root.route("2001:db8:2::3", 2);
    load(&mut root, 3, 41);
    assert_eq!(send(&mut root, 16, 2, &other), [2]);
    assert_eq!(send(&mut root, 17, 1, &one), [0; 0]);
    assert_eq!(send(&mut root, 27, 1, &one), [1], "the other is not heard any more");
}

#[test]
fn traces_that_do_not_go_on() {
    let good = trace_of(edge(EDGE, SID, 1), 2, 40);
    let mut damaged = good.clone();
    let end = damaged.len();
    damaged[end - 10] ^= 1;
    let mut of_other = good.clone();
    let address_at = good.windows(16).rposition(|octets| octets == address(PROXY).octets()).unwrap();
    of_other[address_at] ^= 1;
    let receives = |mut root: Bench, port, packet: &[u8], reason: &'static str| {
        root.now = at(6);
        assert_eq!(root.send(port, packet), []);
        let expected: &[(&str, u64)] = if reason.is_empty() { &[] } else { &[(reason, 1)] };
        assert_eq!(root.drops(port), expected);
        assert_eq!(root.node.group_counters(srdma_group::GroupId(1)).unwrap().cnps_received, 0, "{reason}");
    };
    receives(root(), 1, &damaged, "bad_icrc");
    receives(root(), 1, &of_other, "unexpected_responder");
    receives(root(), 2, &good, "unexpected_responder");
    let mut unknowing = root();
    turn_on(&mut unknowing, FastCnpConfig { capable: Vec::new(), ..config() });
    receives(unknowing, 1, &good, "");
    let mut off = root();
    off.apply(ioam(6, None));
    off.apply(Command::RemoveFastCnp);
    receives(off, 1, &good, "fast_cnp_returned_trace");
    let mut twice = root();
    twice.now = at(4);
    assert_eq!(twice.send(1, &good).len(), 1);
    receives(twice, 1, &good, "cnp_rate_limited");
}

/// An edge that is no neighbour of the root tunnels to it.
#[test]
fn a_trace_goes_to_the_parent_in_a_tunnel() {
    let mut nodes = group().record().tree.nodes().to_vec();
    nodes[1].parent_sid = Some(address("5f00:0:6:d6::"));
    let tree = srdma_group::Tree::new(nodes).unwrap();
    let tunnelled = Group::new(Record { tree, ..group().record().clone() }).unwrap();
    let mut edge = edge(EDGE, SID, 1);
    edge.apply(Command::AddGroup(Box::new(tunnelled.at(NodeIndex(1)).unwrap())));
    edge.now = at(0);
    let sent = edge.send(1, &group::response(0x11, "2001:db8:2::1", 100, &[0x1F, 0, 0, 1]));
    let [_, (0, outer)] = &sent[..] else { panic!("an ACK, and the trace: {sent:?}") };
    assert_eq!((outer[6], &outer[24..40]), (41, &address("5f00:0:6:d6::").octets()[..]));
    assert_eq!(usize::from(u16::from_be_bytes([outer[4], outer[5]])), outer.len() - 40);
    assert_eq!(read(&outer[40..]).0, address(EDGE));
}
