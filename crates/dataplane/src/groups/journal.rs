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

use super::{Data, GroupState, Groups};
use crate::drop::DropReason;
use srdma_aggregation::{BranchIndex, BranchStatus, CnpUp, Refusal, Response, UpstreamResponse};
use srdma_group::GroupId;
use srdma_wire::{Instant, Psn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Something that happened to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entry {
    /// Time of the entry. Results of a command have the time of the previous entry.
    pub time: Instant,
    pub group: GroupId,
    pub what: What,
}

/// Event of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum What {
    /// The node has taken part in the group from here on, or is observed from here on.
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
    /// The node takes no part in the group any more.
    Left,
    /// A data packet went down (R2).
    Data {
        psn: Psn,
        /// The packet requests an ACK.
        ack_request: bool,
        /// It is not above the one before it: the source went back.
        backward: bool,
    },
    /// A response of a branch was taken (R1).
    Taken {
        branch: Ipv6Addr,
        /// Its response.
        response: Response,
        /// Its expected PSN before; `None` without an earlier response.
        before: Option<Psn>,
        /// The PSN that it expects now.
        after: Option<Psn>,
    },
    /// A response of a branch changed nothing (R1).
    Refused {
        branch: Ipv6Addr,
        /// Its response.
        response: Response,
        /// Why it is rejected.
        refusal: Refusal,
    },
    /// A packet from below was not taken for a branch's response at all.
    NotTaken {
        /// Its source address.
        responder: Ipv6Addr,
        /// Why.
        reason: DropReason,
    },
    /// The pending response of a branch begins to wait for the minimum, or for T_hold (R5, D24).
    HoldBegan {
        branch: Ipv6Addr,
        /// The PSN that it expects.
        psn: Psn,
    },
    /// It waits no longer.
    HoldEnded {
        branch: Ipv6Addr,
        /// The PSN at which it waited.
        psn: Psn,
        /// Since when.
        since: Instant,
        /// Why.
        end: HoldEnd,
    },
    /// The node sends a response upstream.
    Statement {
        /// The response, and its rule.
        statement: UpstreamResponse,
        /// The branch whose response, or whose hold that ended, caused it; `None` for data and commands.
        because_of: Option<Ipv6Addr>,
        /// The first branch that expects the minimum.
        holder: Option<Ipv6Addr>,
    },
    /// A CNP of a branch.
    Cnp {
        branch: Ipv6Addr,
        /// How many it stands for.
        count: u32,
        /// It counts; else the branch has had its share of the window (MT-9-3).
        counts: bool,
    },
    /// A CNP goes upstream.
    CnpUp {
        /// The most congested branch.
        branch: Option<Ipv6Addr>,
        /// How many CNPs it stands for.
        count: u32,
    },
}

/// Why something held waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldEnd {
    /// It, or a response that supersedes it, was sent upstream (R3, R4, R5).
    Told,
    /// The data that the branch missed went down again (R2).
    Served,
    /// The branch has sent a newer response.
    Overtaken,
    /// The branch has been removed (R7).
    Removed,
}

/// The journal of an observed node.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Vec<Entry>,
    lost: u64,
    now: Instant,
    groups: BTreeMap<u32, Shadow>,
}

/// Last event of a group's machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// Data went down, or membership has changed.
    Other,
    /// A branch responded.
    Response(Ipv6Addr),
    /// Time has passed; with the first branch whose hold has ended by it (R5).
    Time(Option<Ipv6Addr>),
}

/// A group as it was after the last entry.
#[derive(Debug)]
struct Shadow {
    id: GroupId,
    epoch: u32,
    previous_data: Option<Psn>,
    branches: Vec<BranchShadow>,
    occasion: Occasion,
}

#[derive(Clone, Copy, Debug)]
struct BranchShadow {
    responder: Ipv6Addr,
    point: Option<Psn>,
    standing: BranchStatus,
    /// When the hold that is on began.
    held_since: Option<Instant>,
}

/// Entries that are kept until they are taken: an observer that sleeps must not cost a node its memory.
const MOST_ENTRIES: usize = 1 << 20;

impl Groups {
    /// Begins or ends the journal. Entries that were not taken are lost when it ends.
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
    pub(crate) fn take_journal(&mut self) -> (Vec<Entry>, u64) {
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

    /// The machine has taken note of data.
    #[inline]
    pub(crate) fn journal_data(&mut self, now: Instant, group: u32, data: Data) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.data(now, group, state, data);
        }
    }

    /// The machine has taken or refused a response.
    #[inline]
    pub(crate) fn journal_response(
        &mut self,
        now: Instant,
        group: u32,
        branch: BranchIndex,
        response: Response,
        taken: Result<(), Refusal>,
    ) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.response(now, group, state, branch, response, taken);
        }
    }

    /// A packet from below is dropped. Refusals by the machines are in the journal already.
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
            journal.push(now, state.entry.id, What::NotTaken { responder, reason });
        }
    }

    /// Time has come for the machines.
    #[inline]
    pub(crate) fn journal_tick(&mut self, now: Instant, group: u32) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.occasion(group, Occasion::Time(None));
            journal.compare(now, group, state, false);
        }
    }

    /// The node sends a response upstream.
    #[inline]
    pub(crate) fn journal_statement(&mut self, now: Instant, group: u32, statement: UpstreamResponse) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            journal.statement(now, group, state, statement);
        }
    }

    /// The window has taken a CNP, or refused it.
    #[inline]
    pub(crate) fn journal_cnp(&mut self, now: Instant, group: u32, branch: BranchIndex, count: u32, counts: bool) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize])
            && let Some(branch) = state.entry.branches.get(branch.index())
        {
            journal.push(now, state.entry.id, What::Cnp { branch: branch.responder, count, counts });
        }
    }

    /// A CNP goes upstream.
    #[inline]
    pub(crate) fn journal_cnp_up(&mut self, now: Instant, group: u32, cnp: CnpUp) {
        if let (Some(journal), Some(state)) = (&mut self.journal, &self.slots[group as usize]) {
            let branch = state.entry.branches.get(cnp.branch.index()).map(|branch| branch.responder);
            journal.push(now, state.entry.id, What::CnpUp { branch, count: cnp.count });
        }
    }
}

impl Journal {
    fn push(&mut self, now: Instant, group: GroupId, what: What) {
        self.now = now;
        if self.entries.len() < MOST_ENTRIES {
            self.entries.push(Entry { time: now, group, what });
        } else {
            self.lost += 1;
        }
    }

    fn membership(&mut self, group: u32, state: Option<&GroupState>) {
        let now = self.now;
        let known = self.groups.get(&group).map(|shadow| (shadow.id, shadow.epoch));
        let Some(state) = state else {
            self.groups.remove(&group);
            return known.into_iter().for_each(|(id, _)| self.push(now, id, What::Left));
        };
        let (id, epoch) = (state.entry.id, state.entry.epoch);
        let (unknown, receivers) = (state.acks.unknown_branches(), state.entry.branches.len() as u16);
        let what = match known {
            _ if state.learnt.is_some() => What::Learnt { receivers, unknown },
            Some((known, _)) if known == id => What::Committed { epoch },
            Some(_) | None => What::Began { unknown, epoch },
        };
        self.push(now, id, what);
        let previous = self.groups.remove(&group).filter(|shadow| shadow.id == id);
        let branches = (0..).zip(&state.entry.branches).map(|(index, branch)| {
            let index = BranchIndex(index);
            let standing = state.acks.branch_status(index);
            let was = |shadow: &Shadow| shadow.branches.iter().find(|was| was.responder == branch.responder).copied();
            let held_since = previous.as_ref().and_then(was).and_then(|was| was.held_since).or(Some(now));
            BranchShadow {
                responder: branch.responder,
                point: state.acks.expected_psn(index),
                standing,
                held_since: held_since.filter(|_| is_held(standing)),
            }
        });
        let shadow = Shadow {
            id,
            epoch,
            previous_data: previous.as_ref().and_then(|shadow| shadow.previous_data),
            branches: branches.collect(),
            occasion: Occasion::Other,
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
        self.push(now, state.entry.id, What::Data { psn, ack_request, backward });
        self.occasion(group, Occasion::Other);
        self.compare(now, group, state, true);
    }

    fn response(
        &mut self,
        now: Instant,
        group: u32,
        state: &GroupState,
        index: BranchIndex,
        response: Response,
        taken: Result<(), Refusal>,
    ) {
        let shadow = self.groups.get(&group).and_then(|shadow| shadow.branches.get(index.index())).copied();
        let Some(BranchShadow { responder: branch, point: before, .. }) = shadow else {
            return;
        };
        let what = match taken {
            Ok(()) => What::Taken { branch, response, before, after: state.acks.expected_psn(index) },
            Err(refusal) => What::Refused { branch, response, refusal },
        };
        self.push(now, state.entry.id, what);
        self.occasion(group, Occasion::Response(branch));
        self.compare(now, group, state, false);
    }

    fn occasion(&mut self, group: u32, occasion: Occasion) {
        if let Some(shadow) = self.groups.get_mut(&group) {
            shadow.occasion = occasion;
        }
    }

    /// Finds out which holds have begun or ended. `served`: it was data that went down.
    fn compare(&mut self, now: Instant, group: u32, state: &GroupState, served: bool) {
        let Some(mut shadow) = self.groups.remove(&group) else {
            return;
        };
        for (index, was) in (0..).map(BranchIndex).zip(&mut shadow.branches) {
            let (point, standing) = (state.acks.expected_psn(index), state.acks.branch_status(index));
            if (point, standing) == (was.point, was.standing) {
                continue;
            }
            let (branch, moved) = (was.responder, point != was.point);
            if let (Some(since), Some(psn)) = (was.held_since, was.point)
                && (moved || !is_held(standing))
            {
                let end = match standing {
                    BranchStatus::Removed => HoldEnd::Removed,
                    BranchStatus::Clear if served => HoldEnd::Served,
                    BranchStatus::Pending { held: false, .. } if !moved => HoldEnd::Told,
                    BranchStatus::Unknown | BranchStatus::Clear | BranchStatus::Pending { .. } => HoldEnd::Overtaken,
                };
                self.push(now, state.entry.id, What::HoldEnded { branch, psn, since, end });
                if shadow.occasion == Occasion::Time(None) && end == HoldEnd::Told {
                    shadow.occasion = Occasion::Time(Some(branch));
                }
                was.held_since = None;
            }
            if let (None, true, Some(psn)) = (was.held_since, is_held(standing), point) {
                self.push(now, state.entry.id, What::HoldBegan { branch, psn });
                was.held_since = Some(now);
            }
            (was.point, was.standing) = (point, standing);
        }
        self.groups.insert(group, shadow);
    }

    fn statement(&mut self, now: Instant, group: u32, state: &GroupState, statement: UpstreamResponse) {
        let Some(shadow) = self.groups.get(&group) else {
            return;
        };
        let because_of = match shadow.occasion {
            Occasion::Other => None,
            Occasion::Response(branch) => Some(branch),
            Occasion::Time(branch) => branch,
        };
        let minimum = state.acks.minimum_psn();
        let mut holders = shadow.branches.iter().filter(|branch| minimum.is_some() && branch.point == minimum);
        let holder = holders.next().map(|branch| branch.responder);
        self.push(now, state.entry.id, What::Statement { statement, because_of, holder });
    }
}

fn is_held(standing: BranchStatus) -> bool {
    match standing {
        BranchStatus::Pending { held, .. } => held,
        BranchStatus::Unknown | BranchStatus::Clear | BranchStatus::Removed => false,
    }
}
