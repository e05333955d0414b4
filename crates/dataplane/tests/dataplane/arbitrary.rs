//! Robustness: no input makes a node panic, loop or leak a chunk: random frames, and good ones with random damage, into
//! a node that has everything.

use crate::common::{Bench, golden, group, next_hop, port_mac};
use proptest::prelude::*;
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_group::GroupId;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A node whose SIDs and routes are those of the golden captures.
fn node() -> Bench {
    let mut bench = Bench::with("2001:db8:a::1", 3, |config| config.verify_icrc = true);
    let sids = [
        ("5f00:0:1:e000::", SidBehavior::EndMt { require_hmac: false }),
        ("fd00:11::e", SidBehavior::End(Flavors::default())),
        ("fd00:11::f", SidBehavior::End(Flavors { psp: true, usp: true, usd: true, next_csid: None })),
        ("fd00:22::e", SidBehavior::EndX(Flavors::default(), next_hop(1))),
        ("fd00:33::d6", SidBehavior::EndDt6(TableId(0))),
        ("fd00:44::e", SidBehavior::EndReplicate(GroupId(1))),
        ("fd00:33::d8", SidBehavior::EndDx6 { next_hop: next_hop(2), table: TableId(0) }),
        ("fd00:33::d2", SidBehavior::EndDx2(PortId(2))),
        ("fd00:33::b6", SidBehavior::EndB6Encaps { policy: PolicyId(1), mode: EncapsMode::Encaps }),
    ];
    let list = |segments: &[&str]| SegmentList {
        segments: segments.iter().map(|segment| address(segment)).collect(),
        weight: 1,
    };
    let lists = vec![list(&["fd00:33::b6", "fd00:11::e"]), list(&["fd00:33::d8"]), list(&["2001:db8:2::1"; 12])];
    let policy = Box::new(SrPolicy { lists, hmac_key_id: None });
    bench.apply(Command::AddPolicy { id: PolicyId(1), policy });
    for (sid, behavior) in sids {
        bench.apply(Command::AddSid { prefix: Prefix::host(address(sid)), behavior });
    }
    for block in ["5f00:0:100::", "5f00:0:200::"] {
        let prefix = Prefix::new(address(block), 48).unwrap();
        bench.apply(Command::AddSid { prefix, behavior: SidBehavior::End(Flavors::MICRO) });
    }
    for (prefix, len, port) in [("2001:db8:2::", 64, 1), ("fd00::", 16, 2), ("5f00::", 16, 2)] {
        let prefix = Prefix::new(address(prefix), len).unwrap();
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address("2001:db8:6::1"),
        group: address("ff3e::100"),
        incoming: None,
        outgoing: vec![PortId(1), PortId(2)],
        end_mt: true,
        require_hmac: false,
    }));
    bench
}

/// Role of the node in the group whose Proxy Address is in the captures.
#[derive(Clone, Copy, Debug)]
enum Place {
    Outside,
    Headend,
    Transit,
    Edge,
}

const PLACES: [Place; 4] = [Place::Outside, Place::Headend, Place::Transit, Place::Edge];

fn node_in(place: Place) -> Bench {
    let mut bench = node();
    let encaps = |segments: &[&str], mode| RouteAction::Encaps {
        segments: segments.iter().map(|segment| address(segment)).collect(),
        mode,
        hmac_key_id: None,
    };
    let policies = [
        ("2001:db8:3::", 48, encaps(&["fd00:11::e", "5f00:0:100:200::"], EncapsMode::Encaps)),
        ("2001:db8:5::", 48, encaps(&["ff3e::100"], EncapsMode::Reduced)),
        ("2001:db8:6::", 48, RouteAction::Policy { policy: PolicyId(1), mode: EncapsMode::Reduced }),
        ("2001:db8:1::", 48, RouteAction::Via(vec![next_hop(0), next_hop(1)])),
    ];
    for (prefix, len, action) in policies {
        let prefix = Prefix::new(address(prefix), len).unwrap();
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    let loopbacks = match place {
        Place::Outside => return bench,
        Place::Headend => ["2001:db8:a::1", "2001:db8:2::1", "2001:db8:2::2"],
        Place::Transit => ["2001:db8:2::1", "2001:db8:a::1", "2001:db8:2::2"],
        Place::Edge => ["2001:db8:2::3", "2001:db8:2::4", "2001:db8:a::1"],
    };
    let sids = ["fd00:44::6", "fd00:44::e", "5f00:0:1:e000::"];
    let nodes: Vec<_> = (0..3).map(|index| ("N", loopbacks[index], sids[index], index.checked_sub(1))).collect();
    let receivers = (1..=2).map(|host| group::member(&group::receiver(host, 0x110, Some((7, 7))), 2)).collect();
    let record = srdma_group::Record { region: Some(group::REGION), ..group::record(&nodes, receivers) };
    let entry = srdma_group::Group::new(record).unwrap().at(srdma_group::NodeIndex(place as usize - 1)).unwrap();
    bench.apply(Command::AddGroup(Box::new(entry)));
    bench
}

/// The same with all that ports with classes do: thresholds are so low that every packet meets them.
fn with_classes(place: Place) -> Bench {
    let mut bench = node_in(place);
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 16);
    egress.watchdog = Some(Watchdog { bound_ns: 1_000, quiet_ns: 1_000, action: StormAction::Drop });
    for (number, class) in (0..).zip(&mut egress.classes) {
        class.marking = Some(Marking { k_min_octets: 0, k_max_octets: 500, p_max: 0.5 });
        class.notify_octets = Some(1);
        class.scheduling = Scheduling::Weighted { quantum_octets: 256 + number };
        let pfc = PfcConfig { xoff_octets: 100, xon_octets: 50, headroom_octets: 2000, quanta: 1 };
        class.pfc = (number % 2 == 0).then_some(pfc);
    }
    for port in (0..3).map(PortId) {
        bench.apply(Command::SetEgress { port, egress: Box::new(egress.clone()) });
    }
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let opaque = Some((1, vec![1; 9]));
    let namespace = IoamNamespace { id: 123, data: Some(1), data_wide: Some(WideData::LinkLoad), opaque };
    let interface = |port| IoamInterface { port: PortId(port), id: Some(port), id_wide: None, fills: true };
    bench.apply(Command::SetIoam(Box::new(IoamConfig {
        node_id: Some(1),
        namespaces: vec![namespace],
        interfaces: (0..3).map(interface).collect(),
        ..IoamConfig::default()
    })));
    bench
}

/// Gives a whole frame to the node; every chunk must come back, and the frame must leave a trace: sent on or counted.
fn give(bench: &mut Bench, frame: &[u8]) {
    let groups = |bench: &Bench| -> u64 {
        let counters = bench.node.groups().filter_map(|id| bench.node.group_counters(id));
        counters.map(|group| group.acks_received + group.naks_received + group.cnps_received).sum()
    };
    let Some(frame) = Frame::from_octets(frame, &mut bench.pool) else {
        return;
    };
    bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
    let sent = bench.drain().len() as u64;
    let counters = bench.node.port_counters(PortId(0)).unwrap();
    let drops: u64 = counters.drops.iter().map(|(_, count)| count).sum();
    assert!(sent + drops + groups(bench) > 0);
    let deadline = bench.node.next_deadline();
    bench.now = deadline.unwrap_or(bench.now);
    bench.node.tick(bench.now, &mut bench.pool);
    bench.drain();
    assert_eq!(bench.node.buffered_octets(), 0);
}

fn to_port_0(packet: &[u8]) -> Vec<u8> {
    let mut frame = port_mac(0).0.to_vec();
    if packet.get(24) == Some(&0xFF) {
        frame[0] |= 1;
    }
    frame.extend([2, 0, 0, 0, 1, 0, 0x86, 0xDD]);
    frame.extend(packet);
    frame
}

/// Packets of every kind that the captures hold.
fn samples() -> Vec<Vec<u8>> {
    let names = [
        "scapy_01_rocev2_base.pcap",
        "scapy_02_endmt_in.pcap",
        "scapy_04_fastcnp.pcap",
        "scapy_05_endc_ende.pcap",
        "scapy_07_usid.pcap",
        "kernel_t2_usid_encap_1h1-r1.pcap",
        "kernel_t3_red3_1h1-r1.pcap",
        "kernel_t5_psp_1h1-r1.pcap",
        "kernel_t6_b6_2r1-r2.pcap",
        "kernel_t9_hmac_1h1-r1.pcap",
        "kernel_t17_ioam_1h1-r1.pcap",
    ];
    names.iter().flat_map(|name| golden(name)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn random_frames(
        frame in prop::collection::vec(any::<u8>(), 0..300),
        as_ipv6 in any::<bool>(),
        place in prop::sample::select(&PLACES[..]),
    ) {
        let mut frame = frame;
        if as_ipv6 && frame.len() > 15 {
            frame[..6].copy_from_slice(&port_mac(0).0);
            frame[12..14].copy_from_slice(&[0x86, 0xDD]);
            frame[14] = 0x60;
        }
        give(&mut node_in(place), &frame);
        give(&mut with_classes(place), &frame);
    }

    #[test]
    fn damaged_packets(
        index in any::<prop::sample::Index>(),
        changes in prop::collection::vec((0usize..400, any::<u8>()), 1..6),
        cut in prop::option::of(0usize..400),
        place in prop::sample::select(&PLACES[..]),
    ) {
        let samples = samples();
        let mut packet = index.get(&samples).clone();
        for (at, value) in changes {
            if let Some(octet) = packet.get_mut(at) {
                *octet = value;
            }
        }
        packet.truncate(cut.unwrap_or(usize::MAX));
        let mut bench = node_in(place);
        give(&mut bench, &to_port_0(&packet));
        give(&mut bench, &to_port_0(&samples[0]));
        let mut bench = with_classes(place);
        give(&mut bench, &to_port_0(&packet));
        give(&mut bench, &to_port_0(&samples[0]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is found out for many frames at once, before the first of them is forwarded, holds for each of them.
    #[test]
    fn a_batch_is_its_frames_one_by_one(
        chosen in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of((0usize..200, any::<u8>()))), 1..100),
        padding in 0usize..3,
        place in prop::sample::select(&PLACES[..]),
        has_classes in any::<bool>(),
    ) {
        let samples = samples();
        let frames: Vec<Vec<u8>> = chosen.into_iter().map(|(index, change)| {
            let mut frame = to_port_0(&samples[index.index(samples.len())]);
            if let Some((at, value)) = change && let Some(octet) = frame.get_mut(at) {
                *octet = value;
            }
            frame.resize(frame.len() + padding, 0);
            frame
        }).collect();
        let mut results = Vec::new();
        for at_once in [1, frames.len()] {
            let mut bench = if has_classes { with_classes(place) } else { node_in(place) };
            for frames in frames.chunks(at_once) {
                let mut frames = frames.iter().map(|frame| Frame::from_octets(frame, &mut bench.pool).unwrap()).collect();
                bench.node.receive(bench.now, PortId(0), &mut frames, &mut bench.pool);
            }
            let ports: Vec<_> = (0..3).map(|port| bench.node.port_counters(PortId(port)).cloned()).collect();
            let groups: Vec<_> = bench.node.groups().map(|id| bench.node.group_counters(id)).collect();
            let sids: Vec<_> = bench.node.sid_counters().collect();
            results.push((bench.drain(), ports, groups, sids));
        }
        prop_assert_eq!(&results[0], &results[1]);
    }
}

/// One that meets SIDs of this node again and again ends by its hop limit or by the bound on local segments.
#[test]
fn a_packet_cannot_circle_inside_a_node() {
    let mut bench = node();
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 43, 64];
    packet.extend(address("2001:db8:5::5").octets());
    packet.extend(address("fd00:11::e").octets());
    let segments = 120usize;
    packet.extend([59, 2 * segments as u8, 4, segments as u8, segments as u8 - 1, 0, 0, 0]);
    for _ in 0..segments {
        packet.extend(address("fd00:11::e").octets());
    }
    let payload_length = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&payload_length.to_be_bytes());
    assert_eq!(bench.send(0, &packet), vec![]);
    assert_eq!(bench.drops(0), [("segment_loop", 1)]);
}

/// A node that is on a multicast tree and at its edge: the forwarded copies are not changed by the End.MT here.
#[test]
fn copies_further_down_are_not_edited() {
    let mut packet = golden("scapy_02_endmt_in.pcap").remove(7);
    packet[1] |= 0x30; // congestion experienced
    let inner = packet.len() - golden("scapy_03_endmt_out.pcap")[0].len();
    packet[inner + 1] |= 0x20; // ECN-capable
    let sent = node().send(0, &packet);
    let mut expected = packet.clone();
    expected[7] -= 1;
    for port in [1, 2] {
        assert!(sent.contains(&(port, expected.clone())));
    }
    let copies = sent.iter().filter(|(_, copy)| copy[24] != 0xFF);
    assert_eq!(copies.clone().count(), 2);
    assert!(copies.clone().all(|(_, copy)| copy[1] & 0x30 == 0x30));
}
