//! The outcome of a run.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::phase::Phase;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Violations and figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// In order of time; empty if the run passed.
    pub violations: Vec<Violation>,
    pub ended_ns: u64,
    /// Frames received by any element of the data network.
    pub hops: u64,
    /// Messages, orders, durable writes, requests and faults.
    pub events: u64,
    /// Those events by name.
    pub counts: BTreeMap<&'static str, u64>,
    /// Faults by name and phase of a group.
    pub phases: BTreeMap<(&'static str, Phase), u64>,
    /// Responses to sources that were checked.
    pub responses: u64,
    /// Members whose memory was compared with a response.
    pub comparisons: u64,
    /// Groups that were ready at the end.
    pub ready: u64,
    /// Digest of all events with their times.
    pub digest: u64,
    pub timeline: Vec<String>,
}

/// A violated check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub at_ns: u64,
    pub kind: ViolationKind,
    pub finding: Finding,
    pub text: String,
}

/// Kinds of violations, the most severe first. Shrinking keeps kind and finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ViolationKind {
    /// A response to the source covers what a member, as the API shows it, does not have (MT-5.3.1-1, MT-5.3.2-1).
    Safety,
    /// A receiver's memory differs from the source's data.
    WrongData,
    /// An edge copies data to a receiver whose acknowledgement it does not wait for (D96).
    Unawaited,
    /// A node copies or acknowledges although its lease is over (D122).
    Lease,
    /// A receiver that joins in two steps is a member, and was not ready from its first PSN on (D187).
    Unready,
    /// A store has other rows than were committed, or commits writes of a former leader.
    Store,
    /// A group that was resumed is not closed, or one that has ended without its application has no successor (D193).
    Succession,
    /// A group is shown as ready, but nodes do not have what its record says.
    NotAsShown,
    /// A group is neither ready nor closed, and its failure names nothing.
    Convergence,
    /// A node has not answered an order, and neither `awaited` nor `failure` of its group names it.
    Unanswered,
    /// A group is ready, but its source makes no progress.
    Liveness,
    /// A receiver that is dead, or whose edge is, was not evicted although the policy demands it (D25).
    Eviction,
    /// A receiver is left at a dead edge, and another edge could serve it (D280).
    Unserved,
    /// The source is quiet for a receiver that is not ready, for longer than a reservation lasts (D188).
    Held,
    /// A node or a source sends requests without delay.
    Busy,
    /// The schedule could not be set up, or a store could not be read.
    Setup,
    Panic,
}

/// Why a violation occurs, as far as the world shows it. The known ones are described in `docs/chaos.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Finding {
    /// A node that is alive but not heard is taken for dead and skipped.
    SilentNodeSkipped,
    /// Epochs are not bound to a store: a node has a group entry of another or a later store.
    OtherStore,
    /// After a restart the controller takes a node with an old group entry for settled.
    StaleNodeAccepted,
    /// A node that died while no controller ran is never missed.
    DeathUnnoticed,
    /// The receivers of a dead edge are not evicted.
    DeadEdgeKept,
    /// A join or a re-homing keeps the former link MTU.
    LinkMtuKept,
    /// A group is shown as ready although a node of its tree is dead.
    DeadNodeNotNamed,
    /// A node has prepared a later epoch than the controller remembers, and answers no order.
    NodeAhead,
    /// A leave during a creation that was aborted is forgotten: the next commit includes the receiver.
    LeaveForgotten,
    /// A leave during the receiver's join is refused, and the receiver becomes a member.
    LeaveRefused,
    /// A node that dies after a change is requested and before it begins is awaited for ever.
    DeadNodeAwaited,
    /// A source that may send is told to wait, and asks again without delay.
    SourceAsksAgain,
    /// A node that returns while its group is being closed keeps it.
    LeftoverKept,
    /// None of these.
    Unknown,
}

impl ViolationKind {
    pub const fn name(self) -> &'static str {
        match self {
            ViolationKind::Safety => "safety",
            ViolationKind::WrongData => "wrong data",
            ViolationKind::Unawaited => "unawaited copy",
            ViolationKind::Lease => "lease",
            ViolationKind::Unready => "unready member",
            ViolationKind::Store => "store",
            ViolationKind::Succession => "succession",
            ViolationKind::NotAsShown => "not as shown",
            ViolationKind::Convergence => "convergence",
            ViolationKind::Unanswered => "unanswered order",
            ViolationKind::Liveness => "liveness",
            ViolationKind::Eviction => "eviction",
            ViolationKind::Unserved => "unserved receiver",
            ViolationKind::Held => "source held",
            ViolationKind::Busy => "busy",
            ViolationKind::Setup => "setup",
            ViolationKind::Panic => "panic",
        }
    }
}

impl Finding {
    pub const ALL: [Finding; 14] = [
        Finding::SilentNodeSkipped,
        Finding::OtherStore,
        Finding::StaleNodeAccepted,
        Finding::DeathUnnoticed,
        Finding::DeadEdgeKept,
        Finding::LinkMtuKept,
        Finding::DeadNodeNotNamed,
        Finding::NodeAhead,
        Finding::LeaveForgotten,
        Finding::LeaveRefused,
        Finding::DeadNodeAwaited,
        Finding::SourceAsksAgain,
        Finding::LeftoverKept,
        Finding::Unknown,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Finding::SilentNodeSkipped => "silent node skipped",
            Finding::OtherStore => "entry of another store",
            Finding::StaleNodeAccepted => "stale node accepted",
            Finding::DeathUnnoticed => "death unnoticed",
            Finding::DeadEdgeKept => "receivers of a dead edge kept",
            Finding::LinkMtuKept => "link MTU kept",
            Finding::DeadNodeNotNamed => "dead node not named",
            Finding::NodeAhead => "node ahead",
            Finding::LeaveForgotten => "leave forgotten",
            Finding::LeaveRefused => "leave refused",
            Finding::DeadNodeAwaited => "dead node awaited",
            Finding::SourceAsksAgain => "source asks again",
            Finding::LeftoverKept => "leftover kept",
            Finding::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) at {} ns: {}", self.kind.name(), self.finding.name(), self.at_ns, self.text)
    }
}
