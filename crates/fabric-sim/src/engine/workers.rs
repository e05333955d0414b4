//! Threads that simulate partitions at the same time, window by window.
//!
//! In a window, which is not longer than the shortest delay of a link between partitions, every thread processes the
//! events of its partition. Then it hands over the frames to others, announces its next event, and waits for the
//! others: the earliest event of all begins the next window.
//!
//! ```text
//!   thread 1: ── events of window 1 ──┬─ frames ─┐ wait ┌── events of window 2 ──
//!   thread 2: ── events of window 1 ────┬─ frames ┴─────┴── events of window 2 ──
//! ```

use super::NEVER_NS;
use super::crossing::Parcel;
use super::partition::Partition;
use srdma_sim::network::SimElement;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Turns of a waiting thread before it lets others use its core.
const SPINS: u32 = 1 << 12;

/// A stretch of time that all threads process.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) now_ns: u64,
    pub(super) end_ns: u64,
    /// The longest window.
    pub(super) lookahead_ns: u64,
}

/// One thread for each partition but the first.
pub(super) struct Workers<S> {
    meeting: Arc<Meeting>,
    workers: Vec<Worker<S>>,
}

struct Worker<S> {
    orders: Option<Sender<(Partition<S>, Stretch)>>,
    done: Receiver<Partition<S>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: SimElement + Send + 'static> Workers<S> {
    /// Threads for so many partitions.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub(super) fn new(partitions: usize) -> std::io::Result<Self> {
        let meeting = Arc::new(Meeting::new(partitions));
        let workers = (1..partitions).map(|own| Worker::new(own, &meeting)).collect::<std::io::Result<_>>()?;
        Ok(Workers { meeting, workers })
    }

    /// Processes a stretch of time.
    pub(super) fn proceed(&mut self, partitions: &mut Vec<Partition<S>>, stretch: Stretch) {
        for (worker, partition) in self.workers.iter().zip(partitions.drain(1..)) {
            if let Some(orders) = &worker.orders {
                // If the thread has ended, `take_back` finds it out.
                _ = orders.send((partition, stretch));
            }
        }
        self.meeting.proceed(0, &mut partitions[0], stretch);
        partitions.extend(self.workers.iter_mut().map(Worker::take_back));
    }
}

impl<S: SimElement + Send + 'static> Worker<S> {
    fn new(own: usize, meeting: &Arc<Meeting>) -> std::io::Result<Self> {
        let (orders, of_owner) = mpsc::channel::<(Partition<S>, Stretch)>();
        let (back, done) = mpsc::channel();
        let meeting = Arc::clone(meeting);
        let work = move || {
            while let Ok((mut partition, stretch)) = of_owner.recv() {
                meeting.proceed(own, &mut partition, stretch);
                if back.send(partition).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name(format!("partition {own}")).spawn(work)?;
        Ok(Worker { orders: Some(orders), done, thread: Some(thread) })
    }

    /// The partition after the stretch. A panic of the thread becomes one of the caller.
    fn take_back(&mut self) -> Partition<S> {
        match self.done.recv() {
            Ok(partition) => partition,
            Err(_) => match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => panic::resume_unwind(panic),
                Some(Ok(())) | None => unreachable!("a thread lives as long as it gets orders"),
            },
        }
    }
}

impl<S> Drop for Workers<S> {
    fn drop(&mut self) {
        self.meeting.is_left.store(thread::panicking(), Ordering::Release);
        for worker in &mut self.workers {
            worker.orders = None;
            // A panic was passed on already, or another one is under way.
            _ = worker.thread.take().map(JoinHandle::join);
        }
    }
}

/// Where threads exchange frames and times. All but the barrier exists twice, for even and odd windows: a thread may
/// begin the next window while another one still reads.
struct Meeting {
    partitions: usize,
    turns: [Turn; 2],
    /// Threads that have arrived at any barrier so far.
    arrived: AtomicU64,
    /// A thread has panicked.
    is_left: AtomicBool,
}

struct Turn {
    /// The earliest event that each partition knows.
    next_ns: Vec<AtomicU64>,
    /// Frames from partition to partition: those to one partition are consecutive.
    parcels: Vec<Mutex<Parcel>>,
}

impl Meeting {
    fn new(partitions: usize) -> Self {
        let turn = || Turn {
            next_ns: (0..partitions).map(|_| AtomicU64::new(NEVER_NS)).collect(),
            parcels: (0..partitions * partitions).map(|_| Mutex::default()).collect(),
        };
        Meeting { partitions, turns: [turn(), turn()], arrived: AtomicU64::new(0), is_left: AtomicBool::new(false) }
    }

    /// Processes a stretch of time of the partition `own`, together with the other threads.
    fn proceed<S: SimElement>(&self, own: usize, partition: &mut Partition<S>, stretch: Stretch) {
        let guard = Leave(self);
        let Stretch { mut now_ns, end_ns, lookahead_ns } = stretch;
        for turn in self.turns.iter().cycle() {
            turn.announce(own, partition);
            self.wait();
            let next_ns = turn.next_ns.iter().map(|next_ns| next_ns.load(Ordering::Relaxed)).min();
            for parcel in &turn.parcels[own * self.partitions..][..self.partitions] {
                partition.take_in(&mut parcel.lock().unwrap_or_else(PoisonError::into_inner));
            }
            now_ns = now_ns.max(next_ns.unwrap_or(NEVER_NS));
            if now_ns >= end_ns {
                break;
            }
            now_ns = now_ns.saturating_add(lookahead_ns).min(end_ns);
            partition.proceed_until(now_ns);
        }
        partition.proceed_until(end_ns);
        std::mem::forget(guard);
    }

    /// Waits until all threads have arrived.
    fn wait(&self) {
        let partitions = self.partitions as u64;
        let before = self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (before / partitions + 1) * partitions;
        let mut spins = 0;
        while self.arrived.load(Ordering::Acquire) < all {
            assert!(!self.is_left.load(Ordering::Acquire), "another thread of the simulation has panicked");
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

impl Turn {
    /// Hands over the frames to other partitions and announces the next event.
    fn announce<S: SimElement>(&self, own: usize, partition: &mut Partition<S>) {
        let partitions = self.next_ns.len();
        let mut next_ns = partition.next_ns();
        for other in (0..partitions).filter(|other| *other != own) {
            let parcel = &self.parcels[other * partitions + own];
            next_ns = next_ns.min(partition.outgoing(other).first_ns());
            // It was emptied two windows ago, and its memory is used again.
            std::mem::swap(partition.outgoing(other), &mut parcel.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.next_ns[own].store(next_ns, Ordering::Relaxed);
    }
}

/// Tells the others that a thread has panicked, so that they do not wait for it.
struct Leave<'a>(&'a Meeting);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.is_left.store(true, Ordering::Release);
    }
}
