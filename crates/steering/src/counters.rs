//! Counters of steering.

use crate::signal::{Cause, Signal};

/// Signals and reactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Signals, by [`Signal::kind`].
    pub signals: [u64; Signal::KINDS],
    /// Flows that have moved, by [`Cause`].
    pub moves: [u64; Cause::COUNT],
    /// Signals of unknown flows.
    pub unknown_flow: u64,
    /// Signals within the dwell time of their flow.
    pub within_dwell_time: u64,
    /// Fast CNPs of nodes that are not on the path of the flow.
    pub not_on_path: u64,
    /// Moves that failed for lack of a suitable path.
    pub no_alternative: u64,
    /// Flows added to the table.
    pub flows_started: u64,
    /// Flows evicted from the table.
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

    /// The other counters, with their names in metrics and JSON.
    pub fn others(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Counters {
            unknown_flow, within_dwell_time, not_on_path, no_alternative, flows_started, flows_evicted, ..
        } = *self;
        [
            ("unknown_flow", unknown_flow),
            ("within_dwell_time", within_dwell_time),
            ("not_on_path", not_on_path),
            ("no_alternative", no_alternative),
            ("flows_started", flows_started),
            ("flows_evicted", flows_evicted),
        ]
        .into_iter()
    }
}
