//! Packets that are cut instead of dropped where a class is full (D88): alone and within tunnels.

use crate::common;

use crate::common::{Bench, next_hop, port_mac};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_testkit::checksums;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

const OUT: PortId = PortId(1);

/// DSCP of trimmed packets, and its class.
const DSCP: u8 = 46;
const URGENT: u8 = 5;

fn bench() -> Bench {
    let mut bench = Bench::new("2001:db8:ff::1", 2);
    let prefix = Prefix::new("2001:db8:2::".parse().unwrap(), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(OUT.0)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    let mut map = ClassMap::default();
    map.set(DSCP, URGENT).unwrap();
    bench.apply(Command::SetClasses(map));
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].limit_octets = 1500;
    egress.trim_dscp = Some(DSCP);
    bench.apply(Command::SetEgress { port: OUT, egress: Box::new(egress) });
    bench
}

fn ipv6(traffic_class: u8, payload: usize, next_header: u8, hop_limit: u8) -> Vec<u8> {
    let mut octets = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0];
    octets.extend((payload as u16).to_be_bytes());
    octets.extend([next_header, hop_limit]);
    octets.extend("2001:db8:1::1".parse::<Ipv6Addr>().unwrap().octets());
    octets.extend("2001:db8:2::1".parse::<Ipv6Addr>().unwrap().octets());
    octets
}

/// UDP with a checksum or none, and a BTH: WRITE Middle, or an ACK, which has an AETH.
fn udp_bth(len: usize, checksum: u16, opcode: u8, flags: u8) -> Vec<u8> {
    let mut octets = vec![0xC0, 0, 0x12, 0xB7];
    octets.extend((len as u16).to_be_bytes());
    octets.extend(checksum.to_be_bytes());
    octets.extend([opcode, flags, 0xFF, 0xFF, 0, 0, 0x10, 1, 0x80, 0, 1, 2]);
    octets
}

const WRITE_MIDDLE: u8 = 0x07;
const ACKNOWLEDGE: u8 = 0x11;

/// A WRITE Middle of so many octets, three of them padding, with a good ICRC.
fn data(payload: usize, traffic_class: u8, hop_limit: u8) -> Vec<u8> {
    let mut octets = ipv6(traffic_class, 20 + payload + 4, 17, hop_limit);
    octets.extend(udp_bth(20 + payload + 4, 0xABCD, WRITE_MIDDLE, 0x30));
    octets.extend((0..payload).map(|place| place as u8));
    let icrc = checksums::icrc(&octets);
    octets.extend(icrc);
    octets
}

/// The trimmed packet: adjusted lengths, no padding, no UDP checksum, the complement of its ICRC.
fn trimmed(traffic_class: u8, hop_limit: u8) -> Vec<u8> {
    let mut octets = ipv6(DSCP << 2 | traffic_class & 3, 24, 17, hop_limit);
    octets.extend(udp_bth(24, 0, WRITE_MIDDLE, 0));
    let icrc = checksums::icrc(&octets);
    octets.extend(icrc.map(|octet| !octet));
    octets
}

fn framed(packet: &[u8]) -> Vec<u8> {
    [&port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD], packet].concat()
}

/// The packets sent of two, of which one fits the queue; cut in two segments as drivers do, and in one.
fn sent(packet: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for cut in [1000, 300] {
        let mut bench = bench();
        for _ in 0..2 {
            let frame = common::frame_in_two(&framed(packet), cut, &mut bench.pool);
            bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
        }
        let counters = bench.node.class_counters(OUT, 0).unwrap();
        assert_eq!((counters.trimmed, counters.full_drops), (1, 0));
        let sent: Vec<Vec<u8>> = bench.drain().into_iter().map(|(_, packet)| packet).collect();
        assert!(all.is_empty() || all == sent);
        all = sent;
    }
    all
}

/// The urgent class goes first.
#[test]
fn a_data_packet_is_cut_behind_its_headers() {
    assert_eq!(sent(&data(1024, 2, 64)), [trimmed(2, 63), data(1024, 2, 63)]);
}

/// Outer lengths and DSCPs go with the inner ones, behind an SRH as well.
#[test]
fn tunnels_are_trimmed_with_their_inner_packets() {
    let tunnel =
        |inner: &[u8], dscp: u8, hop_limit| [&ipv6(dscp << 2 | 1, inner.len(), 41, hop_limit)[..], inner].concat();
    assert_eq!(sent(&tunnel(&data(1024, 2, 9), 0, 64))[0], tunnel(&trimmed(2, 9), DSCP, 63));
    let srh = |inner: &[u8], dscp: u8, hop_limit| {
        let mut header = vec![41, 2, 4, 0, 0, 0, 0, 0];
        header.extend("2001:db8:2::1".parse::<Ipv6Addr>().unwrap().octets());
        [&ipv6(dscp << 2 | 1, inner.len() + 24, 43, hop_limit)[..], &header, inner].concat()
    };
    assert_eq!(sent(&srh(&data(1024, 2, 9), 0, 64))[0], srh(&trimmed(2, 9), DSCP, 63));
}

/// Acknowledgements, other protocols, data where the urgent class is full, and data at ports that do not trim.
#[test]
fn packets_that_cannot_be_trimmed_are_dropped() {
    let mut acknowledge = ipv6(0, 1000, 17, 64);
    acknowledge.extend(udp_bth(1000, 0, ACKNOWLEDGE, 0));
    acknowledge.resize(40 + 1000, 0);
    let other = [ipv6(0, 1000, 59, 64), vec![0; 1000]].concat();
    let drops = |packet: &[u8], change: &dyn Fn(&mut EgressConfig)| {
        let mut bench = bench();
        let mut egress = bench.node.egress_config(OUT).unwrap().clone();
        change(&mut egress);
        bench.apply(Command::SetEgress { port: OUT, egress: Box::new(egress) });
        for _ in 0..2 {
            let frame = Frame::from_octets(&framed(packet), &mut bench.pool).unwrap();
            bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
        }
        assert_eq!(bench.drain().len(), 1);
        bench.drops(0)
    };
    assert_eq!(drops(&acknowledge, &|_| ()), [("queue_full", 1)]);
    assert_eq!(drops(&other, &|_| ()), [("queue_full", 1)]);
    assert_eq!(drops(&data(1024, 0, 64), &|egress| egress.classes[5].limit_octets = 50), [("queue_full", 1)]);
    assert_eq!(drops(&data(1024, 0, 64), &|egress| egress.trim_dscp = None), [("queue_full", 1)]);
}
