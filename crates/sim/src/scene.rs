//! Environment of a run: its nodes, hosts and links, and its groups.

use srdma_fabric::{NodeId, Topology};
use srdma_group::Group;
use std::net::Ipv6Addr;

/// Constant part of a run. [`Moment`](crate::Moment) has the rest, in the same orders.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Scene {
    /// Top of a tree, if there is one.
    pub root: Option<String>,
    /// Nodes and hosts.
    pub places: Vec<Place>,
    pub links: Vec<SceneLink>,
    pub groups: Vec<SceneGroup>,
}

/// A node or a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Place {
    pub name: String,
    /// A host's address, a node's loopback.
    pub address: Ipv6Addr,
    pub kind: PlaceKind,
}

/// Kind of element at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// A host.
    Host,
    /// A node that hosts are attached to.
    Edge,
    /// Any other node.
    Transit,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SceneLink {
    /// Names of its ends.
    pub ends: [String; 2],
    /// Largest IPv6 packet, in octets.
    pub mtu: u16,
    /// Groups whose tree has it, with its hosts.
    pub groups: u32,
}

/// A group with its tree.
#[derive(Clone, Debug)]
pub struct SceneGroup {
    /// Name.
    pub name: String,
    /// Reason for the shape of the tree.
    pub explanation: &'static str,
    /// Its record.
    pub group: Group,
}

impl Scene {
    /// Switches and hosts of a topology, in this order, with these groups. `address` is that of a node, `used` has the
    /// positions of the links of each group's tree.
    pub fn of_topology(
        topology: &Topology,
        mtu: u16,
        address: impl Fn(NodeId) -> Ipv6Addr,
        groups: Vec<SceneGroup>,
        used: &[Vec<usize>],
    ) -> Self {
        let switches = topology.switch_ids().map(NodeId::Switch);
        let nodes = switches.chain(topology.host_ids().map(NodeId::Host));
        let has_host = |node| topology.ports(node).iter().any(|port| matches!(port.peer.node, NodeId::Host(_)));
        let kind = |node| match node {
            NodeId::Host(_) => PlaceKind::Host,
            NodeId::Switch(_) if has_host(node) => PlaceKind::Edge,
            NodeId::Switch(_) => PlaceKind::Transit,
        };
        let place = |node| Place { name: topology.name(node).to_owned(), address: address(node), kind: kind(node) };
        let places: Vec<Place> = nodes.map(place).collect();
        let links = topology.links().iter().enumerate().map(|(position, link)| SceneLink {
            ends: link.ends.map(|end| topology.name(end.node).to_owned()),
            mtu,
            groups: used.iter().filter(|links| links.contains(&position)).count() as u32,
        });
        let source = groups.first().map(|first| first.group.record().source.address);
        let root = places.iter().find(|place| Some(place.address) == source).map(|place| place.name.clone());
        Scene { root, links: links.collect(), places, groups }
    }
}
