//! A round trip that is far longer than the policy's initial value (D161): timeouts double until it is known.

use srdma_aggregation::{Acknowledgements, BranchIndex, Origin, Response, Rules, Syndrome};
use srdma_repair::{BranchKind, Effects, Repair, RepairRules};
use srdma_wire::{Instant, Psn};
use std::collections::BTreeMap;
use std::time::Duration;

const FIRST: Psn = Psn::new(0xFF_FFF0);
const WINDOW: u32 = 64;
const ROUND_TRIP: Duration = Duration::from_millis(5);

fn rules(parent_repairs: bool) -> RepairRules {
    RepairRules {
        capacity: WINDOW,
        parent_repairs,
        gap_hold: Duration::from_micros(200),
        initial_round_trip: Duration::from_micros(100),
        ack_timeout: Duration::from_millis(67),
    }
}

/// One node with one branch.
struct Node {
    acks: Acknowledgements,
    repair: Repair<Psn>,
    effects: Effects<Psn>,
    /// Packets that reach the receiver, or requests that reach the parent, by their times.
    arrivals: BTreeMap<(Instant, u32), Psn>,
    sent: u32,
}

impl Node {
    fn new(kind: BranchKind, parent_repairs: bool) -> Self {
        let origins = [Origin::At(FIRST)];
        Node {
            acks: Acknowledgements::of_branches(&Rules::default(), &origins),
            repair: Repair::new(rules(parent_repairs), &origins.map(|origin| (kind, origin))),
            effects: Effects::default(),
            arrivals: BTreeMap::new(),
            sent: 0,
        }
    }

    fn schedule(&mut self, at: Instant, psn: Psn) {
        self.arrivals.insert((at, self.sent), psn);
        self.sent += 1;
    }

    fn data(&mut self, now: Instant, psn: Psn, ack_request: bool) -> bool {
        self.acks.data(now, psn, ack_request, &mut Vec::new());
        let arrival = self.repair.arrive(now, psn, ack_request, &self.acks);
        let is_for_all = arrival.is_for_all;
        self.repair.store(now, arrival, psn, &self.acks, &mut self.effects);
        is_for_all
    }
}

/// A receiver that answers after 5 ms, where the policy says 100 us: some probes until the first sample, none after it.
#[test]
fn probes_end_when_the_round_trip_is_known() {
    for kind in [BranchKind::Plain, BranchKind::Repairs] {
        let mut node = Node::new(kind, false);
        let branch = BranchIndex(0);
        let (mut next, mut acknowledged, mut expected) = (FIRST, FIRST, FIRST);
        let mut now = Instant::ZERO;
        let mut resent_at_half = 0;
        let end = FIRST.plus(64 * WINDOW);
        while acknowledged != end {
            while next != end && next.distance_from(acknowledged) < WINDOW as i32 {
                let asks = next.get() % 16 == 15;
                assert!(node.data(now, next, asks) || !node.repair.is_level());
                if node.repair.is_level() {
                    node.schedule(now + ROUND_TRIP, next);
                }
                next = next.next();
            }
            let arrival = node.arrivals.first_key_value().map(|((at, _), _)| *at);
            let deadline = node.repair.next_deadline();
            now = arrival.into_iter().chain(deadline).min().expect("an arrival or a timer");
            while let Some(entry) = node.arrivals.first_entry().filter(|entry| entry.key().0 <= now) {
                let psn = entry.remove();
                if psn == expected {
                    expected = expected.next();
                }
                let response = Response { psn: expected.previous(), msn: 1, syndrome: Syndrome::Ack };
                if psn.get() % 16 == 15 && expected.is_after(acknowledged) {
                    let (acks, out) = (&mut node.acks, &mut Vec::new());
                    node.repair.response(now, branch, response, acks, out, &mut node.effects).unwrap();
                    acknowledged = expected;
                }
            }
            node.repair.tick(now, &node.acks, &mut Vec::new(), &mut node.effects);
            while let Some(sending) = node.repair.poll(now, branch, &mut node.acks) {
                node.schedule(now + ROUND_TRIP, sending.psn);
            }
            node.effects.ready.clear();
            node.effects.released.clear();
            if acknowledged.distance_from(FIRST) <= 32 * WINDOW as i32 {
                resent_at_half = node.repair.counters().packets_resent;
            }
        }
        let counters = node.repair.counters();
        assert!(counters.probes <= 10, "{kind:?}: {counters:?}");
        assert!(counters.packets_resent <= u64::from(8 * WINDOW), "{kind:?}: {counters:?}");
        assert_eq!(counters.packets_resent, resent_at_half, "{kind:?}: none once the round trip is known");
    }
}

/// A parent that answers after 5 ms, where the policy says 100 us: requests are repeated until an answer is a sample.
#[test]
fn requests_are_sent_once_when_the_round_trip_is_known() {
    let mut node = Node::new(BranchKind::Plain, true);
    let mut now = Instant::ZERO;
    let mut sent_by_gap = Vec::new();
    node.data(now, FIRST, false);
    for gap in 0..8 {
        let missing = FIRST.plus(1 + 2 * gap);
        node.data(now, missing.next(), false);
        let answer_at = now + ROUND_TRIP;
        while now < answer_at {
            now = node.repair.next_deadline().unwrap_or(answer_at).min(answer_at).max(now + Duration::from_nanos(1));
            node.repair.tick(now, &node.acks, &mut Vec::new(), &mut node.effects);
        }
        sent_by_gap.push(node.effects.requests.len());
        node.effects.requests.clear();
        node.data(now, missing, false);
        let next = FIRST.plus(3 + 2 * gap);
        assert_eq!(node.repair.received(), Some((next, next)));
    }
    assert!(sent_by_gap[0] > 1, "100 us are too short: {sent_by_gap:?}");
    assert_eq!(sent_by_gap[3..], [1; 5], "{sent_by_gap:?}");
}
