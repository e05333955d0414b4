//! Rail-optimised fabrics.

use super::{Builder, MAX_LEAF_SPINE, MAX_RAILS, Speeds, in_range, pairs};
use crate::error::TopologyError;
use crate::topology::Topology;

/// Servers with several NICs, in blocks; the same NIC of all servers of a block is at one leaf, its rail, and spines
/// join the rails.
///
/// ```text
///        spine1     spine2              every leaf to every spine
///       ╱   │  ╲  ╱  │   ╲
///   leaf1.1  leaf1.2  leaf2.1  leaf2.2  block 1: rails 1 and 2; block 2
///    │    ╲   ╱   │     …
///  h1.1.1 h1.2.1 h1.1.2 h1.2.2          h1.2.1: the first NIC of the second server of block 1
/// ```
///
/// Traffic among the NICs of a server inside the server is not part of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rails {
    /// Blocks of servers that have leaves of their own, 1 to [`MAX_RAILS`].
    pub blocks: u16,
    /// Servers of a block, 1 to [`MAX_LEAF_SPINE`].
    pub servers: u16,
    /// NICs of a server, 1 to [`MAX_RAILS`]: the rails of a block.
    pub rails: u16,
    /// Spine switches, 1 to [`MAX_LEAF_SPINE`].
    pub spines: u16,
    /// Rates and delays.
    pub speeds: Speeds,
}

impl Rails {
    /// The topology. Hosts are NICs, in the order of servers, so that a job's ranks are too. Addresses are made of the
    /// leaf, so that one prefix of 48 bits leads to each.
    ///
    /// # Errors
    ///
    /// A number that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let Rails { blocks, servers, rails, spines, speeds } = *self;
        in_range("blocks", blocks, 1, MAX_RAILS)?;
        in_range("servers", servers, 1, MAX_LEAF_SPINE)?;
        in_range("rails", rails, 1, MAX_RAILS)?;
        in_range("spines", spines, 1, MAX_LEAF_SPINE)?;
        let mut builder = Builder::new(speeds);
        for (block, rail) in pairs(blocks, rails) {
            builder.switch(format!("leaf{}.{}", block + 1, rail + 1), 1, (block + 1) << 8 | (rail + 1));
        }
        for spine in 1..=spines {
            builder.switch(format!("spine{spine}"), 2, spine);
        }
        let leaf = |block: u16, rail: u16| block * rails + rail;
        for (block, server) in pairs(blocks, servers) {
            for rail in 0..rails {
                let name = format!("h{}.{}.{}", block + 1, server + 1, rail + 1);
                let number = u32::from(block + 1) << 24 | u32::from(rail + 1) << 16 | u32::from(server + 1);
                builder.host(name, number, [(leaf(block, rail), server)]);
            }
        }
        for (leaf, spine) in pairs(blocks * rails, spines) {
            builder.uplink((leaf, servers + spine), (blocks * rails + spine, leaf));
        }
        Topology::new(builder.plan)
    }
}
