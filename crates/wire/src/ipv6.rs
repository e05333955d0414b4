//! IPv6 (RFC 8200 section 3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |Version| Traffic Class |               Flow Label              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         Payload Length        |  Next Header  |   Hop Limit   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +                         Source Address                        +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +                      Destination Address                      +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::view::{Truncated, View};
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A Next Header value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHeader(pub u8);

#[allow(missing_docs, reason = "the names say it")]
impl NextHeader {
    /// Hop-by-Hop Options.
    pub const HOP_BY_HOP: NextHeader = NextHeader(0);
    pub const IPV4: NextHeader = NextHeader(4);
    pub const UDP: NextHeader = NextHeader(17);
    pub const IPV6: NextHeader = NextHeader(41);
    pub const ROUTING: NextHeader = NextHeader(43);
    pub const FRAGMENT: NextHeader = NextHeader(44);
    pub const ICMPV6: NextHeader = NextHeader(58);
    /// No next header.
    pub const NONE: NextHeader = NextHeader(59);
    pub const DESTINATION_OPTIONS: NextHeader = NextHeader(60);
    /// Ethernet (RFC 8986).
    pub const ETHERNET: NextHeader = NextHeader(143);
}

/// Explicit Congestion Notification (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    NotEct = 0,
    /// ECN-capable, codepoint 1.
    Ect1 = 1,
    /// ECN-capable, codepoint 0.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The two low bits of a traffic class.
    pub const fn of_traffic_class(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// IPv6 header as it lies.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6View {
    first: [u8; 4],
    payload_length: U16,
    next_header: u8,
    pub hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

impl View for Ipv6View {
    const NAME: &'static str = "IPv6";
    const LEN: usize = 4 + 2 + 1 + 1 + 16 + 16;
}

impl Ipv6View {
    /// Always 6 in a valid header.
    pub fn version(&self) -> u8 {
        self.first[0] >> 4
    }

    /// Traffic class: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.first[0] << 4 | self.first[1] >> 4
    }

    /// Sets DSCP and ECN.
    pub fn set_traffic_class(&mut self, traffic_class: u8) {
        self.first[0] = self.first[0] & 0xF0 | traffic_class >> 4;
        self.first[1] = self.first[1] & 0x0F | traffic_class << 4;
    }

    /// Explicit Congestion Notification.
    pub fn ecn(&self) -> Ecn {
        Ecn::of_traffic_class(self.traffic_class())
    }

    /// Sets the ECN bits, leaves the DSCP.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        self.set_traffic_class(self.traffic_class() & !3 | ecn as u8);
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes(self.first) & 0xF_FFFF
    }

    /// Octets after this header.
    pub fn payload_length(&self) -> u16 {
        self.payload_length.get()
    }

    /// Sets the number of octets after this header.
    pub fn set_payload_length(&mut self, octets: u16) {
        self.payload_length.set(octets);
    }

    /// Type of the header after this one.
    pub fn next_header(&self) -> NextHeader {
        NextHeader(self.next_header)
    }

    /// Sets what follows.
    pub fn set_next_header(&mut self, next_header: NextHeader) {
        self.next_header = next_header.0;
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        self.source.into()
    }

    /// Source address as it lies.
    pub fn source_octets(&self) -> &[u8; 16] {
        &self.source
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: Ipv6Addr) {
        self.source = address.octets();
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        self.destination.into()
    }

    /// Destination address as it lies.
    pub fn destination_octets(&self) -> &[u8; 16] {
        &self.destination
    }

    /// Sets the destination address.
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        self.destination = address.octets();
    }

    /// The fields. The version is not among them: [`Ipv6::parse`] looks at it.
    pub fn value(&self) -> Ipv6 {
        Ipv6 {
            traffic_class: self.traffic_class(),
            flow_label: self.flow_label(),
            payload_length: self.payload_length(),
            next_header: self.next_header(),
            hop_limit: self.hop_limit,
            source: self.source(),
            destination: self.destination(),
        }
    }
}

/// IPv6 header as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Octets after this header.
    pub payload_length: u16,
    pub next_header: NextHeader,
    pub hop_limit: u8,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
}

/// Errors of an IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Error {
    /// Fewer octets than a header.
    Truncated(Truncated),
    /// The version found instead of 6.
    Version(u8),
}

impl core::fmt::Display for Ipv6Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Ipv6Error::Truncated(truncated) => truncated.fmt(f),
            Ipv6Error::Version(found) => write!(f, "IPv6 version must be 6, found {found}"),
        }
    }
}

impl core::error::Error for Ipv6Error {}

impl Ipv6 {
    /// Length in octets.
    pub const LEN: usize = Ipv6View::LEN;

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Ipv6Error> {
        let (view, rest) = Ipv6View::split(octets).map_err(Ipv6Error::Truncated)?;
        if view.version() != 6 {
            return Err(Ipv6Error::Version(view.version()));
        }
        Ok((view.value(), rest))
    }

    /// The header's octets; the flow label is cut to 20 bits.
    pub fn emit(&self) -> Ipv6View {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xF_FFFF;
        Ipv6View {
            first: first.to_be_bytes(),
            payload_length: U16::new(self.payload_length),
            next_header: self.next_header.0,
            hop_limit: self.hop_limit,
            source: self.source.octets(),
            destination: self.destination.octets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    /// The header of a WRITE that scapy made.
    const CAPTURED: [u8; 40] = [
        0x60, 0x21, 0x23, 0x45, 0x00, 0x4C, 0x11, 0x40, 0x20, 0x01, 0x0D, 0xB8, 0x00, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x01, 0x20, 0x01, 0x0D, 0xB8, 0x00, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0,
    ];

    #[test]
    fn fields_of_a_captured_header() {
        let (ipv6, rest) = Ipv6::parse(&CAPTURED).unwrap();
        let expected = Ipv6 {
            traffic_class: 0x02,
            flow_label: 0x12345,
            payload_length: 76,
            next_header: NextHeader::UDP,
            hop_limit: 64,
            source: "2001:db8:1::1".parse().unwrap(),
            destination: "2001:db8:ff::100".parse().unwrap(),
        };
        assert_eq!((ipv6, rest), (expected, &[][..]));
        assert_eq!(ipv6.emit().as_bytes(), CAPTURED);
        assert_eq!(Ecn::of_traffic_class(ipv6.traffic_class), Ecn::Ect0);
    }

    #[test]
    fn other_versions_and_short_headers_are_refused() {
        let mut octets = CAPTURED;
        octets[0] = 0x45;
        assert_eq!(Ipv6::parse(&octets), Err(Ipv6Error::Version(4)));
        let truncated = Truncated { header: "IPv6", needed: 40, found: 39 };
        assert_eq!(Ipv6::parse(&octets[..39]), Err(Ipv6Error::Truncated(truncated)));
    }

    #[test]
    fn edits_in_place_leave_their_neighbours() {
        let mut octets = CAPTURED;
        let (view, _) = Ipv6View::split_mut(&mut octets).unwrap();
        view.set_ecn(Ecn::Ce);
        assert_eq!((view.version(), view.traffic_class(), view.flow_label()), (6, 0x03, 0x12345));
        view.set_traffic_class(0xA9);
        assert_eq!(
            (view.version(), view.traffic_class(), view.flow_label(), view.ecn()),
            (6, 0xA9, 0x12345, Ecn::Ect1)
        );
        view.set_source(Ipv6Addr::LOCALHOST);
        view.set_destination(Ipv6Addr::UNSPECIFIED);
        assert_eq!((view.source(), view.destination()), (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED));
        assert_eq!((view.payload_length(), view.next_header(), view.hop_limit), (76, NextHeader::UDP, 64));
    }

    #[test]
    fn a_flow_label_is_cut_to_20_bits() {
        let (ipv6, _) = Ipv6::parse(&CAPTURED).unwrap();
        let view = Ipv6 { flow_label: 0xFFF1_2345, ..ipv6 }.emit();
        assert_eq!(view.as_bytes(), CAPTURED);
    }
}
