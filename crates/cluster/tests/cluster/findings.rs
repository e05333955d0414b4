//! The known findings, each with schedules that show it. A finding that is mended leaves the list: then no seed may show
//! it any more.

use srdma_cluster::outcome::{Finding, ViolationKind};
use srdma_cluster::schedule::Schedule;
use srdma_cluster::world;

pub(crate) struct Known {
    pub(crate) finding: Finding,
    /// A seed that shows it, and how.
    seed: u64,
    kind: ViolationKind,
}

const fn known(finding: Finding, kind: ViolationKind, seed: u64) -> Known {
    Known { finding, seed, kind }
}

/// Each is found within the first 10,000 seeds.
pub(crate) const KNOWN: &[Known] = &[
    known(Finding::SilentNodeSkipped, ViolationKind::Safety, 205),
    known(Finding::SilentNodeSkipped, ViolationKind::NotAsShown, 205),
    known(Finding::OtherStore, ViolationKind::Safety, 17),
    known(Finding::OtherStore, ViolationKind::WrongData, 213),
    known(Finding::OtherStore, ViolationKind::NotAsShown, 17),
    known(Finding::OtherStore, ViolationKind::Convergence, 9),
    known(Finding::OtherStore, ViolationKind::Liveness, 172),
    known(Finding::OtherStore, ViolationKind::Eviction, 123),
    // By a re-homing below it.
    known(Finding::SilentNodeSkipped, ViolationKind::Safety, 2241),
    known(Finding::StaleNodeAccepted, ViolationKind::NotAsShown, 358),
    known(Finding::DeathUnnoticed, ViolationKind::NotAsShown, 26),
    known(Finding::DeathUnnoticed, ViolationKind::Convergence, 49),
    known(Finding::DeadEdgeKept, ViolationKind::Eviction, 1),
    known(Finding::LinkMtuKept, ViolationKind::Liveness, 71),
    known(Finding::LinkMtuKept, ViolationKind::Eviction, 1778),
    known(Finding::DeadNodeNotNamed, ViolationKind::NotAsShown, 1),
    known(Finding::NodeAhead, ViolationKind::Convergence, 2988),
    known(Finding::LeaveForgotten, ViolationKind::Liveness, 73),
    known(Finding::LeaveRefused, ViolationKind::Liveness, 5122),
    known(Finding::DeadNodeAwaited, ViolationKind::Convergence, 8447),
    known(Finding::SourceAsksAgain, ViolationKind::Busy, 97),
    known(Finding::LeftoverKept, ViolationKind::NotAsShown, 1919),
];

#[test]
fn each_known_finding_is_found() {
    for Known { finding, seed, kind } in KNOWN {
        let violations = world::run(&Schedule::from_seed(*seed)).violations;
        let is_found = violations.iter().any(|one| (one.finding, one.kind) == (*finding, *kind));
        assert!(is_found, "seed {seed}: no {} ({}): {violations:#?}", kind.name(), finding.name());
    }
}
