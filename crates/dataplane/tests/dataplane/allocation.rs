//! A node in steady state allocates no memory: not for a packet, a copy, a response or a timer.

use crate::common;

use crate::common::Bench;
use crate::common::group::*;
use crate::common::next_hop;
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_group::*;
use srdma_wire::Prefix;

const SINK: &str = "2001:db8:2::";

/// A frame for a port of the node.
fn framed(port: u16, packet: &[u8]) -> (u16, Vec<u8>) {
    let ethertype = common::ethertype(packet);
    (port, [&common::port_mac(port).0[..], &[2, 0, 0, 0, 1, 0], &ethertype, packet].concat())
}

/// Hands over frames one by one, with memory of its own. Time passes, so that timers fire.
struct Feed {
    frames: Vec<Frame>,
    wake: Vec<PortId>,
}

impl Feed {
    fn new() -> Self {
        Feed { frames: Vec::with_capacity(1), wake: Vec::with_capacity(16) }
    }

    /// Returns the number of frames that the node has sent.
    fn hand_over(&mut self, bench: &mut Bench, framed: &[(u16, Vec<u8>)]) -> u64 {
        let mut sent = 0;
        for (port, octets) in framed {
            self.frames.push(Frame::from_octets(octets, &mut bench.pool).unwrap());
            bench.node.receive(bench.now, PortId(*port), &mut self.frames, &mut bench.pool);
            bench.node.tick(bench.now, &mut bench.pool);
            bench.now = bench.now.after_ns(3_000);
            self.wake.clear();
            bench.node.take_ready(&mut self.wake);
            for port in 0..3 {
                while let Some(frame) = bench.node.dequeue(bench.now, PortId(port), &mut bench.pool) {
                    frame.release(&mut bench.pool);
                    sent += 1;
                }
            }
        }
        sent
    }
}

/// Allocations in a thousand rounds of these packets, after a hundred to warm up.
pub(crate) fn allocations(bench: &mut Bench, packets: &[(u16, Vec<u8>)]) -> u64 {
    let framed: Vec<(u16, Vec<u8>)> = packets.iter().map(|(port, packet)| framed(*port, packet)).collect();
    let mut feed = Feed::new();
    let mut sent: u64 = (0..100).map(|_| feed.hand_over(bench, &framed)).sum();
    let info = allocation_counter::measure(|| {
        for _ in 0..1_000 {
            sent += feed.hand_over(bench, &framed);
        }
    });
    assert!(sent >= 1_100, "the packets of this case go somewhere");
    info.count_total
}

fn node() -> Bench {
    let mut bench = Bench::new(EDGE, 3);
    for (prefix, len, port) in [(SINK, 64, 1), (HEADEND, 128, 0), (SOURCE, 128, 0), ("5f00::", 16, 2)] {
        route(&mut bench, prefix, len, RouteAction::Via(vec![next_hop(port)]));
    }
    bench
}

fn route(bench: &mut Bench, prefix: &str, len: u8, action: RouteAction) {
    let prefix = Prefix::new(address(prefix), len).unwrap();
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
}

fn sid(bench: &mut Bench, sid: &str, len: u8, behavior: SidBehavior) {
    bench.apply(Command::AddSid { prefix: Prefix::new(address(sid), len).unwrap(), behavior });
}

fn packet(destination: &str, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(address(SOURCE).octets());
    packet.extend(address(destination).octets());
    packet.extend(payload);
    packet
}

/// An SRH with this last segment, Segments Left 1, in front of a payload.
fn srh(next_header: u8, segments_left: u8, payload: &[u8]) -> Vec<u8> {
    let last = address("2001:db8:2::9").octets();
    [&[next_header, 2, 4, segments_left, 0, 0, 0, 0][..], &last, payload].concat()
}

/// The unicast behaviours, ECMP, and errors.
#[test]
fn forwarding_allocates_nothing() {
    let mut bench = node();
    let reduced = |segments: &[&str]| RouteAction::Encaps {
        segments: segments.iter().map(|segment| address(segment)).collect(),
        mode: EncapsMode::Reduced,
        hmac_key_id: None,
    };
    route(&mut bench, "2001:db8:e::", 48, reduced(&["5f00:0:1::", "5f00:0:2::"]));
    route(&mut bench, "2001:db8:ec::", 48, RouteAction::Via(vec![next_hop(1), next_hop(2)]));
    sid(&mut bench, "fd00::e", 128, SidBehavior::End(Flavors { psp: true, ..Flavors::default() }));
    sid(&mut bench, "fd00::a", 128, SidBehavior::EndX(Flavors::default(), next_hop(2)));
    sid(&mut bench, "fd00::d6", 128, SidBehavior::EndDt6(TableId(0)));
    sid(&mut bench, "5f00:0:100::", 48, SidBehavior::End(Flavors::MICRO));
    let list = |segment, weight| SegmentList { segments: vec![address(segment)], weight };
    let lists = vec![list("5f00:0:1::", 1), list("5f00:0:2::", 2), list("2001:db8:dead::1", 3)];
    let (id, mode) = (PolicyId(1), EncapsMode::Reduced);
    bench.apply(Command::AddPolicy { id, policy: Box::new(SrPolicy { lists, hmac_key_id: None }) });
    route(&mut bench, "2001:db8:eb::", 48, RouteAction::Policy { policy: id, mode });
    sid(&mut bench, "fd00::b6", 128, SidBehavior::EndB6Encaps { policy: id, mode });
    sid(&mut bench, "fd00::d8", 128, SidBehavior::EndDx6 { next_hop: next_hop(2), table: TableId(0) });
    let inner = packet("2001:db8:2::9", 59, &[0; 100]);
    let cases = [
        inner.clone(),
        packet("2001:db8:eb::1", 59, &[0; 100]),
        packet("fd00::b6", 43, &srh(41, 1, &inner)),
        packet("fd00::d8", 43, &srh(41, 0, &inner)),
        packet("2001:db8:ec::1", 59, &[0; 100]),
        packet("2001:db8:e::1", 59, &[0; 100]),
        packet("fd00::e", 43, &srh(41, 1, &inner)),
        packet("fd00::a", 43, &srh(41, 1, &inner)),
        packet("fd00::d6", 43, &srh(41, 0, &inner)),
        packet("5f00:0:100:200::", 59, &[0; 100]),
        packet("5f00:0:100::", 41, &inner),
        packet("2001:db8:2::9", 59, &[0; 4300]),
    ];
    for case in cases {
        assert_eq!(allocations(&mut bench, &[(0, case.clone())]), 0, "{case:?}");
    }
    let unreachable = packet("2001:db8:dead::1", 59, &[0; 100]);
    let answered = [(0, unreachable), (0, inner)];
    assert_eq!(allocations(&mut bench, &answered), 0);
}

/// Classes that are marked, send pauses and are paused, and traces that are filled.
#[test]
fn classes_and_traces_allocate_nothing() {
    let mut bench = node();
    route(&mut bench, SINK, 64, RouteAction::Via(vec![next_hop(1)]));
    let pfc = PfcConfig { xoff_octets: 100, xon_octets: 50, headroom_octets: 1 << 20, quanta: 100 };
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.watchdog = Some(Watchdog { bound_ns: 50_000, quiet_ns: 50_000, action: StormAction::Drop });
    for class in &mut egress.classes {
        class.pfc = Some(pfc);
        class.marking = Some(Marking { k_min_octets: 0, k_max_octets: 1000, p_max: 0.5 });
        class.scheduling = Scheduling::Weighted { quantum_octets: 256 };
    }
    for port in 0..3 {
        bench.apply(Command::SetEgress { port: PortId(port), egress: Box::new(egress.clone()) });
    }
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let namespace = IoamNamespace { id: 1, data: Some(2), data_wide: Some(WideData::LinkLoad), opaque: None };
    let interface = |port| IoamInterface { port: PortId(port), id: Some(port), id_wide: None, fills: true };
    bench.apply(Command::SetIoam(Box::new(IoamConfig {
        namespaces: vec![namespace],
        interfaces: (0..3).map(interface).collect(),
        ..IoamConfig::default()
    })));
    let mut traced = packet(
        "2001:db8:2::9",
        0,
        &[59, 2, 1, 0, 0x31, 18, 0, 0, 0, 1, 0x10, 2, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    traced[1] = 0x20;
    let plain = packet("2001:db8:2::9", 59, &[0; 1000]);
    assert_eq!(allocations(&mut bench, &[(2, traced), (0, plain)]), 0);
    assert!(bench.node.class_counters(PortId(0), 0).unwrap().pauses_sent >= 1_000);
    assert!(bench.node.ioam_counters().written >= 1_000);
}

/// Notifications of a queue that is above XOFF and below XON in turn; and those that are received, from an origin
/// within its limits and from one beyond them.
#[test]
fn notifications_allocate_nothing() {
    let mut congested = node();
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].backpressure = Some(BackpressureThresholds { xoff_octets: 100, xon_octets: 50 });
    congested.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    let sids = BackpressureSids {
        outer_source: Prefix::host(address(SOURCE)),
        end_c: Some(address("5f00:0:9::")),
        end_e: None,
    };
    congested.apply(Command::SetBackpressureSids(vec![sids]));
    congested.apply(Command::SetBackpressure(Box::default()));
    let data = packet("2001:db8:2::9", 41, &packet("2001:db8:2::8", 59, &[0; 1000]));
    let data = [&common::port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD], &data].concat();
    let mut frames = Vec::with_capacity(2);
    let mut wake = Vec::with_capacity(16);
    let mut rounds = |bench: &mut Bench, count: u64| {
        for _ in 0..count {
            frames.extend((0..2).map(|_| Frame::from_octets(&data, &mut bench.pool).unwrap()));
            bench.node.receive(bench.now, PortId(0), &mut frames, &mut bench.pool);
            bench.now = bench.now.after_ns(3_000);
            bench.node.tick(bench.now, &mut bench.pool);
            for port in [1, 2] {
                while let Some(frame) = bench.node.dequeue(bench.now, PortId(port), &mut bench.pool) {
                    frame.release(&mut bench.pool);
                }
            }
            wake.clear();
            bench.node.take_ready(&mut wake);
        }
    };
    rounds(&mut congested, 100);
    let info = allocation_counter::measure(|| rounds(&mut congested, 1_000));
    assert_eq!(info.count_total, 0);
    let counters = congested.node.backpressure_counters();
    assert!(counters.pauses_sent >= 1_000, "{counters:?}");

    let mut pe = node();
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[3].pfc = Some(PfcConfig { xoff_octets: 100, xon_octets: 50, headroom_octets: 1 << 20, quanta: 100 });
    pe.apply(Command::SetEgress { port: PortId(2), egress: Box::new(egress) });
    sid(&mut pe, "fd00::c", 128, SidBehavior::EndC);
    let priorities = vec![PriorityMapping { traffic_class: 3, ports: vec![PortId(2)], priority: 3 }];
    let config = BackpressureConfig { priorities, per_second: 200_000, ..BackpressureConfig::new() };
    pe.apply(Command::SetBackpressure(Box::new(config)));
    let notification_at = |sequence: u32| {
        let notification = srdma_wire::notification::Notification {
            ask: srdma_wire::notification::Ask::Pause,
            traffic_class: 3,
            level: 128,
            sequence,
            hold_us: 1,
            congested: address(SOURCE),
        };
        let destination = address("fd00::c");
        packet("fd00::c", 41, &srdma_wire::notification::NotificationPacket { destination, notification }.emit())
    };
    assert_eq!(
        allocations(&mut pe, &[(0, notification_at(1)), (0, notification_at(2)), (0, packet("fd00::c", 59, &[]))]),
        0
    );
    let counters = pe.node.backpressure_counters();
    assert!(counters.pauses_received >= 1_000 && counters.expired >= 1_000, "{counters:?}");
    let is_limited = |(name, count): &(&str, u64)| *name == "backpressure_rate_limited" && *count > 0;
    assert!(pe.drops(0).iter().any(is_limited));
}

/// A group's node at `index` of a tree of three: headend, transit node, edge.
fn entry(index: usize, loopback: [&str; 3]) -> GroupEntry {
    let [headend, transit, edge] = loopback;
    let nodes =
        [("N6", headend, "5f00:0:6::", None), ("N4", transit, "5f00:0:4::", Some(0)), ("N1", edge, SID, Some(1))];
    let region = |host: u16| Some((u64::from(host) << 32, u32::from(host)));
    let receivers = (1..=8).map(|host| member(&receiver(host, 0x100 + u32::from(host), region(host)), 2)).collect();
    Group::new(Record { region: Some(REGION), ..record(&nodes, receivers) }).unwrap().at(NodeIndex(index)).unwrap()
}

/// Headend, transit and edge: data down, and ACKs, NAKs and CNPs up, windows and holds included.
#[test]
fn groups_allocate_nothing() {
    let data = inner(0x0A, 0, &[1; 4096], true);
    let lists: Vec<_> = (1..=8).map(|host| receiver(host, 0x100 + u32::from(host), None)).collect();
    let encapsulated = with_tlvs(&inner(0x04, 0, &[1; 1024], false), &[&end_mt_tlv(EDGE, &lists)]);
    let to = |mut packet: Vec<u8>, destination: &str| {
        packet[24..40].copy_from_slice(&address(destination).octets());
        packet
    };
    let ups = |source: &str| {
        let (ack, nak) = (response(0x11, source, 100, &[0x1F, 0, 0, 1]), response(0x11, source, 100, &[0x60, 0, 0, 1]));
        [(1, ack), (1, nak), (1, response(0x81, source, 0, &[0; 16]))]
    };

    let mut headend = node();
    headend.apply(Command::AddGroup(Box::new(entry(0, [EDGE, "2001:db8:2::4", "2001:db8:2::5"]))));
    assert_eq!(allocations(&mut headend, &[&[(0, data)][..], &ups("2001:db8:2::4")].concat()), 0);

    let mut transit = node();
    transit.apply(Command::AddGroup(Box::new(entry(1, [HEADEND, EDGE, "2001:db8:2::5"]))));
    sid(&mut transit, "5f00:0:4::", 128, SidBehavior::EndReplicate(GroupId(1)));
    transit.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address(HEADEND),
        group: address("ff3e::100"),
        incoming: None,
        outgoing: vec![PortId(1), PortId(2)],
        end_mt: true,
        require_hmac: false,
    }));
    let downs = [(0, to(encapsulated.clone(), "5f00:0:4::")), (0, to(encapsulated.clone(), "ff3e::100"))];
    assert_eq!(allocations(&mut transit, &[&downs[..], &ups("2001:db8:2::5")].concat()), 0);

    let mut at_edge = node();
    at_edge.apply(Command::AddGroup(Box::new(entry(2, [HEADEND, "2001:db8:6::4", EDGE]))));
    sid(&mut at_edge, SID, 128, SidBehavior::EndMt { require_hmac: false });
    route(&mut at_edge, "2001:db8:6::", 48, RouteAction::Via(vec![next_hop(0)]));
    let mut packets = vec![(0, encapsulated)];
    for host in 1..=8 {
        packets.extend(ups(&format!("2001:db8:2::{host:x}")));
    }
    assert_eq!(allocations(&mut at_edge, &packets), 0);
}

/// An edge that repairs: data are kept, sent again for a NAK, and released by ACKs.
#[test]
fn repair_allocates_nothing() {
    const FIRST: u32 = 100;
    let mut bench = edge(false);
    bench.route("2001:db8:6::/48", 0);
    let receivers = [receiver(1, 0x101, None), receiver(2, 0x102, None)];
    let mut entry = common::group::entry(&receivers, None);
    entry.policy.repair.mode = RepairMode::Tree;
    entry.repair = Some(RepairEntry { window_packets: 64, parent_repairs: true, children: Vec::new(), levels: 1 });
    bench.apply(Command::AddGroup(Box::new(entry)));
    let at = |mut packet: Vec<u8>, psn: u32| {
        packet[57..60].copy_from_slice(&psn.to_be_bytes()[1..]);
        let end = packet.len() - 4;
        let icrc = srdma_testkit::checksums::icrc(&packet[..end]);
        packet[end..].copy_from_slice(&icrc);
        packet
    };
    let from = |host: u16, psn: u32, syndrome: u8| {
        at(response(0x11, &format!("2001:db8:2::{host}"), 0, &[syndrome, 0, 0, 1]), psn)
    };
    let frames_of = |psn: u32| {
        let data = (0, encapsulated(&at(request(0x04, 0, &[7; 64], false), psn)));
        let naks = psn.is_multiple_of(10).then(|| (1, from(1, psn, 0x60)));
        let acks = [(1, from(1, psn, 0x1F)), (1, from(2, psn, 0x1F))];
        [data].into_iter().chain(naks).chain(acks).map(|(port, packet)| framed(port, &packet))
    };
    let all: Vec<(u16, Vec<u8>)> = (FIRST..FIRST + 1_000).flat_map(frames_of).collect();
    let (warm, measured) = all.split_at(all.len() / 2);
    let mut feed = Feed::new();
    feed.hand_over(&mut bench, warm);
    let info = allocation_counter::measure(|| {
        feed.hand_over(&mut bench, measured);
    });
    assert_eq!(info.count_total, 0);
    let counters = bench.node.repair_counters(GroupId(1)).unwrap();
    assert_eq!((counters.naks_absorbed, counters.packets_resent), (100, 100), "{counters:?}");
    assert_eq!(bench.node.repair_fill(GroupId(1)).unwrap().packets, 0, "all is acknowledged");
}
