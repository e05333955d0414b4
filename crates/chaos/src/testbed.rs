//! The network of a schedule: nodes, hosts, links and ports.
//!
//! ```text
//!   sources ── node 0 ── … ── edges ── receivers        external hosts at border ports of any node
//!                │  ╲
//!              node  node ┄┄┄ spare links
//! ```

use crate::address;
use crate::scale;
use crate::schedule::{Attacker, Event, Insider, LinkPlan, Schedule, UntrueResponse};
use srdma_dataplane::{Command, ConfigError, Node, SidBehavior, Worker};
use srdma_frame::PortId;
use srdma_group::GroupId;
use srdma_random::Probability;
use srdma_sim::addressing;
use srdma_sim::fabric::{self, LinkSettings, Neighbour};
use srdma_sim::host::{HOST_PORT, Host, HostConfig};
use srdma_sim::link::{LinkFaults, LinkModel};
use srdma_sim::network::{Direction, ElementId, LinkId, Network};
use srdma_sim::node_or_host::NodeOrHost;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// Link MTU: a full packet with the longest list that fits an SRH.
pub(crate) const LINK_MTU: u16 = 4096;

/// Number of the latest frames that an attacker on a link has seen.
const SEEN_BY_INSIDER: usize = 64;

/// Minimum queue limit of a port.
const MIN_QUEUE_LIMIT_OCTETS: usize = 1 << 20;

/// The far end of a node's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Source(usize),
    Node(usize),
    Receiver(usize),
    /// A host outside of the domain.
    External,
}

/// Elements, links and addresses of the network.
pub(crate) struct Testbed {
    settings: LinkSettings,
    /// Far ends of each node's ports.
    ports: Vec<Vec<Peer>>,
    /// Each node's parent by its first link.
    parents: Vec<Option<usize>>,
    edges: Vec<usize>,
    /// Nodes that replicate: node 0, and those that others are or can be moved below.
    replicating: Vec<bool>,
    /// Nodes with retransmission buffers.
    repairing: Vec<bool>,
    /// Nodes below each node, itself included.
    below: Vec<Vec<usize>>,
    groups: usize,
    /// Workers of each node.
    workers: u16,
    ipv4_hosts: bool,
    seed: u64,
    first_node: usize,
    first_receiver: usize,
    pub(crate) sources: Vec<ElementId>,
    pub(crate) nodes: Vec<ElementId>,
    pub(crate) receivers: Vec<ElementId>,
    /// Links above each node, with the nodes at their upper ends.
    above: Vec<Vec<(usize, LinkId)>>,
    pub(crate) receiver_links: Vec<LinkId>,
    source_links: Vec<LinkId>,
}

impl Testbed {
    /// Builds the network into `network`, which must be empty.
    pub(crate) fn new(schedule: &Schedule, network: &mut Network<NodeOrHost>) -> Result<Self, ConfigError> {
        let sources = schedule.groups.iter().map(|group| group.source + 1).max().unwrap_or(0);
        let first_receiver = sources + schedule.nodes.len();
        let mut testbed = Testbed {
            settings: link_settings(schedule),
            ports: ports(schedule, sources),
            parents: schedule.nodes.iter().map(|node| node.parent).collect(),
            edges: schedule.receivers.iter().map(|receiver| receiver.edge).collect(),
            replicating: (0..schedule.nodes.len()).map(|node| node == 0 || schedule.has_nodes_below(node)).collect(),
            repairing: schedule.nodes.iter().map(|node| node.can_repair).collect(),
            below: below(schedule),
            groups: schedule.groups.len(),
            workers: schedule.workers,
            ipv4_hosts: schedule.ipv4_hosts,
            seed: schedule.seed,
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
            let mac = addressing::mac(source, HOST_PORT);
            let gateway = testbed.mac_of(0, Peer::Source(source));
            let host = Host::new(&HostConfig { address: testbed.source_address(source), mac, gateway });
            testbed.sources.push(network.add(NodeOrHost::Host(Box::new(host))));
        }
        for node in 0..schedule.nodes.len() {
            testbed.nodes.push(network.add(testbed.node(node, false)?));
        }
        for (receiver, plan) in schedule.receivers.iter().enumerate() {
            let mac = addressing::mac(first_receiver + receiver, HOST_PORT);
            let gateway = testbed.mac_of(plan.edge, Peer::Receiver(receiver));
            let host = Host::new(&HostConfig { address: testbed.receiver_address(receiver), mac, gateway });
            testbed.receivers.push(network.add(NodeOrHost::Host(Box::new(host))));
        }
        testbed.connect(schedule, network);
        testbed.set_link_faults(network, &schedule.link);
        Ok(testbed)
    }

    pub(crate) fn receiver_address(&self, receiver: usize) -> Ipv6Addr {
        self.of_host(address::receiver(receiver, self.edges[receiver]))
    }

    pub(crate) fn source_address(&self, source: usize) -> Ipv6Addr {
        self.of_host(address::source(source))
    }

    pub(crate) fn proxy(&self, group: usize) -> Ipv6Addr {
        self.of_host(address::proxy(group))
    }

    fn of_host(&self, address: Ipv6Addr) -> Ipv6Addr {
        if self.ipv4_hosts { address::in_ipv4(address) } else { address }
    }

    pub(crate) fn edge_of(&self, receiver: usize) -> usize {
        self.edges[receiver]
    }

    /// A node with its routes, SIDs and borders, without groups.
    pub(crate) fn node(&self, node: usize, restarted: bool) -> Result<NodeOrHost, ConfigError> {
        let seed = self.seed.wrapping_add(node as u64);
        NodeOrHost::of_workers(self.workers, seed, |worker| self.worker(node, restarted, worker))
    }

    fn worker(&self, node: usize, restarted: bool, worker: Worker) -> Result<Node, ConfigError> {
        let neighbours = self.ports[node].iter().map(|peer| self.neighbour(node, *peer));
        let addresses = address::node(node);
        let mut value =
            fabric::worker(self.first_node + node, addresses.loopback, &self.settings, restarted, neighbours, worker)?;
        value.apply(Command::SetDomain(address::domain()))?;
        for (port, peer) in (0..).map(PortId).zip(&self.ports[node]) {
            let sources = match *peer {
                Peer::Source(source) => vec![Prefix::host(self.source_address(source))],
                Peer::Receiver(receiver) => vec![Prefix::host(self.receiver_address(receiver))],
                Peer::External => Vec::new(),
                Peer::Node(_) => continue,
            };
            value.apply(Command::SetBorder { port, sources })?;
        }
        if !self.replicates(node) {
            let behavior = SidBehavior::EndMt { require_hmac: false };
            value.apply(Command::AddSid { prefix: Prefix::host(addresses.end_mt), behavior })?;
        } else {
            for group in 0..self.groups {
                let prefix = Prefix::host(address::replication(node, group));
                let behavior = SidBehavior::EndReplicate(GroupId(group as u32 + 1));
                value.apply(Command::AddSid { prefix, behavior })?;
            }
        }
        Ok(value)
    }

    pub(crate) fn port_count(&self, node: usize) -> usize {
        self.ports[node].len()
    }

    /// Whether a node replicates to nodes. With receivers of its own it is a bud node (D246).
    pub(crate) fn replicates(&self, node: usize) -> bool {
        self.replicating[node]
    }

    /// A node's SID for a group.
    pub(crate) fn sid(&self, node: usize, group: usize) -> Ipv6Addr {
        if self.replicates(node) { address::replication(node, group) } else { address::node(node).end_mt }
    }

    /// Whether a node has retransmission buffers.
    pub(crate) fn can_repair(&self, node: usize) -> bool {
        self.repairing[node]
    }

    /// The link between a node and one above it.
    pub(crate) fn link_above(&self, node: usize, parent: usize) -> Option<LinkId> {
        self.above[node].iter().find(|(above, _)| *above == parent).map(|(_, link)| *link)
    }

    /// The node and port that an attacker is attached to.
    pub(crate) fn attacker_port(&self, attacker: Attacker) -> Option<(usize, PortId)> {
        let (node, peer) = match attacker {
            Attacker::Receiver(receiver) => (self.edges[receiver], Peer::Receiver(receiver)),
            Attacker::External(node) => (node, Peer::External),
        };
        self.port_toward(node, peer).map(|port| (node, port))
    }

    /// The edge and port of a receiver.
    pub(crate) fn port_of_receiver(&self, receiver: usize) -> Option<(usize, PortId)> {
        self.attacker_port(Attacker::Receiver(receiver))
    }

    /// The port of a node toward another one.
    pub(crate) fn port_to_node(&self, node: usize, other: usize) -> Option<PortId> {
        self.port_toward(node, Peer::Node(other))
    }

    pub(crate) fn mac_of_port(&self, node: usize, port: PortId) -> srdma_wire::MacAddress {
        addressing::mac(self.first_node + node, port)
    }

    /// Sets the random faults of all links.
    pub(crate) fn set_link_faults(&self, network: &mut Network<NodeOrHost>, link: &LinkPlan) {
        let model = LinkModel {
            rate_bits_per_s: link.rate_bits_per_s,
            delay_ns: link.delay_ns,
            loss: probability(link.loss_ppm),
            duplicate: probability(link.duplicate_ppm),
            reorder: probability(link.reorder_ppm),
        };
        for link_id in self.links() {
            for direction in [Direction::Down, Direction::Up] {
                network.set_model(link_id, direction, model);
                let faults = network.faults_mut(link_id, direction);
                *faults = LinkFaults {
                    corrupt: probability(link.corrupt_ppm),
                    spike: probability(link.spike_ppm),
                    spike_ns: link.spike_ns,
                    ..*faults
                };
            }
        }
    }

    fn links(&self) -> impl Iterator<Item = LinkId> {
        self.upper_links().chain(self.receiver_links.iter().copied())
    }

    /// All links but those of receivers.
    pub(crate) fn upper_links(&self) -> impl Iterator<Item = LinkId> {
        let above = self.above.iter().flatten().map(|(_, link)| *link);
        self.source_links.iter().copied().chain(above)
    }

    fn connect(&mut self, schedule: &Schedule, network: &mut Network<NodeOrHost>) {
        let model = LinkModel::perfect(schedule.link.rate_bits_per_s, schedule.link.delay_ns);
        for (source, element) in self.sources.iter().enumerate() {
            if let Some(port) = self.port_toward(0, Peer::Source(source)) {
                let lower = (self.nodes[0], port);
                self.source_links.push(network.connect(&format!("S{source}"), (*element, HOST_PORT), lower, model));
            }
        }
        for (node, plan) in schedule.nodes.iter().enumerate() {
            for parent in plan.parent.iter().chain(&plan.spares).copied() {
                let ports = (self.port_toward(parent, Peer::Node(node)), self.port_toward(node, Peer::Node(parent)));
                if let (Some(upper), Some(lower)) = ports {
                    let (upper, lower) = ((self.nodes[parent], upper), (self.nodes[node], lower));
                    let link = network.connect(&format!("N{parent}-N{node}"), upper, lower, model);
                    self.above[node].push((parent, link));
                }
            }
        }
        for (receiver, plan) in schedule.receivers.iter().enumerate() {
            if let Some(port) = self.port_toward(plan.edge, Peer::Receiver(receiver)) {
                let (upper, lower) = ((self.nodes[plan.edge], port), (self.receivers[receiver], HOST_PORT));
                self.receiver_links.push(network.connect(&format!("R{receiver}"), upper, lower, model));
            }
        }
        for node in 0..schedule.nodes.len() {
            if let Some(port) = self.port_toward(node, Peer::External) {
                // An absent element: frames to an external host are lost.
                let outside = network.add(NodeOrHost::Absent);
                network.connect(&format!("N{node}-X"), (self.nodes[node], port), (outside, HOST_PORT), model);
            }
        }
        let mut keep = |node: usize, direction, frames| {
            self.above[node].iter().for_each(|(_, link)| network.keep_for_replay(*link, direction, frames));
        };
        for timed in &schedule.events {
            if let Event::UntrueResponse(UntrueResponse { by: Insider::Link(node), .. }) = &timed.event {
                keep(*node, Direction::Up, SEEN_BY_INSIDER);
            }
        }
        for timed in &schedule.events {
            if let Event::Replay { node, up, frames } = &timed.event {
                let direction = if *up { Direction::Up } else { Direction::Down };
                keep(*node, direction, *frames as usize);
            }
        }
    }

    fn port_toward(&self, node: usize, peer: Peer) -> Option<PortId> {
        self.ports[node].iter().position(|other| *other == peer).map(|port| PortId(port as u16))
    }

    fn mac_of(&self, node: usize, peer: Peer) -> srdma_wire::MacAddress {
        let port = self.port_toward(node, peer).unwrap_or(PortId(0));
        self.mac_of_port(node, port)
    }

    fn neighbour(&self, node: usize, peer: Peer) -> Neighbour {
        match peer {
            Peer::Source(source) => {
                let mac = addressing::mac(source, HOST_PORT);
                Neighbour { address: self.source_address(source), mac, prefixes: Vec::new() }
            }
            Peer::Receiver(receiver) => {
                let mac = addressing::mac(self.first_receiver + receiver, HOST_PORT);
                Neighbour { address: self.receiver_address(receiver), mac, prefixes: Vec::new() }
            }
            Peer::External => {
                let mac = addressing::mac(self.first_receiver + self.edges.len() + node, HOST_PORT);
                Neighbour { address: address::external_host(node), mac, prefixes: Vec::new() }
            }
            Peer::Node(other) => {
                let mac = self.mac_of(other, Peer::Node(node));
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
        nodes.filter(|node| self.edges.contains(node)).map(address::receivers_of)
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

/// The far ends of each node's ports: sources, nodes above, children, receivers, external hosts.
fn ports(schedule: &Schedule, sources: usize) -> Vec<Vec<Peer>> {
    let mut ports: Vec<Vec<Peer>> = vec![Vec::new(); schedule.nodes.len()];
    ports[0].extend((0..sources).map(Peer::Source));
    for (node, plan) in schedule.nodes.iter().enumerate() {
        for above in plan.parent.iter().chain(&plan.spares).copied() {
            ports[node].push(Peer::Node(above));
            ports[above].push(Peer::Node(node));
        }
    }
    for (receiver, plan) in schedule.receivers.iter().enumerate() {
        ports[plan.edge].push(Peer::Receiver(receiver));
    }
    for timed in &schedule.events {
        if let Event::Forge(forgery) = &timed.event
            && let Attacker::External(node) = forgery.from
            && !ports[node].contains(&Peer::External)
        {
            ports[node].push(Peer::External);
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
