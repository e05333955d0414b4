//! Leaf-spine fabrics.

use super::{Builder, MAX_LEAF_SPINE, Speeds, in_range};
use crate::error::TopologyError;
use crate::topology::Topology;

/// Leaves with hosts below, each joined once to every spine above.
///
/// ```text
///   spine1   spine2          every leaf to every spine
///     │  ╲  ╱  │
///     │  ╱  ╲  │
///   leaf1    leaf2           ports: hosts first, then spines
///   ╱  ╲      ╱  ╲
/// h1.1 h1.2 h2.1 h2.2
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// Leaf switches, 1 to [`MAX_LEAF_SPINE`].
    pub leaves: u16,
    /// Spine switches, 1 to [`MAX_LEAF_SPINE`].
    pub spines: u16,
    /// Hosts attached to each leaf, 1 to [`MAX_LEAF_SPINE`].
    pub hosts_per_leaf: u16,
    /// Rates and delays.
    pub speeds: Speeds,
}

impl LeafSpine {
    /// The topology.
    ///
    /// # Errors
    ///
    /// A number that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let (leaves, spines, hosts) = (self.leaves, self.spines, self.hosts_per_leaf);
        for (what, number) in [("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts)] {
            in_range(what, number, 1, MAX_LEAF_SPINE)?;
        }
        let mut builder = Builder::new(self.speeds);
        for leaf in 1..=leaves {
            builder.switch(format!("leaf{leaf}"), 1, leaf);
        }
        for spine in 1..=spines {
            builder.switch(format!("spine{spine}"), 2, spine);
        }
        for leaf in 0..leaves {
            for member in 1..=hosts {
                let number = u32::from(leaf + 1) << 16 | u32::from(member);
                builder.host(format!("h{}.{member}", leaf + 1), number, [(leaf, member - 1)]);
            }
        }
        for leaf in 0..leaves {
            for spine in 0..spines {
                builder.uplink((leaf, hosts + spine), (leaves + spine, leaf));
            }
        }
        Topology::new(builder.plan)
    }
}
