//! A topology: hosts, switches and links, checked once.

use crate::address::MAX_HOST_NUMBER;
use crate::connectivity;
use crate::error::{Place, TopologyError};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Hosts of a topology, at most.
pub const MAX_HOSTS: usize = 65_536;

/// Switches of a topology, at most.
pub const MAX_SWITCHES: usize = 16_384;

/// Links of a topology, at most.
pub const MAX_LINKS: usize = 262_144;

/// The largest number that a port may have.
pub const MAX_PORT: u16 = 1023;

/// Octets that a name may have, at most.
const MAX_NAME: usize = 32;

/// The position of a host among the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// The position of a switch among the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u32);

/// The position of a link among the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl HostId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl SwitchId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host or a switch.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeId {
    /// A host. Packets end here; no path leads through it.
    Host(HostId),
    Switch(SwitchId),
}

/// A host: a NIC, with one port or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, unique among hosts and switches.
    pub name: String,
    /// Its number, unique among the hosts. Its address is derived from it, so it never changes when others are added.
    pub number: u32,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name, unique among hosts and switches.
    pub name: String,
    /// Its tier: 1 where hosts are attached, one more on each level above.
    pub tier: u8,
    /// Its number, unique among the switches of its tier. Its address is derived from it.
    pub number: u16,
    /// The id of its uN, if it is not to be the one that [`SidPlan`](crate::SidPlan) makes of tier and number.
    pub usid: Option<u16>,
}

/// End of a link.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub node: NodeId,
    /// The port there, 0 to [`MAX_PORT`]. Numbers of a node may have gaps.
    pub port: u16,
}

/// The highest rate of links and flows: ten terabits a second, so that the sum of a million rates fits 64 bits (D298).
pub const MOST_BITS_PER_S: u64 = 10_000_000_000_000;

/// The longest propagation delay of a link: ten seconds (D298).
pub const MOST_DELAY_NS: u64 = 10_000_000_000;

/// A link. Both directions are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its ends, the lower one (a host, the lower tier) first where a generator made it.
    pub ends: [End; 2],
    /// Rate of each direction, in bits a second.
    pub rate_bits_per_s: u64,
    /// Propagation delay of each direction, in nanoseconds.
    pub delay_ns: u64,
}

/// A topology before its checks.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub hosts: Vec<Host>,
    pub switches: Vec<Switch>,
    pub links: Vec<Link>,
    /// Links that have failed: they have their SIDs, but no traffic.
    pub failed: Vec<LinkId>,
}

/// A port of a node with what it is joined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Port {
    pub port: u16,
    pub link: LinkId,
    /// The other end of the link.
    pub peer: End,
}

/// Hosts, switches and links that can work: names and numbers are unique, every port has one link, and every host
/// reaches every other through switches, without the links that have failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    plan: Plan,
    /// For each host its ports, in the order of their numbers.
    host_ports: Vec<Vec<Port>>,
    /// For each switch its ports, in the order of their numbers.
    switch_ports: Vec<Vec<Port>>,
    is_failed: Vec<bool>,
    names: BTreeMap<String, NodeId>,
}

impl Topology {
    /// Checks a plan.
    ///
    /// # Errors
    ///
    /// Fewer than two hosts; more than [`MAX_HOSTS`], [`MAX_SWITCHES`] or [`MAX_LINKS`]; an invalid or duplicate name;
    /// a duplicate number; a tier of 0; a link to a node that does not exist, from a node to itself or between hosts,
    /// of rate 0, or at a port that has one already; a node without a link; a failed link that does not exist; two
    /// hosts without a path.
    pub fn new(plan: Plan) -> Result<Self, TopologyError> {
        check_sizes(&plan)?;
        let names = check_nodes(&plan)?;
        let (host_ports, switch_ports) = check_links(&plan)?;
        let mut is_failed = vec![false; plan.links.len()];
        for link in &plan.failed {
            match is_failed.get_mut(link.index()) {
                Some(is_failed) => *is_failed = true,
                None => return Err(TopologyError::new(Place::Whole, format!("link {} is none", link.index()))),
            }
        }
        let topology = Topology { plan, host_ports, switch_ports, is_failed, names };
        check_attached(&topology)?;
        connectivity::check(&topology)?;
        Ok(topology)
    }

    /// The hosts; [`HostId`] counts them.
    pub fn hosts(&self) -> &[Host] {
        &self.plan.hosts
    }

    /// The switches; [`SwitchId`] counts them.
    pub fn switches(&self) -> &[Switch] {
        &self.plan.switches
    }

    /// The links; [`LinkId`] counts them.
    pub fn links(&self) -> &[Link] {
        &self.plan.links
    }

    /// All hosts' positions, in order.
    pub fn host_ids(&self) -> impl ExactSizeIterator<Item = HostId> + use<> {
        (0..self.plan.hosts.len() as u32).map(HostId)
    }

    /// All switches' positions, in order.
    pub fn switch_ids(&self) -> impl ExactSizeIterator<Item = SwitchId> + use<> {
        (0..self.plan.switches.len() as u32).map(SwitchId)
    }

    /// All links' positions, in order.
    pub fn link_ids(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.plan.links.len() as u32).map(LinkId)
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// The hosts whose names begin so, in their order.
    pub fn hosts_beginning(&self, beginning: &str) -> Vec<HostId> {
        let names = self.names.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        let meant = names.take_while(|(name, _)| name.starts_with(beginning)).filter_map(|(_, node)| match node {
            NodeId::Host(host) => Some(*host),
            NodeId::Switch(_) => None,
        });
        let mut hosts: Vec<HostId> = meant.collect();
        hosts.sort_unstable();
        hosts
    }

    /// The links of a switch or host of this name, or the link of this name, whichever end it names first.
    pub fn links_named(&self, name: &str) -> Option<Vec<LinkId>> {
        if let Some(node) = self.node(name) {
            return Some(self.ports(node).iter().map(|port| port.link).collect());
        }
        let is_meant = |link: &LinkId| {
            let [a, b] = self.plan.links[link.index()].ends;
            let begins = |end: End| name.starts_with(self.name(end.node));
            (begins(a) && name == self.link_name(*link)) || (begins(b) && name == self.name_between(b, a))
        };
        self.link_ids().find(is_meant).map(|link| vec![link])
    }

    /// The same topology with further failed links.
    ///
    /// # Errors
    ///
    /// Two hosts without a path left.
    pub fn without(self, failed: &[LinkId]) -> Result<Self, TopologyError> {
        let mut plan = self.plan;
        plan.failed.extend_from_slice(failed);
        Topology::new(plan)
    }

    /// Whether a link has failed.
    pub fn is_failed(&self, link: LinkId) -> bool {
        self.is_failed[link.index()]
    }

    /// A node's name.
    pub fn name(&self, node: NodeId) -> &str {
        name(&self.plan, node)
    }

    /// A link's name, `A-B` after its ends; with their ports, `A:0-B:1`, where several join the same two nodes.
    pub fn link_name(&self, link: LinkId) -> String {
        let [a, b] = self.plan.links[link.index()].ends;
        self.name_between(a, b)
    }

    fn name_between(&self, a: End, b: End) -> String {
        let parallel = self.ports(a.node).iter().filter(|port| port.peer.node == b.node).count() > 1;
        let (name_a, name_b) = (self.name(a.node), self.name(b.node));
        if parallel { format!("{name_a}:{}-{name_b}:{}", a.port, b.port) } else { format!("{name_a}-{name_b}") }
    }

    /// A node's ports whose links have not failed, in the order of their numbers.
    pub fn open_ports(&self, node: NodeId) -> impl Iterator<Item = &Port> + Clone {
        self.ports(node).iter().filter(|port| !self.is_failed(port.link))
    }

    /// A node's ports that have a link, in the order of their numbers.
    pub fn ports(&self, node: NodeId) -> &[Port] {
        match node {
            NodeId::Host(host) => &self.host_ports[host.index()],
            NodeId::Switch(switch) => &self.switch_ports[switch.index()],
        }
    }

    /// Link and peer of a port; `None` for an unused port.
    pub fn port(&self, node: NodeId, port: u16) -> Option<&Port> {
        let ports = self.ports(node);
        ports.binary_search_by_key(&port, |port| port.port).ok().map(|index| &ports[index])
    }

    /// The switches that a host is attached to, in the order of its ports.
    pub fn attached_to(&self, host: HostId) -> impl Iterator<Item = SwitchId> + '_ {
        self.host_ports[host.index()].iter().filter_map(|port| match port.peer.node {
            NodeId::Switch(switch) => Some(switch),
            NodeId::Host(_) => None,
        })
    }

    /// The highest tier of a switch.
    pub fn tiers(&self) -> u8 {
        self.plan.switches.iter().map(|switch| switch.tier).max().unwrap_or(0)
    }
}

fn name(plan: &Plan, node: NodeId) -> &str {
    match node {
        NodeId::Host(host) => &plan.hosts[host.index()].name,
        NodeId::Switch(switch) => &plan.switches[switch.index()].name,
    }
}

fn check_sizes(plan: &Plan) -> Result<(), TopologyError> {
    if plan.hosts.len() < 2 {
        let found = plan.hosts.len();
        return Err(TopologyError::new(Place::Whole, format!("{found} hosts: a topology needs at least 2")));
    }
    let sizes = [
        ("hosts", plan.hosts.len(), MAX_HOSTS),
        ("switches", plan.switches.len(), MAX_SWITCHES),
        ("links", plan.links.len(), MAX_LINKS),
    ];
    match sizes.into_iter().find(|(_, size, most)| size > most) {
        Some((what, size, most)) => {
            Err(TopologyError::new(Place::Whole, format!("{size} {what}: expected {most} at most")))
        }
        None => Ok(()),
    }
}

fn check_nodes(plan: &Plan) -> Result<BTreeMap<String, NodeId>, TopologyError> {
    let mut names = BTreeMap::new();
    let mut host_numbers: BTreeMap<u32, usize> = BTreeMap::new();
    let mut switch_numbers: BTreeMap<(u8, u16), usize> = BTreeMap::new();
    for (index, host) in plan.hosts.iter().enumerate() {
        let place = Place::Host(index);
        check_name(&mut names, &host.name, NodeId::Host(HostId(index as u32)), place)?;
        if host.number > MAX_HOST_NUMBER {
            let text = format!("host {} has number {}: expected {MAX_HOST_NUMBER} at most", host.name, host.number);
            return Err(TopologyError::new(place, text));
        }
        if let Some(other) = host_numbers.insert(host.number, index) {
            let text = format!("host {} has number {}", host.name, host.number);
            return Err(TopologyError::new(place, format!("{text}, which is {}'s", plan.hosts[other].name)));
        }
    }
    for (index, switch) in plan.switches.iter().enumerate() {
        let place = Place::Switch(index);
        check_name(&mut names, &switch.name, NodeId::Switch(SwitchId(index as u32)), place)?;
        if switch.tier == 0 {
            let text = format!("switch {} has tier 0: tiers count from 1, where hosts are attached", switch.name);
            return Err(TopologyError::new(place, text));
        }
        if let Some(other) = switch_numbers.insert((switch.tier, switch.number), index) {
            let text = format!("switch {} has number {} in tier {}", switch.name, switch.number, switch.tier);
            return Err(TopologyError::new(place, format!("{text}, which is {}'s", plan.switches[other].name)));
        }
    }
    Ok(names)
}

fn check_name(
    names: &mut BTreeMap<String, NodeId>,
    name: &str,
    node: NodeId,
    place: Place,
) -> Result<(), TopologyError> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts || name.len() > MAX_NAME || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        let expected = "expected 1 to 32 letters, digits, dots, hyphens and underscores, the first a letter";
        return Err(TopologyError::new(place, format!("{name:?} is no name of a node: {expected}")));
    }
    match names.insert(name.to_owned(), node) {
        Some(_) => Err(TopologyError::new(place, format!("two nodes are called {name}: give one another name"))),
        None => Ok(()),
    }
}

type Ports = Vec<Vec<Port>>;

fn check_links(plan: &Plan) -> Result<(Ports, Ports), TopologyError> {
    let mut ports = (vec![Vec::new(); plan.hosts.len()], vec![Vec::new(); plan.switches.len()]);
    for (index, link) in plan.links.iter().enumerate() {
        let place = Place::Link(index);
        for end in &link.ends {
            let exists = match end.node {
                NodeId::Host(host) => host.index() < plan.hosts.len(),
                NodeId::Switch(switch) => switch.index() < plan.switches.len(),
            };
            if !exists {
                return Err(TopologyError::new(place, format!("link {index} ends at {:?}, which is none", end.node)));
            }
            if end.port > MAX_PORT {
                let text = format!("port {} of {}: expected {MAX_PORT} at most", end.port, name(plan, end.node));
                return Err(TopologyError::new(place, text));
            }
        }
        check_link(plan, link, place)?;
        for (end, peer) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
            let list: &mut Vec<Port> = match end.node {
                NodeId::Host(host) => &mut ports.0[host.index()],
                NodeId::Switch(switch) => &mut ports.1[switch.index()],
            };
            match list.binary_search_by_key(&end.port, |port| port.port) {
                Err(at) => list.insert(at, Port { port: end.port, link: LinkId(index as u32), peer }),
                Ok(at) => {
                    let (node, to) = (name(plan, end.node), name(plan, list[at].peer.node));
                    let text = format!("port {} of {node} is joined to {to} already: use another", end.port);
                    return Err(TopologyError::new(place, text));
                }
            }
        }
    }
    Ok(ports)
}

fn check_link(plan: &Plan, link: &Link, place: Place) -> Result<(), TopologyError> {
    let [a, b] = link.ends.map(|end| name(plan, end.node));
    let wrong = |text: String| Err(TopologyError::new(place, text));
    if link.ends[0].node == link.ends[1].node {
        return wrong(format!("the link begins and ends at {a}"));
    }
    if let [NodeId::Host(_), NodeId::Host(_)] = link.ends.map(|end| end.node) {
        return wrong(format!("{a} and {b} are hosts: put a switch between them"));
    }
    if link.rate_bits_per_s == 0 {
        return wrong(format!("the link from {a} to {b} has rate 0: expected bits a second"));
    }
    if link.rate_bits_per_s > MOST_BITS_PER_S {
        let rate = link.rate_bits_per_s;
        return wrong(format!("the link from {a} to {b} has rate {rate}: expected {MOST_BITS_PER_S} at most"));
    }
    if link.delay_ns > MOST_DELAY_NS {
        let delay = link.delay_ns;
        return wrong(format!("the link from {a} to {b} has delay {delay}: expected {MOST_DELAY_NS} at most"));
    }
    Ok(())
}

fn check_attached(topology: &Topology) -> Result<(), TopologyError> {
    if let Some(host) = topology.host_ports.iter().position(Vec::is_empty) {
        let name = &topology.plan.hosts[host].name;
        return Err(TopologyError::new(Place::Host(host), format!("host {name} has no link: join it to a switch")));
    }
    if let Some(switch) = topology.switch_ports.iter().position(Vec::is_empty) {
        let name = &topology.plan.switches[switch].name;
        return Err(TopologyError::new(Place::Switch(switch), format!("switch {name} has no link")));
    }
    Ok(())
}
