//! What is done for a packet that meets congestion.

use super::{Node, Notified};
use crate::egress::Congestion;
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::Instant;

/// What becomes of the ECN field of a packet that meets congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is set to CE, if the packet is ECN-capable (FC-4-5).
    Ce,
    /// It stays as it is.
    None,
}

/// Where a packet meets congestion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    /// When.
    pub(super) now: Instant,
    /// Where it came in; `None` when the node made it.
    pub(super) ingress: Option<PortId>,
    /// The port that it is to leave by.
    pub(super) port: PortId,
    /// Its class there.
    pub(super) class: usize,
    /// What it meets.
    pub(super) congestion: Congestion,
}

impl Node {
    /// Decides about a packet that is about to enter a class whose queue is too long: as it will leave, Ethernet header
    /// and all. It enters whatever is answered.
    ///
    /// A Fast CNP that this sends may itself meet congestion; as it carries no data, it is no reason for another.
    pub(super) fn congested(&mut self, meeting: Meeting, frame: &Frame, pool: &mut Pool) -> Mark {
        if meeting.congestion.press_back {
            self.press_back(&meeting, frame, pool);
        }
        let by_depth = if meeting.congestion.mark { Mark::Ce } else { Mark::None };
        if !meeting.congestion.notify {
            return by_depth;
        }
        match self.tell(meeting.now, frame, Some(&meeting), pool) {
            Notified::Nobody => by_depth,
            Notified::Marking => Mark::Ce,
            Notified::Sender => Mark::None,
        }
    }
}
