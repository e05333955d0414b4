//! A node, its clock and its wires.

use super::output::{OutputError, Outputs};
use super::report::Report;
use srdma_dataplane::{Element, Frame, Node, Pool, PortId};
use srdma_wire::Instant;
use std::time::Duration;

/// Chunks of each size that frames may hold: those of one packet's copies, since each port's wire takes them at once.
const POOL_CHUNKS: usize = 1 << 18;

/// A node that is handed packets with their times.
///
/// ```text
/// packet at t: tick at each deadline before t ─→ receive at t ─→ all queues to the outputs
/// run_on(d):   tick at each deadline up to d after the last packet
/// ```
pub(super) struct Replay {
    node: Node,
    outputs: Outputs,
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

impl Replay {
    pub(super) fn new(node: Node, outputs: Outputs) -> Self {
        Replay {
            node,
            outputs,
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
    pub(super) fn packet(&mut self, port: PortId, time: Instant, octets: &[u8]) -> Result<(), OutputError> {
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
    pub(super) fn run_on(&mut self, duration: Duration) -> Result<(), OutputError> {
        self.run_until(self.now + duration)
    }

    /// What happened so far.
    pub(super) fn report(&self) -> Report {
        Report::new(&self.node, self.packets, self.too_long, self.first, self.now)
    }

    pub(super) fn into_outputs(self) -> Outputs {
        self.outputs
    }

    /// Ticks at each deadline up to `time`, which becomes now unless it is past.
    fn run_until(&mut self, time: Instant) -> Result<(), OutputError> {
        while let Some(deadline) = self.node.next_deadline().filter(|deadline| *deadline <= time) {
            self.now = self.now.max(deadline);
            self.node.tick(self.now, &mut self.pool);
            self.drain()?;
        }
        self.now = self.now.max(time);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), OutputError> {
        self.node.take_ready(&mut self.ready);
        for port in self.ready.drain(..) {
            while let Some(frame) = self.node.dequeue(self.now, port, &mut self.pool) {
                let written = self.outputs.write(port, self.now, frame.pieces(&self.pool));
                frame.release(&mut self.pool);
                written?;
            }
        }
        Ok(())
    }
}
