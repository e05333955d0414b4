//! MR TLV: the memory regions of an edge's receivers, in the order of the End.MT TLV before it (D27). It begins as an
//! End.MT TLV does, with Edge Node Address and Num Receivers; an entry:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                        Virtual Address                        +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Remote Key                          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::View;
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One memory region of an MR TLV: the address at the receiver of the same position that corresponds to the group's
/// base address.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RegionView {
    virtual_address: U64,
    rkey: U32,
}

impl View for RegionView {
    const NAME: &'static str = "MR region";
    const LEN: usize = 8 + 4;
}

impl RegionView {
    /// An entry.
    pub fn new(virtual_address: u64, rkey: u32) -> Self {
        RegionView { virtual_address: U64::new(virtual_address), rkey: U32::new(rkey) }
    }

    /// First address of the receiver's region.
    pub fn virtual_address(&self) -> u64 {
        self.virtual_address.get()
    }

    /// Key of the receiver's region.
    pub fn rkey(&self) -> u32 {
        self.rkey.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Virtual address, then key, as in a RETH (D27).
    #[test]
    fn fields_have_their_places() {
        let region = RegionView::new(0x0102_0304_0506_0708, 0x090A_0B0C);
        assert_eq!(region.as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!((region.virtual_address(), region.rkey()), (0x0102_0304_0506_0708, 0x090A_0B0C));
    }
}
