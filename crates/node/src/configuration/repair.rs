//! In-network repair of a group, as its section says (D150).

use srdma_group::{Downstream, NodeRole, RepairEntry, RepairMode, RepairPolicy, Rules};
use srdma_node_spec::file::{GroupSection, PolicySection, RepairSection};
use srdma_toml_error::Problem;

/// The part of a policy that concerns repair.
pub(super) fn policy(section: &PolicySection) -> Result<RepairPolicy, Problem> {
    for (name, time) in [("ack_timeout", &section.ack_timeout), ("round_trip", &section.round_trip)] {
        if let Some(time) = time.as_ref().filter(|time| time.value.is_zero()) {
            let text = format!("{name} is zero: packets would be sent again at once, without end (D161)");
            return Err(Problem::new(time.at, text));
        }
    }
    Ok(section.repair_policy())
}

/// How the node repairs; `None` if the policy, read already, has other nodes repair or none.
pub(super) fn entry(
    section: &GroupSection,
    policy: &RepairPolicy,
    downstream: &[Downstream],
) -> Result<Option<RepairEntry>, Problem> {
    let repairs = match (policy.mode, section.role) {
        (RepairMode::Off, NodeRole::Edge | NodeRole::Transit | NodeRole::Bud)
        | (RepairMode::Edge, NodeRole::Transit) => false,
        (RepairMode::Edge | RepairMode::Tree, NodeRole::Edge | NodeRole::Bud)
        | (RepairMode::Tree, NodeRole::Transit) => true,
    };
    let given = section.repair.as_ref();
    if !repairs {
        return match given {
            Some(given) => {
                let text = "this node does not repair, by `repair` of the group's policy";
                Err(Problem::new(given.span().start, text))
            }
            None => Ok(None),
        };
    }
    if let (Rules::Literal, at) = (section.policy.rules, section.id.at) {
        let text = "a group with rules = \"literal\" is not repaired: its nodes take a NAK for what it is (D150)";
        return Err(Problem::new(at, text));
    }
    let groups = downstream.iter().any(|downstream| matches!(downstream, Downstream::Multicast(_)));
    if let Some(entries) = section.downstream.as_ref().filter(|_| groups) {
        let text = "a node that repairs sends packets to one child, and has no multicast group in downstream (D150)";
        return Err(Problem::new(entries.span().start, text));
    }
    let given = given.map(|given| given.get_ref());
    let window = given.and_then(|given| given.window_packets.as_ref()).map(|packets| packets.value.get() as u32);
    let levels = given.and_then(|given| given.levels.as_ref()).map(|levels| levels.value.get() as u32);
    let branches = section.branches.as_ref().filter(|_| section.role.replicates());
    let branches = branches.map_or(&[][..], |branches| branches.get_ref());
    Ok(Some(RepairEntry {
        window_packets: window.unwrap_or_else(|| RepairSection::default_window(policy)),
        parent_repairs: section.parent.as_ref().is_some_and(|parent| parent.get_ref().repairs),
        children: branches.iter().map(|branch| branch.get_ref().repairs).collect(),
        levels: levels.unwrap_or_else(|| RepairSection::default_levels(branches.len())),
    }))
}
