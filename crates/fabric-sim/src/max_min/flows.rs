//! Flows with their queued transfers, in simulated time.

use super::rates::Rates;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// A flow: its transfers are sent in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Minimum interval between two allocations, as a share of the mean duration of transfers. Until then a new transfer
/// gets unused capacity only.
const MIN_INTERVAL: f64 = 0.005;

/// Weight of the moving average, in transfers.
const MEAN_OVER: f64 = 64.0;

/// Flows over links. `T` identifies a transfer for the caller.
#[derive(Clone, Debug)]
pub struct Flows<T> {
    rates: Rates,
    flows: Vec<Flow<T>>,
    /// The first transfer of each flow.
    transfers: Vec<Transfer>,
    /// Of each flow the end of its first transfer.
    ends: Vec<End>,
    /// Times at which a flow's end is looked up. An end that moves back keeps its entry, which then moves as well.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    changed: Vec<(u32, f64)>,
    /// Mean duration of transfers.
    mean_ps: f64,
    /// Time of the last allocation, and of the next one if it is necessary.
    settled_ps: u64,
    due_ps: Option<u64>,
}

#[derive(Clone, Debug)]
struct Flow<T> {
    waiting: VecDeque<(T, f64)>,
    begun_ps: u64,
    /// Whether the flow is blocked although transfers are queued.
    is_blocked: bool,
}

/// Progress of a flow's first transfer.
#[derive(Clone, Copy, Debug, Default)]
struct Transfer {
    /// Unsent octets at `since_ps`.
    left: f64,
    since_ps: u64,
    octets_per_ps: f64,
}

/// The end of a transfer; [`NEVER_PS`] for none.
#[derive(Clone, Copy, Debug)]
struct End {
    at_ps: u64,
    /// The earliest entry in the queue that is for it, which is not later. Other entries are outdated.
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
            ends: Vec::new(),
            queue: BinaryHeap::new(),
            changed: Vec::new(),
            mean_ps: 0.0,
            settled_ps: 0,
            due_ps: None,
        }
    }

    /// Adds a flow along these links, by their positions, each at most once.
    pub fn add(&mut self, links: &[u32]) -> FlowId {
        self.rates.add(links);
        self.flows.push(Flow { waiting: VecDeque::new(), begun_ps: 0, is_blocked: false });
        self.transfers.push(Transfer::default());
        self.ends.push(End { at_ps: NEVER_PS, entry_ps: NEVER_PS });
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
            own.begun_ps = now_ps;
            self.transfers[flow.0 as usize] = Transfer { left: octets, since_ps: now_ps, octets_per_ps: 0.0 };
            if !own.is_blocked {
                self.rates.begin(flow.0);
            }
        }
    }

    /// Blocks a flow until it is [rerouted](Flows::reroute). Its transfers stay queued.
    pub fn block(&mut self, now_ps: u64, flow: FlowId) {
        let own = &mut self.transfers[flow.0 as usize];
        own.progress(now_ps);
        own.octets_per_ps = 0.0;
        self.flows[flow.0 as usize].is_blocked = true;
        self.ends[flow.0 as usize].at_ps = NEVER_PS;
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
            self.ends[number as usize] = End { at_ps: NEVER_PS, entry_ps: NEVER_PS };
            let flow = &mut self.flows[number as usize];
            let Some((what, _)) = flow.waiting.pop_front() else { continue };
            gone.push((FlowId(number), what));
            self.mean_ps += ((now_ps - flow.begun_ps) as f64 - self.mean_ps) / MEAN_OVER;
            flow.begun_ps = now_ps;
            match flow.waiting.front() {
                Some((_, octets)) => {
                    let transfer = &mut self.transfers[number as usize];
                    (transfer.left, transfer.since_ps) = (*octets, now_ps);
                    let end_ps = transfer.end_ps();
                    self.schedule(number, end_ps);
                }
                None => self.rates.end(number),
            }
        }
    }

    /// The first end and its flow, the first entry of the queue.
    fn next_end(&mut self) -> Option<(u64, u32)> {
        while let Some(mut first) = self.queue.peek_mut() {
            let Reverse((entry_ps, number)) = *first;
            let end = &mut self.ends[number as usize];
            if end.entry_ps != entry_ps {
                PeekMut::pop(first);
            } else if end.at_ps == NEVER_PS {
                end.entry_ps = NEVER_PS;
                PeekMut::pop(first);
            } else if end.at_ps > entry_ps {
                end.entry_ps = end.at_ps;
                *first = Reverse((end.at_ps, number));
            } else {
                return Some((entry_ps, number));
            }
        }
        None
    }

    /// Sets the end of a flow's first transfer.
    fn schedule(&mut self, number: u32, at_ps: u64) {
        let end = &mut self.ends[number as usize];
        end.at_ps = at_ps;
        if at_ps < end.entry_ps {
            end.entry_ps = at_ps;
            self.queue.push(Reverse((at_ps, number)));
        }
    }

    /// Recomputes rates after transfers have started or ended.
    pub fn settle(&mut self, now_ps: u64) {
        self.rates.take_begun(&mut self.changed);
        self.due_ps = None;
        if self.rates.has_changes() {
            let due_ps = self.settled_ps + (self.mean_ps * MIN_INTERVAL) as u64;
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
            let end_ps = transfer.end_ps();
            self.schedule(number, end_ps);
        }
        self.changed = changed;
    }
}

impl Transfer {
    /// Advances to now.
    fn progress(&mut self, now_ps: u64) {
        self.left -= self.octets_per_ps * (now_ps - self.since_ps) as f64;
        self.since_ps = now_ps;
    }

    /// Its end.
    fn end_ps(&self) -> u64 {
        let needed_ps = (self.left.max(0.0) / self.octets_per_ps).ceil();
        // Times beyond the range saturate.
        self.since_ps.saturating_add(needed_ps as u64)
    }
}
