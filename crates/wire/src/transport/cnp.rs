//! The octets after the BTH of a Congestion Notification Packet (IBTA annex A17.9.3; FC-3-1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                 Reserved (count inside a tree)                |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                           Reserved                            |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::View;
use zerocopy::byteorder::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The 16 octets after a CNP's BTH.
///
/// An end host sends and receives them as zero. Between the nodes of a multicast tree the first four have the count of
/// CNPs that this one represents (D29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CnpView {
    count: U32,
    load: U32,
    reserved: [u8; 8],
}

impl View for CnpView {
    const NAME: &'static str = "CNP";
    const LEN: usize = 4 + 4 + 8;
}

impl CnpView {
    /// The payload of a CNP that represents `count` of them; 0 on the last hop to a host.
    pub fn with_count(count: u32) -> Self {
        CnpView { count: U32::new(count), load: U32::ZERO, reserved: [0; 8] }
    }

    /// The payload of a CNP that represents none, but carries the trace of a path with this load (D242).
    pub fn with_load(load: u32) -> Self {
        CnpView { count: U32::ZERO, load: U32::new(load), reserved: [0; 8] }
    }

    /// Number of CNPs that this one represents, between nodes of a tree.
    pub fn count(&self) -> u32 {
        self.count.get()
    }

    /// Load of the path whose trace it carries, between nodes of a tree.
    pub fn load(&self) -> u32 {
        self.load.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// D29: the count is in the first four octets, zero for a host (MT-5.3.3-4).
    #[test]
    fn the_count_is_in_the_first_four_octets() {
        assert_eq!(CnpView::with_count(0x0102_0304).as_bytes(), [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(CnpView::with_count(0).as_bytes(), [0; 16]);
        let (view, _) = CnpView::split(&[0xFF; 16]).unwrap();
        assert_eq!(view.count(), u32::MAX);
    }

    /// D242.
    #[test]
    fn the_load_is_behind_the_count() {
        let view = CnpView::with_load(0x0102_0304);
        assert_eq!(view.as_bytes(), [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((view.count(), view.load()), (0, 0x0102_0304));
    }
}
