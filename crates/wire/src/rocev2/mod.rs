//! A RoCEv2 packet in IPv6 (IBTA annex A17): found once, from the IPv6 header to the ICRC.
//!
//! ```text
//! 0      40                  udp     bth      extended            payload      icrc   end
//! | IPv6 | extension headers | UDP 8 | BTH 12 | RETH, AETH, … 0–28 | payload, pad | ICRC |
//!                              \_________________ UDP Length _________________________/
//! ```
//!
//! [`Packet`] is the view: it needs the headers in one piece, while payload and ICRC may lie in further segments.
//! [`PacketValue`] is the value, for a packet without extension headers.

mod error;
mod extended;
mod trim;
mod value;

pub use error::NotRocev2;
pub use extended::Extended;
pub use trim::trim;
pub use value::PacketValue;

use crate::bth::BthView;
use crate::checksum::Sum;
use crate::codepoints::ROCEV2_PORT;
use crate::extension::ExtensionHeaders;
use crate::icrc::{Computation, Icrc};
use crate::ipv6::{Ipv6View, NextHeader};
use crate::udp::UdpView;
use crate::view::{Truncated, View};
use core::ops::Range;

/// A RoCEv2 packet whose lengths agree with each other. All offsets count octets from the first octet of the IPv6
/// header.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// IPv6 header.
    pub ipv6: &'a Ipv6View,
    /// UDP header.
    pub udp: &'a UdpView,
    /// Base Transport Header.
    pub bth: &'a BthView,
    /// Extended transport headers.
    pub extended: Extended<'a>,
    /// The part of the packet in the first segment.
    first: &'a [u8],
    udp_offset: usize,
    payload_offset: usize,
    end: usize,
}

impl<'a> Packet<'a> {
    /// The RoCEv2 packet that begins with `first` and has `total_len` octets in all its segments. Octets behind the
    /// end that the IPv6 header states, such as Ethernet padding, are left out of account.
    #[inline]
    pub fn parse(first: &'a [u8], total_len: usize) -> Result<Self, NotRocev2> {
        let (ipv6, after) = Ipv6View::split(first)?;
        if ipv6.version() != 6 {
            return Err(NotRocev2::Version(ipv6.version()));
        }
        let end = Ipv6View::LEN + usize::from(ipv6.payload_length());
        if total_len < end {
            return Err(Truncated { header: "IPv6 packet", needed: end, found: total_len }.into());
        }
        let (udp_offset, after) = match ipv6.next_header() {
            NextHeader::UDP => (Ipv6View::LEN, after),
            next_header => find_udp(next_header, after)?,
        };
        let (udp, after) = UdpView::split(after)?;
        if udp.destination_port() != ROCEV2_PORT {
            return Err(NotRocev2::DestinationPort(udp.destination_port()));
        }
        if udp_offset + usize::from(udp.length()) != end {
            return Err(NotRocev2::UdpLength { found: udp.length(), expected: end.saturating_sub(udp_offset) });
        }
        let (bth, after) = BthView::split(after)?;
        if bth.transport_version() != 0 {
            return Err(NotRocev2::TransportVersion(bth.transport_version()));
        }
        let (extended, after) = Extended::split(bth.opcode(), after)?;
        let payload_offset = first.len() - after.len();
        let needed = payload_offset + usize::from(bth.pad_count()) + Icrc::LEN;
        if needed > end {
            return Err(NotRocev2::TooShort { needed, found: end });
        }
        let first = first.get(..end).unwrap_or(first);
        Ok(Packet { ipv6, udp, bth, extended, first, udp_offset, payload_offset, end })
    }

    /// Octets of all extension headers between IPv6 and UDP.
    pub fn extension_octets(&self) -> u16 {
        (self.udp_offset - Ipv6View::LEN) as u16
    }

    /// Walks the extension headers between IPv6 and UDP.
    pub fn extension_headers(&self) -> ExtensionHeaders<'a> {
        ExtensionHeaders::new(self.ipv6.next_header(), self.first.get(Ipv6View::LEN..).unwrap_or(&[]))
    }

    /// Offset of the UDP header.
    pub fn udp_offset(&self) -> usize {
        self.udp_offset
    }

    /// Offset of the BTH.
    pub fn bth_offset(&self) -> usize {
        self.udp_offset + UdpView::LEN
    }

    /// Offset of the extended transport headers, or of the payload without any.
    pub fn extended_offset(&self) -> usize {
        self.bth_offset() + BthView::LEN
    }

    /// Octets of the payload, without its padding.
    pub fn payload_range(&self) -> Range<usize> {
        self.payload_offset..self.icrc_offset() - usize::from(self.bth.pad_count())
    }

    /// The payload without its padding, when the first segment holds all of it.
    pub fn payload(&self) -> Option<&'a [u8]> {
        self.first.get(self.payload_range())
    }

    /// Offset of the ICRC: four octets before the end.
    pub fn icrc_offset(&self) -> usize {
        self.end - Icrc::LEN
    }

    /// Octets of the packet, from the IPv6 header to the ICRC.
    pub fn total_len(&self) -> usize {
        self.end
    }

    /// The ICRC that the packet carries beside the one that it should carry, extension headers counted as absent (D43).
    /// `further` are the segments behind the first one; the ICRC may straddle their borders.
    pub fn icrc(&self, further: impl IntoIterator<Item = &'a [u8]>) -> Result<IcrcCheck, Truncated> {
        let mut computation = Computation::begin(self.ipv6, self.extension_octets(), self.udp, self.bth);
        let mut carried = [0; Icrc::LEN];
        let mut places = carried.iter_mut();
        let mut covered = self.icrc_offset() - self.extended_offset();
        for octets in self.segments_from(self.extended_offset(), further) {
            let (body, tail) = octets.split_at_checked(covered).unwrap_or((octets, &[]));
            computation.update(body);
            covered -= body.len();
            for (octet, place) in tail.iter().zip(places.by_ref()) {
                *place = *octet;
            }
        }
        match covered + places.len() {
            0 => Ok(IcrcCheck { carried: Icrc(carried), computed: computation.finish() }),
            missing => Err(self.incomplete(missing)),
        }
    }

    /// The result of verifying the UDP checksum. An SRH with segments left must not be before UDP: the pseudo-header
    /// has the final destination.
    pub fn udp_checksum(&self, further: impl IntoIterator<Item = &'a [u8]>) -> Result<UdpChecksum, Truncated> {
        if self.udp.checksum() == 0 {
            return Ok(UdpChecksum::Absent);
        }
        let (source, destination) = (self.ipv6.source_octets(), self.ipv6.destination_octets());
        let mut left = self.end - self.udp_offset;
        let mut sum = Sum::pseudo_header(source, destination, left as u32, NextHeader::UDP);
        for octets in self.segments_from(self.udp_offset, further) {
            let octets = octets.get(..left).unwrap_or(octets);
            sum.add(octets);
            left -= octets.len();
        }
        match (left, sum.checksum()) {
            (0, 0) => Ok(UdpChecksum::Good),
            (0, _) => Ok(UdpChecksum::Bad),
            (missing, _) => Err(self.incomplete(missing)),
        }
    }

    fn segments_from(
        &self,
        offset: usize,
        further: impl IntoIterator<Item = &'a [u8]>,
    ) -> impl Iterator<Item = &'a [u8]> {
        core::iter::once(self.first.get(offset..).unwrap_or(&[])).chain(further)
    }

    fn incomplete(&self, missing: usize) -> Truncated {
        Truncated { header: "IPv6 packet", needed: self.end, found: self.end - missing }
    }
}

/// An ICRC found, and the one expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcrcCheck {
    /// The ICRC of the packet.
    pub carried: Icrc,
    /// The expected ICRC.
    pub computed: Icrc,
}

impl IcrcCheck {
    /// Whether the packet is as its sender made it.
    pub fn is_good(&self) -> bool {
        self.carried == self.computed
    }
}

/// Result of verifying a UDP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Zero: the sender computed none (RFC 6936).
    Absent,
    /// It fits.
    Good,
    /// It does not fit.
    Bad,
}

#[cold]
fn find_udp(next_header: NextHeader, after: &[u8]) -> Result<(usize, &[u8]), NotRocev2> {
    let mut headers = ExtensionHeaders::new(next_header, after);
    for header in headers.by_ref() {
        header?;
    }
    match headers.next_header() {
        NextHeader::UDP => Ok((headers.offset(), headers.rest())),
        other => Err(NotRocev2::UpperLayer(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::Opcode;
    use crate::extension::ExtensionError;

    /// An ACK that scapy made: IPv6, UDP, BTH, AETH, ICRC.
    const ACK: [u8; 68] = [
        0x60, 0, 0, 0, 0, 0x1C, 0x11, 0x40, 0x20, 0x01, 0x0D, 0xB8, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x20, 0x01,
        0x0D, 0xB8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xD0, 0x02, 0x12, 0xB7, 0, 0x1C, 0, 0, 0x11, 0, 0xFF, 0xFF, 0,
        0, 0, 0x77, 0, 0, 0, 0x64, 0x1F, 0, 0, 1, 0xDE, 0xC9, 0xB6, 0x15,
    ];

    fn refusal(changes: &[(usize, u8)]) -> NotRocev2 {
        let mut octets = ACK;
        for (place, octet) in changes {
            octets[*place] = *octet;
        }
        Packet::parse(&octets, octets.len()).unwrap_err()
    }

    #[test]
    fn every_part_is_found() {
        let packet = Packet::parse(&ACK, ACK.len()).unwrap();
        assert_eq!((packet.udp_offset(), packet.bth_offset(), packet.extended_offset()), (40, 48, 60));
        assert_eq!((packet.payload_range(), packet.icrc_offset(), packet.total_len()), (64..64, 64, 68));
        assert_eq!((packet.bth.opcode(), packet.bth.psn().get()), (Opcode::ACKNOWLEDGE, 100));
        assert_eq!(packet.extended.aeth().unwrap().value().msn, 1);
        assert_eq!((packet.payload(), packet.extension_headers().count()), (Some(&[][..]), 0));
        assert!(packet.icrc([]).unwrap().is_good());
        assert_eq!(packet.udp_checksum([]), Ok(UdpChecksum::Absent));
    }

    #[test]
    fn every_refusal_has_its_reason() {
        assert_eq!(refusal(&[(0, 0x45)]), NotRocev2::Version(4));
        assert_eq!(refusal(&[(6, 44)]), NotRocev2::UpperLayer(NextHeader::FRAGMENT));
        assert_eq!(refusal(&[(6, 59)]), NotRocev2::UpperLayer(NextHeader::NONE));
        assert_eq!(refusal(&[(43, 0xB8)]), NotRocev2::DestinationPort(4792));
        assert_eq!(refusal(&[(45, 0x1B)]), NotRocev2::UdpLength { found: 27, expected: 28 });
        assert_eq!(refusal(&[(5, 0x1B)]), NotRocev2::UdpLength { found: 28, expected: 27 });
        assert_eq!(refusal(&[(49, 0x01)]), NotRocev2::TransportVersion(1));
        assert_eq!(refusal(&[(48, 0x18)]), NotRocev2::Opcode(Opcode(0x18)));
        assert_eq!(refusal(&[(49, 0x30)]), NotRocev2::TooShort { needed: 71, found: 68 });
        let truncated = |header, needed, found| NotRocev2::Truncated(Truncated { header, needed, found });
        assert_eq!(refusal(&[(5, 0x1D)]), truncated("IPv6 packet", 69, 68));
        assert_eq!(refusal(&[(48, 0x0A)]), truncated("RETH", 16, 8));
        assert_eq!(refusal(&[(6, 60), (40, 17), (41, 2)]), truncated("UDP", 8, 4));
        let beyond = Truncated { header: "extension header", needed: 32, found: 28 };
        let beyond = ExtensionError::Truncated { offset: 40, truncated: beyond };
        assert_eq!(refusal(&[(6, 60), (40, 17), (41, 3)]), NotRocev2::Extension(beyond));
    }

    /// Headers must be in the first segment; the octets after them need not.
    #[test]
    fn headers_may_not_be_cut() {
        for first_len in 0..=ACK.len() {
            assert_eq!(Packet::parse(&ACK[..first_len], ACK.len()).is_ok(), first_len >= 64, "{first_len} octets");
        }
    }
}
