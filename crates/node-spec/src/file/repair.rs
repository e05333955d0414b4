//! `[group.repair]`: how the node repairs (D150).

use super::{Integer, Located, integer, unless};
use serde::{Deserialize, Serialize};
use srdma_group::{RepairEntry, RepairMode, RepairPolicy};

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

    /// A node with none below it is the lowest level; another has at least one below it.
    pub fn default_levels(nodes_below: usize) -> u32 {
        if nodes_below == 0 { 1 } else { 2 }
    }

    /// What differs from the defaults, if anything does.
    pub(super) fn of(entry: &RepairEntry, policy: &RepairPolicy) -> Option<Self> {
        let window_packets = unless(entry.window_packets, Self::default_window(policy), integer);
        let levels = unless(entry.levels, Self::default_levels(entry.children.len()), integer);
        let is_default = window_packets.is_none() && levels.is_none();
        (!is_default).then_some(RepairSection { window_packets, levels })
    }
}
