//! The other data threads of a node, as one of them sees them (D208).

use nix::sys::eventfd::EventFd;
use srdma_dataplane::{Node, Worker};
use srdma_frame::Pool;
use srdma_wire::Instant;
use srdma_workers::{Exchange, exchange};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest time between two reports of a thread about what it has received, while there are BFD sessions. A failure
/// is detected that much later.
const REPORT_PERIOD: Duration = Duration::from_millis(5);

/// A thread's connection to the others.
#[derive(Debug)]
pub(super) struct Coworkers {
    worker: Worker,
    pub(super) exchange: Exchange,
    /// Of each thread: readable when there is something for it.
    bells: Arc<[Arc<EventFd>]>,
    /// Of each thread: the time up to which it has received all frames and handed them over (D109).
    received: Arc<[AtomicU64]>,
    /// Kept for its memory.
    sleepers: Vec<usize>,
}

impl Coworkers {
    /// Connects the threads of a node, of which these are the bells.
    pub(super) fn connect(bells: &[Arc<EventFd>]) -> Vec<Self> {
        let received: Arc<[AtomicU64]> = bells.iter().map(|_| AtomicU64::new(0)).collect();
        let bells: Arc<[Arc<EventFd>]> = bells.into();
        let sides = exchange(bells.len()).into_iter().zip(Worker::all(bells.len() as u16));
        let side = |(exchange, worker)| Coworkers {
            worker,
            exchange,
            bells: Arc::clone(&bells),
            received: Arc::clone(&received),
            sleepers: Vec::new(),
        };
        sides.map(side).collect()
    }

    pub(super) fn worker(&self) -> Worker {
        self.worker
    }

    /// Passes on what the node has for other workers, and wakes those that sleep.
    #[inline]
    pub(super) fn pass(&mut self, node: &mut Node, pool: &mut Pool) {
        if self.worker.is_alone() {
            return;
        }
        self.exchange.send(node, pool, &mut self.sleepers);
        for sleeper in self.sleepers.drain(..) {
            // It cannot be full: that takes 2^64 packets.
            let _ = self.bells[sleeper].write(1);
        }
    }

    /// The time up to which all other threads have received all frames, and handed over what belongs to this one.
    pub(super) fn received_until(&self) -> Instant {
        let others = self.received.iter().enumerate().filter(|(index, _)| *index != self.worker.index());
        let until = others.map(|(_, until)| until.load(Ordering::Acquire)).min();
        until.map_or(Instant::NEVER, Instant::from_ns)
    }

    /// Reports that all frames up to this time were received. Where packets wait to be handed over, the earlier report
    /// holds.
    pub(super) fn set_received_until(&self, until: Instant) {
        if !self.exchange.is_backlogged() {
            self.received[self.worker.index()].store(until.as_ns(), Ordering::Release);
        }
    }

    /// How long the thread may sleep without a report.
    pub(super) fn report_period(&self, node: &Node) -> Option<Duration> {
        (!self.worker.is_first() && node.has_bfd()).then_some(REPORT_PERIOD)
    }
}
