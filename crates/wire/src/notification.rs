//! A congestion notification to an END.C SID (draft-hu-acn-rocev2, which leaves its format open: D60), as an ICMPv6
//! message of a type for private experimentation (RFC 4443 section 2.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Type (200)  |      Code     |            Checksum           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Version (1)  | Traffic Class |     Level     |    Reserved   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Sequence Number                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                   Hold Time in microseconds                   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                                                               |
//! +                                                               +
//! |                   Address of the congested node               |
//! +                                                               +
//! |                                                               |
//! +                                                               +
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Code 0 requests a pause, code 1 ends it. The traffic class is that of the queue, by its number in the SR domain; the
//! level is the fill level of the queue: 0 at XON, 128 at XOFF.
//!
//! [`NotificationPacket`] is a whole packet: IPv6 from the congested node to the END.C SID, and the above. It travels
//! in an outer IPv6 header to the same SID (CN-4.1-2).

use crate::checksum::Sum;
use crate::codepoints::icmpv6;
use crate::ipv6::{Ipv6, Ipv6View, NextHeader};
use crate::view::{Truncated, View};
use core::fmt;
use core::net::Ipv6Addr;
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A notification as it lies.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NotificationView {
    kind: u8,
    code: u8,
    checksum: U16,
    version: u8,
    traffic_class: u8,
    level: u8,
    reserved: u8,
    sequence: U32,
    hold_us: U32,
    congested: [u8; 16],
}

impl View for NotificationView {
    const NAME: &'static str = "congestion notification";
    const LEN: usize = 1 + 1 + 2 + 1 + 1 + 1 + 1 + 4 + 4 + 16;
}

impl NotificationView {
    const VERSION: u8 = 1;

    /// Checksum over pseudo-header and message.
    pub fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// The fields.
    ///
    /// # Errors
    ///
    /// Another ICMPv6 type, another code, another version.
    pub fn value(&self) -> Result<Notification, NotificationError> {
        let ask = match (self.kind, self.code) {
            (icmpv6::NOTIFICATION, 0) => Ask::Pause,
            (icmpv6::NOTIFICATION, 1) => Ask::Resume,
            (kind, code) => return Err(NotificationError::Type { kind, code }),
        };
        if self.version != Self::VERSION {
            return Err(NotificationError::Version(self.version));
        }
        Ok(Notification {
            ask,
            traffic_class: self.traffic_class,
            level: self.level,
            sequence: self.sequence.get(),
            hold_us: self.hold_us.get(),
            congested: self.congested.into(),
        })
    }
}

/// The action that a notification requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Let nothing more come in this class until the hold time is over.
    Pause,
    /// Let it come again.
    Resume,
}

/// A notification as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The requested action.
    pub ask: Ask,
    /// The traffic class of the queue.
    pub traffic_class: u8,
    /// Fill level of the queue: 0 at XON, 128 at XOFF, 255 as far beyond as XOFF is above XON, or further.
    pub level: u8,
    /// The clock of the congested node in microseconds, modulo 2^32; each notification has a later one.
    pub sequence: u32,
    /// Duration of the pause unless it is refreshed, in microseconds.
    pub hold_us: u32,
    /// The congested node.
    pub congested: Ipv6Addr,
}

impl Notification {
    /// Length in octets, ICMPv6 header included.
    pub const LEN: usize = NotificationView::LEN;

    /// The notification's octets, its checksum still zero.
    fn emit(&self) -> NotificationView {
        NotificationView {
            kind: icmpv6::NOTIFICATION,
            code: match self.ask {
                Ask::Pause => 0,
                Ask::Resume => 1,
            },
            checksum: U16::ZERO,
            version: NotificationView::VERSION,
            traffic_class: self.traffic_class,
            level: self.level,
            reserved: 0,
            sequence: U32::new(self.sequence),
            hold_us: U32::new(self.hold_us),
            congested: self.congested.octets(),
        }
    }
}

/// A packet with a notification, from the congested node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationPacket {
    /// The END.C SID.
    pub destination: Ipv6Addr,
    /// Its contents, and its source.
    pub notification: Notification,
}

impl NotificationPacket {
    /// Length in octets, IPv6 header included.
    pub const LEN: usize = Ipv6::LEN + Notification::LEN;

    /// DSCP 48, Not-ECT: network control (RFC 4594 section 3.1).
    pub const TRAFFIC_CLASS: u8 = 48 << 2;

    const HOP_LIMIT: u8 = 64;

    /// The notification in the IPv6 packet that `octets` begins with.
    ///
    /// # Errors
    ///
    /// If the packet is too short, no notification, damaged, of another version, or from another source than it names.
    pub fn parse(octets: &[u8]) -> Result<Self, NotificationError> {
        let (ipv6, rest) = Ipv6View::split(octets)?;
        let (next_header, len) = (ipv6.next_header(), usize::from(ipv6.payload_length()));
        if ipv6.version() != 6 || next_header != NextHeader::ICMPV6 {
            return Err(NotificationError::NotIcmpv6(next_header));
        }
        let (view, _) = NotificationView::split(rest)?;
        if len != Notification::LEN {
            return Err(NotificationError::Length(len));
        }
        if checksum(ipv6.source_octets(), ipv6.destination_octets(), view) != 0 {
            return Err(NotificationError::Checksum(view.checksum()));
        }
        let notification = view.value()?;
        if notification.congested != ipv6.source() {
            return Err(NotificationError::Source { source: ipv6.source(), congested: notification.congested });
        }
        Ok(NotificationPacket { destination: ipv6.destination(), notification })
    }

    /// The packet's octets.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let header = Ipv6 {
            traffic_class: Self::TRAFFIC_CLASS,
            flow_label: 0,
            payload_length: Notification::LEN as u16,
            next_header: NextHeader::ICMPV6,
            hop_limit: Self::HOP_LIMIT,
            source: self.notification.congested,
            destination: self.destination,
        };
        let mut view = self.notification.emit();
        view.checksum.set(checksum(&header.source.octets(), &header.destination.octets(), &view));
        let mut packet = [0; Self::LEN];
        let header = header.emit();
        for (place, octet) in packet.iter_mut().zip(header.as_bytes().iter().chain(view.as_bytes())) {
            *place = *octet;
        }
        packet
    }
}

fn checksum(source: &[u8; 16], destination: &[u8; 16], view: &NotificationView) -> u16 {
    let mut sum = Sum::pseudo_header(source, destination, Notification::LEN as u32, NextHeader::ICMPV6);
    sum.add(view.as_bytes());
    sum.checksum()
}

/// The reason why a packet is no notification.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationError {
    /// It is too short.
    Truncated(Truncated),
    /// The header after IPv6 is not ICMPv6, or is missing.
    NotIcmpv6(NextHeader),
    /// Another length.
    Length(usize),
    /// The checksum does not match.
    Checksum(u16),
    /// Another ICMPv6 message.
    Type {
        /// ICMPv6 type.
        kind: u8,
        /// ICMPv6 code.
        code: u8,
    },
    /// Another version.
    Version(u8),
    /// It does not come from the node that it names.
    Source {
        source: Ipv6Addr,
        /// The node.
        congested: Ipv6Addr,
    },
}

impl From<Truncated> for NotificationError {
    fn from(truncated: Truncated) -> Self {
        NotificationError::Truncated(truncated)
    }
}

impl fmt::Display for NotificationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotificationError::Truncated(truncated) => truncated.fmt(f),
            NotificationError::NotIcmpv6(found) => {
                write!(f, "next header {}, a notification has {}", found.0, NextHeader::ICMPV6.0)
            }
            NotificationError::Length(len) => write!(f, "{len} octets, a notification has {}", Notification::LEN),
            NotificationError::Checksum(found) => write!(f, "checksum {found:#06x} does not match"),
            NotificationError::Type { kind, code } => {
                write!(
                    f,
                    "ICMPv6 type {kind} code {code}, a notification has type {} code 0 or 1",
                    icmpv6::NOTIFICATION
                )
            }
            NotificationError::Version(version) => {
                write!(f, "version {version} of the notification, expected {}", NotificationView::VERSION)
            }
            NotificationError::Source { source, congested } => {
                write!(f, "its source is {source}, but it reports congestion at {congested}")
            }
        }
    }
}

impl core::error::Error for NotificationError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// The octets that scapy builds of IPv6(src="2001:db8:53::2", dst="5f00:0:9:c000::", tc=192, hlim=64) /
    /// ICMPv6Unknown(type=200) over a body that was packed by hand as `>BBBBII16s`: code 0 with 1, 3, 200, 0,
    /// 0x01020304, 500 and the source; code 1 with 1, 3, 0, 0, 0x01020305, 0 and the source. The IPv6 header is that of
    /// both.
    const HEADER: [u8; 40] = [
        0x6C, 0x00, 0x00, 0x00, 0x00, 0x20, 0x3A, 0x40, 0x20, 0x01, 0x0D, 0xB8, 0x00, 0x53, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x5F, 0x00, 0x00, 0x00, 0x00, 0x09, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00,
    ];
    const PAUSE: [u8; 32] = [
        0xC8, 0x00, 0xED, 0x80, 0x01, 0x03, 0xC8, 0x00, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x01, 0xF4, 0x20, 0x01,
        0x0D, 0xB8, 0x00, 0x53, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
    ];
    const RESUME: [u8; 32] = [
        0xC8, 0x01, 0xB7, 0x73, 0x01, 0x03, 0x00, 0x00, 0x01, 0x02, 0x03, 0x05, 0x00, 0x00, 0x00, 0x00, 0x20, 0x01,
        0x0D, 0xB8, 0x00, 0x53, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
    ];

    fn octets(message: [u8; 32]) -> [u8; NotificationPacket::LEN] {
        let mut octets = [0; NotificationPacket::LEN];
        octets[..40].copy_from_slice(&HEADER);
        octets[40..].copy_from_slice(&message);
        octets
    }

    fn pause() -> Notification {
        Notification {
            ask: Ask::Pause,
            traffic_class: 3,
            level: 200,
            sequence: 0x0102_0304,
            hold_us: 500,
            congested: "2001:db8:53::2".parse().unwrap(),
        }
    }

    /// D60.
    #[test]
    fn octets_equal_those_of_another_implementation() {
        let resume = Notification { ask: Ask::Resume, level: 0, sequence: 0x0102_0305, hold_us: 0, ..pause() };
        for (notification, message) in [(pause(), PAUSE), (resume, RESUME)] {
            let packet = NotificationPacket { destination: "5f00:0:9:c000::".parse().unwrap(), notification };
            assert_eq!(packet.emit(), octets(message));
            assert_eq!(NotificationPacket::parse(&octets(message)), Ok(packet));
        }
    }

    /// The checksum covers all but traffic class, flow label and hop limit of the IPv6 header, which may change.
    #[test]
    fn a_damaged_notification_is_refused() {
        let whole = octets(PAUSE);
        for place in 0..whole.len() {
            let mut octets = whole;
            octets[place] ^= 0x10;
            let found = NotificationPacket::parse(&octets);
            assert_eq!(found.is_ok(), (1..4).contains(&place) || place == 7, "octet {place}");
        }
        for len in 0..whole.len() {
            assert!(NotificationPacket::parse(&whole[..len]).is_err());
        }
    }

    /// The message with some octets changed, under a good checksum.
    fn changed(changes: &[(usize, u8)]) -> Result<NotificationPacket, NotificationError> {
        let mut octets = octets(PAUSE);
        changes.iter().for_each(|(place, octet)| octets[*place] = *octet);
        octets[42..44].fill(0);
        let (view, _) = NotificationView::split(&octets[40..]).unwrap();
        let (ipv6, _) = Ipv6View::split(&octets).unwrap();
        let sum = checksum(ipv6.source_octets(), ipv6.destination_octets(), view);
        octets[42..44].copy_from_slice(&sum.to_be_bytes());
        NotificationPacket::parse(&octets)
    }

    #[test]
    fn errors_name_the_found_value() {
        assert!(changed(&[(47, 0xFF)]).is_ok(), "the reserved octet is read over");
        let errors = [
            changed(&[(6, 17)]),
            changed(&[(5, 31)]),
            changed(&[(40, 201)]),
            changed(&[(41, 2)]),
            changed(&[(44, 2)]),
            changed(&[(71, 3)]),
            NotificationPacket::parse(&octets(PAUSE)[..70]),
        ];
        let texts = errors.map(|error| error.unwrap_err().to_string());
        let expected = [
            "next header 17, a notification has 58",
            "31 octets, a notification has 32",
            "ICMPv6 type 201 code 0, a notification has type 200 code 0 or 1",
            "ICMPv6 type 200 code 2, a notification has type 200 code 0 or 1",
            "version 2 of the notification, expected 1",
            "its source is 2001:db8:53::2, but it reports congestion at 2001:db8:53::3",
            "congestion notification needs 32 octets, 30 left",
        ];
        assert_eq!(texts, expected);
    }
}
