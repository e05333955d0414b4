//! The chain of IPv6 extension headers (RFC 8200 section 4), walked without going beyond the octets at hand.
//!
//! ```text
//! | IPv6 | Hop-by-Hop Options | Destination Options | Routing | Destination Options | upper layer …
//!         \______________ all begin with Next Header and Hdr Ext Len ___________/
//! ```

use crate::ipv6::{Ipv6View, NextHeader};
use crate::options::OptionsView;
use crate::view::{Truncated, View};
use core::fmt;

/// Extension headers that one packet may have: RFC 8200 section 4.1 has places for four of those walked here, and two
/// more may have been inserted on the way.
pub const MAX_EXTENSION_HEADERS: usize = 6;

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionHeader<'a> {
    /// Kind of the header: Hop-by-Hop Options, Destination Options or Routing.
    pub kind: NextHeader,
    /// Offset of its first octet from the first octet of the IPv6 header.
    pub offset: usize,
    /// Its octets, of the length given by Hdr Ext Len.
    pub octets: &'a [u8],
}

/// The reason why a chain of extension headers cannot be followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionError {
    /// A header reaches beyond the octets at hand.
    Truncated {
        /// Offset of the header from the start of the IPv6 header.
        offset: usize,
        /// The needed and the found length.
        truncated: Truncated,
    },
    /// More than [`MAX_EXTENSION_HEADERS`].
    TooMany,
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtensionError::Truncated { offset, truncated } => write!(f, "at offset {offset}: {truncated}"),
            ExtensionError::TooMany => write!(f, "more than {MAX_EXTENSION_HEADERS} extension headers"),
        }
    }
}

impl core::error::Error for ExtensionError {}

/// Walks extension headers: Hop-by-Hop Options (only as the first), Destination Options, Routing.
///
/// Ends at anything else, which [`ExtensionHeaders::next_header`] then names, and after the first error.
#[derive(Clone, Debug)]
pub struct ExtensionHeaders<'a> {
    next_header: NextHeader,
    offset: usize,
    rest: &'a [u8],
    taken: usize,
}

impl<'a> ExtensionHeaders<'a> {
    /// The headers behind an IPv6 header with this Next Header; `after` are the octets that follow it.
    pub fn new(next_header: NextHeader, after: &'a [u8]) -> Self {
        ExtensionHeaders { next_header, offset: Ipv6View::LEN, rest: after, taken: 0 }
    }

    /// Type of the header after those that were walked.
    pub fn next_header(&self) -> NextHeader {
        self.next_header
    }

    /// Its offset from the first octet of the IPv6 header.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The octets that were not walked.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn is_extension_header(&self) -> bool {
        match self.next_header {
            NextHeader::HOP_BY_HOP => self.taken == 0,
            NextHeader::DESTINATION_OPTIONS | NextHeader::ROUTING => true,
            _ => false,
        }
    }

    fn take(&mut self) -> Result<ExtensionHeader<'a>, ExtensionError> {
        if self.taken == MAX_EXTENSION_HEADERS {
            return Err(ExtensionError::TooMany);
        }
        let offset = self.offset;
        let error = |truncated| ExtensionError::Truncated { offset, truncated };
        let (header, _) = OptionsView::split(self.rest).map_err(error)?;
        let needed = header.total_len();
        let found = self.rest.len();
        let (octets, rest) =
            self.rest.split_at_checked(needed).ok_or(error(Truncated { header: "extension header", needed, found }))?;
        let kind = core::mem::replace(&mut self.next_header, header.next_header());
        self.offset += needed;
        self.rest = rest;
        self.taken += 1;
        Ok(ExtensionHeader { kind, offset, octets })
    }
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = Result<ExtensionHeader<'a>, ExtensionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.is_extension_header() {
            return None;
        }
        let result = self.take();
        if result.is_err() {
            self.next_header = NextHeader::NONE;
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn a_chain_is_walked_to_its_upper_layer() {
        let mut octets = vec![0; 8 + 24 + 8 + 3];
        octets[0] = NextHeader::ROUTING.0;
        (octets[8], octets[9]) = (NextHeader::DESTINATION_OPTIONS.0, 2);
        octets[32] = NextHeader::UDP.0;
        let mut headers = ExtensionHeaders::new(NextHeader::HOP_BY_HOP, &octets);
        let found: Vec<_> = headers.by_ref().map(|header| header.map(|h| (h.kind, h.offset, h.octets.len()))).collect();
        let expected = [
            Ok((NextHeader::HOP_BY_HOP, 40, 8)),
            Ok((NextHeader::ROUTING, 48, 24)),
            Ok((NextHeader::DESTINATION_OPTIONS, 72, 8)),
        ];
        assert_eq!(found, expected);
        assert_eq!((headers.next_header(), headers.offset(), headers.rest().len()), (NextHeader::UDP, 80, 3));
    }

    #[test]
    fn hop_by_hop_options_anywhere_else_are_no_extension_header() {
        let octets = [0; 16];
        let mut headers = ExtensionHeaders::new(NextHeader::DESTINATION_OPTIONS, &octets);
        assert!(matches!(headers.next(), Some(Ok(_))));
        assert_eq!(headers.next(), None);
        assert_eq!(headers.next_header(), NextHeader::HOP_BY_HOP);
    }

    #[test]
    fn errors_name_the_offset() {
        let mut headers = ExtensionHeaders::new(NextHeader::ROUTING, &[NextHeader::ROUTING.0, 1, 4, 0, 0, 0, 0, 0]);
        let truncated = Truncated { header: "extension header", needed: 16, found: 8 };
        assert_eq!(headers.next(), Some(Err(ExtensionError::Truncated { offset: 40, truncated })));
        assert_eq!(headers.next(), None);
        let octets = [NextHeader::DESTINATION_OPTIONS.0, 0, 0, 0, 0, 0, 0, 0].repeat(7);
        let results: Vec<_> = ExtensionHeaders::new(NextHeader::DESTINATION_OPTIONS, &octets).collect();
        assert_eq!(results.len(), 7);
        assert_eq!(results[6], Err(ExtensionError::TooMany));
    }
}
