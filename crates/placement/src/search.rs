//! The cheapest paths from a host through a fabric (Dijkstra 1959), for any costs.

use crate::load::Direction;
use srdma_fabric::{HostId, NodeId, SwitchId, Topology};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The ways from a host to all nodes that were reached.
pub(crate) struct Ways<'a, C> {
    topology: &'a Topology,
    /// For each node, hosts first, the cost of its path, and the last direction of it.
    arrived: Vec<Option<(C, Option<Direction>)>>,
}

impl<'a, C: Ord + Copy> Ways<'a, C> {
    /// Finds the ways from a host: to another host, or to all. `after` is the cost of a path that continues in a
    /// direction, never less than before; `None` if it must not.
    pub(crate) fn from(
        topology: &'a Topology,
        from: HostId,
        to: Option<HostId>,
        nothing: C,
        after: impl Fn(C, Direction) -> Option<C>,
    ) -> Self {
        let mut ways = Ways { topology, arrived: vec![None; topology.hosts().len() + topology.switches().len()] };
        let start = ways.position(NodeId::Host(from));
        let end = to.map(|to| ways.position(NodeId::Host(to)));
        ways.arrived[start] = Some((nothing, None));
        let mut open = BinaryHeap::from([Reverse((nothing, start))]);
        while let Some(Reverse((cost, position))) = open.pop() {
            if Some(position) == end {
                break;
            }
            let is_outdated = ways.arrived[position].is_some_and(|(best, _)| cost > best);
            let node = ways.node(position);
            // No path leads through a host.
            if is_outdated || (matches!(node, NodeId::Host(_)) && position != start) {
                continue;
            }
            for port in topology.ports(node) {
                let direction = Direction::from(topology, node, port.link);
                let next = ways.position(port.peer.node);
                let Some(own) = after(cost, direction) else { continue };
                if ways.arrived[next].is_none_or(|(best, _)| own < best) {
                    ways.arrived[next] = Some((own, Some(direction)));
                    open.push(Reverse((own, next)));
                }
            }
        }
        ways
    }

    /// The cost of the path to a host; `None` if there is none.
    pub(crate) fn cost(&self, to: HostId) -> Option<C> {
        self.arrived[self.position(NodeId::Host(to))].map(|(cost, _)| cost)
    }

    /// The directions of the way to a host, the last one first.
    pub(crate) fn back(&self, to: HostId) -> impl Iterator<Item = Direction> + '_ {
        let by = |node: NodeId| self.arrived[self.position(node)].and_then(|(_, direction)| direction);
        std::iter::successors(by(NodeId::Host(to)), move |direction| by(direction.origin(self.topology)))
    }

    fn position(&self, node: NodeId) -> usize {
        match node {
            NodeId::Host(host) => host.index(),
            NodeId::Switch(switch) => self.topology.hosts().len() + switch.index(),
        }
    }

    fn node(&self, position: usize) -> NodeId {
        match position.checked_sub(self.topology.hosts().len()) {
            Some(switch) => NodeId::Switch(SwitchId(switch as u32)),
            None => NodeId::Host(HostId(position as u32)),
        }
    }
}
