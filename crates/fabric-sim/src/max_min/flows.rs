//! Flows with their queued transfers, in simulated time.

use super::rates::Rates;
use std::cmp::Reverse;
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
    /// Ends of the first transfers of flows, with the number of the plan that each is from: those of older plans are
    /// outdated.
    ends: BinaryHeap<Reverse<(u64, u32, u32)>>,
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
    /// Unsent octets of the first transfer at `since_ps`.
    left: f64,
    begun_ps: u64,
    since_ps: u64,
    octets_per_ps: f64,
    plan: u32,
    /// Whether the flow is blocked although transfers are queued.
    is_blocked: bool,
}

impl<T: Copy> Flows<T> {
    /// No flows over links of these rates, in bits per second.
    pub fn new(bits_per_s: impl IntoIterator<Item = u64>) -> Self {
        let octets_per_ps = |bits_per_s: u64| bits_per_s as f64 / 8e12;
        Flows {
            rates: Rates::new(bits_per_s.into_iter().map(octets_per_ps)),
            flows: Vec::new(),
            ends: BinaryHeap::new(),
            changed: Vec::new(),
            mean_ps: 0.0,
            settled_ps: 0,
            due_ps: None,
        }
    }

    /// Adds a flow along these links, by their positions, each at most once.
    pub fn add(&mut self, links: &[u32]) -> FlowId {
        self.rates.add(links);
        self.flows.push(Flow {
            waiting: VecDeque::new(),
            left: 0.0,
            begun_ps: 0,
            since_ps: 0,
            octets_per_ps: 0.0,
            plan: 0,
            is_blocked: false,
        });
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
            (own.left, own.octets_per_ps) = (octets, 0.0);
            (own.begun_ps, own.since_ps) = (now_ps, now_ps);
            if !own.is_blocked {
                self.rates.begin(flow.0);
            }
        }
    }

    /// Blocks a flow until it is [rerouted](Flows::reroute). Its transfers stay queued.
    pub fn block(&mut self, now_ps: u64, flow: FlowId) {
        let own = &mut self.flows[flow.0 as usize];
        own.progress(now_ps);
        (own.octets_per_ps, own.is_blocked) = (0.0, true);
        own.plan = own.plan.wrapping_add(1);
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
        while let Some(Reverse((at_ps, flow, plan))) = self.ends.peek() {
            if self.flows[*flow as usize].plan == *plan {
                return Some(self.due_ps.map_or(*at_ps, |due_ps| due_ps.min(*at_ps)));
            }
            self.ends.pop();
        }
        self.due_ps
    }

    /// Removes completed transfers and adds them to the result, in the order of flows.
    pub fn take_completed(&mut self, now_ps: u64, gone: &mut Vec<(FlowId, T)>) {
        while let Some(Reverse((at_ps, number, plan))) = self.ends.peek().copied() {
            let flow = &mut self.flows[number as usize];
            if flow.plan == plan && at_ps > now_ps {
                return;
            }
            self.ends.pop();
            if flow.plan != plan {
                continue;
            }
            let Some((what, _)) = flow.waiting.pop_front() else { continue };
            gone.push((FlowId(number), what));
            self.mean_ps += ((now_ps - flow.begun_ps) as f64 - self.mean_ps) / MEAN_OVER;
            (flow.begun_ps, flow.since_ps) = (now_ps, now_ps);
            match flow.waiting.front() {
                Some((_, octets)) => {
                    flow.left = *octets;
                    self.ends.push(Reverse(flow.next_end(number)));
                }
                None => {
                    flow.plan = flow.plan.wrapping_add(1);
                    self.rates.end(number);
                }
            }
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
        for (number, octets_per_ps) in self.changed.drain(..) {
            let flow = &mut self.flows[number as usize];
            flow.progress(now_ps);
            flow.octets_per_ps = octets_per_ps;
            self.ends.push(Reverse(flow.next_end(number)));
        }
    }
}

impl<T> Flow<T> {
    /// Advances to now.
    fn progress(&mut self, now_ps: u64) {
        self.left -= self.octets_per_ps * (now_ps - self.since_ps) as f64;
        self.since_ps = now_ps;
    }

    /// Reschedules the end of the first transfer.
    fn next_end(&mut self, number: u32) -> (u64, u32, u32) {
        self.plan = self.plan.wrapping_add(1);
        let needed_ps = (self.left.max(0.0) / self.octets_per_ps).ceil();
        // Times beyond the range saturate.
        (self.since_ps.saturating_add(needed_ps as u64), number, self.plan)
    }
}
