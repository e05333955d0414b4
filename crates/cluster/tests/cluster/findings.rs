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
pub(crate) const KNOWN: &[Known] = &[];

#[test]
fn each_known_finding_is_found() {
    for Known { finding, seed, kind } in KNOWN {
        let violations = world::run(&Schedule::from_seed(*seed)).violations;
        let is_found = violations.iter().any(|one| (one.finding, one.kind) == (*finding, *kind));
        assert!(is_found, "seed {seed}: no {} ({}): {violations:#?}", kind.name(), finding.name());
    }
}
