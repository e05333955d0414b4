//! The frames that a node takes off its interfaces.

use srdma_wire::Prefix;

/// The frames that a driver hands to the node; all others stay with the kernel, which keeps ND, ICMP and local
/// delivery.
///
/// The longest prefix of the destination address decides. Frames with one 802.1Q tag or none are inspected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Destinations, no prefix twice. Those of IPv4 are for IPv4 packets, of which only all or none are of interest:
    /// with [`Match::RoceV2`], all, and RoCEv2 in IPv6 packets to the IPv4-mapped address (D274).
    pub prefixes: Vec<(Prefix, Match)>,
    /// Priority flow control frames (IEEE 802.1Qbb).
    pub pfc: bool,
    /// Every frame, whatever the prefixes and its MAC addresses: the interface is promiscuous. For frames that are
    /// cross-connected, and for measurements.
    pub everything: bool,
}

impl Interest {
    /// Destinations of IPv6 packets.
    pub(crate) fn ipv6(&self) -> impl Iterator<Item = (Prefix, Match)> {
        self.prefixes.iter().copied().filter(|(prefix, wanted)| !prefix.is_ipv4() || *wanted == Match::RoceV2)
    }

    /// Destinations of IPv4 packets.
    pub(crate) fn ipv4(&self) -> impl Iterator<Item = (Prefix, Match)> {
        self.prefixes.iter().copied().filter(|(prefix, _)| prefix.is_ipv4())
    }
}

/// UDP ports of BFD over a single hop and over several.
pub(crate) const BFD_PORTS: [u16; 2] = [3784, 4784];

/// Packets to a prefix that are of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// All: local SIDs, destinations of policies, multicast groups.
    All,
    /// RoCEv2: UDP to port 4791 directly behind the IPv6 header; and whatever has Hop-by-Hop or Destination Options
    /// there, as packets with a trace and Fast CNPs do; no other packets with these are sent to such an address. Proxy
    /// Addresses.
    RoceV2,
    /// ICMPv6 Parameter Problem code 2, unrecognised IPv6 option, directly behind the IPv6 header: the address that
    /// Fast CNPs come from.
    UnknownOption,
    /// What the node itself handles of packets to its own address: BFD, which is UDP to port 3784 or 4784 directly
    /// behind the IPv6 header (RFC 5881, RFC 5883), and what [`Match::UnknownOption`] takes.
    Own,
    /// None: a longer prefix inside a wanted one that the kernel keeps.
    Kernel,
}
