//! Paths as entropy values of 32 bits (D255): which path of a fabric a value means.
//!
//! ```text
//!   31                            2 1 0
//!  |              0              | a |b|     a: the uplink of the leaf, b: the link of the spine to that leaf
//! ```
//!
//! A value has a field for each hop at which some pair of NICs has a choice between shortest paths. The field is the
//! position of the egress port among those of all shortest paths, in ascending order, on the fabric without failures.

mod address;

pub use address::{AddressError, ListedPath};

use crate::error::TopologyError;
use crate::next_hops::NextHops;
use crate::path::Path;
use crate::topology::{HostId, LinkId, NodeId, Plan, SwitchId, Topology};
use srdma_wire::Entropy;
use std::collections::BTreeSet;

/// Paths between two NICs that are enumerated, at most.
pub const MAX_PATHS: usize = 65_536;

/// The fields of a fabric's entropy values.
#[derive(Clone, Debug)]
pub struct Template {
    /// Without failures.
    topology: Topology,
    next_hops: NextHops,
    /// By hop: 0 is the NIC.
    fields: Vec<Field>,
    bits: u32,
}

/// The field of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The hop: 0 is the NIC, 1 the first switch.
    pub hop: usize,
    /// The tier of all switches that may be at this hop; `None` for the NIC, and where tiers differ.
    pub tier: Option<u8>,
    /// The most alternatives that any pair of NICs has there.
    pub choices: usize,
    /// Its width; 0 where no pair of NICs has a choice.
    pub bits: u32,
    /// The number of bits behind it.
    pub shift: u32,
}

/// Reason for which a fabric has no template, a path no value, or a value no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The fields need more than 32 bits.
    #[error("the choices of this fabric need {0} bits: expected 32 at most")]
    TooManyBits(u32),
    /// The fabric without its failures is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// From a NIC to itself.
    #[error("{0} has no path to itself")]
    SameNic(String),
    /// Bits are set above all fields.
    #[error("entropy {value:#x} is no path: this fabric uses {bits} bits")]
    BitsAbove {
        /// The value.
        value: u32,
        /// Bits of all fields.
        bits: u32,
    },
    /// The node has fewer egress ports toward the destination.
    #[error("entropy {value:#x} is no path: choice {found} at {node}, which has {choices}")]
    NoSuchChoice {
        /// The value.
        value: u32,
        /// The node at which it fails.
        node: String,
        /// The field's value.
        found: u32,
        /// Egress ports on shortest paths.
        choices: usize,
    },
    /// A field behind the end of the path is set.
    #[error("entropy {value:#x} is no path: it has a choice behind the path's end")]
    BehindEnd {
        /// The value.
        value: u32,
    },
    /// The path is longer than others.
    #[error("the path from {from} to {to} by {node} has no entropy: it is not among the shortest")]
    NotShortest {
        /// The first NIC.
        from: String,
        /// The last NIC.
        to: String,
        /// The node at which it leaves the shortest paths.
        node: String,
    },
    /// More than [`MAX_PATHS`] between two NICs.
    #[error("more than {MAX_PATHS} paths lead from {from} to {to}")]
    TooManyPaths {
        /// The first NIC.
        from: String,
        /// The last NIC.
        to: String,
    },
}

impl Template {
    /// The template of a fabric. Failed links count as others do.
    ///
    /// # Errors
    ///
    /// More than 32 bits.
    pub fn new(topology: &Topology) -> Result<Self, ValueError> {
        let topology = Topology::new(Plan {
            hosts: topology.hosts().to_vec(),
            switches: topology.switches().to_vec(),
            links: topology.links().to_vec(),
            failed: Vec::new(),
        })?;
        let next_hops = NextHops::new(&topology);
        let mut fields = fields(&topology, &next_hops);
        let mut bits = 0;
        for field in fields.iter_mut().rev() {
            field.shift = bits;
            bits += field.bits;
        }
        if bits > u32::BITS {
            return Err(ValueError::TooManyBits(bits));
        }
        Ok(Template { topology, next_hops, fields, bits })
    }

    /// The fields in which values differ, the first in the most significant bits.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.bits > 0)
    }

    /// Bits of all fields together.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The path of a value.
    ///
    /// # Errors
    ///
    /// The value is that of no path between the two.
    pub fn expand(&self, from: HostId, to: HostId, entropy: Entropy) -> Result<Path, ValueError> {
        if from == to {
            return Err(ValueError::SameNic(self.name(NodeId::Host(from))));
        }
        let value = entropy.0;
        if u64::from(value) >> self.bits != 0 {
            return Err(ValueError::BitsAbove { value, bits: self.bits });
        }
        let (mut at, mut links, mut used) = (NodeId::Host(from), Vec::new(), 0);
        while at != NodeId::Host(to) {
            let found = self.fields.get(links.len()).map_or(0, |field| field.of(entropy));
            let ports = self.ports(at, to);
            let port = ports.get(found as usize).and_then(|port| self.topology.port(at, *port));
            let Some(port) = port else {
                let node = self.name(at);
                return Err(ValueError::NoSuchChoice { value, node, found, choices: ports.len() });
            };
            used |= self.fields.get(links.len()).map_or(0, |field| field.value(found));
            links.push(port.link);
            at = port.peer.node;
        }
        if used != value {
            return Err(ValueError::BehindEnd { value });
        }
        Ok(Path { from, to, links })
    }

    /// The value of a path.
    ///
    /// # Errors
    ///
    /// The path is not among the shortest of the fabric without failures.
    pub fn entropy(&self, path: &Path) -> Result<Entropy, ValueError> {
        let mut value = 0;
        let hops = path.hops(&self.topology).map(|(switch, link)| (NodeId::Switch(switch), link));
        let first = path.links.first().map(|link| (NodeId::Host(path.from), *link));
        for (hop, (node, link)) in first.into_iter().chain(hops).enumerate() {
            let is_taken = |port: &u16| self.topology.port(node, *port).is_some_and(|port| port.link == link);
            let position = self.ports(node, path.to).iter().position(is_taken);
            let position = position.ok_or_else(|| ValueError::NotShortest {
                from: self.name(NodeId::Host(path.from)),
                to: self.name(NodeId::Host(path.to)),
                node: self.name(node),
            })?;
            value |= self.fields.get(hop).map_or(0, |field| field.value(position as u32));
        }
        Ok(Entropy(value))
    }

    /// All paths between two NICs, those over failed links too, in the order of their values.
    ///
    /// # Errors
    ///
    /// More than [`MAX_PATHS`]; from a NIC to itself.
    pub fn paths(&self, from: HostId, to: HostId) -> Result<Vec<(Entropy, Path)>, ValueError> {
        if from == to {
            return Err(ValueError::SameNic(self.name(NodeId::Host(from))));
        }
        let mut paths = Vec::new();
        let mut waiting = vec![(NodeId::Host(from), 0, Vec::new())];
        while let Some((at, value, links)) = waiting.pop() {
            if at == NodeId::Host(to) {
                if paths.len() == MAX_PATHS {
                    let [from, to] = [from, to].map(|host| self.name(NodeId::Host(host)));
                    return Err(ValueError::TooManyPaths { from, to });
                }
                paths.push((Entropy(value), Path { from, to, links }));
                continue;
            }
            for (position, port) in self.ports(at, to).iter().enumerate().rev() {
                let Some(port) = self.topology.port(at, *port) else { continue };
                let chosen = self.fields.get(links.len()).map_or(0, |field| field.value(position as u32));
                let links = links.iter().copied().chain([port.link]).collect::<Vec<LinkId>>();
                waiting.push((port.peer.node, value | chosen, links));
            }
        }
        Ok(paths)
    }

    /// The egress ports of a node on shortest paths to a NIC, in ascending order.
    fn ports(&self, node: NodeId, to: HostId) -> Vec<u16> {
        match node {
            NodeId::Host(host) => self.next_hops.from_host(&self.topology, host, to),
            NodeId::Switch(switch) => self.next_hops.toward(switch, to).to_vec(),
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.topology.name(node).to_owned()
    }
}

impl Field {
    /// Its content in a value.
    fn of(&self, entropy: Entropy) -> u32 {
        ((u64::from(entropy.0) >> self.shift) & ((1 << self.bits) - 1)) as u32
    }

    /// A value of it alone.
    fn value(&self, content: u32) -> u32 {
        (u64::from(content) << self.shift) as u32
    }
}

/// The most alternatives at each hop, by all pairs of NICs. Shifts are not set.
fn fields(topology: &Topology, next_hops: &NextHops) -> Vec<Field> {
    // By hop: the most alternatives, and the tiers of the switches.
    let mut found: Vec<(usize, BTreeSet<u8>)> = Vec::new();
    let mut note = |hop: usize, choices: usize, tier: Option<u8>| {
        if found.len() <= hop {
            found.resize_with(hop + 1, Default::default);
        }
        found[hop].0 = found[hop].0.max(choices);
        found[hop].1.extend(tier);
    };
    let mut of_class: Vec<Vec<HostId>> = vec![Vec::new(); next_hops.classes() as usize];
    topology.host_ids().for_each(|host| of_class[next_hops.class(host) as usize].push(host));
    let senders = senders(topology);
    let tier = |switch: SwitchId| topology.switches()[switch.index()].tier;
    for (class, hosts) in of_class.iter().enumerate() {
        let class = class as u32;
        // The switches that packets to the class reach at each hop.
        let mut reached: BTreeSet<SwitchId> = BTreeSet::new();
        for from in senders.iter().copied() {
            let Some(to) = hosts.iter().copied().find(|to| *to != from) else { continue };
            let ports = next_hops.from_host(topology, from, to);
            note(0, ports.len(), None);
            let first = ports.iter().filter_map(|port| topology.port(NodeId::Host(from), *port));
            reached.extend(first.filter_map(|port| match port.peer.node {
                NodeId::Switch(switch) => Some(switch),
                NodeId::Host(_) => None,
            }));
        }
        let mut hop = 1;
        while !reached.is_empty() {
            let mut next = BTreeSet::new();
            for at in std::mem::take(&mut reached) {
                if next_hops.attached(class).contains(&at) {
                    let ports = hosts.iter().map(|host| next_hops.toward(at, *host).len()).max();
                    note(hop, ports.unwrap_or(0), Some(tier(at)));
                    continue;
                }
                let ports = next_hops.toward_class(at, class);
                note(hop, ports.len(), Some(tier(at)));
                let peers = ports.iter().filter_map(|port| topology.port(NodeId::Switch(at), *port));
                next.extend(peers.filter_map(|port| match port.peer.node {
                    NodeId::Switch(switch) => Some(switch),
                    NodeId::Host(_) => None,
                }));
            }
            reached = next;
            hop += 1;
        }
    }
    let field = |(hop, (choices, tiers)): (usize, (usize, BTreeSet<u8>))| {
        let tier = tiers.first().copied().filter(|_| tiers.len() == 1);
        Field { hop, tier, choices, bits: choices.next_power_of_two().trailing_zeros(), shift: 0 }
    };
    found.into_iter().enumerate().map(field).collect()
}

/// One host of each set of hosts whose ports lead to the same switches.
fn senders(topology: &Topology) -> Vec<HostId> {
    let mut known: BTreeSet<Vec<SwitchId>> = BTreeSet::new();
    topology.host_ids().filter(|host| known.insert(topology.attached_to(*host).collect())).collect()
}
