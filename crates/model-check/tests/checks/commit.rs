//! The commit protocol of controller and agents: every order of messages and faults (D25, D31, D96, D97, D98).

use srdma_model_check::{
    Ablation, COMMIT_AGREEMENT, COMMIT_NAMED, COMMIT_PROGRESS, COMMIT_READY, COMMIT_SAFETY, COMMIT_SMALL, CommitAction,
    CommitBounds, CommitFailure, CommitFinding, Order, check_commit,
};

fn found(bounds: CommitBounds) -> CommitFinding {
    check_commit(bounds, Order::Shortest, None).unwrap()
}

fn named(name: &str) -> CommitBounds {
    *COMMIT_SMALL.iter().find(|bounds| bounds.name == name).unwrap()
}

/// The properties hold in all states, and something has happened on the way to them.
fn holds(name: &str, events: &[CommitAction]) {
    let finding = found(named(name));
    assert!(finding.failure.is_none(), "{name}: {:?}", finding.failure);
    assert!(finding.complete && finding.goals > 0, "{name}: {finding:?}");
    for event in events {
        assert!(finding.events.contains(event), "{name}: no {event:?} in {:?}", finding.events);
    }
}

/// The violation without a rule.
fn failure(name: &str, ablation: Ablation) -> CommitFailure {
    let finding = found(CommitBounds { ablation, ..named(name) });
    finding.failure.unwrap_or_else(|| panic!("{name} without a rule: no violation in {} states", finding.states))
}

#[test]
fn lost_and_early_messages_hold() {
    holds("messages", &[CommitAction::Join, CommitAction::Leave, CommitAction::LoseResponse { node: 1 }]);
    holds("source", &[CommitAction::Join, CommitAction::Source]);
}

#[test]
fn partitions_and_restarts_hold() {
    holds("join, node lost", &[CommitAction::Cut { node: 1 }, CommitAction::Restart { node: 0 }, CommitAction::Join]);
}

#[test]
fn restarts_of_the_controller_hold() {
    holds("join, controller", &[CommitAction::RestartController, CommitAction::Join]);
    holds("leave, controller", &[CommitAction::RestartController, CommitAction::Expire { node: 0 }]);
    holds("first commit", &[CommitAction::RestartController, CommitAction::Restart { node: 1 }]);
}

#[test]
fn lost_and_restored_stores_hold() {
    holds("store lost", &[CommitAction::LoseStore, CommitAction::Create]);
    holds("store lost, address", &[CommitAction::LoseStore, CommitAction::Create, CommitAction::Restart { node: 0 }]);
    holds("backup", &[CommitAction::LoseStore, CommitAction::Leave]);
    holds("rebuilt", &[CommitAction::LoseStore, CommitAction::Leave, CommitAction::Cut { node: 1 }]);
}

/// D187, D188: a receiver that dies or is slow between the steps, while messages are lost.
#[test]
fn joins_in_two_steps_hold() {
    let events = [CommitAction::Reserve, CommitAction::Report, CommitAction::Die, CommitAction::Lapse];
    holds("two steps", &[&events[..], &[CommitAction::LoseResponse { node: 0 }]].concat());
}

/// D187: without the second step a member misses what comes before its queue pair is ready.
#[test]
fn without_waiting_for_its_answer_a_receiver_is_not_ready() {
    let failure = failure("two steps", Ablation::ReadinessNotAwaited);
    assert_eq!(failure.property, COMMIT_READY, "{failure:?}");
    assert!(failure.path.contains(&CommitAction::Reserve), "{failure:?}");
}

/// D188: without an end of reservations a receiver that dies between the steps holds the source for ever.
#[test]
fn without_expiry_a_dead_receiver_holds_the_source() {
    let failure = failure("two steps", Ablation::NoExpiry);
    assert!([COMMIT_PROGRESS, COMMIT_NAMED].contains(&failure.property), "{failure:?}");
    assert!(failure.path.contains(&CommitAction::Die), "{failure:?}");
}

/// D97, D98: a node that compares the number of an epoch alone answers for a record that it does not have. With the same
/// Proxy Address the controller refuses the commit before (D301).
#[test]
fn without_stores_and_digests_a_group_is_shown_that_nodes_do_not_have() {
    let failure = failure("store lost, address", Ablation::EpochIsName);
    assert_eq!(failure.property, COMMIT_AGREEMENT, "{failure:?}");
    assert!(failure.path.contains(&CommitAction::Create));
    let finding = found(CommitBounds { ablation: Ablation::EpochIsName, ..named("store lost") });
    assert!(finding.complete && finding.failure.is_none(), "{:?}", finding.failure);
}

/// D97: a lost edge acknowledges for its former receivers.
#[test]
fn without_waiting_for_a_lost_edge_a_join_is_unsafe() {
    let base = named("join, node lost");
    let faults = srdma_model_check::CommitFaults { restarts: 0, ..base.faults };
    let finding = found(CommitBounds { ablation: Ablation::LostIsSettled, faults, ..base });
    let failure = finding.failure.expect("a violation");
    assert_eq!(failure.property, COMMIT_SAFETY, "{failure:?}");
    assert!(failure.path.contains(&CommitAction::Cut { node: 1 }), "{failure:?}");
}

/// D97, D98: entries of any epoch pass for the stored record's.
#[test]
fn without_comparing_entries_joins_and_backups_are_unsafe() {
    for name in ["join, node lost", "backup"] {
        assert_eq!(failure(name, Ablation::AnyEpoch).property, COMMIT_SAFETY, "{name}");
    }
    assert_eq!(failure("leave, controller", Ablation::AnyEpoch).property, COMMIT_AGREEMENT);
}

#[test]
fn without_retransmission_a_change_is_stuck() {
    let failure = failure("messages", Ablation::NoRetransmission);
    assert_eq!(failure.property, COMMIT_PROGRESS, "{failure:?}");
    assert!(failure.path.iter().any(|event| matches!(event, CommitAction::LoseResponse { .. })));
}

/// Both orders of exploration find the same states.
#[test]
fn the_order_of_exploration_does_not_matter() {
    let bounds = named("backup");
    let deepest = check_commit(bounds, Order::Deepest, None).unwrap();
    assert_eq!(deepest.states, found(bounds).states);
}
