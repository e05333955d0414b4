//! The data network of a schedule: nodes, hosts and links.
//!
//! ```text
//!   sources ── headend ── transit nodes ══ edges ══ receivers
//! ```
//!
//! A node has routes to its neighbours only: the path of a group's packets is that of its tree.

use crate::schedule::Schedule;
use srdma_agent::{AllowedSids, GroupTable};
use srdma_api::{Link, PROTOCOL, Registration};
use srdma_chaos::address;
use srdma_dataplane::{Command, ConfigError, Node, RouteAction, SharedHosts, SidBehavior, TableId, Worker};
use srdma_frame::PortId;
use srdma_group::Safeguard;
use srdma_random::Probability;
use srdma_sim::addressing;
use srdma_sim::fabric::{self, LinkSettings, Neighbour};
use srdma_sim::host::{HOST_PORT, Host, HostConfig, SECOND_HOST_PORT};
use srdma_sim::link::LinkModel;
use srdma_sim::network::{Direction, ElementId, LinkId, Network};
use srdma_sim::node_or_host::NodeOrHost;
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

const RATE_BITS_PER_S: u64 = 10_000_000_000;
const DELAY_NS: u64 = 20_000;

/// MTU of links: a full packet with the lists of all receivers fits, or it does not.
const LINK_MTU: u16 = 4096;
const SMALL_LINK_MTU: u16 = 1280;

/// Queue limit of a port, octets.
const QUEUE_LIMIT_OCTETS: usize = 1 << 20;

/// An element of the network. Sources come first, then nodes, then receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Source(usize),
    Node(usize),
    Receiver(usize),
}

/// Elements and links of the network.
pub(crate) struct DataNetwork {
    /// Far ends of each node's ports.
    ports: Vec<Vec<Peer>>,
    /// Nodes that have a receiver or source in common with each node, which have a link to it and pass on what that
    /// sends (D281, D290).
    peers: Vec<Vec<usize>>,
    links: Vec<(usize, usize)>,
    link_ids: Vec<LinkId>,
    small: Vec<bool>,
    /// The nodes that can repair.
    repairers: Vec<usize>,
    receiver_nodes: Vec<usize>,
    /// The other node of each receiver.
    second_nodes: Vec<Option<usize>>,
    /// The other node of all sources.
    second_headend: Option<usize>,
    /// Disabled in this run.
    pub(crate) without: Option<Safeguard>,
    first_edge: usize,
    /// All nodes may have receivers and carry trees (D246).
    has_bud_nodes: bool,
    /// Of each node.
    workers: u16,
    seed: u64,
    pub(crate) sources: Vec<ElementId>,
    pub(crate) nodes: Vec<ElementId>,
    pub(crate) receivers: Vec<ElementId>,
    /// One or two of each source.
    pub(crate) source_links: Vec<Vec<LinkId>>,
    /// One or two of each receiver.
    pub(crate) receiver_links: Vec<Vec<LinkId>>,
}

impl DataNetwork {
    /// Builds the network into `network`, which must be empty.
    pub(crate) fn new(
        schedule: &Schedule,
        without: Option<Safeguard>,
        network: &mut Network<NodeOrHost>,
    ) -> Result<Self, ConfigError> {
        let links = schedule.links();
        let mut ports: Vec<Vec<Peer>> = vec![Vec::new(); schedule.nodes()];
        for node in [Some(0), schedule.second_headend].into_iter().flatten() {
            ports[node].extend((0..schedule.groups.len()).map(Peer::Source));
        }
        for (upper, lower) in &links {
            ports[*upper].push(Peer::Node(*lower));
            ports[*lower].push(Peer::Node(*upper));
        }
        for receiver in 0..schedule.receivers.len() {
            let nodes = [Some(schedule.node_of_receiver(receiver)), schedule.second_node_of_receiver(receiver)];
            nodes.into_iter().flatten().for_each(|node| ports[node].push(Peer::Receiver(receiver)));
        }
        let mut peers: Vec<Vec<usize>> = vec![Vec::new(); schedule.nodes()];
        for (one, other) in schedule.peer_links() {
            peers[one].push(other);
            peers[other].push(one);
        }
        let is_small = |node: usize| {
            node.checked_sub(1 + schedule.transits).is_some_and(|edge| schedule.edges[edge].has_small_mtu)
        };
        let mut data = DataNetwork {
            ports,
            peers,
            links,
            link_ids: Vec::new(),
            small: (0..schedule.nodes()).map(is_small).collect(),
            repairers: schedule.repairers.clone(),
            receiver_nodes: (0..schedule.receivers.len()).map(|receiver| schedule.node_of_receiver(receiver)).collect(),
            second_nodes: (0..schedule.receivers.len())
                .map(|receiver| schedule.second_node_of_receiver(receiver))
                .collect(),
            second_headend: schedule.second_headend,
            first_edge: 1 + schedule.transits,
            has_bud_nodes: schedule.bud_nodes.is_some(),
            workers: schedule.workers,
            seed: schedule.seed,
            without,
            sources: Vec::new(),
            nodes: Vec::new(),
            receivers: Vec::new(),
            source_links: Vec::new(),
            receiver_links: vec![Vec::new(); schedule.receivers.len()],
        };
        for source in 0..schedule.groups.len() {
            let gateway = data.mac_toward(0, Peer::Source(source));
            let mac = addressing::mac(data.position(Peer::Source(source)), HOST_PORT);
            let mut host = Host::new(&HostConfig { address: address::source(source), mac, gateway });
            if let Some(second) = schedule.second_headend {
                host.attach_second(data.mac_toward(second, Peer::Source(source)));
                host.spread(schedule.seed.wrapping_add(1_000 + source as u64));
            }
            data.sources.push(network.add(NodeOrHost::Host(Box::new(host))));
        }
        for node in 0..schedule.nodes() {
            data.nodes.push(network.add(data.node(node, false)?));
        }
        for receiver in 0..schedule.receivers.len() {
            let gateway = data.mac_toward(data.receiver_nodes[receiver], Peer::Receiver(receiver));
            let mac = addressing::mac(data.position(Peer::Receiver(receiver)), HOST_PORT);
            let mut host = Host::new(&HostConfig { address: data.receiver_address(receiver), mac, gateway });
            if let Some(second) = data.second_nodes[receiver] {
                host.attach_second(data.mac_toward(second, Peer::Receiver(receiver)));
                if schedule.has_peers {
                    host.spread(schedule.seed.wrapping_add(receiver as u64));
                }
            }
            data.receivers.push(network.add(NodeOrHost::Host(Box::new(host))));
        }
        data.connect(network);
        Ok(data)
    }

    fn connect(&mut self, network: &mut Network<NodeOrHost>) {
        let model = LinkModel::perfect(RATE_BITS_PER_S, DELAY_NS);
        for (source, element) in self.sources.iter().enumerate() {
            let links = self.headends().zip([HOST_PORT, SECOND_HOST_PORT]).map(|(node, port)| {
                let lower = (self.nodes[node], self.port_toward(node, Peer::Source(source)));
                network.connect(&format!("S{source}"), (*element, port), lower, model)
            });
            self.source_links.push(links.collect());
        }
        for (upper, lower) in &self.links {
            let ends = (
                (self.nodes[*upper], self.port_toward(*upper, Peer::Node(*lower))),
                (self.nodes[*lower], self.port_toward(*lower, Peer::Node(*upper))),
            );
            self.link_ids.push(network.connect(&format!("N{upper}-N{lower}"), ends.0, ends.1, model));
        }
        for (one, other) in self.peer_links() {
            let ends = [(one, other), (other, one)].map(|(node, to)| (self.nodes[node], self.port_to_peer(node, to)));
            network.connect(&format!("N{one}=N{other}"), ends[0], ends[1], model);
        }
        for receiver in 0..self.receivers.len() {
            for (node, port) in self.nodes_of_receiver(receiver).zip([HOST_PORT, SECOND_HOST_PORT]).collect::<Vec<_>>()
            {
                let upper = (self.nodes[node], self.port_toward(node, Peer::Receiver(receiver)));
                let link = network.connect(&format!("R{receiver}"), upper, (self.receivers[receiver], port), model);
                self.receiver_links[receiver].push(link);
            }
        }
    }

    /// A node without groups.
    pub(crate) fn node(&self, node: usize, restarted: bool) -> Result<NodeOrHost, ConfigError> {
        let seed = self.seed.wrapping_add(node as u64);
        NodeOrHost::of_workers(self.workers, seed, |worker| self.worker(node, restarted, worker))
    }

    fn worker(&self, node: usize, restarted: bool, worker: Worker) -> Result<Node, ConfigError> {
        let settings = LinkSettings {
            model: LinkModel::perfect(RATE_BITS_PER_S, DELAY_NS),
            link_mtu: LINK_MTU,
            queue_limit_octets: QUEUE_LIMIT_OCTETS,
        };
        let addresses = address::node(node);
        let neighbours = self.ports[node].iter().map(|peer| self.neighbour(node, *peer));
        let peers = self.peers[node].iter().map(|other| Neighbour {
            address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, *other as u16 + 1),
            mac: addressing::mac(self.position(Peer::Node(*other)), self.port_to_peer(*other, node)),
            prefixes: vec![Prefix::host(address::decapsulation(*other))],
        });
        let neighbours = neighbours.chain(peers);
        let position = self.position(Peer::Node(node));
        let value = fabric::worker(position, addresses.loopback, &settings, restarted, neighbours, worker)?;
        let mut value = value.without(self.without);
        value.apply(Command::SetDomain(address::domain()))?;
        for (port, peer) in (0..).map(PortId).zip(&self.ports[node]) {
            let sources = match *peer {
                Peer::Source(source) => vec![Prefix::host(address::source(source))],
                Peer::Receiver(receiver) => vec![Prefix::host(self.receiver_address(receiver))],
                Peer::Node(other) => {
                    let mac = addressing::mac(position, port);
                    let link_mtu = self.mtu(node, other);
                    value.apply(Command::SetPort { port, mac, addresses: Vec::new(), link_mtu })?;
                    continue;
                }
            };
            value.apply(Command::SetBorder { port, sources })?;
        }
        if !self.peers[node].is_empty() {
            value.apply(Command::SetSharedHosts(self.shared_hosts(node)))?;
            let (table, prefix) = (TableId(0), address::proxies());
            value.apply(Command::AddRoute { table, prefix, action: RouteAction::ToPeer })?;
            let prefix = Prefix::host(address::decapsulation(node));
            value.apply(Command::AddSid { prefix, behavior: SidBehavior::EndDt6(table) })?;
        }
        if self.is_edge(node) {
            let behavior = SidBehavior::EndMt { require_hmac: false };
            value.apply(Command::AddSid { prefix: Prefix::host(addresses.end_mt), behavior })?;
        }
        Ok(value)
    }

    /// The one or two nodes that all sources are attached to.
    pub(crate) fn headends(&self) -> impl Iterator<Item = usize> + use<> {
        [Some(0), self.second_headend].into_iter().flatten()
    }

    /// The receivers and sources that a node has in common with its peers.
    fn shared_hosts(&self, node: usize) -> Vec<SharedHosts> {
        let here = self.ports[node].iter().filter_map(|peer| match *peer {
            Peer::Receiver(receiver) => {
                let other = self.nodes_of_receiver(receiver).find(|other| *other != node)?;
                Some((self.receiver_address(receiver), other))
            }
            Peer::Source(source) => {
                let other = self.headends().find(|other| *other != node)?;
                Some((address::source(source), other))
            }
            Peer::Node(_) => None,
        });
        // Nodes with a receiver in common need not pass on what it sends.
        here.filter(|(_, other)| self.peers[node].contains(other))
            .map(|(host, other)| SharedHosts {
                hosts: Prefix::host(host),
                proxies: address::proxies(),
                peer: address::node(other).loopback,
                sid: address::decapsulation(other),
            })
            .collect()
    }

    /// The links between peers, each once.
    fn peer_links(&self) -> Vec<(usize, usize)> {
        let all = self.peers.iter().enumerate().flat_map(|(one, others)| others.iter().map(move |other| (one, *other)));
        all.filter(|(one, other)| one < other).collect()
    }

    /// The port of a node to one of its peers.
    fn port_to_peer(&self, node: usize, other: usize) -> PortId {
        let position = self.peers[node].iter().position(|peer| *peer == other);
        PortId((self.ports[node].len() + position.unwrap_or_default()) as u16)
    }

    /// The links of receivers at a node: each receiver, and its port.
    pub(crate) fn receivers_at(&self, node: usize) -> Vec<(usize, PortId)> {
        let ports_of = |receiver: usize| self.nodes_of_receiver(receiver).zip([HOST_PORT, SECOND_HOST_PORT]);
        let all = (0..self.receivers.len()).flat_map(|receiver| ports_of(receiver).map(move |to| (receiver, to)));
        all.filter(|(_, (at, _))| *at == node).map(|(receiver, (_, port))| (receiver, port)).collect()
    }

    /// The registration of a node, without its groups.
    pub(crate) fn registration(&self, node: usize) -> Registration {
        let addresses = address::node(node);
        let sources = if self.headends().any(|headend| headend == node) { self.sources.len() } else { 0 };
        let sources = (0..sources).map(|source| Prefix::host(address::source(source)));
        let receivers = self.is_edge(node).then(|| address::receivers_of(node));
        let shared = self.ports[node].iter().filter_map(|peer| match *peer {
            Peer::Receiver(one) if self.second_nodes[one].is_some() => Some(Prefix::host(self.receiver_address(one))),
            Peer::Receiver(_) | Peer::Source(_) | Peer::Node(_) => None,
        });
        let AllowedSids { end_mt, replication } = self.allowed_sids(node);
        let links = self.ports[node].iter().filter_map(|peer| match *peer {
            Peer::Node(other) => Some(Link { to: address::node(other).loopback, mtu: self.mtu(node, other), cost: 1 }),
            Peer::Source(_) | Peer::Receiver(_) => None,
        });
        Registration {
            protocol: PROTOCOL,
            name: name_of(node),
            loopback: addresses.loopback,
            end_mt,
            replication,
            links: links.collect(),
            hosts: sources.chain(receivers).chain(shared).collect(),
            groups: Vec::new(),
            repairs: self.repairers.contains(&node),
        }
    }

    /// The table of an agent without groups.
    pub(crate) fn group_table(&self, node: usize) -> GroupTable {
        GroupTable::new(self.allowed_sids(node)).without(self.without)
    }

    fn allowed_sids(&self, node: usize) -> AllowedSids {
        let replicates = node < self.first_edge || self.has_bud_nodes || self.second_headend == Some(node);
        AllowedSids {
            end_mt: self.is_edge(node).then(|| address::node(node).end_mt),
            replication: replicates.then(|| replication_prefix(node)),
        }
    }

    /// Whether receivers may be attached to a node.
    fn is_edge(&self, node: usize) -> bool {
        node >= self.first_edge || self.has_bud_nodes
    }

    /// What an element is.
    pub(crate) fn peer(&self, element: ElementId) -> Peer {
        let (position, sources, nodes) = (element.position(), self.sources.len(), self.nodes.len());
        match position.checked_sub(sources) {
            None => Peer::Source(position),
            Some(node) if node < nodes => Peer::Node(node),
            Some(other) => Peer::Receiver(other - nodes),
        }
    }

    pub(crate) fn receiver_address(&self, receiver: usize) -> Ipv6Addr {
        match self.second_nodes[receiver] {
            Some(_) => address::shared_receiver(receiver),
            None => address::receiver(receiver, self.receiver_nodes[receiver]),
        }
    }

    /// The one or two nodes that a receiver is attached to.
    pub(crate) fn nodes_of_receiver(&self, receiver: usize) -> impl Iterator<Item = usize> + use<> {
        [Some(self.receiver_nodes[receiver]), self.second_nodes[receiver]].into_iter().flatten()
    }

    pub(crate) fn node_of_receiver(&self, receiver: usize) -> usize {
        self.receiver_nodes[receiver]
    }

    pub(crate) fn receiver_of(&self, address: Ipv6Addr) -> Option<usize> {
        (0..self.receivers.len()).find(|receiver| self.receiver_address(*receiver) == address)
    }

    pub(crate) fn link(&self, upper: usize, lower: usize) -> Option<LinkId> {
        let position = self.links.iter().position(|link| *link == (upper, lower))?;
        Some(self.link_ids[position])
    }

    pub(crate) fn port_count(&self, node: usize) -> usize {
        self.ports[node].len() + self.peers[node].len()
    }

    /// Sets the loss of all links between nodes.
    pub(crate) fn set_loss(&self, network: &mut Network<NodeOrHost>, ppm: u32) {
        let loss = Probability::new(f64::from(ppm) / 1e6).unwrap_or_default();
        let model = LinkModel { loss, ..LinkModel::perfect(RATE_BITS_PER_S, DELAY_NS) };
        for link in &self.link_ids {
            network.set_model(*link, Direction::Down, model);
            network.set_model(*link, Direction::Up, model);
        }
    }

    fn mtu(&self, node: usize, other: usize) -> u16 {
        if self.small[node] || self.small[other] { SMALL_LINK_MTU } else { LINK_MTU }
    }

    fn position(&self, peer: Peer) -> usize {
        let sources = self.ports[0].iter().filter(|peer| matches!(peer, Peer::Source(_))).count();
        match peer {
            Peer::Source(source) => source,
            Peer::Node(node) => sources + node,
            Peer::Receiver(receiver) => sources + self.ports.len() + receiver,
        }
    }

    fn port_toward(&self, node: usize, peer: Peer) -> PortId {
        let position = self.ports[node].iter().position(|other| *other == peer);
        PortId(position.unwrap_or_default() as u16)
    }

    fn mac_toward(&self, node: usize, peer: Peer) -> MacAddress {
        addressing::mac(self.position(Peer::Node(node)), self.port_toward(node, peer))
    }

    fn neighbour(&self, node: usize, peer: Peer) -> Neighbour {
        match peer {
            Peer::Source(source) => Neighbour {
                address: address::source(source),
                mac: addressing::mac(self.position(peer), HOST_PORT),
                prefixes: Vec::new(),
            },
            Peer::Receiver(receiver) => Neighbour {
                address: self.receiver_address(receiver),
                mac: addressing::mac(self.position(peer), HOST_PORT),
                prefixes: Vec::new(),
            },
            Peer::Node(other) => Neighbour {
                address: address::node(other).loopback,
                mac: self.mac_toward(other, Peer::Node(node)),
                prefixes: vec![address::locator(other)],
            },
        }
    }
}

/// The name by which a node registers.
pub(crate) fn name_of(node: usize) -> String {
    format!("n{node}")
}

/// The node of a name.
pub(crate) fn node_of(name: &str) -> Option<usize> {
    name.strip_prefix('n').and_then(|number| number.parse().ok())
}

fn replication_prefix(node: usize) -> Prefix {
    let first = address::replication(node, 0);
    Prefix::new(first, 96).expect("96 bits are a prefix")
}
