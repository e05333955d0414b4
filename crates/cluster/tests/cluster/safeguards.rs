//! Each safeguard is necessary: without it the cluster finds a violation within 10,000 schedules.

use srdma_cluster::outcome::ViolationKind;
use srdma_cluster::schedule::Schedule;
use srdma_cluster::world;
use srdma_group::Safeguard;

/// A safeguard, a seed that fails without it (the first one, and the first of the most severe kind), and how.
const FIRST: &[(Safeguard, u64, ViolationKind)] = &[
    (Safeguard::LostNodesAwaited, 811, ViolationKind::Safety),
    (Safeguard::EntriesNamed, 38, ViolationKind::NotAsShown),
    (Safeguard::EntriesNamed, 66, ViolationKind::Safety),
    (Safeguard::OldEntriesReplaced, 33, ViolationKind::NotAsShown),
    (Safeguard::ListsInRecord, 1834, ViolationKind::Unawaited),
    (Safeguard::SilentSinceStart, 6, ViolationKind::Convergence),
    (Safeguard::DeadEdgesEvicted, 7, ViolationKind::Eviction),
    (Safeguard::LinkMtuRenewed, 122, ViolationKind::Liveness),
    (Safeguard::NodesRenewed, 2_111_329, ViolationKind::Safety),
];

/// Seeds before that one, which do not fail.
const RANGE: u64 = 5;

/// All safeguards are in the list.
#[test]
fn each_safeguard_is_tried() {
    let missing = |safeguard: &&Safeguard| !FIRST.iter().any(|(tried, ..)| tried == *safeguard);
    assert_eq!(Safeguard::ALL.iter().find(missing), None);
}

#[test]
fn without_a_safeguard_schedules_fail() {
    for (safeguard, first, kind) in FIRST {
        for seed in first.saturating_sub(RANGE).max(1)..=*first {
            let schedule = Schedule::from_seed_of_version_3(seed);
            let with = world::run(&schedule).violations;
            assert!(with.is_empty(), "seed {seed}: {with:#?}");
            let without = world::run_without(&schedule, *safeguard).violations;
            let worst = without.iter().map(|violation| violation.kind).min();
            let expected = (seed == *first).then_some(*kind);
            assert_eq!(worst, expected, "seed {seed} without {safeguard:?}: {without:#?}");
        }
    }
}
