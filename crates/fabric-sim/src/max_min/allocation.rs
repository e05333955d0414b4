//! Max-min fair allocation by progressive filling: all rates grow together; a flow that reaches a full link keeps its
//! rate.

use super::links::Links;
use super::route::Route;
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
    by_limit: Vec<u32>,
    /// Shares of bottlenecks at the beginning, and their positions. Shares are not negative, so that their bits are
    /// ordered like the numbers; they only grow, so that one that is outdated is too small.
    open: Vec<(u64, u32)>,
    /// Those that have grown since.
    grown: BinaryHeap<Reverse<(u64, u32)>>,
    /// For each number of flows, where the next bottleneck with so many is in `open`.
    next_of: Vec<u32>,
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
    /// Begins an allocation.
    pub(super) fn clear(&mut self) {
        self.flows.clear();
        self.bottlenecks.clear();
        self.crossed.clear();
    }

    /// Adds a flow.
    pub(super) fn join(&mut self, flow: u32) {
        self.flows.push(flow);
    }

    /// The flows, in the order in which they were added.
    pub(super) fn flows(&self) -> &[u32] {
        &self.flows
    }

    /// Number of the bottlenecks that were [crossed](Filling::cross).
    pub(super) fn crossed(&self) -> u32 {
        self.crossed.len() as u32
    }

    /// Adds a bottleneck of a flow, next to the flow's others.
    pub(super) fn cross(&mut self, bottleneck: u32) {
        self.crossed.push(bottleneck);
    }

    /// Whether a link is the bottleneck at a position.
    pub(super) fn is_bottleneck(&self, number: u32, link: u32) -> bool {
        self.bottlenecks.get(number as usize).is_some_and(|bottleneck| bottleneck.link == link)
    }

    /// Adds a link with so many flows; returns its position among the bottlenecks.
    pub(super) fn add_bottleneck(&mut self, link: u32, capacity: f64, flows: u32) -> u32 {
        self.bottlenecks.push(Bottleneck { left: capacity, link, waiting: flows });
        self.bottlenecks.len() as u32 - 1
    }

    /// The shares of all bottlenecks at the beginning, the least first, and their positions.
    fn fill_open(&mut self, are_equal: bool) {
        self.open.clear();
        let shares = (0..).zip(&self.bottlenecks).map(|(number, link)| (link.share().to_bits(), number));
        let most = self.bottlenecks.iter().map(|link| link.waiting).max().unwrap_or(0) as usize;
        if !are_equal || most > self.bottlenecks.len() {
            self.open.extend(shares);
            self.open.sort_unstable();
            return;
        }
        // Of equal capacities, those with most flows have the least share.
        self.next_of.clear();
        self.next_of.resize(most + 1, 0);
        self.bottlenecks.iter().for_each(|link| self.next_of[link.waiting as usize] += 1);
        let mut next = 0;
        for count in self.next_of.iter_mut().rev() {
            next += std::mem::replace(count, next);
        }
        self.open.resize(self.bottlenecks.len(), (0, 0));
        for (link, entry) in self.bottlenecks.iter().zip(shares) {
            let next = &mut self.next_of[link.waiting as usize];
            self.open[*next as usize] = entry;
            *next += 1;
        }
    }

    /// Allocates a rate to each flow. `limits`: rates without competition.
    pub(super) fn allocate(&mut self, routes: &mut [Route], limits: &Limits, links: &Links) {
        self.by_limit.clone_from(&self.flows);
        if !limits.are_equal {
            self.by_limit.sort_by(|one, other| limits.of(*one).total_cmp(&limits.of(*other)));
        }
        self.fill_open(links.are_equal());
        let open = std::mem::take(&mut self.open);
        let mut grown = std::mem::take(&mut self.grown);
        grown.clear();
        let (mut next, mut at) = (0, 0);
        loop {
            while self.by_limit.get(next).is_some_and(|flow| !routes[*flow as usize].allocated.is_nan()) {
                next += 1;
            }
            let Some(flow) = self.by_limit.get(next).copied() else { break };
            let limit = limits.of(flow);
            let (of_open, of_grown) = (open.get(at).copied(), grown.peek().map(|Reverse(entry)| *entry));
            let is_grown = of_grown.is_some_and(|entry| of_open.is_none_or(|other| entry < other));
            let first = if is_grown { of_grown } else { of_open };
            let Some((bits, number)) = first.filter(|(bits, _)| *bits < limit.to_bits()) else {
                self.assign(&mut routes[flow as usize], limit);
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
                for flow in links.of(bottleneck.link) {
                    let route = &mut routes[*flow as usize];
                    if route.allocated.is_nan() {
                        self.assign(route, now);
                    }
                }
            }
        }
        (self.open, self.grown) = (open, grown);
    }

    fn assign(&mut self, route: &mut Route, rate: f64) {
        route.allocated = rate;
        let start = route.crossed_at as usize;
        for number in &self.crossed[start..start + usize::from(route.crossed)] {
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
