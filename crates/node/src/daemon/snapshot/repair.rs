//! Repair of groups by the node (D150).

use serde::{Deserialize, Serialize};
use srdma_aggregation::BranchIndex;
use srdma_dataplane::{Node, RepairFill};
use srdma_group::GroupId;
use std::collections::BTreeMap;

/// Repair of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairSnapshot {
    /// No memory was left for the buffer: the node does not repair the group (D162).
    #[serde(default)]
    pub lacks_memory: bool,
    /// The source has exceeded its window: until the next epoch the node does not repair the group (D160).
    #[serde(default)]
    pub is_off: bool,
    /// Packets in the buffer.
    pub kept: u64,
    /// Packets that it has room for.
    pub capacity: u32,
    /// Counters by name.
    #[serde(flatten)]
    pub counters: BTreeMap<String, u64>,
}

/// Repair of a branch.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRepairSnapshot {
    pub packets_resent: u64,
    /// How often it was taken back: NAKs, probes, and ends of waits for receivers that were not ready.
    pub times_back: u64,
    /// Whether it is to be sent packets of the buffer.
    pub is_behind: bool,
    /// Of the packets of the last interval, more than 1 % were sent again to it.
    pub is_repairing: bool,
}

/// Memory of retransmission buffers.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairMemorySnapshot {
    pub limit_octets: u64,
    /// Reserved for the buffers of groups.
    pub reserved_octets: u64,
}

/// Of a group, if the node is to repair it.
pub(super) fn of_group(node: &Node, id: GroupId) -> Option<RepairSnapshot> {
    node.group_entry(id)?.repair.as_ref()?;
    let counters = node.repair_counters(id).unwrap_or_default();
    let RepairFill { packets, capacity_packets, is_off } = node.repair_fill(id).unwrap_or_default();
    Some(RepairSnapshot {
        lacks_memory: node.lacks_repair_memory(id),
        is_off,
        kept: packets,
        capacity: capacity_packets,
        counters: counters.iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    })
}

pub(super) fn of_branch(node: &Node, id: GroupId, branch: BranchIndex) -> Option<BranchRepairSnapshot> {
    let repair = node.branch_repair(id, branch)?;
    let (packets_resent, times_back) = (repair.counters.packets_resent, repair.counters.times_back);
    // Over successive snapshots: see `RepairWatch`.
    Some(BranchRepairSnapshot { packets_resent, times_back, is_behind: repair.is_behind, is_repairing: false })
}

pub(super) fn memory(node: &Node) -> Option<RepairMemorySnapshot> {
    let memory = RepairMemorySnapshot {
        limit_octets: node.config().repair_memory_octets,
        reserved_octets: node.repair_octets(),
    };
    (node.has_groups() && memory.limit_octets > 0).then_some(memory)
}
