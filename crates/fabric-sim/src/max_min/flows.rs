//! Flows with their queued transfers, in simulated time.

use super::rates::Rates;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// A flow: its transfers are sent in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Default of the minimum interval between two allocations, as a share of the mean duration of transfers. Until then a
/// new transfer gets unused capacity only.
pub const MIN_INTERVAL: f64 = 0.005;

/// Weight of the moving average, in transfers.
const MEAN_OVER: f64 = 64.0;

/// Flows over links. `T` identifies a transfer for the caller.
#[derive(Clone, Debug)]
pub struct Flows<T> {
    rates: Rates,
    flows: Vec<Flow<T>>,
    /// The first transfer of each flow.
    transfers: Vec<Transfer>,
    /// Times at which a flow's end is looked up. An end that moves back keeps its entry, which then moves as well.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    changed: Vec<(u32, f64)>,
    /// Mean duration of transfers, and the share of it that is between two allocations.
    mean_ps: f64,
    min_interval: f64,
    /// Time of the last allocation, and of the next one if it is necessary.
    settled_ps: u64,
    due_ps: Option<u64>,
}

#[derive(Clone, Debug)]
struct Flow<T> {
    waiting: VecDeque<(T, f64)>,
    /// Whether the flow is blocked although transfers are queued.
    is_blocked: bool,
}

/// Progress of a flow's first transfer, in a cache line of its own, and its end: [`NEVER_PS`] for none.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Transfer {
    /// Unsent octets at `since_ps`.
    left: f64,
    since_ps: u64,
    octets_per_ps: f64,
    begun_ps: u64,
    end_ps: u64,
    /// The earliest entry in the queue that is for its end, which is not later. Other entries are outdated.
    entry_ps: u64,
}

const NEVER_PS: u64 = u64::MAX;

impl<T: Copy> Flows<T> {
    /// No flows over links of these rates, in bits per second.
    pub fn new(bits_per_s: impl IntoIterator<Item = u64>) -> Self {
        let octets_per_ps = |bits_per_s: u64| bits_per_s as f64 / 8e12;
        Flows {
            rates: Rates::new(bits_per_s.into_iter().map(octets_per_ps)),
            flows: Vec::new(),
            transfers: Vec::new(),
            queue: BinaryHeap::new(),
            changed: Vec::new(),
            mean_ps: 0.0,
            min_interval: MIN_INTERVAL,
            settled_ps: 0,
            due_ps: None,
        }
    }

    /// The same with another minimum interval between two allocations, as a share of the mean duration of transfers
    /// (D295).
    pub fn with_min_interval(self, min_interval: f64) -> Self {
        Flows { min_interval, ..self }
    }

    /// Adds a flow along these links, by their positions, each at most once.
    pub fn add(&mut self, links: &[u32]) -> FlowId {
        self.rates.add(links);
        self.flows.push(Flow { waiting: VecDeque::new(), is_blocked: false });
        self.transfers.push(Transfer::NONE);
        FlowId(self.flows.len() as u32 - 1)
    }

    /// The links of a flow.
    pub fn links(&self, flow: FlowId) -> impl Iterator<Item = u32> + '_ {
        self.rates.links(flow.0)
    }

    /// Queues a transfer of `octets` > 0 at a flow.
    pub fn send(&mut self, now_ps: u64, flow: FlowId, octets: f64, what: T) {
        let own = &mut self.flows[flow.0 as usize];
        own.waiting.push_back((what, octets));
        if own.waiting.len() == 1 {
            let transfer = &mut self.transfers[flow.0 as usize];
            (transfer.begun_ps, transfer.since_ps) = (now_ps, now_ps);
            (transfer.left, transfer.octets_per_ps) = (octets, 0.0);
            if !own.is_blocked {
                self.rates.begin(flow.0);
            }
        }
    }

    /// Blocks a flow until it is [rerouted](Flows::reroute). Its transfers stay queued.
    pub fn block(&mut self, now_ps: u64, flow: FlowId) {
        let own = &mut self.transfers[flow.0 as usize];
        own.progress(now_ps);
        (own.octets_per_ps, own.end_ps) = (0.0, NEVER_PS);
        self.flows[flow.0 as usize].is_blocked = true;
        if self.rates.is_in_use(flow.0) {
            self.rates.end(flow.0);
        }
    }

    /// Whether a flow is blocked.
    pub fn is_blocked(&self, flow: FlowId) -> bool {
        self.flows[flow.0 as usize].is_blocked
    }

    /// Moves a flow to other links, with its queued transfers.
    pub fn reroute(&mut self, now_ps: u64, flow: FlowId, links: &[u32]) {
        self.block(now_ps, flow);
        self.rates.reroute(flow.0, links);
        let own = &mut self.flows[flow.0 as usize];
        own.is_blocked = false;
        if !own.waiting.is_empty() {
            self.rates.begin(flow.0);
        }
    }

    /// Time of the next event, in picoseconds: the end of a transfer, or an allocation by [`Flows::settle`].
    pub fn next_ps(&mut self) -> Option<u64> {
        let end = self.next_end().map(|(at_ps, _)| at_ps);
        end.into_iter().chain(self.due_ps).min()
    }

    /// Removes completed transfers and adds them to the result, in the order of flows.
    pub fn take_completed(&mut self, now_ps: u64, gone: &mut Vec<(FlowId, T)>) {
        while let Some((_, number)) = self.next_end().filter(|(at_ps, _)| *at_ps <= now_ps) {
            self.queue.pop();
            let transfer = &mut self.transfers[number as usize];
            (transfer.end_ps, transfer.entry_ps) = (NEVER_PS, NEVER_PS);
            let flow = &mut self.flows[number as usize];
            let Some((what, _)) = flow.waiting.pop_front() else { continue };
            gone.push((FlowId(number), what));
            self.mean_ps += ((now_ps - transfer.begun_ps) as f64 - self.mean_ps) / MEAN_OVER;
            transfer.begun_ps = now_ps;
            match flow.waiting.front() {
                Some((_, octets)) => {
                    (transfer.left, transfer.since_ps) = (*octets, now_ps);
                    transfer.schedule(number, &mut self.queue);
                }
                None => self.rates.end(number),
            }
        }
    }

    /// The first end and its flow, the first entry of the queue.
    fn next_end(&mut self) -> Option<(u64, u32)> {
        while let Some(mut first) = self.queue.peek_mut() {
            let Reverse((entry_ps, number)) = *first;
            let transfer = &mut self.transfers[number as usize];
            if transfer.entry_ps != entry_ps {
                PeekMut::pop(first);
            } else if transfer.end_ps == NEVER_PS {
                transfer.entry_ps = NEVER_PS;
                PeekMut::pop(first);
            } else if transfer.end_ps > entry_ps {
                transfer.entry_ps = transfer.end_ps;
                *first = Reverse((transfer.end_ps, number));
            } else {
                return Some((entry_ps, number));
            }
        }
        None
    }

    /// Recomputes rates after transfers have started or ended.
    pub fn settle(&mut self, now_ps: u64) {
        self.rates.take_begun(&mut self.changed);
        self.due_ps = None;
        if self.rates.has_changes() {
            let due_ps = self.settled_ps + (self.mean_ps * self.min_interval) as u64;
            if due_ps <= now_ps {
                self.settled_ps = now_ps;
                self.rates.settle(&mut self.changed);
            } else {
                self.due_ps = Some(due_ps);
            }
        }
        let mut changed = std::mem::take(&mut self.changed);
        for (number, octets_per_ps) in changed.drain(..) {
            let transfer = &mut self.transfers[number as usize];
            transfer.progress(now_ps);
            transfer.octets_per_ps = octets_per_ps;
            transfer.schedule(number, &mut self.queue);
        }
        self.changed = changed;
    }
}

impl Transfer {
    const NONE: Transfer =
        Transfer { left: 0.0, since_ps: 0, octets_per_ps: 0.0, begun_ps: 0, end_ps: NEVER_PS, entry_ps: NEVER_PS };

    /// Advances to now.
    fn progress(&mut self, now_ps: u64) {
        self.left -= self.octets_per_ps * (now_ps - self.since_ps) as f64;
        self.since_ps = now_ps;
    }

    /// Sets its end, of the flow with this number.
    fn schedule(&mut self, number: u32, queue: &mut BinaryHeap<Reverse<(u64, u32)>>) {
        let needed_ps = (self.left.max(0.0) / self.octets_per_ps).ceil();
        // Times beyond the range saturate.
        self.end_ps = self.since_ps.saturating_add(needed_ps as u64);
        if self.end_ps < self.entry_ps {
            self.entry_ps = self.end_ps;
            queue.push(Reverse((self.end_ps, number)));
        }
    }
}
