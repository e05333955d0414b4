//! Nodes that repair, together with R1-R7: every order of events in small trees.

use srdma_model_check::{
    Action, Bounds, Finding, Order, PROGRESS, REPAIR_SMALL, RepairConfiguration, Repairers, Repairs, Shape, check,
    shortest,
};
use srdma_wire::Psn;

fn found(configuration: &RepairConfiguration, bounds: &Bounds) -> Finding {
    check(Shape::named(configuration.of.shape).unwrap(), bounds, Order::Deepest, 1, None)
}

fn holds(is_wanted: impl Fn(&RepairConfiguration) -> bool) {
    for configuration in REPAIR_SMALL.iter().filter(|configuration| is_wanted(configuration)) {
        let finding = found(configuration, &configuration.bounds());
        assert!(finding.failure.is_none(), "{configuration:?}: {:?}", finding.failure);
        assert!(finding.complete && finding.completed, "{configuration:?}: {finding:?}");
    }
}

/// D150-D160 with R1-R7: no response at the source acknowledges what a member lacks, nothing is sent down that the source
/// did not send, and the source is never stuck. Buffers of one and two packets are less than the source's window.
#[test]
fn trees_that_repair_hold() {
    holds(|configuration| !configuration.repairs.alone);
}

/// D150: what is lost below the first node that repairs, the source does not notice: no NAK, no timeout.
#[test]
fn losses_below_the_root_are_repaired_without_the_source() {
    holds(|configuration| configuration.repairs.alone);
}

/// PSNs are compared serially in all that repair compares.
#[test]
fn the_wrap_of_psns_changes_nothing_in_repair() {
    let configuration = &REPAIR_SMALL[2];
    let numbers = [0, 0x7F_FFFE, 0xFF_FFFD, 0xFF_FFFE, 0xFF_FFFF].map(|initial| {
        let bounds = Bounds { initial_psn: Psn::new(initial), ..configuration.bounds() };
        let finding = found(configuration, &bounds);
        assert!(finding.failure.is_none(), "from PSN {initial:#x}: {:?}", finding.failure);
        finding.states
    });
    assert_eq!(numbers, [numbers[0]; 5]);
}

/// A root without repair keeps nothing: the last packet, lost below it, is left to the source's timer.
#[test]
fn a_loss_below_a_plain_root_needs_the_source() {
    let alone = REPAIR_SMALL.iter().find(|it| it.repairs.alone && it.of.shape == "pair").unwrap();
    let bounds = Bounds { repairs: Repairs { by: Repairers::BelowRoot, ..alone.repairs }, ..alone.bounds() };
    let failure = found(alone, &bounds).failure.expect("a violation is expected");
    let failure = shortest(Shape::named(alone.of.shape).unwrap(), &bounds, failure);
    assert_eq!(failure.property, PROGRESS);
    let lost = failure.path.iter().filter(|action| matches!(action, Action::LoseData { link: 1 })).count();
    assert_eq!(lost, 1, "{:?}", failure.path);
}
