//! Path selection methods for comparison; hashing, the fourth, is [`ecmp`].

use crate::deadline::Deadline;
use crate::ecmp::ecmp;
use crate::flow::Flow;
use crate::group_flow::GroupFlow;
use crate::load::{Direction, Loads};
use crate::placement::{FlowId, Placement, PlacementError};
use srdma_fabric::{HostId, NextHops, NodeId, Path, Topology};
use std::collections::BTreeSet;

/// Choice of paths by hosts or a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosing {
    /// For each flow one of the shortest paths by chance, which this seed decides.
    Random(u64),
    /// One flow after the other, each on the shortest path whose most loaded link then carries least.
    Greedy,
    /// All flows together (PP-4-1).
    Placed,
}

/// A path for each flow.
///
/// # Errors
///
/// Those of [`Placement::new`].
pub fn choose(
    topology: &Topology,
    next_hops: &NextHops,
    flows: &[Flow],
    how: Choosing,
) -> Result<Vec<Path>, PlacementError> {
    let path = |flow: &Flow, along: Vec<Direction>| Path {
        from: flow.from,
        to: flow.to,
        links: along.into_iter().map(|direction| direction.link).collect(),
    };
    match how {
        Choosing::Random(seed) => {
            let along = |(number, flow): (u64, &Flow)| ecmp(topology, next_hops, [flow.from, flow.to], number, seed);
            Ok((0..).zip(flows).map(|numbered| path(numbered.1, along(numbered))).collect())
        }
        Choosing::Greedy => {
            let ways = greedy(topology, next_hops, flows, usize::MAX).unwrap_or_default();
            Ok(flows.iter().zip(ways).map(|(flow, along)| path(flow, along)).collect())
        }
        Choosing::Placed => {
            let placement = Placement::new(topology, flows)?;
            Ok((0..flows.len() as u32).filter_map(|number| placement.path(FlowId(number))).collect())
        }
    }
}

/// A path for each flow, and for each group the links of its tree, parents before children. Where not all are placed
/// together, greedy trees are placed one after the other, whatever flows carry, and random ones are those of hashes.
///
/// # Errors
///
/// Those of [`Placement::with_groups_within`].
pub fn choose_with_groups(
    topology: &Topology,
    next_hops: &NextHops,
    flows: &[Flow],
    groups: &[GroupFlow],
    how: Choosing,
) -> Result<(Vec<Path>, Vec<Vec<Direction>>), PlacementError> {
    let trees = |placement: &Placement<'_>| placement.groups().map(|(id, _)| placement.tree(id).to_vec()).collect();
    match how {
        Choosing::Placed => {
            let placement = Placement::with_groups_within(topology, flows, groups, Deadline::NONE)?;
            let ids = (0..flows.len() as u32).map(FlowId);
            Ok((ids.filter_map(|id| placement.path(id)).collect(), trees(&placement)))
        }
        Choosing::Greedy => {
            let mut alone = Placement::new(topology, &[])?;
            groups.iter().try_for_each(|group| alone.add_group(group.clone()).map(drop))?;
            Ok((choose(topology, next_hops, flows, how)?, trees(&alone)))
        }
        Choosing::Random(seed) => {
            let numbered = (flows.len() as u64..).zip(groups);
            let trees = numbered.map(|(number, group)| hashed_tree(topology, next_hops, group, number, seed));
            Ok((choose(topology, next_hops, flows, how)?, trees.collect()))
        }
    }
}

/// The tree that hashes of one number choose for a group: the paths to its receivers, as far as they are not in it.
pub fn hashed_tree(
    topology: &Topology,
    next_hops: &NextHops,
    group: &GroupFlow,
    number: u64,
    seed: u64,
) -> Vec<Direction> {
    let mut entered = BTreeSet::from([NodeId::Host(group.from)]);
    let mut tree = Vec::new();
    for to in &group.to {
        let along = ecmp(topology, next_hops, [group.from, *to], number, seed);
        tree.extend(along.into_iter().filter(|direction| entered.insert(direction.to(topology))));
    }
    tree
}

/// One flow after the other, each on the shortest path whose most loaded link then carries least; `None` if that takes
/// more work, in inspected links. A flow without a path has no links.
pub(crate) fn greedy(
    topology: &Topology,
    next_hops: &NextHops,
    flows: &[Flow],
    mut work: usize,
) -> Option<Vec<Vec<Direction>>> {
    let mut loads = Loads::none(topology);
    let mut next = |flow: &Flow| {
        let along = Search::new(topology, next_hops, &loads, flow).least(&mut work)?;
        loads.add(topology, &along, flow.rate_bits_per_s);
        Some(along)
    };
    flows.iter().map(&mut next).collect()
}

/// A search in depth through all shortest paths of a flow.
struct Search<'a> {
    topology: &'a Topology,
    next_hops: &'a NextHops,
    loads: &'a Loads,
    to: HostId,
    from: HostId,
    rate_bits_per_s: u64,
    best: Option<(Cost, Vec<Direction>)>,
}

/// The load of the most loaded link of a path, and the sum of all.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Cost(f64, f64);

impl<'a> Search<'a> {
    fn new(topology: &'a Topology, next_hops: &'a NextHops, loads: &'a Loads, flow: &Flow) -> Self {
        let Flow { from, to, rate_bits_per_s } = *flow;
        Search { topology, next_hops, loads, from, to, rate_bits_per_s, best: None }
    }

    /// The links of the best way, none if there is no way; `None` if the work ends before.
    fn least(mut self, work: &mut usize) -> Option<Vec<Direction>> {
        self.go_on(NodeId::Host(self.from), Cost(0.0, 0.0), &mut Vec::new(), work)?;
        Some(self.best.map(|(_, along)| along).unwrap_or_default())
    }

    /// Tries all ways from a node that has been reached at some cost. The first of several equal ones stays.
    fn go_on(&mut self, at: NodeId, cost: Cost, along: &mut Vec<Direction>, work: &mut usize) -> Option<()> {
        if self.best.as_ref().is_some_and(|(least, _)| *least <= cost) {
            return Some(());
        }
        if at == NodeId::Host(self.to) {
            self.best = Some((cost, along.clone()));
            return Some(());
        }
        let ports = match at {
            NodeId::Host(host) => self.next_hops.from_host(self.topology, host, self.to),
            NodeId::Switch(switch) => self.next_hops.toward(switch, self.to).to_vec(),
        };
        for port in ports.into_iter().filter_map(|port| self.topology.port(at, port)) {
            let direction = Direction::from(self.topology, at, port.link);
            let own = self.loads.share_with(self.topology, direction, self.rate_bits_per_s);
            *work = work.checked_sub(1)?;
            along.push(direction);
            self.go_on(port.peer.node, Cost(cost.0.max(own), cost.1 + own), along, work)?;
            along.pop();
        }
        Some(())
    }
}
