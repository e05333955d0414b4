//! Max-min fair allocation by progressive filling: all rates grow together; a flow that reaches a full link keeps its
//! rate.

use super::users::Users;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// A link that may be a bottleneck.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    /// Unallocated capacity.
    left: f64,
    /// Its position among all links.
    link: u32,
    /// Number of its flows without a rate.
    waiting: u32,
}

/// An allocation; its memory is used again for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Filling {
    /// The flows that get a rate.
    flows: Vec<u32>,
    bottlenecks: Vec<Bottleneck>,
    /// The bottlenecks of each flow, one after the other.
    crossed: Vec<u32>,
    /// For each flow of all, where its bottlenecks are in `crossed`.
    spans: Vec<[u32; 2]>,
    /// The rate of each flow of all; not a number until it has one.
    rates: Vec<f64>,
    by_limit: Vec<u32>,
    /// Shares of bottlenecks at the beginning, and their positions. Shares are not negative, so that their bits are
    /// ordered like the numbers; they only grow, so that one that is outdated is too small.
    open: Vec<(u64, u32)>,
    /// Those that have grown since.
    grown: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Rates of flows without competition.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    limits: Vec<f64>,
    /// Whether all are equal, as in a fabric whose links have one rate: then flows need no order.
    are_equal: bool,
}

impl Limits {
    /// Of no flows.
    pub(super) fn new() -> Self {
        Limits { limits: Vec::new(), are_equal: true }
    }

    /// Adds that of the next flow, or changes one.
    pub(super) fn set(&mut self, flow: u32, limit: f64) {
        if self.limits.len() <= flow as usize {
            self.limits.resize(flow as usize + 1, limit);
        }
        self.limits[flow as usize] = limit;
        let other = usize::from(flow == 0).min(self.limits.len() - 1);
        self.are_equal &= self.limits[other] == limit;
    }

    /// That of a flow.
    pub(super) fn of(&self, flow: u32) -> f64 {
        self.limits[if self.are_equal { 0 } else { flow as usize }]
    }
}

impl Filling {
    /// Makes room for one flow more.
    pub(super) fn add_flow(&mut self) {
        self.spans.push([0; 2]);
        self.rates.push(0.0);
    }

    /// Begins an allocation.
    pub(super) fn clear(&mut self) {
        self.flows.clear();
        self.bottlenecks.clear();
        self.crossed.clear();
    }

    /// Adds a flow. Its bottlenecks are added before the next flow [enters](Filling::enter).
    pub(super) fn join(&mut self, flow: u32) {
        self.flows.push(flow);
        self.rates[flow as usize] = f64::NAN;
    }

    /// The flow that was added at a position; its bottlenecks follow.
    pub(super) fn enter(&mut self, position: usize) -> Option<u32> {
        let flow = self.flows.get(position).copied()?;
        self.spans[flow as usize] = [self.crossed.len() as u32; 2];
        Some(flow)
    }

    /// Adds a bottleneck of the flow that was entered last.
    pub(super) fn cross(&mut self, flow: u32, bottleneck: u32) {
        self.crossed.push(bottleneck);
        self.spans[flow as usize][1] += 1;
    }

    /// Adds a link with so many flows; returns its position among the bottlenecks.
    pub(super) fn add_bottleneck(&mut self, link: u32, capacity: f64, flows: usize) -> u32 {
        self.bottlenecks.push(Bottleneck { left: capacity, link, waiting: flows as u32 });
        self.bottlenecks.len() as u32 - 1
    }

    /// The flows, in the order in which they were added, with their rates.
    pub(super) fn flows(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.flows.iter().map(|flow| (*flow, self.rates[*flow as usize]))
    }

    /// Allocates a rate to each flow. `limits`: rates without competition.
    pub(super) fn allocate(&mut self, limits: &Limits, users: &Users) {
        self.by_limit.clone_from(&self.flows);
        if !limits.are_equal {
            self.by_limit.sort_by(|one, other| limits.of(*one).total_cmp(&limits.of(*other)));
        }
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        open.extend((0..).zip(&self.bottlenecks).map(|(number, link)| (link.share().to_bits(), number)));
        open.sort_unstable();
        let mut grown = std::mem::take(&mut self.grown);
        grown.clear();
        let (mut next, mut at) = (0, 0);
        loop {
            while self.by_limit.get(next).is_some_and(|flow| !self.rates[*flow as usize].is_nan()) {
                next += 1;
            }
            let Some(flow) = self.by_limit.get(next).copied() else { break };
            let limit = limits.of(flow);
            let (of_open, of_grown) = (open.get(at).copied(), grown.peek().map(|Reverse(entry)| *entry));
            let is_grown = of_grown.is_some_and(|entry| of_open.is_none_or(|other| entry < other));
            let first = if is_grown { of_grown } else { of_open };
            let Some((bits, number)) = first.filter(|(bits, _)| *bits < limit.to_bits()) else {
                self.assign(flow, limit);
                continue;
            };
            let bottleneck = self.bottlenecks[number as usize];
            // Allocations since have increased the share of the others.
            let now = bottleneck.share();
            let has_grown = now.to_bits() > bits;
            let entry = (has_grown && bottleneck.waiting > 0).then_some(Reverse((now.to_bits(), number)));
            if !is_grown {
                at += 1;
                grown.extend(entry);
            } else if let Some(mut top) = grown.peek_mut() {
                match entry {
                    Some(entry) => *top = entry,
                    None => _ = PeekMut::pop(top),
                }
            }
            if !has_grown {
                for flow in users.of(bottleneck.link) {
                    if self.rates[*flow as usize].is_nan() {
                        self.assign(*flow, now);
                    }
                }
            }
        }
        (self.open, self.grown) = (open, grown);
    }

    fn assign(&mut self, flow: u32, rate: f64) {
        self.rates[flow as usize] = rate;
        let [start, end] = self.spans[flow as usize];
        for number in &self.crossed[start as usize..end as usize] {
            let bottleneck = &mut self.bottlenecks[*number as usize];
            bottleneck.left -= rate;
            bottleneck.waiting -= 1;
        }
    }
}

impl Bottleneck {
    /// Share of each flow without a rate; infinite if there is none.
    fn share(&self) -> f64 {
        if self.waiting == 0 { f64::INFINITY } else { self.left.max(0.0) / f64::from(self.waiting) }
    }
}
