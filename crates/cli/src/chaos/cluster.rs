//! `srdma chaos --cluster`: whole clusters in virtual time.

use super::arguments::Arguments;
use super::exit_code;
use super::progress::Progress;
use super::text::counts;
use crate::output;
use crate::units::grouped;
use anyhow::Result;
use serde_json::{Value, json};
use srdma_chaos::runner::RunConfig;
use srdma_cluster::outcome::{Outcome, Violation};
use srdma_cluster::phase::{EXCLUDED, Phase};
use srdma_cluster::schedule::Schedule;
use srdma_cluster::summary::{self, Summary};
use srdma_cluster::token::ReplayToken;
use srdma_cluster::{shrink, world};
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Each pair of a fault and a phase is to be met so often.
const OFTEN: u64 = 1000;

/// Maximum number of runs for shrinking a failure.
const MAX_RUNS: u32 = 1000;

/// Runs schedules of clusters. Exit code 1: a check was violated.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(token) = arguments.single_cluster()? {
        return single(arguments, token);
    }
    let config = arguments.config();
    let begin = Instant::now();
    let progress = Progress::new(&config, arguments.limit());
    let summary = summary::run(&config, &|seed| arguments.cluster_schedule(seed), &|now| progress.report(now));
    let wall = begin.elapsed();
    progress.finish();
    let shrunk: Vec<(u64, String)> = match arguments.shrink {
        true => summary
            .failures
            .iter()
            .map(|(seed, one)| (*seed, shrunk(&arguments.cluster_schedule(*seed), one)))
            .collect(),
        false => Vec::new(),
    };
    let workers = arguments.workers_option();
    if arguments.json {
        output::print_json(&report(&config, &summary, &shrunk, wall, &workers))?;
    } else {
        output::print(&in_words(&config, &summary, &shrunk, wall, &workers)?)?;
    }
    Ok(exit_code(!summary.failures.is_empty()))
}

fn shrunk(schedule: &Schedule, violation: &Violation) -> String {
    let small = shrink::shrink(schedule, violation.kind, violation.finding, MAX_RUNS);
    ReplayToken::Schedule(Box::new(small)).to_string()
}

fn single(arguments: &Arguments, token: ReplayToken) -> Result<ExitCode> {
    let schedule = token.schedule();
    let outcome: Outcome =
        if arguments.verbose { world::run_with_timeline(&schedule) } else { summary::run_catching_panics(&schedule) };
    let worst = outcome.violations.iter().min_by_key(|violation| violation.kind);
    let shrunk = worst.filter(|_| arguments.shrink).map(|violation| shrunk(&schedule, violation));
    if arguments.json {
        let violations: Vec<String> = outcome.violations.iter().map(ToString::to_string).collect();
        let report = json!({
            "schedule": schedule,
            "violations": violations,
            "ended_ns": outcome.ended_ns,
            "hops": outcome.hops,
            "events": outcome.events,
            "counts": outcome.counts,
            "responses": outcome.responses,
            "comparisons": outcome.comparisons,
            "digest": format!("{:016x}", outcome.digest),
            "timeline": outcome.timeline,
            "shrunk": shrunk,
        });
        output::print_json(&report)?;
    } else {
        output::print(&outcome_in_words(&outcome, shrunk.as_deref())?)?;
    }
    Ok(exit_code(!outcome.violations.is_empty()))
}

fn outcome_in_words(outcome: &Outcome, shrunk: Option<&str>) -> Result<String, fmt::Error> {
    let mut text = String::new();
    for line in &outcome.timeline {
        writeln!(text, "{line}")?;
    }
    writeln!(text, "{}", counts(outcome.counts.iter().map(|(name, count)| (*name, *count))))?;
    writeln!(text, "digest {:016x}", outcome.digest)?;
    if outcome.violations.is_empty() {
        writeln!(text, "violations: none")?;
    }
    for violation in &outcome.violations {
        writeln!(text, "VIOLATION {violation}")?;
    }
    if let Some(token) = shrunk {
        writeln!(text, "shrunk: srdma chaos --cluster --replay '{token}'")?;
    }
    Ok(text)
}

fn report(config: &RunConfig, summary: &Summary, shrunk: &[(u64, String)], wall: Duration, workers: &str) -> Value {
    let findings = summary.findings.iter().map(|((finding, kind), (schedules, seed))| {
        json!({ "finding": finding.name(), "kind": kind.name(), "schedules": schedules, "first_seed": seed })
    });
    let failures = summary.failures.iter().map(|(seed, violation)| {
        let shrunk = shrunk.iter().find(|(one, _)| one == seed).map(|(_, token)| token);
        json!({
            "seed": seed,
            "command": command(*seed, workers),
            "kind": violation.kind.name(),
            "finding": violation.finding.name(),
            "violation": violation.to_string(),
            "shrunk": shrunk,
        })
    });
    let phases = summary
        .phases
        .iter()
        .map(|((fault, phase), times)| json!({ "fault": fault, "phase": phase.name(), "times": times }));
    let excluded =
        EXCLUDED.map(|(fault, phase, reason)| json!({ "fault": fault, "phase": phase.name(), "reason": reason }));
    json!({
        "first_seed": ReplayToken::Seed(config.first_seed).to_string(),
        "schedules": summary.schedules,
        "threads": config.threads,
        "wall_s": wall.as_secs_f64(),
        "schedules_per_s_and_core": per_second_and_core(config, summary.schedules, wall),
        "virtual_s": summary.virtual_ns as f64 / 1e9,
        "hops": summary.hops,
        "events": summary.events,
        "counts": summary.counts,
        "phases": phases.collect::<Vec<_>>(),
        "excluded": excluded,
        "responses": summary.responses,
        "comparisons": summary.comparisons,
        "groups": summary.groups,
        "groups_ready": summary.ready,
        "digest": format!("{:016x}", summary.digest),
        "findings": findings.collect::<Vec<_>>(),
        "failures": failures.collect::<Vec<_>>(),
    })
}

/// Runs the schedule of a seed again.
fn command(seed: u64, workers: &str) -> String {
    format!("srdma chaos --cluster --seed {seed}{workers} --verbose")
}

fn per_second_and_core(config: &RunConfig, number: u64, wall: Duration) -> f64 {
    number as f64 / (wall.as_secs_f64() * config.threads as f64)
}

fn in_words(
    config: &RunConfig,
    summary: &Summary,
    shrunk: &[(u64, String)],
    wall: Duration,
    workers: &str,
) -> Result<String, fmt::Error> {
    let mut text = String::new();
    writeln!(
        text,
        "{} schedules from seed {} in {:.1} s, {:.1} per second and core, {:.0} s of virtual time",
        grouped(summary.schedules),
        ReplayToken::Seed(config.first_seed),
        wall.as_secs_f64(),
        per_second_and_core(config, summary.schedules, wall),
        summary.virtual_ns as f64 / 1e9
    )?;
    writeln!(
        text,
        "events    {}, {} per schedule; {} packet-hops",
        grouped(summary.events),
        summary.events / summary.schedules.max(1),
        grouped(summary.hops)
    )?;
    writeln!(
        text,
        "checks    {} responses against the memory of {} members; {} of {} groups ready at the end; digest {:016x}",
        grouped(summary.responses),
        grouped(summary.comparisons),
        grouped(summary.ready),
        grouped(summary.groups),
        summary.digest
    )?;
    writeln!(text)?;
    for (name, count) in &summary.counts {
        writeln!(text, "{name:<24} {:>12}", grouped(*count))?;
    }
    writeln!(text)?;
    write_phases(summary, &mut text)?;
    if summary.findings.is_empty() {
        writeln!(text, "findings  none")?;
        return Ok(text);
    }
    writeln!(text, "{:<30} {:<14} {:>10}  first seed", "finding", "kind", "schedules")?;
    for ((finding, kind), (schedules, seed)) in &summary.findings {
        writeln!(text, "{:<30} {:<14} {:>10}  {seed}", finding.name(), kind.name(), grouped(*schedules))?;
    }
    writeln!(text)?;
    for (seed, violation) in &summary.failures {
        writeln!(text, "FAILED {}: {violation}", ReplayToken::Seed(*seed))?;
        writeln!(text, "  {}", command(*seed, workers))?;
        if let Some((_, token)) = shrunk.iter().find(|(one, _)| one == seed) {
            writeln!(text, "  srdma chaos --cluster --replay '{token}'")?;
        }
    }
    Ok(text)
}

/// How often each fault met each phase of a group's change.
fn write_phases(summary: &Summary, text: &mut String) -> fmt::Result {
    let phases: BTreeSet<Phase> = summary.phases.keys().map(|(_, phase)| *phase).collect();
    let faults: BTreeSet<&str> = summary.phases.keys().map(|(fault, _)| *fault).collect();
    write!(text, "{:<26}", "fault, by phase")?;
    for phase in &phases {
        write!(text, " {:>12}", phase.name())?;
    }
    writeln!(text)?;
    for fault in faults {
        write!(text, "{fault:<26}")?;
        for phase in &phases {
            let times = summary.phases.iter().find(|((one, other), _)| (*one, *other) == (fault, *phase));
            write!(text, " {:>12}", grouped(times.map_or(0, |(_, times)| *times)))?;
        }
        writeln!(text)?;
    }
    let pairs = summary.pairs();
    let often = pairs.iter().filter(|(_, _, times)| *times >= OFTEN).count();
    writeln!(text, "{often} of {} pairs at least {} times", pairs.len(), grouped(OFTEN))?;
    if let Some((fault, phase, times)) = pairs.first() {
        writeln!(text, "rarest: {fault} while a group is {}, {} times", phase.name(), grouped(*times))?;
    }
    for (fault, phase, reason) in EXCLUDED {
        writeln!(text, "excluded: {fault} while a group is {}: {reason}", phase.name())?;
    }
    writeln!(text)
}
