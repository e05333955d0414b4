//! The meaning of verdicts and conditions, with advice.

use srdma_node::explain::{BranchExplanation, Condition, GroupExplanation, Response, SyndromeKind, Verdict};

/// A response in words: `ACK 41`, `RNR NAK 42`.
pub(super) fn response(response: &Response) -> String {
    match (response.syndrome, response.code) {
        (SyndromeKind::Ack, _) => format!("ACK {}", response.psn),
        (SyndromeKind::Nak, _) => format!("NAK {}", response.psn),
        (SyndromeKind::RnrNak, timer) => format!("RNR NAK {} (timer {})", response.psn, timer.unwrap_or_default()),
        (SyndromeKind::FatalNak, code) => format!("NAK {} {}", fatal(code.unwrap_or_default()), response.psn),
    }
}

/// The name of a NAK code.
fn fatal(code: u8) -> &'static str {
    match code {
        1 => "invalid request",
        2 => "remote access error",
        3 => "remote operational error",
        _ => "of an unknown code",
    }
}

/// A condition in one or two words, for a table.
pub(super) fn condition(condition: Condition) -> &'static str {
    match condition {
        Condition::Confirmed => "has all",
        Condition::InFlight => "in flight",
        Condition::NoResponse => "unknown",
        Condition::Silent => "silent",
        Condition::Refused => "refused",
        Condition::Losing => "losing",
        Condition::NakHeld => "NAK held",
        Condition::NotResent => "not resent",
        Condition::NotReady => "not ready",
        Condition::Failed => "failed",
        Condition::Removed => "removed",
    }
}

/// The usual cause of the condition of a branch that a group waits for, and the next step. `is_node`: the branch is a
/// node, not a receiver.
pub(super) fn advice(branch: &BranchExplanation, is_node: bool) -> (&'static str, &'static str) {
    let of_node = match branch.condition {
        Condition::Silent | Condition::NoResponse | Condition::Losing | Condition::NotReady | Condition::Failed => {
            is_node
        }
        Condition::Refused
        | Condition::NakHeld
        | Condition::NotResent
        | Condition::InFlight
        | Condition::Confirmed
        | Condition::Removed => false,
    };
    if of_node {
        return (
            "that node itself waits for one of its branches, has restarted, or its responses are lost",
            "explain the captures of that node with its own configuration",
        );
    }
    if branch.copies_seen == Some(0) && branch.sent > 1 {
        return (
            "the node never sent it: no neighbour, no route, or a full queue",
            "look at the node's drops (srdma status, or srdma process over the same captures) and at its neighbours",
        );
    }
    match branch.condition {
        Condition::Silent | Condition::NoResponse => (
            "the host or its link is down, its queue pair has failed or is not connected to the Proxy Address, or \
             data or responses are lost every time",
            "capture at the host: do the data arrive (right MAC address, DestQP, P_Key, ICRC), and does it respond?",
        ),
        Condition::Refused if branch.refused.contains_key("bad_icrc") => (
            "its responses are damaged on their way, or something rewrites them",
            "compare a response at the host and here: srdma decode shows the ICRC",
        ),
        Condition::Refused => (
            "its responses are not to these data: an old connection, another first PSN, or a forged response",
            "compare its queue pair (rq_psn, destination QPN, source port) with the group's record",
        ),
        Condition::Losing => (
            "this packet never arrives whole: too long for a link behind the node, or always damaged",
            "compare the link MTU toward it with the length of the packet; count ICRC errors at the host",
        ),
        Condition::NakHeld => (
            "it has lost the packet; the NAK waits for the other branches, or for T_hold (R5)",
            "nothing, if the capture goes on; else find the branch that holds the minimum PSN",
        ),
        Condition::NotResent => (
            "the NAK was sent upstream; it, or the retransmission, was lost above this node",
            "explain the captures of the parent node, or capture at the source",
        ),
        Condition::NotReady => (
            "its application posts no receives, or too slowly",
            "look at the application's receive queue; a longer RNR timer or more receives help",
        ),
        Condition::Failed => (
            "the receiver rejects the request: region, rkey or rights differ from the group's record",
            "compare the receiver's region with the record, and read its queue pair's error",
        ),
        Condition::InFlight => ("nothing unusual: the captures end while it is in flight", "capture for longer"),
        Condition::Confirmed | Condition::Removed => ("nothing is missing here", "look at the other branches"),
    }
}

/// A verdict in a few words, with the branches that the group waits for.
pub(super) fn verdict(group: &GroupExplanation) -> String {
    let who: Vec<String> = group.waits_for.iter().take(3).map(ToString::to_string).collect();
    let more = group.waits_for.len().saturating_sub(3);
    let who = who.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
    let (responds, has) = if group.waits_for.len() == 1 { ("responds", "has") } else { ("respond", "have") };
    match group.verdict {
        Verdict::NoData => "no data".to_owned(),
        Verdict::NoResponse => format!("no response upstream until {who} {responds} (R6)"),
        Verdict::Failed => format!("failed: {who} {has} sent a fatal NAK"),
        Verdict::Waiting => format!("waiting for {who}"),
        Verdict::InFlight => format!("in flight, {who} {has} not confirmed all yet"),
        Verdict::SourceRepeats => "confirmed, but the source retransmits".to_owned(),
        Verdict::Complete => "all data are confirmed".to_owned(),
    }
}
