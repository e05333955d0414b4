//! Counters of steering.

use crate::signal::{Cause, Signal};

/// Signals and reactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Signals, by [`Signal::kind`].
    pub signals: [u64; Signal::KINDS],
    /// Flows that have moved, by [`Cause`].
    pub moves: [u64; Cause::COUNT],
    /// Signals of flows that are not known.
    pub unknown_flow: u64,
    /// Signals of flows that had moved only just: still about the path that they were on.
    pub too_early: u64,
    /// Fast CNPs of nodes that the flow does not pass, or no longer.
    pub elsewhere: u64,
    /// Flows that were to move and had no better path to go to.
    pub nowhere: u64,
    /// Flows that were seen for the first time, or again after they were forgotten.
    pub flows_begun: u64,
    /// Flows that had to make room for others.
    pub flows_evicted: u64,
}

impl Counters {
    /// Moves of all causes.
    pub fn all_moves(&self) -> u64 {
        self.moves.iter().sum()
    }

    /// Moves of one cause.
    pub fn moves_by(&self, cause: Cause) -> u64 {
        self.moves[cause as usize]
    }

    /// Those that are neither signals nor moves, under the names that metrics and JSON have for them.
    pub fn others(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Counters { unknown_flow, too_early, elsewhere, nowhere, flows_begun, flows_evicted, .. } = *self;
        [
            ("unknown_flow", unknown_flow),
            ("too_early", too_early),
            ("elsewhere", elsewhere),
            ("nowhere", nowhere),
            ("flows_begun", flows_begun),
            ("flows_evicted", flows_evicted),
        ]
        .into_iter()
    }
}
