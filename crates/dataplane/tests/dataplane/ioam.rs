//! IOAM traces (RFC 9197, RFC 9486) as three kernel routers filled them, one after the other: each link's capture goes
//! into a node configured like the router, whose output equals the next link's capture.

use crate::common;

use crate::common::{Bench, golden, next_hop};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_wire::ioam::{LinkLoad, NodeData, Trace, TraceHeader, TraceType};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::{Instant, Prefix};

const LINKS: [&str; 4] = ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"];

fn interface(port: u16, number: u32) -> IoamInterface {
    let id = Some(number as u16);
    IoamInterface { port: PortId(port), id, id_wide: Some(number), fills: true }
}

/// The configuration of router `number` (1–3); the kernel reports no buffer occupancy.
fn router(number: u32) -> IoamConfig {
    let wide = |port: u16| Some(number * 1000 + 1 + u32::from(port));
    let interfaces = [0, 1]
        .map(|port: u16| IoamInterface { id_wide: wide(port), ..interface(port, number * 10 + 1 + u32::from(port)) });
    let namespace =
        IoamNamespace { id: 123, data: None, data_wide: Some(WideData::Fixed(0xCAFE_0000_1111_2222)), opaque: None };
    IoamConfig {
        node_id: Some(number),
        namespaces: vec![namespace],
        interfaces: interfaces.into(),
        ..IoamConfig::default()
    }
}

fn bench(ioam: IoamConfig) -> Bench {
    let mut bench = Bench::new("fd00:ff::1", 2);
    let prefix = Prefix::new("fd00:d::".parse().unwrap(), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(1)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    bench.apply(Command::SetIoam(Box::new(ioam)));
    bench
}

/// The time that the router which sent this packet wrote to its trace, in microseconds.
fn written_at(packet: &[u8]) -> Option<Instant> {
    let trace = Trace::find(&packet[40..])?.ok()?;
    let newest = trace.nodes().next()?.ok()?;
    let us = u64::from(newest.timestamp_seconds?) * 1_000_000 + u64::from(newest.timestamp_fraction?);
    Some(Instant::from_ns(us * 1_000))
}

#[test]
fn traces_are_filled_as_by_the_kernel() {
    for (number, links) in (1..).zip(LINKS.windows(2)) {
        let mut bench = bench(router(number));
        let [before, after] = [links[0], links[1]].map(|link| golden(&format!("kernel_t17_ioam_{link}.pcap")));
        assert_eq!(before.len(), 6);
        for (frame, (packet, expected)) in before.into_iter().zip(after).enumerate() {
            bench.now = written_at(&expected).unwrap_or(bench.now);
            let sent = bench.send(0, &packet);
            assert_eq!(sent, [(1, expected)], "frame {} at router {number}", frame + 1);
        }
        let expected = match number {
            3 => IoamCounters { written: 4, overflown: 1, malformed: 0 },
            _ => IoamCounters { written: 5, overflown: 0, malformed: 0 },
        };
        assert_eq!(bench.node.ioam_counters(), expected);
    }
}

/// A UDP packet with an empty trace of these fields, to behind port 1.
fn with_trace(trace_type: TraceType) -> Vec<u8> {
    let mut options = [0; 264];
    let header = TraceHeader::for_nodes(123, trace_type, 2).unwrap();
    let len = header.emit_hop_by_hop(NextHeader::UDP, &mut options).unwrap();
    let mut packet = vec![0x60, 0, 0, 0, 0, (len + 8) as u8, 0, 64];
    packet.extend("fd00:a::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend("fd00:d::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend(&options[..len]);
    packet.extend([0, 1, 0, 2, 0, 8, 0, 0]);
    packet
}

fn newest(packet: &[u8]) -> NodeData<'_> {
    Trace::find(&packet[40..]).unwrap().unwrap().nodes().next().unwrap().unwrap()
}

/// The written values are those at departure: depths behind the packet, time in the node, octets sent.
#[test]
fn depth_time_and_load_are_those_of_the_departure() {
    let mut config = router(1);
    config.namespaces[0].data_wide = Some(WideData::LinkLoad);
    config.tells_buffer_occupancy = true;
    config.timestamps = TimestampFormat::Ptp;
    let mut bench = bench(config);
    let mut egress = EgressConfig::new(400_000_000_000, 1 << 20);
    egress.classes[1].scheduling = Scheduling::Weighted { quantum_octets: 1024 };
    bench.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    let fields = TraceType::QUEUE_DEPTH
        .and(TraceType::TRANSIT_DELAY)
        .and(TraceType::TIMESTAMP_SECONDS)
        .and(TraceType::TIMESTAMP_FRACTION)
        .and(TraceType::NAMESPACE_DATA_WIDE)
        .and(TraceType::BUFFER_OCCUPANCY);
    let packet = with_trace(fields);
    let frame_octets = 14 + packet.len() as u64;
    bench.now = Instant::from_ns(7_000_000_500);
    for _ in 0..3 {
        let octets = [&common::port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD], &packet].concat();
        let frame = Frame::from_octets(&octets, &mut bench.pool).unwrap();
        bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
    }
    bench.now = bench.now.after_ns(1_234);
    let sent = bench.drain();
    for (behind, (_, packet)) in (0..3).rev().zip(&sent) {
        let node = newest(packet);
        let waiting = Some((behind * frame_octets) as u32);
        assert_eq!((node.queue_depth, node.buffer_occupancy), (waiting, waiting));
        assert_eq!((node.timestamp_seconds, node.timestamp_fraction), (Some(7), Some(1_734)));
        assert_eq!(node.transit_delay, Some(1_234));
        let load = LinkLoad { rate_mbit_per_s: 400_000, sent_octets: (3 - behind) * frame_octets };
        assert_eq!(node.namespace_data_wide.map(LinkLoad::from_data), Some(load));
    }
}

#[test]
fn traces_are_left_alone_where_they_are_not_to_be_filled() {
    let packet = with_trace(TraceType::NODE);
    let mut passed = packet.clone();
    passed[7] -= 1;
    let mut config = router(1);
    config.interfaces[1].fills = false;
    let mut bench = bench(config);
    assert_eq!(bench.send(0, &packet), [(1, passed.clone())], "not at this port");
    bench.apply(Command::SetIoam(Box::new(router(1))));
    let (_, filled) = bench.send(0, &packet).remove(0);
    assert_eq!((newest(&filled).node_id, newest(&filled).hop_limit), (Some(1), Some(63)));
    bench.apply(Command::RemoveEgress(PortId(1)));
    assert_eq!(bench.send(0, &packet), [(1, filled)], "with one queue as with classes");
    bench.apply(Command::RemoveIoam);
    assert_eq!(bench.send(0, &packet), [(1, passed)], "not any more");
}

/// A trace that claims more than it holds is left as it is, and counted.
#[test]
fn a_trace_that_contradicts_itself_is_counted() {
    let mut bench = bench(router(1));
    let mut packet = with_trace(TraceType::NODE);
    packet[40 + 4 + 2 + 5] = 0x7F;
    let mut passed = packet.clone();
    passed[7] -= 1;
    assert_eq!(bench.send(0, &packet), [(1, passed)]);
    assert_eq!(bench.node.ioam_counters(), IoamCounters { malformed: 1, ..IoamCounters::default() });
}

#[test]
fn fields_that_cannot_be_encoded_are_refused() {
    let mut bench = bench(router(1));
    let mut refused = |change: &dyn Fn(&mut IoamConfig)| {
        let mut config = router(1);
        change(&mut config);
        bench.node.apply(Command::SetIoam(Box::new(config))).unwrap_err().to_string()
    };
    let messages = [
        refused(&|config| config.node_id = Some(0xFF_FFFF)),
        refused(&|config| config.node_id_wide = Some(u64::MAX >> 8)),
        refused(&|config| config.namespaces.push(config.namespaces[0].clone())),
        refused(&|config| config.namespaces[0].opaque = Some((1, vec![0; 1021]))),
        refused(&|config| config.interfaces.push(interface(2, 1))),
        refused(&|config| config.interfaces.push(interface(1, 1))),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    IOAM: node id 0xffffff is higher than 0xfffffe
    IOAM: wide node id 0xffffffffffffff is higher than 0xfffffffffffffe
    IOAM: namespace 123 is given twice
    IOAM: namespace 123: opaque state of 1021 octets, at most 1020 are possible
    IOAM: interface of port 2 is given twice, or there is no such port
    IOAM: interface of port 1 is given twice, or there is no such port
    ");
}
