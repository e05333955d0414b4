//! What a run looks like at a moment, for those who watch it.

use crate::fabric::Fabric;
use srdma_dataplane::reverse::BranchIndex;
use srdma_dataplane::{DropReason, Node, PortId};
use srdma_group::GroupId;
use srdma_wire::Psn;
use std::collections::BTreeMap;

/// A run at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since its beginning.
    pub now_ns: u64,
    /// Of each link, the octets that it has carried down and up, in the order of [`Fabric::links`].
    pub links: Vec<[u64; 2]>,
    /// The nodes, in the order of the group's tree.
    pub nodes: Vec<NodeMoment>,
}

/// A node at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMoment {
    /// Its branches, in order.
    pub branches: Vec<BranchMoment>,
    /// What it has dropped.
    pub drops: BTreeMap<DropReason, u64>,
}

/// A branch of a node at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchMoment {
    /// The PSN that it expects next.
    pub point: Option<Psn>,
    /// Packets behind what was sent to it.
    pub lag: Option<u32>,
    /// CNPs that came from it.
    pub cnps: u64,
}

impl Moment {
    pub(crate) fn of(fabric: &Fabric, group: GroupId) -> Self {
        let network = &fabric.network;
        let nodes = fabric.switch.iter().chain(&fabric.nodes).map(|id| NodeMoment::of(fabric.node(*id), group));
        Moment {
            now_ns: network.now().as_ns(),
            links: fabric.links.iter().map(|link| network.counters(*link).map(|way| way.octets)).collect(),
            nodes: nodes.collect(),
        }
    }
}

impl NodeMoment {
    fn of(node: &Node, group: GroupId) -> Self {
        let count = node.group_part(group).map_or(0, |part| part.branches.len());
        let branch = |index| {
            let acknowledgements = node.acknowledgements(group);
            BranchMoment {
                point: acknowledgements.and_then(|known| known.point(index)),
                lag: acknowledgements.and_then(|known| known.lag(index)),
                cnps: node.branch_cnps(group, index).unwrap_or(0),
            }
        };
        let mut drops: BTreeMap<DropReason, u64> = node.own_drops().iter().collect();
        for port in (0..).map_while(|port| node.port_counters(PortId(port))) {
            for (reason, packets) in port.drops.iter() {
                *drops.entry(reason).or_default() += packets;
            }
        }
        NodeMoment { branches: (0..count).map(|index| branch(BranchIndex(index as u16))).collect(), drops }
    }
}
