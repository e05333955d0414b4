//! What the most loaded link of any fabric carries at least, even if flows could be divided.
//!
//! Let every direction of a link have a length. However flows are divided, a flow covers at least the distance between
//! its ends; so rates times distances, all flows together, over rates times lengths, all links together, is a share
//! that some link carries at least. That holds for any lengths (weak duality of the linear program of least
//! congestion); good ones are found by making loaded links longer, round by round (Young 1995, Garg and Könemann 1998).

use crate::flow::Flow;
use crate::load::Direction;
use crate::route::Nodes;
use srdma_fabric::{HostId, NodeId, Topology};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How much longer the most loaded link becomes in a round.
const STEP: f64 = 0.2;

/// A bound below which no placement of the flows loads its most loaded link, by the link's rate. More rounds make it
/// sharper.
pub fn divided_bound(topology: &Topology, flows: &[Flow], may_use: impl Fn(Direction) -> bool, rounds: usize) -> f64 {
    let mut by_source: BTreeMap<HostId, Vec<&Flow>> = BTreeMap::new();
    flows
        .iter()
        .filter(|flow| flow.from != flow.to)
        .for_each(|flow| by_source.entry(flow.from).or_default().push(flow));
    let usable: Vec<bool> = (0..2 * topology.links().len()).map(|index| may_use(Direction::at(index))).collect();
    let rate = |index: usize| topology.links()[index / 2].rate_bits_per_s as f64;
    // A length times a rate is a weight: all links begin with the same.
    let mut weights = vec![1.0_f64; usable.len()];
    let mut bound = 0.0_f64;
    for _ in 0..rounds {
        let lengths: Vec<f64> = (0..weights.len()).map(|index| weights[index] / rate(index)).collect();
        let total: f64 = (0..weights.len()).filter(|index| usable[*index]).map(|index| weights[index]).sum();
        let mut covered = 0.0;
        let mut used = vec![0.0_f64; weights.len()];
        for (source, flows) in &by_source {
            let tree = Tree::of(topology, *source, &lengths, &usable);
            for flow in flows {
                let rate_bits_per_s = flow.rate_bits_per_s as f64;
                covered += rate_bits_per_s * tree.walk(topology, flow.to, |index| used[index] += rate_bits_per_s);
            }
        }
        bound = bound.max(covered / total);
        let most = (0..used.len()).map(|index| used[index] / rate(index)).fold(0.0, f64::max);
        if most == 0.0 {
            break;
        }
        for index in 0..weights.len() {
            weights[index] *= 1.0 + STEP * used[index] / rate(index) / most;
        }
    }
    bound
}

/// The shortest ways from a host.
struct Tree {
    nodes: Nodes,
    arrived: Vec<Option<Direction>>,
    distance: Vec<f64>,
}

impl Tree {
    fn of(topology: &Topology, source: HostId, lengths: &[f64], usable: &[bool]) -> Self {
        let nodes = Nodes { hosts: topology.hosts().len() };
        let count = nodes.hosts + topology.switches().len();
        let start = nodes.position(NodeId::Host(source));
        let mut distance = vec![f64::INFINITY; count];
        let mut arrived = vec![None; count];
        distance[start] = 0.0;
        // Distances are not negative, and the bits of such numbers have their order.
        let mut open = BinaryHeap::from([Reverse((0.0_f64.to_bits(), start))]);
        while let Some(Reverse((own, position))) = open.pop() {
            let own = f64::from_bits(own);
            if own > distance[position] || (position < nodes.hosts && position != start) {
                continue;
            }
            let node = nodes.node(position);
            for port in topology.ports(node) {
                let direction = Direction::from(topology, node, port.link);
                let next = nodes.position(port.peer.node);
                let there = own + lengths[direction.index()];
                if usable[direction.index()] && there < distance[next] {
                    distance[next] = there;
                    arrived[next] = Some(direction);
                    open.push(Reverse((there.to_bits(), next)));
                }
            }
        }
        Tree { nodes, arrived, distance }
    }

    /// Visits the directions on the way to a host, the last one first, and says how long the way is; 0 if there is
    /// none.
    fn walk(&self, topology: &Topology, to: HostId, mut visit: impl FnMut(usize)) -> f64 {
        let end = self.nodes.position(NodeId::Host(to));
        let mut position = end;
        while let Some(direction) = self.arrived[position] {
            visit(direction.index());
            position = self.nodes.position(direction.origin(topology));
        }
        if self.distance[end].is_finite() { self.distance[end] } else { 0.0 }
    }
}
