//! The topology of a lab: its topology file, parsed and validated.
//!
//! Reading has two steps. `file` defines the file's format, and reports wrong keys, types and notations. `check` turns
//! its sections into the types below, which cannot contradict themselves. Either way the error names the line.

mod check;
mod controller;
mod file;

use serde::{Deserialize, Serialize, Serializer};
use srdma_node_spec::file::PolicySection;
use srdma_toml_error::FileError;
use srdma_wire::{PathMtu, Prefix, Psn, Qpn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// A lab: nodes, the links between them, and what may be transferred.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The name, from that of the file.
    pub name: String,
    /// Its purpose, in one line.
    pub description: String,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Every node gets kernel routes to the addresses and prefixes of all others, along the shortest paths.
    pub shortest_path_routes: bool,
    /// The multicast group, when there is one.
    pub group: Option<GroupPlan>,
    /// The controller that the lab starts, when it has one.
    pub controller: Option<ControllerPlan>,
    /// Pairs that transfer by unicast, all at once, in a lab without a group.
    pub pairs: Vec<Pair>,
    /// The transfer of `run`.
    pub transfer: Transfer,
}

/// A node: a network namespace and what runs in it.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub name: String,
    pub kind: Kind,
    /// Its own addresses: on its first link at an end host, on the loopback interface elsewhere.
    pub addresses: Vec<Ipv6Addr>,
    /// Further prefixes that other nodes reach here, SIDs in particular.
    pub prefixes: Vec<Prefix>,
    /// Kernel settings of its namespace, beyond those that its kind brings.
    pub sysctls: Vec<(String, String)>,
    /// Command lines to run in its namespace once it has its links, addresses and routes; `{directory}` is replaced by
    /// a directory that exists while the lab does.
    pub commands: Vec<Vec<String>>,
    /// Of a host with the software endpoint: options of `srdma send` or `srdma recv`, beside those that the lab gives.
    pub options: Vec<String>,
}

/// Kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `srdma node`. It takes its part of the group; other sections of its `node.toml` may be given.
    Srdma {
        /// Keys of the topology file for its `node.toml`.
        config: toml::Table,
    },
    /// A plain Linux router.
    Router,
    /// A host with the software endpoint, `srdma send` and `srdma recv`.
    Endpoint,
    /// A host that is a virtual machine with soft-RoCE.
    Guest,
}

impl Kind {
    /// Whether packets end here, so that one link and a default route are enough.
    pub fn is_host(&self) -> bool {
        match self {
            Kind::Endpoint | Kind::Guest => true,
            Kind::Srdma { .. } | Kind::Router => false,
        }
    }

    /// The name in topology files.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Srdma { .. } => "srdma",
            Kind::Router => "router",
            Kind::Endpoint => "endpoint",
            Kind::Guest => "guest",
        }
    }
}

/// A link between two nodes.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `A-B`, after its ends; the first is the one nearer to the source.
    pub name: String,
    pub ends: [End; 2],
    /// Largest IPv6 packet, in octets.
    pub mtu: u32,
    /// Rate of each direction, when it is limited.
    pub rate_bits_per_s: Option<u64>,
    /// Probability of a frame being lost, in each direction.
    pub loss: f64,
}

impl Link {
    /// Whether it is worse than its interfaces: it loses, or has a rate.
    pub fn is_shaped(&self) -> bool {
        self.rate_bits_per_s.is_some() || self.loss > 0.0
    }
}

/// End of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Position of the node.
    pub node: usize,
    /// Name of the interface there.
    pub interface: String,
    /// Addresses of the interface with their prefix lengths, beside the link-local one. The first of IPv4 is its host's
    /// in groups of IPv4.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl End {
    fn ipv4_address(&self) -> Option<Ipv4Addr> {
        self.addresses.iter().find_map(|(address, _)| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }
}

/// The group of the lab's data.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPlan {
    pub proxy: Ipv6Addr,
    pub designated_qpn: Qpn,
    /// The source's first PSN.
    pub initial_psn: Psn,
    /// Position of the source among the nodes.
    pub source: usize,
    /// Largest IPv6 packet of the tree's links, in octets.
    pub link_mtu: u16,
    /// The tree, the root first.
    pub tree: Vec<TreePlan>,
    pub receivers: Vec<ReceiverPlan>,
    /// The `[group.policy]` of every node.
    pub policy: PolicySection,
}

/// A node of the tree.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq)]
pub struct TreePlan {
    /// Position among the lab's nodes.
    pub node: usize,
    /// Position of its parent in the tree.
    pub parent: Option<usize>,
    pub loopback: Ipv6Addr,
    /// Destination of the group's data at this node: its SID, or a multicast group.
    pub sid: Ipv6Addr,
    /// The parent's SID for responses, when it is not a neighbour.
    pub parent_sid: Option<Ipv6Addr>,
    /// Data go to its children by this multicast group.
    pub multicast: Option<Ipv6Addr>,
}

/// A receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverPlan {
    /// Position among the lab's nodes.
    pub node: usize,
    /// Position of its edge in the tree.
    pub edge: usize,
}

/// The controller that nodes take groups from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerPlan {
    /// Position of its node among the lab's nodes.
    pub node: usize,
    /// Its address: the node's first address.
    pub address: Ipv6Addr,
    /// Its TCP port.
    pub port: u16,
    /// Pool of Proxy Addresses for groups that name none.
    pub proxies: Option<Prefix>,
    /// Hosts that may be attached to several nodes.
    pub shared_hosts: Vec<Prefix>,
    /// The group that `run` creates there.
    pub group: Option<ControlledGroup>,
}

/// A group whose tree the controller makes.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlledGroup {
    pub proxy: Ipv6Addr,
    pub designated_qpn: Qpn,
    /// The source's first PSN.
    pub initial_psn: Psn,
    /// Position of the source among the nodes.
    pub source: usize,
    /// Positions of the receivers.
    pub receivers: Vec<usize>,
}

impl ControllerPlan {
    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://[{}]:{}", self.address, self.port)
    }
}

/// Two hosts with the software endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Position of the one that sends among the lab's nodes.
    pub source: usize,
    /// Position of the one that receives.
    pub destination: usize,
    /// The address that it receives at: pairs with the same destination have one each.
    pub address: Ipv6Addr,
}

/// The transfer of `run`.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfer {
    pub size_octets: u64,
    #[serde(serialize_with = "octets")]
    pub path_mtu: PathMtu,
    /// WRITE or SEND.
    pub operation: Operation,
    /// Source of the edges' receiver lists.
    pub lists: Lists,
    /// Timeout in seconds.
    pub timeout_s: u64,
}

fn octets<S: Serializer>(path_mtu: &PathMtu, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(path_mtu.octets())
}

/// Operation of messages.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// RDMA WRITE.
    Write,
    Send,
}

/// Source of the edges' receiver lists (D6, D7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lists {
    /// In the TLVs of each packet.
    Tlv,
    /// In their own configuration.
    Provisioned,
}

impl Topology {
    /// Reads a file; the lab is named after it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, and those of [`Topology::parse`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = srdma_toml_error::read(file)?;
        Self::parse(file, &text)
    }

    /// Reads the content of a file; `file` gives the name, and is for errors.
    ///
    /// # Errors
    ///
    /// [`FileError::Wrong`] names the first line in error, the expected and the found value.
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        check::topology(file, text).map_err(|problem| problem.in_file(file, text))
    }

    /// The group that `run` has the controller create, when there is one.
    pub fn controlled_group(&self) -> Option<&ControlledGroup> {
        self.controller.as_ref().and_then(|plan| plan.group.as_ref())
    }

    /// A host's address in groups of IPv4: the first one of its links.
    pub fn ipv4_address(&self, node: usize) -> Option<Ipv4Addr> {
        self.ends_of(node).find_map(|(_, end, _)| end.ipv4_address())
    }

    /// The gateway of a host's IPv4 packets: the other end of its link with an IPv4 address.
    pub(crate) fn ipv4_gateway(&self, node: usize) -> Option<Ipv4Addr> {
        self.links.iter().find_map(|Link { ends: [a, b], .. }| {
            let (near, far) = if a.node == node { (a, b) } else { (b, a) };
            let gateway = far.ipv4_address();
            gateway.filter(|_| near.node == node && near.ipv4_address().is_some())
        })
    }

    /// Whether `run` has something to transfer.
    pub fn has_transfer(&self) -> bool {
        self.group.is_some() || self.controlled_group().is_some() || !self.pairs.is_empty()
    }

    /// The position of a node.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The ends of links at a node, each with the link's position, the end, and the node at the other end.
    pub fn ends_of(&self, node: usize) -> impl Iterator<Item = (usize, &End, usize)> {
        self.links.iter().enumerate().flat_map(move |(position, link)| {
            let [a, b] = &link.ends;
            let toward = |end, other: &End| (position, end, other.node);
            [toward(a, b), toward(b, a)].into_iter().filter(move |(_, end, _)| end.node == node)
        })
    }
}
