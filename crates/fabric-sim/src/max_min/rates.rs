//! Active flows, and their rates.
//!
//! What an allocation reads of all flows and links is in lists of its own: thousands of flows that share links are
//! visited each time.

use super::allocation::Filling;

/// Relative demand above which a link is a bottleneck; a smaller excess is rounding.
const TOLERANCE: f64 = 1.0 + 1e-9;

/// Links with their capacities, and the flows over them. Rates and capacities have the same unit.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    links: Vec<Link>,
    /// Whether the demand of a link exceeds its capacity.
    are_tight: Vec<bool>,
    /// The active flows of each link.
    users: Vec<Vec<User>>,
    /// Of each link the allocation in which it last was a bottleneck, and its position there.
    bottleneck_marks: Vec<Mark>,
    flows: Vec<Flow>,
    /// The links of all flows.
    hops: Vec<Hop>,
    /// Rate of each flow without competition.
    limits: Vec<f64>,
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
    /// Sum of the rates of its flows.
    used: f64,
}

/// An active flow of a link, with the position of the link among the hops of all flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) flow: u32,
    hop: u32,
}

/// A link of a flow, with the flow's position among the users of the link.
#[derive(Clone, Copy, Debug)]
struct Hop {
    link: u32,
    position: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    round: u32,
    number: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Its links among the hops.
    first: u32,
    count: u32,
    /// Hops that it may have there.
    room: u32,
    is_in_use: bool,
    rate: f64,
}

impl Flow {
    fn range(self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

impl Link {
    fn is_tight(self) -> bool {
        self.demand > self.capacity * TOLERANCE
    }
}

impl Rates {
    pub(super) fn new(capacities: impl IntoIterator<Item = f64>) -> Self {
        let links: Vec<Link> =
            capacities.into_iter().map(|capacity| Link { capacity, demand: 0.0, used: 0.0 }).collect();
        Rates {
            are_tight: vec![false; links.len()],
            users: vec![Vec::new(); links.len()],
            bottleneck_marks: vec![Mark::default(); links.len()],
            links,
            flows: Vec::new(),
            hops: Vec::new(),
            limits: Vec::new(),
            flow_marks: Vec::new(),
            changed_links: Vec::new(),
            begun: Vec::new(),
            round: 0,
            filling: Filling::default(),
        }
    }

    /// Adds an inactive flow.
    pub(super) fn add(&mut self, links: &[u32]) {
        self.flows.push(Flow { first: 0, count: 0, room: 0, is_in_use: false, rate: 0.0 });
        self.limits.push(0.0);
        self.flow_marks.push(0);
        self.filling.add_flow();
        self.reroute(self.flows.len() as u32 - 1, links);
    }

    /// Moves an inactive flow to other links.
    pub(super) fn reroute(&mut self, flow: u32, links: &[u32]) {
        let least = links.iter().map(|link| self.links[*link as usize].capacity).fold(f64::INFINITY, f64::min);
        self.limits[flow as usize] = least;
        let flow = &mut self.flows[flow as usize];
        flow.count = links.len() as u32;
        if flow.room < flow.count {
            (flow.first, flow.room) = (self.hops.len() as u32, flow.count);
            self.hops.resize(self.hops.len() + links.len(), Hop { link: 0, position: 0 });
        }
        for (hop, link) in self.hops[flow.range()].iter_mut().zip(links) {
            *hop = Hop { link: *link, position: 0 };
        }
    }

    pub(super) fn is_in_use(&self, flow: u32) -> bool {
        self.flows[flow as usize].is_in_use
    }

    /// The links of a flow.
    pub(super) fn links(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        self.hops[self.flows[flow as usize].range()].iter().map(|hop| hop.link)
    }

    /// Activates a flow with the unused capacity of its links, which [`Rates::take_begun`] reports.
    pub(super) fn begin(&mut self, number: u32) {
        let limit = self.limits[number as usize];
        let flow = &mut self.flows[number as usize];
        let mut unused = limit;
        for hop in flow.range() {
            let Hop { link, position } = &mut self.hops[hop];
            let (at, users) = (&mut self.links[*link as usize], &mut self.users[*link as usize]);
            *position = users.len() as u32;
            users.push(User { flow: number, hop: hop as u32 });
            at.demand += limit;
            self.are_tight[*link as usize] = at.is_tight();
            if at.is_tight() {
                self.changed_links.push(*link);
                unused = unused.min((at.capacity - at.used).max(0.0));
            }
        }
        (flow.is_in_use, flow.rate) = (true, unused);
        self.hops[flow.range()].iter().for_each(|hop| self.links[hop.link as usize].used += unused);
        self.begun.push((number, unused));
    }

    /// Deactivates a flow.
    pub(super) fn end(&mut self, number: u32) {
        let limit = self.limits[number as usize];
        let flow = &mut self.flows[number as usize];
        flow.is_in_use = false;
        for hop in flow.range() {
            let Hop { link, position } = self.hops[hop];
            let (at, users) = (&mut self.links[link as usize], &mut self.users[link as usize]);
            if at.is_tight() {
                self.changed_links.push(link);
            }
            users.swap_remove(position as usize);
            // Without users the sums are exactly 0.
            let is_last = users.is_empty();
            at.demand = if is_last { 0.0 } else { at.demand - limit };
            at.used = if is_last { 0.0 } else { at.used - flow.rate };
            self.are_tight[link as usize] = at.is_tight();
            if let Some(moved) = users.get(position as usize) {
                self.hops[moved.hop as usize].position = position;
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
        self.gather();
        self.filling.allocate(&self.limits, &self.users);
        for (number, rate) in self.filling.flows() {
            let flow = &mut self.flows[number as usize];
            if rate != flow.rate {
                for hop in &self.hops[flow.range()] {
                    self.links[hop.link as usize].used += rate - flow.rate;
                }
                flow.rate = rate;
                changed.push((number, rate));
            }
        }
    }

    /// Begins an allocation for the flows that share bottleneck links with the changed links, directly or transitively.
    fn gather(&mut self) {
        self.begin_round();
        let Rates { filling, flow_marks, bottleneck_marks, users, round, .. } = self;
        filling.clear();
        let mut join = |filling: &mut Filling, link: u32| {
            for User { flow, .. } in &users[link as usize] {
                if std::mem::replace(&mut flow_marks[*flow as usize], *round) != *round {
                    filling.join(*flow);
                }
            }
        };
        self.changed_links.drain(..).for_each(|link| join(filling, link));
        let mut position = 0;
        while let Some(flow) = filling.enter(position) {
            position += 1;
            for hop in &self.hops[self.flows[flow as usize].range()] {
                if !self.are_tight[hop.link as usize] {
                    continue;
                }
                let mark = &mut bottleneck_marks[hop.link as usize];
                if mark.round != *round {
                    let capacity = self.links[hop.link as usize].capacity;
                    let number = filling.add_bottleneck(hop.link, capacity, users[hop.link as usize].len());
                    *mark = Mark { round: *round, number };
                    join(filling, hop.link);
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
