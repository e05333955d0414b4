//! `srdma storm --attack`: every schedule without and with somebody who lies, side by side.

use super::arguments::Arguments;
use super::exit_code;
use super::progress::Progress;
use super::report::Failure;
use crate::units::grouped;
use anyhow::Result;
use serde::Serialize;
use srdma_chaos::attack::{self, Comparison, Cost};
use srdma_chaos::line::Line;
use srdma_chaos::outcome::Fates;
use srdma_chaos::world;
use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::time::Instant;

/// The figures of storms under attack.
#[derive(Debug, Serialize)]
struct Report {
    first: String,
    schedules: u64,
    wall_s: f64,
    /// What became of forged packets, by what they were.
    forged: BTreeMap<&'static str, Fates>,
    /// Forged packets that changed what a node aggregates.
    believed: u64,
    /// Packets that were sent once more by the attacker.
    replayed: u64,
    /// Groups that were complete with and without the attack.
    groups_compared: u64,
    /// Groups that were complete without the attack alone.
    groups_prevented: u64,
    /// Completion time under attack, in hundredths of that without.
    completion_percent: Quantiles,
    without: Figures,
    attacked: Figures,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Quantiles {
    median: Option<u64>,
    of_1000_but_10: Option<u64>,
    worst: Option<u64>,
}

/// What the groups that are compared cost their sources.
#[derive(Debug, Serialize)]
struct Figures {
    completion_s: f64,
    packets_retransmitted: u64,
    source_timeouts: u64,
    cnps_at_sources: u64,
    cnps_per_s: f64,
}

/// Runs the order of the arguments. Exit code 1: something was believed, or went wrong.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let order = arguments.order();
    let begin = Instant::now();
    let progress = Progress::new(&order, arguments.limit());
    let comparison = attack::run(&order, &world::run, &|done| progress.report(done));
    let wall_s = begin.elapsed().as_secs_f64();
    progress.finish();
    let report = Report::new(order.first, &comparison, wall_s);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(exit_code(!report.failures.is_empty()))
}

impl Report {
    fn new(first: u64, comparison: &Comparison, wall_s: f64) -> Self {
        let summary = &comparison.attacked;
        Report {
            first: Line::Seed(first).to_string(),
            schedules: summary.schedules,
            wall_s,
            forged: summary.forged.clone(),
            believed: comparison.believed(),
            replayed: summary.faults.get("replay").copied().unwrap_or(0),
            groups_compared: comparison.pairs,
            groups_prevented: comparison.prevented,
            completion_percent: Quantiles {
                median: comparison.quantile(500),
                of_1000_but_10: comparison.quantile(990),
                worst: comparison.quantile(1000),
            },
            without: Figures::new(&comparison.honest_cost),
            attacked: Figures::new(&comparison.attacked_cost),
            failures: Failure::all(summary, &BTreeMap::new()),
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
            "{schedules} schedules from {} on, each without and with an attack, in {:.1} s",
            self.first, self.wall_s
        )?;
        writeln!(f)?;
        writeln!(f, "{:<20} {:>12} {:>12} {:>12} {:>9}", "forged", "sent", "refused", "passed on", "believed")?;
        for (name, fates) in &self.forged {
            let refused: u64 = fates.refused.values().sum();
            let [sent, refused, passed_on, believed] =
                [fates.sent, refused, fates.passed_on, fates.believed].map(grouped);
            writeln!(f, "{name:<20} {sent:>12} {refused:>12} {passed_on:>12} {believed:>9}")?;
        }
        writeln!(f)?;
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, count) in self.forged.values().flat_map(|fates| &fates.refused) {
            *reasons.entry(reason).or_default() += count;
        }
        writeln!(f, "{:<24} {:>14}", "refused as", "packets")?;
        for (reason, count) in reasons {
            writeln!(f, "{reason:<24} {:>14}", grouped(count))?;
        }
        writeln!(f)?;
        writeln!(f, "{} packets were sent once more", grouped(self.replayed))?;
        writeln!(
            f,
            "{} groups were complete with and without the attack, {} without it alone",
            grouped(self.groups_compared),
            grouped(self.groups_prevented)
        )?;
        let Quantiles { median, of_1000_but_10, worst } = self.completion_percent;
        if let (Some(median), Some(most), Some(worst)) = (median, of_1000_but_10, worst) {
            writeln!(
                f,
                "completion under attack, of 100 % without: median {median} %, 99 % within {most} %, worst {worst} %"
            )?;
        }
        writeln!(f)?;
        writeln!(f, "{:<24} {:>14} {:>14}", "these groups together", "without", "under attack")?;
        let row = |f: &mut fmt::Formatter<'_>, name: &str, of: fn(&Figures) -> String| {
            writeln!(f, "{name:<24} {:>14} {:>14}", of(&self.without), of(&self.attacked))
        };
        row(f, "completion, s", |figures| format!("{:.6}", figures.completion_s))?;
        row(f, "packets sent again", |figures| grouped(figures.packets_retransmitted))?;
        row(f, "source timeouts", |figures| grouped(figures.source_timeouts))?;
        row(f, "CNPs at sources", |figures| grouped(figures.cnps_at_sources))?;
        row(f, "CNPs a second", |figures| grouped(figures.cnps_per_s as u64))?;
        writeln!(f)?;
        if self.failures.is_empty() {
            return writeln!(f, "failures    none");
        }
        for failure in &self.failures {
            writeln!(f, "FAILED {}: {}", failure.line, failure.complaint)?;
            writeln!(f, "  srdma storm --seed {} --attack --verbose", failure.line)?;
        }
        Ok(())
    }
}
