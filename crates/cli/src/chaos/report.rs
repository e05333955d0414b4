//! The figures of a run, for JSON and text.

use serde::Serialize;
use srdma_chaos::runner::RunConfig;
use srdma_chaos::summary::Summary;
use srdma_chaos::token::ReplayToken;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The figures of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) first_seed: String,
    pub(super) schedules: u64,
    pub(super) threads: usize,
    pub(super) wall_s: f64,
    pub(super) schedules_per_s_and_core: f64,
    pub(super) hops: u64,
    pub(super) hops_per_s_and_core: f64,
    /// Virtual time of all schedules together.
    pub(super) virtual_s: f64,
    pub(super) groups: u64,
    pub(super) groups_completed: u64,
    pub(super) packets_sent: u64,
    pub(super) packets_retransmitted: u64,
    pub(super) source_timeouts: u64,
    pub(super) evictions: u64,
    pub(super) joins: u64,
    pub(super) restarts: u64,
    pub(super) recovery: Recovery,
    pub(super) faults: Vec<Fault>,
    pub(super) drops: BTreeMap<&'static str, u64>,
    pub(super) failures: Vec<Failure>,
}

/// Time from the end of a fault to the next progress, in ACK timeouts.
#[derive(Debug, Serialize)]
pub(super) struct Recovery {
    pub(super) count: u64,
    pub(super) min: Option<f64>,
    pub(super) median: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    pub(super) schedules: u64,
    /// Number of times that it took effect.
    pub(super) times: u64,
}

/// A failed schedule.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    pub(super) token: String,
    /// Runs it again.
    pub(super) command: String,
    pub(super) kind: &'static str,
    pub(super) violation: String,
    pub(super) violations: usize,
    pub(super) shrunk: Option<String>,
}

impl Report {
    pub(super) fn new(
        config: &RunConfig,
        options: &str,
        summary: &Summary,
        shrunk: &BTreeMap<u64, String>,
        wall: Duration,
    ) -> Self {
        let core_seconds = wall.as_secs_f64() * config.threads as f64;
        let names: BTreeSet<&'static str> = summary.drawn.keys().chain(summary.faults.keys()).copied().collect();
        let count = |counts: &BTreeMap<&'static str, u64>, name| counts.get(name).copied().unwrap_or(0);
        let faults = names.into_iter().map(|name| Fault {
            name,
            schedules: count(&summary.drawn, name),
            times: count(&summary.faults, name),
        });
        Report {
            first_seed: ReplayToken::Seed(config.first_seed).to_string(),
            schedules: summary.schedules,
            threads: config.threads,
            wall_s: wall.as_secs_f64(),
            schedules_per_s_and_core: summary.schedules as f64 / core_seconds,
            hops: summary.hops,
            hops_per_s_and_core: summary.hops as f64 / core_seconds,
            virtual_s: summary.virtual_ns as f64 / 1e9,
            groups: summary.groups,
            groups_completed: summary.completed,
            packets_sent: summary.packets_sent,
            packets_retransmitted: summary.packets_retransmitted,
            source_timeouts: summary.timeouts,
            evictions: summary.evictions,
            joins: summary.joins,
            restarts: summary.restarts,
            recovery: Recovery {
                count: summary.recoveries.count(),
                min: summary.recoveries.quantile(0),
                median: summary.recoveries.quantile(500),
                p99: summary.recoveries.quantile(990),
                max: summary.recoveries.quantile(1000),
            },
            faults: faults.collect(),
            drops: summary.drops.clone(),
            failures: Failure::all(summary, shrunk, options),
        }
    }
}

impl Failure {
    /// All failed schedules, by seed; `options` are those of the run that a schedule depends on.
    pub(super) fn all(summary: &Summary, shrunk: &BTreeMap<u64, String>, options: &str) -> Vec<Failure> {
        let failures = summary.failures.iter().map(|(seed, failure)| {
            let token = ReplayToken::Seed(*seed).to_string();
            Failure {
                command: format!("srdma chaos{options} --seed {token} --verbose"),
                token,
                kind: failure.violation.kind.name(),
                violation: failure.violation.to_string(),
                violations: failure.violations,
                shrunk: shrunk.get(seed).cloned(),
            }
        });
        failures.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_chaos::outcome::{Violation, ViolationKind};
    use srdma_chaos::summary;

    /// A seed alone would be the schedule of another run.
    #[test]
    fn the_command_of_a_failure_has_the_options_of_its_run() {
        let violation = Violation { at_ns: 1, kind: ViolationKind::Safety, text: "untrue".to_owned() };
        let mut summary = Summary::default();
        summary.failures.insert(4711, summary::Failure { violation, violations: 2 });
        let failures = Failure::all(&summary, &BTreeMap::new(), " --insiders --workers 3");
        let [failure] = &failures[..] else { panic!("{failures:?}") };
        assert_eq!(failure.command, format!("srdma chaos --insiders --workers 3 --seed {} --verbose", failure.token));
        assert!(failure.token.ends_with(":4711") && failure.violations == 2);
    }
}
