//! Device under test: it receives frames at one driver and sends them at another.

use srdma_dataplane::Node;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_io::Driver;
use srdma_wire::Instant;
use std::io;
use std::time;

/// Frames taken in at once, as the daemon takes them.
const BATCH: usize = 64;

const IN: PortId = PortId(0);
const OUT: PortId = PortId(1);

/// Drivers, their pool, and what happens between them.
pub(super) struct Device<'d> {
    drivers: &'d mut [Box<dyn Driver>; 2],
    pool: &'d mut Pool,
    frames: Vec<Frame>,
    work: Action<'d>,
}

/// Action between the drivers.
pub(super) enum Action<'d> {
    /// MAC addresses are swapped, nothing else.
    Reflecting,
    /// A node does its work, in the steps of the daemon's loop.
    Forwarding { node: &'d mut Node, clock: time::Instant },
    /// Nothing comes in; frames that are there already are sent, each so many times in a row.
    Sending { ready_made: &'d [Frame], times: usize, next: usize },
}

impl<'d> Device<'d> {
    pub(super) fn new(drivers: &'d mut [Box<dyn Driver>; 2], pool: &'d mut Pool, work: Action<'d>) -> Self {
        Device { drivers, pool, frames: Vec::with_capacity(BATCH), work }
    }

    /// One round of the loop, in which at most `limit` frames of its own making are sent; returns how many frames were.
    pub(super) fn round(&mut self, limit: usize) -> io::Result<usize> {
        let [input, output] = &mut *self.drivers;
        let room = output.room(self.pool);
        let mut sent = 0;
        match &mut self.work {
            Action::Reflecting => {
                input.receive(self.pool, &mut self.frames, BATCH.min(room))?;
                for mut frame in self.frames.drain(..) {
                    swap_addresses(frame.head_mut(self.pool));
                    output.push(frame, self.pool);
                    sent += 1;
                }
            }
            Action::Forwarding { node, clock } => {
                input.receive(self.pool, &mut self.frames, BATCH)?;
                let now = Instant::ZERO + clock.elapsed();
                if !self.frames.is_empty() {
                    node.receive(now, IN, &mut self.frames, self.pool);
                }
                if node.next_deadline().is_some_and(|deadline| deadline <= now) {
                    node.tick(now, self.pool);
                }
                while sent < room
                    && let Some(frame) = node.dequeue(now, OUT, self.pool)
                {
                    output.push(frame, self.pool);
                    sent += 1;
                }
            }
            Action::Sending { ready_made, times, next } => {
                while sent < room.min(limit) {
                    output.push(again(&ready_made[*next / *times % ready_made.len()], self.pool), self.pool);
                    *next += 1;
                    sent += 1;
                }
            }
        }
        output.flush(self.pool)?;
        Ok(sent)
    }

    /// Sends until nothing waits any more.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let [_, output] = &mut *self.drivers;
        while !output.is_flushed() {
            output.room(self.pool);
            output.flush(self.pool)?;
        }
        Ok(())
    }
}

/// A frame of the same octets, that holds the same chunks.
pub(super) fn again(frame: &Frame, pool: &mut Pool) -> Frame {
    pool.share(frame.first().chunk(), 1);
    let mut copy = Frame::of_segment(frame.first());
    for segment in frame.body() {
        pool.share(segment.chunk(), 1);
        copy.append(*segment);
    }
    copy
}

fn swap_addresses(head: &mut [u8]) {
    if let Some((destination, source)) = head.split_at_mut_checked(6)
        && let Some(source) = source.first_chunk_mut::<6>()
    {
        destination.swap_with_slice(source);
    }
}
