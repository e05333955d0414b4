//! Events of one group, from its node's journal and the captures.

use super::branch::BranchStory;
use super::comparison::{Comparison, Found, TOLERANCE};
use super::happening::{Happening, Said, cause_name, reason_of};
use super::report::{At, Beginning, GroupExplanation, LastStatement, Upstream};
use super::sends::Sends;
use super::timeline::Timeline;
use super::verdict::{Condition, Verdict};
use srdma_aggregation::{Acknowledgements, BranchIndex, EvictionCause};
use srdma_dataplane::{Entry, What};
use srdma_group::{GroupEntry, NodeRole};
use srdma_wire::{Instant, Psn};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

/// Parts of a story that go into the timeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interest {
    /// Of the branches this one alone.
    pub(super) branch: Option<Ipv6Addr>,
    /// Not before.
    pub(super) from: Option<Instant>,
    /// All entries, nothing summed up.
    pub(super) all: bool,
}

pub(super) struct Story {
    entry: GroupEntry,
    begins: Beginning,
    wanted: Interest,
    branches: Vec<BranchStory>,
    sends: Sends,
    minimum: Option<Psn>,
    minimum_since: Option<Instant>,
    data: u64,
    backward: u64,
    last_data: Option<At>,
    by_rule: BTreeMap<&'static str, u64>,
    last_statement: Option<LastStatement>,
    answers: u64,
    /// Present when the captures have responses of the node itself.
    comparison: Option<Comparison>,
    /// Kept for its memory.
    found: Vec<Found>,
    /// Events that are not in the timeline yet, because differences found later may come before them.
    recent: VecDeque<Recent>,
    timeline: Timeline,
}

struct Recent {
    time: Instant,
    before: Option<u32>,
    after: Option<u32>,
    what: Happening,
}

impl Story {
    /// A story that begins. `compares`: the captures have responses of the node itself.
    pub(super) fn new(entry: GroupEntry, begins: Beginning, wanted: Interest, compares: bool) -> Self {
        let point = (begins != Beginning::MidFlow && begins != Beginning::Restarted).then_some(entry.initial_psn);
        let branches = entry.branches.iter().map(|branch| BranchStory::new(branch.responder, point)).collect();
        Story {
            begins,
            branches,
            sends: Sends::default(),
            minimum: point,
            minimum_since: None,
            data: 0,
            backward: 0,
            last_data: None,
            by_rule: BTreeMap::new(),
            last_statement: None,
            answers: 0,
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

    /// Something happened to the group.
    pub(super) fn tell(&mut self, entry: Entry) {
        let (now, before) = (entry.time, self.minimum);
        let what = match entry.what {
            What::Began { unknown, .. } => Happening::Began { unknown },
            What::Committed { epoch } => Happening::Committed { epoch },
            What::Learnt { receivers, unknown } => Happening::Learnt { receivers, unknown },
            What::Left => Happening::Left,
            What::Data { psn, ack_request, backward } => {
                self.sends.send(now, psn);
                self.data += 1;
                self.backward += u64::from(backward);
                self.last_data = Some(At { psn: psn.get(), time_ns: now.as_ns() });
                Happening::Data { psn: psn.get(), ack_request, backward }
            }
            What::Taken { branch, response, before, after } => {
                let said = Said::from(response);
                self.with_branch(branch, |story| story.take(now, said, after));
                self.find_minimum(now);
                Happening::Response { branch, said, before: before.map(Psn::get), after: after.map(Psn::get) }
            }
            What::Refused { branch, response, refusal } => {
                let (said, reason, because) = (Said::from(response), reason_of(&refusal), refusal.to_string());
                self.with_branch(branch, |story| story.refuse(now, Some(said), reason, Some(because.clone())));
                Happening::Refused { branch, said, reason, because }
            }
            What::NotTaken { responder, reason } => {
                let reason = reason.name();
                self.with_branch(responder, |story| story.refuse(now, None, reason, None));
                Happening::NotTaken { responder, reason }
            }
            What::HoldBegan { branch, psn } => {
                self.with_branch(branch, |story| story.hold(now));
                Happening::HoldBegan { branch, psn: psn.get() }
            }
            What::HoldEnded { branch, psn, since, end } => {
                let held_ns = now.as_ns().saturating_sub(since.as_ns());
                self.with_branch(branch, |story| story.release(held_ns));
                Happening::HoldEnded { branch, psn: psn.get(), held_ns, end: end.into() }
            }
            What::Statement { statement, because_of, holder } => {
                let (said, rule) = (Said::from(statement.response), statement.rule);
                *self.by_rule.entry(rule.name()).or_default() += 1;
                self.answers += u64::from(rule == srdma_aggregation::Rule::R2);
                let time_ns = now.as_ns();
                self.last_statement = Some(LastStatement { time_ns, said, rule: rule.name(), because_of });
                if let Some(comparison) = &mut self.comparison {
                    comparison.state(now, said);
                }
                Happening::Statement { said, rule, because_of, holder }
            }
            What::Cnp { branch, count, counts } => Happening::Cnp { branch, count, counts },
            What::CnpUp { branch, count } => Happening::CnpUp { branch, count },
        };
        self.happen(now, before, what);
    }

    /// The edge requests an eviction.
    pub(super) fn want_eviction(&mut self, now: Instant, receiver: Ipv6Addr, cause: EvictionCause) {
        self.happen(now, self.minimum, Happening::EvictionWanted { receiver, cause: cause_name(cause) });
    }

    /// A captured response of the node.
    pub(super) fn see_said(&mut self, now: Instant, said: Said) {
        if let Some(comparison) = &mut self.comparison {
            comparison.capture(now, said);
        }
    }

    /// A captured copy of data from the node to a receiver below.
    pub(super) fn see_copy(&mut self, now: Instant, receiver: Ipv6Addr, psn: Psn) {
        self.with_branch(receiver, |story| story.see_copy(now, psn));
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
        let spoken_of = acks.minimum_psn().filter(|_| acks.unknown_branches() == 0);
        if let Some(comparison) = &mut self.comparison {
            comparison.end(spoken_of, &mut self.found);
        }
        self.insert_found(spoken_of);
        while let Some(recent) = self.recent.pop_front() {
            self.write(recent);
        }
        let sees_copies = sees_copies && self.entry.role == NodeRole::Edge;
        let branches: Vec<_> = (0..)
            .map(BranchIndex)
            .zip(&self.branches)
            .map(|(index, branch)| branch.explain(index, acks, &self.sends, sees_copies))
            .collect();
        let (minimum, highest) = (acks.minimum_psn(), acks.highest_psn());
        let verdict = self.verdict(acks, branches.iter().map(|branch| (branch.condition, branch.holds_minimum)));
        let waits_for = branches.iter().filter(|branch| match verdict {
            Verdict::NoData | Verdict::Complete | Verdict::Unheeded => false,
            Verdict::Unheard => matches!(branch.condition, Condition::Unheard | Condition::Refused),
            Verdict::Failed => branch.condition == Condition::Failed,
            Verdict::Waiting | Verdict::InFlight => branch.holds_minimum,
        });
        GroupExplanation {
            id: self.entry.id.0,
            proxy: self.entry.proxy,
            role: if self.entry.role == NodeRole::Edge { "edge" } else { "transit" },
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
                last: self.last_statement,
                answers: self.answers,
                compared: self.comparison.map(|comparison| comparison.counts),
            },
            branches,
            timeline: self.timeline.finish(),
        }
    }

    /// Puts differences where they belong in time.
    fn insert_found(&mut self, minimum: Option<Psn>) {
        for Found { time, said, difference } in std::mem::take(&mut self.found) {
            let minimum = minimum.map(Psn::get);
            let position = self.recent.partition_point(|recent| recent.time <= time);
            let before = self.recent.get(position).map_or(minimum, |recent| recent.before);
            let what = Happening::Difference { said, difference, minimum };
            self.recent.insert(position, Recent { time, before, after: before, what });
        }
    }

    fn verdict(&self, acks: &Acknowledgements, branches: impl Iterator<Item = (Condition, bool)>) -> Verdict {
        /// Answers to a source that goes back which are not chance.
        const UNHEEDED: u64 = 2;
        let branches: Vec<_> = branches.collect();
        let (Some(highest), false) = (acks.highest_psn(), self.data == 0) else {
            return Verdict::NoData;
        };
        if acks.unknown_branches() > 0 {
            return Verdict::Unheard;
        }
        if branches.iter().any(|(condition, _)| *condition == Condition::Failed) {
            return Verdict::Failed;
        }
        let went_back =
            acks.minimum_psn().zip(self.last_data).is_some_and(|(minimum, last)| Psn::new(last.psn).is_before(minimum));
        if self.answers >= UNHEEDED && went_back {
            return Verdict::Unheeded;
        }
        if acks.minimum_psn().is_none_or(|minimum| minimum.is_after(highest)) {
            return Verdict::Complete;
        }
        let trouble = branches.iter().any(|(condition, holds)| *holds && condition.is_trouble());
        if trouble { Verdict::Waiting } else { Verdict::InFlight }
    }

    fn with_branch(&mut self, responder: Ipv6Addr, action: impl FnOnce(&mut BranchStory)) {
        if let Some(branch) = self.branches.iter_mut().find(|branch| branch.responder == responder) {
            action(branch);
        }
    }

    /// The minimum after a response.
    fn find_minimum(&mut self, now: Instant) {
        let mut points = self.branches.iter().map(|branch| branch.point);
        let first = points.next().flatten();
        let minimum = points.fold(first, |least, point| Some(least?.serial_min(point?)));
        if minimum != self.minimum {
            (self.minimum, self.minimum_since, self.answers) = (minimum, Some(now), 0);
            minimum.into_iter().for_each(|minimum| self.sends.confirm(minimum));
        }
    }

    fn happen(&mut self, time: Instant, before: Option<Psn>, what: Happening) {
        let (before, after) = (before.map(Psn::get), self.minimum.map(Psn::get));
        self.recent.push_back(Recent { time, before, after, what });
    }

    fn write(&mut self, recent: Recent) {
        let Recent { time, before, after, what } = recent;
        self.timeline.set_minimum(after);
        let in_time = self.wanted.from.is_none_or(|from| time >= from);
        let of_branch = match (self.wanted.branch, what.branch()) {
            (Some(wanted), Some(branch)) => wanted == branch,
            (Some(_), None) | (None, _) => true,
        };
        if in_time && of_branch {
            self.timeline.add(time.as_ns(), before, what);
        }
    }
}
