//! The network of a schedule: nodes, hosts and links, and which port leads where.
//!
//! ```text
//!   sources ── node 0 ── … ── edges ── receivers        strangers at border ports of any node
//!                │  ╲
//!              node  node ┄┄┄ spare links
//! ```

use crate::address;
use crate::scale;
use crate::schedule::{Event, Forger, LinkPlan, Schedule};
use srdma_dataplane::{Command, ConfigError, Node, SidBehavior};
use srdma_frame::PortId;
use srdma_group::GroupId;
use srdma_sim::fabric::{self, LinkSettings, Neighbour};
use srdma_sim::host::{HOST_PORT, Host, HostConfig};
use srdma_sim::link::{LinkModel, Trouble};
use srdma_sim::network::{ElementId, LinkId, Network, Way};
use srdma_sim::plan;
use srdma_sim::random::Probability;
use srdma_sim::station::Member;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// Largest IPv6 packet of every link, in octets: a full packet with every list that fits an SRH.
pub(crate) const LINK_MTU: u16 = 4096;

/// Octets that may wait in front of a link, at least.
const MIN_QUEUE_LIMIT_OCTETS: usize = 1 << 20;

/// What a port of a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beyond {
    Source(usize),
    Node(usize),
    Receiver(usize),
    /// Nobody that is known: a stranger.
    Outside,
}

/// What stands where.
pub(crate) struct Site {
    settings: LinkSettings,
    /// What the ports of each node lead to.
    ports: Vec<Vec<Beyond>>,
    /// The node above each node, by its first link.
    parents: Vec<Option<usize>>,
    edges: Vec<usize>,
    /// The nodes below each node, itself included.
    below: Vec<Vec<usize>>,
    /// How many groups there are.
    groups: usize,
    first_node: usize,
    first_receiver: usize,
    pub(crate) sources: Vec<ElementId>,
    pub(crate) nodes: Vec<ElementId>,
    pub(crate) receivers: Vec<ElementId>,
    /// The links above each node, with the node at their upper end.
    above: Vec<Vec<(usize, LinkId)>>,
    pub(crate) receiver_links: Vec<LinkId>,
    source_links: Vec<LinkId>,
}

impl Site {
    /// Builds the network into one that is empty.
    pub(crate) fn new(schedule: &Schedule, network: &mut Network<Member>) -> Result<Self, ConfigError> {
        let sources = schedule.groups.iter().map(|group| group.source + 1).max().unwrap_or(0);
        let first_receiver = sources + schedule.nodes.len();
        let mut site = Site {
            settings: link_settings(schedule),
            ports: ports(schedule, sources),
            parents: schedule.nodes.iter().map(|node| node.parent).collect(),
            edges: schedule.receivers.iter().map(|receiver| receiver.edge).collect(),
            below: below(schedule),
            groups: schedule.groups.len(),
            first_node: sources,
            first_receiver,
            sources: Vec::new(),
            nodes: Vec::new(),
            receivers: Vec::new(),
            above: vec![Vec::new(); schedule.nodes.len()],
            receiver_links: Vec::new(),
            source_links: Vec::new(),
        };
        for source in 0..sources {
            let mac = plan::mac(source, HOST_PORT);
            let gateway = site.mac_of(0, Beyond::Source(source));
            let host = Host::new(&HostConfig { address: address::source(source), mac, gateway });
            site.sources.push(network.add(Member::Host(Box::new(host))));
        }
        for node in 0..schedule.nodes.len() {
            site.nodes.push(network.add(Member::Node(Box::new(site.node(node, false)?))));
        }
        for (receiver, plan) in schedule.receivers.iter().enumerate() {
            let mac = plan::mac(first_receiver + receiver, HOST_PORT);
            let gateway = site.mac_of(plan.edge, Beyond::Receiver(receiver));
            let host = Host::new(&HostConfig { address: site.receiver_address(receiver), mac, gateway });
            site.receivers.push(network.add(Member::Host(Box::new(host))));
        }
        site.connect(schedule, network);
        site.set_chances(network, &schedule.link);
        Ok(site)
    }

    /// A receiver's address.
    pub(crate) fn receiver_address(&self, receiver: usize) -> Ipv6Addr {
        address::receiver(receiver, self.edges[receiver])
    }

    /// A receiver's edge.
    pub(crate) fn edge_of(&self, receiver: usize) -> usize {
        self.edges[receiver]
    }

    /// A node with its routes, SIDs and borders, but without groups.
    pub(crate) fn node(&self, node: usize, restarted: bool) -> Result<Node, ConfigError> {
        let neighbours = self.ports[node].iter().map(|beyond| self.neighbour(node, *beyond));
        let addresses = address::node(node);
        let mut value =
            fabric::node(self.first_node + node, addresses.loopback, &self.settings, restarted, neighbours)?;
        value.control(Command::SetDomain(address::domain()))?;
        for (port, beyond) in (0..).map(PortId).zip(&self.ports[node]) {
            let sources = match *beyond {
                Beyond::Source(source) => vec![Prefix::host(address::source(source))],
                Beyond::Receiver(receiver) => vec![Prefix::host(self.receiver_address(receiver))],
                Beyond::Outside => Vec::new(),
                Beyond::Node(_) => continue,
            };
            value.control(Command::SetBorder { port, sources })?;
        }
        if self.is_edge(node) {
            let behavior = SidBehavior::EndMt { require_hmac: false };
            value.control(Command::AddSid { prefix: Prefix::host(addresses.end_mt), behavior })?;
        } else {
            for group in 0..self.groups {
                let prefix = Prefix::host(address::replication(node, group));
                let behavior = SidBehavior::EndReplicate(GroupId(group as u32 + 1));
                value.control(Command::AddSid { prefix, behavior })?;
            }
        }
        Ok(value)
    }

    /// How many ports a node has.
    pub(crate) fn port_count(&self, node: usize) -> usize {
        self.ports[node].len()
    }

    /// Whether receivers are attached to a node.
    pub(crate) fn is_edge(&self, node: usize) -> bool {
        self.edges.contains(&node)
    }

    /// The link between a node and one above it.
    pub(crate) fn link_above(&self, node: usize, parent: usize) -> Option<LinkId> {
        self.above[node].iter().find(|(above, _)| *above == parent).map(|(_, link)| *link)
    }

    /// Where a forger stands: a port of a node.
    pub(crate) fn port_of_forger(&self, forger: Forger) -> Option<(usize, PortId)> {
        let (node, beyond) = match forger {
            Forger::Receiver(receiver) => (self.edges[receiver], Beyond::Receiver(receiver)),
            Forger::Stranger(node) => (node, Beyond::Outside),
        };
        self.port_toward(node, beyond).map(|port| (node, port))
    }

    /// The MAC address of a node's port.
    pub(crate) fn mac_of_port(&self, node: usize, port: PortId) -> srdma_wire::MacAddress {
        plan::mac(self.first_node + node, port)
    }

    /// The chances of all links from now on.
    pub(crate) fn set_chances(&self, network: &mut Network<Member>, link: &LinkPlan) {
        let model = LinkModel {
            rate_bits_per_s: link.rate_bits_per_s,
            delay_ns: link.delay_ns,
            loss: probability(link.loss_ppm),
            duplicate: probability(link.duplicate_ppm),
            reorder: probability(link.reorder_ppm),
        };
        for link_id in self.links() {
            for way in [Way::Down, Way::Up] {
                network.set_model(link_id, way, model);
                let trouble = network.trouble_mut(link_id, way);
                *trouble = Trouble {
                    corrupt: probability(link.corrupt_ppm),
                    spike: probability(link.spike_ppm),
                    spike_ns: link.spike_ns,
                    ..*trouble
                };
            }
        }
    }

    /// Every link.
    fn links(&self) -> impl Iterator<Item = LinkId> {
        self.upper_links().chain(self.receiver_links.iter().copied())
    }

    /// Every link but those of receivers.
    pub(crate) fn upper_links(&self) -> impl Iterator<Item = LinkId> {
        let above = self.above.iter().flatten().map(|(_, link)| *link);
        self.source_links.iter().copied().chain(above)
    }

    fn connect(&mut self, schedule: &Schedule, network: &mut Network<Member>) {
        let model = LinkModel::perfect(schedule.link.rate_bits_per_s, schedule.link.delay_ns);
        for (source, element) in self.sources.iter().enumerate() {
            if let Some(port) = self.port_toward(0, Beyond::Source(source)) {
                let lower = (self.nodes[0], port);
                self.source_links.push(network.connect(&format!("S{source}"), (*element, HOST_PORT), lower, model));
            }
        }
        for (node, plan) in schedule.nodes.iter().enumerate() {
            for parent in plan.parent.iter().chain(&plan.spares).copied() {
                let ports =
                    (self.port_toward(parent, Beyond::Node(node)), self.port_toward(node, Beyond::Node(parent)));
                if let (Some(upper), Some(lower)) = ports {
                    let (upper, lower) = ((self.nodes[parent], upper), (self.nodes[node], lower));
                    let link = network.connect(&format!("N{parent}-N{node}"), upper, lower, model);
                    self.above[node].push((parent, link));
                }
            }
        }
        for (receiver, plan) in schedule.receivers.iter().enumerate() {
            if let Some(port) = self.port_toward(plan.edge, Beyond::Receiver(receiver)) {
                let (upper, lower) = ((self.nodes[plan.edge], port), (self.receivers[receiver], HOST_PORT));
                self.receiver_links.push(network.connect(&format!("R{receiver}"), upper, lower, model));
            }
        }
        for node in 0..schedule.nodes.len() {
            if let Some(port) = self.port_toward(node, Beyond::Outside) {
                // What a node says to a stranger is gone.
                let outside = network.add(Member::Absent);
                network.connect(&format!("N{node}-X"), (self.nodes[node], port), (outside, HOST_PORT), model);
            }
        }
        for timed in &schedule.events {
            if let Event::Replay { node, up, frames } = &timed.event {
                let way = if *up { Way::Up } else { Way::Down };
                self.above[*node].iter().for_each(|(_, link)| network.record(*link, way, *frames as usize));
            }
        }
    }

    fn port_toward(&self, node: usize, beyond: Beyond) -> Option<PortId> {
        self.ports[node].iter().position(|other| *other == beyond).map(|port| PortId(port as u16))
    }

    fn mac_of(&self, node: usize, beyond: Beyond) -> srdma_wire::MacAddress {
        let port = self.port_toward(node, beyond).unwrap_or(PortId(0));
        self.mac_of_port(node, port)
    }

    fn neighbour(&self, node: usize, beyond: Beyond) -> Neighbour {
        match beyond {
            Beyond::Source(source) => {
                let mac = plan::mac(source, HOST_PORT);
                Neighbour { address: address::source(source), mac, prefixes: Vec::new() }
            }
            Beyond::Receiver(receiver) => {
                let mac = plan::mac(self.first_receiver + receiver, HOST_PORT);
                Neighbour { address: self.receiver_address(receiver), mac, prefixes: Vec::new() }
            }
            Beyond::Outside => {
                let mac = plan::mac(self.first_receiver + self.edges.len() + node, HOST_PORT);
                Neighbour { address: address::stranger(node), mac, prefixes: Vec::new() }
            }
            Beyond::Node(other) => {
                let mac = self.mac_of(other, Beyond::Node(node));
                let prefixes = if self.parents[node] == Some(other) {
                    vec![fabric::default_route()]
                } else if self.parents[other] == Some(node) {
                    let nodes = self.below[other].iter().copied();
                    nodes.clone().map(address::locator).chain(self.edges_of(nodes)).collect()
                } else {
                    vec![address::locator(other)]
                };
                Neighbour { address: address::node(other).loopback, mac, prefixes }
            }
        }
    }

    fn edges_of(&self, nodes: impl Iterator<Item = usize>) -> impl Iterator<Item = Prefix> {
        nodes.filter(|node| self.is_edge(*node)).map(address::receivers_of)
    }
}

fn link_settings(schedule: &Schedule) -> LinkSettings {
    let window_octets = scale::timing(schedule).window_packets as usize * (usize::from(LINK_MTU) + 14);
    LinkSettings {
        model: LinkModel::perfect(schedule.link.rate_bits_per_s, schedule.link.delay_ns),
        link_mtu: LINK_MTU,
        queue_limit_octets: MIN_QUEUE_LIMIT_OCTETS.max(2 * window_octets * schedule.groups.len()),
    }
}

/// What the ports of each node lead to: sources, the parent, other nodes above, children, receivers, strangers.
fn ports(schedule: &Schedule, sources: usize) -> Vec<Vec<Beyond>> {
    let mut ports: Vec<Vec<Beyond>> = vec![Vec::new(); schedule.nodes.len()];
    ports[0].extend((0..sources).map(Beyond::Source));
    for (node, plan) in schedule.nodes.iter().enumerate() {
        for above in plan.parent.iter().chain(&plan.spares).copied() {
            ports[node].push(Beyond::Node(above));
            ports[above].push(Beyond::Node(node));
        }
    }
    for (receiver, plan) in schedule.receivers.iter().enumerate() {
        ports[plan.edge].push(Beyond::Receiver(receiver));
    }
    for timed in &schedule.events {
        if let Event::Forge(forgery) = &timed.event
            && let Forger::Stranger(node) = forgery.from
            && !ports[node].contains(&Beyond::Outside)
        {
            ports[node].push(Beyond::Outside);
        }
    }
    ports
}

fn below(schedule: &Schedule) -> Vec<Vec<usize>> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); schedule.nodes.len()];
    for node in 0..schedule.nodes.len() {
        let mut above = Some(node);
        while let Some(position) = above {
            below[position].push(node);
            above = schedule.nodes[position].parent;
        }
    }
    below
}

fn probability(ppm: u32) -> Probability {
    Probability::new(f64::from(ppm) / 1e6).unwrap_or_default()
}
