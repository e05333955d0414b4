//! ICMPv6 errors (RFC 4443; codes of RFC 8200 section 4 and RFC 8986 section 4.1.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      Type     |      Code     |            Checksum           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                     MTU, Pointer or unused                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                  As much of the invoking packet               |
//! +              as fits the minimum IPv6 MTU of 1280             +
//! |                                                               |
//! ```

use crate::checksum::Sum;
use crate::ipv6::NextHeader;
use crate::view::{Truncated, View};
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Octets that an error message may have behind its IPv6 header, so that the packet fits the minimum IPv6 MTU (RFC 4443
/// section 2.4 (c)).
pub const MAX_MESSAGE_LEN: usize = 1280 - 40;

/// ICMPv6 error header as it lies; the invoking packet follows.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmpv6View {
    /// Type; errors are below 128.
    pub kind: u8,
    pub code: u8,
    checksum: U16,
    parameter: U32,
}

impl View for Icmpv6View {
    const NAME: &'static str = "ICMPv6";
    const LEN: usize = 1 + 1 + 2 + 4;
}

impl Icmpv6View {
    /// The header of an error, its checksum still zero.
    pub fn new(error: Icmpv6Error) -> Self {
        let (kind, code, parameter) = error.fields();
        Icmpv6View { kind, code, checksum: U16::ZERO, parameter: U32::new(parameter) }
    }

    /// The error, when it is one of those that this crate names.
    pub fn error(&self) -> Option<Icmpv6Error> {
        Icmpv6Error::from_fields(self.kind, self.code, self.parameter.get())
    }

    /// The 32 bits behind the checksum: MTU, pointer, or what another type makes of them.
    pub fn parameter(&self) -> u32 {
        self.parameter.get()
    }

    /// Checksum over pseudo-header and message.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }
}

/// An ICMPv6 error, as RFC 4443 numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv6Error {
    /// Type 1 code 0: no route to destination.
    NoRoute,
    /// Type 1 code 3: address unreachable.
    AddressUnreachable,
    /// Type 1 code 4: port unreachable.
    PortUnreachable,
    /// Type 2: packet too big, with the MTU of the next link.
    PacketTooBig(u32),
    /// Type 3 code 0: hop limit exceeded in transit.
    HopLimitExceeded,
    /// Type 4 code 0: erroneous header field, at this offset from the start of the IPv6 header.
    ErroneousField(u32),
    /// Type 4 code 1: unrecognised next header.
    UnrecognisedNextHeader(u32),
    /// Type 4 code 2: unrecognised option.
    UnrecognisedOption(u32),
    /// Type 4 code 4: SR upper-layer header error (RFC 8986 section 4.1.1).
    SrUpperLayer(u32),
    /// Type 4 code 8: too many extension headers (RFC 8883).
    TooManyExtensionHeaders(u32),
}

impl Icmpv6Error {
    /// Type, code and the 32 bits that follow the checksum.
    pub const fn fields(self) -> (u8, u8, u32) {
        match self {
            Icmpv6Error::NoRoute => (1, 0, 0),
            Icmpv6Error::AddressUnreachable => (1, 3, 0),
            Icmpv6Error::PortUnreachable => (1, 4, 0),
            Icmpv6Error::PacketTooBig(mtu) => (2, 0, mtu),
            Icmpv6Error::HopLimitExceeded => (3, 0, 0),
            Icmpv6Error::ErroneousField(pointer) => (4, 0, pointer),
            Icmpv6Error::UnrecognisedNextHeader(pointer) => (4, 1, pointer),
            Icmpv6Error::UnrecognisedOption(pointer) => (4, 2, pointer),
            Icmpv6Error::SrUpperLayer(pointer) => (4, 4, pointer),
            Icmpv6Error::TooManyExtensionHeaders(pointer) => (4, 8, pointer),
        }
    }

    /// The error with these fields, when it is one of those that this crate names.
    pub const fn from_fields(kind: u8, code: u8, parameter: u32) -> Option<Self> {
        Some(match (kind, code) {
            (1, 0) => Icmpv6Error::NoRoute,
            (1, 3) => Icmpv6Error::AddressUnreachable,
            (1, 4) => Icmpv6Error::PortUnreachable,
            (2, 0) => Icmpv6Error::PacketTooBig(parameter),
            (3, 0) => Icmpv6Error::HopLimitExceeded,
            (4, 0) => Icmpv6Error::ErroneousField(parameter),
            (4, 1) => Icmpv6Error::UnrecognisedNextHeader(parameter),
            (4, 2) => Icmpv6Error::UnrecognisedOption(parameter),
            (4, 4) => Icmpv6Error::SrUpperLayer(parameter),
            (4, 8) => Icmpv6Error::TooManyExtensionHeaders(parameter),
            _ => return None,
        })
    }
    /// The error at the front of `octets`, `None` when it is not one of those that this crate names, and the invoking
    /// packet behind it.
    pub fn parse(octets: &[u8]) -> Result<(Option<Self>, &[u8]), Truncated> {
        let (view, invoking) = Icmpv6View::split(octets)?;
        Ok((view.error(), invoking))
    }

    /// Writes the whole message to the front of `into`, checksum included, and returns its length. As much of
    /// `invoking` is quoted as [`MAX_MESSAGE_LEN`] has room for. `None` when the message does not fit.
    pub fn emit(self, source: Ipv6Addr, destination: Ipv6Addr, invoking: &[u8], into: &mut [u8]) -> Option<usize> {
        let quoted = invoking.get(..MAX_MESSAGE_LEN - Icmpv6View::LEN).unwrap_or(invoking);
        let len = Icmpv6View::LEN + quoted.len();
        let message = into.get_mut(..len)?;
        let (view, rest) = Icmpv6View::split_mut(message).ok()?;
        *view = Icmpv6View::new(self);
        rest.copy_from_slice(quoted);
        let mut sum = Sum::pseudo_header(&source.octets(), &destination.octets(), len as u32, NextHeader::ICMPV6);
        sum.add(message);
        Icmpv6View::split_mut(message).ok()?.0.set_checksum(sum.checksum());
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn types_and_codes_are_parsed_to_the_same_error() {
        for kind in 0..=u8::MAX {
            for code in 0..=u8::MAX {
                let Some(error) = Icmpv6Error::from_fields(kind, code, 7) else { continue };
                let (found_kind, found_code, parameter) = error.fields();
                assert_eq!((found_kind, found_code), (kind, code));
                assert!(parameter == 7 || kind == 1 || kind == 3, "types 1 and 3 have no parameter");
            }
        }
    }

    /// RFC 4443 section 3.4, RFC 8986 section 4.1.1: an unknown upper layer at an SRv6 SID, 40 octets into the packet.
    #[test]
    fn an_error_has_its_octets() {
        let (source, destination) = ("fd00:a::1".parse().unwrap(), "fd00:d::2".parse().unwrap());
        let mut message = [0xEE; 12];
        assert_eq!(Icmpv6Error::SrUpperLayer(40).emit(source, destination, &[1, 2, 3, 4], &mut message), Some(12));
        let mut sum = Sum::pseudo_header(&source.octets(), &destination.octets(), 12, NextHeader::ICMPV6);
        sum.add(&message);
        assert_eq!(sum.checksum(), 0, "a message with its checksum adds up to nothing");
        let [kind, code, _, _, rest @ ..] = message;
        assert_eq!((kind, code, rest), (4, 4, [0, 0, 0, 40, 1, 2, 3, 4]));
        assert_eq!(Icmpv6Error::parse(&message), Ok((Some(Icmpv6Error::SrUpperLayer(40)), &[1, 2, 3, 4][..])));
    }

    #[test]
    fn the_invoking_packet_is_cut_to_the_minimum_mtu() {
        let address = Ipv6Addr::LOCALHOST;
        let mut message = vec![0; 2000];
        let emit = |into: &mut [u8]| Icmpv6Error::PacketTooBig(1500).emit(address, address, &[7; 4000], into);
        assert_eq!(emit(&mut message), Some(1240));
        assert_eq!((message[1239], message[1240]), (7, 0));
        assert_eq!(emit(&mut message[..1239]), None);
    }
}
