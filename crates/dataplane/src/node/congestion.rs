//! What is done for a packet that meets congestion.

use super::Node;
use crate::egress::Congestion;
use crate::element::PortId;
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

/// Where a packet meets congestion.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "who notifies senders asks for more than who only marks")]
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
    pub(super) fn congested(&mut self, meeting: Meeting, _frame: &Frame, _pool: &mut Pool) -> Mark {
        if meeting.congestion.mark { Mark::Ce } else { Mark::None }
    }
}
