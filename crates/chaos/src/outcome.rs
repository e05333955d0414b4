//! The outcome of one run of a schedule.
#![allow(missing_docs, reason = "names and types explain the other items")]

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Violations and figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Violations in order of time; empty if the run passed.
    pub violations: Vec<Violation>,
    /// End of the run, in nanoseconds of virtual time.
    pub ended_ns: u64,
    /// Frames received by any element.
    pub hops: u64,
    /// Faults that took effect, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Drops of all nodes, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Forged packets by kind.
    pub forged: BTreeMap<&'static str, ForgeryOutcome>,
    /// Evicted receivers, without those that left (D25).
    pub evictions: u64,
    /// Members that left (D30).
    pub leaves: u64,
    pub joins: u64,
    /// Node restarts.
    pub restarts: u64,
    pub groups: Vec<GroupOutcome>,
    /// Timeline of the run, if it was requested.
    pub timeline: Vec<String>,
}

/// How the receiving node treated forged packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForgeryOutcome {
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped by the receiving node, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets forwarded as any other packet.
    pub forwarded: u64,
    /// Packets that changed the node's aggregation of responses or CNPs.
    pub accepted: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GroupOutcome {
    /// When the source had all data acknowledged; `None`: see `failure`.
    pub completed_ns: Option<u64>,
    /// Completion status that ended the source's queue pair.
    pub failure: Option<String>,
    pub ack_timeout_ns: u64,
    /// For each repaired fault: time from its end to the next progress of the source.
    pub recoveries_ns: Vec<u64>,
    /// Failures and recovery steps in order of time.
    pub steps: Vec<Step>,
    /// Request packets sent by the source, retransmissions included.
    pub packets_sent: u64,
    pub packets_retransmitted: u64,
    /// ACK timeouts of the source.
    pub timeouts: u64,
    pub acks_received: u64,
    /// NAKs of all kinds received by the source.
    pub naks_received: u64,
    pub cnps_received: u64,
}

/// A step from a failure to recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Nanoseconds of virtual time.
    pub at_ns: u64,
    pub kind: StepKind,
}

/// Kinds of steps. Nodes and receivers are named by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The source's first progress since the last step.
    Progress,
    /// A node has restarted, without its groups.
    NodeRestarted(usize),
    /// A node has applied its group entry, by a commit or a restore after a restart.
    GroupApplied(usize),
    ReceiverDied(usize),
    /// The first frame has been sent to a receiver since its death.
    SentToDeadReceiver(usize),
    /// An edge has requested a receiver's eviction for the first time (D25).
    EvictionRequested(usize),
}

/// A violated check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Nanoseconds of virtual time.
    pub at_ns: u64,
    pub kind: ViolationKind,
    pub text: String,
}

/// Kinds of violations, the most severe first. Shrinking keeps the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ViolationKind {
    /// A response to the source acknowledges more than every member has (MT-5.3.1-1, MT-5.3.2-1).
    Safety,
    /// A forged packet changed a node's aggregation state.
    ForgeryAccepted,
    /// A receiver's memory differs from the source's data, or a completed message is missing.
    WrongData,
    /// The source's queue pair failed without a fault that explains it.
    UnexpectedFailure,
    /// A group did not complete after the end of all faults.
    Liveness,
    /// Memory, frames or messages were left over, or a bound was exceeded.
    Leak,
    /// A receiver was evicted without cause.
    Membership,
    /// The schedule could not be set up: a defect of the generator.
    Setup,
    /// The program panicked.
    Panic,
}

impl ViolationKind {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ViolationKind::Safety => "safety",
            ViolationKind::ForgeryAccepted => "forgery accepted",
            ViolationKind::WrongData => "wrong data",
            ViolationKind::UnexpectedFailure => "unexpected failure",
            ViolationKind::Liveness => "liveness",
            ViolationKind::Leak => "leak",
            ViolationKind::Membership => "membership",
            ViolationKind::Setup => "setup",
            ViolationKind::Panic => "panic",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ns: {}", self.kind.name(), self.at_ns, self.text)
    }
}
