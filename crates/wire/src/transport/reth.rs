//! RDMA Extended Transport Header (IBTA volume 1, section 9.3.1).
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
//! |                          DMA Length                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::{Truncated, View};
use zerocopy::byteorder::network_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// RDMA Extended Transport Header as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RethView {
    virtual_address: U64,
    rkey: U32,
    dma_length: U32,
}

impl View for RethView {
    const NAME: &'static str = "RETH";
    const LEN: usize = 8 + 4 + 4;
}

impl RethView {
    /// The fields.
    pub fn value(&self) -> Reth {
        Reth { virtual_address: self.virtual_address.get(), rkey: self.rkey.get(), dma_length: self.dma_length.get() }
    }
}

/// RDMA Extended Transport Header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Address in the responder's memory.
    pub virtual_address: u64,
    /// Key of the responder's memory region.
    pub rkey: u32,
    /// Octets of the whole message.
    pub dma_length: u32,
}

impl Reth {
    /// Length in octets.
    pub const LEN: usize = RethView::LEN;

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = RethView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The header's octets.
    pub fn emit(&self) -> RethView {
        RethView {
            virtual_address: U64::new(self.virtual_address),
            rkey: U32::new(self.rkey),
            dma_length: U32::new(self.dma_length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn fields_of_a_captured_header() {
        // A WRITE Only that scapy made: 33 octets to address 0x7F00_1122_3344.
        let octets = [0, 0, 0x7F, 0, 0x11, 0x22, 0x33, 0x44, 0, 0, 0x12, 0x34, 0, 0, 0, 0x21];
        let (reth, rest) = Reth::parse(&octets).unwrap();
        assert_eq!(reth, Reth { virtual_address: 0x7F00_1122_3344, rkey: 0x1234, dma_length: 33 });
        assert_eq!((rest, reth.emit().as_bytes()), (&[][..], &octets[..]));
        assert_eq!(Reth::parse(&octets[1..]), Err(Truncated { header: "RETH", needed: 16, found: 15 }));
    }
}
