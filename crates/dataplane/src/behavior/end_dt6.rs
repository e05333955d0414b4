//! End.DT6 (RFC 8986 section 4.6): decapsulation and IPv6 table look-up.

use super::{Outcome, bad_routing_type, decapsulate, options, pointer, upper_layer};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, MAX_EXTENSION_HEADERS, Place, beyond, ipv6};
use srdma_frame::{Frame, Pool};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::srh::ROUTING_TYPE;
use srdma_wire::{Ipv6View, SrhView, View};

/// The behaviour; the caller looks the inner destination up in the SID's table.
#[inline]
pub(crate) fn end_dt6(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    match inner_offset(frame.head(pool)) {
        Some(inner) => decapsulate(frame, pool, inner).map_or_else(Outcome::Drop, |()| Outcome::Inner),
        None => step_by_step(frame, pool),
    }
}

/// Where the inner packet begins in the common cases: right behind the IPv6 header, or behind an SRH without segments
/// left.
#[inline]
pub(crate) fn inner_offset(head: &[u8]) -> Option<usize> {
    let (headers, rest) = head.split_first_chunk::<AFTER_IPV6>()?;
    let (ipv6, _) = Ipv6View::split(&headers[IPV6..]).ok()?;
    if ipv6.next_header() == NextHeader::IPV6 {
        return Some(AFTER_IPV6);
    }
    let (routing, _) = SrhView::split(rest).ok()?;
    let is_common = ipv6.next_header() == NextHeader::ROUTING
        && routing.segments_left == 0
        && routing.next_header() == NextHeader::IPV6;
    is_common.then(|| AFTER_IPV6 + routing.total_len())
}

/// Where the packet in the outer headers begins, for a SID that takes it as it lies.
pub(crate) fn inner_packet(head: &[u8]) -> Result<usize, Outcome> {
    match inner_offset(head) {
        Some(inner) => Ok(inner),
        None => upper_layer::inner(head, upper_layer_place(head)?, NextHeader::IPV6),
    }
}

#[cold]
fn step_by_step(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    match upper_layer_place(frame.head(pool)) {
        // Upper-layer S01. If (Upper-Layer header type == 41 (IPv6))
        Ok(at) => upper_layer::process(frame, pool, at, true),
        Err(verdict) => verdict,
    }
}

/// The header behind options headers and routing headers.
pub(super) fn upper_layer_place(head: &[u8]) -> Result<Place, Outcome> {
    let mut at = Place::first(ipv6(head)?);
    for _ in 0..MAX_EXTENSION_HEADERS {
        at = options::behind_options(head, at)?;
        if at.header != NextHeader::ROUTING {
            return Ok(at);
        }
        // S02. If (Segments Left != 0): Parameter Problem, pointer set to the Segments Left field
        let routing = head.get(at.offset..).and_then(|octets| SrhView::split(octets).ok());
        let (routing, _) = routing.ok_or_else(|| beyond(head))?;
        if routing.segments_left != 0 {
            if routing.routing_type() != ROUTING_TYPE {
                return Err(bad_routing_type(at.offset));
            }
            let error = Icmpv6Error::ErroneousField(pointer(at.offset + 3));
            return Err(Outcome::Report(DropReason::SegmentsLeft, error));
        }
        at = at.behind_routing_header(head)?;
    }
    Err(options::too_many_headers(at))
}
