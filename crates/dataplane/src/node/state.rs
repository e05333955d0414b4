//! What a node remembers: forwarding data resolved ahead, and its groups.

use crate::config::SidBehavior;
use crate::counters::{GroupCounters, Traffic};
use crate::drop::DropReason;
use crate::entropy;
use crate::headers::IPV6;
use crate::multicast::{ListedReceiver, RethRule, Rewritten, behind_qpn};
use srdma_aggregation::{Acknowledgements, BranchIndex, CnpWindow, EpochTag, Response, UpstreamResponse};
use srdma_frame::PortId;
use srdma_group::{GroupEntry, Join};
use srdma_wire::{Instant, Prefix, Psn};
use std::net::Ipv6Addr;

/// What a route leads to: an index into one of the node's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Adjacency(u32),
    Ecmp(u32),
    Sid(u32),
    Group(u32),
    Encaps(u32),
    /// Placed paths, of which the headend chooses.
    Placed(u32),
    Local,
    Blackhole,
}

/// A neighbour at a port, and the Ethernet header that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Adjacency {
    pub(super) ethernet: [u8; 14],
    pub(super) port: PortId,
    pub(super) link_mtu: u16,
    pub(super) resolved: bool,
    /// The port is a border: not every packet may leave there.
    pub(super) is_border: bool,
    /// The main table leads to the address by this adjacency for want of anything else.
    pub(super) has_host_route: bool,
    pub(super) address: [u8; 16],
}

impl Adjacency {
    /// Whether the neighbour is known and the link's MTU allows a frame of `len` octets.
    #[inline]
    pub(super) fn carries(&self, len: usize) -> bool {
        self.resolved && len <= IPV6 + usize::from(self.link_mtu)
    }

    /// The same for a packet that may carry an SRH, of which a border asks more.
    #[inline]
    pub(super) fn carries_any(&self, len: usize) -> bool {
        self.carries(len) && !self.is_border
    }
}

/// Equal-cost adjacencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EcmpSet {
    pub(super) adjacencies: Vec<u32>,
}

impl EcmpSet {
    /// The member for a flow's hash.
    #[inline]
    pub(super) fn choose(&self, hash: u32, salt: u32) -> u32 {
        self.adjacencies[entropy::choose(hash, salt, self.adjacencies.len())]
    }
}

/// A SID of this node.
#[derive(Clone, Debug)]
pub(super) struct Sid {
    pub(super) prefix: Prefix,
    pub(super) behavior: SidBehavior,
    /// The adjacency of End.X.
    pub(super) adjacency: Option<u32>,
    /// The group of End.Replicate, while the node takes part in it as a transit node.
    pub(super) group: Option<u32>,
    pub(super) traffic: Traffic,
}

/// A static multicast route, its adjacencies made.
#[derive(Clone, Debug)]
pub(super) struct MulticastEntry {
    pub(super) incoming: Option<PortId>,
    pub(super) adjacencies: Vec<u32>,
    pub(super) end_mt: bool,
    pub(super) require_hmac: bool,
}

/// A node's entry of a group, and its state.
#[derive(Debug)]
pub(super) struct GroupState {
    pub(super) entry: GroupEntry,
    pub(super) acks: Acknowledgements,
    pub(super) cnps: CnpWindow,
    /// The branches by their responders' addresses, sorted.
    pub(super) responders: Vec<([u8; 16], BranchIndex)>,
    /// What is added to each branch's MSN: the messages that were over when it joined (D18).
    pub(super) msn_offsets: Box<[u32]>,
    /// CNPs that came from each branch.
    pub(super) branch_cnps: Box<[u64]>,
    /// Whether receivers may have to be spared copies: [`Self::withholds`] says which.
    pub(super) withholds_any: bool,
    /// What a commit has made the node say (R7), and what has not been sent, for want of time and frames.
    pub(super) owed: Vec<UpstreamResponse>,
    /// The headend's outer headers; empty elsewhere.
    pub(super) headers: Vec<u8>,
    /// Where copies go, resolved; valid for `resolved_for`.
    pub(super) copies: Vec<ResolvedCopy>,
    pub(super) resolved_for: Option<u64>,
    /// A request of the source that the headend refuses, from its PSN on (D26).
    pub(super) refused: Option<Psn>,
    /// There is no record of the group, the edge has learnt it (D17).
    pub(super) learnt: Option<Learnt>,
    pub(super) counters: GroupCounters,
}

/// What is kept of a group that was learnt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learnt {
    /// When data or a response last came.
    pub(super) active: Instant,
}

impl GroupState {
    /// Whether the group was learnt, for this Proxy Address.
    pub(super) fn is_learnt_at(&self, proxy: Ipv6Addr) -> bool {
        self.learnt.is_some() && self.entry.proxy == proxy
    }

    /// Whether a receiver has been learnt, with this queue pair.
    pub(super) fn has_learnt(&self, receiver: &ListedReceiver) -> bool {
        let index = self.branch_of(&receiver.address.octets());
        index.and_then(|index| self.entry.receivers.get(index.index())).is_some_and(|known| known.qpn == receiver.qpn)
    }

    /// Data or a response have come.
    #[inline]
    pub(super) fn touch(&mut self, now: Instant) {
        if let Some(learnt) = &mut self.learnt {
            learnt.active = now;
        }
    }

    /// The branch whose responses come from this address (D14).
    #[inline]
    pub(super) fn branch_of(&self, responder: &[u8; 16]) -> Option<BranchIndex> {
        let position = self.responders.binary_search_by(|(address, _)| address.cmp(responder)).ok()?;
        Some(self.responders[position].1)
    }

    /// Whether a child said something before its branch was last renewed: it is not true of all that is below it now.
    pub(super) fn is_of_old_epoch(&self, branch: BranchIndex, tag: EpochTag) -> bool {
        let renewed = self.entry.branches.get(branch.index()).map_or(0, |branch| branch.renewed);
        tag.is_before(renewed, self.entry.epoch)
    }

    /// Whether an unknown receiver that joined at J speaks of what was before J: it was a member before, and what it
    /// said then, a failure above all, is not true of it now (D24, D30).
    pub(super) fn is_of_earlier_member(&self, branch: BranchIndex, response: Response) -> bool {
        let joined = self.entry.branches.get(branch.index()).and_then(|branch| branch.joined);
        let is_before = |join: Join| is_before_join(response.expected_psn(), join.psn, None);
        self.acks.expected_psn(branch).is_none() && joined.is_some_and(is_before)
    }

    /// The MSN of a member's response, as if it had been there from the first message on (D18).
    pub(super) fn raised_msn(&self, branch: BranchIndex, msn: u32) -> u32 {
        msn.wrapping_add(self.msn_offsets.get(branch.index()).copied().unwrap_or(0)) & 0xFF_FFFF
    }

    /// Why a copy must not be sent to a receiver (D22, D30).
    pub(super) fn withholds(&self, branch: BranchIndex, psn: Psn) -> Option<DropReason> {
        let joined = self.entry.branches.get(branch.index()).and_then(|branch| branch.joined);
        if joined.is_some_and(|join| is_before_join(psn, join.psn, self.acks.expected_psn(branch))) {
            Some(DropReason::BeforeJoin)
        } else if self.acks.withholds(branch, psn) {
            Some(DropReason::Pruned)
        } else {
            None
        }
    }
}

/// Nothing before J is sent to a receiver until it has confirmed something from J on: one that sees a duplicate before
/// its first request answers with PSN 0xFFFFFF (D30). Rule R2 answers for it, for its point is J.
fn is_before_join(psn: Psn, join: Psn, point: Option<Psn>) -> bool {
    const WINDOW: i32 = 1 << 22;
    let behind = join.distance_from(psn);
    // A receiver that has come round to J has confirmed what is before it, so that it misses nothing then either.
    (1..=WINDOW).contains(&behind) && point.is_none_or(|point| point == join)
}

/// A copy of a transit node: its outer destination and the adjacency it leaves by.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedCopy {
    pub(super) destination: [u8; 16],
    pub(super) adjacency: Option<u32>,
}

/// A copy of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeCopy {
    pub(super) rewritten: Rewritten,
    pub(super) adjacency: Option<u32>,
    pub(super) branch: Option<BranchIndex>,
}

/// What a receiver list is kept under, besides its SRH, as it lies in the packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow<'h> {
    pub(super) outer_source: &'h [u8; 16],
    /// Inner source and Proxy Address.
    pub(super) inner_addresses: &'h [u8; 32],
    pub(super) designated_qpn: &'h [u8; 3],
}

/// A receiver list, learnt from TLVs or provisioned (MT-8-2), parsed and resolved, under the octets that it was made
/// from.
#[derive(Clone, Debug)]
pub(super) struct ReceiverList {
    pub(super) outer_source: [u8; 16],
    pub(super) inner_addresses: [u8; 32],
    pub(super) designated_qpn: [u8; 3],
    /// The SRH, whole.
    pub(super) srh: Vec<u8>,
    pub(super) generation: u64,
    /// The outer destination that the HMAC was verified with; `None` when it was not verified.
    pub(super) verified_for: Option<[u8; 16]>,
    pub(super) group: Option<u32>,
    /// Receivers that the group has to learn before a packet goes to them, in the order of the copies (D17).
    pub(super) to_learn: Option<Vec<ListedReceiver>>,
    pub(super) reth: RethRule,
    pub(super) copies: Vec<EdgeCopy>,
    /// Octets of the packets, from IPv6 to ICRC, that the copies are prepared for.
    pub(super) packet_octets: usize,
}

impl ReceiverList {
    /// Prepares the copies of packets of so many octets. Those of one message have the same length, but the last.
    #[inline]
    pub(super) fn prepare_for(&mut self, packet_octets: usize) {
        if self.packet_octets != packet_octets {
            self.packet_octets = packet_octets;
            let behind_qpn = behind_qpn(packet_octets);
            self.copies.iter_mut().for_each(|copy| copy.rewritten.prepare_for(behind_qpn));
        }
    }

    /// The Proxy Address.
    pub(super) fn proxy(&self) -> Ipv6Addr {
        let [.., a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.inner_addresses;
        Ipv6Addr::from([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }

    /// Whether the list is that of a flow.
    #[inline]
    pub(super) fn is_of(&self, flow: &Flow<'_>) -> bool {
        self.outer_source == *flow.outer_source
            && self.inner_addresses == *flow.inner_addresses
            && self.designated_qpn == *flow.designated_qpn
    }
}

/// Receiver lists in use: direct-mapped, so that it never grows.
#[derive(Debug)]
pub(super) struct ListCache {
    slots: Vec<Option<Box<ReceiverList>>>,
}

impl Default for ListCache {
    fn default() -> Self {
        ListCache { slots: vec![None; Self::SLOTS] }
    }
}

impl ListCache {
    const SLOTS: usize = 256;

    /// The slot of a flow.
    #[inline]
    pub(super) fn slot(flow: &Flow<'_>) -> usize {
        let [.., a, b, c, d, e, f, g, h] = *flow.inner_addresses;
        let [x, y, z] = *flow.designated_qpn;
        let mixed = u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ u64::from(u32::from_be_bytes([0, x, y, z])) << 40;
        (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize % Self::SLOTS
    }

    /// The list in a slot.
    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&ReceiverList> {
        self.slots.get(slot)?.as_deref()
    }

    /// Takes the list out of a slot while it is used.
    #[inline]
    pub(super) fn take(&mut self, slot: usize) -> Option<Box<ReceiverList>> {
        self.slots.get_mut(slot)?.take()
    }

    /// Replaces the list in a slot.
    #[inline]
    pub(super) fn put(&mut self, slot: usize, list: Box<ReceiverList>) {
        self.slots[slot] = Some(list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D30; and where nobody has cleared the mark for twelve million packets, it costs a receiver nothing that it misses.
    #[test]
    fn only_a_receiver_at_j_is_kept_from_what_is_before_it() {
        let join = Psn::new(100);
        assert!(is_before_join(Psn::new(99), join, None) && is_before_join(Psn::new(99), join, Some(join)));
        assert!(!is_before_join(join, join, Some(join)));
        assert!(!is_before_join(Psn::new(99), join, Some(Psn::new(101))));
        let come_round = Psn::new(0xF0_0000);
        assert!(is_before_join(come_round, join, None) && !is_before_join(come_round, join, Some(come_round)));
    }
}
