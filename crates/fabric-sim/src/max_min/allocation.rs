//! Max-min fair allocation by progressive filling: all rates grow together; a flow that reaches a full link keeps its
//! rate.

use super::rates::User;
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
    /// Shares of bottlenecks, and their positions. Shares are not negative, so that their bits are ordered like the
    /// numbers; they only grow, so that one that is outdated is too small.
    open: BinaryHeap<Reverse<(u64, u32)>>,
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

    /// Allocates a rate to each flow. `limits`: rates without competition, of all flows; `users`: the flows of all
    /// links.
    pub(super) fn allocate(&mut self, limits: &[f64], users: &[Vec<User>]) {
        let limit = |flow: &u32| limits[*flow as usize];
        self.by_limit.clone_from(&self.flows);
        self.by_limit.sort_by(|one, other| limit(one).total_cmp(&limit(other)));
        let mut open = std::mem::take(&mut self.open).into_vec();
        open.clear();
        open.extend((0..).zip(&self.bottlenecks).map(|(number, link)| Reverse((link.share().to_bits(), number))));
        let mut open = BinaryHeap::from(open);
        let mut next = 0;
        loop {
            while self.by_limit.get(next).is_some_and(|flow| !self.rates[*flow as usize].is_nan()) {
                next += 1;
            }
            let Some(flow) = self.by_limit.get(next).copied() else { break };
            let limit = limit(&flow);
            let Some(mut first) = open.peek_mut().filter(|first| first.0.0 < limit.to_bits()) else {
                self.assign(flow, limit);
                continue;
            };
            let Reverse((bits, number)) = *first;
            let bottleneck = self.bottlenecks[number as usize];
            // Allocations since have increased the share of the others.
            let now = bottleneck.share();
            if now.to_bits() > bits {
                if bottleneck.waiting == 0 {
                    PeekMut::pop(first);
                } else {
                    *first = Reverse((now.to_bits(), number));
                }
                continue;
            }
            PeekMut::pop(first);
            for User { flow, .. } in &users[bottleneck.link as usize] {
                if self.rates[*flow as usize].is_nan() {
                    self.assign(*flow, now);
                }
            }
        }
        self.open = open;
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
