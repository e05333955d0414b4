//! Fabrics of several planes.

use super::{Builder, MAX_LEAF_SPINE, MAX_PLANES, Speeds, in_range, pairs};
use crate::error::TopologyError;
use crate::topology::Topology;

/// Leaf-spines that nothing joins but the hosts: each has one link to each of them.
///
/// ```text
///   p1.spine1 …        p2.spine1 …
///    │      ╲           │      ╲
///   p1.leaf1 p1.leaf2  p2.leaf1 p2.leaf2
///    │  ╲_______________│
///   h1.1 …      h1.1: port 0 to p1.leaf1, port 1 to p2.leaf1
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Number of planes, 2 to [`MAX_PLANES`].
    pub planes: u16,
    /// Leaf switches of each, 1 to [`MAX_LEAF_SPINE`].
    pub leaves: u16,
    /// Spine switches of each, 1 to [`MAX_LEAF_SPINE`].
    pub spines: u16,
    /// Hosts attached to each leaf, 1 to [`MAX_LEAF_SPINE`].
    pub hosts_per_leaf: u16,
    /// Rates and delays.
    pub speeds: Speeds,
}

impl Planes {
    /// The topology.
    ///
    /// # Errors
    ///
    /// A number that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let Planes { planes, leaves, spines, hosts_per_leaf, speeds } = *self;
        in_range("planes", planes, 2, MAX_PLANES)?;
        for (what, number) in [("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts_per_leaf)] {
            in_range(what, number, 1, MAX_LEAF_SPINE)?;
        }
        let mut builder = Builder::new(speeds);
        // The plane is in front of the number, so that ids stay when a plane grows.
        for (plane, leaf) in pairs(planes, leaves) {
            builder.switch(format!("p{}.leaf{}", plane + 1, leaf + 1), 1, (plane + 1) << 12 | (leaf + 1));
        }
        for (plane, spine) in pairs(planes, spines) {
            builder.switch(format!("p{}.spine{}", plane + 1, spine + 1), 2, (plane + 1) << 12 | (spine + 1));
        }
        for (leaf, host) in pairs(leaves, hosts_per_leaf) {
            let number = u32::from(leaf + 1) << 16 | u32::from(host + 1);
            let above = (0..planes).map(|plane| (plane * leaves + leaf, host));
            builder.host(format!("h{}.{}", leaf + 1, host + 1), number, above);
        }
        for plane in 0..planes {
            for (leaf, spine) in pairs(leaves, spines) {
                let upper = planes * leaves + plane * spines + spine;
                builder.uplink((plane * leaves + leaf, hosts_per_leaf + spine), (upper, leaf));
            }
        }
        Topology::new(builder.plan)
    }
}
