//! Active flows, and their rates.

use super::allocation::{Filling, Limits};
use super::links::Links;
use super::route::Route;

/// Links with their capacities, and the flows over them. Rates and capacities have the same unit.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    links: Links,
    routes: Vec<Route>,
    /// The links of all routes.
    hops: Vec<u32>,
    /// Of each hop the flow's position among the users of the link.
    positions: Vec<u32>,
    limits: Limits,
    /// Links whose rates may have to change.
    changed_links: Vec<u32>,
    /// Started flows, each with its rate until the next allocation.
    begun: Vec<(u32, f64)>,
    /// Number of the current allocation, from 1.
    round: u32,
    filling: Filling,
}

impl Rates {
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        Rates {
            links: Links::new(capacities),
            routes: Vec::new(),
            hops: Vec::new(),
            positions: Vec::new(),
            limits: Limits::new(),
            changed_links: Vec::new(),
            begun: Vec::new(),
            round: 0,
            filling: Filling::default(),
        }
    }

    /// Adds an inactive flow.
    pub(super) fn add(&mut self, links: &[u32]) {
        self.routes.push(Route::default());
        self.reroute(self.routes.len() as u32 - 1, links);
    }

    /// Moves an inactive flow to other links, as many as paths of a topology have at most.
    pub(super) fn reroute(&mut self, flow: u32, links: &[u32]) {
        let least = links.iter().map(|link| self.links.get(*link).capacity).fold(f64::INFINITY, f64::min);
        self.limits.set(flow, least);
        self.routes[flow as usize].set_links(links, &mut self.hops);
        self.positions.resize(self.hops.len(), 0);
    }

    pub(super) fn is_in_use(&self, flow: u32) -> bool {
        self.routes[flow as usize].is_in_use
    }

    /// The links of a flow.
    pub(super) fn links(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        self.routes[flow as usize].links(&self.hops).iter().copied()
    }

    /// Activates a flow with the unused capacity of its links, which [`Rates::take_begun`] reports.
    pub(super) fn begin(&mut self, flow: u32) {
        let limit = self.limits.of(flow);
        let mut unused = limit;
        for hop in self.routes[flow as usize].range() {
            let link = self.hops[hop];
            self.links.demand(link, limit);
            let at = self.links.get(link);
            if at.is_tight() {
                self.changed_links.push(link);
                let used: f64 = self.links.of(link).iter().map(|user| self.routes[*user as usize].rate).sum();
                unused = unused.min((at.capacity - used).max(0.0));
            }
            self.positions[hop] = self.links.push(link, flow);
        }
        let route = &mut self.routes[flow as usize];
        (route.is_in_use, route.rate) = (true, unused);
        self.begun.push((flow, unused));
    }

    /// Deactivates a flow.
    pub(super) fn end(&mut self, flow: u32) {
        let limit = self.limits.of(flow);
        let route = &mut self.routes[flow as usize];
        (route.is_in_use, route.rate) = (false, 0.0);
        for hop in route.range() {
            let (link, position) = (self.hops[hop], self.positions[hop]);
            if self.links.get(link).is_tight() {
                self.changed_links.push(link);
            }
            if let Some(moved) = self.links.swap_remove(link, position, limit) {
                let moved = &self.routes[moved as usize];
                let place = moved.links(&self.hops).iter().position(|other| *other == link);
                if let Some(place) = place {
                    self.positions[moved.range().start + place] = position;
                }
            }
        }
    }

    /// Adds the started flows, with their preliminary rates.
    pub(super) fn take_begun(&mut self, changed: &mut Vec<(u32, f64)>) {
        changed.extend(self.begun.drain(..).filter(|(flow, _)| self.routes[*flow as usize].is_in_use));
    }

    /// True if a flow has begun or ended on a bottleneck link.
    pub(super) fn has_changes(&self) -> bool {
        !self.changed_links.is_empty()
    }

    /// Recomputes the rates that may have changed, and adds the flows with a new rate.
    pub(super) fn settle(&mut self, changed: &mut Vec<(u32, f64)>) {
        self.gather();
        self.filling.allocate(&mut self.routes, &self.limits, &self.links);
        for flow in self.filling.flows() {
            let route = &mut self.routes[*flow as usize];
            let rate = route.allocated;
            if rate != std::mem::replace(&mut route.rate, rate) {
                changed.push((*flow, rate));
            }
        }
    }

    /// Begins an allocation for the flows that share bottleneck links with the changed links, directly or transitively.
    fn gather(&mut self) {
        self.begin_round();
        let Rates { filling, routes, links, round, .. } = self;
        filling.clear();
        let join = |filling: &mut Filling, routes: &mut [Route], users: &[u32]| {
            for flow in users {
                let route = &mut routes[*flow as usize];
                if std::mem::replace(&mut route.round, *round) != *round {
                    route.allocated = f64::NAN;
                    filling.join(*flow);
                }
            }
        };
        for link in self.changed_links.drain(..) {
            join(filling, routes, links.of(link));
        }
        let mut position = 0;
        while let Some(flow) = filling.flows().get(position).copied() {
            position += 1;
            let route = &mut routes[flow as usize];
            route.crossed_at = filling.crossed();
            let route = *route;
            for link in route.links(&self.hops) {
                let at = links.get(*link);
                if !at.is_tight() {
                    continue;
                }
                let mut number = at.bottleneck;
                if !filling.is_bottleneck(number, *link) {
                    number = filling.add_bottleneck(*link, at.capacity, at.users());
                    links.set_bottleneck(*link, number);
                    join(filling, routes, links.of(*link));
                }
                filling.cross(number);
            }
            let route = &mut routes[flow as usize];
            route.crossed = (filling.crossed() - route.crossed_at) as u16;
        }
    }

    /// The number of the next allocation. Numbers may come again after all marks were removed.
    fn begin_round(&mut self) {
        if self.round == u32::MAX {
            self.round = 0;
            self.routes.iter_mut().for_each(|route| route.round = 0);
        }
        self.round += 1;
    }
}
