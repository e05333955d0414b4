//! Atomic and Atomic ACK Extended Transport Headers (IBTA volume 1, sections 9.3.3 and 9.5.3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                        Virtual Address                        +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          Remote Key                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                      Swap (or Add) Data                       +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                         Compare Data                          +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                     Original Remote Data                      +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::{Truncated, View};
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Atomic Extended Transport Header as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AtomicEthView {
    virtual_address: U64,
    rkey: U32,
    swap_or_add: U64,
    compare: U64,
}

impl View for AtomicEthView {
    const NAME: &'static str = "AtomicETH";
    const LEN: usize = 8 + 4 + 8 + 8;
}

impl AtomicEthView {
    /// The fields.
    pub fn value(&self) -> AtomicEth {
        AtomicEth {
            virtual_address: self.virtual_address.get(),
            rkey: self.rkey.get(),
            swap_or_add: self.swap_or_add.get(),
            compare: self.compare.get(),
        }
    }
}

/// Atomic Extended Transport Header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// Address in the responder's memory.
    pub virtual_address: u64,
    /// Key of the responder's memory region.
    pub rkey: u32,
    /// The value to store (CmpSwap) or to add (FetchAdd).
    pub swap_or_add: u64,
    /// The value to compare with (CmpSwap).
    pub compare: u64,
}

impl AtomicEth {
    /// Length in octets.
    pub const LEN: usize = AtomicEthView::LEN;

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = AtomicEthView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The header's octets.
    pub fn emit(&self) -> AtomicEthView {
        AtomicEthView {
            virtual_address: U64::new(self.virtual_address),
            rkey: U32::new(self.rkey),
            swap_or_add: U64::new(self.swap_or_add),
            compare: U64::new(self.compare),
        }
    }
}

/// Atomic ACK Extended Transport Header: the contents of the memory before the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct AtomicAckEthView {
    original: U64,
}

impl View for AtomicAckEthView {
    const NAME: &'static str = "AtomicAckETH";
    const LEN: usize = 8;
}

impl AtomicAckEthView {
    /// The header for this datum.
    pub fn new(original: u64) -> Self {
        AtomicAckEthView { original: U64::new(original) }
    }

    /// The contents of the memory before the operation.
    pub fn original(&self) -> u64 {
        self.original.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn every_field_has_its_octets() {
        let octets: [u8; 28] = core::array::from_fn(|place| place as u8);
        let (atomic, rest) = AtomicEth::parse(&octets).unwrap();
        let expected = AtomicEth {
            virtual_address: 0x0001_0203_0405_0607,
            rkey: 0x0809_0A0B,
            swap_or_add: 0x0C0D_0E0F_1011_1213,
            compare: 0x1415_1617_1819_1A1B,
        };
        assert_eq!((atomic, rest), (expected, &[][..]));
        assert_eq!(atomic.emit().as_bytes(), octets);
        let (acknowledgement, _) = AtomicAckEthView::split(&octets).unwrap();
        assert_eq!(acknowledgement.original(), 0x0001_0203_0405_0607);
        assert_eq!(AtomicAckEthView::new(0x0001_0203_0405_0607).as_bytes(), &octets[..8]);
    }
}
