//! Events of a group, in the terms of the report.

use serde::{Serialize, Serializer};
use srdma_aggregation::{EvictionCause, Refusal, Rule, Syndrome};
use srdma_dataplane::HoldEnd;
use srdma_wire::Psn;
use std::net::Ipv6Addr;

/// A kind of syndrome.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyndromeKind {
    Ack,
    /// NAK, PSN sequence error.
    Nak,
    /// Receiver not ready.
    RnrNak,
    /// A NAK that ends the connection: invalid request, remote access or remote operational error.
    FatalNak,
}

/// A response in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Response {
    /// Its syndrome.
    pub syndrome: SyndromeKind,
    /// PSN of the BTH: the last one that an ACK confirms, the one that a NAK requests.
    pub psn: u32,
    /// The timer code of an RNR NAK, the NAK code of a fatal one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
}

impl From<srdma_aggregation::Response> for Response {
    fn from(response: srdma_aggregation::Response) -> Self {
        let (syndrome, code) = match response.syndrome {
            Syndrome::Ack => (SyndromeKind::Ack, None),
            Syndrome::SequenceNak => (SyndromeKind::Nak, None),
            Syndrome::RnrNak(timer) => (SyndromeKind::RnrNak, Some(timer)),
            Syndrome::Fatal(code) => (SyndromeKind::FatalNak, Some(code)),
        };
        Response { syndrome, psn: response.psn.get(), code }
    }
}

impl Response {
    /// The first PSN that it does not confirm (D16).
    pub(super) fn next(&self) -> Psn {
        match self.syndrome {
            SyndromeKind::Ack => Psn::new(self.psn).next(),
            SyndromeKind::Nak | SyndromeKind::RnrNak | SyndromeKind::FatalNak => Psn::new(self.psn),
        }
    }
}

/// Result of comparing a captured response with that of the rules for the same packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// It confirms more than all branches have confirmed in these captures.
    Untrue,
    /// True, but the rules do not give it.
    NotByTheRules,
    /// The rules give it, but it is not in the captures.
    Missing,
}

/// Events of a group. In JSON `kind` is the variant.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The replay of the group begins.
    Began {
        /// Branches that are unknown.
        unknown: u16,
    },
    /// The node has learnt the group, or more of its receivers, from a packet's list.
    Learnt {
        /// Receivers in the union of the lists.
        receivers: u16,
        /// Those of them that are unknown.
        unknown: u16,
    },
    /// A data packet was sent downstream.
    Data {
        psn: u32,
        /// Whether it requests an ACK.
        ack_request: bool,
        /// Whether the source retransmits.
        backward: bool,
    },
    /// A response of a branch was accepted.
    Response {
        branch: Ipv6Addr,
        /// The response.
        #[serde(flatten)]
        response: Response,
        /// The PSN that it expected before; `null` when it was unknown.
        before: Option<u32>,
        /// The PSN that it expects now.
        after: Option<u32>,
    },
    /// A response of a branch was rejected.
    Refused {
        branch: Ipv6Addr,
        /// The response.
        #[serde(flatten)]
        response: Response,
        /// The drop reason.
        reason: &'static str,
        /// The rejection as text.
        detail: String,
    },
    /// A packet from downstream was dropped before it reached a branch.
    Dropped {
        /// Its source address.
        responder: Ipv6Addr,
        /// The drop reason.
        reason: &'static str,
    },
    /// A hold of a response begins.
    HoldBegan { branch: Ipv6Addr, psn: u32 },
    /// The hold ends.
    HoldEnded {
        branch: Ipv6Addr,
        psn: u32,
        /// Duration in nanoseconds.
        held_ns: u64,
        /// Reason for its end.
        #[serde(serialize_with = "hold_end")]
        end: HoldEnd,
    },
    /// The node sends a response upstream, by the rules.
    Upstream {
        #[serde(flatten)]
        response: Response,
        /// The rule; in JSON its name.
        #[serde(serialize_with = "by_name")]
        rule: Rule,
        /// Branch whose response caused it.
        caused_by: Option<Ipv6Addr>,
        /// The first branch that expects the minimum.
        holder: Option<Ipv6Addr>,
    },
    /// The captured responses of the node differ from the rules.
    Difference {
        /// The response that was sent, or should have been.
        #[serde(flatten)]
        response: Response,
        /// The difference.
        difference: Difference,
        /// The minimum of the branches then.
        minimum: Option<u32>,
    },
    /// A CNP of a branch.
    Cnp {
        branch: Ipv6Addr,
        /// Number of CNPs that it represents.
        count: u32,
        /// Whether it counts (MT-9-3).
        counts: bool,
    },
    /// A CNP is sent upstream.
    CnpUp {
        /// The most congested branch.
        branch: Option<Ipv6Addr>,
        /// Number of CNPs that it represents.
        count: u32,
    },
    /// The node answers a NAK of a branch itself (D152, D157).
    NakAnswered { branch: Ipv6Addr, psn: u32 },
    /// A child requests data that it lacks (D153).
    RequestReceived { branch: Ipv6Addr, psn: u32, count: u32 },
    /// The node requests data that it lacks from its parent (D153).
    RequestSent { psn: u32, count: u32 },
    /// A packet of the buffer is sent to a branch again.
    SentAgain { branch: Ipv6Addr, psn: u32 },
    /// No node above has what is missing from this PSN on: it is left to the source (D158).
    GapGivenUp { psn: u32 },
    /// The edge requests an eviction (D24, D25).
    EvictionRequested {
        receiver: Ipv6Addr,
        /// `stalled` or `failed`.
        cause: &'static str,
    },
    /// Another epoch.
    Committed { epoch: u32 },
    /// The node left the group.
    Left,
}

impl Event {
    /// The branch that the event concerns, if any.
    pub(super) fn branch(&self) -> Option<Ipv6Addr> {
        match self {
            Event::Response { branch, .. }
            | Event::Refused { branch, .. }
            | Event::HoldBegan { branch, .. }
            | Event::HoldEnded { branch, .. }
            | Event::Cnp { branch, .. }
            | Event::NakAnswered { branch, .. }
            | Event::RequestReceived { branch, .. }
            | Event::SentAgain { branch, .. } => Some(*branch),
            Event::Dropped { responder: branch, .. } | Event::EvictionRequested { receiver: branch, .. } => {
                Some(*branch)
            }
            Event::CnpUp { branch, .. } => *branch,
            Event::Began { .. }
            | Event::Learnt { .. }
            | Event::Data { .. }
            | Event::Upstream { .. }
            | Event::Difference { .. }
            | Event::RequestSent { .. }
            | Event::GapGivenUp { .. }
            | Event::Committed { .. }
            | Event::Left => None,
        }
    }

    /// Whether the event is part of normal operation.
    pub(super) fn is_ordinary(&self) -> bool {
        match self {
            Event::Data { .. }
            | Event::NakAnswered { .. }
            | Event::RequestReceived { .. }
            | Event::RequestSent { .. }
            | Event::SentAgain { .. } => true,
            Event::Response { response, before, .. } => response.syndrome == SyndromeKind::Ack && before.is_some(),
            Event::Refused { reason, response, .. } => {
                *reason == "stale_response" && response.syndrome == SyndromeKind::Ack
            }
            Event::Upstream { response, rule, .. } => {
                response.syndrome == SyndromeKind::Ack && matches!(rule, Rule::R2 | Rule::R3)
            }
            Event::Began { .. }
            | Event::Learnt { .. }
            | Event::Dropped { .. }
            | Event::HoldBegan { .. }
            | Event::HoldEnded { .. }
            | Event::Difference { .. }
            | Event::Cnp { .. }
            | Event::CnpUp { .. }
            | Event::GapGivenUp { .. }
            | Event::EvictionRequested { .. }
            | Event::Committed { .. }
            | Event::Left => false,
        }
    }

    /// Whether the event is kept in a timeline of any length.
    pub(super) fn is_serious(&self) -> bool {
        match self {
            Event::Began { .. }
            | Event::Learnt { .. }
            | Event::Dropped { .. }
            | Event::EvictionRequested { .. }
            | Event::GapGivenUp { .. }
            | Event::Committed { .. }
            | Event::Left => true,
            Event::Difference { difference, .. } => *difference == Difference::Untrue,
            Event::Response { response, before, .. } => response.syndrome == SyndromeKind::FatalNak || before.is_none(),
            Event::Upstream { response, rule, .. } => response.syndrome == SyndromeKind::FatalNak || *rule == Rule::R5,
            Event::Refused { .. }
            | Event::Data { .. }
            | Event::HoldBegan { .. }
            | Event::HoldEnded { .. }
            | Event::Cnp { .. }
            | Event::CnpUp { .. }
            | Event::NakAnswered { .. }
            | Event::RequestReceived { .. }
            | Event::RequestSent { .. }
            | Event::SentAgain { .. } => false,
        }
    }

    /// Whether the event repeats an earlier one.
    pub(super) fn is_same(&self, other: &Event) -> bool {
        match (self, other) {
            (
                Event::HoldEnded { branch, psn, end, .. },
                Event::HoldEnded { branch: other_branch, psn: other_psn, end: other_end, .. },
            ) => (branch, psn, end) == (other_branch, other_psn, other_end),
            _ => self == other,
        }
    }
}

fn hold_end<S: Serializer>(end: &HoldEnd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match end {
        HoldEnd::Forwarded => "forwarded",
        HoldEnd::Retransmitted => "retransmitted",
        HoldEnd::Superseded => "superseded",
        HoldEnd::Removed => "removed",
    })
}

fn by_name<S: Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name())
}

/// The name of the counter of a refusal.
pub(super) fn reason_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoSuchBranch(_) => "unexpected_responder",
        Refusal::NothingSent { .. } => "nothing_sent",
        Refusal::ImplausiblePsn { .. } => "implausible_psn",
        Refusal::Stale { .. } | Refusal::Behind { .. } => "stale_response",
    }
}

/// The cause of an eviction request.
pub(super) fn cause_name(cause: EvictionCause) -> &'static str {
    match cause {
        EvictionCause::Stalled => "stalled",
        EvictionCause::Failed(_) => "failed",
    }
}
