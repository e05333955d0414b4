//! A probe of a path: the test packet of STAMP's Session-Sender, not authenticated (RFC 8762 section 4.2.1), with the
//! session's identifier of RFC 8972 section 3. It returns unchanged, as in the loopback mode of
//! draft-ietf-spring-stamp-srpm-srv6 (D87).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Sequence Number                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Timestamp: seconds                       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                    Timestamp: nanoseconds                     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |S|Z|   Scale   |   Multiplier  |             SSID              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                   must be zero (28 octets)                    |
//! :                                                               :
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Z = 1: the time stamp is in the truncated format of PTP, seconds and nanoseconds (RFC 8762 section 4.1.1); the
//! multiplier may not be 0 (RFC 4656 section 4.1.2).
//!
//! [`ProbePacket`] is a whole packet: IPv6 from and to the same address, UDP, and the above.

use crate::checksum::Sum;
use crate::ipv6::{Ipv6, Ipv6View, NextHeader};
use crate::time::Instant;
use crate::udp::{Udp, UdpView};
use crate::units::NS_PER_S;
use crate::view::{Truncated, View};
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A probe as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ProbeView {
    sequence: U32,
    seconds: U32,
    nanoseconds: U32,
    error_estimate: U16,
    session: U16,
    zero: [u8; 28],
}

impl View for ProbeView {
    const NAME: &'static str = "STAMP";
    const LEN: usize = 4 + 4 + 4 + 2 + 2 + 28;
}

impl ProbeView {
    /// Not synchronised, PTP's format, scale 0, multiplier 1: the clock is local to the sender.
    const ERROR_ESTIMATE: u16 = 0x4001;

    /// The fields. Those that must be zero are ignored (RFC 8972 section 3).
    pub fn value(&self) -> Probe {
        let ns = u64::from(self.seconds.get()) * NS_PER_S + u64::from(self.nanoseconds.get());
        Probe { sequence: self.sequence.get(), sent: Instant::from_ns(ns), session: self.session.get() }
    }
}

/// A probe as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Sequence number.
    pub sequence: u32,
    /// When it was sent, by the clock of its sender. Seconds are sent modulo 2^32.
    pub sent: Instant,
    /// The sender's name for the path.
    pub session: u16,
}

impl Probe {
    /// Length in octets.
    pub const LEN: usize = ProbeView::LEN;

    /// The probe at the front of `octets`.
    ///
    /// # Errors
    ///
    /// If there are too few.
    pub fn parse(octets: &[u8]) -> Result<Self, Truncated> {
        Ok(ProbeView::split(octets)?.0.value())
    }

    /// The probe's octets.
    pub fn emit(&self) -> ProbeView {
        let ns = self.sent.as_ns();
        ProbeView {
            sequence: U32::new(self.sequence),
            seconds: U32::new((ns / NS_PER_S) as u32),
            nanoseconds: U32::new((ns % NS_PER_S) as u32),
            error_estimate: U16::new(ProbeView::ERROR_ESTIMATE),
            session: U16::new(self.session),
            zero: [0; 28],
        }
    }
}

/// A packet with a probe, which its sender sends to itself.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePacket {
    /// Source and destination.
    pub address: Ipv6Addr,
    /// DSCP and ECN.
    pub traffic_class: u8,
    pub hop_limit: u8,
    /// UDP port, of both sides.
    pub port: u16,
    pub probe: Probe,
}

impl ProbePacket {
    /// Length in octets, IPv6 header included.
    pub const LEN: usize = Ipv6::LEN + Udp::LEN + Probe::LEN;

    const UDP_LEN: u16 = (Udp::LEN + Probe::LEN) as u16;

    /// The probe in the IPv6 packet that `octets` begins with; `None` when it is no packet from `address` to itself at
    /// this UDP port, or damaged.
    pub fn parse(octets: &[u8], address: Ipv6Addr, port: u16) -> Option<Self> {
        let (ipv6, rest) = Ipv6View::split(octets).ok()?;
        let is_ours = ipv6.version() == 6
            && ipv6.next_header() == NextHeader::UDP
            && ipv6.destination() == address
            && ipv6.source() == address
            && ipv6.payload_length() == Self::UDP_LEN;
        let (udp, body) = UdpView::split(rest).ok()?;
        if !is_ours || udp.destination_port() != port || udp.source_port() != port || udp.length() != Self::UDP_LEN {
            return None;
        }
        let covered = rest.get(..usize::from(Self::UDP_LEN))?;
        if udp.checksum() == 0 || checksum(address, covered) != 0 {
            return None;
        }
        let (view, _) = ProbeView::split(body).ok()?;
        let probe = Some(view).filter(|view| u64::from(view.nanoseconds.get()) < NS_PER_S)?.value();
        Some(ProbePacket { address, traffic_class: ipv6.traffic_class(), hop_limit: ipv6.hop_limit, port, probe })
    }

    /// The packet's octets.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let ipv6 = Ipv6 {
            traffic_class: self.traffic_class,
            flow_label: 0,
            payload_length: Self::UDP_LEN,
            next_header: NextHeader::UDP,
            hop_limit: self.hop_limit,
            source: self.address,
            destination: self.address,
        };
        let udp =
            |checksum| Udp { source_port: self.port, destination_port: self.port, length: Self::UDP_LEN, checksum };
        let body = self.probe.emit();
        let mut covered = [0; Udp::LEN + Probe::LEN];
        write(&mut covered, &[udp(0).emit().as_bytes(), body.as_bytes()]);
        // Zero means no checksum (RFC 768).
        let checksum = match checksum(self.address, &covered) {
            0 => 0xFFFF,
            checksum => checksum,
        };
        let mut packet = [0; Self::LEN];
        write(&mut packet, &[ipv6.emit().as_bytes(), udp(checksum).emit().as_bytes(), body.as_bytes()]);
        packet
    }
}

fn checksum(address: Ipv6Addr, covered: &[u8]) -> u16 {
    let octets = address.octets();
    let mut sum = Sum::pseudo_header(&octets, &octets, covered.len() as u32, NextHeader::UDP);
    sum.add(covered);
    sum.checksum()
}

fn write(into: &mut [u8], pieces: &[&[u8]]) {
    for (place, octet) in into.iter_mut().zip(pieces.iter().copied().flatten()) {
        *place = *octet;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codepoints::PROBE_PORT;

    /// The octets that scapy builds of IPv6(src=dst="2001:db8::1", tc=192, hlim=64) / UDP(sport=1021, dport=1021) over
    /// a payload that was packed by hand as `>IIIHH28x` of 7, 3, 5, 0x4001, 0x0102.
    const SCAPY: [u8; ProbePacket::LEN] = [
        0x6C, 0x00, 0x00, 0x00, 0x00, 0x34, 0x11, 0x40, 0x20, 0x01, 0x0D, 0xB8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0D, 0xB8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x01, 0x03, 0xFD, 0x03, 0xFD, 0x00, 0x34, 0x5B, 0x06, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00,
        0x00, 0x03, 0x00, 0x00, 0x00, 0x05, 0x40, 0x01, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00,
    ];

    fn packet() -> ProbePacket {
        let probe = Probe { sequence: 7, sent: Instant::from_ns(3_000_000_005), session: 0x0102 };
        let address = "2001:db8::1".parse().unwrap();
        ProbePacket { address, traffic_class: 48 << 2, hop_limit: 64, port: PROBE_PORT, probe }
    }

    /// D87.
    #[test]
    fn octets_equal_those_of_another_implementation() {
        assert_eq!(packet().emit(), SCAPY);
        assert_eq!(ProbePacket::parse(&SCAPY, packet().address, PROBE_PORT), Some(packet()));
    }

    #[test]
    fn a_second_has_no_more_nanoseconds_than_that() {
        let mut octets = SCAPY;
        octets[56..60].copy_from_slice(&1_000_000_000_u32.to_be_bytes());
        octets[46..48].fill(0);
        let sum = checksum(packet().address, &octets[40..]);
        octets[46..48].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(ProbePacket::parse(&octets, packet().address, PROBE_PORT), None);
        octets[56..60].copy_from_slice(&999_999_999_u32.to_be_bytes());
        octets[46..48].fill(0);
        let sum = checksum(packet().address, &octets[40..]);
        octets[46..48].copy_from_slice(&sum.to_be_bytes());
        assert!(ProbePacket::parse(&octets, packet().address, PROBE_PORT).is_some());
    }

    /// Damage of any octet is detected, since the checksum covers them, except the flow label. Traffic class and hop
    /// limit may change on the way.
    #[test]
    fn a_damaged_probe_is_refused() {
        for place in 0..ProbePacket::LEN {
            let mut octets = SCAPY;
            octets[place] ^= 0x10;
            let found = ProbePacket::parse(&octets, packet().address, PROBE_PORT);
            assert_eq!(found.is_some(), (1..4).contains(&place) || place == 7, "octet {place}");
        }
        for len in 0..ProbePacket::LEN {
            assert_eq!(ProbePacket::parse(&SCAPY[..len], packet().address, PROBE_PORT), None);
        }
        assert_eq!(ProbePacket::parse(&SCAPY, packet().address, PROBE_PORT + 1), None);
        assert_eq!(ProbePacket::parse(&SCAPY, "2001:db8::2".parse().unwrap(), PROBE_PORT), None);
    }
}
