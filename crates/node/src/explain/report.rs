//! The explanation as a value. Its names in JSON do not change.

use super::comparison::Compared;
use super::happening::Said;
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
    /// Those that the captures have not whole.
    pub cut_short: u64,
    /// Those of which no port is known; the node never saw them.
    pub without_port: u64,
    /// The first packet's time.
    pub first_time_ns: u64,
    /// The time up to which the node was run.
    pub end_time_ns: u64,
    /// Packets captured at each port.
    pub ports: Vec<PortSeen>,
    pub groups: Vec<GroupExplanation>,
}

/// Packets captured at a port.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortSeen {
    pub name: String,
    /// Packets that came in.
    pub received: u64,
    /// Packets that the node really sent.
    pub sent: u64,
    /// Numbers of dropped packets among those that came in, by reason.
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
    /// Since when that is so.
    pub minimum_since_ns: Option<u64>,
    /// The highest PSN that went down.
    pub highest: Option<u32>,
    /// Data packets that went down.
    pub data: u64,
    /// Those that went back.
    pub backward: u64,
    /// The last data packet: its PSN and when it went down.
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
    pub condition: Condition,
    /// The PSN that it expects; `null` when it is unknown or removed.
    pub expects: Option<u32>,
    /// Since when it expects that.
    pub since_ns: Option<u64>,
    /// Whether it holds the minimum.
    pub holds_minimum: bool,
    /// Packets that went down and that it has not confirmed.
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
    pub last_heard_ns: Option<u64>,
    /// Its last response.
    pub last_said: Option<Said>,
    /// Responses that were taken.
    pub taken: u64,
    /// NAKs of all kinds among them.
    pub naks: u64,
    /// Responses that were refused, by the name of the drop reason.
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
    /// Statements of the rules, by rule.
    pub by_rule: BTreeMap<&'static str, u64>,
    pub last: Option<LastStatement>,
    /// ACKs that answered the source's going back since the minimum advanced last (R2).
    pub answers: u64,
    /// Comparison with the captured responses of the node; absent when the captures have none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
}

/// The last statement.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LastStatement {
    pub time_ns: u64,
    #[serde(flatten)]
    pub said: Said,
    /// By which rule.
    pub rule: &'static str,
    /// Branch whose response caused it.
    pub because_of: Option<Ipv6Addr>,
}
