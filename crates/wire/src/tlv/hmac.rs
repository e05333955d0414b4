//! HMAC TLV (RFC 8754 section 2.1.2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    Type = 5   |     Length    |D|           Reserved          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          HMAC Key ID                          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! :                   HMAC (8 to 32 octets)                       :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::codepoints;
use crate::view::View;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// HMAC TLV without its HMAC field as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct HmacView {
    kind: u8,
    length: u8,
    /// D flag (0x8000) and reserved bits, as they enter the HMAC text.
    pub d_and_reserved: U16,
    key_id: U32,
}

impl View for HmacView {
    const NAME: &'static str = "HMAC TLV";
    const LEN: usize = 1 + 1 + 2 + 4;
}

impl HmacView {
    /// Octets of the HMAC field as srdma sends it: SHA-256.
    pub const HMAC_LEN: usize = 32;

    /// A TLV of 40 octets with a 32-octet HMAC to follow.
    pub fn new(destination_not_covered: bool, key_id: u32) -> Self {
        HmacView {
            kind: codepoints::srh_tlv::HMAC,
            length: (Self::LEN - 2 + Self::HMAC_LEN) as u8,
            d_and_reserved: U16::new(if destination_not_covered { 0x8000 } else { 0 }),
            key_id: U32::new(key_id),
        }
    }

    /// D: the destination address is not verified against the Segment List.
    pub fn destination_not_covered(&self) -> bool {
        self.d_and_reserved.get() & 0x8000 != 0
    }

    /// Id of the key.
    pub fn key_id(&self) -> u32 {
        self.key_id.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8754 section 2.1.2: SHA-256 makes a TLV of 40 octets, Length 38; a replication root sets D (D4).
    #[test]
    fn fields() {
        let view = HmacView::new(true, 42);
        assert_eq!(view.as_bytes(), [5, 38, 0x80, 0, 0, 0, 0, 42]);
        assert!(view.destination_not_covered());
        assert_eq!(view.key_id(), 42);
        assert!(!HmacView::new(false, 42).destination_not_covered());
    }
}
