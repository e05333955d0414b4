//! A receiver that is not ready.

use srdma_aggregation::{Acknowledgements, BranchIndex, Origin, Response, Rules, Syndrome};
use srdma_repair::{BranchKind, Effects, Repair, RepairRules};
use srdma_wire::{Instant, Psn};
use std::time::Duration;

const FIRST: Psn = Psn::new(0xFF_FFFF);
/// Of two receivers this one is not ready; the other one acknowledges everything.
const BUSY: BranchIndex = BranchIndex(0);
/// A timer of 0.48 ms (IBTA 9.7.5.2.8, table 45), where a quarter of the source's ACK timeout is 1 ms.
const TIMER: u8 = 11;

struct Node {
    acks: Acknowledgements,
    repair: Repair<Psn>,
    effects: Effects<Psn>,
}

fn at_us(microseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(microseconds)
}

impl Node {
    /// Three packets have been sent to both receivers; the first one of them is acknowledged.
    fn new() -> Self {
        let rules = RepairRules {
            capacity: 16,
            parent_repairs: false,
            gap_hold: Duration::from_micros(200),
            initial_round_trip: Duration::from_micros(10),
            ack_timeout: Duration::from_millis(4),
        };
        let origins = [Origin::At(FIRST); 2];
        let acks = Acknowledgements::of_branches(&Rules::default(), &origins);
        let repair = Repair::new(rules, &origins.map(|origin| (BranchKind::Plain, origin)));
        let mut node = Node { acks, repair, effects: Effects::default() };
        for psn in [FIRST, FIRST.plus(1), FIRST.plus(2)] {
            node.data(at_us(0), psn);
        }
        assert_eq!(node.response(at_us(0), BranchIndex(1), FIRST.plus(2), Syndrome::Ack), []);
        node
    }

    fn data(&mut self, now: Instant, psn: Psn) {
        self.acks.data(now, psn, true, &mut Vec::new());
        let arrival = self.repair.arrive(now, psn, true, &self.acks);
        self.repair.store(now, arrival, psn, &self.acks, &mut self.effects);
    }

    /// What is sent to the source.
    fn response(&mut self, now: Instant, branch: BranchIndex, psn: Psn, syndrome: Syndrome) -> Vec<(Psn, Syndrome)> {
        let mut out = Vec::new();
        let response = Response { psn, msn: 1, syndrome };
        self.repair.response(now, branch, response, &mut self.acks, &mut out, &mut self.effects).expect("taken");
        out.iter().map(|up| (up.response.psn, up.response.syndrome)).collect()
    }

    fn not_ready(&mut self, now: Instant) -> Vec<(Psn, Syndrome)> {
        self.response(now, BUSY, FIRST.plus(1), Syndrome::RnrNak(TIMER))
    }

    /// What the busy receiver is sent again.
    fn sent_again(&mut self, now: Instant) -> Vec<Psn> {
        let mut out = Vec::new();
        self.repair.tick(now, &self.acks, &mut out, &mut self.effects);
        assert_eq!(out.len(), 0, "the source is told nothing");
        std::iter::from_fn(|| self.repair.poll(now, BUSY, &mut self.acks)).map(|sending| sending.psn).collect()
    }
}

/// D157: its RNR NAK is an ACK of what is before it, and the data are sent again from its PSN on when its time is over.
#[test]
fn it_is_waited_for() {
    let mut node = Node::new();
    assert_eq!(node.not_ready(at_us(0)), [(FIRST, Syndrome::Ack)]);
    assert_eq!(node.sent_again(at_us(479)), []);
    assert_eq!(node.sent_again(at_us(480)), [FIRST.plus(1), FIRST.plus(2)]);
    assert_eq!(node.repair.counters().rnr_naks_absorbed, 1);
    assert_eq!(node.response(at_us(490), BUSY, FIRST.plus(2), Syndrome::Ack), [(FIRST.plus(2), Syndrome::Ack)]);
}

/// D157: a NAK while it is waited for does nothing.
#[test]
fn naks_meanwhile_do_nothing() {
    let mut node = Node::new();
    node.not_ready(at_us(0));
    assert_eq!(node.response(at_us(100), BUSY, FIRST.plus(1), Syndrome::SequenceNak), []);
    assert_eq!(node.sent_again(at_us(479)), []);
    assert_eq!(node.sent_again(at_us(480)), [FIRST.plus(1), FIRST.plus(2)]);
}

/// D157: all waits at one PSN together may last a quarter of the source's ACK timeout; then the source is sent the RNR
/// NAK, and waits itself.
#[test]
fn the_source_waits_when_it_takes_longer() {
    let mut node = Node::new();
    node.not_ready(at_us(0));
    assert_eq!(node.sent_again(at_us(480)), [FIRST.plus(1), FIRST.plus(2)]);
    assert_eq!(node.not_ready(at_us(500)), [], "0.98 ms");
    assert_eq!(node.sent_again(at_us(980)), [FIRST.plus(1), FIRST.plus(2)]);
    assert_eq!(node.not_ready(at_us(1000)), [(FIRST.plus(1), Syndrome::RnrNak(TIMER))], "1.48 ms");
    assert_eq!(node.repair.counters().rnr_naks_absorbed, 2);
}

/// D157: the source has waited itself: its data at that PSN end the wait.
#[test]
fn data_of_the_source_end_the_wait() {
    let mut node = Node::new();
    node.not_ready(at_us(0));
    node.data(at_us(100), FIRST.plus(2));
    assert_eq!(node.sent_again(at_us(100)), [], "a later PSN");
    node.data(at_us(200), FIRST.plus(1));
    assert_eq!(node.sent_again(at_us(200)), [FIRST.plus(1), FIRST.plus(2)]);
}

/// D157: progress ends the wait, and the next one begins anew.
#[test]
fn another_psn_has_a_time_of_its_own() {
    let mut node = Node::new();
    node.not_ready(at_us(0));
    node.sent_again(at_us(480));
    let up = node.response(at_us(900), BUSY, FIRST.plus(2), Syndrome::RnrNak(TIMER));
    assert_eq!(up, [(FIRST.plus(1), Syndrome::Ack)]);
    assert_eq!(node.sent_again(at_us(1380)), [FIRST.plus(2)]);
}

/// D24: after a failure nothing more is sent to it.
#[test]
fn a_failure_has_no_end() {
    let mut node = Node::new();
    let up = node.response(at_us(0), BUSY, FIRST.plus(1), Syndrome::Fatal(2));
    assert_eq!(up, [(FIRST, Syndrome::Ack), (FIRST.plus(1), Syndrome::Fatal(2))]);
    assert_eq!(node.sent_again(at_us(2_000)), []);
}
