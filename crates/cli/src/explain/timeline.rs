//! A timeline as text.

use super::text::{Clock, span, wrapped};
use super::words;
use srdma_node::explain::{Difference, EndOfHold, Happening, Line, LineWhat, Run};
use std::fmt::{Result, Write};

/// A group's timeline, a line of text each.
pub(super) fn write(text: &mut String, clock: Clock, lines: &[Line]) -> Result {
    if lines.is_empty() {
        return writeln!(text, "\n  nothing happened in the time asked for");
    }
    writeln!(text, "\n  {:>10}  what happened", "time, s")?;
    for line in lines {
        let mut what = match &line.what {
            LineWhat::One(what) => happening(what),
            LineWhat::Run(run) => self::run(run),
        };
        if line.times > 1 {
            write!(what, "; {} times until {}", line.times, clock.at(line.until_ns))?;
        } else if line.until_ns > line.time_ns {
            write!(what, " (until {})", clock.at(line.until_ns))?;
        }
        wrapped(text, &format!("  {:>10}  ", clock.at(line.time_ns)), 16, &what)?;
    }
    Ok(())
}

fn run(run: &Run) -> String {
    let mut parts = Vec::new();
    let mut add = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => parts.push(format!("1 {one}")),
        _ => parts.push(format!("{count} {many}")),
    };
    add(run.naks, "NAK taken", "NAKs taken");
    add(run.acks, "ACK taken", "ACKs taken");
    add(run.stale, "stale one ignored", "stale ones ignored");
    add(run.refused, "response refused", "responses refused");
    add(run.cnps, "CNP", "CNPs");
    add(run.acks_sent, "ACK upstream", "ACKs upstream");
    add(run.naks_sent, "NAK upstream", "NAKs upstream");
    add(run.differences, "difference", "differences");
    if run.holds > 0 {
        parts.push(format!("{} holds, the longest {}", run.holds, span(run.longest_hold_ns)));
    }
    match (run.minimum_before, run.minimum_after) {
        (Some(before), Some(after)) if before != after => parts.push(format!("minimum {before} -> {after}")),
        (None, Some(after)) => parts.push(format!("minimum {after}")),
        (Some(minimum), Some(_)) if run.data > 0 => parts.push(format!("minimum stays {minimum}")),
        (Some(_), _) | (None, None) => {}
    }
    let data = match (run.data, run.first_psn, run.last_psn) {
        (0, _, _) => String::new(),
        (1, Some(psn), _) => format!("data {psn}"),
        (count, Some(first), Some(last)) => format!("{count} data {first}..{last}"),
        (count, _, _) => format!("{count} data"),
    };
    let begin = match run.back_to {
        Some(psn) => format!("… source goes back to {psn}: "),
        None => "… ".to_owned(),
    };
    let separator = if data.is_empty() || parts.is_empty() { "" } else { "; " };
    format!("{begin}{data}{separator}{}", parts.join(", "))
}

fn happening(what: &Happening) -> String {
    let number = |psn: &Option<u32>| psn.map_or("nothing known".to_owned(), |psn| psn.to_string());
    match what {
        Happening::Began { unknown: 0 } => "begins, every branch expects the first PSN".to_owned(),
        Happening::Began { unknown } => format!("begins with {unknown} unknown branches: nothing goes upstream (R6)"),
        Happening::Learnt { receivers, unknown } => {
            format!("{receivers} receivers learnt, {unknown} of them unknown: nothing goes upstream (R6)")
        }
        Happening::Committed { epoch } => format!("epoch {epoch} is in effect"),
        Happening::Left => "the node has left the group".to_owned(),
        Happening::Data { psn, ack_request, backward } => {
            let back = if *backward { ", the source goes back" } else { "" };
            let asks = if *ack_request { ", asks for an ACK" } else { "" };
            format!("data {psn} down{back}{asks}")
        }
        Happening::Response { branch, said, before, after } if before == after => {
            format!("{branch}: {}, still expects {}", words::said(said), number(after))
        }
        Happening::Response { branch, said, before: None, after } => {
            format!("{branch}: {}, heard for the first time, expects {}", words::said(said), number(after))
        }
        Happening::Response { branch, said, before, after } => {
            format!("{branch}: {}, expects {} -> {}", words::said(said), number(before), number(after))
        }
        Happening::Refused { branch, said, reason, because } => {
            format!("{branch}: {} refused, {reason}: {because}", words::said(said))
        }
        Happening::NotTaken { responder, reason } => format!("{responder}: not taken, {reason}"),
        Happening::HoldBegan { branch, psn } => {
            format!("{branch}: its NAK {psn} is held until the minimum gets there, or for T_hold (R5)")
        }
        Happening::HoldEnded { branch, psn, held_ns, end } => {
            let why = match end {
                EndOfHold::Told => "upstream is told",
                EndOfHold::Served => "the data went down again",
                EndOfHold::Overtaken => "it has said something newer",
                EndOfHold::Removed => "it was removed",
            };
            format!("{branch}: NAK {psn} was held for {}, {why}", span(*held_ns))
        }
        Happening::Statement { said, rule, because_of, holder } => {
            let because = because_of.map_or(String::new(), |branch| format!(", because of {branch}"));
            let holder = match holder {
                Some(holder) if Some(*holder) != *because_of => format!("; {holder} holds the minimum"),
                Some(_) | None => String::new(),
            };
            format!("upstream: {} by {}{because}{holder}", words::said(said), rule.name())
        }
        Happening::Difference { said, difference, minimum } => {
            let said = words::said(said);
            match difference {
                Difference::Untrue => {
                    format!("THE NODE SAID {said}: not true, a branch expects {}", number(minimum))
                }
                Difference::NotByTheRules => {
                    format!("the node said {said}: the rules do not give it (another implementation, or older state)")
                }
                Difference::Missing => format!("the node did not say {said}, which the rules give"),
            }
        }
        Happening::Cnp { branch, count, counts: true } => format!("{branch}: CNP for {count}"),
        Happening::Cnp { branch, count, counts: false } => format!("{branch}: CNP for {count}, above the limit"),
        Happening::CnpUp { branch: Some(branch), count } => format!("upstream: CNP of {branch} for {count}"),
        Happening::CnpUp { branch: None, count } => format!("upstream: CNP for {count}"),
        Happening::EvictionWanted { receiver, cause } => format!("eviction of {receiver} wanted: {cause}"),
    }
}
