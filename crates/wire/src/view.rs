//! The common part of views: a header is split off the front of a slice.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A header needed more octets than there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The header's name, as its RFC writes it.
    pub header: &'static str,
    /// Octets that the header occupies.
    pub needed: usize,
    /// Octets that were there.
    pub found: usize,
}

impl core::fmt::Display for Truncated {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} needs {} octets, {} left", self.header, self.needed, self.found)
    }
}

impl core::error::Error for Truncated {}

/// A header of fixed size, laid over the octets of a packet.
pub trait View: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Sized {
    /// The header's name, as its RFC writes it.
    const NAME: &'static str;
    /// The header's length in octets, summed up from its fields. It is checked against the type when a view is taken.
    const LEN: usize;

    /// The header at the front of `octets`, and what follows it.
    #[inline]
    fn split(octets: &[u8]) -> Result<(&Self, &[u8]), Truncated> {
        const { assert!(Self::LEN == size_of::<Self>(), "the sum of a header's fields is not its size") };
        Self::ref_from_prefix(octets).map_err(|_| Self::truncated(octets.len()))
    }

    /// As [`View::split`], for editing in place.
    #[inline]
    fn split_mut(octets: &mut [u8]) -> Result<(&mut Self, &mut [u8]), Truncated> {
        const { assert!(Self::LEN == size_of::<Self>(), "the sum of a header's fields is not its size") };
        let found = octets.len();
        Self::mut_from_prefix(octets).map_err(|_| Self::truncated(found))
    }

    /// The error for `found` octets, which are too few for this header.
    fn truncated(found: usize) -> Truncated {
        Truncated { header: Self::NAME, needed: Self::LEN, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::UdpView;
    use std::string::ToString;

    #[test]
    fn a_view_takes_its_octets_and_leaves_the_rest() {
        let mut octets = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(UdpView::split(&octets).unwrap().1, [9]);
        assert_eq!(UdpView::split_mut(&mut octets).unwrap().1, [9]);
    }

    #[test]
    fn an_error_has_the_needed_and_the_found_length() {
        let error = UdpView::split_mut(&mut [0; 3]).unwrap_err();
        assert_eq!(error.to_string(), "UDP needs 8 octets, 3 left");
    }
}
