//! Segment Routing Header (RFC 8754 section 2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Next Header  |  Hdr Ext Len  |  Routing Type | Segments Left |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Last Entry  |     Flags     |              Tag              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +               Segment List[0] (the last segment)              +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! :                              ...                              :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +          Segment List[Last Entry] (the first segment)         +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! :                       TLVs (optional)                         :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::ipv6::NextHeader;
use crate::view::{Truncated, View};
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Routing type of an SRH.
pub const ROUTING_TYPE: u8 = 4;

/// The longest SRH: 8 octets and 255 times 8.
pub const MAX_LEN: usize = 2048;

/// The eight fixed octets of an SRH as they lie.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SrhView {
    next_header: u8,
    hdr_ext_len: u8,
    routing_type: u8,
    /// Segments still to visit.
    pub segments_left: u8,
    last_entry: u8,
    /// Flags; bit 0x20 is the O-flag (RFC 9259).
    pub flags: u8,
    tag: U16,
}

impl View for SrhView {
    const NAME: &'static str = "SRH";
    const LEN: usize = 1 + 1 + 1 + 1 + 1 + 1 + 2;
}

impl SrhView {
    /// Type of the header after this one.
    pub fn next_header(&self) -> NextHeader {
        NextHeader(self.next_header)
    }

    /// Routing type: 4.
    pub fn routing_type(&self) -> u8 {
        self.routing_type
    }

    /// Index of the last element of the Segment List.
    pub fn last_entry(&self) -> u8 {
        self.last_entry
    }

    /// Tag.
    pub fn tag(&self) -> u16 {
        self.tag.get()
    }

    /// Length of the whole header in octets, TLVs included.
    pub fn total_len(&self) -> usize {
        8 + 8 * usize::from(self.hdr_ext_len)
    }

    /// Octets of the Segment List.
    pub fn segments_len(&self) -> usize {
        16 * (usize::from(self.last_entry) + 1)
    }

    /// The fields that do not follow from the Segment List and the TLVs.
    pub fn value(&self) -> SrhValue {
        SrhValue {
            next_header: self.next_header(),
            segments_left: self.segments_left,
            flags: self.flags,
            tag: self.tag(),
        }
    }
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrhError {
    /// Fewer octets than Hdr Ext Len.
    Truncated(Truncated),
    /// A routing header, but no SRH: the type found.
    RoutingType(u8),
    /// Last Entry points beyond the header, or Segments Left beyond Last Entry + 1 (RFC 8754 section 4.3.1.1).
    Inconsistent { hdr_ext_len: u8, last_entry: u8, segments_left: u8 },
}

impl core::fmt::Display for SrhError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SrhError::Truncated(truncated) => truncated.fmt(f),
            SrhError::RoutingType(found) => write!(f, "routing type must be 4 (SRH), found {found}"),
            SrhError::Inconsistent { hdr_ext_len, last_entry, segments_left } => {
                write!(f, "Last Entry {last_entry} and Segments Left {segments_left} do not fit ")?;
                write!(f, "an SRH of Hdr Ext Len {hdr_ext_len}")
            }
        }
    }
}

impl core::error::Error for SrhError {}

/// A whole SRH, borrowed: fixed part, Segment List and TLVs.
#[derive(Clone, Copy, Debug)]
pub struct Srh<'a> {
    /// The fixed part.
    pub header: &'a SrhView,
    /// Segment List as it lies: the last segment first.
    pub segments: &'a [[u8; 16]],
    /// The octets of the TLVs; [`crate::tlv::Tlvs`] walks them.
    pub tlvs: &'a [u8],
}

impl<'a> Srh<'a> {
    /// The SRH at the front of `octets`, and the octets after it. A header that passes satisfies the checks of RFC 8754
    /// section 4.3.1.1 on Last Entry and Segments Left. That section skips both when Segments Left is 0; callers that
    /// need only the octets after such a header use [`SrhView::total_len`].
    pub fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), SrhError> {
        let (header, _) = SrhView::split(octets).map_err(SrhError::Truncated)?;
        if header.routing_type != ROUTING_TYPE {
            return Err(SrhError::RoutingType(header.routing_type));
        }
        let needed = header.total_len();
        let (whole, rest) = octets.split_at_checked(needed).ok_or(SrhError::Truncated(Truncated {
            header: SrhView::NAME,
            needed,
            found: octets.len(),
        }))?;
        let inconsistent = SrhError::Inconsistent {
            hdr_ext_len: header.hdr_ext_len,
            last_entry: header.last_entry,
            segments_left: header.segments_left,
        };
        if u16::from(header.segments_left) > u16::from(header.last_entry) + 1 {
            return Err(inconsistent);
        }
        let (list, tlvs) = whole
            .get(SrhView::LEN..)
            .and_then(|body| body.split_at_checked(header.segments_len()))
            .ok_or(inconsistent)?;
        let (segments, _) = list.as_chunks();
        Ok((Srh { header, segments, tlvs }, rest))
    }

    /// The segment at `index` of the Segment List, as the header lists them: the last segment is at 0.
    pub fn segment(&self, index: u8) -> Option<Ipv6Addr> {
        self.segments.get(usize::from(index)).copied().map(Ipv6Addr::from)
    }
}

/// The fixed part of an SRH as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrhValue {
    pub next_header: NextHeader,
    /// Segments still to visit.
    pub segments_left: u8,
    pub flags: u8,
    pub tag: u16,
}

impl SrhValue {
    /// Writes a whole SRH to the front of `into` and returns its length: the Segment List as given (the last segment
    /// first), then `tlvs`, whose length must be a multiple of eight. `None` when a length does not fit.
    pub fn emit(&self, segments: &[Ipv6Addr], tlvs: &[u8], into: &mut [u8]) -> Option<usize> {
        let len = Self::len_octets(segments.len(), tlvs.len())?;
        let header = SrhView {
            next_header: self.next_header.0,
            hdr_ext_len: u8::try_from(len / 8 - 1).ok()?,
            routing_type: ROUTING_TYPE,
            segments_left: self.segments_left,
            last_entry: u8::try_from(segments.len().checked_sub(1)?).ok()?,
            flags: self.flags,
            tag: U16::new(self.tag),
        };
        let (view, mut rest) = SrhView::split_mut(into.get_mut(..len)?).ok()?;
        *view = header;
        for segment in segments {
            let (place, after) = rest.split_at_mut_checked(16)?;
            place.copy_from_slice(&segment.octets());
            rest = after;
        }
        rest.copy_from_slice(tlvs);
        Some(len)
    }

    /// The length of an SRH with so many segments and octets of TLVs; `None` when there is no such SRH.
    pub fn len_octets(segments: usize, tlv_octets: usize) -> Option<usize> {
        let len = segments.checked_mul(16)?.checked_add(tlv_octets)?.checked_add(SrhView::LEN)?;
        (segments > 0 && segments <= 127 && tlv_octets.is_multiple_of(8) && len <= MAX_LEN).then_some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Two segments and eight octets of TLVs.
    const SRH: [u8; 48] = {
        let mut octets = [0; 48];
        (octets[0], octets[1], octets[2], octets[3], octets[4]) = (41, 5, 4, 2, 1);
        (octets[5], octets[6], octets[7]) = (0x20, 0x12, 0x34);
        (octets[23], octets[39]) = (0xA0, 0xA1);
        (octets[40], octets[41]) = (4, 6);
        octets
    };

    fn with(changes: &[(usize, u8)]) -> [u8; 48] {
        let mut octets = SRH;
        for (place, value) in changes {
            octets[*place] = *value;
        }
        octets
    }

    #[test]
    fn fields_segments_and_tlvs() {
        let (srh, rest) = Srh::split(&SRH).unwrap();
        assert_eq!(
            (srh.header.next_header(), srh.header.segments_left, srh.header.last_entry()),
            (NextHeader::IPV6, 2, 1)
        );
        assert_eq!((srh.header.flags, srh.header.tag(), rest), (0x20, 0x1234, &[][..]));
        assert_eq!(srh.segment(0), Some("::a0".parse().unwrap()));
        assert_eq!(srh.segment(1), Some("::a1".parse().unwrap()));
        assert_eq!(srh.segment(2), None);
        assert_eq!(srh.tlvs, [4, 6, 0, 0, 0, 0, 0, 0]);

        let value = SrhValue { next_header: NextHeader::IPV6, segments_left: 2, flags: 0x20, tag: 0x1234 };
        assert_eq!(srh.header.value(), value);
        let segments: Vec<_> = srh.segments.iter().copied().map(Ipv6Addr::from).collect();
        let mut emitted = [0xFF; 48];
        assert_eq!(value.emit(&segments, srh.tlvs, &mut emitted), Some(48));
        assert_eq!(emitted, SRH);
    }

    /// RFC 8754 section 4.3.1.1; a reduced SRH has Segments Left = Last Entry + 1 until it reaches the first segment
    /// (D4).
    #[test]
    fn last_entry_and_segments_left_must_fit() {
        let inconsistent = |octets: &[u8]| matches!(Srh::split(octets), Err(SrhError::Inconsistent { .. }));
        assert!(!inconsistent(&with(&[(3, 2)])));
        assert!(inconsistent(&with(&[(3, 3)])));
        assert!(inconsistent(&with(&[(4, 2)])), "three segments do not fit 48 octets");
        assert!(inconsistent(&with(&[(1, 0)])), "no segment fits eight octets");
        assert!(inconsistent(&with(&[(3, 255), (4, 255)])));
    }

    #[test]
    fn other_routing_types_and_short_headers_are_refused() {
        assert_eq!(Srh::split(&with(&[(2, 0)])).unwrap_err(), SrhError::RoutingType(0));
        let truncated = |needed, found| SrhError::Truncated(Truncated { header: "SRH", needed, found });
        assert_eq!(Srh::split(&SRH[..47]).unwrap_err(), truncated(48, 47));
        assert_eq!(Srh::split(&SRH[..7]).unwrap_err(), truncated(8, 7));
    }

    /// An SRH has at most 2,048 octets (D7).
    #[test]
    fn lengths() {
        assert_eq!(SrhValue::len_octets(1, 0), Some(24));
        assert_eq!(SrhValue::len_octets(127, 8), Some(2048));
        assert_eq!(SrhValue::len_octets(1, 2024), Some(2048));
        assert_eq!(SrhValue::len_octets(1, 2032), None);
        assert_eq!(SrhValue::len_octets(0, 8), None);
        assert_eq!(SrhValue::len_octets(1, 12), None);
        assert_eq!(SrhValue::len_octets(usize::MAX, usize::MAX), None);
    }

    #[test]
    fn values_that_do_not_fit_are_not_emitted() {
        let value = SrhValue { next_header: NextHeader::IPV6, segments_left: 1, flags: 0, tag: 0 };
        assert_eq!(value.emit(&[Ipv6Addr::LOCALHOST], &[], &mut [0; 23]), None);
        assert_eq!(value.emit(&[], &[], &mut [0; 64]), None);
    }
}
