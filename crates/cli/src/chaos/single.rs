//! The report of a single schedule.

use super::arguments::Arguments;
use super::text::{ReplayCommand, counts};
use super::{exit_code, shrinking};
use crate::output;
use crate::units::grouped;
use anyhow::Result;
use serde_json::json;
use srdma_chaos::outcome::{GroupOutcome, Outcome};
use srdma_chaos::runner;
use srdma_chaos::token::ReplayToken;
use srdma_chaos::world;
use std::fmt::{self, Write};
use std::process::ExitCode;

/// Runs a single schedule. Exit code 1: a check was violated.
pub(super) fn run(arguments: &Arguments, token: ReplayToken) -> Result<ExitCode> {
    let text = token.to_string();
    let schedule = token.schedule();
    let world = if arguments.verbose { world::run_with_timeline } else { world::run };
    let outcome = runner::run_catching_panics(&world, &schedule);
    let worst = outcome.violations.iter().map(|violation| violation.kind).min();
    let shrunk = worst.filter(|_| arguments.shrink).map(|kind| shrinking::token(&schedule, kind));
    if arguments.shrink && worst.is_none() {
        eprintln!("srdma: the schedule has no violations: nothing to shrink");
    }
    if arguments.json {
        let violations: Vec<_> = outcome.violations.iter().map(ToString::to_string).collect();
        let groups: Vec<_> = outcome.groups.iter().map(group_report).collect();
        let report = json!({
            "token": text,
            "schedule": schedule,
            "violations": violations,
            "ended_ns": outcome.ended_ns,
            "hops": outcome.hops,
            "faults": outcome.faults,
            "drops": outcome.drops,
            "evictions": outcome.evictions,
            "joins": outcome.joins,
            "restarts": outcome.restarts,
            "groups": groups,
            "timeline": outcome.timeline,
            "shrunk": shrunk,
        });
        output::print_json(&report)?;
    } else {
        output::print(&in_words(&outcome, shrunk.as_deref())?)?;
    }
    Ok(exit_code(!outcome.violations.is_empty()))
}

fn group_report(group: &GroupOutcome) -> serde_json::Value {
    json!({
        "completed_ns": group.completed_ns,
        "failure": group.failure,
        "ack_timeout_ns": group.ack_timeout_ns,
        "recoveries_ns": group.recoveries_ns,
        "packets_sent": group.packets_sent,
        "packets_retransmitted": group.packets_retransmitted,
        "timeouts": group.timeouts,
        "acks_received": group.acks_received,
        "naks_received": group.naks_received,
        "cnps_received": group.cnps_received,
    })
}

fn in_words(outcome: &Outcome, shrunk: Option<&str>) -> Result<String, fmt::Error> {
    let mut text = String::new();
    for line in &outcome.timeline {
        writeln!(text, "{line}")?;
    }
    for (position, group) in outcome.groups.iter().enumerate() {
        let end = match (group.completed_ns, &group.failure) {
            (Some(completed_ns), _) => format!("completed at {} ns", grouped(completed_ns)),
            (None, Some(failure)) => format!("failed: {failure}"),
            (None, None) => "incomplete".to_owned(),
        };
        writeln!(
            text,
            "group {position}: {end}; {} packets, {} retransmissions; {} timeouts of {} ns; {} ACKs, {} NAKs, {} CNPs",
            grouped(group.packets_sent),
            grouped(group.packets_retransmitted),
            group.timeouts,
            grouped(group.ack_timeout_ns),
            grouped(group.acks_received),
            grouped(group.naks_received),
            grouped(group.cnps_received)
        )?;
    }
    let membership = [("evictions", outcome.evictions), ("joins", outcome.joins), ("restarts", outcome.restarts)];
    writeln!(text, "{}, {} packet-hops", counts(membership), grouped(outcome.hops))?;
    writeln!(text, "faults: {}", counts(outcome.faults.iter().map(|(name, count)| (*name, *count))))?;
    writeln!(text, "drops: {}", counts(outcome.drops.iter().map(|(name, count)| (*name, *count))))?;
    if outcome.violations.is_empty() {
        writeln!(text, "violations: none")?;
    }
    for violation in &outcome.violations {
        writeln!(text, "VIOLATION {violation}")?;
    }
    if let Some(token) = shrunk {
        writeln!(text, "shrunk: {}", ReplayCommand(token))?;
    }
    Ok(text)
}
