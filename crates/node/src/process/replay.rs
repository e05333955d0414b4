//! A node, its clock and its wires.

use super::report::Report;
use srdma_dataplane::{Element, Frame, Node, Pool, PortId};
use srdma_wire::Instant;
use std::time::Duration;

/// Chunks of each size that frames may hold: those of one packet's copies, since each port's wire takes them at once.
const POOL_CHUNKS: usize = 1 << 18;

/// What becomes of the frames that leave the node.
pub(crate) trait Sink {
    /// Why it cannot take one.
    type Error;

    /// Takes a frame, whose octets are those of `pieces`, that leaves a port at `time`.
    fn write<'p>(
        &mut self,
        port: PortId,
        time: Instant,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), Self::Error>;
}

/// A node that is handed packets with their times.
///
/// ```text
/// packet at t: tick at each deadline before t ─→ receive at t ─→ all queues to the outputs
/// run_on(d):   tick at each deadline up to d after the last packet
/// ```
pub(crate) struct Replay<S> {
    node: Node,
    sink: S,
    pool: Pool,
    now: Instant,
    first: Option<Instant>,
    packets: u64,
    too_long: u64,
    /// Kept for its memory.
    frames: Vec<Frame>,
    /// Kept for its memory.
    ready: Vec<PortId>,
}

impl<S: Sink> Replay<S> {
    pub(crate) fn new(node: Node, sink: S) -> Self {
        Replay {
            node,
            sink,
            pool: Pool::new(POOL_CHUNKS),
            now: Instant::ZERO,
            first: None,
            packets: 0,
            too_long: 0,
            frames: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Hands a packet over at `time`, or at the node's time if that is later.
    pub(crate) fn packet(&mut self, port: PortId, time: Instant, octets: &[u8]) -> Result<(), S::Error> {
        self.run_until(time)?;
        self.first.get_or_insert(self.now);
        self.packets += 1;
        match Frame::from_octets(octets, &mut self.pool) {
            Some(frame) => self.frames.push(frame),
            None => self.too_long += 1,
        }
        self.node.receive(self.now, port, &mut self.frames, &mut self.pool);
        self.drain()
    }

    /// Lets time pass without packets.
    pub(crate) fn run_on(&mut self, duration: Duration) -> Result<(), S::Error> {
        self.run_until(self.now + duration)
    }

    /// What happened so far.
    pub(crate) fn report(&self) -> Report {
        Report::new(&self.node, self.packets, self.too_long, self.first, self.now)
    }

    /// The node, to ask it what happened.
    pub(crate) fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    pub(crate) fn into_sink(self) -> S {
        self.sink
    }

    /// Ticks at each deadline up to `time`, which becomes now unless it is past.
    pub(crate) fn run_until(&mut self, time: Instant) -> Result<(), S::Error> {
        while let Some(deadline) = self.node.next_deadline().filter(|deadline| *deadline <= time) {
            self.now = self.now.max(deadline);
            self.node.tick(self.now, &mut self.pool);
            self.drain()?;
        }
        self.now = self.now.max(time);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), S::Error> {
        self.node.take_ready(&mut self.ready);
        for port in self.ready.drain(..) {
            while let Some(frame) = self.node.dequeue(self.now, port, &mut self.pool) {
                let written = self.sink.write(port, self.now, frame.pieces(&self.pool));
                frame.release(&mut self.pool);
                written?;
            }
        }
        Ok(())
    }
}
