//! State of one branch.

use super::happening::{Kind, Said};
use super::report::BranchExplanation;
use super::sends::Sends;
use super::verdict::{Condition, Facts};
use srdma_aggregation::{Acknowledgements, BranchIndex};
use srdma_wire::{Instant, Psn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A branch and its responses.
#[derive(Debug)]
pub(super) struct BranchStory {
    pub(super) responder: Ipv6Addr,
    pub(super) point: Option<Psn>,
    since: Option<Instant>,
    last_taken: Option<Instant>,
    last_refused: Option<Instant>,
    last_said: Option<Said>,
    last_refusal: Option<String>,
    taken: u64,
    naks: u64,
    refused: BTreeMap<&'static str, u64>,
    holds: u64,
    longest_hold_ns: u64,
    held_since: Option<Instant>,
    /// Copies that were seen on their way to it.
    copies: Sends,
}

impl BranchStory {
    /// A branch without responses so far, with its expected PSN, if that is known.
    pub(super) fn new(responder: Ipv6Addr, point: Option<Psn>) -> Self {
        BranchStory {
            responder,
            point,
            since: None,
            last_taken: None,
            last_refused: None,
            last_said: None,
            last_refusal: None,
            taken: 0,
            naks: 0,
            refused: BTreeMap::new(),
            holds: 0,
            longest_hold_ns: 0,
            held_since: None,
            copies: Sends::default(),
        }
    }

    /// A response was taken.
    pub(super) fn take(&mut self, now: Instant, said: Said, after: Option<Psn>) {
        self.taken += 1;
        self.naks += u64::from(said.answer != Kind::Ack);
        self.last_taken = Some(now);
        self.last_said = Some(said);
        if after != self.point {
            (self.point, self.since) = (after, Some(now));
            after.into_iter().for_each(|point| self.copies.confirm(point));
        }
    }

    /// A packet was refused. One that was only overtaken shows that the branch is there.
    pub(super) fn refuse(&mut self, now: Instant, said: Option<Said>, reason: &'static str, because: Option<String>) {
        *self.refused.entry(reason).or_default() += 1;
        self.last_said = said.or(self.last_said);
        if reason == "stale_response" {
            self.last_taken = Some(now);
        } else {
            self.last_refused = Some(now);
            self.last_refusal = because;
        }
    }

    /// A hold has begun.
    pub(super) fn hold(&mut self, now: Instant) {
        self.holds += 1;
        self.held_since = Some(now);
    }

    /// A hold has ended.
    pub(super) fn release(&mut self, held_ns: u64) {
        self.held_since = None;
        self.longest_hold_ns = self.longest_hold_ns.max(held_ns);
    }

    /// A copy for it was seen.
    pub(super) fn see_copy(&mut self, now: Instant, psn: Psn) {
        self.copies.send(now, psn);
    }

    /// State of the branch at the end. `sees_copies`: the captures have packets to it.
    pub(super) fn explain(
        &self,
        index: BranchIndex,
        acks: &Acknowledgements,
        sends: &Sends,
        sees_copies: bool,
    ) -> BranchExplanation {
        let (point, highest, standing) = (acks.expected_psn(index), acks.highest_psn(), acks.branch_status(index));
        let sent = point.map(|point| sends.of(point)).unwrap_or_default();
        let (last_taken, last_refused) = (self.last_taken, self.last_refused);
        let condition = Condition::of(&Facts { standing, point, highest, sent, last_taken, last_refused });
        let was_sent = |time: Instant| (sent.times > 0).then(|| time.as_ns());
        BranchExplanation {
            branch: self.responder,
            condition,
            expects: point.map(Psn::get),
            since_ns: self.since.map(Instant::as_ns),
            holds_minimum: point.is_some() && point == acks.minimum_psn(),
            behind: acks.lag(index),
            sent: sent.times,
            first_sent_ns: was_sent(sent.first),
            last_sent_ns: was_sent(sent.last),
            copies_seen: point.filter(|_| sees_copies).map(|point| self.copies.of(point).times),
            last_heard_ns: last_taken.max(last_refused).map(Instant::as_ns),
            last_said: self.last_said,
            taken: self.taken,
            naks: self.naks,
            refused: self.refused.clone(),
            last_refusal: self.last_refusal.clone(),
            holds: self.holds,
            longest_hold_ns: self.longest_hold_ns,
            held_since_ns: self.held_since.map(Instant::as_ns),
        }
    }
}
