//! UDP (RFC 768; over IPv6 RFC 8200 section 8.1, zero checksum RFC 6936).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          Source Port          |        Destination Port       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |             Length            |            Checksum           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::{Truncated, View};
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// UDP header as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct UdpView {
    source_port: U16,
    destination_port: U16,
    length: U16,
    checksum: U16,
}

impl View for UdpView {
    const NAME: &'static str = "UDP";
    const LEN: usize = 2 + 2 + 2 + 2;
}

impl UdpView {
    /// Source port; RoCEv2 uses it as the flow's entropy.
    pub fn source_port(&self) -> u16 {
        self.source_port.get()
    }

    /// Destination port: 4791 for RoCEv2.
    pub fn destination_port(&self) -> u16 {
        self.destination_port.get()
    }

    /// Octets of header and payload.
    pub fn length(&self) -> u16 {
        self.length.get()
    }

    /// Checksum; 0 means that none was computed.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the octets of header and payload.
    pub fn set_length(&mut self, octets: u16) {
        self.length.set(octets);
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }

    /// The fields.
    pub fn value(&self) -> Udp {
        Udp {
            source_port: self.source_port(),
            destination_port: self.destination_port(),
            length: self.length(),
            checksum: self.checksum(),
        }
    }
}

/// UDP header as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    pub source_port: u16,
    pub destination_port: u16,
    /// Octets of header and payload.
    pub length: u16,
    /// Checksum; 0 means that none was computed.
    pub checksum: u16,
}

impl Udp {
    /// Length in octets.
    pub const LEN: usize = UdpView::LEN;

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = UdpView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The header's octets.
    pub fn emit(&self) -> UdpView {
        UdpView {
            source_port: U16::new(self.source_port),
            destination_port: U16::new(self.destination_port),
            length: U16::new(self.length),
            checksum: U16::new(self.checksum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn fields_of_a_captured_header() {
        let octets = [0xD0, 0x01, 0x12, 0xB7, 0x00, 0x20, 0x65, 0x49];
        let (udp, rest) = Udp::parse(&octets).unwrap();
        let expected = Udp { source_port: 0xD001, destination_port: 4791, length: 32, checksum: 0x6549 };
        assert_eq!((udp, rest), (expected, &[][..]));
        assert_eq!(udp.emit().as_bytes(), octets);
        assert_eq!(Udp::parse(&octets[..7]), Err(Truncated { header: "UDP", needed: 8, found: 7 }));
    }

    #[test]
    fn setting_the_checksum_leaves_the_rest() {
        let mut octets = [1, 2, 3, 4, 5, 6, 7, 8];
        UdpView::split_mut(&mut octets).unwrap().0.set_checksum(0xABCD);
        assert_eq!(octets, [1, 2, 3, 4, 5, 6, 0xAB, 0xCD]);
    }
}
