//! End (RFC 8986 section 4.1) with its flavors PSP, USP, USD (section 4.16) and NEXT-CSID (RFC 9800 section 4.1).

use super::{Flavors, Outcome, bad_routing_type, next_csid, options, pointer, upper_layer};
use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, MAX_EXTENSION_HEADERS, Place, beyond, ipv6, ipv6_mut};
use srdma_frame::{Frame, Pool};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::srh::SrhError;
use srdma_wire::{Ipv6View, Srh, SrhView, View};

/// A routing header right behind the IPv6 header.
const BEHIND_IPV6: Place = Place { offset: AFTER_IPV6, header: NextHeader::ROUTING, announced_at: IPV6 + 6 };

/// The behaviour; steps are those of RFC 8986 section 4.1.
pub(crate) fn end(frame: &mut Frame, pool: &mut Pool, flavors: Flavors) -> Outcome {
    let head = frame.head_mut(pool);
    let Some((ethernet_ipv6, rest)) = head.split_first_chunk_mut::<AFTER_IPV6>() else {
        return Outcome::Drop(DropReason::Truncated);
    };
    let Ok((view, _)) = Ipv6View::split_mut(&mut ethernet_ipv6[IPV6..]) else {
        return Outcome::Drop(DropReason::Truncated);
    };
    if let Some(csid) = flavors.next_csid {
        let mut destination = *view.destination_octets();
        if next_csid::shift(&mut destination, csid) {
            if view.hop_limit <= 1 {
                return hop_limit_exceeded();
            }
            view.set_destination(destination.into());
            view.hop_limit -= 1;
            return Outcome::Forward;
        }
    }
    if view.next_header() == NextHeader::ROUTING {
        // The common case: the SRH right behind the IPv6 header.
        return match advance(view, rest, AFTER_IPV6) {
            Ok(Advanced::Next { pop }) => {
                if pop && flavors.psp {
                    return pop_srh(frame, pool, BEHIND_IPV6).map_or_else(Outcome::Drop, |()| Outcome::Forward);
                }
                Outcome::Forward
            }
            Ok(Advanced::Ultimate) => behind_last_segment(frame, pool, flavors.usp, BEHIND_IPV6)
                .map_or_else(Outcome::Drop, |at| header_by_header(frame, pool, flavors, at)),
            Err(verdict) => verdict,
        };
    }
    match ipv6(frame.head(pool)).map(Place::first) {
        Ok(first) => header_by_header(frame, pool, flavors, first),
        Err(reason) => Outcome::Drop(reason),
    }
}

/// The behaviour in the common cases, which change no more than the headers that there are: the next segment is in
/// place, without flavour or error. `false`: nothing is changed, the behaviour goes [step by step](end).
#[inline(always)]
pub(crate) fn end_in_place(head: &mut [u8], flavors: Flavors) -> bool {
    let Some((ethernet_ipv6, rest)) = head.split_first_chunk_mut::<AFTER_IPV6>() else { return false };
    let Ok((view, _)) = Ipv6View::split_mut(&mut ethernet_ipv6[IPV6..]) else { return false };
    if view.hop_limit <= 1 {
        return false;
    }
    if let Some(csid) = flavors.next_csid {
        let mut destination = *view.destination_octets();
        if next_csid::shift(&mut destination, csid) {
            view.set_destination(destination.into());
            view.hop_limit -= 1;
            return true;
        }
    }
    if view.next_header() != NextHeader::ROUTING {
        return false;
    }
    let Ok((srh, _)) = Srh::split(rest) else { return false };
    let Some(segments_left) = srh.header.segments_left.checked_sub(1) else { return false };
    let Some(segment) = srh.segment(segments_left).filter(|_| segments_left > 0 || !flavors.psp) else { return false };
    view.hop_limit -= 1;
    view.set_destination(segment);
    if let Ok((view, _)) = SrhView::split_mut(rest) {
        view.segments_left = segments_left;
    }
    true
}

/// Result of the SRH's own steps.
enum Advanced {
    /// The next segment is the destination; `pop`: it is the last one.
    Next { pop: bool },
    /// Segments Left was zero.
    Ultimate,
}

/// S02–S14: the SRH in `octets`, at `offset` in the frame, steps on to its next segment.
#[inline]
fn advance(ipv6: &mut Ipv6View, octets: &mut [u8], offset: usize) -> Result<Advanced, Outcome> {
    let srh = match Srh::split(octets) {
        Ok((srh, _)) => srh,
        Err(error) => return unfit(error, ipv6, octets, offset),
    };
    // S02. If (Segments Left == 0)
    let Some(segments_left) = srh.header.segments_left.checked_sub(1) else {
        return Ok(Advanced::Ultimate);
    };
    // S05. If (IPv6 Hop Limit <= 1)
    if ipv6.hop_limit <= 1 {
        return Err(hop_limit_exceeded());
    }
    // S08–S11. Last Entry and Segments Left were checked by Srh::split; a reduced SRH has no segment [Last Entry + 1].
    let Some(segment) = srh.segment(segments_left) else {
        return Err(bad_segments_left(offset));
    };
    // S12. Decrement IPv6 Hop Limit by 1
    ipv6.hop_limit -= 1;
    // S14. Update IPv6 DA with Segment List[Segments Left]
    ipv6.set_destination(segment);
    // S13. Decrement Segments Left by 1
    if let Ok((view, _)) = SrhView::split_mut(octets) {
        view.segments_left = segments_left;
    }
    Ok(Advanced::Next { pop: segments_left == 0 })
}

/// A routing header that is no SRH, or whose Last Entry does not fit. With Segments Left 0 that is no error (RFC 8200
/// section 4.4; RFC 8754 section 4.3.1.1, S02 before S09).
#[cold]
fn unfit(error: SrhError, ipv6: &Ipv6View, octets: &[u8], offset: usize) -> Result<Advanced, Outcome> {
    match SrhView::split(octets) {
        Ok((view, _)) if view.segments_left == 0 => Ok(Advanced::Ultimate),
        // S05 comes before S09.
        _ if ipv6.hop_limit <= 1 && matches!(error, SrhError::Inconsistent { .. }) => Err(hop_limit_exceeded()),
        _ => Err(bad_srh(error, offset)),
    }
}

/// The headers from `at` on: options headers are processed, routing headers without segments left are passed (RFC 8986
/// section 4.1, S03; RFC 8200 section 4.4), the first one with segments left steps on.
fn header_by_header(frame: &mut Frame, pool: &mut Pool, flavors: Flavors, mut at: Place) -> Outcome {
    for _ in 0..MAX_EXTENSION_HEADERS {
        at = match options::behind_options(frame.head(pool), at) {
            Ok(at) => at,
            Err(verdict) => return verdict,
        };
        if at.header != NextHeader::ROUTING {
            return upper_layer::process(frame, pool, at, flavors.usd);
        }
        let Some((before, rest)) = frame.head_mut(pool).split_at_mut_checked(at.offset) else {
            return Outcome::Drop(beyond(frame.head(pool)));
        };
        let Ok(view) = ipv6_mut(before) else {
            return Outcome::Drop(DropReason::Truncated);
        };
        match advance(view, rest, at.offset) {
            Ok(Advanced::Next { pop: true }) if flavors.psp => {
                return pop_srh(frame, pool, at).map_or_else(Outcome::Drop, |()| Outcome::Forward);
            }
            Ok(Advanced::Next { .. }) => return Outcome::Forward,
            Ok(Advanced::Ultimate) => match behind_last_segment(frame, pool, flavors.usp, at) {
                Ok(behind) => at = behind,
                Err(reason) => return Outcome::Drop(reason),
            },
            Err(verdict) => return verdict,
        }
    }
    options::too_many_headers(at)
}

/// Behind a routing header without segments left; with USP an SRH is taken off.
fn behind_last_segment(frame: &mut Frame, pool: &mut Pool, usp: bool, at: Place) -> Result<Place, DropReason> {
    let head = frame.head(pool);
    let next = at.behind_routing_header(head)?;
    if !usp || head[at.offset + 2] != srdma_wire::srh::ROUTING_TYPE {
        return Ok(next);
    }
    pop_srh(frame, pool, at)?;
    Ok(Place { header: next.header, ..at })
}

/// Takes the SRH at `place` out of the packet (RFC 8986 section 4.16.1, S14.2–S14.4).
fn pop_srh(frame: &mut Frame, pool: &mut Pool, place: Place) -> Result<(), DropReason> {
    let head = frame.head_mut(pool);
    let (view, _) =
        head.get(place.offset..).and_then(|octets| SrhView::split(octets).ok()).ok_or(DropReason::HeaderTooLong)?;
    let (len, next_header) = (view.total_len(), view.next_header());
    if place.offset + len > head.len() {
        return Err(DropReason::HeaderTooLong);
    }
    // S14.2. Update the Next Header field in the preceding header
    head[place.announced_at] = next_header.0;
    // S14.3. Decrease the IPv6 header Payload Length
    let view = ipv6_mut(head)?;
    view.set_payload_length(view.payload_length().saturating_sub(len as u16));
    // S14.4. Remove the SRH: the octets before it move up
    head.copy_within(IPV6..place.offset, IPV6 + len);
    frame.pull(len);
    Ok(())
}

/// S06. ICMP Time Exceeded, hop limit exceeded in transit.
#[cold]
fn hop_limit_exceeded() -> Outcome {
    Outcome::Report(DropReason::HopLimitExceeded, Icmpv6Error::HopLimitExceeded)
}

/// S10. ICMP Parameter Problem, pointer set to the Segments Left field.
#[cold]
fn bad_segments_left(srh_offset: usize) -> Outcome {
    Outcome::Report(DropReason::BadSrh, Icmpv6Error::ErroneousField(pointer(srh_offset + 3)))
}

#[cold]
fn bad_srh(error: SrhError, srh_offset: usize) -> Outcome {
    match error {
        SrhError::Truncated(_) => Outcome::Drop(DropReason::HeaderTooLong),
        SrhError::Inconsistent { .. } => bad_segments_left(srh_offset),
        SrhError::RoutingType(_) => bad_routing_type(srh_offset),
    }
}
