//! Changes to frames on links: bit errors and congestion marks.

use srdma_wire::ipv6::Ecn;
use srdma_wire::{EtherType, EthernetView, Ipv6View, NextHeader, View};
use std::ops::Range;

/// Flips a bit that a checksum of the frame's headers or payload covers; `number` is taken modulo their count.
///
/// The octets of an SRH are excluded: only its HMAC covers them, and without HMAC the FCS of each link detects the
/// error (D9). A frame with a wrong FCS counts as lost.
pub(crate) fn flip_bit(octets: &mut [u8], number: u64) {
    let excluded = srh_of(octets);
    let bits = (octets.len() - excluded.len()) as u64 * 8;
    if bits == 0 {
        return;
    }
    let bit = (number % bits) as usize;
    let octet = bit / 8;
    let octet = if octet < excluded.start { octet } else { octet + excluded.len() };
    octets[octet] ^= 1 << (bit % 8);
}

/// Range of the SRH in a frame; empty if there is none.
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

/// Sets CE in an IPv6 packet, as a congested queue does (RFC 3168).
pub(crate) fn mark_ce(octets: &mut [u8]) {
    let Some(traffic_class) = ipv6_of(octets).map(Ipv6View::traffic_class) else {
        return;
    };
    if let Ok((ipv6, _)) = Ipv6View::split_mut(&mut octets[EthernetView::LEN..]) {
        ipv6.set_traffic_class(traffic_class | Ecn::Ce as u8);
    }
}
