//! What is done for a packet that meets congestion.

use super::{Node, Notified};
use crate::egress::Congestion;
use crate::frame::Frame;
use crate::pool::Pool;
use srdma_wire::Instant;

/// What becomes of the ECN field of a packet that meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is set to CE, if the packet is ECN-capable (FC-4-5).
    Ce,
    /// It stays as it is.
    None,
}

impl Node {
    /// Decides about a packet that is about to enter a class whose queue is too long: as it will leave, Ethernet header
    /// and all. It enters whatever is answered.
    ///
    /// A Fast CNP that this sends may itself meet congestion; as it carries no data, it is no reason for another.
    pub(super) fn congested(&mut self, now: Instant, congestion: Congestion, frame: &Frame, pool: &mut Pool) -> Mark {
        let by_depth = if congestion.mark { Mark::Ce } else { Mark::None };
        if !congestion.notify {
            return by_depth;
        }
        match self.notify(now, frame, pool) {
            Notified::Nobody => by_depth,
            Notified::Marking => Mark::Ce,
            Notified::Sender => Mark::None,
        }
    }
}
