//! Metrics of repair (D150).

use super::{Out, packets};
use crate::daemon::{BranchRepairSnapshot, GroupSnapshot, RepairMemorySnapshot, RepairSnapshot};
use prometheus_client::registry::Unit;
use std::fmt;

/// The counters by their names, with the helps of their metrics.
const COUNTERS: [(&str, &str); 13] = [
    ("packets_resent", "Packets sent again to one branch"),
    ("naks_absorbed", "NAKs of branches that the node answered itself"),
    ("naks_suppressed", "NAKs that repeated one whose data were on their way"),
    ("rnr_naks_absorbed", "RNR NAKs that the node waited for itself"),
    ("gaps", "Gaps in the received PSNs"),
    ("requests_sent", "Requests for data sent to the parent"),
    ("requests_received", "Requests for data of children"),
    ("naks_for_gaps", "NAKs sent upstream for data that the node itself lacks"),
    ("gaps_given_up", "Gaps that no node above could fill: the source sends again"),
    ("duplicates_absorbed", "Packets that were received again and not forwarded"),
    ("probes", "Probes of branches whose ACK was overdue"),
    ("windows_exceeded", "How often the source had more in flight than its window: the group went on without repair"),
    ("damaged", "Packets of the buffer that proved damaged"),
];

/// The families have values only for groups that the node is to repair.
pub(super) fn families(
    out: &mut Out<'_>,
    groups: &[GroupSnapshot],
    memory: Option<RepairMemorySnapshot>,
) -> fmt::Result {
    let repaired = groups.iter().filter_map(|group| Some((group.id.to_string(), group.repair.as_ref()?)));
    let repaired: Vec<(String, &RepairSnapshot)> = repaired.collect();
    let of_groups = |value: fn(&RepairSnapshot) -> u64| {
        repaired.iter().map(move |(id, repair)| ([("group", id.as_str())], value(repair)))
    };
    for (name, help) in COUNTERS {
        let values = repaired
            .iter()
            .map(|(id, repair)| ([("group", id.as_str())], repair.counters.get(name).copied().unwrap_or(0)));
        out.counters(&format!("srdma_group_repair_{name}"), help, None, values)?;
    }
    let help = "Packets in the group's retransmission buffer";
    out.gauges("srdma_group_repair_kept", help, Some(packets()), of_groups(|repair| repair.kept))?;
    let help = "Packets that the buffer has room for; 0: no memory was left, and the node does not repair the group";
    out.gauges("srdma_group_repair_capacity", help, Some(packets()), of_groups(|repair| repair.capacity.into()))?;
    let branches = groups.iter().flat_map(|group| group.branches.iter().map(move |branch| (group.id, branch)));
    let branches =
        branches.filter_map(|(id, branch)| Some((id.to_string(), branch.address.to_string(), branch.repair?)));
    let branches: Vec<(String, String, BranchRepairSnapshot)> = branches.collect();
    let of_branches = |value: fn(&BranchRepairSnapshot) -> u64| {
        let branches = branches.iter();
        branches.map(move |(group, address, repair)| ([("group", group.as_str()), ("branch", address)], value(repair)))
    };
    let help = "Packets sent again to the branch";
    out.counters("srdma_branch_resent", help, Some(packets()), of_branches(|repair| repair.packets_resent))?;
    let help = "Whether more than 1 % of the packets of the last second were sent again to the branch: 1 or 0";
    out.gauges("srdma_branch_repairing", help, None, of_branches(|repair| repair.is_repairing.into()))?;
    let of_memory = |value: fn(RepairMemorySnapshot) -> u64| memory.map(|memory| ([], value(memory)));
    let help = "Memory that retransmission buffers may take";
    out.gauges("srdma_repair_memory_limit", help, Some(Unit::Bytes), of_memory(|memory| memory.limit_octets))?;
    let help = "Memory that is reserved for retransmission buffers";
    out.gauges("srdma_repair_memory_reserved", help, Some(Unit::Bytes), of_memory(|memory| memory.reserved_octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_dataplane::RepairCounters;

    #[test]
    fn every_counter_has_a_metric() {
        let counted: Vec<&str> = RepairCounters::default().iter().map(|(name, _)| name).collect();
        assert_eq!(COUNTERS.map(|(name, _)| name)[..], counted);
    }
}
