//! A packet meets congestion.

use crate::common::{Bench, golden};
use crate::fast_cnp::packets::*;
use srdma_dataplane::{
    ClassMap, Command, EgressConfig, EncapsMode, FastCnpConfig, IoamConfig, IoamInterface, IoamNamespace, Notified,
    RouteAction, TableId, TimestampFormat,
};
use srdma_frame::{Element, Frame, PortId};
use srdma_wire::fast_cnp::{FastCnp, OptionTypes};
use srdma_wire::ioam::{Trace, TraceHeader, TraceType};
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, NextHeader};
use std::time::Duration;

const CAPTURE: &str = "scapy_04_fastcnp.pcap";

/// The data packets of the capture, to the queue pair that its Fast CNPs name.
fn golden_data(index: usize) -> Vec<u8> {
    let mut packet = golden(CAPTURE)[index].clone();
    let bth = packet.windows(4).position(|window| window == [0x0A, 0x30, 0xFF, 0xFF]).unwrap();
    packet[bth + 5..bth + 8].copy_from_slice(&[0, 0xAB, 0xCD]);
    packet
}

/// FC-4-1, FC-4-2, FC-4-6: octet by octet as built by scapy, with and without a trace; and no mark.
#[test]
fn the_notification_equals_that_of_the_capture() {
    for (data, expected) in [(0, 5), (1, 7)] {
        let mut bench = Bench::with(SWITCH, 2, |config| {
            config.fast_cnp_types = OptionTypes::new(0x9E, 0x9D).unwrap();
        });
        bench.route("2001:db8:1::/48", 0);
        turn_on(&mut bench, config());
        let sent = (0, golden(CAPTURE)[expected].clone());
        assert_eq!(congested(&mut bench, &golden_data(data)), (Notified::Sender, vec![sent]));
        let counters = bench.node.fast_cnp_counters();
        assert_eq!((counters.sent, counters.sent_with_trace), (1, u64::from(data == 1)));
    }
}

/// FC-5-4: off until enabled, and again when disabled.
#[test]
fn it_is_off_by_default() {
    let mut bench = switch();
    assert!(bench.node.fast_cnp().is_none());
    assert_eq!(congested(&mut bench, &golden_data(0)), (Notified::None, vec![]));
    turn_on(&mut bench, config());
    assert_eq!(congested(&mut bench, &golden_data(0)).0, Notified::Sender);
    bench.apply(Command::RemoveFastCnp);
    bench.now = Instant::from_ns(1_000_000);
    assert_eq!(congested(&mut bench, &golden_data(0)), (Notified::None, vec![]));
}

/// FC-4-5: a sender with unknown capability is notified, and the packet marked, unless the configuration disables it.
#[test]
fn an_unknown_sender_gets_both() {
    for (mark_unknown, expected) in [(true, Notified::Marking), (false, Notified::Sender)] {
        let mut bench = switch();
        turn_on(&mut bench, FastCnpConfig { capable: Vec::new(), mark_unknown, ..config() });
        let (mark, sent) = congested(&mut bench, &data(SENDER, RECEIVER, 7));
        assert_eq!((mark, sent), (expected, vec![(0, fast_cnp(SWITCH, SENDER, RECEIVER, 7))]));
    }
}

/// D45: neither a Fast CNP, nor an ACK, nor one whose source takes no notifications, causes a Fast CNP.
#[test]
fn senders_without_a_notification() {
    let mut bench = switch();
    turn_on(&mut bench, FastCnpConfig { senders: vec![prefix("2001:db8:1::/48")], ..config() });
    for packet in [
        fast_cnp(SWITCH, SENDER, RECEIVER, 7),
        cnp(SENDER, RECEIVER, 7),
        rocev2(SENDER, RECEIVER, 0x11, 7, &[0x1F, 0, 0, 1]),
        rocev2(SENDER, RECEIVER, 0x64, 7, &[0; 8]),
        data("2001:db8:9::1", RECEIVER, 7),
    ] {
        assert_eq!(congested(&mut bench, &packet), (Notified::None, vec![]));
    }
    assert_eq!(bench.node.fast_cnp_counters().not_a_sender, 1);
}

/// D45: one in 50 us for a flow; further ones are marked instead.
#[test]
fn a_flow_is_notified_at_a_limited_rate() {
    let mut bench = switch();
    turn_on(&mut bench, config());
    let mut marks = Vec::new();
    for step in 0..8 {
        bench.now = Instant::from_ns(step * 20_000);
        let (mark, sent) = congested(&mut bench, &data(SENDER, RECEIVER, 7));
        assert_eq!(sent.len(), usize::from(mark == Notified::Sender), "a mark or a Fast CNP");
        marks.push(mark == Notified::Sender);
    }
    assert_eq!(marks, [true, false, false, true, false, false, true, false]);
    assert_eq!(bench.node.fast_cnp_counters().refused_by_flow, 5);
}

/// D46: the packet that the kernel has put into tunnels, on each of its links.
#[test]
fn fields_are_read_inside_tunnels() {
    for name in ["t1_usid_red", "t3_red3", "t6_b6", "t7_usid2"] {
        for link in ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"] {
            let mut bench = switch();
            turn_on(&mut bench, config());
            let packet = &golden(&format!("kernel_{name}_{link}.pcap"))[0];
            let (_, sent) = congested(&mut bench, packet);
            let [(1, octets)] = &sent[..] else { panic!("{name} {link}: {sent:?}") };
            assert_eq!(octets[24..40], address("fd00:a::1").octets());
            assert_eq!(octets[44..60], address("fd00:d::2").octets());
            assert_eq!(octets[octets.len() - 27..octets.len() - 24], [0, 0x03, 0x33]);
        }
    }
}

/// The way to the sender may be a policy's.
#[test]
fn the_route_may_be_a_tunnel() {
    let mut bench = switch();
    turn_on(&mut bench, config());
    let segments = vec![address("5f00:0:9::")];
    let action = RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None };
    bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:1::/48"), action });
    let (mark, sent) = congested(&mut bench, &data(SENDER, RECEIVER, 7));
    let [(1, octets)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((mark, &octets[40..]), (Notified::Sender, &fast_cnp(SWITCH, SENDER, RECEIVER, 7)[..]));
}

/// No frame, no way: nothing goes out, so the packet is marked, and it is counted.
#[test]
fn packets_without_a_possible_notification_are_marked() {
    let mut bench = Bench::new(SWITCH, 1);
    turn_on(&mut bench, config());
    assert_eq!(congested(&mut bench, &data(SENDER, RECEIVER, 7)), (Notified::Marking, vec![]));
    assert_eq!(bench.node.own_drops().iter().map(|(reason, _)| reason.name()).collect::<Vec<_>>(), ["no_route"]);

    let mut bench = switch();
    turn_on(&mut bench, config());
    let mut frames: Vec<Frame> = std::iter::from_fn(|| Frame::small(&[0; 60], &mut bench.pool)).collect();
    let octets = [&[0; 14][..], &data(SENDER, RECEIVER, 7)].concat();
    frames.pop().unwrap().release(&mut bench.pool);
    let frame = Frame::small(&octets, &mut bench.pool).unwrap();
    assert_eq!(bench.node.notify(bench.now, &frame, &mut bench.pool), Notified::Marking);
    assert_eq!(bench.node.fast_cnp_counters().not_sent, 1);
    frames.push(frame);
    frames.into_iter().for_each(|frame| frame.release(&mut bench.pool));
    assert!(bench.drain().is_empty());
}

/// Through a queue: a packet that meets its threshold is notified and leaves unmarked, or is marked instead; the Fast
/// CNP has the class of its DSCP.
#[test]
fn a_queue_at_its_threshold_sends_notifications() {
    let mut bench = switch();
    turn_on(&mut bench, config());
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].notify_octets = Some(1);
    bench.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    let mut to_sender = EgressConfig::new(100_000_000_000, 1 << 20);
    to_sender.classes[0].notify_octets = Some(0);
    to_sender.classes[6].notify_octets = Some(0);
    bench.apply(Command::SetEgress { port: PortId(0), egress: Box::new(to_sender) });
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let mut frames = Vec::new();
    let ect = |qpn| {
        let mut packet = data(SENDER, RECEIVER, qpn);
        packet[1] = 0x20;
        packet
    };
    for qpn in [7, 8, 8] {
        let octets = [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0x86, 0xDD][..], &ect(qpn)].concat();
        frames.push(Frame::from_octets(&octets, &mut bench.pool).unwrap());
    }
    bench.node.receive(bench.now, PortId(0), &mut frames, &mut bench.pool);
    assert_eq!(bench.node.class_octets(PortId(0), 6), Some(14 + 104), "one Fast CNP, which is no reason for another");
    let mut marked = forwarded(ect(8));
    marked[1] = 0x30;
    let sent = (0, fast_cnp(SWITCH, SENDER, RECEIVER, 8));
    let data = [forwarded(ect(7)), forwarded(ect(8)), marked].map(|octets| (1, octets));
    assert_eq!(bench.drain(), [&[sent][..], &data].concat());
}

/// D240: with a drain time the Fast CNP has the rate of each flow of the queue, in the third word of its payload: that
/// of the port, less what drains the queue, by the number of flows. A sender of unknown capability gets none.
#[test]
fn a_fast_cnp_carries_the_rate_of_a_flow() {
    let unknown = "2001:db8:9::1";
    let mut bench = switch();
    turn_on(&mut bench, FastCnpConfig { drain: Some(Duration::from_micros(10)), ..config() });
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].notify_octets = Some(1);
    bench.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    bench.route("2001:db8:9::/48", 0);
    let mut frames = Vec::new();
    for (sender, qpn) in [(SENDER, 7), (SENDER, 8), (SENDER, 9), (unknown, 10)] {
        let packet = data(sender, RECEIVER, qpn);
        assert_eq!(packet.len(), 68);
        let octets = [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0x86, 0xDD][..], &packet].concat();
        frames.push(Frame::from_octets(&octets, &mut bench.pool).unwrap());
    }
    bench.node.receive(bench.now, PortId(0), &mut frames, &mut bench.pool);
    let sent: Vec<Vec<u8>> =
        bench.drain().into_iter().filter(|(port, _)| *port == 0).map(|(_, packet)| packet).collect();
    // 82 octets wait, then 164: 81 and 163 above the threshold are 64.8 and 130.4 Mbit/s for 10 µs.
    let expected = [
        fast_cnp_with(SWITCH, SENDER, RECEIVER, 8, (100_000.0_f64 - 64.8) as u32 / 2),
        fast_cnp_with(SWITCH, SENDER, RECEIVER, 9, (100_000.0_f64 - 130.4) as u32 / 3),
        fast_cnp(SWITCH, unknown, RECEIVER, 10),
    ];
    assert_eq!(sent, expected);
    let counters = bench.node.fast_cnp_counters();
    assert_eq!((counters.sent, counters.sent_with_rate), (3, 2));
}

/// Queue depths of up to three nodes, in namespace 1.
fn with_trace(mut packet: Vec<u8>) -> Vec<u8> {
    let mut options = [0; 64];
    let header = TraceHeader::for_nodes(1, TraceType::QUEUE_DEPTH, 3).unwrap();
    let len = header.emit_hop_by_hop(NextHeader::UDP, &mut options).unwrap();
    packet[5] += len as u8;
    packet[6] = NextHeader::HOP_BY_HOP.0;
    packet.splice(40..40, options[..len].iter().copied());
    packet
}

/// Traces of namespace 1 are filled at port 1.
fn ioam() -> IoamConfig {
    IoamConfig {
        node_id: Some(1),
        node_id_wide: None,
        namespaces: vec![IoamNamespace { id: 1, data: None, data_wide: None, opaque: None }],
        interfaces: vec![IoamInterface { port: PortId(1), id: None, id_wide: None, fills: true }],
        timestamps: TimestampFormat::default(),
        tells_buffer_occupancy: false,
        group_interval: None,
    }
}

/// FC-4-9: the trace that goes back has the data of the node that is congested, its queue's depth above all.
#[test]
fn a_trace_is_returned_with_the_nodes_own_data() {
    let mut bench = switch();
    turn_on(&mut bench, config());
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].notify_octets = Some(1);
    bench.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    bench.apply(Command::SetIoam(Box::new(ioam())));
    let mut frames = Vec::new();
    for packet in [data(SENDER, RECEIVER, 7), with_trace(data(SENDER, RECEIVER, 8))] {
        let octets = [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0x86, 0xDD][..], &packet].concat();
        frames.push(Frame::from_octets(&octets, &mut bench.pool).unwrap());
    }
    let waiting = 14 + data(SENDER, RECEIVER, 7).len() as u32;
    bench.node.receive(bench.now, PortId(0), &mut frames, &mut bench.pool);
    let sent = bench.drain().into_iter().find(|(port, _)| *port == 0).unwrap().1;
    let packet = Packet::parse(&sent, sent.len()).unwrap();
    let fast_cnp = FastCnp::find(&packet, OptionTypes::default()).unwrap().unwrap();
    let trace = Trace::parse(fast_cnp.trace.unwrap()).unwrap();
    let depths: Vec<_> = trace.nodes().map(|node| node.unwrap().queue_depth).collect();
    assert_eq!(depths, [Some(waiting)]);
}
