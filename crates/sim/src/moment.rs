//! Snapshots of a run for observers.

use srdma_aggregation::BranchIndex;
use srdma_dataplane::{DropReason, Node};
use srdma_frame::PortId;
use srdma_group::{Group, NodeIndex};
use srdma_wire::Psn;
use std::collections::BTreeMap;

/// A run at a moment, in the orders of its [`Scene`](crate::Scene).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since its beginning.
    pub now_ns: u64,
    /// Of each link, the octets that it has carried from its first end to its second and back, without FCS.
    pub links: Vec<[u64; 2]>,
    /// The nodes and hosts.
    pub places: Vec<PlaceMoment>,
    /// Of each group the branches of each node of its tree.
    pub groups: Vec<Vec<Vec<BranchMoment>>>,
}

/// A node or a host at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceMoment {
    /// Whether it is down.
    pub is_down: bool,
    /// What it has dropped since the run began. Hosts count by no reasons.
    pub drops: BTreeMap<DropReason, u64>,
}

/// A branch of a node at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchMoment {
    /// The PSN that it expects next.
    pub point: Option<Psn>,
    /// Packets behind what was sent to it.
    pub lag: Option<u32>,
    /// CNPs that came from it.
    pub cnps: u64,
}

impl PlaceMoment {
    /// A node that works.
    pub fn of(node: &Node) -> Self {
        let mut drops: BTreeMap<DropReason, u64> = node.own_drops().iter().collect();
        for port in (0..).map_while(|port| node.port_counters(PortId(port))) {
            for (reason, packets) in port.drops.iter() {
                *drops.entry(reason).or_default() += packets;
            }
        }
        PlaceMoment { is_down: false, drops }
    }

    /// Adds what it has dropped before, by the counters of another life.
    pub fn add(&mut self, before: &PlaceMoment) {
        for (reason, packets) in &before.drops {
            *self.drops.entry(*reason).or_default() += packets;
        }
    }
}

/// The branches of each node of a group's tree. `node` has what stands at a position of the tree, if it stands.
pub fn branches_of<'n>(group: &Group, node: impl Fn(usize) -> Option<&'n Node>) -> Vec<Vec<BranchMoment>> {
    let id = group.record().id;
    let of_node = |position| {
        let count = group.at(NodeIndex(position)).map_or(0, |part| part.branches.len());
        let node = node(position);
        let branch = |index| {
            let index = BranchIndex(index as u16);
            let acknowledgements = node.and_then(|node| node.acknowledgements(id));
            BranchMoment {
                point: acknowledgements.and_then(|known| known.expected_psn(index)),
                lag: acknowledgements.and_then(|known| known.lag(index)),
                cnps: node.and_then(|node| node.branch_cnps(id, index)).unwrap_or(0),
            }
        };
        (0..count).map(branch).collect()
    };
    (0..group.record().tree.nodes().len()).map(of_node).collect()
}
