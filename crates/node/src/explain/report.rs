//! The explanation as a value. Its names in JSON do not change.

use super::comparison::Compared;
use super::event::Response;
use super::timeline::Line;
use super::verdict::{Condition, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Explanation of a node's groups, from captures of its ports. Times are nanoseconds since 1970.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Packets of the captures.
    pub packets: u64,
    /// Packets that were truncated by the capture.
    pub cut_short: u64,
    /// Packets without a known port, which the node was not given.
    pub without_port: u64,
    /// The first packet's time.
    pub first_time_ns: u64,
    /// The time up to which the node was run.
    pub end_time_ns: u64,
    /// Packets captured at each port.
    pub ports: Vec<PortObservation>,
    pub groups: Vec<GroupExplanation>,
}

/// Packets captured at a port.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortObservation {
    pub name: String,
    /// Packets received by the node.
    pub received: u64,
    /// Packets sent by the captured node.
    pub sent: u64,
    /// Dropped packets among those received, by reason.
    pub drops: BTreeMap<&'static str, u64>,
}

/// Beginnings of the captures of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// With the group's first PSN: every branch is known to expect it.
    FirstPsn,
    /// Later: the node is run as one that has restarted, each branch unknown until its first response (D17, R6).
    MidFlow,
    /// The node has restarted, by its configuration.
    Restarted,
    /// Without any data.
    NoData,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupExplanation {
    pub id: u32,
    pub proxy: Ipv6Addr,
    /// `edge` or `transit`.
    pub role: &'static str,
    /// Beginning of the captures.
    pub begins: Beginning,
    /// State of the group at the end.
    pub verdict: Verdict,
    /// Branches that it waits for.
    pub waits_for: Vec<Ipv6Addr>,
    /// The least PSN that a branch expects.
    pub minimum: Option<u32>,
    /// Since when.
    pub minimum_since_ns: Option<u64>,
    /// The highest PSN sent downstream.
    pub highest: Option<u32>,
    /// Data packets sent downstream.
    pub data: u64,
    /// Those with a PSN not above the one before.
    pub backward: u64,
    /// The last data packet.
    pub last_data: Option<At>,
    pub branches: Vec<BranchExplanation>,
    /// Responses upstream.
    pub upstream: Upstream,
    pub timeline: Vec<Line>,
}

/// A PSN and a time.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct At {
    pub psn: u32,
    pub time_ns: u64,
}

#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BranchExplanation {
    pub branch: Ipv6Addr,
    /// It is a node, not a receiver.
    pub is_node: bool,
    pub condition: Condition,
    /// The PSN that it expects; `null` when it is unknown or removed.
    pub expects: Option<u32>,
    /// Since when it expects that.
    pub since_ns: Option<u64>,
    /// Whether it holds the minimum.
    pub holds_minimum: bool,
    /// Packets sent downstream that it has not confirmed.
    pub behind: Option<u32>,
    /// Number of times that its expected PSN was sent.
    pub sent: u64,
    /// Time at which that was sent first.
    pub first_sent_ns: Option<u64>,
    /// Time at which that was sent last.
    pub last_sent_ns: Option<u64>,
    /// Copies of it that the captures have on their way to the receiver; absent when they could not have any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies_seen: Option<u64>,
    /// Time of its last response.
    pub last_response_ns: Option<u64>,
    /// Its last response.
    pub last_response: Option<Response>,
    /// Responses that were accepted.
    pub accepted: u64,
    /// NAKs of all kinds among them.
    pub naks: u64,
    /// Responses that were rejected, by drop reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Reason for the last one, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<String>,
    /// Times that a NAK of it was held (R5).
    pub holds: u64,
    /// The longest, in nanoseconds.
    pub longest_hold_ns: u64,
    /// Since when one is held now.
    pub held_since_ns: Option<u64>,
}

/// Responses upstream.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Upstream {
    /// Responses that the rules give, by rule.
    pub by_rule: BTreeMap<&'static str, u64>,
    pub last: Option<LastResponse>,
    /// ACKs to a retransmitting source since the minimum PSN advanced last (R2).
    pub repeated_acks: u64,
    /// Comparison with the captured responses of the node; absent when the captures have none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

/// The last response upstream.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LastResponse {
    pub time_ns: u64,
    #[serde(flatten)]
    pub response: Response,
    /// Its rule.
    pub rule: &'static str,
    /// Branch whose response caused it.
    pub caused_by: Option<Ipv6Addr>,
}
