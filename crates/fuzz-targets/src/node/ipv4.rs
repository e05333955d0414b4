//! IPv4 packets and what nodes have for them (D258): routes, SIDs, and checks of what leaves.

use super::world::{PORTS, World, neighbour_mac};
use crate::choices::Choices;
use srdma_dataplane::*;
use srdma_frame::PortId;
use srdma_wire::Prefix;
use std::net::{Ipv4Addr, Ipv6Addr};

/// SIDs, in 5f00::/32: End.DT4 of the main table and of another one, End.DT46, End.DX4.
pub(super) const SIDS: [Ipv6Addr; 4] = [sid(1), sid(2), sid(3), sid(4)];

const fn sid(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x5f00, 0, 0xd400, number, 0, 0, 0, 0)
}

/// The second octet of destinations in 10.0.0.0/8, and where they lead.
const PLAIN: u8 = 1;
const NARROW: u8 = 2;
const SEVERAL: u8 = 3;
const TUNNELLED: u8 = 4;
const LOOPED: u8 = 5;
const BLACKHOLE: u8 = 6;
const UNRESOLVED: u8 = 7;
/// The node itself.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

/// A table beside the main one.
const OTHER: TableId = TableId(5);

fn next_hop(port: u16) -> NextHop {
    NextHop { port: PortId(port), address: Ipv4Addr::new(192, 0, 2, port as u8 + 1).to_ipv6_mapped() }
}

impl World {
    /// Neighbours, routes and SIDs of IPv4.
    pub(super) fn add_ipv4(&mut self) {
        for port in 0..PORTS {
            self.apply(Command::AddNeighbour { next_hop: next_hop(port), mac: neighbour_mac(port) });
        }
        let via = |ports: &[u16]| RouteAction::Via(ports.iter().map(|port| next_hop(*port)).collect());
        let encaps = |segments: &[Ipv6Addr]| {
            let segments = segments.to_vec();
            RouteAction::Encaps { segments, mode: EncapsMode::Encaps, hmac_key_id: None }
        };
        let far = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1);
        let unresolved = NextHop { port: PortId(1), address: Ipv4Addr::new(192, 0, 2, 99).to_ipv6_mapped() };
        for table in [TableId(0), OTHER] {
            for (second, action) in [
                (PLAIN, via(&[1])),
                (NARROW, via(&[3])),
                (SEVERAL, via(&[1, 2])),
                (TUNNELLED, encaps(&[far, far])),
                (LOOPED, encaps(&[SIDS[usize::from(table == OTHER)]])),
                (BLACKHOLE, RouteAction::Blackhole),
                (UNRESOLVED, RouteAction::Via(vec![unresolved])),
                (0, via(&[0])),
            ] {
                let prefix = Prefix::of_ipv4(Ipv4Addr::new(10, second, 0, 0), 16).expect("a length");
                self.apply(Command::AddRoute { table, prefix, action });
            }
        }
        let behaviors = [
            SidBehavior::EndDt4(TableId(0)),
            SidBehavior::EndDt4(OTHER),
            SidBehavior::EndDt46(OTHER),
            SidBehavior::EndDx4 { next_hop: next_hop(2), table: OTHER },
        ];
        for (sid, behavior) in SIDS.into_iter().zip(behaviors) {
            self.apply(Command::AddSid { prefix: Prefix::host(sid), behavior });
        }
    }
}

/// Appends an IPv4 packet, most with a right header.
pub(super) fn packet(choices: &mut Choices<'_>, into: &mut Vec<u8>) {
    let at = into.len();
    let (form, protocol) = (choices.octet(), choices.of(&[17, 6, 1, 253]));
    let options = if form & 7 == 7 { 4 * (1 + choices.below(10)) } else { 0 };
    let data = match form >> 5 {
        0..=4 => choices.below(64),
        5 | 6 => choices.below(2000),
        _ => choices.below(4500),
    };
    let ttl = if form & 8 == 0 { 64 } else { choices.octet() & 3 };
    let fragment = if form & 16 == 0 { choices.of(&[0x4000_u16, 0]) } else { choices.u16() };
    into.extend([0x45 + (options / 4) as u8, choices.octet()]);
    into.extend(((20 + options + data) as u16).to_be_bytes());
    into.extend([0, 1]);
    into.extend(fragment.to_be_bytes());
    into.extend([ttl, protocol, 0, 0, 10, choices.octet() & 1, 0, 9]);
    let destination = match choices.octet() {
        0 => OWN,
        1 => Ipv4Addr::from(choices.u32()),
        octet => Ipv4Addr::new(10, 1 + octet % 8, 0, octet),
    };
    into.extend(destination.octets());
    into.extend(choices.octets(options));
    into.resize(at + 20 + options, 0);
    let header = at..into.len();
    let checksum = !sum(&into[header]);
    into[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
    into.resize(at + 20 + options + data, 0x5A);
    if choices.rarely(16) {
        let place = at + choices.below(20);
        into[place] = choices.octet();
    }
}

/// The sum of words (RFC 1071).
fn sum(octets: &[u8]) -> u16 {
    let words = octets.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// An IPv4 packet that leaves is whole: lengths and checksum are right, it has hops left, and goes to a single host.
pub(super) fn is_whole(packet: &[u8]) {
    assert!(packet.len() >= 20 && packet[0] >> 4 == 4, "an IPv4 header");
    let header = usize::from(packet[0] & 0xF) * 4;
    assert!((20..=packet.len()).contains(&header), "a header of {header} octets");
    assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len(), "the total length");
    assert_eq!(sum(&packet[..header]), 0xFFFF, "the header checksum");
    assert_ne!(packet[8], 0, "the time to live");
    // 240/4 is forwarded (D260).
    let destination = &packet[16..20];
    let is_bound = matches!(destination, [0 | 127 | 224..=239, ..] | [169, 254, ..] | [255, 255, 255, 255]);
    assert!(!is_bound, "the destination {destination:?}");
}
