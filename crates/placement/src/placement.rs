//! Flows with their paths on a fabric, and how they change: flows come and go, links are drained and released.
//!
//! A change moves as few flows as it can. Flows whose links are drained have to move. Others move only if that takes
//! load off the most loaded link: one at a time, and never onto a link that would then carry as much.

use crate::bound::divided_bound;
use crate::clos::{Choice, Clos};
use crate::flow::Flow;
use crate::load::{Direction, Loads};
use crate::route::route;
use srdma_fabric::{HostId, LinkId, NodeId, Path, Topology};
use std::collections::VecDeque;

/// What counts as more, of a link's rate: less is rounding.
const MORE: f64 = 1e-9;

/// How far a limit is raised if nothing fits below it.
const RAISE: f64 = 1.1;

/// Rounds of the bound of fabrics that are no Clos, and how much work they may be, in links looked at.
const ROUNDS: usize = 1000;
const WORK: usize = 50_000_000;

/// Flows that may move to make room for one.
const CHAIN: usize = 64;

/// A flow of a placement, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Flows and their paths.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    topology: &'a Topology,
    clos: Option<Clos>,
    flows: Vec<Option<Placed>>,
    loads: Loads,
    /// The flows that use each direction.
    users: Vec<Vec<FlowId>>,
    is_drained: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Placed {
    flow: Flow,
    along: Vec<Direction>,
    /// On a Clos, if the path is one of its choices.
    choice: Option<Choice>,
}

/// Links for a flow, and on a Clos which choice they are.
type Way = (Vec<Direction>, Option<Choice>);

/// Why something cannot be placed or drained. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PlacementError {
    /// What is in the way.
    pub problem: String,
}

/// A path without so many links at either end.
fn inner(along: &[Direction], ends: usize) -> &[Direction] {
    along.get(ends..along.len().saturating_sub(ends)).unwrap_or(&[])
}

fn wrong<T>(problem: String) -> Result<T, PlacementError> {
    Err(PlacementError { problem })
}

impl<'a> Placement<'a> {
    /// Places flows: as evenly as whole flows can be on a folded Clos, one after the other with improvements elsewhere.
    ///
    /// # Errors
    ///
    /// A flow from or to a host that does not exist, or from a host to itself, or of rate 0.
    pub fn new(topology: &'a Topology, flows: &[Flow]) -> Result<Self, PlacementError> {
        let mut placement = Placement {
            topology,
            clos: Clos::recognise(topology).ok(),
            flows: Vec::new(),
            loads: Loads::none(topology),
            users: vec![Vec::new(); 2 * topology.links().len()],
            is_drained: vec![false; topology.links().len()],
        };
        flows.iter().try_for_each(|flow| placement.check(flow))?;
        let failed: Vec<LinkId> = topology.link_ids().filter(|link| topology.is_failed(*link)).collect();
        if placement.clos.is_none() {
            failed.iter().for_each(|link| placement.is_drained[link.index()] = true);
        }
        if let Some(clos) = placement.clos.clone() {
            for (flow, choice) in flows.iter().zip(clos.place(flows)) {
                placement.flows.push(None);
                let id = FlowId(placement.flows.len() as u32 - 1);
                placement.put(id, *flow, (clos.along(flow, choice), Some(choice)));
            }
        } else {
            let bound = placement.quick_bound(flows);
            let mut order: Vec<usize> = (0..flows.len()).collect();
            order.sort_by_key(|index| std::cmp::Reverse(flows[*index].rate_bits_per_s));
            placement.flows.resize_with(flows.len(), || None);
            for index in order {
                let way = placement.seek(&flows[index], bound).ok_or_else(|| placement.no_way(&flows[index]))?;
                placement.put(FlowId(index as u32), flows[index], way);
            }
        }
        placement.drain(&failed)?;
        Ok(placement)
    }

    /// Adds a flow, and returns it with those that had to move.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::new`]; all ways of the flow are drained.
    pub fn add(&mut self, flow: Flow) -> Result<(FlowId, Vec<FlowId>), PlacementError> {
        self.check(&flow)?;
        let way = self.seek(&flow, self.most_loaded().1).ok_or_else(|| self.no_way(&flow))?;
        self.flows.push(None);
        let id = FlowId(self.flows.len() as u32 - 1);
        self.put(id, flow, way);
        let moved = self.improve().into_iter().filter(|moved| *moved != id).collect();
        Ok((id, moved))
    }

    /// Takes a flow away; `false` if there is none.
    pub fn remove(&mut self, id: FlowId) -> bool {
        self.take(id).is_some()
    }

    /// Takes links out of use, and returns the flows that moved.
    ///
    /// # Errors
    ///
    /// A host would be cut off.
    pub fn drain(&mut self, links: &[LinkId]) -> Result<Vec<FlowId>, PlacementError> {
        let before = self.is_drained.clone();
        links.iter().for_each(|link| self.is_drained[link.index()] = true);
        if let Some(host) = self.cut_off() {
            self.is_drained = before;
            let name = self.topology.name(NodeId::Host(host));
            return wrong(format!("{name} would be cut off: release a link first, or drain fewer"));
        }
        let mut moved = Vec::new();
        for link in links {
            for is_backward in [false, true] {
                moved.extend(self.users[Direction { link: *link, is_backward }.index()].iter().copied());
            }
        }
        moved.sort_unstable();
        moved.dedup();
        let most = self.most_loaded().1;
        let homeless: Vec<(FlowId, Flow)> = moved.iter().filter_map(|id| Some((*id, self.take(*id)?.flow))).collect();
        for (id, flow) in homeless {
            // Every host reaches every other, so that there is a way.
            let way = self.seek(&flow, most).unwrap_or_default();
            self.put(id, flow, way);
        }
        moved.extend(self.improve());
        moved.sort_unstable();
        moved.dedup();
        Ok(moved)
    }

    /// Takes links into use again, but for those that have failed, and returns the flows that moved.
    pub fn release(&mut self, links: &[LinkId]) -> Vec<FlowId> {
        links.iter().for_each(|link| self.is_drained[link.index()] = self.topology.is_failed(*link));
        self.improve()
    }

    /// The flows that there are.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        (0..).zip(&self.flows).filter_map(|(id, placed)| Some((FlowId(id), &placed.as_ref()?.flow)))
    }

    /// The path of a flow.
    pub fn path(&self, id: FlowId) -> Option<Path> {
        let Placed { flow, along, .. } = self.flows.get(id.0 as usize)?.as_ref()?;
        let links = along.iter().map(|direction| direction.link).collect();
        Some(Path { from: flow.from, to: flow.to, links })
    }

    /// A path for a flow that shares as little as possible with its own, to change to when that fails: no switch and no
    /// link, or those at its hosts alone, or at least no link but its hosts'; `None` if there is none.
    pub fn backup(&self, id: FlowId) -> Option<Path> {
        let Placed { flow, along, .. } = self.flows.get(id.0 as usize)?.as_ref()?;
        let switches = inner(along, 0).iter().skip(1).map(|direction| direction.origin(self.topology));
        let switches: Vec<NodeId> = switches.collect();
        let inner_switches = switches.get(1..switches.len().saturating_sub(1)).unwrap_or(&[]);
        let ways = [
            (inner(along, 0), &switches[..]),
            (inner(along, 1), inner_switches),
            (inner(along, 0), &[]),
            (inner(along, 1), &[]),
        ];
        let found = ways.into_iter().filter(|(links, _)| !links.is_empty()).find_map(|(links, switches)| {
            let is_free = |direction: Direction| {
                !self.is_drained[direction.link.index()]
                    && !links.iter().any(|own| own.link == direction.link)
                    && !switches.contains(&direction.to(self.topology))
            };
            route(self.topology, &self.loads, [flow.from, flow.to], is_free)
        })?;
        let links = found.iter().map(|direction| direction.link).collect();
        Some(Path { from: flow.from, to: flow.to, links })
    }

    /// What links carry.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// The flows that use a direction of a link.
    pub fn users(&self, direction: Direction) -> &[FlowId] {
        &self.users[direction.index()]
    }

    /// The direction that carries most, by its link's rate.
    pub fn most_loaded(&self) -> (Direction, f64) {
        self.loads.most_loaded(self.topology)
    }

    /// What the most loaded link carries at least, whatever paths these flows have.
    pub fn bound(&self) -> f64 {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        self.bound_of(&flows)
    }

    /// A bound that costs little: on a Clos the whole one, elsewhere that of the hosts' links.
    fn quick_bound(&self, flows: &[Flow]) -> f64 {
        if let Some(bound) = self.clos_bound(flows) {
            return bound;
        }
        let mut sums = vec![[0_u64; 2]; self.topology.hosts().len()];
        for flow in flows {
            sums[flow.from.index()][0] += flow.rate_bits_per_s;
            sums[flow.to.index()][1] += flow.rate_bits_per_s;
        }
        let rate = |host: HostId| {
            let ports = self.topology.ports(NodeId::Host(host)).iter();
            let open = ports.filter(|port| !self.is_drained[port.link.index()]);
            open.map(|port| self.topology.links()[port.link.index()].rate_bits_per_s).sum::<u64>().max(1) as f64
        };
        let share = |host: HostId| sums[host.index()].into_iter().max().unwrap_or(0) as f64 / rate(host);
        self.topology.host_ids().map(share).fold(0.0, f64::max)
    }

    fn bound_of(&self, flows: &[Flow]) -> f64 {
        self.clos_bound(flows).unwrap_or_else(|| {
            let may_use = |direction: Direction| !self.is_drained[direction.link.index()];
            let links = self.topology.links().len().max(1);
            let rounds = WORK / links / self.topology.hosts().len().min(flows.len()).max(1);
            divided_bound(self.topology, flows, may_use, rounds.clamp(16, ROUNDS))
        })
    }

    /// The bound of a Clos of which nothing is drained.
    fn clos_bound(&self, flows: &[Flow]) -> Option<f64> {
        let clos = self.clos.as_ref().filter(|_| !self.is_drained.contains(&true));
        clos.map(|clos| clos.bound(self.topology, flows))
    }

    fn check(&self, flow: &Flow) -> Result<(), PlacementError> {
        let hosts = self.topology.hosts().len();
        for end in [flow.from, flow.to] {
            if end.index() >= hosts {
                return wrong(format!("a flow ends at host {}, but there are {hosts}", end.index()));
            }
        }
        if flow.from == flow.to {
            return wrong(format!("a flow goes from {} to itself", self.topology.name(NodeId::Host(flow.from))));
        }
        if flow.rate_bits_per_s == 0 {
            return wrong(format!("a flow of {} has rate 0", self.topology.name(NodeId::Host(flow.from))));
        }
        Ok(())
    }

    fn no_way(&self, flow: &Flow) -> PlacementError {
        let [from, to] = [flow.from, flow.to].map(|host| self.topology.name(NodeId::Host(host)));
        PlacementError { problem: format!("there is no way from {from} to {to} on links that are not drained") }
    }

    fn put(&mut self, id: FlowId, flow: Flow, (along, choice): Way) {
        self.loads.add(self.topology, &along, flow.rate_bits_per_s);
        along.iter().for_each(|direction| self.users[direction.index()].push(id));
        self.flows[id.0 as usize] = Some(Placed { flow, along, choice });
    }

    fn take(&mut self, id: FlowId) -> Option<Placed> {
        let placed = self.flows.get_mut(id.0 as usize)?.take()?;
        self.loads.remove(self.topology, &placed.along, placed.flow.rate_bits_per_s);
        placed.along.iter().for_each(|direction| self.users[direction.index()].retain(|user| *user != id));
        Some(placed)
    }

    /// Links for a flow, none of which then carries more than a limit; or little more than it, if that cannot be.
    fn seek(&self, flow: &Flow, limit: f64) -> Option<Way> {
        if let Some(way) = self.seek_below(flow, limit).or_else(|| self.seek_choice(flow, f64::INFINITY)) {
            return Some(way);
        }
        // On a Clos so many links are drained that the way goes down and up again.
        let mut limit = limit.max(MORE);
        while limit.is_finite() {
            if let Some(way) = self.seek_route(flow, limit) {
                return Some(way);
            }
            limit *= RAISE;
        }
        None
    }

    /// Links for a flow, none of which then carries more than a limit.
    fn seek_below(&self, flow: &Flow, limit: f64) -> Option<Way> {
        if self.clos.is_some() { self.seek_choice(flow, limit) } else { self.seek_route(flow, limit) }
    }

    /// Of all choices on a Clos the one whose links carry least.
    fn seek_choice(&self, flow: &Flow, limit: f64) -> Option<Way> {
        let clos = self.clos.as_ref()?;
        let mut best: Option<((f64, f64), Way)> = None;
        for choice in clos.choices(flow) {
            let along = clos.along(flow, choice);
            let shares = along.iter().map(|direction| self.share(flow, *direction));
            let cost = shares.fold((0.0_f64, 0.0), |(most, sum), own| (most.max(own), sum + own));
            if cost.0 <= limit + MORE && cost.0.is_finite() && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, (along, Some(choice))));
            }
        }
        best.map(|(_, way)| way)
    }

    /// The shortest way of all that fit.
    fn seek_route(&self, flow: &Flow, limit: f64) -> Option<Way> {
        let fits = |direction: Direction| {
            let share = self.share(flow, direction);
            share.is_finite() && share <= limit + MORE
        };
        route(self.topology, &self.loads, [flow.from, flow.to], fits).map(|along| (along, None))
    }

    /// What a direction carries with a flow more on it; without end if it is drained.
    fn share(&self, flow: &Flow, direction: Direction) -> f64 {
        match self.is_drained[direction.link.index()] {
            true => f64::INFINITY,
            false => self.loads.share_with(self.topology, direction, flow.rate_bits_per_s),
        }
    }

    /// Moves flows off the most loaded link for as long as that makes it carry less, and returns those that moved.
    fn improve(&mut self) -> Vec<FlowId> {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        let bound = self.quick_bound(&flows);
        let mut moved = Vec::new();
        for _ in 0..self.flows.len() {
            let (direction, most) = self.most_loaded();
            if most <= bound + MORE {
                break;
            }
            let Some(own) = self.relieve(direction, most - 2.0 * MORE) else {
                break;
            };
            moved.extend(own);
        }
        moved.sort_unstable();
        moved.dedup();
        moved
    }

    /// Moves a flow off a direction, to where nothing carries more than a limit, and others out of its way if need be.
    fn relieve(&mut self, direction: Direction, limit: f64) -> Option<Vec<FlowId>> {
        let users = self.users[direction.index()].clone();
        for id in &users {
            let Placed { flow, along, choice } = self.take(*id)?;
            let found = self.seek_below(&flow, limit).filter(|(found, _)| !found.contains(&direction));
            let has_moved = found.is_some();
            self.put(*id, flow, found.unwrap_or((along, choice)));
            if has_moved {
                return Some(vec![*id]);
            }
        }
        users.into_iter().find_map(|id| self.exchange(id, limit))
    }

    /// Changes a flow's choice for each other one in turn, until making room for it ends well.
    fn exchange(&mut self, id: FlowId, limit: f64) -> Option<Vec<FlowId>> {
        let Placed { flow, choice, .. } = self.flows[id.0 as usize].as_ref()?;
        let (flow, own) = (*flow, (*choice)?);
        let choices = self.clos.as_ref()?.choices(&flow);
        choices.into_iter().filter(|choice| *choice != own).find_map(|other| self.chain(id, [own, other], limit))
    }

    /// Lets a flow change from one choice to another, a flow that is in its way change back, and so on: along a chain
    /// of flows that alternate between the two (Kempe's chain, as in König's proof). What has moved is put back if the
    /// chain does not end.
    fn chain(&mut self, id: FlowId, [own, other]: [Choice; 2], limit: f64) -> Option<Vec<FlowId>> {
        let mut before: Vec<(FlowId, Placed)> = Vec::new();
        let mut next = Some((id, other));
        while let Some((id, choice)) = next.take().filter(|_| before.len() < CHAIN) {
            let Some(placed) = self.take(id) else { break };
            let flow = placed.flow;
            before.push((id, placed));
            let along = self.clos.as_ref()?.along(&flow, choice);
            let too_much = |direction: &&Direction| self.share(&flow, **direction) > limit + MORE;
            let full: Vec<Direction> = along.iter().filter(too_much).copied().collect();
            let is_open = along.iter().all(|direction| !self.is_drained[direction.link.index()]);
            self.put(id, flow, (along, Some(choice)));
            match full[..] {
                [] if is_open => return Some(before.into_iter().map(|(id, _)| id).collect()),
                [full] if is_open => {
                    let back = if choice == own { other } else { own };
                    let stays = |user: &FlowId| before.iter().any(|(id, _)| id == user);
                    let chose = |user: &FlowId| {
                        self.flows[user.0 as usize].as_ref().is_some_and(|user| user.choice == Some(choice))
                    };
                    let user = self.users[full.index()].iter().find(|user| !stays(user) && chose(user));
                    next = user.map(|user| (*user, back));
                }
                _ => {}
            }
        }
        for (id, Placed { flow, along, choice }) in before.into_iter().rev() {
            self.take(id);
            self.put(id, flow, (along, choice));
        }
        None
    }

    /// A host that does not reach the others any more.
    fn cut_off(&self) -> Option<HostId> {
        let first = NodeId::Host(HostId(0));
        let mut reached = std::collections::BTreeSet::from([first]);
        let mut open = VecDeque::from([first]);
        while let Some(node) = open.pop_front() {
            if matches!(node, NodeId::Host(_)) && node != first {
                continue;
            }
            for port in self.topology.ports(node) {
                if !self.is_drained[port.link.index()] && reached.insert(port.peer.node) {
                    open.push_back(port.peer.node);
                }
            }
        }
        let is_reached = |host: &HostId| reached.contains(&NodeId::Host(*host));
        let alone = reached.len() == 1;
        self.topology.host_ids().find(|host| alone || !is_reached(host))
    }
}
