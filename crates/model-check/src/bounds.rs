//! The bounds of a check.

use crate::hosts::{DuplicateHandling, NakHandling, Reception};
use crate::record::CommitOrder;
use crate::repairs::Repairs;
use srdma_aggregation::Rules;
use srdma_wire::Psn;
use std::fmt;

/// The size of a configuration. Within it, every order of all possible events is explored.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The PSN of the first packet.
    pub initial_psn: Psn,
    /// Packets of the source, at most 6.
    pub packets: u8,
    /// Packets in flight.
    pub window: u8,
    /// Packets of a message, the last of which requests an ACK.
    pub message: u8,
    /// How the source handles NAKs.
    pub source: NakHandling,
    /// How receivers respond to duplicates.
    pub receivers: DuplicateHandling,
    /// Which receivers keep packets behind a gap.
    pub reception: Reception,
    /// The rule that the nodes follow.
    pub rules: Rules,
    /// Which nodes repair.
    pub repairs: Repairs,
    /// Messages in flight on a link in one direction, 2 to 8.
    pub depth: usize,
    /// The numbers of faults.
    pub faults: Faults,
    /// Permitted timeouts without progress after the last fault.
    pub patience: u8,
    /// The order of commits in a re-homing.
    pub order: CommitOrder,
    /// Whether nodes check the epoch of responses from other nodes.
    pub epochs_checked: bool,
}

/// Maximum number of faults of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Messages lost, data and responses.
    pub losses: u8,
    /// Messages that arrive twice.
    pub duplicates: u8,
    /// Messages that overtake others of their link; [`Faults::ANY`]: links are unordered.
    pub overtakings: u8,
    /// Links that delay their messages for any time; [`Faults::ANY`]: any link may be slower than any other at any
    /// time.
    pub delays: u8,
    /// Restarts of nodes.
    pub restarts: u8,
    /// Timeouts of the source while messages are in flight.
    pub early_timeouts: u8,
    /// Ends of a timer of repair while messages are in flight.
    pub early_ticks: u8,
    /// Packets of buffers that prove damaged when they are to be sent again.
    pub damages: u8,
    /// RNR NAKs.
    pub unready: u8,
    /// Receivers that fail with a fatal NAK.
    pub failures: u8,
    /// Receivers that fail without a response.
    pub deaths: u8,
    /// Changes of membership.
    pub changes: u8,
}

impl Faults {
    /// No bound.
    pub const ANY: u8 = u8::MAX;

    /// No faults.
    pub const NONE: Faults = Faults {
        losses: 0,
        duplicates: 0,
        overtakings: 0,
        delays: 0,
        restarts: 0,
        early_timeouts: 0,
        early_ticks: 0,
        damages: 0,
        unready: 0,
        failures: 0,
        deaths: 0,
        changes: 0,
    };
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("losses", self.losses),
            ("duplicates", self.duplicates),
            ("overtakings", self.overtakings),
            ("delays", self.delays),
            ("restarts", self.restarts),
            ("early timeouts", self.early_timeouts),
            ("early ticks", self.early_ticks),
            ("damages", self.damages),
            ("unready", self.unready),
            ("failures", self.failures),
            ("deaths", self.deaths),
            ("changes", self.changes),
        ];
        let mut separator = "";
        for (name, number) in all.into_iter().filter(|&(_, number)| number > 0) {
            match number {
                Faults::ANY => write!(f, "{separator}any {name}")?,
                number => write!(f, "{separator}{name} {number}")?,
            }
            separator = ", ";
        }
        Ok(())
    }
}
