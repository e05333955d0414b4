//! One schedule, with everything that is to be said about it.

use super::arguments::Arguments;
use super::text::{self, Shell};
use super::{exit_code, shrinking};
use crate::units::grouped;
use anyhow::Result;
use serde_json::json;
use srdma_chaos::line::Line;
use srdma_chaos::outcome::{GroupOutcome, Outcome};
use srdma_chaos::runner;
use srdma_chaos::world;
use std::process::ExitCode;

/// Runs the schedule of a line. Exit code 1: something was wrong.
pub(super) fn run(arguments: &Arguments, line: Line) -> Result<ExitCode> {
    let name = line.to_string();
    let schedule = line.schedule();
    let world = if arguments.verbose { world::tell } else { world::run };
    let outcome = runner::guarded(&world, &schedule);
    let gravest = outcome.complaints.iter().map(|complaint| complaint.kind).min();
    let shrunk = gravest.filter(|_| arguments.shrink).map(|kind| shrinking::line(&schedule, kind));
    if arguments.shrink && gravest.is_none() {
        eprintln!("srdma: nothing failed, so there is nothing to shrink");
    }
    if arguments.json {
        let complaints: Vec<_> = outcome.complaints.iter().map(ToString::to_string).collect();
        let groups: Vec<_> = outcome.groups.iter().map(group_report).collect();
        let report = json!({
            "line": name,
            "schedule": schedule,
            "complaints": complaints,
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
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&outcome, shrunk.as_deref());
    }
    Ok(exit_code(!outcome.complaints.is_empty()))
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

fn print(outcome: &Outcome, shrunk: Option<&str>) {
    for line in &outcome.timeline {
        println!("{line}");
    }
    for (position, group) in outcome.groups.iter().enumerate() {
        let end = match (group.completed_ns, &group.failure) {
            (Some(completed_ns), _) => format!("complete at {} ns", grouped(completed_ns)),
            (None, Some(failure)) => format!("failed: {failure}"),
            (None, None) => "not complete".to_owned(),
        };
        println!(
            "group {position}: {end}; {} packets, {} of them again; {} timeouts of {} ns; {} ACKs, {} NAKs, {} CNPs",
            grouped(group.packets_sent),
            grouped(group.packets_retransmitted),
            group.timeouts,
            grouped(group.ack_timeout_ns),
            grouped(group.acks_received),
            grouped(group.naks_received),
            grouped(group.cnps_received)
        );
    }
    let counts = [("evictions", outcome.evictions), ("joins", outcome.joins), ("restarts", outcome.restarts)];
    println!("{}, {} packet-hops", text::counts(counts), grouped(outcome.hops));
    println!("faults: {}", text::counts(outcome.faults.iter().map(|(name, count)| (*name, *count))));
    println!("drops: {}", text::counts(outcome.drops.iter().map(|(name, count)| (*name, *count))));
    if outcome.complaints.is_empty() {
        println!("failures: none");
    }
    for complaint in &outcome.complaints {
        println!("FAILED {complaint}");
    }
    if let Some(line) = shrunk {
        println!("shrunk: {}", Shell(line));
    }
}
