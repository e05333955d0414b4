//! Queues in front of the wires: one per port, limited in octets.

use crate::element::PortId;
use crate::frame::Frame;
use crate::ring::Ring;

/// The queue of one port.
#[derive(Debug)]
struct Queue {
    frames: Ring,
    octets: usize,
    limit_octets: usize,
}

/// All queues of an element.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    queues: Vec<Queue>,
    ready: Vec<PortId>,
}

impl Egress {
    /// Adds the next port's queue.
    pub(crate) fn add_port(&mut self, limit_octets: usize) {
        self.queues.push(Queue { frames: Ring::default(), octets: 0, limit_octets });
    }

    /// Whether a port exists and its queue has room for a frame of `len` octets.
    #[inline]
    pub(crate) fn has_room(&self, port: PortId, len: usize) -> bool {
        self.queues.get(port.index()).is_some_and(|queue| queue.octets + len <= queue.limit_octets)
    }

    /// Queues a frame of `len` octets at a port that [has room](Self::has_room).
    #[inline(always)]
    pub(crate) fn push(&mut self, port: PortId, frame: Frame, len: usize) {
        let queue = &mut self.queues[port.index()];
        Place { queue, ready: &mut self.ready, port, len }.fill(frame);
    }

    /// A place for a frame of `len` octets at a port; `None` when its queue has no room or there is no such port.
    #[inline]
    pub(crate) fn place(&mut self, port: PortId, len: usize) -> Option<Place<'_>> {
        let queue = self.queues.get_mut(port.index()).filter(|queue| queue.octets + len <= queue.limit_octets)?;
        Some(Place { queue, ready: &mut self.ready, port, len })
    }

    /// The frame that has waited longest.
    #[inline]
    pub(crate) fn dequeue(&mut self, port: PortId) -> Option<Frame> {
        let queue = self.queues.get_mut(port.index())?;
        let frame = queue.frames.pop()?;
        queue.octets -= frame.len();
        Some(frame)
    }

    /// Moves the ports whose queue went from empty to not empty to `wake`. A port may come more than once.
    #[inline]
    pub(crate) fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        wake.append(&mut self.ready);
    }
}

/// Room for one frame in a queue.
#[derive(Debug)]
pub(crate) struct Place<'e> {
    queue: &'e mut Queue,
    ready: &'e mut Vec<PortId>,
    port: PortId,
    len: usize,
}

impl Place<'_> {
    /// Queues the frame. In line, so that a frame is made where it waits.
    #[inline(always)]
    pub(crate) fn fill(self, frame: Frame) {
        if self.queue.frames.is_empty() {
            self.ready.push(self.port);
        }
        self.queue.octets += self.len;
        self.queue.frames.push(frame);
    }
}
