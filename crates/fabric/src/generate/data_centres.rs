//! Data centres joined by long links (PP-7-1).

use super::{Builder, MAX_DATA_CENTRES, MAX_LEAF_SPINE, Speeds, in_range, pairs};
use crate::error::TopologyError;
use crate::topology::Topology;

/// The most leaves, spines and borders of a data centre, of each.
const MAX_SWITCHES: u16 = 255;

/// Leaf-spines of their own, each with borders above its spines; the borders of the same number of all data centres are
/// joined with each other.
///
/// ```text
///   dc1.border1 ──────── WAN ──────── dc2.border1
///     │      ╲                         │      ╲
///   dc1.spine1 dc1.spine2            dc2.spine1 dc2.spine2
///     │    ╲ ╱   │                     │    ╲ ╱   │
///   dc1.leaf1  dc1.leaf2             dc2.leaf1  dc2.leaf2
///     │                                │
///   h1.1.1 …                         h2.1.1 …      h2.1.1: the first host of dc2.leaf1
/// ```
///
/// A path between two of them names leaf, spine, border, border, spine and leaf: six ids, which fit one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCentres {
    /// Number of data centres, 2 to [`MAX_DATA_CENTRES`].
    pub data_centres: u16,
    /// Leaf switches of each, 1 to 255.
    pub leaves: u16,
    /// Spine switches of each, 1 to 255.
    pub spines: u16,
    /// Hosts attached to each leaf, 1 to [`MAX_LEAF_SPINE`].
    pub hosts_per_leaf: u16,
    /// Border switches of each, 1 to 255.
    pub borders: u16,
    /// Rates and delays within data centres.
    pub speeds: Speeds,
    /// The links between them.
    pub wan: Wan,
}

/// Links between data centres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wan {
    /// Rate of each direction, in bits a second.
    pub rate_bits_per_s: u64,
    /// Propagation delay, in nanoseconds.
    pub delay_ns: u64,
}

impl Wan {
    /// 400 Gbit/s over 100 km: 5 µs a kilometre of glass.
    pub const DEFAULT: Wan = Wan { rate_bits_per_s: 400_000_000_000, delay_ns: 500_000 };
}

impl DataCentres {
    /// The topology.
    ///
    /// # Errors
    ///
    /// A number that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let DataCentres { data_centres, leaves, spines, hosts_per_leaf, borders, speeds, wan } = *self;
        in_range("data_centres", data_centres, 2, MAX_DATA_CENTRES)?;
        for (what, number) in [("leaves", leaves), ("spines", spines), ("borders", borders)] {
            in_range(what, number, 1, MAX_SWITCHES)?;
        }
        in_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_LEAF_SPINE)?;
        let mut builder = Builder::new(speeds);
        for (tier, kind, count) in [(1, "leaf", leaves), (2, "spine", spines), (3, "border", borders)] {
            for (site, index) in pairs(data_centres, count) {
                let name = format!("dc{}.{kind}{}", site + 1, index + 1);
                builder.switch(name, tier, (site + 1) << 8 | (index + 1));
            }
        }
        let leaf = |site: u16, index: u16| site * leaves + index;
        let spine = |site: u16, index: u16| data_centres * leaves + site * spines + index;
        let border = |site: u16, index: u16| data_centres * (leaves + spines) + site * borders + index;
        for (site, index) in pairs(data_centres, leaves) {
            for host in 0..hosts_per_leaf {
                let name = format!("h{}.{}.{}", site + 1, index + 1, host + 1);
                let number = u32::from(site + 1) << 24 | u32::from(index + 1) << 16 | u32::from(host + 1);
                builder.host(name, number, [(leaf(site, index), host)]);
            }
        }
        for site in 0..data_centres {
            for (below, above) in pairs(leaves, spines) {
                builder.uplink((leaf(site, below), hosts_per_leaf + above), (spine(site, above), below));
            }
            for (below, above) in pairs(spines, borders) {
                builder.uplink((spine(site, below), leaves + above), (border(site, above), below));
            }
        }
        for (one, other) in pairs(data_centres, data_centres).filter(|(one, other)| one < other) {
            for index in 0..borders {
                // A port for each other data centre, by its number.
                let ends = [(border(one, index), spines + other), (border(other, index), spines + one)];
                builder.link(ends, wan.rate_bits_per_s, wan.delay_ns);
            }
        }
        Topology::new(builder.plan)
    }
}
