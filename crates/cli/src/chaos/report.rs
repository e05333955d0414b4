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
    /// What a command needs to draw the same schedule of a seed.
    #[serde(skip)]
    pub(super) mode_option: String,
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
    pub(super) kind: &'static str,
    pub(super) violation: String,
    pub(super) violations: usize,
    pub(super) shrunk: Option<String>,
}

impl Report {
    pub(super) fn new(
        config: &RunConfig,
        mode_option: String,
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
            failures: Failure::all(summary, shrunk),
            mode_option,
        }
    }
}

impl Failure {
    /// All failed schedules, by seed.
    pub(super) fn all(summary: &Summary, shrunk: &BTreeMap<u64, String>) -> Vec<Failure> {
        let failures = summary.failures.iter().map(|(seed, failure)| Failure {
            token: ReplayToken::Seed(*seed).to_string(),
            kind: failure.violation.kind.name(),
            violation: failure.violation.to_string(),
            violations: failure.violations,
            shrunk: shrunk.get(seed).cloned(),
        });
        failures.collect()
    }
}
