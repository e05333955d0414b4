//! ICMPv6 errors that the node sends (RFC 4443, RFC 8754, RFC 8986).

use crate::headers::{IPV6, Place, ipv6};
use srdma_frame::{Frame, Pool};
use srdma_wire::checksum::Sum;
use srdma_wire::icmpv6::{Icmpv6Error, Icmpv6View};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::{Ipv6, View};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// The longest ICMPv6 error: the least IPv6 MTU (RFC 4443 section 2.4 c).
const MAX_PACKET: usize = 1280;

/// ICMPv6 type of a redirect.
const REDIRECT: u8 = 137;

/// Whether an error may answer a packet: RFC 4443 section 2.4 e, and for replicated packets RFC 9524 section 2.2.3.
pub(crate) fn may_be_reported(head: &[u8], replicated: bool, error: Icmpv6Error) -> bool {
    let always = matches!(error, Icmpv6Error::PacketTooBig(_) | Icmpv6Error::UnrecognisedOption(_));
    let Ok(view) = ipv6(head) else {
        return false;
    };
    let (source, destination) = (view.source(), view.destination());
    if source.is_multicast() || source.is_unspecified() {
        return false;
    }
    if (replicated || destination.is_multicast()) && !always {
        return false;
    }
    !is_icmpv6_error(head)
}

/// Whether the packet is itself an ICMPv6 error, or a redirect (RFC 4443 section 2.4 e.1, e.2).
fn is_icmpv6_error(head: &[u8]) -> bool {
    let Ok(mut place) = ipv6(head).map(Place::first).and_then(|place| place.behind_options(head)) else {
        return false;
    };
    if place.header == NextHeader::ROUTING
        && let Ok(behind) = place.behind_routing_header(head).and_then(|behind| behind.behind_options(head))
    {
        place = behind;
    }
    if place.header == NextHeader::FRAGMENT {
        match behind_fragment_header(head, place) {
            Some(behind) => place = behind,
            // Of a later fragment the type is not there.
            None => return true,
        }
    }
    place.header == NextHeader::ICMPV6 && head.get(place.offset).is_some_and(|kind| *kind < 128 || *kind == REDIRECT)
}

/// What follows the Fragment header of a first fragment; `None` for a later one of an ICMPv6 message.
fn behind_fragment_header(head: &[u8], at: Place) -> Option<Place> {
    let octets = head.get(at.offset..)?.first_chunk::<8>()?;
    let header = NextHeader(octets[0]);
    let is_first = u16::from_be_bytes([octets[2], octets[3]]) >> 3 == 0;
    let behind = Place { offset: at.offset + octets.len(), header, announced_at: at.offset };
    (is_first || header != NextHeader::ICMPV6).then_some(behind)
}

/// Where the message of a packet begins in its frame.
pub(crate) const MESSAGE: usize = IPV6 + Ipv6::LEN;

/// The error, quoting as much of the packet as fits.
pub(crate) fn build(source: Ipv6Addr, invoking: &Frame, pool: &mut Pool, error: Icmpv6Error) -> Option<Frame> {
    let mut octets = [0; IPV6 + MAX_PACKET];
    let mut len = MESSAGE + Icmpv6View::LEN;
    octets[MESSAGE..len].copy_from_slice(Icmpv6View::new(error).as_bytes());
    len += invoking.copy_range(IPV6, &mut octets[len..], pool);
    let destination = ipv6(invoking.head(pool)).ok()?.source();
    complete(&mut octets[..len], source, destination, 0);
    Frame::from_octets(&octets[..len], pool)
}

/// Writes the IPv6 header before the message in a frame of this node, and the message's checksum, which is zero so far.
pub(crate) fn complete(octets: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr, traffic_class: u8) {
    let Some((headers, message)) = octets.split_at_mut_checked(MESSAGE) else { return };
    let checksum = checksum(message, source, destination);
    if let Some(place) = message.get_mut(2..4) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
    let header = Ipv6 {
        traffic_class,
        flow_label: 0,
        payload_length: message.len() as u16,
        next_header: NextHeader::ICMPV6,
        hop_limit: 64,
        source,
        destination,
    };
    headers[IPV6..].copy_from_slice(header.emit().as_bytes());
}

/// The checksum of a message in which it is zero; of one that has the right one: zero.
pub(crate) fn checksum(message: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> u16 {
    let (source, destination) = (source.octets(), destination.octets());
    let mut sum = Sum::pseudo_header(&source, &destination, message.len() as u32, NextHeader::ICMPV6);
    sum.add(message);
    sum.checksum()
}
