//! The network as nodes have registered it: links and attached hosts.

use crate::refusal::Refusal;
use crate::reports::MAX_LOST_HOSTS;
use srdma_api::{Link, ProblemType, Registration};
use srdma_wire::Prefix;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// The nodes, by loopback.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    nodes: BTreeMap<Ipv6Addr, NetworkNode>,
    /// The nodes that have registered each prefix of hosts, the longest prefixes last.
    hosts: BTreeMap<(u8, Ipv6Addr), BTreeSet<Ipv6Addr>>,
    /// Prefixes of hosts that nodes have registered and that are not confirmed, by the name of the node.
    unconfirmed: BTreeMap<String, Vec<Prefix>>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkNode {
    pub(crate) name: String,
    pub(crate) end_mt: Option<Ipv6Addr>,
    pub(crate) replication: Option<Prefix>,
    pub(crate) hosts: Vec<Prefix>,
    pub(crate) repairs: bool,
    /// By neighbour.
    links: BTreeMap<Ipv6Addr, Link>,
    /// The links that the other end has registered too, by neighbour.
    hops: BTreeMap<Ipv6Addr, Hop>,
    /// Neighbours that it reports as unreachable.
    unreachable: BTreeSet<Ipv6Addr>,
    /// Hosts whose links to it are down, as it reports (D282).
    lost_hosts: Vec<Prefix>,
    /// Whether new trees may use it: it is alive and not drained.
    pub(crate) is_usable: bool,
}

/// A link that both ends name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) to: Ipv6Addr,
    pub(crate) mtu: u16,
    pub(crate) cost: u32,
    /// An end reports the other as unreachable: trees take other links (D111).
    pub(crate) is_down: bool,
}

/// Neighbours that a node reports otherwise than before.
#[derive(Debug, Default)]
pub(crate) struct LinkChanges {
    /// It does not reach them any more.
    pub(crate) down: Vec<Ipv6Addr>,
    /// It reaches one again.
    pub(crate) is_any_up: bool,
}

impl Network {
    /// Adds or replaces a node.
    pub(crate) fn put(&mut self, registration: &Registration, is_usable: bool) {
        let former = self.nodes.get_mut(&registration.loopback);
        let lost_hosts = former.map(|former| std::mem::take(&mut former.lost_hosts)).unwrap_or_default();
        let node = NetworkNode {
            name: registration.name.clone(),
            end_mt: registration.end_mt,
            replication: registration.replication,
            hosts: registration.hosts.clone(),
            repairs: registration.repairs,
            links: by_neighbour(&registration.links),
            hops: BTreeMap::new(),
            unreachable: BTreeSet::new(),
            lost_hosts,
            is_usable,
        };
        let own = registration.loopback;
        let mut neighbours: BTreeSet<Ipv6Addr> = node.links.keys().copied().collect();
        for prefix in &node.hosts {
            self.hosts.entry((prefix.prefix_len(), prefix.address())).or_default().insert(own);
        }
        if let Some(former) = self.nodes.insert(own, node) {
            neighbours.extend(former.links.into_keys());
            former.hosts.iter().filter(|prefix| !registration.hosts.contains(prefix)).for_each(|prefix| {
                self.remove_host(*prefix, own);
            });
        }
        for neighbour in neighbours {
            self.connect(own, neighbour);
            self.connect(neighbour, own);
        }
    }

    /// Removes a node.
    pub(crate) fn remove(&mut self, loopback: Ipv6Addr) {
        let Some(former) = self.nodes.remove(&loopback) else { return };
        former.hosts.iter().for_each(|prefix| self.remove_host(*prefix, loopback));
        former.links.into_keys().for_each(|neighbour| self.connect(neighbour, loopback));
    }

    /// Replaces the unconfirmed prefixes of a node.
    pub(crate) fn set_unconfirmed(&mut self, name: &str, hosts: &[Prefix]) {
        match hosts {
            [] => drop(self.unconfirmed.remove(name)),
            hosts => drop(self.unconfirmed.insert(name.to_owned(), hosts.to_vec())),
        }
    }

    /// The refusal of a host that no node has. `what`: the host in the group; `consequence`: of it.
    pub(crate) fn no_node_of(&self, what: &str, host: Ipv6Addr, consequence: &str) -> Refusal {
        let mut text = format!("{what} {host} is in no node's `hosts`: {consequence}");
        let mut unconfirmed = self.unconfirmed.iter();
        if let Some((name, _)) = unconfirmed.find(|(_, hosts)| hosts.iter().any(|prefix| prefix.contains(host))) {
            text.push_str(&format!("; node {name} has registered it, which is not confirmed"));
        }
        Refusal::new(ProblemType::NoPath, text)
    }

    fn remove_host(&mut self, prefix: Prefix, node: Ipv6Addr) {
        let key = (prefix.prefix_len(), prefix.address());
        if let Some(nodes) = self.hosts.get_mut(&key) {
            nodes.remove(&node);
            if nodes.is_empty() {
                self.hosts.remove(&key);
            }
        }
    }

    /// Brings the hop of a node to a neighbour up to date.
    fn connect(&mut self, from: Ipv6Addr, to: Ipv6Addr) {
        let link = |from, to| self.nodes.get(&from)?.links.get(&to);
        let hop = link(from, to).zip(link(to, from));
        let reports = |from, to| self.nodes.get(&from).is_some_and(|node| node.unreachable.contains(&to));
        let is_down = reports(from, to) || reports(to, from);
        let of = |(link, back): (&Link, &Link)| (link.mtu.min(back.mtu), link.cost.max(back.cost));
        let hop = hop.map(of).map(|(mtu, cost)| Hop { to, mtu, cost, is_down });
        if let Some(node) = self.nodes.get_mut(&from) {
            match hop {
                Some(hop) => drop(node.hops.insert(to, hop)),
                None => drop(node.hops.remove(&to)),
            }
        }
    }

    /// Sets the neighbours that a node reports as unreachable. Only its own links count.
    pub(crate) fn set_unreachable(&mut self, loopback: Ipv6Addr, reported: &[Ipv6Addr]) -> LinkChanges {
        let Some(node) = self.nodes.get_mut(&loopback) else { return LinkChanges::default() };
        let after: BTreeSet<Ipv6Addr> = reported.iter().copied().filter(|to| node.links.contains_key(to)).collect();
        let before = std::mem::replace(&mut node.unreachable, after.clone());
        for neighbour in before.symmetric_difference(&after) {
            self.connect(loopback, *neighbour);
            self.connect(*neighbour, loopback);
        }
        LinkChanges {
            down: after.difference(&before).copied().collect(),
            is_any_up: before.difference(&after).next().is_some(),
        }
    }

    /// The same beside those that it has reported; returns those that it had not.
    pub(crate) fn add_unreachable(&mut self, loopback: Ipv6Addr, reported: &[Ipv6Addr]) -> Vec<Ipv6Addr> {
        let Some(node) = self.nodes.get(&loopback) else { return Vec::new() };
        let all: Vec<Ipv6Addr> = node.unreachable.iter().chain(reported).copied().collect();
        self.set_unreachable(loopback, &all).down
    }

    /// Sets the hosts whose links to a node are down; returns whether they are others than before.
    pub(crate) fn set_lost_hosts(&mut self, loopback: Ipv6Addr, reported: &[Prefix]) -> bool {
        let Some(node) = self.nodes.get_mut(&loopback).filter(|node| node.lost_hosts != reported) else { return false };
        node.lost_hosts = reported.to_vec();
        true
    }

    /// The same beside those that it has reported, if it can name so many in a status.
    pub(crate) fn add_lost_hosts(&mut self, loopback: Ipv6Addr, reported: &[Prefix]) -> bool {
        let Some(node) = self.nodes.get(&loopback) else { return false };
        let known = &node.lost_hosts;
        let more = reported.iter().filter(|prefix| !known.contains(prefix));
        let all: Vec<Prefix> = known.iter().chain(more).copied().take(MAX_LOST_HOSTS).collect();
        self.set_lost_hosts(loopback, &all)
    }

    /// Whether the link of a host to a node is down.
    pub(crate) fn is_lost(&self, host: Ipv6Addr, node: Ipv6Addr) -> bool {
        self.node(node).is_some_and(|node| node.lost_hosts.iter().any(|prefix| prefix.contains(host)))
    }

    /// Whether links of hosts to a node are down.
    pub(crate) fn has_lost_hosts(&self, node: Ipv6Addr) -> bool {
        self.node(node).is_some_and(|node| !node.lost_hosts.is_empty())
    }

    /// Whether a node has links, and an end of each reports the other as unreachable.
    pub(crate) fn is_isolated(&self, loopback: Ipv6Addr) -> bool {
        let mut hops = self.hops(loopback).peekable();
        hops.peek().is_some() && hops.all(|hop| hop.is_down)
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

    /// Whether a node is known, and has a prefix for Replication SIDs.
    pub(crate) fn replicates(&self, node: Ipv6Addr) -> bool {
        self.node(node).is_some_and(|node| node.replication.is_some())
    }

    /// A node's name, or its loopback where it is not known.
    pub(crate) fn name(&self, loopback: Ipv6Addr) -> String {
        self.node(loopback).map_or_else(|| loopback.to_string(), |node| node.name.clone())
    }

    /// The links of a node.
    pub(crate) fn hops(&self, from: Ipv6Addr) -> impl Iterator<Item = Hop> {
        self.nodes.get(&from).into_iter().flat_map(|node| node.hops.values().copied())
    }

    /// The link between two nodes.
    pub(crate) fn hop(&self, from: Ipv6Addr, to: Ipv6Addr) -> Option<Hop> {
        self.nodes.get(&from)?.hops.get(&to).copied()
    }

    /// The node that a host is attached to: the one with the longest prefix. Of several with the same prefix the first
    /// by loopback that new trees may use and whose link to the host is not down, or that they may use, or the first.
    pub(crate) fn node_of_host(&self, host: Ipv6Addr) -> Option<Ipv6Addr> {
        let nodes = self.nodes_of_host(host)?;
        let usable = || nodes.iter().filter(|node| self.is_usable(**node));
        let attached = usable().find(|node| !self.is_lost(host, **node));
        attached.or_else(|| usable().next()).or_else(|| nodes.first()).copied()
    }

    /// Whether a host is attached to a node, perhaps beside others.
    pub(crate) fn is_attached(&self, host: Ipv6Addr, node: Ipv6Addr) -> bool {
        self.nodes_of_host(host).is_some_and(|nodes| nodes.contains(&node))
    }

    /// Whether new trees may use a node.
    pub(crate) fn is_usable(&self, node: Ipv6Addr) -> bool {
        self.node(node).is_some_and(|node| node.is_usable)
    }

    /// Whether a host is attached to other nodes, and not to this one any more.
    pub(crate) fn has_left(&self, host: Ipv6Addr, node: Ipv6Addr) -> bool {
        self.nodes_of_host(host).is_some_and(|nodes| !nodes.contains(&node))
    }

    /// The nodes that could serve a receiver as its edge.
    pub(crate) fn edges_of_host(&self, receiver: Ipv6Addr) -> impl Iterator<Item = Ipv6Addr> {
        let is_edge = |node: &Ipv6Addr| self.node(*node).is_some_and(|node| node.is_usable && node.end_mt.is_some());
        self.nodes_of_host(receiver).into_iter().flatten().copied().filter(is_edge)
    }

    /// The nodes that could be the headend of a source.
    pub(crate) fn headends_of_host(&self, source: Ipv6Addr) -> impl Iterator<Item = Ipv6Addr> {
        let is_headend = |node: &Ipv6Addr| self.is_usable(*node) && self.replicates(*node);
        self.nodes_of_host(source).into_iter().flatten().copied().filter(is_headend)
    }

    /// The nodes that a host is attached to.
    pub(crate) fn attached_to(&self, host: Ipv6Addr) -> impl Iterator<Item = Ipv6Addr> {
        self.nodes_of_host(host).into_iter().flatten().copied()
    }

    /// The nodes with the longest prefix of a host.
    fn nodes_of_host(&self, host: Ipv6Addr) -> Option<&BTreeSet<Ipv6Addr>> {
        let mut last = u8::MAX;
        // One look-up for each length that is registered, from the longest.
        while let Some(((length, _), _)) = self.hosts.range(..(last, Ipv6Addr::UNSPECIFIED)).next_back() {
            let prefix = Prefix::new(host, *length)?;
            if let Some(nodes) = self.hosts.get(&(*length, prefix.address())) {
                return Some(nodes);
            }
            last = *length;
        }
        None
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

/// A neighbour that a registration names twice.
pub(crate) fn neighbour_named_twice(links: &[Link]) -> Option<Ipv6Addr> {
    let mut seen = BTreeSet::new();
    links.iter().map(|link| link.to).find(|to| !seen.insert(*to))
}

/// Links by neighbour. A row that was stored before duplicates were refused may have some: the first counts.
fn by_neighbour(links: &[Link]) -> BTreeMap<Ipv6Addr, Link> {
    let mut known = BTreeMap::new();
    for link in links {
        known.entry(link.to).or_insert(*link);
    }
    known
}

impl NetworkNode {
    /// The node's Replication SID for a group: the group's number in the last 32 bits of its prefix.
    pub(crate) fn replication_sid(&self, group: u32) -> Option<Ipv6Addr> {
        let prefix = self.replication.filter(|prefix| prefix.prefix_len() <= 96)?;
        Some(Ipv6Addr::from_bits(prefix.address().to_bits() | u128::from(group)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1)
    }

    fn registration(number: u16, to: &[u16], hosts: &[&str]) -> Registration {
        Registration {
            protocol: srdma_api::PROTOCOL,
            name: format!("N{number}"),
            loopback: loopback(number),
            end_mt: None,
            replication: None,
            links: to.iter().map(|to| Link { to: loopback(*to), mtu: 1000 + number, cost: number.into() }).collect(),
            hosts: hosts.iter().map(|prefix| prefix.parse().unwrap()).collect(),
            groups: Vec::new(),
            repairs: false,
        }
    }

    /// A link is used from the registration of its second end on, until one of them registers without it.
    #[test]
    fn links_follow_the_registrations_of_both_ends() {
        let mut network = Network::default();
        let ends = |network: &Network| [(1, 2), (2, 1)].map(|(a, b)| network.hop(loopback(a), loopback(b)));
        network.put(&registration(1, &[2, 3], &[]), true);
        assert_eq!(ends(&network), [None, None]);
        network.put(&registration(2, &[1], &[]), true);
        let hop = |to| Some(Hop { to: loopback(to), mtu: 1001, cost: 2, is_down: false });
        assert_eq!(ends(&network), [hop(2), hop(1)]);
        assert_eq!(network.hops(loopback(1)).count(), 1, "N3 has not registered");
        network.put(&registration(2, &[], &[]), true);
        assert_eq!(ends(&network), [None, None]);
        network.put(&registration(2, &[1], &[]), true);
        network.put(&registration(1, &[3], &[]), true);
        assert_eq!(ends(&network), [None, None]);
    }

    #[test]
    fn a_host_is_at_the_node_with_the_longest_prefix() {
        let mut network = Network::default();
        let host = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        network.put(&registration(2, &[], &["2001:db8:a::/48", "::/0"]), true);
        network.put(&registration(1, &[], &["2001:db8:a::/48", "2001:db8:a:1::7/128"]), true);
        let at = |network: &Network, text: &str| network.node_of_host(host(text));
        assert_eq!(at(&network, "2001:db8:a:1::7"), Some(loopback(1)));
        assert_eq!(at(&network, "2001:db8:a::9"), Some(loopback(1)), "the first of two");
        assert_eq!(at(&network, "2001:db8:b::9"), Some(loopback(2)));
        network.put(&registration(1, &[], &["2001:db8:a:1::8/128"]), true);
        assert_eq!(at(&network, "2001:db8:a:1::7"), Some(loopback(2)));
        network.put(&registration(2, &[], &[]), true);
        assert_eq!(at(&network, "2001:db8:b::9"), None);
    }
}
