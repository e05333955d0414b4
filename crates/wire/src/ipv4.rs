//! IPv4 (RFC 791 section 3.1), as far as a node forwards it.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |Version|  IHL  |Type of Service|          Total Length         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         Identification        |Flags|     Fragment Offset     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Time to Live |    Protocol   |        Header Checksum        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                         Source Address                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Destination Address                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::checksum::{Sum, Update};
use crate::ipv6::Ecn;
use crate::view::View;
use core::net::Ipv4Addr;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IPv4 header without options as it lies.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4View {
    version_ihl: u8,
    /// Type of Service: DSCP and ECN.
    tos: u8,
    total_length: U16,
    pub identification: U16,
    /// Three flags, then 13 bits of the offset.
    fragment: U16,
    ttl: u8,
    pub protocol: u8,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

impl View for Ipv4View {
    const NAME: &'static str = "IPv4";
    const LEN: usize = 1 + 1 + 2 + 2 + 2 + 1 + 1 + 2 + 4 + 4;
}

/// Flag of a datagram that must not be fragmented.
const DONT_FRAGMENT: u16 = 0x4000;

/// Flag of a fragment that is not the last one.
const MORE_FRAGMENTS: u16 = 0x2000;

/// Bits of the fragment offset, in units of eight octets.
const OFFSET: u16 = 0x1FFF;

impl Ipv4View {
    /// Always 4 in a valid header.
    pub fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Octets of the header, with its options.
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 0xF) * 4
    }

    /// Sets the octets of the header, a multiple of four up to 60.
    pub fn set_header_len(&mut self, octets: usize) {
        self.version_ihl = 4 << 4 | (octets / 4) as u8 & 0xF;
    }

    /// DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        self.tos
    }

    /// Explicit Congestion Notification.
    pub fn ecn(&self) -> Ecn {
        Ecn::of_traffic_class(self.tos)
    }

    /// Sets the ECN bits, leaves the DSCP, and updates the checksum.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        let before = [self.version_ihl, self.tos];
        self.tos = self.tos & !3 | ecn as u8;
        self.update(&before, &[self.version_ihl, self.tos]);
    }

    /// Octets of the datagram, header included.
    pub fn total_length(&self) -> u16 {
        self.total_length.get()
    }

    /// Sets the octets of the datagram. The checksum is the caller's.
    pub fn set_total_length(&mut self, octets: u16) {
        self.total_length.set(octets);
    }

    /// Whether the datagram must not be fragmented.
    pub fn dont_fragment(&self) -> bool {
        self.fragment.get() & DONT_FRAGMENT != 0
    }

    /// Forbids to fragment the datagram. The checksum is the caller's.
    pub fn set_dont_fragment(&mut self) {
        self.fragment.set(self.fragment.get() | DONT_FRAGMENT);
    }

    /// Whether it is a fragment that is not the last one.
    pub fn more_fragments(&self) -> bool {
        self.fragment.get() & MORE_FRAGMENTS != 0
    }

    /// Where a fragment's data begin in those of the datagram, in octets.
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment.get() & OFFSET) * 8
    }

    /// Sets offset, in octets, and More Fragments. The checksum is the caller's.
    pub fn set_fragment(&mut self, offset: usize, more: bool) {
        let kept = self.fragment.get() & !(MORE_FRAGMENTS | OFFSET);
        let more = if more { MORE_FRAGMENTS } else { 0 };
        self.fragment.set(kept | more | (offset / 8) as u16 & OFFSET);
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.ttl
    }

    /// Decrements the time to live, which is not zero, and updates the checksum.
    pub fn decrement_ttl(&mut self) {
        let before = [self.ttl, self.protocol];
        self.ttl = self.ttl.saturating_sub(1);
        self.update(&before, &[self.ttl, self.protocol]);
    }

    fn update(&mut self, before: &[u8; 2], after: &[u8; 2]) {
        let mut update = Update::default();
        update.replace(before, after);
        self.checksum.set(update.apply(self.checksum.get()));
    }

    /// Header checksum.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the header checksum.
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum.set(checksum);
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        self.source.into()
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        self.destination.into()
    }

    /// Source and destination as they lie.
    pub fn addresses(&self) -> ([u8; 4], [u8; 4]) {
        (self.source, self.destination)
    }
}

/// The checksum of a header of these octets, with options, in which it is zero; of one that has the right one: zero.
pub fn header_checksum(header: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(header);
    sum.checksum()
}

/// IPv4 header without options as a value; not fragmented.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Octets of the datagram, header included.
    pub total_length: u16,
    pub ttl: u8,
    pub protocol: u8,
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
}

impl Ipv4 {
    /// Length in octets.
    pub const LEN: usize = Ipv4View::LEN;

    /// The header's octets, with its checksum. Identification is zero, as of a datagram that is not fragmented (RFC
    /// 6864).
    pub fn emit(&self) -> Ipv4View {
        let mut view = Ipv4View {
            version_ihl: 0x45,
            tos: self.traffic_class,
            total_length: U16::new(self.total_length),
            identification: U16::ZERO,
            fragment: U16::ZERO,
            ttl: self.ttl,
            protocol: self.protocol,
            checksum: U16::ZERO,
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        view.checksum.set(header_checksum(view.as_bytes()));
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header that Wikipedia computes a checksum for ("Internet checksum").
    const CAPTURED: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xB8, 0x61, 0xC0, 0xA8, 0x00, 0x01, 0xC0, 0xA8,
        0x00, 0xC7,
    ];

    fn view(octets: &mut [u8; 20]) -> &mut Ipv4View {
        Ipv4View::split_mut(octets).unwrap().0
    }

    #[test]
    fn fields_of_a_captured_header() {
        let mut octets = CAPTURED;
        assert_eq!(header_checksum(&octets), 0);
        let view = view(&mut octets);
        assert_eq!((view.version(), view.header_len(), view.total_length(), view.ttl()), (4, 20, 115, 64));
        assert_eq!((view.dont_fragment(), view.more_fragments(), view.fragment_offset()), (true, false, 0));
        assert_eq!((view.protocol, view.checksum()), (17, 0xB861));
        assert_eq!(view.source(), Ipv4Addr::new(192, 168, 0, 1));
        assert_eq!(view.destination(), Ipv4Addr::new(192, 168, 0, 199));
    }

    /// RFC 1624: after each edit the checksum is that of the whole header.
    #[test]
    fn edits_keep_the_checksum_right() {
        for ttl in 1..=255 {
            for tos in 0..4 {
                let mut octets = CAPTURED;
                (octets[8], octets[1], octets[10], octets[11]) = (ttl, tos, 0, 0);
                let checksum = header_checksum(&octets).to_be_bytes();
                octets[10..12].copy_from_slice(&checksum);
                view(&mut octets).decrement_ttl();
                assert_eq!((octets[8], header_checksum(&octets)), (ttl - 1, 0), "{ttl}");
                view(&mut octets).set_ecn(Ecn::Ce);
                assert_eq!((octets[1], header_checksum(&octets)), (3, 0), "{tos}");
            }
        }
    }

    #[test]
    fn a_value_has_its_checksum() {
        let header = Ipv4 {
            traffic_class: 0,
            total_length: 115,
            ttl: 64,
            protocol: 17,
            source: Ipv4Addr::new(192, 168, 0, 1),
            destination: Ipv4Addr::new(192, 168, 0, 199),
        };
        let mut expected = CAPTURED;
        (expected[6], expected[10], expected[11]) = (0, 0xF8, 0x61);
        assert_eq!(header.emit().as_bytes(), expected);
    }

    #[test]
    fn fragments_keep_the_other_flags() {
        let mut octets = CAPTURED;
        view(&mut octets).set_fragment(1480, true);
        assert_eq!(octets[6..8], [0x60, 185]);
        assert_eq!((view(&mut octets).fragment_offset(), view(&mut octets).more_fragments()), (1480, true));
    }
}
