use crate::bth::Opcode;
use crate::extension::ExtensionError;
use crate::ipv6::NextHeader;
use crate::view::Truncated;
use core::fmt;

/// The reason why a packet is not RoCEv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRocev2 {
    /// A header, or the packet as a whole, has fewer octets than its length field.
    Truncated(Truncated),
    /// The IP version found instead of 6.
    Version(u8),
    /// The chain of extension headers cannot be followed.
    Extension(ExtensionError),
    /// The upper layer found instead of UDP.
    UpperLayer(NextHeader),
    /// The UDP destination port found instead of 4791.
    DestinationPort(u16),
    /// UDP Length does not reach to the end of the IPv6 packet.
    UdpLength {
        /// The length in the header, in octets.
        found: u16,
        /// Octets from the UDP header to the end of the IPv6 packet.
        expected: usize,
    },
    /// The BTH's transport header version found instead of 0.
    TransportVersion(u8),
    /// An unknown opcode: the headers behind the BTH cannot be determined.
    Opcode(Opcode),
    /// No room for padding and ICRC behind the transport headers.
    TooShort {
        /// Octets of the shortest packet with these headers.
        needed: usize,
        /// Octets of the packet.
        found: usize,
    },
}

impl fmt::Display for NotRocev2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRocev2::Truncated(truncated) => truncated.fmt(f),
            NotRocev2::Version(found) => write!(f, "IP version must be 6, found {found}"),
            NotRocev2::Extension(error) => error.fmt(f),
            NotRocev2::UpperLayer(found) => write!(f, "upper layer must be 17 (UDP), found {}", found.0),
            NotRocev2::DestinationPort(found) => write!(f, "UDP destination port must be 4791, found {found}"),
            NotRocev2::UdpLength { found, expected } => {
                write!(f, "UDP length {found} where the IPv6 packet has {expected} octets")
            }
            NotRocev2::TransportVersion(found) => write!(f, "BTH transport version must be 0, found {found}"),
            NotRocev2::Opcode(found) => write!(f, "BTH opcode {:#04x} is not known", found.0),
            NotRocev2::TooShort { needed, found } => {
                write!(f, "padding and ICRC need a packet of {needed} octets, found {found}")
            }
        }
    }
}

impl core::error::Error for NotRocev2 {}

impl From<Truncated> for NotRocev2 {
    fn from(truncated: Truncated) -> Self {
        NotRocev2::Truncated(truncated)
    }
}

impl From<ExtensionError> for NotRocev2 {
    fn from(error: ExtensionError) -> Self {
        NotRocev2::Extension(error)
    }
}
