//! The interface of everything on a link: a value that receives frames and time, and returns frames and a deadline.

use crate::frame::Frame;
use crate::pool::Pool;
use srdma_wire::Instant;

/// A port of an element, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl PortId {
    /// As an index into the element's list of ports.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A node or a host. It reads no clock and opens no socket: simulator, daemon and tests drive it alike.
///
/// Frames wait in the element's own egress queues. The driver of a port asks for the next one when the wire has room.
pub trait Element {
    /// Takes the frames that arrived at a port; leaves `frames` empty. The first segment of a frame has at least its
    /// first [`HEADER_SPAN`] octets, or all, and is the only reference to its chunk: headers are edited in place.
    ///
    /// [`HEADER_SPAN`]: crate::HEADER_SPAN
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool);

    /// Does what was due by now.
    fn tick(&mut self, now: Instant, pool: &mut Pool);

    /// When [`Element::tick`] is wanted next. Earlier calls do no harm.
    fn next_deadline(&self) -> Option<Instant>;

    /// The next frame to send at a port.
    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame>;

    /// Adds the ports whose queue went from empty to not empty since the last call; one may come twice.
    fn take_ready(&mut self, wake: &mut Vec<PortId>);
}
