//! Regular topologies, a file for each kind.
//!
//! Names and numbers give the position of an element, so that a fabric that grows by leaves, pods, spines or hosts
//! keeps those that it had: `h3.7` is the seventh host of `leaf3`, `h2.1.4` the fourth of the first edge switch of pod
//! 2.

mod data_centres;
mod dual_homed;
mod fat_tree;
mod leaf_spine;
mod planes;
mod rails;

pub use data_centres::{DataCentres, Wan};
pub use dual_homed::DualHomed;
pub use fat_tree::FatTree;
pub use leaf_spine::LeafSpine;
pub use planes::Planes;
pub use rails::Rails;

use crate::error::{Place, TopologyError};
use crate::topology::{End, Host, HostId, Link, MOST_BITS_PER_S, NodeId, Plan, Switch, SwitchId};

/// The most ports that a switch of a generated fat tree may have.
pub const MAX_K: u16 = 64;

/// The most leaves, spines, and hosts a leaf that a leaf-spine may have, of each.
pub const MAX_LEAF_SPINE: u16 = 512;

/// The most planes that a generated fabric may have.
pub const MAX_PLANES: u16 = 4;

/// The most NICs of a server, blocks of servers, and servers in a block that generated rails may have.
pub const MAX_RAILS: u16 = 64;

/// The most data centres that may be generated, and switches of a kind in each.
pub const MAX_DATA_CENTRES: u16 = 16;

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
    (1.0..=MOST_BITS_PER_S as f64).contains(&rate).then_some(rate as u64)
}

fn pairs(outer: u16, inner: u16) -> impl Iterator<Item = (u16, u16)> {
    (0..outer).flat_map(move |a| (0..inner).map(move |b| (a, b)))
}

/// Refuses a number that is not 1 to the most that there may be.
fn in_range(parameter: &'static str, number: u16, least: u16, most: u16) -> Result<(), TopologyError> {
    match (least..=most).contains(&number) {
        true => Ok(()),
        false => Err(out_of_range(parameter, format!("{parameter} = {number}: expected {least} to {most}"))),
    }
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

    /// A host with a link to each of some switches.
    fn host(&mut self, name: String, number: u32, above: impl IntoIterator<Item = (u16, u16)>) {
        let host = NodeId::Host(HostId(self.plan.hosts.len() as u32));
        self.plan.hosts.push(Host { name, number });
        for (port, above) in (0..).zip(above) {
            self.plan.links.push(Link {
                ends: [End { node: host, port }, switch_end(above)],
                rate_bits_per_s: self.speeds.host_rate_bits_per_s,
                delay_ns: self.speeds.host_delay_ns,
            });
        }
    }

    /// A link between two switches, at the fabric's rate and delay.
    fn uplink(&mut self, lower: (u16, u16), upper: (u16, u16)) {
        let Speeds { fabric_rate_bits_per_s, fabric_delay_ns, .. } = self.speeds;
        self.link([lower, upper], fabric_rate_bits_per_s, fabric_delay_ns);
    }

    fn link(&mut self, ends: [(u16, u16); 2], rate_bits_per_s: u64, delay_ns: u64) {
        self.plan.links.push(Link { ends: ends.map(switch_end), rate_bits_per_s, delay_ns });
    }
}

fn switch_end((switch, port): (u16, u16)) -> End {
    End { node: NodeId::Switch(SwitchId(u32::from(switch))), port }
}
