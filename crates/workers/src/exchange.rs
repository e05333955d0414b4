//! Hand-over of packets between workers in threads.
//!
//! From each worker to each other there is a bounded channel of batches, and one back for their memory: after the first
//! packets nothing is allocated, and no worker waits for another. A worker whose channel is full has its packets dropped
//! by the sender, counted as `handover_full`.

use crate::batch::Batch;
use srdma_dataplane::{DropReason, Handover, Node};
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Batches on their way from one worker to another, at most.
const BATCHES: usize = 16;

/// Packets that were exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeCounters {
    /// Handed over to other workers.
    pub handed_over: u64,
    /// Taken over from other workers.
    pub taken_over: u64,
}

/// A worker's side of the hand-over.
#[derive(Debug)]
pub struct Exchange {
    index: usize,
    /// To each worker; `None` to itself.
    outgoing: Vec<Option<Outgoing>>,
    incoming: Vec<Incoming>,
    /// The worker whose packets are taken next.
    turn: usize,
    /// Whether each worker sleeps, or is about to.
    asleep: Arc<[AtomicBool]>,
    counters: ExchangeCounters,
    /// Kept for its memory.
    packets: Vec<Handover>,
}

/// The way to another worker.
#[derive(Debug)]
struct Outgoing {
    batch: Batch,
    batches: SyncSender<Batch>,
    empty: Receiver<Batch>,
}

/// The way from another worker.
#[derive(Debug)]
struct Incoming {
    batch: Batch,
    batches: Receiver<Batch>,
    empty: SyncSender<Batch>,
}

/// Connects so many workers; the sides are in their order.
pub fn exchange(workers: usize) -> Vec<Exchange> {
    let asleep: Arc<[AtomicBool]> = (0..workers).map(|_| AtomicBool::new(false)).collect();
    let side = |index| Exchange {
        index,
        outgoing: Vec::new(),
        incoming: Vec::new(),
        turn: 0,
        asleep: Arc::clone(&asleep),
        counters: ExchangeCounters::default(),
        packets: Vec::new(),
    };
    let mut sides: Vec<Exchange> = (0..workers).map(side).collect();
    for from in 0..workers {
        for to in 0..workers {
            if from == to {
                sides[from].outgoing.push(None);
                continue;
            }
            let (batches, received_batches) = sync_channel(BATCHES);
            // Every batch that is on its way or with the receiver has a place.
            let (empty, returned) = sync_channel(BATCHES + 1);
            sides[from].outgoing.push(Some(Outgoing { batch: Batch::default(), batches, empty: returned }));
            sides[to].incoming.push(Incoming { batch: Batch::default(), batches: received_batches, empty });
        }
    }
    sides
}

impl Exchange {
    /// Passes on what a node has for other workers. Adds the workers to `wake` that sleep and have packets now.
    #[inline]
    pub fn send(&mut self, node: &mut Node, pool: &mut Pool, wake: &mut Vec<usize>) {
        node.take_handovers(&mut self.packets);
        if !self.packets.is_empty() {
            self.copy(node, pool);
        }
        for to in 0..self.outgoing.len() {
            if let Some(outgoing) = &mut self.outgoing[to]
                && !outgoing.batch.is_empty()
                && outgoing.pass()
            {
                self.note_sleeper(to, wake);
            }
        }
    }

    fn copy(&mut self, node: &mut Node, pool: &mut Pool) {
        for Handover { to, note, frame } in self.packets.drain(..) {
            if let Some(Some(outgoing)) = self.outgoing.get_mut(to)
                && (!outgoing.batch.is_full() || outgoing.pass())
            {
                outgoing.batch.add(note, &frame, pool);
                self.counters.handed_over += 1;
            } else {
                node.drop_handover(&note, DropReason::HandoverFull);
            }
            frame.release(pool);
        }
    }

    fn note_sleeper(&self, worker: usize, wake: &mut Vec<usize>) {
        // Either this sees the flag, or the sleeper sees the batch.
        fence(Ordering::SeqCst);
        if self.asleep[worker].load(Ordering::Relaxed) && self.asleep[worker].swap(false, Ordering::SeqCst) {
            wake.push(worker);
        }
    }

    /// Has a node process up to about `limit` packets that other workers have handed over; returns how many.
    #[inline]
    pub fn receive(&mut self, now: Instant, node: &mut Node, pool: &mut Pool, limit: usize) -> usize {
        let mut count = 0;
        for _ in 0..self.incoming.len() {
            self.turn = (self.turn + 1) % self.incoming.len();
            let incoming = &mut self.incoming[self.turn];
            while count < limit && incoming.has_packets() {
                while let Some((note, octets)) = incoming.batch.take() {
                    count += 1;
                    match Frame::from_octets(octets, pool) {
                        Some(frame) => node.take_over(now, &note, frame, pool),
                        None => node.drop_handover(&note, DropReason::NoBuffer),
                    }
                }
            }
        }
        self.counters.taken_over += count as u64;
        count
    }

    /// Announces that this worker is about to sleep: others wake it when they have packets for it. Returns whether it
    /// may; there are packets otherwise.
    pub fn fall_asleep(&mut self) -> bool {
        self.asleep[self.index].store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let may_sleep = !self.incoming.iter_mut().any(Incoming::has_packets);
        if !may_sleep {
            self.wake_up();
        }
        may_sleep
    }

    /// This worker sleeps no longer.
    pub fn wake_up(&self) {
        self.asleep[self.index].store(false, Ordering::SeqCst);
    }

    /// Whether packets for other workers wait for room in a channel.
    pub fn is_backlogged(&self) -> bool {
        self.outgoing.iter().flatten().any(|outgoing| !outgoing.batch.is_empty())
    }

    /// Packets that were exchanged.
    pub fn counters(&self) -> ExchangeCounters {
        self.counters
    }
}

impl Outgoing {
    /// Passes the batch on, if the channel has room. Returns whether it had; the batch is empty then.
    fn pass(&mut self) -> bool {
        match self.batches.try_send(std::mem::take(&mut self.batch)) {
            Ok(()) => {
                self.batch = self.empty.try_recv().unwrap_or_default();
                true
            }
            // A worker that has ended takes no packets: the node ends with it.
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                self.batch = batch;
                false
            }
        }
    }
}

impl Incoming {
    /// Whether there are packets; fetches the next batch if there is one.
    fn has_packets(&mut self) -> bool {
        if self.batch.is_empty() {
            let Ok(next) = self.batches.try_recv() else { return false };
            let mut empty = std::mem::replace(&mut self.batch, next);
            empty.clear();
            // Without room the memory is given back to the system.
            let _ = self.empty.try_send(empty);
        }
        true
    }
}
