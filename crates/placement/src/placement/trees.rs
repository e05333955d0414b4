//! The trees of multicast groups, among flows: a link of a tree carries the group's octets once.
//!
//! On a Clos a tree is first looked for among those by which all receivers are reached with one choice of plane and
//! core: up once, and down to every leaf. Where such a tree meets a loaded link, and on other fabrics, trees are grown:
//! the nearest receiver is joined to what there is, by the fewest links that have room below a limit, and so on
//! (Takahashi and Matsuyama 1980). Trees and flows choose again in turn while that takes load off the most loaded link.

use super::{FlowId, MORE, Placement, PlacementError, TreeId, wrong};
use crate::clos::{Choice, Clos};
use crate::flow::Flow;
use crate::group_flow::GroupFlow;
use crate::load::Direction;
use srdma_fabric::{HostId, LinkId, NodeId, Topology};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Rounds in which trees and then flows choose again.
const ROUNDS: usize = 8;

/// Limits between the bound and the best tree that a tree is grown for.
const LIMITS: usize = 6;

/// Limit of the work of growing a tree, in links inspected.
const WORK: usize = 50_000_000;

/// Parts of a link's rate that costs are counted in.
const PARTS: f64 = 1e6;

/// A group with its tree.
#[derive(Clone, Debug)]
pub(super) struct PlacedGroup {
    pub(super) group: GroupFlow,
    /// Parents before children.
    pub(super) along: Vec<Direction>,
}

/// Load of the most loaded link of a tree, and the sum of all.
type Cost = (f64, f64);

impl Placement<'_> {
    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = (TreeId, &GroupFlow)> {
        (0..).zip(&self.groups).filter_map(|(id, placed)| Some((TreeId(id), &placed.as_ref()?.group)))
    }

    /// The links of a group's tree in the direction of its data, parents before children; none if there is no group.
    pub fn tree(&self, id: TreeId) -> &[Direction] {
        self.groups.get(id.0 as usize).and_then(Option::as_ref).map_or(&[], |placed| &placed.along)
    }

    /// The groups whose trees use a direction.
    pub fn trees_at(&self, direction: Direction) -> impl Iterator<Item = TreeId> {
        self.groups().map(|(id, _)| id).filter(move |id| self.tree(*id).contains(&direction))
    }

    /// Other trees of a group on a Clos, those with one choice of plane and core for all receivers: for each the most
    /// loaded direction and its load if the group used it, those first that would carry least.
    pub fn other_trees(&self, id: TreeId) -> Vec<(Vec<Direction>, Direction, f64)> {
        let (Some(placed), Some(clos)) = (self.groups.get(id.0 as usize).and_then(Option::as_ref), &self.clos) else {
            return Vec::new();
        };
        let own: BTreeSet<Direction> = placed.along.iter().copied().collect();
        let rated = |along: Vec<Direction>| {
            let more = |direction: &Direction| if own.contains(direction) { 0 } else { placed.group.rate_bits_per_s };
            let load = |direction: &Direction| self.share_with(more(direction), *direction);
            let most = *along.iter().rev().max_by(|one, other| load(one).total_cmp(&load(other)))?;
            let share = load(&most);
            share.is_finite().then_some((along, most, share))
        };
        let is_other = |along: &Vec<Direction>| along.iter().any(|direction| !own.contains(direction));
        let mut others: Vec<(Vec<Direction>, Direction, f64)> =
            self.uniform_trees(clos, &placed.group).filter(is_other).filter_map(rated).collect();
        others.sort_by(|one, other| one.2.total_cmp(&other.2));
        others
    }

    /// Adds a group.
    ///
    /// # Errors
    ///
    /// A NIC that does not exist, none that receives, or rate 0; no tree on links that are not drained.
    pub fn add_group(&mut self, group: GroupFlow) -> Result<TreeId, PlacementError> {
        self.check_group(&group)?;
        let Some(along) = self.best_tree(&group, self.least_load()) else { return Err(self.no_tree(&group)) };
        self.groups.push(None);
        let id = TreeId(self.groups.len() as u32 - 1);
        self.plant(id, PlacedGroup { group, along });
        Ok(id)
    }

    /// A bound of the most loaded link, of those that cost little.
    fn least_load(&self) -> f64 {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        self.quick_bound(&flows)
    }

    /// Adds a group with the links of its tree, as they were placed before.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::add_group`]; links that are no tree from its sender to its receivers.
    pub fn restore_group(&mut self, group: GroupFlow, links: &[LinkId]) -> Result<TreeId, PlacementError> {
        self.check_group(&group)?;
        let from = self.topology.name(NodeId::Host(group.from));
        let Some(along) = directed(self.topology, &group, links) else {
            return wrong(format!("the links of the group of {from} are no tree to its receivers"));
        };
        self.groups.push(None);
        let id = TreeId(self.groups.len() as u32 - 1);
        self.plant(id, PlacedGroup { group, along });
        self.replant_closed()?;
        Ok(id)
    }

    /// Removes a group; `false` if there is none.
    pub fn remove_group(&mut self, id: TreeId) -> bool {
        self.uproot(id).is_some()
    }

    /// Gives the groups on drained links other trees.
    pub(super) fn replant_closed(&mut self) -> Result<(), PlacementError> {
        let bound = self.least_load();
        for id in (0..self.groups.len() as u32).map(TreeId) {
            let is_closed = self.tree(id).iter().any(|direction| self.is_drained[direction.link.index()]);
            if let Some(placed) = is_closed.then(|| self.uproot(id)).flatten() {
                let Some(along) = self.best_tree(&placed.group, bound) else { return Err(self.no_tree(&placed.group)) };
                self.plant(id, PlacedGroup { along, ..placed });
            }
        }
        Ok(())
    }

    /// Moves trees, and then flows, off the most loaded link after a change, and returns the flows that moved.
    pub(super) fn relieve_by_trees(&mut self) -> Vec<FlowId> {
        let moved = RefCell::new(Vec::new());
        self.settle_trees(|placement| moved.borrow_mut().extend(placement.improve()));
        moved.into_inner()
    }

    /// Lets trees and flows choose again in turn, while that makes the most loaded link carry less. `settle`: what
    /// flows do when trees have changed.
    pub(super) fn settle_trees(&mut self, settle: impl Fn(&mut Self)) {
        let bound = self.least_load();
        for _ in 0..ROUNDS {
            let most = self.most_loaded().1;
            if self.groups.is_empty() || most <= bound + MORE || self.has_to_end() {
                return;
            }
            let (flows, groups) = (self.flows.clone(), self.groups.clone());
            self.replant(bound);
            settle(self);
            if self.most_loaded().1 >= most - MORE {
                self.groups = groups;
                self.reset(flows);
                return;
            }
        }
    }

    /// Lets each group choose its tree again, the highest rates first.
    fn replant(&mut self, bound: f64) {
        let mut order: Vec<(u64, TreeId)> = self.groups().map(|(id, group)| (group.rate_bits_per_s, id)).collect();
        order.sort_by_key(|(rate, id)| (Reverse(*rate), *id));
        for (_, id) in order {
            let Some(placed) = self.uproot(id) else { continue };
            let along = self.best_tree(&placed.group, bound).unwrap_or_else(|| placed.along.clone());
            let is_better = self.cost(&placed.group, &along) < self.cost(&placed.group, &placed.along);
            self.plant(id, if is_better { PlacedGroup { along, ..placed } } else { placed });
        }
    }

    /// The tree whose most loaded link then carries least, of those that are tried; `None` if none is open.
    fn best_tree(&self, group: &GroupFlow, bound: f64) -> Option<Vec<Direction>> {
        let mut best = self.clos.as_ref().and_then(|clos| self.best_choice(clos, group));
        let is_met =
            |best: &Option<(Cost, Vec<Direction>)>| best.as_ref().is_some_and(|((most, _), _)| *most <= bound + MORE);
        if is_met(&best) || (best.is_some() && group.to.len() * self.topology.links().len() > WORK) {
            return best.map(|(_, along)| along);
        }
        let mut limit = bound;
        for _ in 0..LIMITS {
            if let Some(along) = self.grow(group, limit) {
                let cost = self.cost(group, &along);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, along));
                }
                break;
            }
            let Some(((most, _), _)) = &best else { break };
            limit = (limit + most) / 2.0;
        }
        best.or_else(|| {
            let along = self.grow(group, f64::MAX)?;
            // Each limit may be in the way of a better tree: as low as one is found.
            let (mut low, mut best) = (bound, (self.cost(group, &along), along));
            for _ in 0..LIMITS {
                let limit = (low + best.0.0) / 2.0;
                match self.grow(group, limit).map(|along| (self.cost(group, &along), along)) {
                    Some(found) if found.0 < best.0 => best = found,
                    _ => low = limit,
                }
            }
            Some(best)
        })
        .map(|(_, along)| along)
    }

    /// Of the trees with one choice for all receivers the best that is open.
    fn best_choice(&self, clos: &Clos, group: &GroupFlow) -> Option<(Cost, Vec<Direction>)> {
        let priced = self.uniform_trees(clos, group).map(|along| (self.cost(group, &along), along));
        let open = priced.filter(|((most, _), _)| most.is_finite());
        open.fold(None, |best: Option<(Cost, Vec<Direction>)>, own| match best {
            Some(best) if best.0 <= own.0 => Some(best),
            _ => Some(own),
        })
    }

    /// The trees with one choice for all receivers.
    fn uniform_trees(&self, clos: &Clos, group: &GroupFlow) -> impl Iterator<Item = Vec<Direction>> {
        let flow = |to: &HostId| Flow { from: group.from, to: *to, rate_bits_per_s: group.rate_bits_per_s };
        let farthest = group.to.iter().map(flow).max_by_key(|flow| clos.choices(flow).count());
        let tree = move |choice: Choice| {
            let mut entered = BTreeSet::from([NodeId::Host(group.from)]);
            let all = group.to.iter().flat_map(|to| clos.along(&flow(to), choice));
            all.filter(|direction| entered.insert(direction.to(self.topology))).collect()
        };
        farthest.into_iter().flat_map(|flow| clos.choices(&flow)).map(tree)
    }

    /// Load of the most loaded link of a tree with its group, and the sum of all; infinite on drained links.
    fn cost(&self, group: &GroupFlow, along: &[Direction]) -> Cost {
        along.iter().fold((0.0, 0.0), |(most, sum), direction| {
            let own = self.share_with(group.rate_bits_per_s, *direction);
            (own.max(most), sum + own)
        })
    }

    /// A tree of which no link carries more than a limit then: receivers are joined one after the other, each by the
    /// fewest links.
    fn grow(&self, group: &GroupFlow, limit: f64) -> Option<Vec<Direction>> {
        let mut entered = BTreeSet::from([NodeId::Host(group.from)]);
        let mut waiting: BTreeSet<NodeId> = group.to.iter().map(|to| NodeId::Host(*to)).collect();
        let mut along = Vec::new();
        while !waiting.is_empty() {
            let branch = self.nearest(group, &entered, &waiting, limit)?;
            entered.extend(branch.iter().map(|direction| direction.to(self.topology)));
            branch.last().map(|direction| waiting.remove(&direction.to(self.topology)));
            along.extend(branch);
        }
        Some(along)
    }

    /// The links from a tree's nodes to the nearest receiver that is waiting: the fewest, and of several ways the one
    /// that carries least.
    fn nearest(
        &self,
        group: &GroupFlow,
        entered: &BTreeSet<NodeId>,
        waiting: &BTreeSet<NodeId>,
        limit: f64,
    ) -> Option<Vec<Direction>> {
        let (from, rate_bits_per_s) = (NodeId::Host(group.from), group.rate_bits_per_s);
        let mut arrived: BTreeMap<NodeId, ((u32, u64), Option<Direction>)> =
            entered.iter().map(|node| (*node, ((0, 0), None))).collect();
        let mut open: BinaryHeap<Reverse<((u32, u64), NodeId)>> =
            entered.iter().map(|node| Reverse(((0, 0), *node))).collect();
        while let Some(Reverse((cost, node))) = open.pop() {
            if arrived.get(&node).is_some_and(|(best, _)| cost > *best) {
                continue;
            }
            if waiting.contains(&node) {
                let by = |node: &NodeId| arrived.get(node).and_then(|(_, direction)| *direction);
                let back = std::iter::successors(by(&node), |direction| by(&direction.origin(self.topology)));
                let mut branch: Vec<Direction> = back.collect();
                branch.reverse();
                return Some(branch);
            }
            // No path leads through a host, but from the sender.
            if matches!(node, NodeId::Host(_)) && node != from {
                continue;
            }
            for port in self.topology.ports(node) {
                let direction = Direction::from(self.topology, node, port.link);
                let share = self.share_with(rate_bits_per_s, direction);
                if !share.is_finite() || share > limit + MORE {
                    continue;
                }
                let used = self.loads.through(direction.to(self.topology)) + share;
                let next = (cost.0 + 1, cost.1 + (used * PARTS) as u64);
                if arrived.get(&port.peer.node).is_none_or(|(best, _)| next < *best) {
                    arrived.insert(port.peer.node, (next, Some(direction)));
                    open.push(Reverse((next, port.peer.node)));
                }
            }
        }
        None
    }

    fn check_group(&self, group: &GroupFlow) -> Result<(), PlacementError> {
        for to in &group.to {
            self.check(&Flow { from: group.from, to: *to, rate_bits_per_s: group.rate_bits_per_s })?;
        }
        match group.to.is_empty() {
            true => wrong("a group has no receiver".to_owned()),
            false => Ok(()),
        }
    }

    fn no_tree(&self, group: &GroupFlow) -> PlacementError {
        let from = self.topology.name(NodeId::Host(group.from));
        PlacementError {
            problem: format!("there is no tree from {from} to {} NICs on links that are not drained", group.to.len()),
        }
    }

    fn plant(&mut self, id: TreeId, placed: PlacedGroup) {
        self.loads.add(self.topology, &placed.along, placed.group.rate_bits_per_s);
        self.groups[id.0 as usize] = Some(placed);
    }

    fn uproot(&mut self, id: TreeId) -> Option<PlacedGroup> {
        let placed = self.groups.get_mut(id.0 as usize)?.take()?;
        self.loads.remove(self.topology, &placed.along, placed.group.rate_bits_per_s);
        Some(placed)
    }
}

/// The directions of a tree's links from its sender, parents before children; `None` if they are no tree whose leaves
/// are the receivers.
fn directed(topology: &Topology, group: &GroupFlow, links: &[LinkId]) -> Option<Vec<Direction>> {
    let mut left: BTreeSet<LinkId> = links.iter().copied().collect();
    let mut entered = BTreeSet::from([NodeId::Host(group.from)]);
    let (mut open, mut along) = (vec![NodeId::Host(group.from)], Vec::new());
    while let Some(node) = open.pop() {
        for port in topology.ports(node).iter().filter(|port| left.remove(&port.link)) {
            if !entered.insert(port.peer.node) {
                return None;
            }
            along.push(Direction::from(topology, node, port.link));
            if matches!(port.peer.node, NodeId::Switch(_)) {
                open.push(port.peer.node);
            }
        }
    }
    let hosts = entered.iter().filter(|node| matches!(node, NodeId::Host(_))).count();
    let has_all = group.to.iter().all(|to| entered.contains(&NodeId::Host(*to)));
    (left.is_empty() && has_all && hosts == group.to.len() + 1).then_some(along)
}
