//! Stalled and failed receivers: when an edge requests their eviction (D24, D25).

use srdma_aggregation::{
    Acknowledgements, BranchIndex, EvictionCause, Origin, Response, Rules, StallRules, Start, Syndrome,
    UpstreamResponse,
};
use srdma_wire::{Instant, Psn};
use std::time::Duration;

const T_STALL: Duration = Duration::from_millis(100);
const MS: Duration = Duration::from_millis(1);
/// Bound on the delay of the clock of a stall: two of its ticks.
const SLACK: Duration = Duration::from_micros(4);

fn rules() -> Rules {
    Rules { evict: Some(StallRules { t_stall: T_STALL, sends: 3, t_not_ready: None, nodes: 0 }), ..Rules::default() }
}

/// An edge node under `evict`, and the evictions that it has requested.
struct Edge {
    machine: Acknowledgements,
    now: Instant,
    sent: Vec<UpstreamResponse>,
    wanted: Vec<(Duration, u16, EvictionCause)>,
}

impl Edge {
    fn new(branches: u16, start: Start) -> Self {
        let machine = Acknowledgements::new(&rules(), branches, start);
        Edge { machine, now: Instant::from_ns(77_777_777_777), sent: Vec::new(), wanted: Vec::new() }
    }

    /// The same with a time for receivers that are not ready.
    fn patient(branches: u16, t_not_ready: Duration) -> Self {
        let stall = StallRules { t_stall: T_STALL, sends: 3, t_not_ready: Some(t_not_ready), nodes: 0 };
        let rules = Rules { evict: Some(stall), ..Rules::default() };
        let machine = Acknowledgements::new(&rules, branches, Start::Committed(Psn::new(0)));
        Edge { machine, ..Self::committed(branches) }
    }

    fn committed(branches: u16) -> Self {
        Self::new(branches, Start::Committed(Psn::new(0)))
    }

    fn fetch(&mut self, began: Instant) {
        let (now, wanted) = (self.now, &mut self.wanted);
        if self.machine.has_eviction_requests() {
            self.machine.take_eviction_requests(now, |branch, cause| wanted.push((now - began, branch.0, cause)));
        }
        assert!(!self.machine.has_eviction_requests());
    }

    fn data(&mut self, psn: u32) {
        self.machine.data(self.now, Psn::new(psn), false, &mut self.sent);
        self.fetch(self.now);
    }

    fn response(&mut self, branch: u16, psn: u32, syndrome: Syndrome) {
        let response = Response { psn: Psn::new(psn), msn: 0, syndrome };
        let result = self.machine.response(self.now, BranchIndex(branch), response, &mut self.sent);
        assert!(result.is_ok(), "{result:?}");
        self.fetch(self.now);
    }

    fn ack(&mut self, branch: u16, psn: u32) {
        self.response(branch, psn, Syndrome::Ack);
    }

    /// Lets time pass, with ticks at deadlines; returns the requested evictions, with the time since the beginning.
    fn wait(&mut self, duration: Duration) -> Vec<(Duration, u16, EvictionCause)> {
        let (began, end) = (self.now, self.now + duration);
        while let Some(deadline) = self.machine.next_deadline().filter(|&deadline| deadline <= end) {
            let before = self.now.max(deadline);
            self.now = before;
            self.machine.tick(before, &mut self.sent);
            self.fetch(began);
            assert!(self.machine.next_deadline().is_none_or(|next| next > before), "a timer that does not advance");
        }
        self.now = end;
        std::mem::take(&mut self.wanted)
    }

    /// The receivers whose eviction is requested while so much time passes.
    fn evicted(&mut self, duration: Duration) -> Vec<u16> {
        self.wait(duration).into_iter().map(|(_, branch, _)| branch).collect()
    }
}

/// D25: a receiver that dies while it has everything. The clock begins with the first unacknowledged data.
#[test]
fn a_dead_receiver_is_stalled_t_stall_after_the_first_unacknowledged_data() {
    let mut edge = Edge::committed(2);
    edge.data(0);
    (0..2).for_each(|branch| edge.ack(branch, 0));
    assert_eq!(edge.wait(Duration::from_secs(50)), [], "no request");
    edge.data(1);
    edge.ack(0, 1);
    assert_eq!(edge.wait(30 * MS), []);
    edge.data(1);
    assert_eq!(edge.wait(30 * MS), []);
    edge.data(1);
    let wanted = edge.wait(Duration::from_secs(1));
    assert!(wanted.iter().all(|&(_, branch, cause)| (branch, cause) == (1, EvictionCause::Stalled)));
    let first = wanted[0].0;
    assert!(first >= 40 * MS && first <= 40 * MS + SLACK, "{first:?} after the third sending");
    assert!(wanted.len() >= 9, "requested again each T_stall: {}", wanted.len());
}

/// D25: with data on their way, the clock begins with the last progress.
#[test]
fn a_receiver_that_dies_is_stalled_t_stall_after_its_last_progress() {
    let mut edge = Edge::committed(2);
    (0..10).for_each(|psn| edge.data(psn));
    edge.ack(0, 9);
    edge.wait(20 * MS);
    edge.ack(1, 4);
    for _ in 0..4 {
        assert_eq!(edge.wait(20 * MS), []);
        (5..10).for_each(|psn| edge.data(psn));
    }
    let wanted = edge.wait(25 * MS);
    assert_eq!((wanted.len(), wanted[0].1), (1, 1));
    assert!(wanted[0].0 <= 20 * MS + SLACK, "{wanted:?}");
}

/// D25: time alone is not enough, nor are sendings alone; at the sending that completes the count it is.
#[test]
fn both_time_and_sendings_count() {
    let mut edge = Edge::committed(1);
    edge.data(0);
    assert_eq!(edge.wait(Duration::from_secs(100)), [], "sent once");
    edge.data(0);
    assert_eq!(edge.wait(Duration::from_secs(100)), [], "sent twice");
    edge.data(0);
    assert_eq!(edge.evicted(Duration::ZERO), [0]);

    let mut edge = Edge::committed(1);
    (0..50).for_each(|_| edge.data(0));
    assert_eq!(edge.wait(T_STALL - MS), []);
    edge.ack(0, 0);
    assert_eq!(edge.wait(Duration::from_secs(100)), [], "slow, not dead");
}

/// D25: other data that are sent again do not count for a receiver that waits for none of them.
#[test]
fn only_the_expected_psn_counts() {
    let mut edge = Edge::committed(2);
    (0..10).for_each(|psn| edge.data(psn));
    edge.ack(1, 4);
    let mut evicted = Vec::new();
    for _ in 0..10 {
        evicted.extend(edge.evicted(50 * MS));
        (0..5).for_each(|psn| edge.data(psn));
    }
    assert_eq!(evicted, [0, 0, 0, 0], "the one that expects 0");
}

/// D25: NAKs and RNR NAKs of what it has not got are no progress.
#[test]
fn a_receiver_that_is_never_ready_is_stalled() {
    let mut edge = Edge::committed(1);
    edge.data(0);
    for _ in 0..2 {
        edge.response(0, 0, Syndrome::RnrNak(14));
        assert_eq!(edge.wait(40 * MS), []);
        edge.data(0);
    }
    edge.response(0, 0, Syndrome::RnrNak(14));
    assert_eq!(edge.evicted(40 * MS), [0]);
}

/// D25: data that never reached this node were not sent, even if later data have been.
#[test]
fn data_lost_upstream_do_not_count() {
    let mut edge = Edge::committed(1);
    edge.data(0);
    edge.data(3);
    edge.ack(0, 0);
    edge.wait(Duration::from_secs(1));
    edge.data(1);
    edge.data(2);
    assert_eq!(edge.wait(Duration::from_secs(1)), []);
    edge.data(1);
    assert_eq!(edge.wait(Duration::from_secs(1)), [], "the second sending");
    edge.data(1);
    assert_eq!(edge.evicted(Duration::ZERO), [0]);

    // The same for a receiver that had everything when the data were lost.
    let mut edge = Edge::committed(1);
    edge.data(0);
    edge.ack(0, 0);
    edge.data(2);
    edge.wait(Duration::from_secs(1));
    (0..2).for_each(|_| edge.data(1));
    assert_eq!(edge.wait(Duration::from_secs(1)), []);
    edge.data(1);
    assert_eq!(edge.evicted(Duration::ZERO), [0]);
}

/// D25: after a restart of its edge, a receiver that answers nothing is stalled, whatever is sent down again and again.
#[test]
fn an_unknown_receiver_is_stalled_by_any_data() {
    let mut edge = Edge::new(2, Start::Unknown);
    for _ in 0..3 {
        (40..50).for_each(|psn| edge.data(psn));
        edge.ack(0, 49);
        assert_eq!(edge.machine.unknown_branches(), 1);
        assert_eq!(edge.wait(30 * MS), []);
    }
    assert_eq!(edge.evicted(20 * MS), [1]);
    assert_eq!(edge.sent, [], "R6");
}

/// D25: `strict`, the default, requests no eviction.
#[test]
fn strict_groups_request_no_eviction() {
    let mut edge = Edge::committed(1);
    edge.machine = Acknowledgements::new(&Rules::default(), 1, Start::Committed(Psn::new(0)));
    (0..50).for_each(|_| edge.data(0));
    assert_eq!((edge.wait(Duration::from_secs(100)), edge.machine.next_deadline()), (vec![], None));
}

/// D24, `evict`: a failure is not forwarded upstream; eviction is requested at once, and again each T_stall. The others
/// continue.
#[test]
fn a_failure_requests_an_eviction_and_is_not_forwarded() {
    let mut edge = Edge::committed(2);
    (0..10).for_each(|psn| edge.data(psn));
    edge.response(0, 5, Syndrome::Fatal(2));
    assert_eq!(edge.wait(Duration::ZERO), [(Duration::ZERO, 0, EvictionCause::Failed(2))]);
    edge.ack(1, 9);
    let again = edge.wait(2 * T_STALL + MS);
    assert_eq!(
        again.iter().map(|&(_, branch, cause)| (branch, cause)).collect::<Vec<_>>(),
        [(0, EvictionCause::Failed(2)), (0, EvictionCause::Failed(2))]
    );
    (3..10).for_each(|psn| edge.data(psn));
    assert!(edge.sent.iter().all(|sent| sent.response.syndrome == Syndrome::Ack), "{:?}", edge.sent);
    assert_eq!(edge.sent.last().map(|sent| sent.response.psn), Some(Psn::new(4)));
    edge.sent.clear();
    // Granted: an epoch without it.
    edge.machine.succeed(&rules(), &[Origin::Kept(BranchIndex(1))], false, &mut edge.sent);
    assert_eq!(edge.sent.iter().map(|sent| sent.response.psn.get()).collect::<Vec<_>>(), [9]);
    assert_eq!((edge.wait(Duration::from_secs(10)), edge.machine.next_deadline()), (vec![], None));
}

/// D24: after a restart a repeated failure is received again; a receiver that sends it only once counts as silent.
#[test]
fn a_failure_is_received_again_after_a_restart() {
    let mut edge = Edge::new(1, Start::Unknown);
    edge.data(5);
    edge.response(0, 5, Syndrome::Fatal(3));
    assert_eq!(edge.wait(Duration::ZERO), [(Duration::ZERO, 0, EvictionCause::Failed(3))]);
}

/// D25: the count of a remaining branch continues in the next epoch; that of a new one begins.
#[test]
fn counts_outlive_an_epoch() {
    let mut edge = Edge::committed(2);
    edge.data(0);
    edge.wait(60 * MS);
    edge.data(0);
    let origins = [Origin::Unknown, Origin::Kept(BranchIndex(1)), Origin::At(Psn::new(1))];
    edge.machine.succeed(&rules(), &origins, false, &mut Vec::new());
    edge.wait(60 * MS);
    edge.data(0);
    assert_eq!(edge.evicted(Duration::ZERO), [1]);
    edge.data(1);
    edge.wait(T_STALL + MS);
    (0..2).for_each(|psn| edge.data(psn));
    assert_eq!(edge.evicted(Duration::ZERO), []);
    (0..2).for_each(|psn| edge.data(psn));
    assert_eq!(edge.evicted(Duration::ZERO), [0, 2], "anything, and 1, three times in T_stall");
}

/// D24: a policy that becomes `evict`, or ceases to be, takes those that have failed with it.
#[test]
fn a_failure_outlives_a_change_of_policy() {
    let mut edge = Edge::committed(1);
    edge.machine = Acknowledgements::new(&Rules::default(), 1, Start::Committed(Psn::new(0)));
    edge.data(0);
    edge.response(0, 0, Syndrome::Fatal(1));
    assert_eq!(edge.sent.len(), 1);
    edge.machine.succeed(&rules(), &[Origin::Kept(BranchIndex(0))], false, &mut edge.sent);
    edge.fetch(edge.now);
    assert_eq!(edge.wait(Duration::ZERO), [(Duration::ZERO, 0, EvictionCause::Failed(1))]);
    edge.data(0);
    assert_eq!(edge.sent.len(), 1, "it is not forwarded");
    edge.machine.succeed(&Rules::default(), &[Origin::Kept(BranchIndex(0))], false, &mut edge.sent);
    assert_eq!(edge.sent.last().map(|sent| sent.response.syndrome), Some(Syndrome::Fatal(1)));
}

/// D25: of data that are lost further up again and again, those that came down in between are no proof that the others
/// did.
#[test]
fn a_gap_ends_when_its_first_psn_was_received() {
    let mut edge = Edge::committed(1);
    [2, 7, 4, 5].into_iter().for_each(|psn| edge.data(psn));
    edge.wait(T_STALL);
    edge.data(0);
    assert_eq!(edge.wait(2 * T_STALL), []);
    edge.data(0);
    assert_eq!(edge.wait(2 * T_STALL), [], "the second sending");
    edge.data(0);
    assert_eq!(edge.evicted(Duration::ZERO), [0]);
}

const RNR: Syndrome = Syndrome::RnrNak(14);

/// D196: a receiver that is not ready is evicted after the time for those alone, however often it is sent the data.
#[test]
fn a_receiver_that_is_not_ready_has_a_time_of_its_own() {
    let began = |edge: &Edge| edge.now;
    let mut edge = Edge::patient(2, 10 * T_STALL);
    let first = began(&edge);
    edge.data(0);
    edge.ack(0, 0);
    edge.response(1, 0, RNR);
    while edge.now - first < 10 * T_STALL - 20 * MS {
        assert_eq!(edge.evicted(20 * MS), [], "after {:?}", edge.now - first);
        edge.data(0);
        edge.response(1, 0, RNR);
    }
    edge.wait(20 * MS);
    edge.data(0);
    edge.response(1, 0, RNR);
    assert_eq!(edge.evicted(Duration::ZERO), [1]);
    // It is requested again, as for any stalled receiver.
    edge.response(1, 0, RNR);
    assert_eq!(edge.evicted(T_STALL - MS), []);
    assert_eq!(edge.evicted(2 * MS), [1]);
}

/// D196: one that no longer responds has died, and is stalled after T_stall.
#[test]
fn a_receiver_that_dies_while_it_is_not_ready_is_stalled() {
    let mut edge = Edge::patient(1, Duration::from_secs(3600));
    edge.data(0);
    for _ in 0..50 {
        edge.response(0, 0, RNR);
        assert_eq!(edge.evicted(20 * MS), []);
        edge.data(0);
    }
    for _ in 0..3 {
        edge.data(0);
        edge.wait(20 * MS);
    }
    assert_eq!(edge.evicted(T_STALL), [0]);
}

/// D196: progress ends the time, and so does the next epoch for a receiver that is new in it.
#[test]
fn progress_begins_the_time_of_a_receiver_that_is_not_ready_anew() {
    let mut edge = Edge::patient(1, 2 * T_STALL);
    (0..4).for_each(|psn| edge.data(psn));
    for psn in 0..4 {
        for _ in 0..9 {
            edge.response(0, psn, RNR);
            assert_eq!(edge.evicted(20 * MS), [], "PSN {psn}");
            edge.data(psn);
        }
        edge.ack(0, psn);
    }
    assert_eq!(edge.evicted(Duration::from_secs(10)), []);
}
