//! Immediate Data Extended Transport Header (IBTA volume 1, section 9.3.5).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Immediate Data                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::View;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Immediate data: 32 bits that the requester hands to the responder's completion. Value and view are one, because the
/// network gives the octets no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(transparent)]
pub struct ImmDtView(pub [u8; 4]);

impl View for ImmDtView {
    const NAME: &'static str = "ImmDt";
    const LEN: usize = 4;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Truncated;

    #[test]
    fn octets_stay_as_they_are() {
        assert_eq!(ImmDtView::split(&[1, 2, 3, 4, 5]).unwrap(), (&ImmDtView([1, 2, 3, 4]), &[5][..]));
        assert_eq!(ImmDtView::split(&[1, 2, 3]), Err(Truncated { header: "ImmDt", needed: 4, found: 3 }));
    }
}
