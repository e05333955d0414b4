//! Phases of a group's change, and faults that wait for one.
#![allow(missing_docs, reason = "names and types explain the other items")]

use crate::adapter;
use crate::world::World;
use serde::{Deserialize, Serialize};
use srdma_api::{GroupState, SourceOrder};
use srdma_wire::Instant;

/// What a group's lifecycle does, as the API and the last order or write show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    Open,
    Preparing,
    Storing,
    Committing,
    Restoring,
    Removing,
    Aborting,
    Pausing,
    /// The source is quiet for a receiver that has not said that it is ready (D187).
    Reserving,
    /// Its commit waits for the end of the group that it resumes (D193).
    Succeeding,
    Ready,
    Closing,
    /// Its nodes have not reported since the controller's start.
    Verifying,
    /// Its nodes contradict each other.
    Stopped,
    /// The controller is down.
    Down,
}

impl Phase {
    /// The phases that faults are aimed at: all.
    pub const AIMED: [Phase; 15] = [
        Phase::Open,
        Phase::Preparing,
        Phase::Storing,
        Phase::Committing,
        Phase::Restoring,
        Phase::Removing,
        Phase::Aborting,
        Phase::Pausing,
        Phase::Ready,
        Phase::Closing,
        Phase::Verifying,
        Phase::Stopped,
        Phase::Down,
        Phase::Reserving,
        Phase::Succeeding,
    ];

    /// Why a fault cannot meet this phase.
    pub fn excludes(self, fault: &str) -> Option<&'static str> {
        let excluded = EXCLUDED.iter().find(|(other, phase, _)| (*other, *phase) == (fault, self));
        excluded.map(|(_, _, reason)| *reason)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Phase::Open => "open",
            Phase::Preparing => "preparing",
            Phase::Storing => "storing",
            Phase::Committing => "committing",
            Phase::Restoring => "restoring",
            Phase::Removing => "removing",
            Phase::Aborting => "aborting",
            Phase::Pausing => "pausing",
            Phase::Reserving => "reserving",
            Phase::Succeeding => "succeeding",
            Phase::Ready => "ready",
            Phase::Closing => "closing",
            Phase::Verifying => "verifying",
            Phase::Stopped => "stopped",
            Phase::Down => "down",
        }
    }
}

/// Pairs of a fault and a phase that do not occur, and why.
pub const EXCLUDED: [(&str, Phase, &str); 4] = [
    ("controller crash", Phase::Down, "no controller runs that could crash"),
    ("leader deposed", Phase::Down, "no controller leads"),
    ("etcd cut", Phase::Down, "no controller leads"),
    ("drain", Phase::Down, "a request of the operator to drain a node that is not answered is not repeated"),
];

/// An event waits for its phase no longer than this: detection of a dead node, and what comes before and follows it.
const PATIENCE_NS: u64 = 6_500_000_000;

/// An event that waits for a phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aimed {
    position: usize,
    phase: Phase,
    until: Instant,
}

impl World<'_> {
    /// Counts the phase of each group's change at a fault.
    pub(crate) fn note_phases(&mut self, fault: &'static str) {
        let phases: Vec<Phase> = (0..self.flows.len()).filter_map(|flow| self.phase(flow)).collect();
        for phase in phases.into_iter().filter(|phase| phase.excludes(fault).is_none()) {
            *self.outcome.phases.entry((fault, phase)).or_default() += 1;
        }
    }

    /// Lets an event wait for a phase of any group.
    pub(crate) fn aim(&mut self, position: usize, phase: Phase) {
        let until = self.now().after_ns(PATIENCE_NS);
        self.aimed.push(Aimed { position, phase, until });
        self.fire();
    }

    /// Applies the events whose phase has come, and drops those that have waited for too long.
    pub(crate) fn fire(&mut self) {
        if self.aimed.is_empty() {
            return;
        }
        let now = self.now();
        self.aimed.retain(|aimed| now < aimed.until);
        let phases: Vec<Phase> = (0..self.flows.len()).filter_map(|flow| self.phase(flow)).collect();
        if let Some(due) = self.aimed.iter().position(|aimed| phases.contains(&aimed.phase)) {
            let Aimed { position, .. } = self.aimed.remove(due);
            self.apply_event(position);
        }
    }

    fn phase(&self, flow: usize) -> Option<Phase> {
        let Some(core) = self.controller.as_ref().map(|controller| controller.core()) else { return Some(Phase::Down) };
        let id = self.flows[flow].id.filter(|_| !self.flows[flow].is_over)?;
        Some(match adapter::shown_state(core, id)? {
            GroupState::Open => Phase::Open,
            GroupState::Ready => Phase::Ready,
            GroupState::Closing | GroupState::Closed => Phase::Closing,
            GroupState::Verifying => Phase::Verifying,
            GroupState::Stopped => Phase::Stopped,
            GroupState::Creating if adapter::awaits_former(core, id) => Phase::Succeeding,
            GroupState::Creating | GroupState::Changing => match core.source_order(id) {
                SourceOrder::Pause { .. } => Phase::Pausing,
                _ if core.is_reserving(id) => Phase::Reserving,
                SourceOrder::Wait | SourceOrder::Send { .. } | SourceOrder::End => {
                    self.activity.get(&id).copied().unwrap_or(Phase::Preparing)
                }
            },
        })
    }
}
