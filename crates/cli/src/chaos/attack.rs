//! `srdma chaos --attack`: each schedule without and with an attacker.

use super::arguments::Arguments;
use super::exit_code;
use super::progress::Progress;
use super::report::Failure;
use crate::output;
use crate::units::grouped;
use anyhow::Result;
use serde::Serialize;
use srdma_chaos::attack::{self, Comparison, Cost};
use srdma_chaos::outcome::ForgeryOutcome;
use srdma_chaos::token::ReplayToken;
use srdma_chaos::world;
use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::time::Instant;

/// Figures of runs under attack.
#[derive(Debug, Serialize)]
struct Report {
    first_seed: String,
    schedules: u64,
    wall_s: f64,
    /// Forged packets by kind.
    forged: BTreeMap<&'static str, ForgeryOutcome>,
    /// Forged packets that changed a node's aggregation state.
    accepted: u64,
    /// Packets replayed by the attacker.
    replayed: u64,
    /// Groups that completed with and without the attack.
    groups_compared: u64,
    /// Groups that completed without the attack only.
    groups_only_without_attack: u64,
    /// Completion time under attack, in percent of that without.
    completion_percent: Quantiles,
    without_attack: Figures,
    under_attack: Figures,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Quantiles {
    median: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
}

/// Cost of the compared groups to their sources.
#[derive(Debug, Serialize)]
struct Figures {
    completion_s: f64,
    packets_retransmitted: u64,
    source_timeouts: u64,
    cnps_at_sources: u64,
    cnps_per_s: f64,
}

/// Runs schedules without and with an attack. Exit code 1: a check was violated.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let config = arguments.config();
    let begin = Instant::now();
    let progress = Progress::new(&config, arguments.limit());
    let comparison = attack::run(&config, &world::run, &|done| progress.report(done));
    let wall_s = begin.elapsed().as_secs_f64();
    progress.finish();
    let report = Report::new(config.first_seed, &comparison, wall_s);
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.to_string())?;
    }
    Ok(exit_code(!report.failures.is_empty()))
}

impl Report {
    fn new(first_seed: u64, comparison: &Comparison, wall_s: f64) -> Self {
        let summary = &comparison.attacked;
        Report {
            first_seed: ReplayToken::Seed(first_seed).to_string(),
            schedules: summary.schedules,
            wall_s,
            forged: summary.forged.clone(),
            accepted: comparison.accepted(),
            replayed: summary.faults.get("replay").copied().unwrap_or(0),
            groups_compared: comparison.pairs,
            groups_only_without_attack: comparison.prevented,
            completion_percent: Quantiles {
                median: comparison.quantile(500),
                p99: comparison.quantile(990),
                max: comparison.quantile(1000),
            },
            without_attack: Figures::new(&comparison.cost_without_attack),
            under_attack: Figures::new(&comparison.cost_under_attack),
            failures: Failure::all(summary, &BTreeMap::new(), " --attack"),
        }
    }
}

impl Figures {
    fn new(cost: &Cost) -> Self {
        let completion_s = cost.completion_ns as f64 / 1e9;
        Figures {
            completion_s,
            packets_retransmitted: cost.packets_retransmitted,
            source_timeouts: cost.timeouts,
            cnps_at_sources: cost.cnps,
            cnps_per_s: if cost.completion_ns == 0 { 0.0 } else { cost.cnps as f64 / completion_s },
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedules = grouped(self.schedules);
        writeln!(
            f,
            "{schedules} schedules from seed {}, each without and with an attack, in {:.1} s",
            self.first_seed, self.wall_s
        )?;
        writeln!(f)?;
        writeln!(f, "{:<20} {:>12} {:>12} {:>12} {:>9}", "forged", "sent", "dropped", "forwarded", "accepted")?;
        for (name, outcome) in &self.forged {
            let dropped: u64 = outcome.dropped.values().sum();
            let [sent, dropped, forwarded, accepted] =
                [outcome.sent, dropped, outcome.forwarded, outcome.accepted].map(grouped);
            writeln!(f, "{name:<20} {sent:>12} {dropped:>12} {forwarded:>12} {accepted:>9}")?;
        }
        writeln!(f)?;
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, count) in self.forged.values().flat_map(|outcome| &outcome.dropped) {
            *reasons.entry(reason).or_default() += count;
        }
        writeln!(f, "{:<24} {:>14}", "dropped as", "packets")?;
        for (reason, count) in reasons {
            writeln!(f, "{reason:<24} {:>14}", grouped(count))?;
        }
        writeln!(f)?;
        writeln!(f, "{} packets were replayed", grouped(self.replayed))?;
        writeln!(
            f,
            "{} groups completed with and without the attack, {} only without it",
            grouped(self.groups_compared),
            grouped(self.groups_only_without_attack)
        )?;
        let Quantiles { median, p99, max } = self.completion_percent;
        if let (Some(median), Some(p99), Some(max)) = (median, p99, max) {
            writeln!(f, "completion time under attack, in % of that without: median {median}, p99 {p99}, max {max}")?;
        }
        writeln!(f)?;
        writeln!(f, "{:<24} {:>14} {:>14}", "total of these groups", "without", "under attack")?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, of: fn(&Figures) -> String| {
            writeln!(f, "{name:<24} {:>14} {:>14}", of(&self.without_attack), of(&self.under_attack))
        };
        row(f, "completion, s", |figures| format!("{:.6}", figures.completion_s))?;
        row(f, "retransmitted packets", |figures| grouped(figures.packets_retransmitted))?;
        row(f, "source timeouts", |figures| grouped(figures.source_timeouts))?;
        row(f, "CNPs at sources", |figures| grouped(figures.cnps_at_sources))?;
        row(f, "CNPs per second", |figures| grouped(figures.cnps_per_s as u64))?;
        writeln!(f)?;
        if self.failures.is_empty() {
            return writeln!(f, "failures    none");
        }
        for failure in &self.failures {
            writeln!(f, "FAILED {}: {}", failure.token, failure.violation)?;
            writeln!(f, "  {}", failure.command)?;
        }
        Ok(())
    }
}
