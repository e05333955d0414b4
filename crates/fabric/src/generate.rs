//! Regular topologies: leaf-spine, and fat trees of two and three tiers.
//!
//! Names and numbers say where something stands, so that a fabric that grows by leaves, pods, spines or hosts keeps
//! those that it had: `h3.7` is the seventh host of `leaf3`, `h2.1.4` the fourth of the first edge switch of pod 2.

use crate::error::{Place, TopologyError};
use crate::topology::{End, Host, HostId, Link, NodeId, Plan, Switch, SwitchId, Topology};

/// The most ports that a switch of a generated fat tree may have.
pub const MAX_K: u16 = 64;

/// The most leaves, spines, and hosts a leaf that a leaf-spine may have, of each.
pub const MAX_LEAF_SPINE: u16 = 512;

/// Rates and delays of a generated fabric's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speeds {
    /// Rate of the links to hosts, in bits a second.
    pub host_rate_bits_per_s: u64,
    /// Rate of the links between switches, in bits a second.
    pub fabric_rate_bits_per_s: u64,
    /// Delay of the links to hosts, in nanoseconds.
    pub host_delay_ns: u64,
    /// Delay of the links between switches, in nanoseconds.
    pub fabric_delay_ns: u64,
}

impl Speeds {
    /// 100 Gbit/s and 500 ns everywhere.
    pub const DEFAULT: Speeds = Speeds {
        host_rate_bits_per_s: 100_000_000_000,
        fabric_rate_bits_per_s: 100_000_000_000,
        host_delay_ns: 500,
        fabric_delay_ns: 500,
    };
}

/// The rate that each of `uplinks` needs below which the hosts' rates together are `oversubscription` times those of
/// the uplinks, in bits a second, rounded down; `None` unless it is at least 1 and fits.
pub fn uplink_rate_bits_per_s(
    host_rate_bits_per_s: u64,
    hosts: u16,
    uplinks: u16,
    oversubscription: f64,
) -> Option<u64> {
    let rate = host_rate_bits_per_s as f64 * f64::from(hosts) / (f64::from(uplinks) * oversubscription);
    (rate.is_finite() && (1.0..9e18).contains(&rate)).then_some(rate as u64)
}

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
            if !(1..=MAX_LEAF_SPINE).contains(&number) {
                return Err(out_of_range(what, format!("{what} = {number}: expected 1 to {MAX_LEAF_SPINE}")));
            }
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
                builder.host(format!("h{}.{member}", leaf + 1), number, (leaf, member - 1));
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

/// A k-ary fat tree: switches of k ports, half of them down and half of them up, except at the top.
///
/// Two tiers are a leaf-spine of k leaves with k/2 hosts each below k/2 spines: k²/2 hosts. Three tiers (Al-Fares,
/// Loukissas and Vahdat, SIGCOMM 2008) are k pods of k/2 edge and k/2 aggregation switches below (k/2)² core switches:
/// k³/4 hosts, 1,024 with k = 16. Aggregation switch j of every pod is joined to the k/2 cores of group j. With equal
/// rates both have full bisection bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// 2 or 3.
    pub tiers: u8,
    /// Ports of a switch: even, 2 to [`MAX_K`].
    pub k: u16,
    /// Pods, 2 to k; k unless it is given. With fewer, ports of cores stay free. Two tiers have none.
    pub pods: Option<u16>,
    /// Rates and delays.
    pub speeds: Speeds,
}

impl FatTree {
    /// The topology.
    ///
    /// # Errors
    ///
    /// A number of tiers or ports that is out of its range, and those of [`Topology::new`].
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        if !(2..=MAX_K).contains(&self.k) || !self.k.is_multiple_of(2) {
            return Err(out_of_range("k", format!("k = {}: expected an even number, 2 to {MAX_K}", self.k)));
        }
        let half = self.k / 2;
        if let Some(pods) = self.pods.filter(|pods| self.tiers != 3 || !(2..=self.k).contains(pods)) {
            let problem = format!("pods = {pods}: expected 2 to {}, and three tiers", self.k);
            return Err(out_of_range("pods", problem));
        }
        match self.tiers {
            2 => LeafSpine { leaves: self.k, spines: half, hosts_per_leaf: half, speeds: self.speeds }.topology(),
            3 => self.three_tiers(half),
            tiers => Err(out_of_range("tiers", format!("tiers = {tiers}: expected 2 or 3"))),
        }
    }

    fn three_tiers(&self, half: u16) -> Result<Topology, TopologyError> {
        let pods = self.pods.unwrap_or(self.k);
        let mut builder = Builder::new(self.speeds);
        let of_pod = |pod: u16, index: u16| pod * half + index;
        let (first_aggregation, first_core) = (pods * half, 2 * pods * half);
        for (tier, kind) in [(1, "edge"), (2, "agg")] {
            for (pod, index) in pairs(pods, half) {
                builder.switch(format!("{kind}{}.{}", pod + 1, index + 1), tier, (pod + 1) << 8 | (index + 1));
            }
        }
        for (group, index) in pairs(half, half) {
            builder.switch(format!("core{}.{}", group + 1, index + 1), 3, (group + 1) << 8 | (index + 1));
        }
        for (pod, edge) in pairs(pods, half) {
            for member in 1..=half {
                let number = u32::from(pod + 1) << 24 | u32::from(edge + 1) << 16 | u32::from(member);
                let name = format!("h{}.{}.{member}", pod + 1, edge + 1);
                builder.host(name, number, (of_pod(pod, edge), member - 1));
            }
        }
        for (pod, edge) in pairs(pods, half) {
            for aggregation in 0..half {
                let upper = first_aggregation + of_pod(pod, aggregation);
                builder.uplink((of_pod(pod, edge), half + aggregation), (upper, edge));
            }
        }
        for (pod, aggregation) in pairs(pods, half) {
            for index in 0..half {
                let core = first_core + of_pod(aggregation, index);
                builder.uplink((first_aggregation + of_pod(pod, aggregation), half + index), (core, pod));
            }
        }
        Topology::new(builder.plan)
    }
}

fn pairs(outer: u16, inner: u16) -> impl Iterator<Item = (u16, u16)> {
    (0..outer).flat_map(move |a| (0..inner).map(move |b| (a, b)))
}

fn out_of_range(parameter: &'static str, problem: String) -> TopologyError {
    TopologyError::new(Place::Parameter(parameter), problem)
}

/// A plan in the making. Switches are named by position, with a port: `(switch, port)`.
struct Builder {
    plan: Plan,
    speeds: Speeds,
}

impl Builder {
    fn new(speeds: Speeds) -> Self {
        Builder { plan: Plan::default(), speeds }
    }

    fn switch(&mut self, name: String, tier: u8, number: u16) {
        self.plan.switches.push(Switch { name, tier, number, usid: None });
    }

    fn host(&mut self, name: String, number: u32, above: (u16, u16)) {
        let host = NodeId::Host(HostId(self.plan.hosts.len() as u32));
        self.plan.hosts.push(Host { name, number });
        self.plan.links.push(Link {
            ends: [End { node: host, port: 0 }, switch_end(above)],
            rate_bits_per_s: self.speeds.host_rate_bits_per_s,
            delay_ns: self.speeds.host_delay_ns,
        });
    }

    fn uplink(&mut self, lower: (u16, u16), upper: (u16, u16)) {
        self.plan.links.push(Link {
            ends: [switch_end(lower), switch_end(upper)],
            rate_bits_per_s: self.speeds.fabric_rate_bits_per_s,
            delay_ns: self.speeds.fabric_delay_ns,
        });
    }
}

fn switch_end((switch, port): (u16, u16)) -> End {
    End { node: NodeId::Switch(SwitchId(u32::from(switch))), port }
}
