//! ACK and NAK aggregation: received responses and data. `upstream.rs` decides which responses are sent upstream.
//!
//! Per branch: the expected PSN, and the syndrome that is pending there. Per node: m, the minimum PSN, which is the
//! serial minimum of the expected PSNs; what was sent upstream (`forwarded.rs`); the highest PSN sent downstream. The
//! forwarding rule, numbered in the code:
//!
//! * R1, a response arrives: rejected if it is implausible, ignored if it is behind, else it moves the expected PSN and
//!   replaces the pending syndrome.
//! * R2, data are forwarded: they clear a pending NAK or RNR NAK at their PSN; if they went back below m, ACK(m-1).
//! * R3, m has advanced: ACK(m-1), then the strongest syndrome pending at m (fatal > RNR > NAK).
//! * R4, m has not: a new NAK at m is forwarded once, every RNR NAK at m is forwarded.
//! * R5, a NAK at e above m has been held for T_hold: NAK(m). If m reaches e before the data at e have come again, R3
//!   sends NAK(e): a source that repeats selectively has sent the data at m alone.
//! * R6, a branch is unknown: nothing is sent upstream.
//! * R7, a branch is removed: m is computed again, and R3 follows.
//!
//! No timer retransmits a response, for any response rearms a requester's timer. `succession.rs` takes the branches
//! into the next epoch.

use crate::BranchIndex;
use crate::ablation::Ablation;
use crate::branch::{Branch, State};
use crate::eviction_cause::EvictionCause;
use crate::expected_psns::ExpectedPsns;
use crate::forwarded::Upstream;
use crate::optional_psn::OptionalPsn;
use crate::refusal::Refusal;
use crate::response::{Response, Syndrome};
use crate::rules::{Policy, Rules};
use crate::stall::StallWatch;
use crate::succession::Origin;
use crate::upstream_response::UpstreamResponse;
use srdma_wire::{Instant, Psn};
use std::cmp::Ordering;

/// Bound on the lag of an expected PSN behind the newest data; beyond, serial numbers would come near to half their
/// circle (R1).
pub(super) const WINDOW: i32 = 1 << 22;
/// Bound on the distance of a plausible response above the newest data (R1).
const AHEAD: i32 = 1 << 16;

/// Initial state of a node's branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The group has just been committed: every branch expects the group's initial PSN (D17, D28).
    Committed(Psn),
    /// The node has restarted: nothing is sent upstream until each branch has responded (D17, R6).
    Unknown,
}

/// Counters of a node, each modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Responses above the highest PSN sent downstream, which count as ACKs of it (R1).
    pub above_highest: u32,
    /// ACKs sent upstream for retransmitted data (R2).
    pub repeated_acks: u32,
    /// NAKs, fatal ones included, that were sent upstream after T_hold (R5, D24).
    pub hold_expired: u32,
}

/// The aggregation of one group's ACKs and NAKs at one node (MT-5.3.1-2, MT-5.3.2-2): responses upstream hold for every
/// receiver of its subtree (MT-5.3.1-1, MT-5.3.2-1).
///
/// State besides configuration and counters: 32 octets, and 24 for each branch (MT-8-1). Nothing allocates but a change
/// of branches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledgements {
    pub(super) policy: Policy,
    /// A variant of the rules, if it is not R1-R7.
    pub(super) ablation: Option<Box<Ablation>>,
    pub(super) group: Group,
    pub(super) counters: Counters,
    pub(super) expected_psns: ExpectedPsns,
    pub(super) branches: Box<[Branch]>,
    /// At edges that request evictions.
    pub(super) stall: Option<StallWatch>,
}

/// State per group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    /// The highest PSN sent downstream.
    pub(super) highest: OptionalPsn,
    /// The previous data PSN.
    pub(super) previous: OptionalPsn,
    /// The responses that were sent upstream.
    pub(super) upstream: Upstream,
    /// Branches without a response since a restart, or since they were renewed.
    pub(super) unknown: u16,
    /// Not later than the first end of a T_hold; [`Instant::NEVER`] when nothing is held.
    pub(super) deadline: Instant,
    /// Branches on which a NAK or an RNR NAK is pending.
    pub(super) awaiting_data: u16,
    /// Branches that failed.
    pub(super) fatal: u16,
}
impl Acknowledgements {
    /// State per group and per branch, without the watch over stalls (MT-8-1).
    pub(super) const OCTETS_PER_GROUP: usize = size_of::<Group>();
    pub(super) const OCTETS_PER_BRANCH: usize = size_of::<Branch>() + ExpectedPsns::OCTETS_PER_BRANCH;

    /// A group with `branches` branches at this node.
    pub fn new(rules: &Rules, branches: u16, start: Start) -> Self {
        let origin = match start {
            Start::Committed(initial) => Origin::At(initial),
            Start::Unknown => Origin::Unknown,
        };
        Self::of_branches(rules, &vec![origin; usize::from(branches)])
    }

    /// Processes a response of a branch; adds responses upstream to `out`.
    pub fn response(
        &mut self,
        now: Instant,
        branch: BranchIndex,
        response: Response,
        out: &mut Vec<UpstreamResponse>,
    ) -> Result<(), Refusal> {
        let index = branch.index();
        let state = self.branches.get(index).map_or(State::Removed, |branch| branch.state);
        if state == State::Removed {
            return Err(Refusal::NoSuchBranch(branch.0));
        }
        // R1: reject what is implausible, ignore what is behind.
        let (next, syndrome) = match &self.ablation {
            None => self.plausible(response)?,
            Some(_) => self.plausible_by_variant(response)?,
        };
        let (next, syndrome) =
            if state == State::Unknown { self.at_least_forwarded(next, syndrome) } else { (next, syndrome) };
        // An unknown branch is behind any response.
        let expected = self.expected_psns.get(index).unwrap_or(next.previous());
        let relation = next.serial_cmp(expected);
        match relation {
            Ordering::Less => {
                if self.ablation.is_some() {
                    self.forward_literally(syndrome, out);
                }
                return Err(Refusal::Behind { psn: next, expected_psn: expected });
            }
            Ordering::Equal => {}
            Ordering::Greater => {
                self.expected_psns.set(index, Some(next));
            }
        }
        self.branches[index].msn = response.msn;
        let received = state.received(relation, syndrome).with_policy(self.policy.evicts(index));
        if received != state {
            self.enter(index, received);
        }
        // T_hold begins with the pending syndrome; for a failure, which stays, with its first response.
        if state.fatal_code().is_none() && (received != state || relation == Ordering::Greater) {
            self.branches[index].since = now;
        }
        if let Some(stall) = &mut self.stall {
            if let State::Failed(_) = received {
                stall.failed(index);
            } else if relation == Ordering::Greater {
                stall.progress(now, index, next, self.group.highest.get(), state == State::Unknown);
            }
            if let State::Rnr(_) = received {
                stall.not_ready(now, index);
            }
        }
        self.forward_response(index, next, syndrome, relation, out);
        if state == State::Unknown && self.group.unknown == 0 {
            self.arm_holds();
        } else if self.branches[index].state.is_held() && self.group.unknown == 0 {
            self.group.deadline = self.group.deadline.min(self.branches[index].since + self.policy.t_hold);
        }
        Ok(())
    }

    /// Processes a data packet once, before its copies are sent (R2).
    #[inline]
    pub fn data(&mut self, now: Instant, psn: Psn, ack_request: bool, out: &mut Vec<UpstreamResponse>) {
        self.process_data(now, psn, ack_request, false, out);
    }

    /// The same at a node that repairs, which sends data that come again to no branch that has responded: they do not
    /// count as sent (D25); [`Self::data_resent`] counts what it sends itself.
    #[inline]
    pub fn kept_data(&mut self, now: Instant, psn: Psn, ack_request: bool, out: &mut Vec<UpstreamResponse>) {
        self.process_data(now, psn, ack_request, true, out);
    }

    #[inline]
    fn process_data(
        &mut self,
        now: Instant,
        psn: Psn,
        ack_request: bool,
        is_kept: bool,
        out: &mut Vec<UpstreamResponse>,
    ) {
        let backward = self.group.previous.get().is_some_and(|previous| !psn.is_after(previous));
        self.group.previous = psn.into();
        let before = self.group.highest.get();
        if before.is_none_or(|highest| psn.is_after(highest)) {
            self.raise_highest(psn);
        }
        if self.stall.is_some() {
            self.watch_data(now, psn, before, backward, is_kept);
        }
        // R2, data with PSN x going down: if x = `next`, clear that branch's NAK or RNR.
        if self.group.awaiting_data > 0 || self.group.upstream.forwarded().awaits_data() {
            self.data_retransmitted(psn);
        }
        if backward || ack_request {
            self.respond_to_data(psn, out);
        }
    }

    /// This node has sent a packet of its buffer to a branch again, for a receiver that makes no progress (D25, D150).
    pub fn data_resent(&mut self, now: Instant, branch: BranchIndex, psn: Psn) {
        let is_expected = self.expected_psn(branch).is_none_or(|expected| expected == psn);
        if let Some(stall) = self.stall.as_mut().filter(|_| is_expected) {
            let look = stall.resent(now, branch.index());
            self.group.deadline = self.group.deadline.min(look.unwrap_or(Instant::NEVER));
        }
    }

    /// Whether to withhold a copy for `branch`, because its receiver has acknowledged that PSN (D22).
    #[inline]
    pub fn withholds(&self, branch: BranchIndex, psn: Psn) -> bool {
        self.policy.prune_retransmit && self.expected_psn(branch).is_some_and(|expected| psn.is_before(expected))
    }

    /// R7: takes a branch out of the tree; adds to `out` the responses that it held back.
    pub fn remove_branch(&mut self, branch: BranchIndex, out: &mut Vec<UpstreamResponse>) {
        let index = branch.index();
        if self.branches.get(index).is_none_or(|branch| branch.state == State::Removed) {
            return;
        }
        self.enter(index, State::Removed);
        self.expected_psns.set(index, None);
        if let Some(stall) = &mut self.stall {
            stall.forget(index);
        }
        self.end_epoch_change(out);
    }

    /// R5: NAKs, and fatal NAKs (D24), that waited above the minimum for T_hold are sent at the minimum.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<UpstreamResponse>) {
        if now < self.group.deadline {
            return;
        }
        let (mut nak, mut fatal) = (false, None);
        if let Some(minimum) = self.minimum_of_known() {
            for (index, branch) in self.branches.iter_mut().enumerate().filter(|(_, branch)| branch.state.is_held()) {
                if branch.since + self.policy.t_hold > now {
                    continue;
                }
                match branch.state.fatal_code() {
                    Some(code) => fatal = fatal.or(Some(code)),
                    None => nak = true,
                }
                let is_at_minimum = self.expected_psns.get(index) == Some(minimum);
                branch.state = if is_at_minimum { branch.state.forwarded() } else { branch.state.held_above_minimum() };
            }
            self.end_hold(minimum, fatal, nak, out);
        }
        self.group.deadline = self.stall.as_mut().and_then(|stall| stall.tick(now)).unwrap_or(Instant::NEVER);
        self.arm_holds();
    }

    /// Time of the next [`Self::tick`]. A held NAK that resolved itself may leave its deadline behind.
    pub fn next_deadline(&self) -> Option<Instant> {
        Some(self.group.deadline).filter(|&deadline| deadline != Instant::NEVER)
    }

    /// Recomputes the deadline from the held responses; the earlier deadline of the stall watch may be too early.
    pub(super) fn arm_holds(&mut self) {
        let held = self.branches.iter().filter(|branch| branch.state.is_held());
        let ends = held.map(|branch| branch.since + self.policy.t_hold);
        // Nothing is held while a branch is unknown (R6).
        let end = self.minimum_of_known().and_then(|_| ends.min()).unwrap_or(Instant::NEVER);
        let is_watched = self.stall.as_ref().is_some_and(StallWatch::is_waiting);
        self.group.deadline = if is_watched { self.group.deadline.min(end) } else { end };
    }

    /// Whether [`Self::take_eviction_requests`] returns any.
    #[inline]
    pub fn has_eviction_requests(&self) -> bool {
        self.stall.as_ref().is_some_and(StallWatch::is_due)
    }

    /// Returns the receivers whose eviction is due, with the cause: they are stalled (D25), or have failed (D24). A
    /// request that is not granted is returned again after T_stall.
    pub fn take_eviction_requests(&mut self, now: Instant, mut wanted: impl FnMut(BranchIndex, EvictionCause)) {
        let (branches, Some(stall)) = (&self.branches, &mut self.stall) else {
            return;
        };
        let again = stall.ask(now, |index| match branches[index].state {
            State::Removed => {}
            State::Failed(code) => wanted(BranchIndex(index as u16), EvictionCause::Failed(code)),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakEarly
            | State::NakForwarded
            | State::Rnr(_)
            | State::Fatal(_)
            | State::FatalForwarded(_) => wanted(BranchIndex(index as u16), EvictionCause::Stalled),
        });
        self.group.deadline = self.group.deadline.min(again.unwrap_or(Instant::NEVER));
    }

    /// The expected PSN of a branch; `None` when it is unknown, removed or absent.
    pub fn expected_psn(&self, branch: BranchIndex) -> Option<Psn> {
        if branch.index() < self.branches.len() { self.expected_psns.get(branch.index()) } else { None }
    }

    /// The least expected PSN of all known branches (MT-5.3.1-3, MT-5.3.2-4).
    pub fn minimum_psn(&self) -> Option<Psn> {
        self.expected_psns.minimum()
    }

    /// The highest PSN sent downstream.
    pub fn highest_psn(&self) -> Option<Psn> {
        self.group.highest.get()
    }

    /// Packets that were sent to a branch and not acknowledged.
    pub fn lag(&self, branch: BranchIndex) -> Option<u32> {
        let lag = self.group.highest.get()?.next().distance_from(self.expected_psn(branch)?);
        Some(lag.max(0).unsigned_abs())
    }

    /// Number of unknown branches; nothing is sent upstream while there are any (R6).
    pub fn unknown_branches(&self) -> u16 {
        self.group.unknown
    }

    /// Counts since the start, or since [`Self::take_counters`].
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counts since the last call.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}

impl Acknowledgements {
    /// R1: the expected PSN and the syndrome that a response is taken for.
    #[inline]
    pub(super) fn plausible(&mut self, response: Response) -> Result<(Psn, Syndrome), Refusal> {
        let (next, syndrome) = (response.expected_psn(), response.syndrome);
        let highest = self.group.highest.get().ok_or(Refusal::NothingSent { psn: next })?;
        let above = next.distance_from(highest);
        if above > AHEAD {
            return Err(Refusal::ImplausiblePsn { psn: next, highest });
        }
        if above < -WINDOW {
            return Err(Refusal::Stale { psn: next, newest: highest });
        }
        if above <= 1 {
            return Ok((next, syndrome));
        }
        // A node that restarted has not seen the newest data again. A failure holds at any PSN.
        self.counters.above_highest = self.counters.above_highest.wrapping_add(1);
        let syndrome = match syndrome {
            Syndrome::Ack | Syndrome::SequenceNak | Syndrome::RnrNak(_) => Syndrome::Ack,
            Syndrome::Fatal(code) => Syndrome::Fatal(code),
        };
        Ok((highest.next(), syndrome))
    }

    /// An unknown branch expects at least the minimum that was sent upstream, which was true of it: an earlier response
    /// was overtaken. A failure holds at any PSN.
    fn at_least_forwarded(&self, next: Psn, syndrome: Syndrome) -> (Psn, Syndrome) {
        match (self.group.upstream.minimum(), syndrome) {
            (Some(up), Syndrome::Ack | Syndrome::SequenceNak | Syndrome::RnrNak(_)) if next.is_before(up) => {
                (up, Syndrome::Ack)
            }
            (Some(up), Syndrome::Fatal(code)) if next.is_before(up) => (up, Syndrome::Fatal(code)),
            (Some(_) | None, syndrome) => (next, syndrome),
        }
    }

    /// Moves `hi` up to `psn`, unless that lies more than 2^22 ahead of the minimum, where no source gets without an
    /// ACK: so all expected PSNs lie in a quarter of the circle. It never lies behind the minimum PSN.
    #[inline]
    fn raise_highest(&mut self, psn: Psn) {
        let ahead = self.expected_psns.minimum().map_or(0, |minimum| psn.distance_from(minimum));
        if (0..=WINDOW).contains(&ahead) {
            self.group.highest = psn.into();
        } else if self.group.highest.get().is_none() && ahead < 0 {
            self.group.highest = self.expected_psns.minimum().map(Psn::previous).into();
        }
    }

    /// D25: data that branches lack are sent.
    fn watch_data(&mut self, now: Instant, psn: Psn, before: Option<Psn>, backward: bool, is_kept: bool) {
        let (highest, least) = (self.group.highest.get(), self.minimum_of_known());
        let Some(stall) = &mut self.stall else {
            return;
        };
        if before.is_some_and(|before| !psn.is_after(before)) {
            // An unknown branch waits for anything that the source retransmits.
            let checked = if backward && self.group.unknown > 0 { self.branches.len() } else { 0 };
            let unknown = self.branches[..checked].iter().enumerate();
            let unknown = unknown.filter(|(_, branch)| branch.state == State::Unknown).map(|(index, _)| index);
            let look = if is_kept {
                unknown.filter_map(|index| stall.resent(now, index)).min()
            } else {
                stall.old_data(now, psn, &self.expected_psns, unknown)
            };
            self.group.deadline = self.group.deadline.min(look.unwrap_or(Instant::NEVER));
        } else if highest == Some(psn) {
            stall.new_data(now, psn, before, least);
        }
    }

    /// R2: data at `psn`, which branches lacked or were not ready for, are sent again.
    fn data_retransmitted(&mut self, psn: Psn) {
        if self.expected_psns.minimum() == Some(psn) {
            self.group.upstream.retransmitted();
        }
        for index in self.expected_psns.at(psn) {
            let branch = &mut self.branches[index];
            self.group.awaiting_data -= u16::from(branch.state.awaits_data());
            branch.state = branch.state.retransmitted();
        }
    }

    /// Moves a branch to a state and keeps the counts.
    fn enter(&mut self, index: usize, state: State) {
        let old = std::mem::replace(&mut self.branches[index].state, state);
        let group = &mut self.group;
        group.unknown -= u16::from(old == State::Unknown);
        group.awaiting_data -= u16::from(old.awaits_data());
        group.awaiting_data += u16::from(state.awaits_data());
        group.fatal -= u16::from(old.fatal_code().is_some());
        group.fatal += u16::from(state.fatal_code().is_some());
    }
}
