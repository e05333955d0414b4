//! What came of one run of a schedule.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Everything that a run is judged and counted by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What is wrong, in the order of time; none when all is well.
    pub complaints: Vec<Complaint>,
    /// When the run was over, in nanoseconds of virtual time.
    pub ended_ns: u64,
    /// Frames that arrived anywhere.
    pub hops: u64,
    /// Faults by name, and how often each really took place.
    pub faults: BTreeMap<&'static str, u64>,
    /// What was dropped anywhere in the nodes, by the reason's name.
    pub drops: BTreeMap<&'static str, u64>,
    /// What became of forged packets, by what they were.
    pub forged: BTreeMap<&'static str, Fates>,
    /// Receivers that were evicted against their will (D25).
    pub evictions: u64,
    /// Receivers that left by their own wish (D30).
    pub leaves: u64,
    /// Receivers that joined.
    pub joins: u64,
    /// Nodes that came back.
    pub restarts: u64,
    /// The groups, in order.
    pub groups: Vec<GroupOutcome>,
    /// One line for each thing that happened, when the run was asked to tell.
    pub timeline: Vec<String>,
}

/// What became of forged packets at the node that got them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fates {
    /// How many were sent.
    pub sent: u64,
    /// Those that were dropped at once, by the reason's name.
    pub refused: BTreeMap<&'static str, u64>,
    /// Those that were passed on as anybody's packets are.
    pub passed_on: u64,
    /// Those after which the node's aggregation of responses or CNPs was another one.
    pub believed: u64,
}

/// What came of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupOutcome {
    /// When the source had everything acknowledged; `None`: it failed, as `failure` says.
    pub completed_ns: Option<u64>,
    /// Why the source's queue pair failed.
    pub failure: Option<String>,
    /// How long the source's ACK timer runs.
    pub ack_timeout_ns: u64,
    /// For each failure that was repaired: from the end of the fault to the next progress of the source.
    pub recoveries_ns: Vec<u64>,
    /// What failed, and what was done about it, in the order of time.
    pub steps: Vec<Step>,
    /// Request packets that the source sent, retransmissions included.
    pub packets_sent: u64,
    /// Those that had been sent before.
    pub packets_retransmitted: u64,
    /// Times that the source's ACK timer ran out.
    pub timeouts: u64,
    /// ACKs, NAKs and CNPs that reached the source.
    pub acks_received: u64,
    /// NAKs of all kinds that reached the source.
    pub naks_received: u64,
    /// CNPs that reached the source.
    pub cnps_received: u64,
}

/// A step on a group's way from a failure to going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, in nanoseconds of virtual time.
    pub at_ns: u64,
    /// What.
    pub kind: StepKind,
}

/// What a step is. Nodes and receivers are named by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The source was told of something new, for the first time since the step before.
    Progress,
    /// A node that was down runs again, without its groups.
    NodeBack(usize),
    /// A node has its part of the group's record, by a commit or given back after a restart.
    InEffect(usize),
    /// A receiver died.
    Death(usize),
    /// The first frame since then was sent to a dead receiver.
    Unanswered(usize),
    /// An edge asked for a receiver's eviction, for the first time (D25).
    EvictionWanted(usize),
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// When it was seen, in nanoseconds of virtual time.
    pub at_ns: u64,
    /// What kind of thing it is.
    pub kind: ComplaintKind,
    /// What exactly.
    pub text: String,
}

/// Kinds of complaints, the gravest first. Shrinking keeps the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ComplaintKind {
    /// The source was told of more than every receiver has (MT-5.3.1-1, MT-5.3.2-1).
    Untrue,
    /// A forged packet changed what a node aggregates.
    Believed,
    /// A receiver's memory holds what the source never sent, or what is not there is said to be complete.
    WrongData,
    /// The source's queue pair failed though nothing that happened entitles it to.
    Failed,
    /// A group is not complete though all faults have long ended.
    Stuck,
    /// State, frames or messages are left where none may be, or a bound was passed.
    Leak,
    /// A receiver was evicted that did nothing wrong, or one is a member that must not be.
    Membership,
    /// The schedule could not be set up: the generator's fault.
    SetUp,
    /// The program gave up.
    Panic,
}

impl ComplaintKind {
    /// The kind in a word or two.
    pub const fn name(self) -> &'static str {
        match self {
            ComplaintKind::Untrue => "untrue",
            ComplaintKind::Believed => "believed",
            ComplaintKind::WrongData => "wrong data",
            ComplaintKind::Failed => "failed",
            ComplaintKind::Stuck => "stuck",
            ComplaintKind::Leak => "leak",
            ComplaintKind::Membership => "membership",
            ComplaintKind::SetUp => "set-up",
            ComplaintKind::Panic => "panic",
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ns: {}", self.kind.name(), self.at_ns, self.text)
    }
}
