//! Active flows, and their rates.

use super::allocation::{BottleneckLink, Demand, allocate};

/// Relative demand above which a link is a bottleneck; a smaller excess is rounding.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// Links with their capacities, and the flows over them. Rates and capacities have the same unit.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// Links whose rates may have to change.
    changed_links: Vec<u32>,
    /// Started flows, each with its rate until the next allocation.
    begun: Vec<(u32, f64)>,
    /// Number of allocations: entries with this number belong to the current one.
    round: u64,
    bottlenecks: Vec<BottleneckLink>,
    demands: Vec<Demand>,
}

#[derive(Clone, Debug)]
struct Link {
    capacity: f64,
    /// Sum of the limits of its flows.
    demand: f64,
    /// Sum of the rates of its flows.
    used: f64,
    /// The active flows, each with the index of this link among its links.
    users: Vec<(u32, u32)>,
    round: u64,
    /// Its position among the bottleneck links of this round.
    number: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    /// The links, each with this flow's position among its users.
    links: Vec<(u32, u32)>,
    /// Its rate without competition.
    limit: f64,
    rate: f64,
    is_in_use: bool,
    round: u64,
    /// Its position among the flows of this round.
    number: u32,
}

impl Rates {
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let link = |capacity| Link { capacity, demand: 0.0, used: 0.0, users: Vec::new(), round: 0, number: 0 };
        Rates {
            links: capacities.into_iter().map(link).collect(),
            flows: Vec::new(),
            changed_links: Vec::new(),
            begun: Vec::new(),
            round: 0,
            bottlenecks: Vec::new(),
            demands: Vec::new(),
        }
    }

    /// Adds an inactive flow.
    pub(super) fn add(&mut self, links: &[u32]) {
        self.flows.push(Flow { links: Vec::new(), limit: 0.0, rate: 0.0, is_in_use: false, round: 0, number: 0 });
        self.reroute(self.flows.len() as u32 - 1, links);
    }

    /// Moves an inactive flow to other links.
    pub(super) fn reroute(&mut self, flow: u32, links: &[u32]) {
        let least = links.iter().map(|link| self.links[*link as usize].capacity).fold(f64::INFINITY, f64::min);
        let flow = &mut self.flows[flow as usize];
        flow.links = links.iter().map(|link| (*link, 0)).collect();
        flow.limit = least;
    }

    pub(super) fn is_in_use(&self, flow: u32) -> bool {
        self.flows[flow as usize].is_in_use
    }

    /// The links of a flow.
    pub(super) fn links(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        self.flows[flow as usize].links.iter().map(|(link, _)| *link)
    }

    /// Activates a flow with the unused capacity of its links, which [`Rates::take_begun`] reports.
    pub(super) fn begin(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        (flow.is_in_use, flow.rate) = (true, 0.0);
        let mut unused = flow.limit;
        for (place, (link, position)) in (0..).zip(&mut flow.links) {
            let at = &mut self.links[*link as usize];
            *position = at.users.len() as u32;
            at.users.push((number, place));
            at.demand += flow.limit;
            if at.demand > at.capacity * TOLERANCE {
                self.changed_links.push(*link);
                unused = unused.min((at.capacity - at.used).max(0.0));
            }
        }
        flow.rate = unused;
        flow.links.iter().for_each(|(link, _)| self.links[*link as usize].used += unused);
        self.begun.push((number, unused));
    }

    /// Deactivates a flow.
    pub(super) fn end(&mut self, number: u32) {
        self.flows[number as usize].is_in_use = false;
        for place in 0..self.flows[number as usize].links.len() {
            let flow = &self.flows[number as usize];
            let (link, position) = flow.links[place];
            let at = &mut self.links[link as usize];
            if at.demand > at.capacity * TOLERANCE {
                self.changed_links.push(link);
            }
            at.users.swap_remove(position as usize);
            // Without users the sums are exactly 0.
            let is_last = at.users.is_empty();
            at.demand = if is_last { 0.0 } else { at.demand - flow.limit };
            at.used = if is_last { 0.0 } else { at.used - flow.rate };
            if let Some((moved, place)) = at.users.get(position as usize).copied() {
                self.flows[moved as usize].links[place as usize].1 = position;
            }
        }
    }

    /// Adds the started flows, with their preliminary rates.
    pub(super) fn take_begun(&mut self, changed: &mut Vec<(u32, f64)>) {
        changed.extend(self.begun.drain(..).filter(|(number, _)| self.flows[*number as usize].is_in_use));
    }

    /// True if a flow has begun or ended on a bottleneck link.
    pub(super) fn has_changes(&self) -> bool {
        !self.changed_links.is_empty()
    }

    /// Recomputes the rates that may have changed, and adds the flows with a new rate.
    pub(super) fn settle(&mut self, changed: &mut Vec<(u32, f64)>) {
        let affected = self.affected();
        allocate(&mut self.bottlenecks, &mut self.demands[..affected.len()]);
        for (number, demand) in affected.iter().zip(&self.demands) {
            let flow = &mut self.flows[*number as usize];
            let rate = demand.rate.unwrap_or(flow.limit);
            if rate != flow.rate {
                for (link, _) in &flow.links {
                    self.links[*link as usize].used += rate - flow.rate;
                }
                flow.rate = rate;
                changed.push((*number, rate));
            }
        }
    }

    /// The flows that share bottleneck links with the changed links, directly or transitively. Fills `bottlenecks` and
    /// `demands` for the allocation.
    fn affected(&mut self) -> Vec<u32> {
        self.round += 1;
        self.bottlenecks.clear();
        let mut affected: Vec<u32> = Vec::new();
        for link in std::mem::take(&mut self.changed_links) {
            for (flow, _) in &self.links[link as usize].users {
                join(&mut self.flows[*flow as usize], *flow, self.round, &mut affected);
            }
        }
        let mut done = 0;
        while let Some(number) = affected.get(done).copied() {
            if self.demands.len() == done {
                self.demands.push(Demand { limit: 0.0, links: Vec::new(), rate: None });
            }
            let own = &mut self.demands[done];
            (own.limit, own.rate) = (self.flows[number as usize].limit, None);
            own.links.clear();
            for place in 0..self.flows[number as usize].links.len() {
                let (link, _) = self.flows[number as usize].links[place];
                let at = &mut self.links[link as usize];
                if at.demand <= at.capacity * TOLERANCE {
                    continue;
                }
                if at.round != self.round {
                    (at.round, at.number) = (self.round, self.bottlenecks.len() as u32);
                    for (flow, _) in &at.users {
                        join(&mut self.flows[*flow as usize], *flow, self.round, &mut affected);
                    }
                    let users: Vec<u32> = at.users.iter().map(|(flow, _)| self.flows[*flow as usize].number).collect();
                    let waiting = users.len() as u32;
                    self.bottlenecks.push(BottleneckLink { left: at.capacity, users, waiting });
                }
                own.links.push(at.number);
            }
            done += 1;
        }
        affected
    }
}

/// Adds a flow to a round, once.
fn join(flow: &mut Flow, number: u32, round: u64, affected: &mut Vec<u32>) {
    if flow.round != round {
        (flow.round, flow.number) = (round, affected.len() as u32);
        affected.push(number);
    }
}
