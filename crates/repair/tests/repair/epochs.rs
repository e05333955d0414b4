//! The machine across changes of membership.

use srdma_aggregation::{Acknowledgements, BranchIndex, Origin, Response, Rules, Syndrome};
use srdma_repair::{BranchKind, Effects, Placement, Repair, RepairRules};
use srdma_wire::{Instant, Psn};
use std::time::Duration;

const NOW: Instant = Instant::ZERO;

fn rules(capacity: u32) -> RepairRules {
    RepairRules {
        capacity,
        parent_repairs: false,
        gap_hold: Duration::from_micros(200),
        initial_round_trip: Duration::from_micros(10),
        ack_timeout: Duration::from_millis(4),
    }
}

/// A window of packets waits for one receiver, which is evicted: the buffer has room for the next window (D160).
#[test]
fn an_eviction_makes_room_for_what_it_completes() {
    let first = Psn::new(0xFF_FFFF);
    let (mut out, mut effects) = (Vec::new(), Effects::default());
    let origins = [Origin::At(first); 2];
    let mut acks = Acknowledgements::of_branches(&Rules::default(), &origins);
    let mut repair = Repair::new(rules(2), &origins.map(|origin| (BranchKind::Plain, origin)));
    let mut data = |repair: &mut Repair<Psn>, acks: &mut Acknowledgements, psn: Psn, effects: &mut Effects<Psn>| {
        acks.data(NOW, psn, true, &mut out);
        let arrival = repair.arrive(NOW, psn, true, acks);
        repair.store(NOW, arrival, psn, acks, effects)
    };
    for psn in [first, first.next()] {
        assert_eq!(data(&mut repair, &mut acks, psn, &mut effects), Placement::Kept);
    }
    let ack = Response { psn: first.next(), msn: 2, syndrome: Syndrome::Ack };
    repair.response(NOW, BranchIndex(0), ack, &mut acks, &mut Vec::new(), &mut effects).unwrap();
    assert!(effects.released.is_empty(), "the other receiver lacks both: {:?}", effects.released);

    let kept = [Origin::Kept(BranchIndex(0))];
    let mut upstream = Vec::new();
    acks.succeed(&Rules::default(), &kept, false, &mut upstream);
    assert_eq!(upstream.len(), 1, "the source may send the next window");
    repair.succeed(rules(2), &kept.map(|origin| (BranchKind::Plain, origin)), &acks, &mut effects);
    assert_eq!(effects.released, [first, first.next()]);
    assert_eq!(data(&mut repair, &mut acks, first.plus(2), &mut effects), Placement::Kept);
    assert!(!repair.is_off());
}
