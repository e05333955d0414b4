//! Flows with their paths on a fabric, and how they change: flows come and go, links are drained and released.
//!
//! A change moves as few flows as it can. Flows whose links are drained have to move. Others move only if that takes
//! load off the most loaded link: one at a time, and never onto a link that would then carry as much. Only at the
//! beginning, when nothing runs yet, may all flows choose again.

mod bounds;
mod explain;
mod improve;
mod level;
mod planes;
mod prices;
mod seek;
mod trees;

use crate::clos::{Choice, Clos};
use crate::deadline::{Deadline, Phase};
use crate::flow::Flow;
use crate::group_flow::GroupFlow;
use crate::load::{Direction, Loads, directions};
use crate::route::route;
pub use explain::Alternative;
use srdma_fabric::{HostId, LinkId, MOST_BITS_PER_S, NodeId, Path, Topology};
use std::collections::VecDeque;
use trees::PlacedGroup;

/// Differences above this share of a link's rate count as more: smaller ones are rounding.
const MORE: f64 = 1e-9;

/// Chains of exchanges that are tried to relieve a link after others were drained. Often there is nothing to be found,
/// and flows wait for it.
const CHAINS: usize = 1000;

/// A flow of a placement, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A group of a placement, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u32);

/// Flows and their paths, and groups and their trees.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    topology: &'a Topology,
    clos: Option<Clos>,
    flows: Vec<Option<Placed>>,
    groups: Vec<Option<PlacedGroup>>,
    loads: Loads,
    /// The flows that use each direction.
    users: Vec<Vec<FlowId>>,
    is_drained: Vec<bool>,
    deadline: Deadline<'a>,
    /// The deadline has ended an improvement.
    is_cut_short: bool,
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

/// The reason why something cannot be placed or drained. The placement is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PlacementError {
    /// The reason.
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
    /// Places flows: as evenly as whole flows can be on a folded Clos, elsewhere one after the other where there is
    /// room. Where that is not the best there can be, they choose again, by prices.
    ///
    /// # Errors
    ///
    /// A flow from or to a host that does not exist, or from a host to itself, or of rate 0.
    pub fn new(topology: &'a Topology, flows: &[Flow]) -> Result<Self, PlacementError> {
        Placement::new_within(topology, flows, Deadline::NONE)
    }

    /// The same within time limits, which later changes have too.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::new`]; the time is over.
    pub fn new_within(topology: &'a Topology, flows: &[Flow], deadline: Deadline<'a>) -> Result<Self, PlacementError> {
        Placement::with_groups_within(topology, flows, &[], deadline)
    }

    /// The same with multicast groups, whose trees carry their octets once on each link.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::new_within`], and those of [`Placement::add_group`].
    pub fn with_groups_within(
        topology: &'a Topology,
        flows: &[Flow],
        groups: &[GroupFlow],
        deadline: Deadline<'a>,
    ) -> Result<Self, PlacementError> {
        let mut placement = Placement {
            topology,
            clos: Clos::recognise(topology).ok(),
            flows: Vec::new(),
            groups: Vec::new(),
            loads: Loads::none(topology),
            users: vec![Vec::new(); 2 * topology.links().len()],
            is_drained: vec![false; topology.links().len()],
            deadline,
            is_cut_short: false,
        };
        flows.iter().try_for_each(|flow| placement.check(flow))?;
        let failed: Vec<LinkId> = topology.link_ids().filter(|link| topology.is_failed(*link)).collect();
        if placement.clos.is_none() {
            failed.iter().for_each(|link| placement.is_drained[link.index()] = true);
        }
        groups.iter().try_for_each(|group| placement.add_group(group.clone()).map(drop))?;
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
                placement.check_time()?;
                let way = placement.seek(&flows[index], bound).ok_or_else(|| placement.no_way(&flows[index]))?;
                placement.put(FlowId(index as u32), flows[index], way);
            }
        }
        if !failed.is_empty() {
            placement.drain(&failed)?;
        }
        placement.settle();
        Ok(placement)
    }

    /// Flows with the paths that they have already, on a fabric of which some links are drained, and those that had to
    /// move since their links have failed.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::new`]; a path that does not belong to its flow, or uses a drained link; a host that is cut
    /// off.
    pub fn with_paths(
        topology: &'a Topology,
        flows: &[(Flow, Path)],
        drained: &[LinkId],
    ) -> Result<(Self, Vec<FlowId>), PlacementError> {
        Placement::with_paths_within(topology, flows, drained, Deadline::NONE)
    }

    /// The same within time limits, which later changes have too.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::with_paths`]; the time is over.
    pub fn with_paths_within(
        topology: &'a Topology,
        flows: &[(Flow, Path)],
        drained: &[LinkId],
        deadline: Deadline<'a>,
    ) -> Result<(Self, Vec<FlowId>), PlacementError> {
        let mut placement = Placement::new_within(topology, &[], deadline)?;
        let mut is_drained = vec![false; topology.links().len()];
        drained.iter().for_each(|link| is_drained[link.index()] = true);
        placement.is_drained.fill(false);
        for (id, (flow, path)) in (0..).map(FlowId).zip(flows) {
            placement.check(flow)?;
            let [from, to] = [flow.from, flow.to].map(|host| topology.name(NodeId::Host(host)));
            let checked = Path::new(topology, flow.from, path.links.clone());
            if let Err(problem) = checked.and_then(|found| found.ends_at(topology, flow.to)) {
                return wrong(format!("the flow from {from} to {to} has no path: {problem}"));
            }
            if let Some(link) = path.links.iter().find(|link| is_drained[link.index()]) {
                let name = topology.link_name(*link);
                return wrong(format!("the flow from {from} to {to} goes over {name}, which is drained"));
            }
            let along = directions(topology, path);
            let choice = placement.clos.as_ref().and_then(|clos| clos.choice(flow, &along));
            placement.flows.push(None);
            placement.put(id, *flow, (along, choice));
        }
        let failed: Vec<LinkId> = topology.link_ids().filter(|link| topology.is_failed(*link)).collect();
        let uses_failed = |(_, path): &(Flow, Path)| path.links.iter().any(|link| topology.is_failed(*link));
        drained.iter().for_each(|link| placement.is_drained[link.index()] = true);
        if flows.iter().any(uses_failed) {
            let moved = placement.drain(&failed)?;
            return Ok((placement, moved));
        }
        failed.iter().for_each(|link| placement.is_drained[link.index()] = true);
        match placement.cut_off() {
            Some(host) => wrong(format!("{} is cut off", topology.name(NodeId::Host(host)))),
            None => Ok((placement, Vec::new())),
        }
    }

    /// Adds a flow, and returns it with those that had to move.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::new`]; all ways of the flow are drained.
    pub fn add(&mut self, flow: Flow) -> Result<(FlowId, Vec<FlowId>), PlacementError> {
        self.check(&flow)?;
        self.check_time()?;
        let before = self.most_loaded().1;
        let way = self.seek(&flow, before).ok_or_else(|| self.no_way(&flow))?;
        self.flows.push(None);
        let id = FlowId(self.flows.len() as u32 - 1);
        self.put(id, flow, way);
        if self.has_to_end() || self.most_loaded().1 <= before + MORE {
            return Ok((id, Vec::new()));
        }
        let moved = self.improve().into_iter().filter(|moved| *moved != id).collect();
        Ok((id, moved))
    }

    /// Removes a flow; `false` if there is none.
    pub fn remove(&mut self, id: FlowId) -> bool {
        self.take(id).is_some()
    }

    /// Takes links out of use, and returns the flows that moved.
    ///
    /// # Errors
    ///
    /// A host would be cut off; the time is over, and the placement is of no further use.
    pub fn drain(&mut self, links: &[LinkId]) -> Result<Vec<FlowId>, PlacementError> {
        let before = self.is_drained.clone();
        links.iter().for_each(|link| self.is_drained[link.index()] = true);
        if let Some(host) = self.cut_off() {
            self.is_drained = before;
            let name = self.topology.name(NodeId::Host(host));
            return wrong(format!("{name} would be cut off: release a link first, or drain fewer"));
        }
        self.replant_closed()?;
        let mut moved = Vec::new();
        for link in links {
            for is_backward in [false, true] {
                moved.extend(self.users[Direction { link: *link, is_backward }.index()].iter().copied());
            }
        }
        moved.sort_unstable();
        moved.dedup();
        let most = self.most_loaded().1;
        let homeless: Vec<(FlowId, Placed)> = moved.iter().filter_map(|id| Some((*id, self.take(*id)?))).collect();
        for (id, Placed { flow, choice, .. }) in homeless {
            self.check_time()?;
            // In the same plane leaves stay even. Every host reaches every other, so a path exists.
            let in_plane = || choice.and_then(|choice| self.seek_in_plane(&flow, choice.plane));
            let way = self.seek_below(&flow, most).or_else(in_plane).or_else(|| self.seek(&flow, most));
            self.put(id, flow, way.unwrap_or_default());
        }
        moved.extend(self.improve_by(CHAINS));
        moved.extend(self.relieve_by_trees());
        moved.sort_unstable();
        moved.dedup();
        Ok(moved)
    }

    /// Releases drained links, except failed ones, and returns the flows that moved.
    pub fn release(&mut self, links: &[LinkId]) -> Vec<FlowId> {
        links.iter().for_each(|link| self.is_drained[link.index()] = self.topology.is_failed(*link));
        let mut moved = self.improve();
        moved.extend(self.relieve_by_trees());
        moved
    }

    /// All flows.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        (0..).zip(&self.flows).filter_map(|(id, placed)| Some((FlowId(id), &placed.as_ref()?.flow)))
    }

    /// The path of a flow.
    pub fn path(&self, id: FlowId) -> Option<Path> {
        let Placed { flow, along, .. } = self.flows.get(id.0 as usize)?.as_ref()?;
        let links = along.iter().map(|direction| direction.link).collect();
        Some(Path { from: flow.from, to: flow.to, links })
    }

    /// A backup path for a flow that shares as little as possible with its own: no switch and no link, or only those at
    /// its hosts, or at least no link but its hosts'; `None` if there is none.
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

    /// Loads of links.
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

    /// Whether the deadline has ended an improvement: without it, paths might be better.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    fn check_time(&self) -> Result<(), PlacementError> {
        match self.deadline.phase() {
            Phase::Stop => wrong("the time for a placement is over".to_owned()),
            Phase::Improve | Phase::Place => Ok(()),
        }
    }

    /// Whether improvements have to end.
    fn has_to_end(&mut self) -> bool {
        let is_over = self.deadline.phase() > Phase::Improve;
        self.is_cut_short |= is_over;
        is_over
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
        if !(1..=MOST_BITS_PER_S).contains(&flow.rate_bits_per_s) {
            let (from, rate) = (self.topology.name(NodeId::Host(flow.from)), flow.rate_bits_per_s);
            return wrong(format!("a flow of {from} has rate {rate}: expected 1 to {MOST_BITS_PER_S}"));
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
