//! Packets of the buffer that prove damaged when they are to be sent (D159).

use srdma_aggregation::{Acknowledgements, BranchIndex, Origin, Response, Rules, Syndrome};
use srdma_repair::{BranchKind, Effects, Repair, RepairRules};
use srdma_wire::{Instant, Psn};
use std::time::Duration;

/// One tick asks for what was discarded, or notes it: nothing else is due at the same time.
#[test]
fn one_tick_is_enough_for_a_damaged_packet() {
    for parent_repairs in [false, true] {
        let first = Psn::new(100);
        let origins = [Origin::At(first)];
        let mut acks = Acknowledgements::of_branches(&Rules::default(), &origins);
        let rules = RepairRules {
            capacity: 16,
            parent_repairs,
            gap_hold: Duration::from_micros(200),
            initial_round_trip: Duration::from_micros(100),
            ack_timeout: Duration::from_millis(67),
        };
        let mut repair: Repair<Psn> = Repair::new(rules, &origins.map(|origin| (BranchKind::Plain, origin)));
        let mut effects = Effects::default();
        let now = Instant::ZERO + Duration::from_micros(5);
        for psn in [first, first.next(), first.plus(2)] {
            acks.data(now, psn, false, &mut Vec::new());
            let arrival = repair.arrive(now, psn, false, &acks);
            repair.store(now, arrival, psn, &acks, &mut effects);
        }
        repair.discard(now, first.next(), &mut effects);
        assert_eq!((repair.counters().damaged, repair.next_deadline()), (1, Some(now)));
        repair.tick(now, &acks, &mut Vec::new(), &mut effects);
        let deadline = repair.next_deadline();
        assert!(deadline.is_some_and(|deadline| deadline > now), "parent repairs: {parent_repairs}: {deadline:?}");
        assert_eq!(effects.requests.len(), usize::from(parent_repairs));
        // A branch that waits for it makes nothing due either.
        let nak = Response { psn: first.next(), msn: 0, syndrome: Syndrome::SequenceNak };
        repair.response(now, BranchIndex(0), nak, &mut acks, &mut Vec::new(), &mut effects).unwrap();
        assert!(repair.is_behind(BranchIndex(0)));
        assert_eq!(repair.poll(now, BranchIndex(0), &mut acks), None);
        assert!(repair.next_deadline().is_some_and(|deadline| deadline > now), "parent repairs: {parent_repairs}");
    }
}
