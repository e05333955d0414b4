//! `[group.repair]`: how the node repairs (D150).

use super::{Integer, Located, integer, unless};
use serde::{Deserialize, Serialize};
use srdma_group::{NodeRole, RepairEntry, RepairMode, RepairPolicy};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairSection {
    pub window_packets: Option<Located<WindowPackets>>,
    pub levels: Option<Located<Levels>>,
}

/// A buffer's packets: PSNs in it are compared serially.
pub type WindowPackets = Integer<1, 0x1_0000>;

pub type Levels = Integer<1, 255>;

#[derive(Serialize, Deserialize)]
#[serde(remote = "RepairMode", rename_all = "lowercase")]
pub(super) enum RepairName {
    Off,
    Edge,
    Tree,
}

impl RepairSection {
    /// Packets of the default RDMA path MTU, 4,096 octets, in the policy's window.
    pub fn default_window(policy: &RepairPolicy) -> u32 {
        policy.window_octets.div_ceil(4_096)
    }

    /// An edge is the lowest level; a transit node has at least one below it.
    pub fn default_levels(role: NodeRole) -> u32 {
        match role {
            NodeRole::Edge => 1,
            NodeRole::Transit => 2,
        }
    }

    /// What differs from the defaults, if anything does.
    pub(super) fn of(entry: &RepairEntry, policy: &RepairPolicy, role: NodeRole) -> Option<Self> {
        let window_packets = unless(entry.window_packets, Self::default_window(policy), integer);
        let levels = unless(entry.levels, Self::default_levels(role), integer);
        let is_default = window_packets.is_none() && levels.is_none();
        (!is_default).then_some(RepairSection { window_packets, levels })
    }
}
