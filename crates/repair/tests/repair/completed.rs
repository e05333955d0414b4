//! Data that the source has completed, and that a branch waits for (D158).

use srdma_aggregation::{Acknowledgements, BranchIndex, Origin, Response, Rule, Rules, Syndrome};
use srdma_repair::{BranchKind, Effects, Repair, RepairRules};
use srdma_wire::{Instant, Psn};
use std::time::Duration;

const BRANCH: BranchIndex = BranchIndex(0);

/// A node that has lost its state is below the source. Its branch expects PSN 69, since it had a receiver that has left,
/// and the source sends PSN 117 again and again: it has completed what is before. After a NAK and three times the branch
/// is sent what comes, so that its response ends the wait.
#[test]
fn data_that_the_source_does_not_go_back_to_are_given_up() {
    let rules = RepairRules {
        capacity: 16,
        parent_repairs: false,
        gap_hold: Duration::from_micros(200),
        initial_round_trip: Duration::from_micros(100),
        ack_timeout: Duration::from_millis(67),
    };
    let origins = [Origin::Unknown];
    let mut acks = Acknowledgements::of_branches(&Rules::default(), &origins);
    let mut repair: Repair<Psn> = Repair::new(rules, &origins.map(|origin| (BranchKind::Repairs, origin)));
    let mut effects = Effects::default();
    let psn = Psn::new(117);
    let mut now = Instant::ZERO;
    let mut naks = Vec::new();
    let mut sent = Vec::new();
    for time in 0..8 {
        now += Duration::from_millis(67);
        acks.data(now, psn, true, &mut Vec::new());
        let arrival = repair.arrive(now, psn, true, &acks);
        sent.push(repair.wants(&arrival, BRANCH, &acks));
        repair.store(now, arrival, psn, &acks, &mut effects);
        if time == 0 {
            let nak = Response { psn: Psn::new(69), msn: 69, syndrome: Syndrome::SequenceNak };
            repair.response(now, BRANCH, nak, &mut acks, &mut Vec::new(), &mut effects).unwrap();
            assert_eq!((acks.expected_psn(BRANCH), repair.poll(now, BRANCH, &mut acks)), (Some(Psn::new(69)), None));
        }
        let mut upstream = Vec::new();
        now += Duration::from_millis(1);
        repair.tick(now, &acks, &mut upstream, &mut effects);
        naks.extend(
            upstream.iter().filter(|response| response.rule == Rule::Gap).map(|response| response.response.psn),
        );
    }
    assert_eq!(naks, [Psn::new(69)]);
    assert_eq!(sent, [true, false, false, true, true, true, true, true]);
    assert_eq!(repair.counters().gaps_given_up, 1);
    let ack = Response { psn, msn: 118, syndrome: Syndrome::Ack };
    repair.response(now, BRANCH, ack, &mut acks, &mut Vec::new(), &mut effects).unwrap();
    assert_eq!((acks.expected_psn(BRANCH), repair.is_behind(BRANCH)), (Some(psn.next()), false));
}
