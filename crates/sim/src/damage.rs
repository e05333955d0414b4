//! Damage to the octets of frames on links: bit errors, congestion marks.

use srdma_wire::ipv6::Ecn;
use srdma_wire::{EtherType, EthernetView, Ipv6View, NextHeader, View};
use std::ops::Range;

/// Changes a bit of a frame, of those that the frame's own checks protect. `number` is taken modulo their count.
///
/// Not among them are the octets of an SRH: no check but its HMAC covers them, and where links are trusted with them it
/// is the FCS of each that finds the damage (D9). A frame whose FCS is wrong is a lost one.
pub(crate) fn change_bit(octets: &mut [u8], number: u64) {
    let spared = srh_of(octets);
    let bits = (octets.len() - spared.len()) as u64 * 8;
    if bits == 0 {
        return;
    }
    let bit = (number % bits) as usize;
    let octet = bit / 8;
    let octet = if octet < spared.start { octet } else { octet + spared.len() };
    octets[octet] ^= 1 << (bit % 8);
}

/// Range of the SRH in a frame; empty when it has none.
fn srh_of(octets: &[u8]) -> Range<usize> {
    const AT: usize = EthernetView::LEN + Ipv6View::LEN;
    let Some(ipv6) = ipv6_of(octets) else {
        return 0..0;
    };
    match octets.get(AT + 1) {
        Some(len) if ipv6.next_header() == NextHeader::ROUTING => {
            AT..(AT + 8 + usize::from(*len) * 8).min(octets.len())
        }
        Some(_) | None => 0..0,
    }
}

fn ipv6_of(octets: &[u8]) -> Option<&Ipv6View> {
    let (ethernet, packet) = EthernetView::split(octets).ok()?;
    let (ipv6, _) = Ipv6View::split(packet).ok()?;
    (ethernet.ethertype() == EtherType::IPV6).then_some(ipv6)
}

/// Marks an IPv6 packet as having met congestion, as a queue on the way does (RFC 3168).
pub(crate) fn mark_congestion(octets: &mut [u8]) {
    let Some(traffic_class) = ipv6_of(octets).map(Ipv6View::traffic_class) else {
        return;
    };
    if let Ok((ipv6, _)) = Ipv6View::split_mut(&mut octets[EthernetView::LEN..]) {
        ipv6.set_traffic_class(traffic_class | Ecn::Ce as u8);
    }
}
