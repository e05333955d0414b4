//! The message that ends a transfer.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Magic, "SRDT"                          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          Version 1            |           Reserved            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Octets                              |
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SHA-256, 32 octets                     |
//! ```
//!
//! It is a SEND with immediate data, which are the magic again: so no message of data can be taken for it.

use zerocopy::byteorder::network_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Number of octets that were sent, and their SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Octets of the data.
    pub octets: u64,
    /// SHA-256 of the data.
    pub sha256: [u8; 32],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 4],
    version: U16,
    reserved: U16,
    octets: U64,
    sha256: [u8; 32],
}

const VERSION: u16 = 1;

/// Reason for which a message is no trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrailerError {
    /// Another length.
    #[error("the trailer has {0} octets, {len} were expected", len = Trailer::LEN)]
    Length(usize),
    /// Another magic.
    #[error("the last message is not a trailer: it begins with {0:02x?} instead of \"SRDT\"")]
    Magic([u8; 4]),
    /// A version from the future.
    #[error("the trailer has version {0}, only version 1 is supported: use the same srdma at both ends")]
    Version(u16),
}

impl Trailer {
    /// Length in octets.
    pub const LEN: usize = size_of::<Layout>();

    /// Its first octets, and the immediate data of its message.
    pub const MAGIC: [u8; 4] = *b"SRDT";

    /// The trailer's octets.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let layout = Layout {
            magic: Self::MAGIC,
            version: U16::new(VERSION),
            reserved: U16::ZERO,
            octets: U64::new(self.octets),
            sha256: self.sha256,
        };
        zerocopy::transmute!(layout)
    }

    /// The trailer that a message is.
    ///
    /// # Errors
    ///
    /// If the message has no trailer.
    pub fn parse(message: &[u8]) -> Result<Self, TrailerError> {
        let layout = Layout::ref_from_bytes(message).map_err(|_| TrailerError::Length(message.len()))?;
        if layout.magic != Self::MAGIC {
            return Err(TrailerError::Magic(layout.magic));
        }
        if layout.version.get() != VERSION {
            return Err(TrailerError::Version(layout.version.get()));
        }
        Ok(Trailer { octets: layout.octets.get(), sha256: layout.sha256 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_has_the_documented_format() {
        let trailer = Trailer { octets: 0x0102, sha256: [0xAB; 32] };
        let mut expected = b"SRDT\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02".to_vec();
        expected.extend([0xAB; 32]);
        assert_eq!(trailer.emit().as_slice(), expected);
        assert_eq!(Trailer::parse(&expected), Ok(trailer));
        assert_eq!(Trailer::parse(&expected[1..]), Err(TrailerError::Length(47)));
        expected[5] = 2;
        assert_eq!(Trailer::parse(&expected), Err(TrailerError::Version(2)));
        expected[0] = 0;
        assert_eq!(Trailer::parse(&expected), Err(TrailerError::Magic([0, b'R', b'D', b'T'])));
    }
}
