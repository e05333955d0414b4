//! Events of a group, in the terms of the report.

use serde::{Serialize, Serializer};
use srdma_aggregation::{EvictionCause, Refusal, Response, Rule, Syndrome};
use srdma_dataplane::HoldEnd;
use srdma_wire::Psn;
use std::net::Ipv6Addr;

/// A kind of response.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Ack,
    /// NAK, PSN sequence error.
    Nak,
    /// Receiver not ready.
    RnrNak,
    /// A fatal NAK for a queue pair: invalid request, remote access or remote operational error.
    FatalNak,
}

/// A response as it stands in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// ACK or which NAK.
    pub answer: Kind,
    /// PSN of the BTH: the last one confirmed by an ACK, the one requested by all others.
    pub psn: u32,
    /// The timer code of an RNR NAK, the NAK code of a fatal one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
}

impl From<Response> for Said {
    fn from(response: Response) -> Self {
        let (answer, code) = match response.syndrome {
            Syndrome::Ack => (Kind::Ack, None),
            Syndrome::SequenceNak => (Kind::Nak, None),
            Syndrome::RnrNak(timer) => (Kind::RnrNak, Some(timer)),
            Syndrome::Fatal(code) => (Kind::FatalNak, Some(code)),
        };
        Said { answer, psn: response.psn.get(), code }
    }
}

impl Said {
    /// The first PSN that it does not confirm (D16).
    pub(super) fn next(&self) -> Psn {
        match self.answer {
            Kind::Ack => Psn::new(self.psn).next(),
            Kind::Nak | Kind::RnrNak | Kind::FatalNak => Psn::new(self.psn),
        }
    }
}

/// Reasons for which a NAK was held no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfHold {
    /// It was forwarded upstream.
    Told,
    /// The data came again.
    Served,
    /// A newer response of the branch replaced it.
    Overtaken,
    /// The branch was removed.
    Removed,
}

impl From<HoldEnd> for EndOfHold {
    fn from(end: HoldEnd) -> Self {
        match end {
            HoldEnd::Told => EndOfHold::Told,
            HoldEnd::Served => EndOfHold::Served,
            HoldEnd::Overtaken => EndOfHold::Overtaken,
            HoldEnd::Removed => EndOfHold::Removed,
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

/// Event of a timeline. In JSON `kind` is the variant.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Happening {
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
    /// A data packet went down.
    Data {
        psn: u32,
        /// Whether it requests an ACK.
        ack_request: bool,
        /// The source went back.
        backward: bool,
    },
    /// A response of a branch was taken.
    Response {
        branch: Ipv6Addr,
        /// The response.
        #[serde(flatten)]
        said: Said,
        /// The PSN that it expected before; `null` when it was unknown.
        before: Option<u32>,
        /// The PSN that it expects now.
        after: Option<u32>,
    },
    /// A response of a branch was refused.
    Refused {
        branch: Ipv6Addr,
        /// The response.
        #[serde(flatten)]
        said: Said,
        /// Why: the name of the drop reason.
        reason: &'static str,
        /// Reason, as text.
        because: String,
    },
    /// A packet from below was not taken for a response.
    NotTaken {
        /// Its source address.
        responder: Ipv6Addr,
        /// The name of the drop reason.
        reason: &'static str,
    },
    /// A response of a branch begins to wait.
    HoldBegan { branch: Ipv6Addr, psn: u32 },
    /// It waits no longer.
    HoldEnded {
        branch: Ipv6Addr,
        psn: u32,
        /// Time that it waited, in nanoseconds.
        held_ns: u64,
        /// Reason for its end.
        end: EndOfHold,
    },
    /// The node sends a response upstream, by the rules.
    Statement {
        #[serde(flatten)]
        said: Said,
        /// By which rule; in JSON its name.
        #[serde(serialize_with = "by_name")]
        rule: Rule,
        /// Branch whose response caused it.
        because_of: Option<Ipv6Addr>,
        /// The first branch that expects the minimum.
        holder: Option<Ipv6Addr>,
    },
    /// The captured responses of the node differ from the rules.
    Difference {
        /// The response that was sent, or should have been.
        #[serde(flatten)]
        said: Said,
        /// In which way.
        difference: Difference,
        /// The minimum of the branches then.
        minimum: Option<u32>,
    },
    /// A CNP of a branch.
    Cnp {
        branch: Ipv6Addr,
        /// For how many it stands.
        count: u32,
        /// Whether it counts (MT-9-3).
        counts: bool,
    },
    /// A CNP goes upstream.
    CnpUp {
        /// The most congested branch.
        branch: Option<Ipv6Addr>,
        /// For how many it stands.
        count: u32,
    },
    /// The edge requests an eviction (D24, D25).
    EvictionWanted {
        receiver: Ipv6Addr,
        /// `stalled` or `failed`.
        cause: &'static str,
    },
    /// Another epoch.
    Committed { epoch: u32 },
    /// The node left the group.
    Left,
}

impl Happening {
    /// The branch that it is about, if it is about one.
    pub(super) fn branch(&self) -> Option<Ipv6Addr> {
        match self {
            Happening::Response { branch, .. }
            | Happening::Refused { branch, .. }
            | Happening::HoldBegan { branch, .. }
            | Happening::HoldEnded { branch, .. }
            | Happening::Cnp { branch, .. } => Some(*branch),
            Happening::NotTaken { responder: branch, .. } | Happening::EvictionWanted { receiver: branch, .. } => {
                Some(*branch)
            }
            Happening::CnpUp { branch, .. } => *branch,
            Happening::Began { .. }
            | Happening::Learnt { .. }
            | Happening::Data { .. }
            | Happening::Statement { .. }
            | Happening::Difference { .. }
            | Happening::Committed { .. }
            | Happening::Left => None,
        }
    }

    /// Whether it happens all the time while nothing is wrong.
    pub(super) fn is_ordinary(&self) -> bool {
        match self {
            Happening::Data { .. } => true,
            Happening::Response { said, before, .. } => said.answer == Kind::Ack && before.is_some(),
            Happening::Refused { reason, said, .. } => *reason == "stale_response" && said.answer == Kind::Ack,
            Happening::Statement { said, rule, .. } => said.answer == Kind::Ack && matches!(rule, Rule::R2 | Rule::R3),
            Happening::Began { .. }
            | Happening::Learnt { .. }
            | Happening::NotTaken { .. }
            | Happening::HoldBegan { .. }
            | Happening::HoldEnded { .. }
            | Happening::Difference { .. }
            | Happening::Cnp { .. }
            | Happening::CnpUp { .. }
            | Happening::EvictionWanted { .. }
            | Happening::Committed { .. }
            | Happening::Left => false,
        }
    }

    /// Whether it must stay visible however long the timeline is.
    pub(super) fn is_serious(&self) -> bool {
        match self {
            Happening::Began { .. }
            | Happening::Learnt { .. }
            | Happening::NotTaken { .. }
            | Happening::EvictionWanted { .. }
            | Happening::Committed { .. }
            | Happening::Left => true,
            Happening::Difference { difference, .. } => *difference == Difference::Untrue,
            Happening::Response { said, before, .. } => said.answer == Kind::FatalNak || before.is_none(),
            Happening::Statement { said, rule, .. } => said.answer == Kind::FatalNak || *rule == Rule::R5,
            Happening::Refused { .. }
            | Happening::Data { .. }
            | Happening::HoldBegan { .. }
            | Happening::HoldEnded { .. }
            | Happening::Cnp { .. }
            | Happening::CnpUp { .. } => false,
        }
    }

    /// Whether it repeats an earlier one.
    pub(super) fn is_same(&self, other: &Happening) -> bool {
        match (self, other) {
            (
                Happening::HoldEnded { branch, psn, end, .. },
                Happening::HoldEnded { branch: other_branch, psn: other_psn, end: other_end, .. },
            ) => (branch, psn, end) == (other_branch, other_psn, other_end),
            _ => self == other,
        }
    }
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

pub(super) fn cause_name(cause: EvictionCause) -> &'static str {
    match cause {
        EvictionCause::Stalled => "stalled",
        EvictionCause::Failed(_) => "failed",
    }
}
