//! Shrinking of failed schedules.

use super::arguments::Arguments;
use srdma_chaos::outcome::ViolationKind;
use srdma_chaos::runner;
use srdma_chaos::schedule::Schedule;
use srdma_chaos::shrink;
use srdma_chaos::summary::Summary;
use srdma_chaos::token::ReplayToken;
use srdma_chaos::world;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};

/// Maximum number of runs per failure.
const MAX_RUNS: u32 = 3000;

/// For each failed seed the token of a small schedule that fails in the same way; empty without `--shrink`.
pub(super) fn shrink_all(arguments: &Arguments, summary: &Summary) -> BTreeMap<u64, String> {
    if !arguments.shrink {
        return BTreeMap::new();
    }
    let small = |seed: u64, kind: ViolationKind| {
        if io::stderr().is_terminal() {
            eprintln!("shrinking {}", ReplayToken::Seed(seed));
        }
        (seed, token(&arguments.schedule(seed), kind))
    };
    summary.failures.iter().map(|(seed, failure)| small(*seed, failure.violation.kind)).collect()
}

/// The token of a small schedule with the same kind of violation.
pub(super) fn token(schedule: &Schedule, kind: ViolationKind) -> String {
    let mut kinds = |schedule: &Schedule| {
        let outcome = runner::run_catching_panics(&world::run, schedule);
        outcome.violations.iter().map(|violation| violation.kind).collect()
    };
    let shrunk = shrink::shrink(schedule, kind, MAX_RUNS, &mut kinds);
    ReplayToken::Schedule(Box::new(shrunk.schedule)).to_string()
}
