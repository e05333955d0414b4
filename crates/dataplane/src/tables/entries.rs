//! Entries of the tables.

use crate::config::SidBehavior;
use crate::counters::Traffic;
use crate::entropy;
use crate::headers::IPV6;
use srdma_frame::PortId;
use srdma_wire::{EtherType, MacAddress, Prefix};

/// Target of a prefix: an index into one of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Adjacency(u32),
    Ecmp(u32),
    Sid(u32),
    Group(u32),
    Encaps(u32),
    /// An SR policy in a form.
    Policy(u32),
    /// Placed paths, of which the headend chooses one for each flow.
    Placed(u32),
    Local,
    Blackhole,
    /// What shared hosts send goes to their peer (D281).
    ToPeer,
}

/// What the destination of a policy's outer headers leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct BehindEncaps {
    /// The tables' generation for which it was looked up.
    pub(super) generation: u64,
    pub(super) target: Option<Target>,
}

/// Common properties of a port's adjacencies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) mac: MacAddress,
    pub(super) link_mtu: u16,
    pub(super) is_border: bool,
    /// It has no carrier, or was taken down.
    pub(super) is_down: bool,
}

/// A neighbour at a port, and the Ethernet header that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adjacency {
    pub(crate) ethernet: [u8; 14],
    pub(crate) port: PortId,
    pub(crate) link_mtu: u16,
    pub(crate) resolved: bool,
    /// The port is a border: the egress check decides which packets may leave there.
    pub(crate) is_border: bool,
    /// The main table leads to the neighbour's address by this adjacency, for lack of another entry.
    pub(crate) has_host_route: bool,
    /// The BFD session with the neighbour is down.
    pub(super) is_lost: bool,
    /// It is, or the link of the port: equal paths by others are taken (D109, D285), or backups (D266).
    pub(crate) is_avoided: bool,
    pub(crate) address: [u8; 16],
}

impl Adjacency {
    /// Whether the neighbour is known and the link's MTU allows a frame of `len` octets.
    #[inline]
    pub(crate) fn carries(&self, len: usize) -> bool {
        self.resolved && len <= IPV6 + usize::from(self.link_mtu)
    }

    /// Whether the neighbour takes IPv4 packets.
    #[inline]
    pub(crate) fn is_ipv4(&self) -> bool {
        self.ethernet[12..] == EtherType::IPV4.0.to_be_bytes()
    }

    /// Octets of the longest frame that it carries; none while the neighbour is not known.
    pub(crate) fn most_octets(&self) -> u32 {
        if self.resolved { IPV6 as u32 + u32::from(self.link_mtu) } else { 0 }
    }

    /// As [`Adjacency::carries_any`], and no backup has to be looked for.
    #[inline]
    pub(crate) fn carries_plainly(&self, len: usize) -> bool {
        self.carries_any(len) && !self.is_avoided
    }

    /// As [`Adjacency::carries`], for a packet that may carry an SRH: a border needs the egress check.
    #[inline]
    pub(crate) fn carries_any(&self, len: usize) -> bool {
        self.carries(len) && !self.is_border
    }
}

/// Equal-cost adjacencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EcmpSet {
    pub(super) adjacencies: Vec<u32>,
    /// Those that are not avoided, while some are and others are not.
    pub(super) usable: Vec<u32>,
}

impl EcmpSet {
    /// The member for a flow's hash. Flows of members that are not avoided stay with them.
    #[inline]
    pub(super) fn choose(&self, hash: u32, salt: u32) -> u32 {
        let member = self.adjacencies[entropy::choose(hash, salt, self.adjacencies.len())];
        if self.usable.is_empty() || self.usable.contains(&member) {
            return member;
        }
        // Another part of the hash than the one that led to the member, or all its flows would go to one other.
        self.usable[entropy::choose(hash.swap_bytes(), salt, self.usable.len())]
    }

    /// The members, unless some are avoided while others are not.
    pub(super) fn undivided(&self) -> Option<&[u32]> {
        self.usable.is_empty().then_some(self.adjacencies.as_slice())
    }

    /// Divides the members anew.
    pub(super) fn divide(&mut self, is_avoided: impl Fn(u32) -> bool) {
        let usable = self.adjacencies.iter().copied().filter(|adjacency| !is_avoided(*adjacency));
        self.usable = usable.collect();
        if self.usable.len() == self.adjacencies.len() {
            self.usable.clear();
        }
    }
}

/// A SID of this node.
#[derive(Clone, Debug)]
pub(crate) struct Sid {
    pub(crate) prefix: Prefix,
    pub(crate) behavior: SidBehavior,
    /// The adjacency of End.X and End.DX6.
    pub(crate) adjacency: Option<u32>,
    /// The SR policy of End.B6.Encaps.
    pub(crate) policy: Option<u32>,
    /// The group of End.Replicate, while the node is a transit node of it.
    pub(crate) group: Option<u32>,
    pub(crate) traffic: Traffic,
}

/// A static multicast route with its adjacencies.
#[derive(Clone, Debug)]
pub(crate) struct MulticastEntry {
    pub(crate) incoming: Option<PortId>,
    pub(crate) adjacencies: Vec<u32>,
    pub(crate) end_mt: bool,
    pub(crate) require_hmac: bool,
}
