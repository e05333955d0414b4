//! VLAN ports (IEEE 802.1Q, D257). The frames are from scapy (`scapy_10_vlan.pcap`).

use crate::common::{Bench, port_mac};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_wire::pfc::Pfc;
use srdma_wire::{Instant, MacAddress};

/// The link, and its VLANs 100 and 200.
const LINK: u16 = 0;
const VLAN_100: u16 = 1;
const VLAN_200: u16 = 2;
/// A link of its own.
const OTHER: u16 = 3;

/// The capture: received frames, sent ones with priorities 0, 3, 5 and 6, and the packet before and after.
fn captured() -> Vec<Vec<u8>> {
    let path = format!("{}/../../testdata/golden/scapy_10_vlan.pcap", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(path).unwrap();
    let reader = srdma_capture::Reader::new(std::io::BufReader::new(file)).unwrap();
    reader.map(|packet| packet.unwrap().octets).collect()
}

const RECEIVED: usize = 0;
const PRIORITY_TAGGED: usize = 1;
const TWO_TAGS: usize = 2;
const SHORT: usize = 3;
/// What leaves by VLAN 200 with priority 0, 3, 5 and 6.
const SENT: [usize; 4] = [4, 5, 6, 7];
const PACKET: usize = 8;
const FORWARDED: usize = 9;

fn vlan(id: u16) -> Option<PortVlan> {
    Some(PortVlan { parent: PortId(LINK), id })
}

/// A router of the four ports; `destination` leads to the packet's destination.
fn router(destination: u16, trust: Trust) -> Bench {
    let mut bench = Bench::with("2001:db8:ff::1", 4, |config| {
        for (port, id) in [(VLAN_100, 100), (VLAN_200, 200)] {
            let port = &mut config.ports[usize::from(port)];
            (port.vlan, port.mac, port.trust) = (vlan(id), port_mac(LINK), trust);
        }
        config.ports[usize::from(LINK)].trust = trust;
    });
    bench.route("2001:db8:2::/64", destination);
    bench
}

/// Gives a frame to a port; returns what leaves, each with its port.
fn pass(bench: &mut Bench, port: u16, frame: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let frame = Frame::from_octets(frame, &mut bench.pool).unwrap();
    let Bench { node, pool, now, .. } = bench;
    node.receive(*now, PortId(port), &mut vec![frame], pool);
    let sent = leaving(bench);
    assert_eq!(bench.pool.in_use(), 0, "every chunk comes back");
    sent
}

fn leaving(bench: &mut Bench) -> Vec<(u16, Vec<u8>)> {
    let mut sent = Vec::new();
    for port in 0..4 {
        sent.extend(std::iter::from_fn(|| bench.give_out(PortId(port))).map(|octets| (port, octets)));
    }
    sent
}

fn classes(bench: &mut Bench, ports: &[u16], change: impl Fn(&mut EgressConfig)) {
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    for port in ports {
        let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
        change(&mut egress);
        bench.apply(Command::SetEgress { port: PortId(*port), egress: Box::new(egress) });
    }
}

fn counted(bench: &Bench, port: u16) -> [u64; 2] {
    let counters = bench.node.port_counters(PortId(port)).unwrap();
    [counters.received.frames, counters.enqueued.frames]
}

/// D257: From one VLAN of a link to another, with and without classes, with the priority of the packet's class.
#[test]
fn packets_are_routed_between_vlans_of_a_link() {
    let frames = captured();
    let mut plain = router(VLAN_200, Trust::Dscp);
    assert_eq!(pass(&mut plain, LINK, &frames[RECEIVED]), [(LINK, frames[SENT[0]].clone())]);
    assert_eq!([LINK, VLAN_100, VLAN_200].map(|port| counted(&plain, port)), [[1, 1], [1, 0], [0, 1]]);

    let mut mapped = router(VLAN_200, Trust::Dscp);
    mapped.apply(Command::SetClasses(ClassMap::by_precedence()));
    assert_eq!(pass(&mut mapped, LINK, &frames[RECEIVED]), [(LINK, frames[SENT[1]].clone())]);

    let mut classed = router(VLAN_200, Trust::Dscp);
    classes(&mut classed, &[LINK], |_| ());
    assert_eq!(pass(&mut classed, LINK, &frames[RECEIVED]), [(LINK, frames[SENT[1]].clone())]);
    assert_eq!(classed.node.class_counters(PortId(LINK), 3).unwrap().sent.frames, 1);
}

/// D257: The class of a tagged frame is that of its tag where the port trusts it, in queues and in tags.
#[test]
fn trusted_priorities_are_classes() {
    let frames = captured();
    for ports in [&[][..], &[LINK]] {
        let mut bench = router(VLAN_200, Trust::Pcp);
        classes(&mut bench, ports, |_| ());
        assert_eq!(pass(&mut bench, LINK, &frames[RECEIVED]), [(LINK, frames[SENT[2]].clone())]);
        assert_eq!(pass(&mut bench, LINK, &frames[PRIORITY_TAGGED]), [(LINK, frames[SENT[3]].clone())]);
    }
    let mut untagged = router(VLAN_200, Trust::Pcp);
    classes(&mut untagged, &[LINK], |_| ());
    let from_other = [&port_mac(OTHER).0[..], &[2, 0, 0, 0, 1, 3, 0x86, 0xDD], &frames[PACKET][14..]].concat();
    assert_eq!(pass(&mut untagged, OTHER, &from_other), [(LINK, frames[SENT[1]].clone())]);
}

/// Frames with a priority tag belong to the link's own port; tags do not leave by a port without VLAN.
#[test]
fn tags_are_taken_off() {
    let frames = captured();
    for (received, arrival) in [(RECEIVED, VLAN_100), (PRIORITY_TAGGED, LINK)] {
        let mut bench = router(OTHER, Trust::Dscp);
        let sent = pass(&mut bench, LINK, &frames[received]);
        let expected = [&[2, 0, 0, 0, 1, 3][..], &port_mac(OTHER).0, &[0x86, 0xDD], &frames[FORWARDED][14..]].concat();
        assert_eq!(sent, [(OTHER, expected)]);
        assert_eq!(counted(&bench, arrival)[0], 1);
        assert_eq!(counted(&bench, VLAN_100)[0], u64::from(arrival == VLAN_100));
    }
}

/// A port for priority tags gives them to all that it sends (VID 0).
#[test]
fn a_port_may_send_priority_tags() {
    let frames = captured();
    let mut bench = router(VLAN_200, Trust::Dscp);
    let port = PortConfig { mac: port_mac(LINK), vlan: vlan(0), trust: Trust::Pcp, ..PortConfig::default() };
    bench.apply(Command::AddPort(port));
    let next_hop = NextHop { port: PortId(4), address: "fe80::9".parse().unwrap() };
    bench.apply(Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, 2]) });
    let action = RouteAction::Via(vec![next_hop]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix: crate::common::prefix("2001:db8:2::/64"), action });
    let mut expected = frames[SENT[3]].clone();
    expected[15] = 0;
    assert_eq!(pass(&mut bench, LINK, &frames[PRIORITY_TAGGED]), [(LINK, expected)]);
    assert_eq!(bench.node.port_counters(PortId(4)).unwrap().received.frames, 1);
}

#[test]
fn other_tags_are_dropped_by_name() {
    let frames = captured();
    let mut unknown = frames[RECEIVED].clone();
    unknown[15] = 101;
    let mut elsewhere = frames[RECEIVED].clone();
    elsewhere[5] ^= 1;
    let cases = [
        (&unknown, LINK, "vlan_tagged"),
        (&frames[TWO_TAGS], VLAN_100, "vlan_tagged"),
        (&frames[SHORT], VLAN_100, "truncated"),
        (&elsewhere, VLAN_100, "not_for_this_port"),
    ];
    for (frame, port, reason) in cases {
        let mut bench = router(VLAN_200, Trust::Dscp);
        assert_eq!(pass(&mut bench, LINK, frame), []);
        assert_eq!(bench.drops(port), [(reason, 1)], "at port {port}");
    }
    let mut bench = router(VLAN_200, Trust::Dscp);
    for len in 0..frames[RECEIVED].len() {
        assert_eq!(pass(&mut bench, LINK, &frames[RECEIVED][..len]), [], "the first {len} octets");
    }
}

/// The tag does not count for the MTU of the link, and errors come from the VLAN's own address.
#[test]
fn the_mtu_is_that_of_the_vlan_port() {
    let frames = captured();
    let mut longest = frames[RECEIVED].clone();
    longest[18 + 4..18 + 6].copy_from_slice(&1460u16.to_be_bytes());
    longest.resize(18 + 1500, 7);
    let mut bench = router(VLAN_200, Trust::Dscp);
    let set = |port, link_mtu| Command::SetPort {
        port: PortId(port),
        mac: port_mac(LINK),
        addresses: vec![format!("2001:db8:{port}::fe").parse().unwrap()],
        link_mtu,
    };
    bench.route("2001:db8:1::/64", VLAN_100);
    bench.apply(set(VLAN_100, 1500));
    bench.apply(set(VLAN_200, 1500));
    let sent = pass(&mut bench, LINK, &longest);
    assert_eq!((sent.len(), sent[0].1.len()), (1, 18 + 1500));
    bench.apply(set(VLAN_200, 1499));
    let sent = pass(&mut bench, LINK, &longest);
    let [(LINK, error)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(error[12..16], [0x81, 0, 0, 100], "it goes back by the VLAN that the packet came by");
    assert_eq!((error[18 + 40], &error[18 + 44..18 + 48]), (2, &1499u32.to_be_bytes()[..]), "Packet Too Big");
}

/// D257: PFC by PCP: what came with a priority and waits is a reason to pause that priority at the link's other end,
/// whatever the DSCP, and a pause that comes holds frames of that priority in all VLANs.
#[test]
fn pauses_are_of_the_link() {
    let frames = captured();
    let pfc = PfcConfig { xoff_octets: 60, xon_octets: 30, headroom_octets: 2000, quanta: 0xFFFF };
    let mut bench = router(VLAN_200, Trust::Pcp);
    classes(&mut bench, &[LINK], |egress| egress.classes[5].pfc = Some(pfc));
    let pause = |class, quanta| Pfc::of_class(class, quanta).frame(MacAddress([2, 0, 0, 0, 1, 0])).to_vec();

    assert_eq!(pass(&mut bench, LINK, &pause(5, 0xFFFF)), []);
    let frame = Frame::from_octets(&frames[RECEIVED], &mut bench.pool).unwrap();
    bench.node.receive(bench.now, PortId(LINK), &mut vec![frame], &mut bench.pool);
    let sent = leaving(&mut bench);
    assert_eq!(sent.len(), 1, "the frame waits, and its priority is paused at the other end");
    assert_eq!((sent[0].0, &sent[0].1[12..18]), (LINK, &[0x88, 0x08, 1, 1, 0, 1 << 5][..]));
    assert_eq!(bench.node.class_counters(PortId(LINK), 3).map_or(0, |counters| counters.sent.frames), 0);

    bench.now = Instant::from_ns(1000);
    let sent = pass(&mut bench, LINK, &pause(5, 0));
    let tagged: Vec<_> = sent.iter().filter(|(_, octets)| octets[12] == 0x81).collect();
    assert_eq!(tagged, [&(LINK, frames[SENT[2]].clone())]);
    assert_eq!(sent.len(), 2, "and the other end may go on");
}

/// What is queued for a VLAN is as long as it leaves, and a full queue of the link drops it.
#[test]
fn vlans_share_the_queue_of_their_link() {
    let frames = captured();
    let mut bench = Bench::with("2001:db8:ff::1", 4, |config| {
        config.ports[usize::from(LINK)].queue_limit_octets = 2 * frames[SENT[0]].len();
        for (port, id) in [(VLAN_100, 100), (VLAN_200, 200)] {
            let port = &mut config.ports[usize::from(port)];
            (port.vlan, port.mac) = (vlan(id), port_mac(LINK));
        }
    });
    bench.route("2001:db8:2::/64", VLAN_200);
    for _ in 0..3 {
        let frame = Frame::from_octets(&frames[RECEIVED], &mut bench.pool).unwrap();
        bench.node.receive(bench.now, PortId(LINK), &mut vec![frame], &mut bench.pool);
    }
    assert_eq!(bench.drops(VLAN_100), [("queue_full", 1)]);
    assert_eq!(leaving(&mut bench).len(), 2);
    assert_eq!(bench.pool.in_use(), 0);
}

/// A multicast copy and a trace: what writes to packets that leave does not depend on the tag.
#[test]
fn multicast_copies_have_tags() {
    let frames = captured();
    let mut bench = router(OTHER, Trust::Dscp);
    let group = "ff3e::6".parse().unwrap();
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: "2001:db8:1::1".parse().unwrap(),
        group,
        incoming: Some(PortId(VLAN_100)),
        outgoing: vec![PortId(VLAN_200), PortId(OTHER)],
        end_mt: false,
        require_hmac: false,
    }));
    let mut frame = frames[RECEIVED].clone();
    frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 6]);
    frame[18 + 24..18 + 40].copy_from_slice(&group.octets());
    let sent = pass(&mut bench, LINK, &frame);
    let ports: Vec<u16> = sent.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [LINK, OTHER]);
    let tagged = [&[0x33, 0x33, 0, 0, 0, 6][..], &port_mac(LINK).0, &[0x81, 0, 0, 200, 0x86, 0xDD]].concat();
    assert_eq!(sent[0].1[..18], tagged);
    assert_eq!(sent[0].1[18..], sent[1].1[14..]);
}

/// IOAM writes to the trace behind the tag, and the tag stays.
#[test]
fn traces_are_filled_behind_tags() {
    let traced = |vlan_port: bool| {
        let mut bench = router(if vlan_port { VLAN_200 } else { OTHER }, Trust::Dscp);
        let interface = |port| IoamInterface { port: PortId(port), fills: true, id: Some(7), id_wide: None };
        bench.apply(Command::SetIoam(Box::new(IoamConfig {
            namespaces: vec![IoamNamespace { id: 123, data: None, data_wide: None, opaque: None }],
            interfaces: vec![interface(LINK), interface(OTHER)],
            node_id: Some(5),
            ..IoamConfig::default()
        })));
        let packets = crate::common::golden("kernel_t17_ioam_1h1-r1.pcap");
        let mut packet = packets.into_iter().find(|packet| packet[6] == 0).expect("one with a trace");
        packet[24..40].copy_from_slice(&"2001:db8:2::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
        let frame = [&port_mac(OTHER).0[..], &[2, 0, 0, 0, 1, 3, 0x86, 0xDD], &packet].concat();
        let sent = pass(&mut bench, OTHER, &frame);
        assert_eq!(sent.len(), 1, "{:?}", bench.drops(OTHER));
        let octets = sent[0].1[if vlan_port { 18 } else { 14 }..].to_vec();
        assert_ne!(octets[40..], packet[40..], "the trace was written to");
        octets
    };
    assert_eq!(traced(true), traced(false));
}

#[test]
fn ports_that_cannot_be_are_refused() {
    let mut bench = router(VLAN_200, Trust::Dscp);
    let mut refused = |vlan: PortVlan| {
        let port = PortConfig { name: "late".to_owned(), vlan: Some(vlan), ..PortConfig::default() };
        bench.node.apply(Command::AddPort(port)).unwrap_err().to_string()
    };
    let texts = [
        refused(PortVlan { parent: PortId(LINK), id: 4095 }),
        refused(PortVlan { parent: PortId(9), id: 1 }),
        refused(PortVlan { parent: PortId(VLAN_100), id: 1 }),
        refused(PortVlan { parent: PortId(LINK), id: 200 }),
    ];
    insta::assert_snapshot!(texts.join("\n"), @r"
    port late: VLAN identifiers end with 4094, 4095 is none
    port late: its parent, port 9, does not exist before it
    port late: its parent, port 1, has a VLAN itself
    port late: port 2 has VLAN 200 at this parent
    ");
    let egress = Box::new(EgressConfig::new(1, 1));
    let egress = bench.node.apply(Command::SetEgress { port: PortId(VLAN_100), egress }).unwrap_err();
    let removed = bench.node.apply(Command::RemoveEgress(PortId(VLAN_100))).unwrap_err();
    let refusal = "port 1 has a VLAN or carries one: its frames wait in the queues of its parent";
    assert_eq!([egress.to_string(), removed.to_string()], [refusal, refusal]);
}

/// The fast path has no tags.
#[test]
fn the_fast_path_leaves_vlans_to_the_element() {
    let bench = router(VLAN_200, Trust::Dscp);
    let fast = bench.node.fast_path(|_| true);
    let vlan = Some(FastPathObstacle::Vlan);
    assert_eq!(fast.ports, [None, vlan, vlan, None]);
    let entry = &fast.entries[&(TableId(0), crate::common::prefix("2001:db8:2::/64"))];
    assert_eq!(*entry, FastPathEntry::Element);
}

/// What a router with VLANs on one link does is what one with a link for each VLAN does, but for the tags.
mod beside_separate_links {
    use super::*;
    use proptest::prelude::*;

    /// The VLANs of link 0, and a plain link, with the ports of both routers.
    const VLANS: [(u16, Option<u16>); 4] = [(LINK, None), (VLAN_100, Some(100)), (VLAN_200, Some(200)), (OTHER, None)];

    fn routers(with_classes: bool, trust: Trust) -> [Bench; 2] {
        [true, false].map(|has_vlans| {
            let mut bench = Bench::with("2001:db8:ff::1", 4, |config| {
                for (port, id) in VLANS {
                    let port = &mut config.ports[usize::from(port)];
                    port.mac = port_mac(LINK);
                    port.link_mtu = 1300;
                    port.vlan = id.filter(|_| has_vlans).and_then(vlan);
                    port.trust = trust;
                }
            });
            for (port, _) in VLANS {
                bench.route(&format!("2001:db8:{port}::/64"), port);
            }
            let sid = SidBehavior::EndDt6(TableId(0));
            bench.apply(Command::AddSid { prefix: crate::common::prefix("2001:db8:ff::d6"), behavior: sid });
            let ports: &[u16] = if has_vlans { &[LINK, OTHER] } else { &[LINK, VLAN_100, VLAN_200, OTHER] };
            classes(&mut bench, if with_classes { ports } else { &[] }, |_| ());
            bench
        })
    }

    fn tagged(frame: &[u8], id: u16, priority: u16) -> Vec<u8> {
        let control = (priority << 13 | id).to_be_bytes();
        [frame.get(..12).unwrap_or(frame), &[0x81, 0], &control, frame.get(12..).unwrap_or_default()].concat()
    }

    /// Frames of the router without VLANs as the other sends them.
    fn with_tags(sent: Vec<(u16, Vec<u8>)>, priority: u16) -> Vec<(u16, Vec<u8>)> {
        let mut sent: Vec<_> = sent
            .into_iter()
            .map(|(port, octets)| match VLANS[usize::from(port)].1 {
                Some(id) => (LINK, tagged(&octets, id, priority)),
                None => (port, octets),
            })
            .collect();
        sent.sort();
        sent
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn a_packet_fares_alike(
            from in 0..4usize,
            destination in prop_oneof![
                (0..5u16).prop_map(|port| format!("2001:db8:{port}::1")),
                Just("2001:db8:ff::d6".to_owned()),
                Just("2001:db8:ff::1".to_owned()),
                Just("fe80::1".to_owned()),
            ],
            hop_limit in 0..3u8,
            next_header in prop_oneof![Just(17u8), Just(41), Just(43), Just(58), any::<u8>()],
            dscp_class in 0..8u8,
            payload in prop::collection::vec(any::<u8>(), 0..1400),
            cut in prop_oneof![4 => Just(usize::MAX), 1 => 0..70usize],
            priority in 0..8u16,
            with_classes: bool,
            trusts: bool,
        ) {
            let trust = if trusts { Trust::Pcp } else { Trust::Dscp };
            let mut packet = crate::common::ipv6("2001:db8:3::9", &destination, dscp_class, next_header, &payload);
            packet[7] = hop_limit;
            let mut frame = [&port_mac(LINK).0[..], &[2, 0, 0, 0, 1, 9, 0x86, 0xDD], &packet].concat();
            frame.truncate(cut);
            let (port, id) = VLANS[from];
            let [mut vlans, mut links] = routers(with_classes, trust);
            let (by, sent_frame) = match id {
                Some(id) => (LINK, tagged(&frame, id, priority)),
                None => (port, frame.clone()),
            };
            let mut sent = pass(&mut vlans, by, &sent_frame);
            sent.sort();
            // An ICMPv6 error is the node's own, of DSCP 0.
            let is_forwarded = |octets: &[u8]| octets.ends_with(&payload) && octets.get(14 + 6) == Some(&next_header);
            let of_links = pass(&mut links, port, &frame);
            let forwarded = of_links.iter().any(|(_, octets)| is_forwarded(octets));
            let class = match (trusts && id.is_some(), forwarded) {
                (_, false) => 0,
                (true, true) => priority,
                (false, true) => u16::from(dscp_class),
            };
            prop_assert_eq!(sent, with_tags(of_links, class));
            // A short frame is dropped before its VLAN is known.
            if frame.len() >= 54 {
                prop_assert_eq!(vlans.drops(port), links.drops(port));
            }
        }
    }
}
