//! Known findings, and schedules whose findings were mended. A finding that is mended leaves the list: then no seed may
//! show it any more.

use srdma_cluster::outcome::{Finding, ViolationKind};
use srdma_cluster::schedule::Schedule;
use srdma_cluster::token::ReplayToken;
use srdma_cluster::world;

pub(crate) struct Known {
    pub(crate) finding: Finding,
    /// A seed that shows it, and how.
    seed: u64,
    pub(crate) kind: ViolationKind,
}

pub(crate) const KNOWN: &[Known] = &[
    // A restored store has no record of a group, and its headend has lost its own: the group is created again at its
    // first PSN, which its source is beyond.
    Known { finding: Finding::OtherStore, seed: 3895, kind: ViolationKind::Liveness },
];

#[test]
fn each_known_finding_is_found() {
    for Known { finding, seed, kind } in KNOWN {
        let violations = world::run(&Schedule::from_seed(*seed)).violations;
        let is_found = violations.iter().any(|one| (one.finding, one.kind) == (*finding, *kind));
        assert!(is_found, "seed {seed}: no {} ({}): {violations:#?}", kind.name(), finding.name());
    }
}

/// Each schedule has shown what the comment above it says.
#[test]
fn mended_findings_do_not_come_back() {
    let tokens = include_str!("mended.txt").lines().filter(|line| !line.starts_with('#'));
    for token in tokens {
        let schedule = token.parse::<ReplayToken>().expect("a token").schedule();
        let violations = world::run(&schedule).violations;
        assert!(violations.is_empty(), "{token}: {violations:#?}");
    }
}
