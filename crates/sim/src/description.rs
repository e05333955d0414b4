//! Constant part of a run: its nodes, hosts, links and groups.
#![allow(missing_docs, reason = "names and types explain the other items")]

use srdma_fabric::{NodeId, Topology};
use srdma_group::Group;
use std::net::Ipv6Addr;

/// Constant part of a run. A [`Snapshot`](crate::Snapshot) has the variable part, in the same order.
#[derive(Clone, Debug)]
pub struct RunDescription {
    /// Name of the top of a tree, if there is one.
    pub root: Option<String>,
    /// Nodes and hosts.
    pub elements: Vec<ElementInfo>,
    pub links: Vec<LinkInfo>,
    pub groups: Vec<GroupInfo>,
}

/// A node or a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementInfo {
    pub name: String,
    /// A host's address, a node's loopback.
    pub address: Ipv6Addr,
    pub kind: ElementKind,
}

/// Kind of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    Host,
    /// A node with hosts.
    Edge,
    /// Any other node.
    Transit,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Names of its ends.
    pub ends: [String; 2],
    /// Largest IPv6 packet, in octets.
    pub mtu: u16,
    /// Number of groups whose trees or hosts use it.
    pub groups: u32,
}

/// A group with its tree.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    pub name: String,
    /// Reason for the shape of the tree.
    pub explanation: &'static str,
    pub group: Group,
}

impl RunDescription {
    /// Switches and hosts of a topology, in this order, with these groups. `address` returns the address of a node,
    /// `used` has the positions of the links of each group's tree.
    pub fn of_topology(
        topology: &Topology,
        mtu: u16,
        address: impl Fn(NodeId) -> Ipv6Addr,
        groups: Vec<GroupInfo>,
        used: &[Vec<usize>],
    ) -> Self {
        let switches = topology.switch_ids().map(NodeId::Switch);
        let nodes = switches.chain(topology.host_ids().map(NodeId::Host));
        let has_host = |node| topology.ports(node).iter().any(|port| matches!(port.peer.node, NodeId::Host(_)));
        let kind = |node| match node {
            NodeId::Host(_) => ElementKind::Host,
            NodeId::Switch(_) if has_host(node) => ElementKind::Edge,
            NodeId::Switch(_) => ElementKind::Transit,
        };
        let element =
            |node| ElementInfo { name: topology.name(node).to_owned(), address: address(node), kind: kind(node) };
        let elements: Vec<ElementInfo> = nodes.map(element).collect();
        let links = topology.links().iter().enumerate().map(|(position, link)| LinkInfo {
            ends: link.ends.map(|end| topology.name(end.node).to_owned()),
            mtu,
            groups: used.iter().filter(|links| links.contains(&position)).count() as u32,
        });
        let source = groups.first().map(|first| first.group.record().source.address);
        let root = elements.iter().find(|element| Some(element.address) == source).map(|element| element.name.clone());
        RunDescription { root, links: links.collect(), elements, groups }
    }
}
