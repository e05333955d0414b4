//! The journal of a node's groups: their events, for `srdma explain`.
//!
//! ```text
//!   data, response, CNP, time, commit ──→ the machines ──→ responses
//!                  │                          │                │
//!                  └──────────────┬───────────┴────────────────┘
//!                              entries, in the order in which it happened
//! ```
//!
//! Without observation each hook costs one predicted branch. The journal reads the machines and never changes them, so
//! that a node behaves the same whether it is observed or not.

mod repair;

use super::{Data, GroupState, Groups};
use crate::drop::DropReason;
use srdma_aggregation::{BranchIndex, BranchStatus, CnpUp, Refusal, Response, UpstreamResponse};
use srdma_group::GroupId;
use srdma_repair::Counters;
use srdma_wire::{Instant, Psn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// An entry of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct JournalEntry {
    /// Time of the event. Events of a command have the time of the event before them.
    pub time: Instant,
    pub group: GroupId,
    pub event: GroupEvent,
}

/// Events of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum GroupEvent {
    /// The node has joined the tree of the group, or is observed from here on.
    Began {
        /// Branches without a response yet: nothing is sent upstream (R6).
        unknown: u16,
        epoch: u32,
    },
    /// The node has learnt the group, or more of its receivers, from a packet's list (D17).
    Learnt {
        /// Receivers in the union of the lists.
        receivers: u16,
        /// Those of them without a response yet: nothing is sent upstream (R6).
        unknown: u16,
    },
    /// Another epoch is in effect.
    Committed { epoch: u32 },
    /// The node has left the tree of the group.
    Left,
    /// A data packet was sent downstream (R2).
    Data {
        psn: Psn,
        /// The packet requests an ACK.
        ack_request: bool,
        /// Its PSN is not above that of the packet before: the source retransmits.
        backward: bool,
    },
    /// A response of a branch was accepted (R1).
    Accepted {
        branch: Ipv6Addr,
        response: Response,
        /// Its expected PSN before; `None` without an earlier response.
        before: Option<Psn>,
        /// The PSN that it expects now.
        after: Option<Psn>,
    },
    /// A response of a branch was rejected and changed nothing (R1).
    Refused {
        branch: Ipv6Addr,
        response: Response,
        /// Reason for the rejection.
        refusal: Refusal,
    },
    /// A packet from downstream was dropped before it reached a branch.
    Dropped {
        /// Its source address.
        responder: Ipv6Addr,
        /// The drop reason.
        reason: DropReason,
    },
    /// A pending response of a branch begins to wait for the minimum PSN, or for T_hold (R5, D24).
    HoldBegan {
        branch: Ipv6Addr,
        /// The PSN that it expects.
        psn: Psn,
    },
    /// The wait has ended.
    HoldEnded {
        branch: Ipv6Addr,
        /// The PSN at which it waited.
        psn: Psn,
        /// Its beginning.
        since: Instant,
        /// Reason for its end.
        end: HoldEnd,
    },
    /// The node sends a response upstream.
    Upstream {
        /// The response and its rule.
        response: UpstreamResponse,
        /// The branch whose response, or end of a hold, caused it; `None` for data and commands.
        caused_by: Option<Ipv6Addr>,
        /// The first branch that expects the minimum.
        holder: Option<Ipv6Addr>,
    },
    /// A CNP of a branch.
    Cnp {
        branch: Ipv6Addr,
        /// Number of CNPs that it represents.
        count: u32,
        /// Whether it counts: the branch is below its limit in the window (MT-9-3).
        counts: bool,
    },
    /// A CNP is sent upstream.
    CnpUp {
        /// The most congested branch.
        branch: Option<Ipv6Addr>,
        /// Number of CNPs that it represents.
        count: u32,
    },
    /// The node answers a NAK of a branch itself: it sends the data again (D152), or waits for a receiver (D157).
    NakAnswered {
        branch: Ipv6Addr,
        /// The PSN that it expects.
        psn: Psn,
    },
    /// A child requests data that it lacks (D153).
    RequestReceived { branch: Ipv6Addr, psn: Psn, count: u32 },
    /// The node requests data that it lacks from its parent (D153).
    RequestSent { psn: Psn, count: u32 },
    /// A packet of the buffer is sent to a branch again.
    SentAgain { branch: Ipv6Addr, psn: Psn },
    /// No node above has what is missing: it is left to the source (D158).
    GapGivenUp {
        /// The first PSN that was not received.
        psn: Psn,
    },
}

/// Reasons for the end of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldEnd {
    /// The response, or one that supersedes it, was sent upstream (R3, R4, R5).
    Forwarded,
    /// The data that the branch lacks were sent downstream again (R2).
    Retransmitted,
    /// The branch has sent a newer response.
    Superseded,
    /// The branch has been removed (R7).
    Removed,
}

/// The journal of an observed node.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Vec<JournalEntry>,
    lost: u64,
    now: Instant,
    groups: BTreeMap<u32, Shadow>,
}

/// The last input of the machines of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Data, or a change of members.
    Other,
    /// A response of a branch.
    Response(Ipv6Addr),
    /// Time; with the first branch whose hold it has ended (R5).
    Time(Option<Ipv6Addr>),
}

/// State of a group after the last entry.
#[derive(Debug)]
struct Shadow {
    id: GroupId,
    epoch: u32,
    previous_data: Option<Psn>,
    branches: Vec<BranchShadow>,
    input: Input,
    /// Of the group's repair.
    repair: Counters,
}

#[derive(Clone, Copy, Debug)]
struct BranchShadow {
    responder: Ipv6Addr,
    expected_psn: Option<Psn>,
    status: BranchStatus,
    /// Beginning of the current hold.
    held_since: Option<Instant>,
}

/// Bound on entries that wait for the observer, so that a slow one does not exhaust the memory of the node.
const MOST_ENTRIES: usize = 1 << 20;

impl Groups {
    /// Begins or ends the journal. Its end discards entries that were not fetched.
    pub(crate) fn observe(&mut self, on: bool) {
        self.journal = on.then(|| {
            let groups = BTreeMap::new();
            Box::new(Journal { entries: Vec::new(), lost: 0, now: Instant::ZERO, groups })
        });
        for group in 0..self.slots.len() as u32 {
            self.journal_membership(group);
        }
    }

    /// Entries since the last call, and the number of entries lost because they were not fetched. Empty for a node that
    /// is not observed.
    pub(crate) fn take_journal(&mut self) -> (Vec<JournalEntry>, u64) {
        let Some(journal) = &mut self.journal else {
            return (Vec::new(), 0);
        };
        (std::mem::take(&mut journal.entries), std::mem::take(&mut journal.lost))
    }

    /// The group entry of a group at an index has been added, replaced or removed.
    pub(crate) fn journal_membership(&mut self, group: u32) {
        if let Some(journal) = &mut self.journal {
            journal.membership(group, self.slots[group as usize].as_ref());
        }
    }

    /// Records data.
    #[inline]
    pub(crate) fn journal_data(&mut self, now: Instant, group: u32, data: Data) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.data(now, group, state, data);
            journal.repaired(now, group, state, None);
        }
    }

    /// Records a response that was accepted or rejected.
    #[inline]
    pub(crate) fn journal_response(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        response: Response,
        result: Result<(), Refusal>,
    ) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.response(now, group, state, branch, response, result);
            journal.repaired(now, group, state, Some((branch, response)));
        }
    }

    /// Records a dropped packet from downstream, unless its rejection by the machines is in the journal.
    pub(crate) fn journal_drop(&mut self, now: Instant, group: u32, responder: Ipv6Addr, reason: DropReason) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize])
            && !matches!(
                reason,
                DropReason::NothingSent
                    | DropReason::ImplausiblePsn
                    | DropReason::StaleResponse
                    | DropReason::CnpRateLimited
            )
        {
            journal.push(now, state.entry.id, GroupEvent::Dropped { responder, reason });
        }
    }

    /// Records the effects of time.
    #[inline]
    pub(crate) fn journal_tick(&mut self, now: Instant, group: u32) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.input(group, Input::Time(None));
            journal.compare(now, group, state, false);
            journal.repaired(now, group, state, None);
        }
    }

    /// Records a response that is sent upstream.
    #[inline]
    pub(crate) fn journal_upstream(&mut self, now: Instant, group: u32, response: UpstreamResponse) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.upstream(now, group, state, response);
        }
    }

    /// Records a CNP that the window has counted or ignored.
    #[inline]
    pub(crate) fn journal_cnp(&mut self, now: Instant, group: u32, branch: BranchIndex, count: u32, counts: bool) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize])
            && let Some(branch) = state.entry.branches.get(branch.index())
        {
            journal.push(now, state.entry.id, GroupEvent::Cnp { branch: branch.responder, count, counts });
        }
    }

    /// Records a CNP that is sent upstream.
    #[inline]
    pub(crate) fn journal_cnp_up(&mut self, now: Instant, group: u32, cnp: CnpUp) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            let branch = state.entry.branches.get(cnp.branch.index()).map(|branch| branch.responder);
            journal.push(now, state.entry.id, GroupEvent::CnpUp { branch, count: cnp.count });
        }
    }
}

impl Journal {
    fn push(&mut self, now: Instant, group: GroupId, event: GroupEvent) {
        self.now = now;
        if self.entries.len() < MOST_ENTRIES {
            self.entries.push(JournalEntry { time: now, group, event });
        } else {
            self.lost += 1;
        }
    }

    fn membership(&mut self, group: u32, state: Option<&GroupState>) {
        let now = self.now;
        let known = self.groups.get(&group).map(|shadow| (shadow.id, shadow.epoch));
        let Some(state) = state else {
            self.groups.remove(&group);
            return known.into_iter().for_each(|(id, _)| self.push(now, id, GroupEvent::Left));
        };
        let (id, epoch) = (state.entry.id, state.entry.epoch);
        let (unknown, receivers) = (state.acks.unknown_branches(), state.entry.branches.len() as u16);
        let event = match known {
            _ if state.learnt.is_some() => GroupEvent::Learnt { receivers, unknown },
            Some((known, _)) if known == id => GroupEvent::Committed { epoch },
            Some(_) | None => GroupEvent::Began { unknown, epoch },
        };
        self.push(now, id, event);
        let previous = self.groups.remove(&group).filter(|shadow| shadow.id == id);
        let branches = (0..).zip(&state.entry.branches).map(|(index, branch)| {
            let index = BranchIndex(index);
            let status = state.acks.branch_status(index);
            let was = |shadow: &Shadow| shadow.branches.iter().find(|was| was.responder == branch.responder).copied();
            let held_since = previous.as_ref().and_then(was).and_then(|was| was.held_since).or(Some(now));
            BranchShadow {
                responder: branch.responder,
                expected_psn: state.acks.expected_psn(index),
                status,
                held_since: held_since.filter(|_| is_held(status)),
            }
        });
        let shadow = Shadow {
            id,
            epoch,
            previous_data: previous.as_ref().and_then(|shadow| shadow.previous_data),
            branches: branches.collect(),
            input: Input::Other,
            repair: state.repair.as_ref().map_or_else(Counters::default, |repair| repair.counters()),
        };
        self.groups.insert(group, shadow);
    }

    fn data(&mut self, now: Instant, group: u32, state: &GroupState, data: Data) {
        let Some(shadow) = self.groups.get_mut(&group) else {
            return;
        };
        let (psn, ack_request) = (data.psn(), data.ack_request());
        let backward = shadow.previous_data.is_some_and(|previous| !psn.is_after(previous));
        shadow.previous_data = Some(psn);
        self.push(now, state.entry.id, GroupEvent::Data { psn, ack_request, backward });
        self.input(group, Input::Other);
        self.compare(now, group, state, true);
    }

    fn response(
        &mut self,
        now: Instant,
        group: u32,
        state: &GroupState,
        index: BranchIndex,
        response: Response,
        result: Result<(), Refusal>,
    ) {
        let shadow = self.groups.get(&group).and_then(|shadow| shadow.branches.get(index.index())).copied();
        let Some(BranchShadow { responder: branch, expected_psn: before, .. }) = shadow else {
            return;
        };
        let event = match result {
            Ok(()) => GroupEvent::Accepted { branch, response, before, after: state.acks.expected_psn(index) },
            Err(refusal) => GroupEvent::Refused { branch, response, refusal },
        };
        self.push(now, state.entry.id, event);
        self.input(group, Input::Response(branch));
        self.compare(now, group, state, false);
    }

    fn input(&mut self, group: u32, input: Input) {
        if let Some(shadow) = self.groups.get_mut(&group) {
            shadow.input = input;
        }
    }

    /// Records holds that have begun or ended. `data_sent`: the input was data.
    fn compare(&mut self, now: Instant, group: u32, state: &GroupState, data_sent: bool) {
        let Some(mut shadow) = self.groups.remove(&group) else {
            return;
        };
        for (index, was) in (0..).map(BranchIndex).zip(&mut shadow.branches) {
            let (expected_psn, status) = (state.acks.expected_psn(index), state.acks.branch_status(index));
            if (expected_psn, status) == (was.expected_psn, was.status) {
                continue;
            }
            let (branch, moved) = (was.responder, expected_psn != was.expected_psn);
            if let (Some(since), Some(psn)) = (was.held_since, was.expected_psn)
                && (moved || !is_held(status))
            {
                let end = match status {
                    BranchStatus::Removed => HoldEnd::Removed,
                    BranchStatus::Clear if data_sent => HoldEnd::Retransmitted,
                    BranchStatus::Pending { held: false, .. } if !moved => HoldEnd::Forwarded,
                    BranchStatus::Unknown | BranchStatus::Clear | BranchStatus::Pending { .. } => HoldEnd::Superseded,
                };
                self.push(now, state.entry.id, GroupEvent::HoldEnded { branch, psn, since, end });
                if shadow.input == Input::Time(None) && end == HoldEnd::Forwarded {
                    shadow.input = Input::Time(Some(branch));
                }
                was.held_since = None;
            }
            if let (None, true, Some(psn)) = (was.held_since, is_held(status), expected_psn) {
                self.push(now, state.entry.id, GroupEvent::HoldBegan { branch, psn });
                was.held_since = Some(now);
            }
            (was.expected_psn, was.status) = (expected_psn, status);
        }
        self.groups.insert(group, shadow);
    }

    fn upstream(&mut self, now: Instant, group: u32, state: &GroupState, response: UpstreamResponse) {
        let Some(shadow) = self.groups.get(&group) else {
            return;
        };
        let caused_by = match shadow.input {
            Input::Other => None,
            Input::Response(branch) => Some(branch),
            Input::Time(branch) => branch,
        };
        let minimum = state.acks.minimum_psn();
        let mut holders = shadow.branches.iter().filter(|branch| minimum.is_some() && branch.expected_psn == minimum);
        let holder = holders.next().map(|branch| branch.responder);
        self.push(now, state.entry.id, GroupEvent::Upstream { response, caused_by, holder });
    }
}

fn is_held(status: BranchStatus) -> bool {
    match status {
        BranchStatus::Pending { held, .. } => held,
        BranchStatus::Unknown | BranchStatus::Clear | BranchStatus::Removed => false,
    }
}
