//! The parameters of a group's repair at one node.

use std::time::Duration;

/// Parameters that follow from the group's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RepairRules {
    /// Packets that the buffer holds. With room for the source's window nothing is ever dropped from it.
    pub capacity: u32,
    /// Whether the parent repairs. The source does not.
    pub parent_repairs: bool,
    /// Time that a gap waits until all branches have acknowledged what is before it, before the source is sent a NAK of
    /// the minimum (R5): T_hold of this node and of all levels below.
    pub gap_hold: Duration,
    /// Round trip to the parent and to a branch, until one is measured.
    pub initial_round_trip: Duration,
    /// The source's ACK timeout. Probes begin within half of it; RNR NAKs are waited for within a quarter of it.
    pub ack_timeout: Duration,
}

impl RepairRules {
    /// The greatest capacity: PSNs in the buffer are compared serially.
    pub const MAX_CAPACITY: u32 = 1 << 16;

    /// The longest time that a branch may be silent before it is probed.
    pub(crate) fn longest_probe(&self) -> Duration {
        self.ack_timeout / 2
    }

    /// Time without data after which no source waits for an acknowledgement: it would have sent again.
    pub(crate) fn silence(&self) -> Duration {
        self.ack_timeout * 4
    }

    /// The longest time that a receiver may be not ready before the source is sent its RNR NAK.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.ack_timeout / 4
    }
}
