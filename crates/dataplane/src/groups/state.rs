//! The state of a group.

use super::buffer_memory::BufferShare;
use super::repair::GroupRepair;
use crate::counters::GroupCounters;
use crate::drop::DropReason;
use crate::multicast::ListedReceiver;
use srdma_aggregation::{Acknowledgements, BranchIndex, CnpWindow, EpochTag, PathLoads, Response, UpstreamResponse};
use srdma_group::{GroupEntry, Join, PsnOffset};
use srdma_wire::{Instant, Psn};
use std::net::Ipv6Addr;
use std::time::Duration;

/// A node's entry of a group, and its state.
#[derive(Debug)]
pub(crate) struct GroupState {
    pub(crate) entry: GroupEntry,
    pub(crate) acks: Acknowledgements,
    pub(crate) cnps: CnpWindow,
    /// At a node with traces of groups (D242).
    pub(crate) loads: Option<Box<PathLoads>>,
    /// At a node that repairs.
    pub(crate) repair: Option<Box<GroupRepair>>,
    /// What its buffer takes of the pool; `None` without repair.
    pub(super) buffer_share: Option<BufferShare>,
    /// The branches by their responders' addresses, sorted.
    pub(crate) responders: Vec<([u8; 16], BranchIndex)>,
    /// Receivers of the preceding entry that this one does not have: packets on their way may list them (D96).
    pub(crate) preceding: Vec<Ipv6Addr>,
    /// What the numbers of each branch's responses differ by from the group's.
    pub(crate) offsets: Box<[BranchOffsets]>,
    /// CNPs that came from each branch.
    pub(crate) branch_cnps: Box<[u64]>,
    /// Whether receivers' copies are considered one by one: [some may be withheld](Self::withholds), or have
    /// [PSNs of their own](Self::psn_offset).
    pub(crate) differs_by_branch: bool,
    /// Responses that a commit has caused (R7), and those not sent yet, for lack of time and frames.
    pub(crate) unsent: Vec<UpstreamResponse>,
    /// The headend's outer headers; empty elsewhere.
    pub(crate) headers: Vec<u8>,
    /// Where copies go, resolved; valid for `resolved_for`.
    pub(crate) copies: Vec<ResolvedCopy>,
    pub(crate) resolved_for: Option<u64>,
    /// A controller has committed the group for the first time, and its first PSN has not come to the headend: other
    /// data belong to a record that was lost (D137).
    pub(crate) awaits_first_psn: bool,
    /// A request of the source that the headend refuses, from its PSN on (D26).
    pub(crate) refused: Option<Psn>,
    /// A controller has installed it: the node acts for it as long as its lease lasts (D122).
    pub(crate) is_leased: bool,
    /// This worker of the node owns the group; another one does otherwise, and this one sends nothing for it (D208).
    pub(crate) is_owned: bool,
    /// There is no record of the group, the edge has learnt it (D17).
    pub(crate) learnt: Option<Learnt>,
    /// How the node's responses are marked.
    pub(crate) marking: ResponseMarking,
    pub(crate) counters: GroupCounters,
}

/// What a node's ACKs and NAKs have from the packets that they answer and sum up (D227).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResponseMarking {
    /// Traffic Class of the last response of a branch, without ECN.
    pub(crate) traffic_class: u8,
    /// MigReq of the source's last data.
    pub(crate) migration_request: bool,
}

/// What the numbers of a branch's responses differ by from the group's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BranchOffsets {
    /// The messages that were completed when it joined (D18).
    pub(crate) msn: u32,
    /// Distance of a receiver's PSNs from the group's (D270).
    pub(crate) psn: PsnOffset,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Learnt {
    /// When data or a response last came.
    pub(crate) active: Instant,
}

impl GroupState {
    /// Whether the group was learnt, for this Proxy Address.
    pub(crate) fn is_learnt_at(&self, proxy: Ipv6Addr) -> bool {
        self.learnt.is_some() && self.entry.proxy == proxy
    }

    /// The loads of the paths to its branches, reported in this interval.
    pub(crate) fn loads(&mut self, interval: Duration) -> &mut PathLoads {
        let branches = self.entry.branches.len();
        let kept = self.loads.take().filter(|loads| loads.is_for(interval, branches));
        self.loads.insert(kept.unwrap_or_else(|| Box::new(PathLoads::new(interval, branches))))
    }

    /// Whether the entry has a receiver, with this queue pair.
    pub(crate) fn has_receiver(&self, receiver: &ListedReceiver) -> bool {
        let index = self.branch_of(&receiver.address.octets());
        index.and_then(|index| self.entry.receiver_at(index.index())).is_some_and(|known| known.qpn == receiver.qpn)
    }

    /// Whether the headend must not forward a packet of the source.
    #[inline]
    pub(crate) fn awaits_other(&self, psn: Psn) -> bool {
        self.awaits_first_psn && psn != self.entry.initial_psn
    }

    /// Data or a response have come.
    #[inline]
    pub(crate) fn touch(&mut self, now: Instant) {
        if let Some(learnt) = &mut self.learnt {
            learnt.active = now;
        }
    }

    /// Whether the node would repair the group by its entry, and has no memory for it (D162).
    pub(crate) fn lacks_memory(&self) -> bool {
        self.entry.repair.is_some() && self.repair.is_none()
    }

    /// The branch whose responses come from this address (D14).
    #[inline]
    pub(crate) fn branch_of(&self, responder: &[u8; 16]) -> Option<BranchIndex> {
        let position = self.responders.binary_search_by(|(address, _)| address.cmp(responder)).ok()?;
        Some(self.responders[position].1)
    }

    /// Whether a child sent a response before its branch was last renewed: it does not cover all receivers below it
    /// now.
    pub(crate) fn is_of_old_epoch(&self, branch: BranchIndex, tag: EpochTag) -> bool {
        let renewed = self.entry.branches.get(branch.index()).map_or(0, |branch| branch.renewed);
        tag.is_before(renewed, self.entry.epoch)
    }

    /// Whether a response of an unknown receiver that joined at J concerns PSNs before J: it was a member before, and
    /// its responses of then, a failure above all, do not hold now (D24, D30).
    pub(crate) fn is_of_earlier_member(&self, branch: BranchIndex, response: Response) -> bool {
        let joined = self.entry.branches.get(branch.index()).and_then(|branch| branch.joined);
        let is_before = |join: Join| is_before_join(response.expected_psn(), join.psn, None);
        self.acks.expected_psn(branch).is_none() && joined.is_some_and(is_before)
    }

    fn offsets_of(&self, branch: BranchIndex) -> BranchOffsets {
        self.offsets.get(branch.index()).copied().unwrap_or_default()
    }

    /// The MSN of a member's response, as if it had been there from the first message on (D18).
    pub(crate) fn raised_msn(&self, branch: BranchIndex, msn: u32) -> u32 {
        msn.wrapping_add(self.offsets_of(branch).msn) & 0xFF_FFFF
    }

    /// Distance of a branch's PSNs from the group's (D270); zero for a node.
    pub(crate) fn psn_offset(&self, branch: BranchIndex) -> PsnOffset {
        self.offsets_of(branch).psn
    }

    /// Why a copy must not be sent to a receiver (D22, D30).
    pub(crate) fn withholds(&self, branch: BranchIndex, psn: Psn) -> Option<DropReason> {
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
pub(crate) struct ResolvedCopy {
    pub(crate) destination: [u8; 16],
    pub(crate) adjacency: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D30; and a mark that was not cleared for twelve million packets withholds no packet that a receiver needs.
    #[test]
    fn only_a_receiver_at_j_gets_no_earlier_data() {
        let join = Psn::new(100);
        assert!(is_before_join(Psn::new(99), join, None) && is_before_join(Psn::new(99), join, Some(join)));
        assert!(!is_before_join(join, join, Some(join)));
        assert!(!is_before_join(Psn::new(99), join, Some(Psn::new(101))));
        let come_round = Psn::new(0xF0_0000);
        assert!(is_before_join(come_round, join, None) && !is_before_join(come_round, join, Some(come_round)));
    }
}
