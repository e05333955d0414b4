//! A timeline as text.

use super::text::{Clock, span, wrapped};
use super::words;
use srdma_node::explain::{Difference, Event, HoldEnd, Line, LineContent, Run};
use std::fmt::{Result, Write};

/// A group's timeline, a line of text each.
pub(super) fn write(text: &mut String, clock: Clock, lines: &[Line]) -> Result {
    if lines.is_empty() {
        return writeln!(text, "\n  no events in the selected time");
    }
    writeln!(text, "\n  {:>10}  event", "time, s")?;
    for line in lines {
        let mut what = match &line.what {
            LineContent::One(event) => self::event(event),
            LineContent::Run(run) => self::run(run),
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

/// Packets from a PSN on.
fn packets(psn: u32, count: u32) -> String {
    match count {
        1 => format!("packet {psn}"),
        _ => format!("{count} packets from {psn} on"),
    }
}

fn run(run: &Run) -> String {
    let mut parts = Vec::new();
    let mut add = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => parts.push(format!("1 {one}")),
        _ => parts.push(format!("{count} {many}")),
    };
    add(run.naks, "NAK accepted", "NAKs accepted");
    add(run.acks, "ACK accepted", "ACKs accepted");
    add(run.stale, "stale ACK ignored", "stale ACKs ignored");
    add(run.refused, "response rejected", "responses rejected");
    add(run.cnps, "CNP", "CNPs");
    add(run.naks_answered, "NAK answered by the node", "NAKs answered by the node");
    add(run.requests, "request for data", "requests for data");
    add(run.sent_again, "packet sent again", "packets sent again");
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
        Some(psn) => format!("… source retransmits from {psn}: "),
        None => "… ".to_owned(),
    };
    let separator = if data.is_empty() || parts.is_empty() { "" } else { "; " };
    format!("{begin}{data}{separator}{}", parts.join(", "))
}

fn event(event: &Event) -> String {
    let number = |psn: &Option<u32>| psn.map_or("unknown".to_owned(), |psn| psn.to_string());
    match event {
        Event::Began { unknown: 0 } => "begins, every branch expects the first PSN".to_owned(),
        Event::Began { unknown } => format!("begins with {unknown} unknown branches: no response upstream (R6)"),
        Event::Learnt { receivers, unknown } => {
            format!("{receivers} receivers learnt, {unknown} of them unknown: no response upstream (R6)")
        }
        Event::Committed { epoch } => format!("epoch {epoch} is in effect"),
        Event::Left => "the node has left the group".to_owned(),
        Event::Data { psn, ack_request, backward } => {
            let back = if *backward { ", the source retransmits" } else { "" };
            let asks = if *ack_request { ", requests an ACK" } else { "" };
            format!("data {psn}{back}{asks}")
        }
        Event::Response { branch, response, before, after } if before == after => {
            format!("{branch}: {}, still expects {}", words::response(response), number(after))
        }
        Event::Response { branch, response, before: None, after } => {
            format!("{branch}: {}, its first response, expects {}", words::response(response), number(after))
        }
        Event::Response { branch, response, before, after } => {
            format!("{branch}: {}, expects {} -> {}", words::response(response), number(before), number(after))
        }
        Event::Refused { branch, response, reason, detail } => {
            format!("{branch}: {} rejected, {reason}: {detail}", words::response(response))
        }
        Event::Dropped { responder, reason } => format!("{responder}: dropped, {reason}"),
        Event::HoldBegan { branch, psn } => {
            format!("{branch}: its NAK {psn} is held until the minimum PSN reaches it, or for T_hold (R5)")
        }
        Event::HoldEnded { branch, psn, held_ns, end } => {
            let why = match end {
                HoldEnd::Forwarded => "forwarded upstream",
                HoldEnd::Retransmitted => "the data were sent again",
                HoldEnd::Superseded => "superseded by a newer response",
                HoldEnd::Removed => "it was removed",
            };
            format!("{branch}: NAK {psn} was held for {}, {why}", span(*held_ns))
        }
        Event::Upstream { response, rule, caused_by, holder } => {
            let because = caused_by.map_or(String::new(), |branch| format!(", caused by {branch}"));
            let holder = match holder {
                Some(holder) if Some(*holder) != *caused_by => format!("; {holder} holds the minimum"),
                Some(_) | None => String::new(),
            };
            format!("upstream: {} by {}{because}{holder}", words::response(response), rule.name())
        }
        Event::Difference { response, difference, minimum } => {
            let response = words::response(response);
            match difference {
                Difference::Untrue => {
                    format!("THE NODE SENT {response}: not true, a branch expects {}", number(minimum))
                }
                Difference::NotByTheRules => {
                    format!(
                        "the node sent {response}: the rules do not give it (another implementation, or older state)"
                    )
                }
                Difference::Missing => format!("the node did not send {response}, which the rules give"),
            }
        }
        Event::Cnp { branch, count, counts: true } => format!("{branch}: CNP for {count}"),
        Event::Cnp { branch, count, counts: false } => format!("{branch}: CNP for {count}, above the limit"),
        Event::CnpUp { branch: Some(branch), count } => format!("upstream: CNP of {branch} for {count}"),
        Event::CnpUp { branch: None, count } => format!("upstream: CNP for {count}"),
        Event::NakAnswered { branch, psn } => format!("{branch}: the node answers its NAK of {psn} itself"),
        Event::RequestReceived { branch, psn, count } => format!("{branch} requests {}", packets(*psn, *count)),
        Event::RequestSent { psn, count } => format!("upstream: request for {}", packets(*psn, *count)),
        Event::SentAgain { branch, psn } => format!("{branch}: {psn} sent again"),
        Event::GapGivenUp { psn } => format!("gap at {psn} is given up: no node above has the data, the source has"),
        Event::EvictionRequested { receiver, cause } => format!("eviction of {receiver} requested: {cause}"),
    }
}
