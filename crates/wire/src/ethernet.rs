//! Ethernet II header (IEEE 802.3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Destination Address                      |
//! +                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                               |                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//! |                        Source Address                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |           EtherType           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

pub use crate::vlan::{Vlan, VlanView};

use crate::view::{Truncated, View};
use core::fmt;
use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(
    Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
/// A MAC address.
#[repr(transparent)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether the group bit is set: multicast or broadcast.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// The address an IPv6 multicast group maps to: 33:33 and its last 32 bits (RFC 2464 section 7).
    pub const fn of_multicast_group(group: core::net::Ipv6Addr) -> Self {
        let o = group.octets();
        MacAddress([0x33, 0x33, o[12], o[13], o[14], o[15]])
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// 802.1Q customer tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86DD);
    /// MAC control: PAUSE and priority flow control.
    pub const MAC_CONTROL: EtherType = EtherType(0x8808);
}

/// Ethernet II header as it lies.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct EthernetView {
    pub destination: MacAddress,
    pub source: MacAddress,
    ethertype: U16,
}

impl View for EthernetView {
    const NAME: &'static str = "Ethernet";
    const LEN: usize = 6 + 6 + 2;
}

impl EthernetView {
    /// Type of the payload.
    pub fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }

    /// The fields.
    pub fn value(&self) -> Ethernet {
        Ethernet { destination: self.destination, source: self.source, ethertype: self.ethertype() }
    }
}

/// Ethernet II header as a value.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ethernet {
    pub destination: MacAddress,
    pub source: MacAddress,
    pub ethertype: EtherType,
}

impl Ethernet {
    /// Length in octets.
    pub const LEN: usize = EthernetView::LEN;

    /// The header at the front of `octets`, and what follows it.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let (view, rest) = EthernetView::split(octets)?;
        Ok((view.value(), rest))
    }

    /// The header's octets.
    pub fn emit(&self) -> EthernetView {
        EthernetView { destination: self.destination, source: self.source, ethertype: U16::new(self.ethertype.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use zerocopy::IntoBytes;

    #[test]
    fn fields_of_a_captured_header() {
        let octets = [0x02, 0, 0, 0, 0x0D, 0x02, 0x02, 0, 0, 0, 0x0D, 0x01, 0x86, 0xDD];
        let (ethernet, rest) = Ethernet::parse(&octets).unwrap();
        let expected = Ethernet {
            destination: MacAddress([2, 0, 0, 0, 0x0D, 2]),
            source: MacAddress([2, 0, 0, 0, 0x0D, 1]),
            ethertype: EtherType::IPV6,
        };
        assert_eq!((ethernet, rest), (expected, &[][..]));
        assert_eq!(ethernet.emit().as_bytes(), octets);
        assert_eq!(Ethernet::parse(&octets[1..]), Err(Truncated { header: "Ethernet", needed: 14, found: 13 }));
    }

    #[test]
    fn addresses() {
        let group = MacAddress::of_multicast_group("ff3e::1:2:100".parse().unwrap());
        assert_eq!(group.to_string(), "33:33:00:02:01:00");
        assert!(group.is_group());
        assert!(!MacAddress([2, 0, 0, 0, 0, 1]).is_group());
    }
}
