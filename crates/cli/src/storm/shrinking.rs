//! Small schedules for those that failed.

use super::arguments::Arguments;
use srdma_chaos::line::Line;
use srdma_chaos::outcome::ComplaintKind;
use srdma_chaos::runner;
use srdma_chaos::schedule::Schedule;
use srdma_chaos::shrink;
use srdma_chaos::summary::Summary;
use srdma_chaos::world;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};

/// Schedules that are tried for one failure.
const MOST_RUNS: u32 = 3000;

/// For each seed that failed, the line of a small schedule that fails in the same way; nothing unless it was asked for.
pub(super) fn shrink_all(arguments: &Arguments, summary: &Summary) -> BTreeMap<u64, String> {
    if !arguments.shrink {
        return BTreeMap::new();
    }
    let small = |seed: u64, kind: ComplaintKind| {
        if io::stderr().is_terminal() {
            eprintln!("shrinking {}", Line::Seed(seed));
        }
        (seed, line(&Schedule::from_seed(seed), kind))
    };
    summary.failures.iter().map(|(seed, failure)| small(*seed, failure.complaint.kind)).collect()
}

/// The line of a small schedule that is complained of as this one is.
pub(super) fn line(schedule: &Schedule, kind: ComplaintKind) -> String {
    let mut kinds = |schedule: &Schedule| {
        let outcome = runner::guarded(&world::run, schedule);
        outcome.complaints.iter().map(|complaint| complaint.kind).collect()
    };
    let shrunk = shrink::shrink(schedule, kind, MOST_RUNS, &mut kinds);
    Line::Schedule(Box::new(shrunk.schedule)).to_string()
}
