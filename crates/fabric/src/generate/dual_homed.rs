//! Hosts at two leaves each.

use super::{Builder, MAX_LEAF_SPINE, Speeds, in_range, out_of_range, pairs};
use crate::error::TopologyError;
use crate::topology::Topology;

/// A leaf-spine with leaves in pairs: a host has a link to both leaves of its pair.
///
/// ```text
///      spine1     spine2          every leaf to every spine
///       │  ╲ ╲   ╱ ╱  │
///    leaf1  leaf2  leaf3  leaf4   pairs 1 and 2
///      │ ╲  ╱ │      │ ╲  ╱ │
///    h1.1   h1.2   h2.1   h2.2    h1.1: port 0 to leaf1, port 1 to leaf2
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualHomed {
    /// Leaf switches: even, 2 to [`MAX_LEAF_SPINE`].
    pub leaves: u16,
    /// Spine switches, 1 to [`MAX_LEAF_SPINE`].
    pub spines: u16,
    /// Hosts attached to each leaf, and to the other one of its pair, 1 to [`MAX_LEAF_SPINE`].
    pub hosts_per_leaf: u16,
    /// Rates and delays.
    pub speeds: Speeds,
}

impl DualHomed {
    /// The topology.
    ///
    /// # Errors
    ///
    /// A number that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let DualHomed { leaves, spines, hosts_per_leaf, speeds } = *self;
        if !(2..=MAX_LEAF_SPINE).contains(&leaves) || !leaves.is_multiple_of(2) {
            let problem = format!("leaves = {leaves}: expected an even number, 2 to {MAX_LEAF_SPINE}");
            return Err(out_of_range("leaves", problem));
        }
        in_range("spines", spines, 1, MAX_LEAF_SPINE)?;
        in_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_LEAF_SPINE)?;
        let mut builder = Builder::new(speeds);
        for leaf in 1..=leaves {
            builder.switch(format!("leaf{leaf}"), 1, leaf);
        }
        for spine in 1..=spines {
            builder.switch(format!("spine{spine}"), 2, spine);
        }
        for (pair, host) in pairs(leaves / 2, hosts_per_leaf) {
            let number = u32::from(pair + 1) << 16 | u32::from(host + 1);
            let above = [(2 * pair, host), (2 * pair + 1, host)];
            builder.host(format!("h{}.{}", pair + 1, host + 1), number, above);
        }
        for (leaf, spine) in pairs(leaves, spines) {
            builder.uplink((leaf, hosts_per_leaf + spine), (leaves + spine, leaf));
        }
        Topology::new(builder.plan)
    }
}
