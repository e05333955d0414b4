//! A path through any fabric: the fewest links, and of several such paths the one that is used least (Dijkstra 1959).

use crate::load::{Direction, Loads};
use srdma_fabric::{HostId, NodeId, Topology};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parts of a link's rate that costs are counted in.
const PARTS: f64 = 1e6;

/// Links first, then how much they and the switches behind them carry.
type Cost = (u32, u64);

/// The links from a host to another one that a flow may use; `None` if there is no way.
pub(crate) fn route(
    topology: &Topology,
    loads: &Loads,
    [from, to]: [HostId; 2],
    may_use: impl Fn(Direction) -> bool,
) -> Option<Vec<Direction>> {
    let nodes = Nodes { hosts: topology.hosts().len() };
    let count = nodes.hosts + topology.switches().len();
    let (start, end) = (nodes.position(NodeId::Host(from)), nodes.position(NodeId::Host(to)));
    let mut best: Vec<Cost> = vec![(u32::MAX, u64::MAX); count];
    let mut arrived: Vec<Option<Direction>> = vec![None; count];
    let mut open = BinaryHeap::from([Reverse(((0, 0), start))]);
    best[start] = (0, 0);
    while let Some(Reverse((cost, position))) = open.pop() {
        if position == end {
            break;
        }
        if cost > best[position] || (position < nodes.hosts && position != start) {
            continue;
        }
        let node = nodes.node(position);
        for port in topology.ports(node) {
            let direction = Direction::from(topology, node, port.link);
            let next = nodes.position(port.peer.node);
            if !may_use(direction) {
                continue;
            }
            let used = loads.share_with(topology, direction, 0) + loads.through(topology, port.peer.node);
            let own = (cost.0 + 1, cost.1 + (used * PARTS) as u64);
            if own < best[next] {
                best[next] = own;
                arrived[next] = Some(direction);
                open.push(Reverse((own, next)));
            }
        }
    }
    let mut along = Vec::new();
    let mut position = end;
    while position != start {
        let direction = arrived[position]?;
        along.push(direction);
        position = nodes.position(direction.origin(topology));
    }
    along.reverse();
    Some(along)
}

/// Hosts and switches by position: hosts first.
pub(crate) struct Nodes {
    pub(crate) hosts: usize,
}

impl Nodes {
    pub(crate) fn position(&self, node: NodeId) -> usize {
        match node {
            NodeId::Host(host) => host.index(),
            NodeId::Switch(switch) => self.hosts + switch.index(),
        }
    }

    pub(crate) fn node(&self, position: usize) -> NodeId {
        match position.checked_sub(self.hosts) {
            Some(switch) => NodeId::Switch(srdma_fabric::SwitchId(switch as u32)),
            None => NodeId::Host(HostId(position as u32)),
        }
    }
}
