//! Simulation engine for links without faults that processes many events of one element at a time, on one thread or
//! several.
//!
//! Elements belong to partitions. A frame from one partition to another arrives at least the delay of their link after
//! it was sent, so within the shortest of these delays partitions are independent (conservative lookahead, D223), as
//! elements are within a [`partition`]. The results do not depend on the number of partitions, nor on whether they are
//! processed at the same time (`workers`) or one after the other: frames of a link arrive in the order in which they
//! were sent, and events of an element at the same time are ordered by its ports.

mod crossing;
mod partition;
mod port;
#[cfg(test)]
mod tests;
mod workers;

use partition::Partition;
use port::{Peer, Port};
use srdma_frame::{Chunk, Pool};
use srdma_sim::link::LinkModel;
use srdma_sim::network::{ElementId, ElementPort, SimElement};
use srdma_wire::Instant;
use workers::{Stretch, Workers};

/// The end of time, in nanoseconds.
pub(super) const NEVER_NS: u64 = Instant::NEVER.as_ns();

/// Received frames of a window for which it is worthwhile that threads wait for each other.
const HOPS_PER_WINDOW: u64 = 32;

/// Windows for which it is worthwhile to hand partitions to threads.
const WINDOWS_PER_STRETCH: u64 = 4;

/// Elements, links, and the clock.
pub(super) struct Engine<S> {
    now_ns: u64,
    partitions: Vec<Partition<S>>,
    /// The partition of each element, and its position there.
    places: Vec<(u16, u32)>,
    /// The shortest delay of a link between partitions.
    lookahead_ns: u64,
    /// From when it was first worthwhile.
    workers: Option<Workers<S>>,
    /// The operating system refused threads.
    is_refused: bool,
    /// Frames that were received in a window, lately.
    hops_per_window: u64,
}

impl<S: SimElement + Send + 'static> Engine<S> {
    /// No elements, at the origin of time, with partitions that have a pool of at most `chunks` chunks of each size
    /// each. The first octets of a chunk of each pool are `page`.
    pub(super) fn new(partitions: u16, chunks: usize, page: &[u8]) -> Self {
        let partitions = partitions.max(1);
        let partition = |number| Partition::new(number, usize::from(partitions), chunks, page);
        Engine {
            now_ns: 0,
            partitions: (0..partitions).map(partition).collect(),
            places: Vec::new(),
            lookahead_ns: NEVER_NS,
            workers: None,
            is_refused: false,
            hops_per_window: 0,
        }
    }

    /// The chunk of the page in a partition's pool.
    pub(super) fn page(&self, partition: u16) -> Option<Chunk> {
        self.partitions[usize::from(partition)].page()
    }

    /// Adds an element to a partition.
    pub(super) fn add(&mut self, partition: u16, element: S) -> ElementId {
        let position = self.partitions[usize::from(partition)].add(element);
        self.places.push((partition, position as u32));
        ElementId::of_position(self.places.len() - 1)
    }

    /// Connects two ports, which must not have a link yet. The delay must be more than 0.
    pub(super) fn connect(&mut self, one: ElementPort, other: ElementPort, model: LinkModel) {
        let [of_one, of_other] = [one, other].map(|(element, _)| self.places[element.position()].0);
        let is_inner = of_one == of_other;
        if !is_inner {
            self.lookahead_ns = self.lookahead_ns.min(model.delay_ns);
        }
        for (from, to) in [(one, other), (other, one)] {
            let (partition, element) = self.places[to.0.position()];
            let port = Port::new(Peer { element, port: to.1, partition }, model);
            let (partition, element) = self.place(from.0);
            partition.connect(element, from.1, port, is_inner);
        }
    }

    fn place(&mut self, id: ElementId) -> (&mut Partition<S>, usize) {
        let (partition, element) = self.places[id.position()];
        (&mut self.partitions[usize::from(partition)], element as usize)
    }

    /// An element.
    pub(super) fn element(&self, id: ElementId) -> &S {
        let (partition, element) = self.places[id.position()];
        self.partitions[usize::from(partition)].element(element as usize)
    }

    /// Lets `action` change an element, and processes its output.
    pub(super) fn with<R>(&mut self, id: ElementId, action: impl FnOnce(&mut S, Instant, &mut Pool) -> R) -> R {
        let (partition, element) = self.place(id);
        partition.with(element, action)
    }

    /// Frames received by any element.
    pub(super) fn hops(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.hops()).sum()
    }

    /// Sets whether a port's outgoing direction is down. Frames in flight arrive.
    pub(super) fn set_down(&mut self, (element, port): ElementPort, is_down: bool) {
        let (partition, element) = self.place(element);
        partition.set_down(element, port, is_down);
    }

    /// Frames sent by ports that were down.
    pub(super) fn lost(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.lost()).sum()
    }

    /// Frames dropped because a pool had no free chunk.
    pub(super) fn dropped_for_memory(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.dropped_for_memory()).sum()
    }

    /// Processes all events before a time and advances the clock to it.
    pub(super) fn proceed_until(&mut self, end: Instant) {
        let end_ns = end.as_ns();
        if let [partition] = &mut self.partitions[..] {
            partition.proceed_until(end_ns);
        } else {
            self.proceed_together(end_ns);
        }
        self.now_ns = self.now_ns.max(end_ns);
    }

    /// The same with several partitions: by threads where that is worthwhile, otherwise one after the other.
    fn proceed_together(&mut self, end_ns: u64) {
        let lookahead_ns = self.lookahead_ns.max(1);
        loop {
            self.exchange();
            let next_ns = self.partitions.iter().map(|partition| partition.next_ns()).min().unwrap_or(NEVER_NS);
            if next_ns >= end_ns {
                break;
            }
            let now_ns = self.now_ns.max(next_ns);
            let windows = (end_ns - now_ns) / lookahead_ns;
            let before = self.hops();
            if self.hops_per_window >= HOPS_PER_WINDOW && windows >= WINDOWS_PER_STRETCH && self.has_workers() {
                if let Some(workers) = &mut self.workers {
                    workers.proceed(&mut self.partitions, Stretch { now_ns, end_ns, lookahead_ns });
                }
                self.now_ns = end_ns;
                self.hops_per_window = (self.hops() - before) / windows;
            } else {
                self.now_ns = now_ns.saturating_add(lookahead_ns).min(end_ns);
                self.partitions.iter_mut().for_each(|partition| partition.proceed_until(self.now_ns));
                self.hops_per_window = self.hops() - before;
            }
        }
        self.partitions.iter_mut().for_each(|partition| partition.proceed_until(end_ns));
    }

    /// Hands over the frames between partitions.
    fn exchange(&mut self) {
        for from in 0..self.partitions.len() {
            for to in (0..self.partitions.len()).filter(|to| *to != from) {
                let mut parcel = std::mem::take(self.partitions[from].outgoing(to));
                self.partitions[to].take_in(&mut parcel);
                *self.partitions[from].outgoing(to) = parcel;
            }
        }
    }

    /// Starts the threads with the first call. Without permission for more of them one thread does all.
    fn has_workers(&mut self) -> bool {
        if self.workers.is_none() && !self.is_refused {
            self.workers = Workers::new(self.partitions.len()).ok();
            self.is_refused = self.workers.is_none();
        }
        self.workers.is_some()
    }
}
