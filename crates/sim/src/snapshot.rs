//! Snapshots of a run for observers.
#![allow(missing_docs, reason = "names and types explain the other items")]

use srdma_aggregation::BranchIndex;
use srdma_dataplane::{DropReason, Node};
use srdma_frame::PortId;
use srdma_group::{Group, NodeIndex};
use srdma_wire::Psn;
use std::collections::BTreeMap;

/// State of a run at a time, in the order of its [`RunDescription`](crate::RunDescription).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Nanoseconds since the beginning of the run.
    pub now_ns: u64,
    /// Octets of each link so far, from its first end to its second and back, without FCS.
    pub links: Vec<[u64; 2]>,
    pub elements: Vec<ElementSnapshot>,
    /// Branches of each node of each group's tree.
    pub groups: Vec<Vec<Vec<BranchSnapshot>>>,
}

/// State of a node or a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementSnapshot {
    pub is_down: bool,
    /// Packets dropped since the beginning of the run. Hosts do not count by reason.
    pub drops: BTreeMap<DropReason, u64>,
}

/// State of a branch of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchSnapshot {
    /// The PSN that the branch expects next.
    pub expected_psn: Option<Psn>,
    /// Packets that were sent to the branch and are not acknowledged.
    pub lag: Option<u32>,
    /// CNPs received from the branch.
    pub cnps: u64,
}

impl ElementSnapshot {
    /// A node that is up.
    pub fn of(node: &Node) -> Self {
        let mut drops: BTreeMap<DropReason, u64> = node.own_drops().iter().collect();
        for port in (0..).map_while(|port| node.port_counters(PortId(port))) {
            for (reason, packets) in port.drops.iter() {
                *drops.entry(reason).or_default() += packets;
            }
        }
        ElementSnapshot { is_down: false, drops }
    }

    /// Adds the drops of the node before a restart.
    pub fn add(&mut self, before: &ElementSnapshot) {
        for (reason, packets) in &before.drops {
            *self.drops.entry(*reason).or_default() += packets;
        }
    }
}

/// The branches of each node of a group's tree. `node` returns the node at a position of the tree unless it is down.
pub fn branch_snapshots<'n>(group: &Group, node: impl Fn(usize) -> Option<&'n Node>) -> Vec<Vec<BranchSnapshot>> {
    let id = group.record().id;
    let of_node = |position| {
        let count = group.at(NodeIndex(position)).map_or(0, |entry| entry.branches.len());
        let node = node(position);
        let branch = |index| {
            let index = BranchIndex(index as u16);
            let acknowledgements = node.and_then(|node| node.acknowledgements(id));
            BranchSnapshot {
                expected_psn: acknowledgements.and_then(|known| known.expected_psn(index)),
                lag: acknowledgements.and_then(|known| known.lag(index)),
                cnps: node.and_then(|node| node.branch_cnps(id, index)).unwrap_or(0),
            }
        };
        (0..count).map(branch).collect()
    };
    (0..group.record().tree.nodes().len()).map(of_node).collect()
}
