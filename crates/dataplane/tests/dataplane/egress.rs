//! Traffic classes of a port: order, shares, limits, ECN marks; and the ECN field through tunnels (RFC 6040).

use crate::common::group::EDGE;
use crate::common::{Bench, golden, next_hop, port_mac};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_wire::ipv6::Ecn;
use srdma_wire::{Ipv6View, Prefix, View};
use std::net::Ipv6Addr;

const OUT: PortId = PortId(1);

fn bench(egress: EgressConfig) -> Bench {
    bench_with_seed(egress, 0)
}

fn bench_with_seed(egress: EgressConfig, seed: u64) -> Bench {
    let mut bench = Bench::with("2001:db8:ff::1", 2, |config| config.marking_seed = seed);
    let prefix = Prefix::new("2001:db8:2::".parse().unwrap(), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(OUT.0)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    bench.apply(Command::SetEgress { port: OUT, egress: Box::new(egress) });
    bench
}

/// A packet of so many octets with Ethernet header, in this class and with this ECN field.
fn frame(class: u8, ecn: Ecn, octets: usize) -> Vec<u8> {
    let mut frame = port_mac(0).0.to_vec();
    frame.extend([2, 0, 0, 0, 1, 0, 0x86, 0xDD]);
    frame.extend([0x60 | class << 1, (ecn as u8) << 4, 0, 0]);
    frame.extend(((octets - 54) as u16).to_be_bytes());
    frame.extend([59, 64]);
    frame.extend("2001:db8:1::1".parse::<Ipv6Addr>().unwrap().octets());
    frame.extend("2001:db8:2::1".parse::<Ipv6Addr>().unwrap().octets());
    frame.resize(octets, 0);
    frame
}

fn take_in(bench: &mut Bench, octets: &[u8]) {
    let frame = Frame::from_octets(octets, &mut bench.pool).unwrap();
    bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
}

/// Sent packets: class and ECN field of each.
fn sent(bench: &mut Bench) -> Vec<(u8, Ecn)> {
    let of = |packet: &[u8]| (packet[0] >> 1 & 7, Ipv6View::split(packet).unwrap().0.ecn());
    bench.drain().iter().map(|(_, packet)| of(packet)).collect()
}

fn classes(bench: &mut Bench) -> Vec<u8> {
    sent(bench).into_iter().map(|(class, _)| class).collect()
}

#[test]
fn strict_classes_overtake_and_each_class_is_in_order() {
    let mut bench = bench(EgressConfig::new(100_000_000_000, 1 << 20));
    for class in [0, 5, 0, 7, 5, 1] {
        take_in(&mut bench, &frame(class, Ecn::NotEct, 100));
    }
    assert_eq!(classes(&mut bench), [7, 5, 5, 1, 0, 0]);
}

#[test]
fn weights_share_the_rate_that_strict_classes_leave() {
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[0].scheduling = Scheduling::Weighted { quantum_octets: 1000 };
    egress.classes[3].scheduling = Scheduling::Weighted { quantum_octets: 3000 };
    let mut bench = bench(egress);
    for class in [0, 3].repeat(200) {
        take_in(&mut bench, &frame(class, Ecn::NotEct, 500));
    }
    take_in(&mut bench, &frame(6, Ecn::NotEct, 500));
    let classes = classes(&mut bench);
    let first = &classes[1..161];
    assert_eq!((classes[0], first.iter().filter(|class| **class == 3).count()), (6, 120));
}

/// A class that is full drops; others have their own limits. Frames queued before the classes were set are sent first.
#[test]
fn limits_are_those_of_the_classes() {
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[2].limit_octets = 1000;
    let mut bench = bench(egress.clone());
    for _ in 0..3 {
        take_in(&mut bench, &frame(2, Ecn::NotEct, 500));
    }
    take_in(&mut bench, &frame(1, Ecn::NotEct, 500));
    assert_eq!(bench.drops(0), [("queue_full", 1)]);
    let counters = bench.node.class_counters(OUT, 2).unwrap();
    assert_eq!((counters.full_drops, counters.peak_octets), (1, 1000));
    assert_eq!(classes(&mut bench), [2, 2, 1]);

    let mut late = Bench::new("2001:db8:ff::1", 2);
    let prefix = Prefix::new("2001:db8:2::".parse().unwrap(), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(OUT.0)]);
    late.apply(Command::AddRoute { table: TableId(0), prefix, action });
    late.apply(Command::SetClasses(ClassMap::by_precedence()));
    take_in(&mut late, &frame(1, Ecn::NotEct, 500));
    late.apply(Command::SetEgress { port: OUT, egress: Box::new(egress) });
    take_in(&mut late, &frame(7, Ecn::NotEct, 500));
    assert_eq!(classes(&mut late), [1, 7]);
}

/// Classes come and go while frames wait: all of them leave, and no account is left behind.
#[test]
fn a_port_may_have_one_queue_again() {
    let mut bench = bench(EgressConfig::new(100_000_000_000, 1 << 20));
    let classes_of = |port| {
        let egress = Box::new(EgressConfig::new(100_000_000_000, 1 << 20));
        Command::SetEgress { port, egress }
    };
    bench.apply(classes_of(PortId(0)));
    for class in [1, 3, 2] {
        take_in(&mut bench, &frame(class, Ecn::NotEct, 100));
    }
    assert_eq!(bench.node.ingress_octets(PortId(0), 3), Some(100));
    bench.apply(Command::RemoveEgress(PortId(0)));
    bench.apply(classes_of(PortId(0)));
    assert_eq!(bench.node.ingress_octets(PortId(0), 3), Some(0));
    bench.apply(Command::RemoveEgress(OUT));
    take_in(&mut bench, &frame(7, Ecn::NotEct, 100));
    assert_eq!((bench.node.class_counters(OUT, 3), bench.node.buffered_octets()), (None, 0));
    assert_eq!(classes(&mut bench), [3, 2, 1, 7]);
    assert_eq!(bench.node.ingress_octets(PortId(0), 3), Some(0));
}

#[test]
fn invalid_settings_are_refused_with_their_port() {
    let mut bench = bench(EgressConfig::new(1, 1));
    let mut refused = |port, rate| {
        let egress = Box::new(EgressConfig::new(rate, 1));
        bench.node.apply(Command::SetEgress { port: PortId(port), egress }).unwrap_err().to_string()
    };
    assert_eq!(refused(1, 0), "egress of port 1: the rate of the link is 0; give it in bits a second");
    assert_eq!(refused(7, 1), "port 7 does not exist, the node has 2");
}

fn marking(k_min_octets: usize, k_max_octets: usize, p_max: f64) -> EgressConfig {
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[3].marking = Some(Marking { k_min_octets, k_max_octets, p_max });
    egress
}

/// Beyond Kmax every ECN-capable packet is marked, and no other (FC-4-5).
#[test]
fn packets_that_can_be_marked_are() {
    let mut bench = bench(marking(1000, 1000, 1.0));
    for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce] {
        take_in(&mut bench, &frame(3, ecn, 500));
    }
    take_in(&mut bench, &frame(2, Ecn::Ect0, 500));
    let expected = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::NotEct, Ecn::Ce].map(|ecn| (3, ecn));
    assert_eq!(sent(&mut bench), [&expected[..], &[(2, Ecn::Ect0)]].concat());
    assert_eq!(bench.node.class_counters(OUT, 3).unwrap().marks, 2);
}

/// Between Kmin and Kmax chance decides: the same for the same seed.
#[test]
fn the_same_seed_marks_the_same_packets() {
    let marks = |seed| {
        let mut bench = bench_with_seed(marking(0, 400_000, 0.5), seed);
        (0..400).for_each(|_| take_in(&mut bench, &frame(3, Ecn::Ect0, 1000)));
        sent(&mut bench)
    };
    let first = marks(7);
    assert_eq!(first, marks(7));
    assert_ne!(first, marks(8));
    // The depth rises in a line to Kmax: half of Pmax on average, 100 of 400, give or take 4 deviations.
    let count = first.iter().filter(|(_, ecn)| *ecn == Ecn::Ce).count();
    assert!((65..=135).contains(&count), "{count} of 400");
}

/// RFC 6040 figure 4, by the outer field: the inner field as it leaves, `None` for a drop.
fn figure_4() -> Vec<(Ecn, Ecn, Option<Ecn>)> {
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    let rows = [
        (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
        (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
        (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
        (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
    ];
    let cells = |(inner, row): (Ecn, [Option<Ecn>; 4])| {
        [NotEct, Ect0, Ect1, Ce].into_iter().zip(row).map(move |(outer, result)| (inner, outer, result))
    };
    rows.into_iter().flat_map(cells).collect()
}

fn with_ecn(packet: &[u8], outer: Ecn, inner: Ecn, inner_at: usize) -> Vec<u8> {
    let mut packet = packet.to_vec();
    for (at, ecn) in [(0, outer), (inner_at, inner)] {
        Ipv6View::split_mut(&mut packet[at..]).unwrap().0.set_ecn(ecn);
    }
    packet
}

/// Sends each pair of ECN fields through a node that strips the outer header, and compares what leaves.
fn decapsulates(bench: &mut Bench, packet: &[u8], inner_at: usize) {
    for (number, (inner, outer, expected)) in figure_4().into_iter().enumerate() {
        let sent = bench.send(0, &with_ecn(packet, outer, inner, inner_at));
        let found: Vec<Ecn> = sent.iter().map(|(_, packet)| Ipv6View::split(packet).unwrap().0.ecn()).collect();
        match expected {
            Some(ecn) => {
                assert!(!found.is_empty(), "inner {inner:?}, outer {outer:?}: {:?}", bench.drops(0));
                assert!(found.iter().all(|found| *found == ecn), "inner {inner:?}, outer {outer:?}: {found:?}");
            }
            None => {
                assert!(found.is_empty(), "inner {inner:?}, outer {outer:?}");
                assert_eq!((number, bench.drops(0)), (3, vec![("congestion_experienced", 1)]));
            }
        }
    }
}

fn tunnel(next_sid: &str) -> Vec<u8> {
    let mut outer = vec![0x60, 0, 0, 0, 0, 40, 41, 64];
    outer.extend("2001:db8:1::1".parse::<Ipv6Addr>().unwrap().octets());
    outer.extend(next_sid.parse::<Ipv6Addr>().unwrap().octets());
    outer.extend(&frame(0, Ecn::NotEct, 54)[14..]);
    outer
}

/// RFC 6040 at End.DT6 and at uN with USD.
#[test]
fn ecn_fields_merge_where_tunnels_end() {
    for behavior in [SidBehavior::EndDt6(TableId(0)), SidBehavior::End(Flavors::MICRO)] {
        let mut bench = bench(EgressConfig::new(1, 1 << 20));
        let prefix = Prefix::new("5f00:0:100::".parse().unwrap(), 48).unwrap();
        bench.apply(Command::AddSid { prefix, behavior });
        decapsulates(&mut bench, &tunnel("5f00:0:100::"), 40);
    }
}

/// RFC 6040 at End.MT: each copy has the merged field.
#[test]
fn ecn_fields_merge_at_end_mt() {
    let packet = golden("scapy_02_endmt_in.pcap").remove(0);
    let outer = Ipv6View::split(&packet).unwrap().0;
    let sid = Prefix::host(outer.destination());
    let srh_octets = 8 + 8 * usize::from(packet[41]);
    let mut bench = Bench::new(EDGE, 2);
    for copy in golden("scapy_03_endmt_out.pcap") {
        let prefix = Prefix::host(Ipv6View::split(&copy).unwrap().0.destination());
        let action = RouteAction::Via(vec![next_hop(1)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    bench.apply(Command::AddSid { prefix: sid, behavior: SidBehavior::EndMt { require_hmac: false } });
    decapsulates(&mut bench, &packet, 40 + srh_octets);
}

/// RFC 6040 section 4.1, normal mode: the outer field is the inner one.
#[test]
fn ecn_fields_are_copied_outward() {
    let mut bench = bench(EgressConfig::new(1, 1 << 20));
    let segments = vec!["2001:db8:2::9".parse().unwrap()];
    let action = RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None };
    let prefix = Prefix::new("2001:db8:7::".parse().unwrap(), 64).unwrap();
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let mut packet = frame(5, ecn, 60)[14..].to_vec();
        packet[24..40].copy_from_slice(&"2001:db8:7::1".parse::<Ipv6Addr>().unwrap().octets());
        let (_, sent) = bench.send(0, &packet).remove(0);
        let traffic_class = |at: usize| [sent[at], sent[at + 1] & 0xF0];
        assert_eq!(traffic_class(0), traffic_class(40));
        assert_eq!(Ipv6View::split(&sent).unwrap().0.ecn(), ecn);
    }
}

/// An outer mark of this node comes out of the tunnel at the next one.
#[test]
fn a_mark_survives_its_tunnel() {
    let mut first = bench(marking(0, 0, 1.0));
    let segments = vec!["2001:db8:2::9".parse().unwrap()];
    let action = RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None };
    let prefix = Prefix::new("2001:db8:7::".parse().unwrap(), 64).unwrap();
    first.apply(Command::AddRoute { table: TableId(0), prefix, action });
    for _ in 0..2 {
        let mut octets = frame(3, Ecn::Ect0, 60);
        octets[38..54].copy_from_slice(&"2001:db8:7::1".parse::<Ipv6Addr>().unwrap().octets());
        take_in(&mut first, &octets);
    }
    let (_, marked) = first.drain().remove(1);
    let mut second = Bench::new("2001:db8:fe::1", 2);
    let prefix = Prefix::host("2001:db8:2::9".parse().unwrap());
    second.apply(Command::AddSid { prefix, behavior: SidBehavior::EndDt6(TableId(0)) });
    let prefix = Prefix::new("2001:db8:7::".parse().unwrap(), 64).unwrap();
    let action = RouteAction::Via(vec![next_hop(1)]);
    second.apply(Command::AddRoute { table: TableId(0), prefix, action });
    let (_, inner) = second.send(0, &marked).remove(0);
    assert_eq!(Ipv6View::split(&inner).unwrap().0.ecn(), Ecn::Ce);
}
