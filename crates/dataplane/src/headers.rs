//! Finding headers in the first segment of a frame. Offsets count from the start of the frame, Ethernet included.

use crate::drop::DropReason;
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv6::NextHeader;
use srdma_wire::options::OptionsView;
use srdma_wire::srh::SrhError;
use srdma_wire::{Ipv6View, Srh, SrhView, View};

/// Where the IPv6 header begins: behind an untagged Ethernet header.
pub(crate) const IPV6: usize = 14;

/// Where what follows the IPv6 header begins.
pub(crate) const AFTER_IPV6: usize = IPV6 + 40;

/// The least MTU of a link for IPv6: no source need send a shorter packet (RFC 8200 section 5).
pub(crate) const MINIMUM_LINK_MTU: u32 = 1280;

/// Extension headers that are passed over in search of an SRH or an upper-layer header.
pub(crate) const MAX_EXTENSION_HEADERS: usize = 4;

/// The IPv6 header, which ingress found to be there.
#[inline]
pub(crate) fn ipv6(head: &[u8]) -> Result<&Ipv6View, DropReason> {
    let octets = head.get(IPV6..).ok_or(DropReason::Truncated)?;
    Ok(Ipv6View::split(octets).map_err(|_| DropReason::Truncated)?.0)
}

/// The IPv6 header, for editing.
#[inline]
pub(crate) fn ipv6_mut(head: &mut [u8]) -> Result<&mut Ipv6View, DropReason> {
    let octets = head.get_mut(IPV6..).ok_or(DropReason::Truncated)?;
    Ok(Ipv6View::split_mut(octets).map_err(|_| DropReason::Truncated)?.0)
}

/// Decrements the hop limit; an exhausted one is left as it is.
#[inline(always)]
pub(crate) fn decrement(frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let view = ipv6_mut(frame.head_mut(pool))?;
    if view.hop_limit <= 1 {
        return Err(DropReason::HopLimitExceeded);
    }
    view.hop_limit -= 1;
    Ok(())
}

/// A header's place in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset of its first octet.
    pub(crate) offset: usize,
    /// Type of the header.
    pub(crate) header: NextHeader,
    /// Offset of the Next Header octet that announces it.
    pub(crate) announced_at: usize,
}

impl Place {
    /// The header right behind the IPv6 header.
    #[inline]
    pub(crate) fn first(ipv6: &Ipv6View) -> Self {
        Place { offset: AFTER_IPV6, header: ipv6.next_header(), announced_at: IPV6 + 6 }
    }

    /// The routing header, or without one the header in its place, behind any options headers.
    #[inline]
    pub(crate) fn behind_options(self, head: &[u8]) -> Result<Self, DropReason> {
        match self.header {
            NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS => skip_options(head, self),
            _ => Ok(self),
        }
    }

    /// The octets after a routing header at this place, of any type and segments: with Segments Left 0 neither is
    /// processed (RFC 8200 section 4.4, RFC 8754 section 4.3.1.1).
    #[inline]
    pub(crate) fn behind_routing_header(self, head: &[u8]) -> Result<Self, DropReason> {
        let octets = head.get(self.offset..).ok_or_else(|| beyond(head))?;
        let (header, _) = SrhView::split(octets).map_err(|_| beyond(head))?;
        let behind = self.behind_srh(header);
        if behind.offset > head.len() { Err(beyond(head)) } else { Ok(behind) }
    }

    /// The header after an options header at this place.
    pub(crate) fn behind_options_header(self, options: &OptionsView) -> Self {
        Place { offset: self.offset + options.total_len(), header: options.next_header(), announced_at: self.offset }
    }

    /// The header after an SRH at this place.
    #[inline]
    pub(crate) fn behind_srh(self, srh: &SrhView) -> Self {
        Place { offset: self.offset + srh.total_len(), header: srh.next_header(), announced_at: self.offset }
    }

    /// The SRH at this place.
    #[inline]
    pub(crate) fn srh<'h>(&self, head: &'h [u8]) -> Result<Srh<'h>, SrhError> {
        Srh::split(head.get(self.offset..).unwrap_or(&[])).map(|(srh, _)| srh)
    }
}

/// The place behind the options headers that begin with `header` at `offset`.
#[cold]
fn skip_options(head: &[u8], mut at: Place) -> Result<Place, DropReason> {
    for _ in 0..MAX_EXTENSION_HEADERS {
        match at.header {
            NextHeader::HOP_BY_HOP | NextHeader::DESTINATION_OPTIONS => {
                let octets = head.get(at.offset..).ok_or_else(|| beyond(head))?;
                let (options, _) = OptionsView::split(octets).map_err(|_| beyond(head))?;
                at = at.behind_options_header(options);
                if at.offset > head.len() {
                    return Err(beyond(head));
                }
            }
            _ => return Ok(at),
        }
    }
    Err(DropReason::HeaderTooLong)
}

/// The reason that a packet is dropped for whose headers reach beyond `head`: more of them follow in the frame, or the
/// packet ends.
#[cold]
pub(crate) fn beyond(head: &[u8]) -> DropReason {
    let end = ipv6(head).map_or(0, |view| AFTER_IPV6 + usize::from(view.payload_length()));
    if head.len() < end { DropReason::HeaderTooLong } else { DropReason::Truncated }
}

/// The reason that an SRH in `head` that cannot be read is dropped for.
#[cold]
pub(crate) fn srh_drop(error: SrhError, head: &[u8]) -> DropReason {
    match error {
        SrhError::Truncated(_) => beyond(head),
        SrhError::RoutingType(_) => DropReason::UnknownRoutingType,
        SrhError::Inconsistent { .. } => DropReason::BadSrh,
    }
}
