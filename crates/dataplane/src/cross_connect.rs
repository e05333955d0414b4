//! Ports whose Ethernet frames leave whole in SRv6 (H.Encaps.L2, RFC 8986 sections 5.3 and 5.4), and frames that come
//! out of it (End.DX2, section 4.9).

use crate::admission;
use crate::encaps::EncapsMode;
use crate::entropy;
use crate::headers::{IPV6, ipv6};
use crate::policy::PolicyId;
use srdma_frame::PortId;
use srdma_wire::EtherType;

/// The SR policy by which the frames that a port receives leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossConnect {
    /// The policy.
    pub policy: PolicyId,
    /// H.Encaps.L2 or, reduced, H.Encaps.L2.Red.
    pub mode: EncapsMode,
}

/// The cross-connects of a node, and the place of the policy of each.
#[derive(Debug, Default)]
pub(crate) struct CrossConnects {
    /// By port.
    policies: Vec<Option<u32>>,
}

impl CrossConnects {
    /// The policy of a port's frames, if they leave so.
    #[inline]
    pub(crate) fn policy(&self, port: PortId) -> Option<u32> {
        self.policies.get(port.index()).copied().flatten()
    }

    /// Sets or removes a policy; returns the one before.
    pub(crate) fn set(&mut self, port: PortId, policy: Option<u32>) -> Option<u32> {
        if self.policies.len() <= port.index() {
            self.policies.resize(port.index() + 1, None);
        }
        std::mem::replace(&mut self.policies[port.index()], policy)
    }
}

/// Octets of a VLAN tag.
const TAG: usize = 4;

/// Octets of the longest frame with this header that a link carries: a VLAN tag does not count for its MTU.
pub(crate) fn most_octets(head: &[u8], link_mtu: u16) -> usize {
    let is_tagged = head.get(12..14) == Some(&EtherType::VLAN.0.to_be_bytes());
    IPV6 + usize::from(link_mtu) + if is_tagged { TAG } else { 0 }
}

/// The DSCP of a frame, shifted as in a traffic class: that of an IPv6 packet in it, or none. ECN does not cross the
/// tunnel, since a mark could not come out of it (D243, RFC 6040 section 4.1).
pub(crate) fn traffic_class(head: &[u8]) -> u8 {
    if admission::is_ipv6(head) { ipv6(head).map_or(0, |view| view.traffic_class() & 0xFC) } else { 0 }
}

/// The hash of a frame's flow: that of an IPv6 packet in it, or of its MAC addresses.
pub(crate) fn flow(head: &[u8]) -> u32 {
    if admission::is_ipv6(head) { entropy::of_packet(head) } else { entropy::of_frame(head) }
}
