//! ICMPv4 errors (RFC 792, RFC 1191) that a router sends (RFC 1812 sections 4.3.3 and 5.2.7).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      Type     |      Code     |            Checksum           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |             unused            |     Next-Hop MTU or unused    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          As much of the datagram as fits 576 octets           |
//! ```

use crate::view::View;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Protocol number.
pub const PROTOCOL: u8 = 1;

/// The longest datagram of an error (RFC 1812 section 4.3.2.3).
pub const MAX_DATAGRAM: usize = 576;

/// Header of an error as it lies; the datagram that it is about follows.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmpv4View {
    /// Type.
    pub kind: u8,
    pub code: u8,
    checksum: U16,
    unused: U16,
    mtu: U16,
}

impl View for Icmpv4View {
    const NAME: &'static str = "ICMPv4";
    const LEN: usize = 1 + 1 + 2 + 2 + 2;
}

impl Icmpv4View {
    /// The header of an error, its checksum still zero.
    pub fn new(error: Icmpv4Error) -> Self {
        let (kind, code, mtu) = error.fields();
        Icmpv4View { kind, code, checksum: U16::ZERO, unused: U16::ZERO, mtu: U16::new(mtu) }
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// An error, as RFC 792 numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv4Error {
    /// Type 3 code 0: network unreachable.
    NetworkUnreachable,
    /// Type 3 code 1: host unreachable.
    HostUnreachable,
    /// Type 3 code 4: fragmentation needed and DF set, with the MTU of the next link.
    FragmentationNeeded(u16),
    /// Type 11 code 0: time to live exceeded in transit.
    TimeExceeded,
}

impl Icmpv4Error {
    /// Type, code, and the MTU or zero.
    pub const fn fields(self) -> (u8, u8, u16) {
        match self {
            Icmpv4Error::NetworkUnreachable => (3, 0, 0),
            Icmpv4Error::HostUnreachable => (3, 1, 0),
            Icmpv4Error::FragmentationNeeded(mtu) => (3, 4, mtu),
            Icmpv4Error::TimeExceeded => (11, 0, 0),
        }
    }
}

/// Whether a message of this type is an error, about which no error is sent (RFC 1812 section 4.3.2.7).
pub const fn is_error(kind: u8) -> bool {
    // Destination unreachable, source quench, redirect, time exceeded, parameter problem.
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_numbered_as_in_their_rfcs() {
        let octets = |error| Icmpv4View::new(error).as_bytes().to_vec();
        assert_eq!(octets(Icmpv4Error::NetworkUnreachable), [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(octets(Icmpv4Error::HostUnreachable), [3, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(octets(Icmpv4Error::FragmentationNeeded(1500)), [3, 4, 0, 0, 0, 0, 0x05, 0xDC]);
        assert_eq!(octets(Icmpv4Error::TimeExceeded), [11, 0, 0, 0, 0, 0, 0, 0]);
    }
}
