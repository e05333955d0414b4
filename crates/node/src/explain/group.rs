//! Events of one group, from its node's journal and the captures.

use super::branch::BranchAnalysis;
use super::comparison::{Comparison, Found, TOLERANCE};
use super::event::{Event, Response, cause_name, reason_of};
use super::report::{At, Beginning, GroupExplanation, LastResponse, Upstream};
use super::sends::Sends;
use super::timeline::Timeline;
use super::verdict::{Condition, Verdict};
use srdma_aggregation::{Acknowledgements, BranchIndex, EvictionCause};
use srdma_dataplane::{GroupEvent, JournalEntry};
use srdma_group::GroupEntry;
use srdma_wire::{Instant, Psn};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

/// Selection of events for the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interest {
    /// Of the branches this one only.
    pub(super) branch: Option<Ipv6Addr>,
    /// No earlier events.
    pub(super) from: Option<Instant>,
    /// All entries, nothing summed up.
    pub(super) all: bool,
}

/// Analysis of one group.
pub(super) struct GroupAnalysis {
    entry: GroupEntry,
    begins: Beginning,
    wanted: Interest,
    branches: Vec<BranchAnalysis>,
    sends: Sends,
    minimum: Option<Psn>,
    minimum_since: Option<Instant>,
    data: u64,
    backward: u64,
    last_data: Option<At>,
    by_rule: BTreeMap<&'static str, u64>,
    last_upstream: Option<LastResponse>,
    repeated_acks: u64,
    /// Present when the captures have responses of the node itself.
    comparison: Option<Comparison>,
    /// Scratch memory.
    found: Vec<Found>,
    /// Events that are not in the timeline yet, because differences found later may come before them.
    recent: VecDeque<Recent>,
    timeline: Timeline,
}

struct Recent {
    time: Instant,
    before: Option<u32>,
    after: Option<u32>,
    event: Event,
}

impl GroupAnalysis {
    /// An analysis that begins. `compares`: the captures have responses of the node itself.
    pub(super) fn new(entry: GroupEntry, begins: Beginning, wanted: Interest, compares: bool) -> Self {
        let expected_psn =
            (begins != Beginning::MidFlow && begins != Beginning::Restarted).then_some(entry.initial_psn);
        let branches =
            entry.branches.iter().map(|branch| BranchAnalysis::new(branch.responder, expected_psn)).collect();
        GroupAnalysis {
            begins,
            branches,
            sends: Sends::default(),
            minimum: expected_psn,
            minimum_since: None,
            data: 0,
            backward: 0,
            last_data: None,
            by_rule: BTreeMap::new(),
            last_upstream: None,
            repeated_acks: 0,
            comparison: compares.then(Comparison::default),
            found: Vec::new(),
            recent: VecDeque::new(),
            timeline: Timeline::new(wanted.all),
            wanted,
            entry,
        }
    }

    /// The node's entry of the group.
    pub(super) fn entry(&self) -> &GroupEntry {
        &self.entry
    }

    /// Applies an entry of the journal.
    pub(super) fn apply(&mut self, entry: JournalEntry) {
        let (now, before) = (entry.time, self.minimum);
        let event = match entry.event {
            GroupEvent::Began { unknown, .. } => Event::Began { unknown },
            GroupEvent::Committed { epoch } => Event::Committed { epoch },
            GroupEvent::Learnt { receivers, unknown } => Event::Learnt { receivers, unknown },
            GroupEvent::Left => Event::Left,
            GroupEvent::Data { psn, ack_request, backward } => {
                self.sends.send(now, psn);
                self.data += 1;
                self.backward += u64::from(backward);
                self.last_data = Some(At { psn: psn.get(), time_ns: now.as_ns() });
                Event::Data { psn: psn.get(), ack_request, backward }
            }
            GroupEvent::Accepted { branch, response, before, after } => {
                let response = Response::from(response);
                self.with_branch(branch, |branch| branch.accept(now, response, after));
                self.find_minimum(now);
                Event::Response { branch, response, before: before.map(Psn::get), after: after.map(Psn::get) }
            }
            GroupEvent::Refused { branch, response, refusal } => {
                let (response, reason, detail) = (Response::from(response), reason_of(&refusal), refusal.to_string());
                self.with_branch(branch, |branch| branch.refuse(now, Some(response), reason, Some(detail.clone())));
                Event::Refused { branch, response, reason, detail }
            }
            GroupEvent::Dropped { responder, reason } => {
                let reason = reason.name();
                self.with_branch(responder, |branch| branch.refuse(now, None, reason, None));
                Event::Dropped { responder, reason }
            }
            GroupEvent::HoldBegan { branch, psn } => {
                self.with_branch(branch, |branch| branch.hold(now));
                Event::HoldBegan { branch, psn: psn.get() }
            }
            GroupEvent::HoldEnded { branch, psn, since, end } => {
                let held_ns = now.as_ns().saturating_sub(since.as_ns());
                self.with_branch(branch, |branch| branch.release(held_ns));
                Event::HoldEnded { branch, psn: psn.get(), held_ns, end }
            }
            GroupEvent::Upstream { response, caused_by, holder } => {
                let (response, rule) = (Response::from(response.response), response.rule);
                *self.by_rule.entry(rule.name()).or_default() += 1;
                self.repeated_acks += u64::from(rule == srdma_aggregation::Rule::R2);
                let time_ns = now.as_ns();
                self.last_upstream = Some(LastResponse { time_ns, response, rule: rule.name(), caused_by });
                if let Some(comparison) = &mut self.comparison {
                    comparison.expect(now, response);
                }
                Event::Upstream { response, rule, caused_by, holder }
            }
            GroupEvent::Cnp { branch, count, counts } => Event::Cnp { branch, count, counts },
            GroupEvent::CnpUp { branch, count } => Event::CnpUp { branch, count },
            GroupEvent::NakAnswered { branch, psn } => Event::NakAnswered { branch, psn: psn.get() },
            GroupEvent::RequestReceived { branch, psn, count } => {
                Event::RequestReceived { branch, psn: psn.get(), count }
            }
            GroupEvent::RequestSent { psn, count } => Event::RequestSent { psn: psn.get(), count },
            GroupEvent::SentAgain { branch, psn } => Event::SentAgain { branch, psn: psn.get() },
            GroupEvent::GapGivenUp { psn } => Event::GapGivenUp { psn: psn.get() },
        };
        self.add(now, before, event);
    }

    /// The edge requests an eviction.
    pub(super) fn request_eviction(&mut self, now: Instant, receiver: Ipv6Addr, cause: EvictionCause) {
        self.add(now, self.minimum, Event::EvictionRequested { receiver, cause: cause_name(cause) });
    }

    /// A captured response of the node.
    pub(super) fn see_response(&mut self, now: Instant, response: Response) {
        if let Some(comparison) = &mut self.comparison {
            comparison.capture(now, response);
        }
    }

    /// A captured copy of data from the node to a receiver.
    pub(super) fn see_copy(&mut self, now: Instant, receiver: Ipv6Addr, psn: Psn) {
        let receivers = &self.entry.receivers;
        let offset = receivers.iter().find(|one| one.address == receiver).map(|one| one.psn_offset).unwrap_or_default();
        self.with_branch(receiver, |branch| branch.see_copy(now, offset.of_group(psn)));
    }

    /// No event earlier than `now` will follow. `minimum`: the PSN that the node may confirm, `None` while a branch is
    /// unknown.
    pub(super) fn settle(&mut self, now: Instant, minimum: Option<Psn>) {
        if let Some(comparison) = &mut self.comparison {
            comparison.expire(now, minimum, &mut self.found);
        }
        self.insert_found(minimum);
        while let Some(recent) = self.recent.pop_front_if(|recent| recent.time + 2 * TOLERANCE < now) {
            self.write(recent);
        }
    }

    /// Result for the group.
    pub(super) fn finish(mut self, acks: &Acknowledgements, sees_copies: bool) -> GroupExplanation {
        let confirmable = acks.minimum_psn().filter(|_| acks.unknown_branches() == 0);
        if let Some(comparison) = &mut self.comparison {
            comparison.end(confirmable, &mut self.found);
        }
        self.insert_found(confirmable);
        while let Some(recent) = self.recent.pop_front() {
            self.write(recent);
        }
        let branches: Vec<_> = (0..)
            .map(BranchIndex)
            .zip(&self.branches)
            .map(|(index, branch)| {
                let is_node = self.entry.receiver_at(index.index()).is_none();
                branch.explain(index, acks, &self.sends, (is_node, sees_copies && !is_node))
            })
            .collect();
        let (minimum, highest) = (acks.minimum_psn(), acks.highest_psn());
        let verdict = self.verdict(acks, branches.iter().map(|branch| (branch.condition, branch.holds_minimum)));
        let waits_for = branches.iter().filter(|branch| match verdict {
            Verdict::NoData | Verdict::Complete | Verdict::SourceRepeats => false,
            Verdict::NoResponse => matches!(branch.condition, Condition::NoResponse | Condition::Refused),
            Verdict::Failed => branch.condition == Condition::Failed,
            Verdict::Waiting | Verdict::InFlight => branch.holds_minimum,
        });
        GroupExplanation {
            id: self.entry.id.0,
            proxy: self.entry.proxy,
            role: self.entry.role.name(),
            begins: self.begins,
            verdict,
            waits_for: waits_for.map(|branch| branch.branch).collect(),
            minimum: minimum.map(Psn::get),
            minimum_since_ns: self.minimum_since.map(Instant::as_ns),
            highest: highest.map(Psn::get),
            data: self.data,
            backward: self.backward,
            last_data: self.last_data,
            upstream: Upstream {
                by_rule: self.by_rule,
                last: self.last_upstream,
                repeated_acks: self.repeated_acks,
                compared: self.comparison.map(|comparison| comparison.counts),
            },
            branches,
            timeline: self.timeline.finish(),
        }
    }

    /// Inserts differences in the order of time.
    fn insert_found(&mut self, minimum: Option<Psn>) {
        for Found { time, response, difference } in std::mem::take(&mut self.found) {
            let minimum = minimum.map(Psn::get);
            let position = self.recent.partition_point(|recent| recent.time <= time);
            let before = self.recent.get(position).map_or(minimum, |recent| recent.before);
            let event = Event::Difference { response, difference, minimum };
            self.recent.insert(position, Recent { time, before, after: before, event });
        }
    }

    fn verdict(&self, acks: &Acknowledgements, branches: impl Iterator<Item = (Condition, bool)>) -> Verdict {
        /// ACKs to a retransmitting source from which on it is not by chance.
        const REPEATED: u64 = 2;
        let branches: Vec<_> = branches.collect();
        let (Some(highest), false) = (acks.highest_psn(), self.data == 0) else {
            return Verdict::NoData;
        };
        if acks.unknown_branches() > 0 {
            return Verdict::NoResponse;
        }
        if branches.iter().any(|(condition, _)| *condition == Condition::Failed) {
            return Verdict::Failed;
        }
        let went_back =
            acks.minimum_psn().zip(self.last_data).is_some_and(|(minimum, last)| Psn::new(last.psn).is_before(minimum));
        if self.repeated_acks >= REPEATED && went_back {
            return Verdict::SourceRepeats;
        }
        if acks.minimum_psn().is_none_or(|minimum| minimum.is_after(highest)) {
            return Verdict::Complete;
        }
        let trouble = branches.iter().any(|(condition, holds)| *holds && condition.is_trouble());
        if trouble { Verdict::Waiting } else { Verdict::InFlight }
    }

    fn with_branch(&mut self, responder: Ipv6Addr, action: impl FnOnce(&mut BranchAnalysis)) {
        if let Some(branch) = self.branches.iter_mut().find(|branch| branch.responder == responder) {
            action(branch);
        }
    }

    /// The minimum after a response.
    fn find_minimum(&mut self, now: Instant) {
        let mut expected_psns = self.branches.iter().map(|branch| branch.expected_psn);
        let first = expected_psns.next().flatten();
        let minimum = expected_psns.fold(first, |least, expected_psn| Some(least?.serial_min(expected_psn?)));
        if minimum != self.minimum {
            (self.minimum, self.minimum_since, self.repeated_acks) = (minimum, Some(now), 0);
            minimum.into_iter().for_each(|minimum| self.sends.confirm(minimum));
        }
    }

    fn add(&mut self, time: Instant, before: Option<Psn>, event: Event) {
        let (before, after) = (before.map(Psn::get), self.minimum.map(Psn::get));
        self.recent.push_back(Recent { time, before, after, event });
    }

    fn write(&mut self, recent: Recent) {
        let Recent { time, before, after, event } = recent;
        self.timeline.set_minimum(after);
        let in_time = self.wanted.from.is_none_or(|from| time >= from);
        let of_branch = match (self.wanted.branch, event.branch()) {
            (Some(wanted), Some(branch)) => wanted == branch,
            (Some(_), None) | (None, _) => true,
        };
        if in_time && of_branch {
            self.timeline.add(time.as_ns(), before, event);
        }
    }
}
