//! Invalidate Extended Transport Header (IBTA volume 1, section 9.3.7).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          Remote Key                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::View;
use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The memory key that a SEND with Invalidate takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct IethView {
    rkey: U32,
}

impl View for IethView {
    const NAME: &'static str = "IETH";
    const LEN: usize = 4;
}

impl IethView {
    /// The header for this key.
    pub fn new(rkey: u32) -> Self {
        IethView { rkey: U32::new(rkey) }
    }

    /// Key of the responder's memory region.
    pub fn rkey(&self) -> u32 {
        self.rkey.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn the_key_is_big_endian() {
        let (view, _) = IethView::split(&[1, 2, 3, 4]).unwrap();
        assert_eq!(view.rkey(), 0x0102_0304);
        assert_eq!(IethView::new(0x0102_0304).as_bytes(), [1, 2, 3, 4]);
    }
}
