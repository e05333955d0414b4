//! Active flows, and their rates.
//!
//! What an allocation reads of flows and links is in lists of its own, as short as possible: it visits thousands of
//! flows that share links, in an order that no cache foresees.

use super::allocation::{Filling, Limits};
use super::users::Users;

/// Relative demand above which a link is a bottleneck; a smaller excess is rounding.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// Links with their capacities, and the flows over them. Rates and capacities have the same unit.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    links: Vec<Link>,
    /// Whether the demand of a link exceeds its capacity.
    are_tight: Vec<bool>,
    users: Users,
    /// Of each link the allocation in which it last was a bottleneck, and its position there.
    bottleneck_marks: Vec<Mark>,
    routes: Vec<Route>,
    /// The links of all routes.
    hops: Vec<u32>,
    /// Of each hop the flow's position among the users of the link.
    positions: Vec<u32>,
    limits: Limits,
    rates: Vec<f64>,
    are_in_use: Vec<bool>,
    /// Of each flow the last allocation in which it took part.
    flow_marks: Vec<u32>,
    /// Links whose rates may have to change.
    changed_links: Vec<u32>,
    /// Started flows, each with its rate until the next allocation.
    begun: Vec<(u32, f64)>,
    /// Number of the current allocation, from 1.
    round: u32,
    filling: Filling,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    capacity: f64,
    /// Sum of the limits of its flows.
    demand: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    round: u32,
    number: u32,
}

/// The links of a flow among the hops.
#[derive(Clone, Copy, Debug, Default)]
struct Route {
    first: u32,
    count: u16,
    /// Hops that it may have there.
    room: u16,
}

impl Route {
    fn range(self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.count)
    }
}

impl Link {
    fn is_tight(self) -> bool {
        self.demand > self.capacity * TOLERANCE
    }
}

impl Rates {
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let links: Vec<Link> = capacities.into_iter().map(|capacity| Link { capacity, demand: 0.0 }).collect();
        Rates {
            are_tight: vec![false; links.len()],
            users: Users::new(links.len()),
            bottleneck_marks: vec![Mark::default(); links.len()],
            links,
            routes: Vec::new(),
            hops: Vec::new(),
            positions: Vec::new(),
            limits: Limits::new(),
            rates: Vec::new(),
            are_in_use: Vec::new(),
            flow_marks: Vec::new(),
            changed_links: Vec::new(),
            begun: Vec::new(),
            round: 0,
            filling: Filling::default(),
        }
    }

    /// Adds an inactive flow.
    pub(super) fn add(&mut self, links: &[u32]) {
        self.routes.push(Route::default());
        self.rates.push(0.0);
        self.are_in_use.push(false);
        self.flow_marks.push(0);
        self.filling.add_flow();
        self.reroute(self.routes.len() as u32 - 1, links);
    }

    /// Moves an inactive flow to other links, as many as paths of a topology have at most.
    pub(super) fn reroute(&mut self, flow: u32, links: &[u32]) {
        let least = links.iter().map(|link| self.links[*link as usize].capacity).fold(f64::INFINITY, f64::min);
        self.limits.set(flow, least);
        let route = &mut self.routes[flow as usize];
        route.count = links.len() as u16;
        if route.room < route.count {
            (route.first, route.room) = (self.hops.len() as u32, route.count);
            self.hops.resize(self.hops.len() + links.len(), 0);
            self.positions.resize(self.hops.len(), 0);
        }
        self.hops[route.range()].copy_from_slice(links);
    }

    pub(super) fn is_in_use(&self, flow: u32) -> bool {
        self.are_in_use[flow as usize]
    }

    /// The links of a flow.
    pub(super) fn links(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        self.hops[self.routes[flow as usize].range()].iter().copied()
    }

    /// Activates a flow with the unused capacity of its links, which [`Rates::take_begun`] reports.
    pub(super) fn begin(&mut self, flow: u32) {
        let limit = self.limits.of(flow);
        let mut unused = limit;
        for hop in self.routes[flow as usize].range() {
            let link = self.hops[hop];
            let at = &mut self.links[link as usize];
            at.demand += limit;
            self.are_tight[link as usize] = at.is_tight();
            if at.is_tight() {
                self.changed_links.push(link);
                let used: f64 = self.users.of(link).iter().map(|user| self.rates[*user as usize]).sum();
                unused = unused.min((at.capacity - used).max(0.0));
            }
            self.positions[hop] = self.users.push(link, flow);
        }
        (self.are_in_use[flow as usize], self.rates[flow as usize]) = (true, unused);
        self.begun.push((flow, unused));
    }

    /// Deactivates a flow.
    pub(super) fn end(&mut self, flow: u32) {
        let limit = self.limits.of(flow);
        (self.are_in_use[flow as usize], self.rates[flow as usize]) = (false, 0.0);
        for hop in self.routes[flow as usize].range() {
            let (link, position) = (self.hops[hop], self.positions[hop]);
            let at = &mut self.links[link as usize];
            if at.is_tight() {
                self.changed_links.push(link);
            }
            if let Some(moved) = self.users.swap_remove(link, position) {
                let mut hops = self.routes[moved as usize].range();
                if let Some(hop) = hops.find(|hop| self.hops[*hop] == link) {
                    self.positions[hop] = position;
                }
            }
            // Without users the sum is exactly 0.
            at.demand = if self.users.of(link).is_empty() { 0.0 } else { at.demand - limit };
            self.are_tight[link as usize] = at.is_tight();
        }
    }

    /// Adds the started flows, with their preliminary rates.
    pub(super) fn take_begun(&mut self, changed: &mut Vec<(u32, f64)>) {
        changed.extend(self.begun.drain(..).filter(|(flow, _)| self.are_in_use[*flow as usize]));
    }

    /// True if a flow has begun or ended on a bottleneck link.
    pub(super) fn has_changes(&self) -> bool {
        !self.changed_links.is_empty()
    }

    /// Recomputes the rates that may have changed, and adds the flows with a new rate.
    pub(super) fn settle(&mut self, changed: &mut Vec<(u32, f64)>) {
        self.gather();
        self.filling.allocate(&self.limits, &self.users);
        for (flow, rate) in self.filling.flows() {
            if rate != std::mem::replace(&mut self.rates[flow as usize], rate) {
                changed.push((flow, rate));
            }
        }
    }

    /// Begins an allocation for the flows that share bottleneck links with the changed links, directly or transitively.
    fn gather(&mut self) {
        self.begin_round();
        let Rates { filling, flow_marks, bottleneck_marks, users, round, .. } = self;
        filling.clear();
        let mut join = |filling: &mut Filling, link: u32| {
            for flow in users.of(link) {
                if std::mem::replace(&mut flow_marks[*flow as usize], *round) != *round {
                    filling.join(*flow);
                }
            }
        };
        self.changed_links.drain(..).for_each(|link| join(filling, link));
        let mut position = 0;
        while let Some(flow) = filling.enter(position) {
            position += 1;
            for link in &self.hops[self.routes[flow as usize].range()] {
                if !self.are_tight[*link as usize] {
                    continue;
                }
                let mark = &mut bottleneck_marks[*link as usize];
                if mark.round != *round {
                    let capacity = self.links[*link as usize].capacity;
                    let number = filling.add_bottleneck(*link, capacity, users.of(*link).len());
                    *mark = Mark { round: *round, number };
                    join(filling, *link);
                }
                filling.cross(flow, mark.number);
            }
        }
    }

    /// The number of the next allocation. Numbers may come again after all marks were removed.
    fn begin_round(&mut self) {
        if self.round == u32::MAX {
            self.round = 0;
            self.flow_marks.fill(0);
            self.bottleneck_marks.fill(Mark::default());
        }
        self.round += 1;
    }
}
