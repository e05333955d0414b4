//! State of one branch.

use super::event::{Response, SyndromeKind};
use super::report::BranchExplanation;
use super::sends::Sends;
use super::verdict::{Condition, Facts};
use srdma_aggregation::{Acknowledgements, BranchIndex};
use srdma_wire::{Instant, Psn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A branch and its responses.
#[derive(Debug)]
pub(super) struct BranchAnalysis {
    pub(super) responder: Ipv6Addr,
    pub(super) expected_psn: Option<Psn>,
    since: Option<Instant>,
    last_accepted: Option<Instant>,
    last_refused: Option<Instant>,
    last_response: Option<Response>,
    last_refusal: Option<String>,
    accepted: u64,
    naks: u64,
    refused: BTreeMap<&'static str, u64>,
    holds: u64,
    longest_hold_ns: u64,
    held_since: Option<Instant>,
    /// Copies that were seen on their way to it.
    copies: Sends,
}

impl BranchAnalysis {
    /// A branch without responses so far, with its expected PSN, if that is known.
    pub(super) fn new(responder: Ipv6Addr, expected_psn: Option<Psn>) -> Self {
        BranchAnalysis {
            responder,
            expected_psn,
            since: None,
            last_accepted: None,
            last_refused: None,
            last_response: None,
            last_refusal: None,
            accepted: 0,
            naks: 0,
            refused: BTreeMap::new(),
            holds: 0,
            longest_hold_ns: 0,
            held_since: None,
            copies: Sends::default(),
        }
    }

    /// A response was accepted.
    pub(super) fn accept(&mut self, now: Instant, response: Response, after: Option<Psn>) {
        self.accepted += 1;
        self.naks += u64::from(response.syndrome != SyndromeKind::Ack);
        self.last_accepted = Some(now);
        self.last_response = Some(response);
        if after != self.expected_psn {
            (self.expected_psn, self.since) = (after, Some(now));
            after.into_iter().for_each(|expected_psn| self.copies.confirm(expected_psn));
        }
    }

    /// A packet was rejected. A stale response shows that the branch responds.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        response: Option<Response>,
        reason: &'static str,
        detail: Option<String>,
    ) {
        *self.refused.entry(reason).or_default() += 1;
        self.last_response = response.or(self.last_response);
        if reason == "stale_response" {
            self.last_accepted = Some(now);
        } else {
            self.last_refused = Some(now);
            self.last_refusal = detail;
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

    /// State of the branch at the end. `is_node`: it is a node. `sees_copies`: the captures have packets to it.
    pub(super) fn explain(
        &self,
        index: BranchIndex,
        acks: &Acknowledgements,
        sends: &Sends,
        (is_node, sees_copies): (bool, bool),
    ) -> BranchExplanation {
        let (expected_psn, highest, status) = (acks.expected_psn(index), acks.highest_psn(), acks.branch_status(index));
        let sent = expected_psn.map(|expected_psn| sends.of(expected_psn)).unwrap_or_default();
        let (last_accepted, last_refused) = (self.last_accepted, self.last_refused);
        let condition = Condition::of(&Facts { status, expected_psn, highest, sent, last_accepted, last_refused });
        let was_sent = |time: Instant| (sent.times > 0).then(|| time.as_ns());
        BranchExplanation {
            branch: self.responder,
            is_node,
            condition,
            expects: expected_psn.map(Psn::get),
            since_ns: self.since.map(Instant::as_ns),
            holds_minimum: expected_psn.is_some() && expected_psn == acks.minimum_psn(),
            behind: acks.lag(index),
            sent: sent.times,
            first_sent_ns: was_sent(sent.first),
            last_sent_ns: was_sent(sent.last),
            copies_seen: expected_psn.filter(|_| sees_copies).map(|expected_psn| self.copies.of(expected_psn).times),
            last_response_ns: last_accepted.max(last_refused).map(Instant::as_ns),
            last_response: self.last_response,
            accepted: self.accepted,
            naks: self.naks,
            refused: self.refused.clone(),
            last_refusal: self.last_refusal.clone(),
            holds: self.holds,
            longest_hold_ns: self.longest_hold_ns,
            held_since_ns: self.held_since.map(Instant::as_ns),
        }
    }
}
