//! The node against a slow reference model written from the RFCs, line by line and without code of the node: random
//! packets, some of them damaged, through End and End.X with every flavor, NEXT-CSID of two lengths, End.DT6, End.DX6,
//! End.DT4, End.DT46, End.DX4, End.DX2, H.Encaps, H.Encaps.Red, and policies applied by routes, End.B6.Encaps and
//! End.B6.Encaps.Red.
//!
//! Left out, since the model maps one packet to one packet or frame:
//!
//! * H.Encaps.L2 and H.Encaps.L2.Red, which begin with a frame: `cross_connect.rs` compares them with octets.
//! * End.Replicate and End.MT, which make several packets and have state: `srdma-testkit` has models of their own.
//! * END.C and END.E, which make frames for other ports, or depend on time: the profiles `end-c` and `end-e` of
//!   `srdma conform` have octets of them.
//! * Fragments, which need several packets: `reassembly.rs` and `fragmentation.rs`.
//! * HMAC, IOAM, trimming and borders, which are no part of RFC 8986: each has a file of its own.

use crate::common::{Bench, next_hop};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use srdma_dataplane::{
    Command, EncapsMode, Flavors, NextCsid, NextHop, PolicyId, RouteAction, SegmentList, SidBehavior, SrPolicy, TableId,
};
use srdma_frame::PortId;
use srdma_testkit::forwarding::{self, Action, Outcome, Outer, Route};
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

const LOOPBACK: &str = "2001:db8:ffff::1";

const END_DX2: &str = "fd00:1::d2";

/// The port of the frames that End.DX2 takes out of packets. No route leads there.
const FRAMES: usize = 3;

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// Routes of the node and the model: destination, action.
fn routes() -> Vec<(&'static str, u8, Action)> {
    let none = forwarding::Flavors::default();
    let micro = forwarding::Flavors { psp: true, usd: true, next_csid: Some((4, 2)), ..none };
    let long = forwarding::Flavors { usp: true, next_csid: Some((6, 4)), ..none };
    let outer = |segments: &[&str], reduced| Outer {
        source: address(LOOPBACK),
        segments: segments.iter().map(|segment| address(segment)).collect(),
        reduced,
    };
    let encaps = |segments: &[&str], reduced| Action::Encaps(outer(segments, reduced));
    let applied = |segments: &[&str], reduced| Action::EndB6Encaps(outer(segments, reduced));
    vec![
        ("2001:db8:1::", 48, Action::Via(1)),
        ("2001:db8:1:2::", 64, Action::Via(2)),
        ("2001:db8:1:2::3", 128, Action::Via(0)),
        ("fd00:1::e", 128, Action::End(none)),
        ("fd00:1::f", 128, Action::End(forwarding::Flavors { psp: true, ..none })),
        ("fd00:1::10", 128, Action::End(forwarding::Flavors { usp: true, ..none })),
        ("fd00:1::11", 128, Action::End(forwarding::Flavors { usd: true, ..none })),
        ("fd00:1::12", 128, Action::End(forwarding::Flavors { psp: true, usp: true, usd: true, ..none })),
        ("fd00:1::a", 128, Action::EndX(none, 2)),
        ("fd00:1::b", 128, Action::EndX(micro, 1)),
        ("fd00:1::1a", 128, Action::EndX(forwarding::Flavors { psp: true, ..none }, 1)),
        ("fd00:1::1b", 128, Action::EndX(forwarding::Flavors { usp: true, usd: true, ..none }, 2)),
        ("fd00:2:3:4:5::", 80, Action::End(long)),
        ("fd00:2:3:6:7::", 80, Action::EndX(long, 1)),
        ("fd00:1::d6", 128, Action::EndDt6(0)),
        ("fd00:1::d7", 128, Action::EndDt6(1)),
        ("fd00:1::d8", 128, Action::EndDx6(2)),
        ("fd00:1::d4", 128, Action::EndDt4(0)),
        ("fd00:1::d5", 128, Action::EndDt46(1)),
        ("fd00:1::d9", 128, Action::EndDx4(2)),
        (END_DX2, 128, Action::EndDx2(FRAMES)),
        ("::ffff:10.1.0.0", 112, Action::Via(1)),
        ("::ffff:10.2.0.0", 112, encaps(&["5f00:0:200::"], true)),
        ("::ffff:10.3.0.0", 112, encaps(&["fd00:1::e", "fd00:1::d9"], false)),
        ("fd00:1::b6", 128, applied(&["5f00:0:200::", "2001:db8:9::9"], false)),
        ("fd00:1::b7", 128, applied(&["fd00:1::e", "5f00:0:200::"], true)),
        ("fd00:1::b8", 128, applied(&["5f00:0:200::"], true)),
        ("5f00:0:100::", 48, Action::End(micro)),
        ("5f00:0:e000::", 48, Action::EndX(micro, 2)),
        ("5f00:0:200::", 48, Action::Via(1)),
        ("2001:db8:e::", 48, encaps(&["5f00:0:200::"], true)),
        ("2001:db8:e:1::", 64, encaps(&["5f00:0:200::"], false)),
        ("2001:db8:e:2::", 64, encaps(&["fd00:1::e", "5f00:0:200::", "2001:db8:1::9"], true)),
        ("2001:db8:e:3::", 64, encaps(&["fd00:1::f", "2001:db8:1:2::7"], false)),
        (BY_POLICY[0], 64, encaps(&["fd00:1::e", "5f00:0:200::"], true)),
        (BY_POLICY[1], 64, encaps(&["fd00:1::a", "2001:db8:9::9", "2001:db8:9::9"], false)),
    ]
}

/// Routes whose action is an SR policy with one segment list.
const BY_POLICY: [&str; 2] = ["2001:db8:e:4::", "2001:db8:e:5::"];

/// An SR policy with the segment list of these headers, and its mode.
fn policy(bench: &mut Bench, number: u32, outer: Outer) -> (PolicyId, EncapsMode) {
    let lists = vec![SegmentList { segments: outer.segments, weight: 1 + number }];
    let policy = Box::new(SrPolicy { lists, hmac_key_id: None });
    bench.apply(Command::AddPolicy { id: PolicyId(number), policy });
    (PolicyId(number), mode(outer.reduced))
}

fn mode(reduced: bool) -> EncapsMode {
    if reduced { EncapsMode::Reduced } else { EncapsMode::Encaps }
}

/// The IPv4 neighbour at a port, to whose own address no packet goes.
fn ipv4_hop(port: usize) -> NextHop {
    NextHop { port: PortId(port as u16), address: address(&format!("::ffff:192.0.2.{}", port + 1)) }
}

fn bench() -> Bench {
    let mut bench = Bench::new(LOOPBACK, FRAMES as u16 + 1);
    for port in 1..3 {
        let mac = MacAddress([2, 0, 0, 0, 1, port]);
        bench.apply(Command::AddNeighbour { next_hop: ipv4_hop(port.into()), mac });
    }
    for (number, (text, len, action)) in (0..).zip(routes()) {
        let prefix = Prefix::new(address(text), len).unwrap();
        let command = match action {
            Action::Via(port) if prefix.is_ipv4() => {
                let action = RouteAction::Via(vec![ipv4_hop(port)]);
                Command::AddRoute { table: TableId(0), prefix, action }
            }
            Action::Via(port) => {
                let action = RouteAction::Via(vec![next_hop(port as u16)]);
                Command::AddRoute { table: TableId(0), prefix, action }
            }
            Action::End(flavors) => Command::AddSid { prefix, behavior: SidBehavior::End(own(flavors)) },
            Action::EndX(flavors, port) => {
                Command::AddSid { prefix, behavior: SidBehavior::EndX(own(flavors), next_hop(port as u16)) }
            }
            Action::EndDt6(table) => Command::AddSid { prefix, behavior: SidBehavior::EndDt6(TableId(table as u16)) },
            Action::EndDt4(table) => Command::AddSid { prefix, behavior: SidBehavior::EndDt4(TableId(table as u16)) },
            Action::EndDt46(table) => Command::AddSid { prefix, behavior: SidBehavior::EndDt46(TableId(table as u16)) },
            Action::EndDx4(port) => {
                let behavior = SidBehavior::EndDx4 { next_hop: ipv4_hop(port), table: TableId(1) };
                Command::AddSid { prefix, behavior }
            }
            Action::EndDx2(port) => Command::AddSid { prefix, behavior: SidBehavior::EndDx2(PortId(port as u16)) },
            Action::EndDx6(port) => {
                let behavior = SidBehavior::EndDx6 { next_hop: next_hop(port as u16), table: TableId(1) };
                Command::AddSid { prefix, behavior }
            }
            Action::Encaps(outer) if BY_POLICY.contains(&text) => {
                let (policy, mode) = policy(&mut bench, number, outer);
                Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Policy { policy, mode } }
            }
            Action::Encaps(Outer { segments, reduced, .. }) => {
                let action = RouteAction::Encaps { segments, mode: mode(reduced), hmac_key_id: None };
                Command::AddRoute { table: TableId(0), prefix, action }
            }
            Action::EndB6Encaps(outer) => {
                let (policy, mode) = policy(&mut bench, number, outer);
                Command::AddSid { prefix, behavior: SidBehavior::EndB6Encaps { policy, mode } }
            }
        };
        bench.apply(command);
    }
    let prefix = Prefix::new(address("2001:db8:1::"), 48).unwrap();
    let action = RouteAction::Via(vec![next_hop(2)]);
    bench.apply(Command::AddRoute { table: TableId(1), prefix, action });
    bench
}

fn own(flavors: forwarding::Flavors) -> Flavors {
    let bits = |octets: usize| 8 * octets as u8;
    let next_csid = flavors.next_csid;
    let next_csid = next_csid.map(|(block, csid)| NextCsid { block_bits: bits(block), csid_bits: bits(csid) });
    Flavors { psp: flavors.psp, usp: flavors.usp, usd: flavors.usd, next_csid }
}

fn tables() -> Vec<Vec<Route>> {
    let route = |(text, len, action)| Route { address: address(text), len, action };
    let other = vec![Route { address: address("2001:db8:1::"), len: 48, action: Action::Via(2) }];
    vec![routes().into_iter().map(route).collect(), other]
}

const DESTINATIONS: &[&str] = &[
    "2001:db8:1::77",
    "2001:db8:1:2::3",
    "2001:db8:1:2::4",
    "2001:db8:9::1",
    "fd00:1::e",
    "fd00:1::f",
    "fd00:1::10",
    "fd00:1::11",
    "fd00:1::12",
    "fd00:1::a",
    "fd00:1::b",
    "fd00:1::1a",
    "fd00:1::1b",
    "fd00:2:3:4:5::",
    "fd00:2:3:4:5:6:7:0",
    "fd00:2:3:6:7:4:5:1",
    "fd00:1::d6",
    "fd00:1::d7",
    "fd00:1::d8",
    "fd00:1::d4",
    "fd00:1::d5",
    "fd00:1::d9",
    END_DX2,
    "fd00:1::b6",
    "fd00:1::b7",
    "fd00:1::b8",
    "5f00:0:100::",
    "5f00:0:100:200::",
    "5f00:0:100:e000:200::",
    "5f00:0:e000:200::",
    "5f00:0:e000::",
    "2001:db8:e::5",
    "2001:db8:e:1::5",
    "2001:db8:e:2::5",
    "2001:db8:e:3::5",
    "2001:db8:e:4::5",
    "2001:db8:e:5::5",
];

fn any_destination() -> impl Strategy<Value = Ipv6Addr> {
    prop::sample::select(DESTINATIONS).prop_map(address)
}

fn ipv6(destination: Ipv6Addr, next_header: u8, hop_limit: u8, ecn: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, ecn << 4, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, hop_limit]);
    packet.extend(address("2001:db8:5::5").octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

/// An IPv4 packet to 10.0.0.0/8, perhaps with an octet of its header changed afterwards.
fn ipv4(second: u8, tos: u8, ttl: u8, damage: Option<(usize, u8)>) -> Vec<u8> {
    let mut packet = vec![0x45, tos, 0, 28, 0, 1, 0x40, 0, ttl, 17, 0, 0, 10, 9, 0, 1, 10, second, 0, 7];
    let sum: u32 = packet.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
    packet.extend([9; 8]);
    if let Some((at, octet)) = damage {
        packet[at] = octet;
    }
    packet
}

/// An options header, mostly of Destination Options, and the type of its option: mostly padding.
fn any_option() -> impl Strategy<Value = (u8, u8)> {
    let kind = prop_oneof![3 => Just(60u8), 1 => Just(0u8)];
    (kind, prop_oneof![6 => Just(1u8), 1 => prop::sample::select(&[0x1E, 0x31, 0x5E, 0x9E, 0xDE][..])])
}

/// The octets of an Ethernet frame, perhaps too few for its header.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let ethertype = prop::sample::select(&[[0x86, 0xDD], [8, 0], [8, 6], [0x81, 0], [0x81, 0x37], [0, 46]][..]);
    (any::<[u8; 12]>(), ethertype, prop::collection::vec(any::<u8>(), 0..60), prop::option::weighted(0.2, 0usize..20))
        .prop_map(|(addresses, ethertype, payload, len)| {
            let mut frame = [&addresses[..], &ethertype, &payload].concat();
            frame.truncate(len.unwrap_or(frame.len()));
            frame
        })
}

prop_compose! {
    /// A packet of the shapes that nodes meet: perhaps an options header, perhaps an SRH or two, perhaps an inner
    /// packet or frame. Every second one with a frame is for End.DX2.
    fn any_packet()(
        destination in any_destination(),
        segments in prop::collection::vec(any_destination(), 0..4),
        left in 0u8..5,
        inner in prop::option::of((any_destination(), 0u8..4, prop::sample::select(&[1u8, 2, 64][..]))),
        inner_ipv4 in prop::option::weighted(0.3, (
            1u8..5,
            any::<u8>(),
            prop::sample::select(&[1u8, 2, 64][..]),
            prop::option::weighted(0.2, (0usize..20, any::<u8>())),
        )),
        inner_frame in prop::option::weighted(0.3, (any_frame(), any::<bool>())),
        options in prop::option::of(any_option()),
        options_behind in prop::option::of(any_option()),
        second_left in prop::option::of(0u8..3),
        padded in prop::bool::weighted(0.25),
        hop_limit in prop::sample::select(&[0u8, 1, 2, 64][..]),
        ecn in 0u8..4,
        // Not 58: a packet that claims to be an ICMPv6 error is never answered by one. Not 44: fragments are put together.
        damage in prop::collection::vec(
            (40usize..48, prop_oneof![0u8..6, any::<u8>()].prop_filter("ICMPv6", |value| ![44, 58].contains(value))),
            0..3,
        ),
    ) -> Vec<u8> {
        let destination = match (&inner_ipv4, &inner_frame) {
            (None, Some((_, true))) => address(END_DX2),
            _ => destination,
        };
        let (mut body, mut kind) = match (inner_ipv4, inner_frame, inner) {
            (Some((second, tos, ttl, damage)), _, _) => (ipv4(second, tos, ttl, damage), 4),
            (None, Some((frame, _)), _) => (frame, 143),
            (None, None, Some((destination, ecn, hop_limit))) => (ipv6(destination, 59, hop_limit, ecn, &[7; 11]), 41),
            (None, None, None) => (vec![5; 8], 59),
        };
        let with_options = |header: (u8, u8), kind: u8, body: Vec<u8>| {
            ([&[kind, 0, header.1, 4, 0, 0, 0, 0], &body[..]].concat(), header.0)
        };
        if let Some(header) = options_behind {
            (body, kind) = with_options(header, kind, body);
        }
        if let (Some(left), Some(segment)) = (second_left, segments.first()) {
            (body, kind) = ([&[kind, 2, 4, left, 0, 0, 0, 0], &segment.octets()[..], &body].concat(), 43);
        }
        if !segments.is_empty() {
            let eights = 2 * segments.len() as u8 + u8::from(padded);
            let mut srh = vec![kind, eights, 4, left, segments.len() as u8 - 1, 0, 0, 0];
            srh.extend(segments.iter().flat_map(|segment| segment.octets()));
            // PadN of RFC 8754 section 2.1.1.2.
            srh.extend([4, 6, 0, 0, 0, 0, 0, 0].iter().take(8 * usize::from(padded)));
            srh.extend(body);
            (body, kind) = (srh, 43);
        }
        if let Some(header) = options {
            (body, kind) = with_options(header, kind, body);
        }
        let mut packet = ipv6(destination, kind, hop_limit, ecn, &body);
        for (at, value) in damage {
            if let Some(octet) = packet.get_mut(at) {
                *octet = value;
            }
        }
        packet
    }
}

/// Sends a packet to a port; returns what leaves, port by port: packets, and the whole frames of the port for them.
fn pass(bench: &mut Bench, port: u16, packet: &[u8]) -> Vec<(usize, Vec<u8>)> {
    bench.give_in(port, packet);
    let frames: Vec<_> = std::iter::from_fn(|| bench.give_out(PortId(FRAMES as u16))).collect();
    let packets = bench.drain().into_iter().map(|(port, packet)| (usize::from(port), packet));
    packets.chain(frames.into_iter().map(|frame| (FRAMES, frame))).collect()
}

/// The flow label that an encapsulating node chooses is its own affair.
fn without_outer_flow_label(mut packet: Vec<u8>, encapsulated: bool) -> Vec<u8> {
    if encapsulated {
        packet[1] &= 0xF0;
        packet[2] = 0;
        packet[3] = 0;
    }
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_node_equals_the_reference_of_the_rfcs(packet in any_packet()) {
        let mut bench = bench();
        let expected = forwarding::forward(&tables(), &packet);
        let sent = pass(&mut bench, 0, &packet);
        match expected {
            Outcome::Sent(next_hop, octets) => {
                prop_assert_eq!(sent.len(), 1, "drops: {:?}", bench.drops(0));
                let is_packet = sent[0].0 != FRAMES;
                let own = is_packet && sent[0].1[0] >> 4 == 6 && sent[0].1[8..24] == address(LOOPBACK).octets();
                prop_assert_eq!(sent[0].0, next_hop);
                prop_assert_eq!(without_outer_flow_label(sent[0].1.clone(), own), octets);
            }
            // No route leads back to the packet's source, so that errors are counted and not seen here.
            Outcome::Error(..) | Outcome::Dropped => {
                prop_assert!(sent.is_empty(), "{:?}", sent);
                prop_assert_eq!(bench.drops(0).iter().map(|(_, count)| count).sum::<u64>(), 1);
            }
        }
    }

    #[test]
    fn errors_are_reported_as_in_the_rfcs(packet in any_packet()) {
        let mut bench = bench();
        let prefix = Prefix::new(address("2001:db8:5::"), 48).unwrap();
        let mut tables = tables();
        // An error is routed by the table of the packet that it is about.
        for (table, routes) in (0..).zip(&mut tables) {
            let action = RouteAction::Via(vec![next_hop(0)]);
            bench.apply(Command::AddRoute { table: TableId(table), prefix, action });
            routes.push(Route { address: prefix.address(), len: 48, action: Action::Via(0) });
        }
        let sent = pass(&mut bench, 1, &packet);
        if let Outcome::Error(kind, code, parameter, about) = forwarding::forward(&tables, &packet) {
            if about[8..14] != address("2001:db8:5::").octets()[..6] {
                // The node's own packet, or one whose source was damaged.
                return Ok(());
            }
            prop_assert_eq!(sent.len(), 1, "drops: {:?}", bench.drops(1));
            let error = &sent[0].1;
            prop_assert_eq!(&error[48..], &about[..about.len().min(1280 - 48)]);
            prop_assert_eq!(sent[0].0, 0);
            prop_assert_eq!(&error[8..24], &address(LOOPBACK).octets());
            prop_assert_eq!(&error[24..40], &about[8..24]);
            prop_assert_eq!((error[6], error[40], error[41]), (58, kind, code));
            prop_assert_eq!(&error[44..48], &parameter.to_be_bytes());
            prop_assert_eq!(icmp_sum(error), 0xFFFF);
        }
    }
}

/// The random packets have frames in SRv6 that leave whole, with an SRH and without one, and some that end within the
/// frame's header: the arm of End.DX2 is not empty.
#[test]
fn random_packets_reach_end_dx2() {
    let mut runner = TestRunner::deterministic();
    let packets = (0..20_000).map(|_| any_packet().new_tree(&mut runner).expect("a packet").current());
    let (mut whole, mut behind_srh, mut too_short) = (0, 0, 0);
    for packet in packets.filter(|packet| packet[24..40] == address(END_DX2).octets()) {
        match forwarding::forward(&tables(), &packet) {
            Outcome::Sent(FRAMES, _) if packet[6] == 43 => behind_srh += 1,
            Outcome::Sent(FRAMES, _) => whole += 1,
            Outcome::Dropped if packet[6] == 143 => too_short += 1,
            Outcome::Sent(..) | Outcome::Error(..) | Outcome::Dropped => {}
        }
    }
    assert!(whole > 100 && behind_srh > 20 && too_short > 5, "{whole}, {behind_srh}, {too_short}");
}

/// One's complement sum over pseudo-header and message, checksum included.
fn icmp_sum(packet: &[u8]) -> u16 {
    let mut covered = packet[8..40].to_vec();
    covered.extend(((packet.len() - 40) as u32).to_be_bytes());
    covered.extend([0, 0, 0, 58]);
    covered.extend(&packet[40..]);
    covered.resize(covered.len().next_multiple_of(2), 0);
    let mut sum: u32 = covered.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}
