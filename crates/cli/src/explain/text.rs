//! An explanation as text: for each group the verdict, its branches, its responses upstream, the timeline.

use super::timeline;
use super::words;
use srdma_node::explain::{Beginning, BranchExplanation, Condition, Explanation, GroupExplanation, Upstream, Verdict};
use std::fmt::{Result, Write};

/// Branches that a table shows.
const MOST_BRANCHES: usize = 16;

/// The whole text.
pub(super) fn explanation(explanation: &Explanation) -> String {
    let mut text = String::new();
    write(&mut text, explanation).expect("a string takes any text");
    text
}

/// Times as seconds since the first packet.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    first_ns: u64,
}

impl Clock {
    /// A time in seconds, to the microsecond.
    pub(super) fn at(self, time_ns: u64) -> String {
        format!("{:.6}", time_ns.saturating_sub(self.first_ns) as f64 / 1e9)
    }
}

/// A span of time with the unit that fits it.
pub(super) fn span(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

fn write(text: &mut String, explanation: &Explanation) -> Result {
    let clock = Clock { first_ns: explanation.first_time_ns };
    let seen = |port: &&srdma_node::explain::PortObservation| port.received + port.sent > 0;
    let ports: Vec<String> = explanation
        .ports
        .iter()
        .filter(seen)
        .map(|port| format!("{} {} in, {} out", port.name, port.received, port.sent))
        .collect();
    writeln!(text, "{} packets, {} s: {}", explanation.packets, clock.at(explanation.end_time_ns), ports.join("; "))?;
    if explanation.without_port > 0 {
        writeln!(text, "{} packets belong to no port of this node and were ignored", explanation.without_port)?;
    }
    if explanation.cut_short > 0 {
        let count = explanation.cut_short;
        writeln!(text, "{count} packets were truncated by the capture and filled up with zeros")?;
    }
    let drops = explanation
        .ports
        .iter()
        .flat_map(|port| port.drops.iter().map(|(reason, count)| format!("{count} {reason} at {}", port.name)));
    let drops: Vec<String> = drops.collect();
    if !drops.is_empty() {
        writeln!(text, "dropped: {}", drops.join(", "))?;
    }
    explanation.groups.iter().try_for_each(|group| write_group(text, clock, explanation.end_time_ns, group))
}

fn write_group(text: &mut String, clock: Clock, end_ns: u64, group: &GroupExplanation) -> Result {
    writeln!(text, "\ngroup {} ({}): {}", group.id, group.role, words::verdict(group))?;
    match group.begins {
        Beginning::FirstPsn => {}
        Beginning::MidFlow => writeln!(
            text,
            "  The captures begin in mid-flow: earlier confirmations are unknown, so the node is run as one \
             that has\n  \
             restarted, and sends nothing upstream before every branch has responded (R6)."
        )?,
        Beginning::Restarted => writeln!(text, "  The configuration has restarted = true: branches begin unknown.")?,
        Beginning::NoData => writeln!(text, "  No data packet of the source is in the captures.")?,
    }
    for branch in group.branches.iter().filter(|branch| group.waits_for.contains(&branch.branch)).take(3) {
        write_wait(text, clock, branch)?;
    }
    match group.verdict {
        Verdict::SourceRepeats => write_source_repeats(text, group)?,
        Verdict::NoData => {
            writeln!(
                text,
                "  Next: capture at the port toward the source or the parent, and look at the drops above."
            )?;
        }
        Verdict::NoResponse | Verdict::Failed | Verdict::Waiting | Verdict::InFlight | Verdict::Complete => {}
    }
    write_upstream(text, clock, end_ns, group)?;
    write_branches(text, clock, group)?;
    timeline::write(text, clock, &group.timeline)
}

/// A sentence, indented.
fn paragraph(text: &mut String, sentence: &str) -> Result {
    wrapped(text, "  ", 6, sentence)
}

/// A sentence behind a prefix, broken where the line would be too long for a screen; further lines begin at a column.
pub(super) fn wrapped(text: &mut String, prefix: &str, column: usize, sentence: &str) -> Result {
    const WIDTH: usize = 110;
    write!(text, "{prefix}")?;
    let mut used = prefix.chars().count();
    for (position, word) in sentence.split(' ').enumerate() {
        let len = word.chars().count();
        if position > 0 && used + 1 + len > WIDTH {
            write!(text, "\n{:column$}", "")?;
            used = column;
        } else if position > 0 {
            write!(text, " ")?;
            used += 1;
        }
        write!(text, "{word}")?;
        used += len;
    }
    writeln!(text)
}

/// Reason for waiting for a branch.
fn write_wait(text: &mut String, clock: Clock, branch: &BranchExplanation) -> Result {
    let expects = match branch.expects {
        Some(psn) => format!("expects PSN {psn}"),
        None => "is unknown".to_owned(),
    };
    let sent = match (branch.first_sent_ns, branch.last_sent_ns) {
        (Some(first), Some(last)) if branch.sent > 1 => {
            format!(", which was sent {} times from {} s to {} s", branch.sent, clock.at(first), clock.at(last))
        }
        (Some(first), _) => format!(", which was sent once, at {} s", clock.at(first)),
        (None, _) if branch.expects.is_some() => ", which was not sent".to_owned(),
        (None, _) => String::new(),
    };
    let last = match (branch.last_response_ns, &branch.last_response) {
        (Some(time), Some(response)) => {
            format!("last response at {} s: {}", clock.at(time), words::response(response))
        }
        (Some(time), None) => format!("last response at {} s", clock.at(time)),
        (None, _) => "no response".to_owned(),
    };
    match branch.condition {
        Condition::NoResponse => writeln!(text, "  {} has not responded since the captures began.", branch.branch)?,
        condition => {
            writeln!(text, "  {} {expects}{sent};\n  {last}: {}.", branch.branch, words::condition(condition))?;
        }
    }
    if branch.condition == Condition::Refused {
        let reasons: Vec<String> = branch.refused.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let last = branch.last_refusal.as_ref().map_or(String::new(), |last| format!("; the last: {last}"));
        writeln!(text, "  Rejected: {}{last}.", reasons.join(", "))?;
    }
    let (likely, next) = words::advice(branch, branch.is_node);
    paragraph(text, &format!("Likely: {likely}."))?;
    paragraph(text, &format!("Next: {next}{}", if next.ends_with('?') { "" } else { "." }))
}

fn write_source_repeats(text: &mut String, group: &GroupExplanation) -> Result {
    let last = group.last_data.map_or(0, |last| last.psn);
    let minimum = group.minimum.unwrap_or_default();
    writeln!(
        text,
        "  The source retransmits from PSN {last}, though all branches expect {minimum}; {} ACKs \
         were sent to it (R2).\n  \
         Likely: responses are lost between this node and the source, or the source rejects them.\n  \
         Next: explain the captures of the parent node, or capture at the source.",
        group.upstream.repeated_acks
    )?;
    match &group.upstream.compared {
        Some(compared) if compared.missing > 0 => paragraph(
            text,
            "But the node itself has not sent all responses that the rules give: it may have restarted.",
        ),
        Some(_) | None => Ok(()),
    }
}

fn write_upstream(text: &mut String, clock: Clock, end_ns: u64, group: &GroupExplanation) -> Result {
    let Upstream { by_rule, last, compared, .. } = &group.upstream;
    match last {
        None => writeln!(text, "  upstream: no response")?,
        Some(last) => {
            let because = last.caused_by.map_or(String::new(), |branch| format!(", caused by {branch}"));
            let rules: Vec<String> = by_rule.iter().map(|(rule, count)| format!("{count} by {rule}")).collect();
            let silent_ns = end_ns.saturating_sub(last.time_ns);
            let silent = if silent_ns > 0 { format!("; silent for {} since", span(silent_ns)) } else { String::new() };
            let (response, at) = (words::response(&last.response), clock.at(last.time_ns));
            let rules = rules.join(", ");
            paragraph(
                text,
                &format!("upstream: {rules}; last {response} at {at} s by {}{because}{silent}", last.rule),
            )?;
        }
    }
    let Some(compared) = compared else {
        return writeln!(text, "  the captures have no responses of the node itself to compare");
    };
    write!(text, "  the node itself: {} responses, {} as the rules", compared.captured, compared.as_the_rules)?;
    for (count, what) in [
        (compared.untrue, "NOT TRUE"),
        (compared.not_by_the_rules, "true, but not by the rules"),
        (compared.missing, "that the rules give missing"),
        (compared.not_judged, "before all branches had responded, not judged"),
    ] {
        if count > 0 {
            write!(text, ", {count} {what}")?;
        }
    }
    writeln!(text)
}

fn write_branches(text: &mut String, clock: Clock, group: &GroupExplanation) -> Result {
    let mut branches: Vec<&BranchExplanation> = group.branches.iter().collect();
    branches.sort_by_key(|branch| {
        let is_well = matches!(branch.condition, Condition::Confirmed | Condition::Removed);
        (!group.waits_for.contains(&branch.branch), is_well)
    });
    let width = branches.iter().map(|branch| branch.branch.to_string().len()).max().unwrap_or(0).max(6);
    writeln!(
        text,
        "\n  {:width$}  {:10}  {:>8}  {:>6}  {:>5}  {:>10}  {:>8}  {:>5}  {:>9}",
        "branch", "condition", "expects", "behind", "sent", "last at", "accepted", "NAKs", "held"
    )?;
    for branch in branches.iter().take(MOST_BRANCHES) {
        let number = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
        let held = if branch.holds > 0 { span(branch.longest_hold_ns) } else { "-".to_owned() };
        writeln!(
            text,
            "  {:width$}  {:10}  {:>8}  {:>6}  {:>5}  {:>10}  {:>8}  {:>5}  {:>9}",
            branch.branch.to_string(),
            words::condition(branch.condition),
            number(branch.expects),
            number(branch.behind),
            branch.sent,
            branch.last_response_ns.map_or("-".to_owned(), |time| clock.at(time)),
            branch.accepted,
            branch.naks,
            held
        )?;
    }
    if branches.len() > MOST_BRANCHES {
        writeln!(text, "  … {} more; --json has them all", branches.len() - MOST_BRANCHES)?;
    }
    Ok(())
}
