//! The network as nodes have registered it: links and attached hosts.

use srdma_api::{Link, Registration};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The nodes, by loopback.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    nodes: BTreeMap<Ipv6Addr, NetworkNode>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkNode {
    pub(crate) name: String,
    pub(crate) end_mt: Option<Ipv6Addr>,
    pub(crate) replication: Option<Prefix>,
    pub(crate) hosts: Vec<Prefix>,
    pub(crate) links: Vec<Link>,
    /// Whether new trees may use it: it is alive and not drained.
    pub(crate) is_usable: bool,
}

/// A link that both ends name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) to: Ipv6Addr,
    pub(crate) mtu: u16,
    pub(crate) cost: u32,
}

impl Network {
    /// Adds or replaces a node.
    pub(crate) fn put(&mut self, registration: &Registration, is_usable: bool) {
        let node = NetworkNode {
            name: registration.name.clone(),
            end_mt: registration.end_mt,
            replication: registration.replication,
            hosts: registration.hosts.clone(),
            links: registration.links.clone(),
            is_usable,
        };
        self.nodes.insert(registration.loopback, node);
    }

    /// Sets whether new trees may use a node.
    pub(crate) fn set_usable(&mut self, loopback: Ipv6Addr, is_usable: bool) {
        if let Some(node) = self.nodes.get_mut(&loopback) {
            node.is_usable = is_usable;
        }
    }

    pub(crate) fn node(&self, loopback: Ipv6Addr) -> Option<&NetworkNode> {
        self.nodes.get(&loopback)
    }

    /// A node's name, or its loopback where it is not known.
    pub(crate) fn name(&self, loopback: Ipv6Addr) -> String {
        self.node(loopback).map_or_else(|| loopback.to_string(), |node| node.name.clone())
    }

    /// The links of a node.
    pub(crate) fn hops(&self, from: Ipv6Addr) -> impl Iterator<Item = Hop> {
        let links = self.nodes.get(&from).into_iter().flat_map(|node| &node.links);
        links.filter_map(move |link| {
            let back = self.nodes.get(&link.to)?.links.iter().find(|back| back.to == from)?;
            Some(Hop { to: link.to, mtu: link.mtu.min(back.mtu), cost: link.cost.max(back.cost) })
        })
    }

    /// The link between two nodes.
    pub(crate) fn hop(&self, from: Ipv6Addr, to: Ipv6Addr) -> Option<Hop> {
        self.hops(from).find(|hop| hop.to == to)
    }

    /// The node that a host is attached to: the one with the longest prefix.
    pub(crate) fn node_of_host(&self, host: Ipv6Addr) -> Option<Ipv6Addr> {
        let matches = self.nodes.iter().flat_map(|(loopback, node)| {
            node.hosts
                .iter()
                .filter(move |prefix| prefix.contains(host))
                .map(move |prefix| (prefix.prefix_len(), loopback))
        });
        // Of two with the same prefix the first by loopback.
        matches.max_by_key(|(length, loopback)| (*length, std::cmp::Reverse(**loopback))).map(|(_, loopback)| *loopback)
    }

    /// Whether an address is one of the network's own.
    pub(crate) fn owner_of(&self, address: Ipv6Addr) -> Option<&str> {
        let is_own = |(loopback, node): &(&Ipv6Addr, &NetworkNode)| {
            **loopback == address
                || node.end_mt == Some(address)
                || node.replication.is_some_and(|prefix| prefix.contains(address))
        };
        self.nodes.iter().find(is_own).map(|(_, node)| node.name.as_str())
    }
}

impl NetworkNode {
    /// The node's Replication SID for a group: the group's number in the last 32 bits of its prefix.
    pub(crate) fn replication_sid(&self, group: u32) -> Option<Ipv6Addr> {
        let prefix = self.replication.filter(|prefix| prefix.prefix_len() <= 96)?;
        Some(Ipv6Addr::from_bits(prefix.address().to_bits() | u128::from(group)))
    }
}
