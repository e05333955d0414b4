//! Repair of groups, as lines and columns of the screen (D150).

use super::columns::Column;
use crate::units::grouped;
use srdma_node::daemon::{BranchSnapshot, GroupSnapshot};

/// The line about a group's buffer; `None` where the node does not repair the group.
pub(super) fn line(group: &GroupSnapshot) -> Option<String> {
    let repair = group.repair.as_ref()?;
    if repair.lacks_memory {
        return Some("    not repaired: no memory is left for its packets (D162)".to_owned());
    }
    if repair.is_off {
        let text = "    not repaired until its next epoch: the source has more in flight than its window (D160)";
        return Some(text.to_owned());
    }
    let count = |name: &str| grouped(repair.counters.get(name).copied().unwrap_or(0));
    Some(format!(
        "    repair: {} of {} packets kept, {} sent again; {} NAKs answered; requests {} received, {} sent; {} gaps \
         given up",
        grouped(repair.kept),
        grouped(u64::from(repair.capacity)),
        count("packets_resent"),
        count("naks_absorbed"),
        count("requests_received"),
        count("requests_sent"),
        count("gaps_given_up")
    ))
}

/// The columns of branches that are repaired; none where the node does not repair the group.
pub(super) fn columns(group: &GroupSnapshot) -> Vec<Column> {
    let is_on = group.branches.iter().any(|branch| branch.repair.is_some());
    if is_on { vec![Column::number("sent again"), Column::text("")] } else { Vec::new() }
}

/// The cells of a branch for these columns.
pub(super) fn cells(branch: &BranchSnapshot) -> Vec<String> {
    let Some(repair) = &branch.repair else { return Vec::new() };
    let state = match (repair.is_repairing, repair.is_behind) {
        (true, _) => "repairing",
        (false, true) => "behind",
        (false, false) => "",
    };
    vec![grouped(repair.packets_resent), state.to_owned()]
}
