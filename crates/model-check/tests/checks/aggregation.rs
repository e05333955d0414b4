//! Aggregation: every order of events in small trees.

use srdma_aggregation::{Repeat, Rules};
use srdma_model_check::{
    Action, Bounds, CommitOrder, Configuration, Failure, Faults, NakHandling, Order, PROGRESS, Reception, SAFETY,
    SMALL, Shape, check, shortest,
};
use srdma_wire::Psn;

fn found(configuration: &Configuration, bounds: &Bounds) -> srdma_model_check::Finding {
    let shape = Shape::named(configuration.shape).unwrap();
    check(shape, bounds, Order::Shortest, 1, None)
}

/// The expected violation, with its shortest counterexample.
fn failure(shape: &str, bounds: &Bounds) -> Failure {
    let shape = Shape::named(shape).unwrap();
    let finding = check(shape, bounds, Order::Shortest, 1, None);
    shortest(shape, bounds, finding.failure.expect("a violation is expected"))
}

fn bounds(shape: &'static str, faults: Faults) -> Bounds {
    Configuration { shape, packets: 2, faults }.bounds()
}

/// R1-R7, D16, D17, D25, D30; MT-5.3.1-1, MT-5.3.2-1: no response at the source acknowledges what a member
/// lacks, and the source is never stuck: two timeouts after the last fault it completes more packets.
fn holds(configurations: &[Configuration]) {
    for configuration in configurations {
        let finding = found(configuration, &configuration.bounds());
        assert!(finding.failure.is_none(), "{configuration:?}: {:?}", finding.failure);
        assert!(finding.complete && finding.completed, "{configuration:?}: {finding:?}");
    }
}

#[test]
fn one_node_and_two_levels_hold() {
    holds(&SMALL[..4]);
}

#[test]
fn three_levels_hold() {
    holds(&SMALL[4..7]);
}

/// D30, and the order of commits and the epochs that re-homing needs.
#[test]
fn changes_of_membership_hold() {
    holds(&SMALL[7..]);
}

/// D228, R5: the same with a source that sends a lost packet again alone, to receivers of which all, or every second
/// one, keep what follows it.
#[test]
fn sources_with_selective_repeat_hold() {
    for configuration in &SMALL {
        for reception in [Reception::OutOfOrder, Reception::Mixed] {
            let bounds = Bounds { source: NakHandling::Selective, reception, ..configuration.bounds() };
            let finding = found(configuration, &bounds);
            assert!(finding.failure.is_none(), "{configuration:?}, {reception:?}: {:?}", finding.failure);
            assert!(finding.complete && finding.completed, "{configuration:?}, {reception:?}: {finding:?}");
        }
    }
}

/// D16: nothing is different anywhere on the circle of PSNs, at its wrap or in its middle.
#[test]
fn the_wrap_of_psns_changes_nothing() {
    let configuration = &SMALL[2];
    let numbers = [0, 1, 0x7F_FFFF, 0x80_0000, 0xFF_FFFD, 0xFF_FFFF].map(|initial| {
        let bounds = Bounds { initial_psn: Psn::new(initial), ..configuration.bounds() };
        let finding = found(configuration, &bounds);
        assert!(finding.failure.is_none(), "from PSN {initial:#x}: {:?}", finding.failure);
        finding.states
    });
    assert_eq!(numbers, [numbers[0]; 6]);
}

/// A requester that ignores NAKs once it has gone back, and nodes that withhold what is confirmed (D22).
#[test]
fn other_hosts_and_withheld_copies_hold() {
    for base in [SMALL[1], SMALL[2]] {
        let soft_roce = Bounds { source: NakHandling::SoftRoce, ..base.bounds() };
        let rules = Rules { prune_retransmit: true, ..Rules::default() };
        for bounds in [soft_roce, Bounds { rules, ..base.bounds() }] {
            let finding = found(&base, &bounds);
            assert!(finding.failure.is_none() && finding.completed, "{bounds:?}: {:?}", finding.failure);
        }
    }
}

/// Upstream on advance only (D19): the last ACK, once lost, is lost for ever.
#[test]
fn without_repetition_the_source_is_stuck() {
    let rules = Rules { repeat: Repeat::Never, ..Rules::default() };
    let failure =
        failure("star2", &Bounds { rules, ..bounds("star2", Faults { losses: 1, delays: 1, ..Faults::NONE }) });
    assert_eq!(failure.property, PROGRESS);
    let lost = failure.path.iter().filter(|action| matches!(action, Action::LoseResponse { link: 0 })).count();
    let timeouts = failure.path.iter().filter(|action| matches!(action, Action::Timeout)).count();
    assert_eq!((lost, timeouts), (1, 3), "{:?}", failure.path);
}

/// The draft's literal 5.3.1 and 5.3.2 (D19, D20) are safe and make progress; they cost more.
#[test]
fn the_literal_rules_hold_too() {
    for rules in [
        Rules::literal(),
        Rules { literal_ack: true, ..Rules::default() },
        Rules { literal_nak: true, ..Rules::default() },
    ] {
        let bounds = Bounds { rules, ..bounds("fork", Faults { losses: 1, delays: 1, ..Faults::NONE }) };
        let finding = found(&Configuration { shape: "fork", packets: 2, faults: bounds.faults }, &bounds);
        assert!(finding.failure.is_none() && finding.completed, "{rules:?}: {:?}", finding.failure);
    }
}

/// Re-homing: if the old parent commits first, no node aggregates the subtree that moved.
#[test]
fn the_old_path_must_not_commit_first() {
    let faults = Faults { changes: 1, delays: 1, ..Faults::NONE };
    let failure = failure("rehome", &Bounds { order: CommitOrder::Any, ..bounds("rehome", faults) });
    assert_eq!(failure.property, SAFETY);
    let first = failure.path.iter().find(|action| matches!(action, Action::Commit { .. }));
    assert_eq!(first, Some(&Action::Commit { node: 1 }), "{:?}", failure.path);
}

/// A receiver that moves (D280): the same two rules keep its former edge from being believed without it, and its new edge
/// from being believed for it too early.
#[test]
fn a_receiver_that_moves_needs_the_order_of_commits_and_epochs() {
    let bounds = bounds("move", Faults { changes: 1, delays: 1, ..Faults::NONE });
    let without_order = failure("move", &Bounds { order: CommitOrder::Any, ..bounds });
    assert_eq!(without_order.property, SAFETY);
    let first = without_order.path.iter().find(|action| matches!(action, Action::Commit { .. }));
    assert_eq!(first, Some(&Action::Commit { node: 1 }), "{:?}", without_order.path);
    let without_epochs = failure("move", &Bounds { epochs_checked: false, ..bounds });
    assert_eq!(without_epochs.property, SAFETY);
}

/// Re-homing: responses that the new parent sent before do not hold for its new subtree.
#[test]
fn without_epochs_old_responses_are_accepted() {
    let faults = Faults { changes: 1, delays: 1, ..Faults::NONE };
    let failure = failure("rehome", &Bounds { epochs_checked: false, ..bounds("rehome", faults) });
    assert_eq!(failure.property, SAFETY);
    let stored = failure.path.iter().position(|action| matches!(action, Action::Store { .. })).unwrap();
    let by_new_path = |action: &Action| matches!(action, Action::Response { link: 2, .. });
    assert!(failure.path[stored..].iter().any(by_new_path), "{:?}", failure.path);
}

/// Both ways of visiting find the same states.
#[test]
fn the_order_of_visits_does_not_matter() {
    let configuration = &SMALL[1];
    let shape = Shape::named(configuration.shape).unwrap();
    let deepest = check(shape, &configuration.bounds(), Order::Deepest, 2, None);
    assert_eq!(deepest.states, found(configuration, &configuration.bounds()).states);
}
