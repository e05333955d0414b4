//! The network of a topology: nodes, hosts and links with plain IPv6 routes.

use crate::addressing::{self, NodeAddresses};
use crate::host::{HOST_PORT, Host, HostConfig};
use crate::link::LinkModel;
use crate::network::{ElementId, LinkId, Network};
use crate::node_or_host::NodeOrHost;
use crate::topology::{SOURCE_NAME, Topology};
use srdma_dataplane::{Command, ConfigError, NextHop, Node, NodeConfig, PortConfig, RouteAction, TableId, Worker};
use srdma_frame::PortId;
use srdma_random::Probability;
use srdma_wire::{Instant, MacAddress, Prefix};
use std::net::Ipv6Addr;

/// The port of a node toward the source.
pub const UP_PORT: PortId = PortId(0);

/// Maximum number of chunks of the pool, of each size: 2 GiB of large ones. Frames beyond it are dropped.
const POOL_CHUNKS: usize = 1 << 19;

/// Common settings of all links and ports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// Rate, delay and faults.
    pub model: LinkModel,
    /// Largest IPv6 packet, in octets.
    pub link_mtu: u16,
    /// Octets that may wait in front of a link, at a node.
    pub queue_limit_octets: usize,
}

/// Place at which the source's packets enter the tree (D1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headend {
    /// At the source's first-hop node.
    #[default]
    FirstHop,
    /// At a software switch on the source's own host.
    Host,
}

/// A network and the position of each element in it.
#[allow(missing_docs, reason = "the names say it")]
pub struct Fabric {
    /// The network.
    pub network: Network<NodeOrHost>,
    /// The source host.
    pub source: ElementId,
    /// The source host's software switch, when it has one.
    pub switch: Option<ElementId>,
    /// The nodes, as the topology orders them.
    pub nodes: Vec<ElementId>,
    /// The receivers, as the topology orders them.
    pub receivers: Vec<ElementId>,
    /// The links by name: the source's, those between nodes, those to receivers.
    pub links: Vec<LinkId>,
}

impl Fabric {
    /// Builds the network of a topology: every node reaches the hosts below it and, by its default route, all others.
    ///
    /// # Errors
    ///
    /// Those of the nodes' configuration.
    pub fn new(topology: &Topology, settings: &LinkSettings, headend: Headend, seed: u64) -> Result<Self, ConfigError> {
        let layout = Layout::new(topology, headend);
        let mut network = Network::new(seed, POOL_CHUNKS);
        let source = network.add(NodeOrHost::Host(Box::new(layout.source())));
        let switch = match layout.switch {
            Some(_) => Some(network.add(NodeOrHost::Node(Box::new(layout.switch(settings)?)))),
            None => None,
        };
        let mut nodes = Vec::new();
        for position in 0..topology.nodes().len() {
            nodes.push(network.add(NodeOrHost::Node(Box::new(layout.node(position, settings)?))));
        }
        let hosts =
            (0..topology.receivers().len()).map(|rank| network.add(NodeOrHost::Host(Box::new(layout.receiver(rank)))));
        let receivers = hosts.collect();
        let mut fabric = Fabric { network, source, switch, nodes, receivers, links: Vec::new() };
        fabric.connect(topology, settings);
        Ok(fabric)
    }

    /// One of the hosts.
    ///
    /// # Panics
    ///
    /// If the element is a node.
    pub fn host(&self, id: ElementId) -> &Host {
        match self.network.element(id) {
            NodeOrHost::Host(host) => host,
            NodeOrHost::Node(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => panic!("{id:?} is not a host"),
        }
    }

    /// One of the nodes.
    ///
    /// # Panics
    ///
    /// If the element is a host.
    pub fn node(&self, id: ElementId) -> &Node {
        match self.network.element(id) {
            NodeOrHost::Node(node) => node,
            NodeOrHost::Host(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => panic!("{id:?} is not a node"),
        }
    }

    /// Lets `action` change one of the hosts.
    ///
    /// # Panics
    ///
    /// If the element is a node.
    pub fn with_host<R>(&mut self, id: ElementId, action: impl FnOnce(&mut Host, Instant) -> R) -> R {
        self.network.with(id, |element, now, _| match element {
            NodeOrHost::Host(host) => action(host, now),
            NodeOrHost::Node(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => panic!("{id:?} is not a host"),
        })
    }

    /// Lets `action` change one of the nodes.
    ///
    /// # Panics
    ///
    /// If the element is a host.
    pub fn with_node<R>(&mut self, id: ElementId, action: impl FnOnce(&mut Node) -> R) -> R {
        self.network.with(id, |element, _, _| match element {
            NodeOrHost::Node(node) => action(node),
            NodeOrHost::Host(_) | NodeOrHost::Workers(_) | NodeOrHost::Absent => panic!("{id:?} is not a node"),
        })
    }

    fn connect(&mut self, topology: &Topology, settings: &LinkSettings) {
        let mut above_root = (self.source, HOST_PORT);
        if let Some(switch) = self.switch {
            // Within the source's host: no wire, no faults.
            let model = LinkModel { delay_ns: 0, loss: Probability::ZERO, ..settings.model };
            let inside = LinkModel { duplicate: Probability::ZERO, reorder: Probability::ZERO, ..model };
            self.network.connect(SOURCE_NAME, above_root, (switch, UP_PORT), inside);
            above_root = (switch, PortId(1));
        }
        let mut next_port = vec![1; self.nodes.len()];
        let mut port_below = |position: usize| {
            next_port[position] += 1;
            PortId(next_port[position] - 1)
        };
        let name = |position: usize| &topology.nodes()[position].name;
        for (position, node) in topology.nodes().iter().enumerate() {
            let (upper_name, upper) = match node.parent {
                None => (SOURCE_NAME, above_root),
                Some(parent) => (name(parent).as_str(), (self.nodes[parent], port_below(parent))),
            };
            let link_name = format!("{upper_name}-{}", node.name);
            let lower = (self.nodes[position], UP_PORT);
            self.links.push(self.network.connect(&link_name, upper, lower, settings.model));
        }
        for (rank, leaf) in topology.receivers().iter().enumerate() {
            let upper = (self.nodes[leaf.edge], port_below(leaf.edge));
            let link_name = format!("{}-{}", name(leaf.edge), leaf.name);
            let lower = (self.receivers[rank], HOST_PORT);
            self.links.push(self.network.connect(&link_name, upper, lower, settings.model));
        }
    }
}

/// Element at each position of the network, and its neighbours.
struct Layout<'a> {
    topology: &'a Topology,
    /// Position of the software switch.
    switch: Option<usize>,
    first_node: usize,
    first_receiver: usize,
}

/// A neighbour of a node, as its routes know it.
pub struct Neighbour {
    /// Address of the next hop.
    pub address: Ipv6Addr,
    /// MAC address of its port.
    pub mac: MacAddress,
    /// Prefixes behind it.
    pub prefixes: Vec<Prefix>,
}

const SOURCE_POSITION: usize = 0;

impl<'a> Layout<'a> {
    fn new(topology: &'a Topology, headend: Headend) -> Self {
        let switch = match headend {
            Headend::FirstHop => None,
            Headend::Host => Some(1),
        };
        let first_node = 1 + usize::from(switch.is_some());
        Layout { topology, switch, first_node, first_receiver: first_node + topology.nodes().len() }
    }

    fn source(&self) -> Host {
        let gateway = addressing::mac(self.switch.unwrap_or(self.first_node), UP_PORT);
        Host::new(&HostConfig {
            address: addressing::SOURCE,
            mac: addressing::mac(SOURCE_POSITION, HOST_PORT),
            gateway,
        })
    }

    fn receiver(&self, rank: usize) -> Host {
        let leaf = &self.topology.receivers()[rank];
        let children = self.topology.children(leaf.edge).count();
        let before = self.topology.receivers()[..rank].iter().filter(|other| other.edge == leaf.edge).count();
        let gateway = addressing::mac(self.first_node + leaf.edge, PortId((1 + children + before) as u16));
        let mac = addressing::mac(self.first_receiver + rank, HOST_PORT);
        Host::new(&HostConfig { address: addressing::receiver(leaf), mac, gateway })
    }

    fn switch(&self, settings: &LinkSettings) -> Result<Node, ConfigError> {
        let up = Neighbour {
            address: addressing::SOURCE,
            mac: addressing::mac(SOURCE_POSITION, HOST_PORT),
            prefixes: Vec::new(),
        };
        let mut down = self.child(0);
        down.prefixes.push(default_route());
        let position = self.switch.unwrap_or(SOURCE_POSITION);
        node(position, NodeAddresses::of_switch().loopback, settings, false, [up, down])
    }

    fn node(&self, position: usize, settings: &LinkSettings) -> Result<Node, ConfigError> {
        let own = &self.topology.nodes()[position];
        let up = match own.parent {
            Some(parent) => Neighbour {
                address: NodeAddresses::of(&self.topology.nodes()[parent]).loopback,
                mac: addressing::mac(self.first_node + parent, self.port_toward(parent, position)),
                prefixes: vec![default_route()],
            },
            None => self.above_root(),
        };
        let children = self.topology.children(position).map(|child| self.child(child));
        let leaves = self.topology.receivers().iter().enumerate().filter(|(_, leaf)| leaf.edge == position);
        let hosts = leaves.map(|(rank, leaf)| Neighbour {
            address: addressing::receiver(leaf),
            mac: addressing::mac(self.first_receiver + rank, HOST_PORT),
            prefixes: Vec::new(),
        });
        let neighbours = std::iter::once(up).chain(children).chain(hosts);
        node(self.first_node + position, NodeAddresses::of(own).loopback, settings, false, neighbours)
    }

    fn above_root(&self) -> Neighbour {
        match self.switch {
            Some(switch) => Neighbour {
                address: NodeAddresses::of_switch().loopback,
                mac: addressing::mac(switch, PortId(1)),
                prefixes: vec![Prefix::host(addressing::SOURCE)],
            },
            None => Neighbour {
                address: addressing::SOURCE,
                mac: addressing::mac(SOURCE_POSITION, HOST_PORT),
                prefixes: Vec::new(),
            },
        }
    }

    /// A child node with what lies below it: its SIDs, and all receivers.
    fn child(&self, child: usize) -> Neighbour {
        let addresses = NodeAddresses::of(&self.topology.nodes()[child]);
        let below =
            self.topology.receivers().iter().filter(|leaf| self.topology.path_up(leaf.edge).any(|at| at == child));
        let mut prefixes: Vec<Prefix> = below.map(|leaf| Prefix::host(addressing::receiver(leaf))).collect();
        prefixes.extend(Prefix::new(addresses.locator, 64));
        Neighbour { address: addresses.loopback, mac: addressing::mac(self.first_node + child, UP_PORT), prefixes }
    }

    fn port_toward(&self, parent: usize, child: usize) -> PortId {
        let before = self.topology.children(parent).take_while(|other| *other != child).count();
        PortId(1 + before as u16)
    }
}

/// `::/0`.
pub fn default_route() -> Prefix {
    Prefix::new(Ipv6Addr::UNSPECIFIED, 0).expect("a prefix may have length 0")
}

/// A node with a port for each neighbour, in order.
///
/// # Errors
///
/// Those of the node's configuration.
pub fn node(
    position: usize,
    loopback: Ipv6Addr,
    settings: &LinkSettings,
    restarted: bool,
    neighbours: impl IntoIterator<Item = Neighbour>,
) -> Result<Node, ConfigError> {
    worker(position, loopback, settings, restarted, neighbours, Worker::ALONE)
}

/// A worker of such a node.
///
/// # Errors
///
/// Those of the node's configuration.
pub fn worker(
    position: usize,
    loopback: Ipv6Addr,
    settings: &LinkSettings,
    restarted: bool,
    neighbours: impl IntoIterator<Item = Neighbour>,
    worker: Worker,
) -> Result<Node, ConfigError> {
    let neighbours: Vec<Neighbour> = neighbours.into_iter().collect();
    let ports = (0..neighbours.len() as u16).map(|port| PortConfig {
        name: format!("port{port}"),
        mac: addressing::mac(position, PortId(port)),
        addresses: Vec::new(),
        link_mtu: settings.link_mtu,
        queue_limit_octets: settings.queue_limit_octets,
        ..PortConfig::default()
    });
    let mut node = Node::new(NodeConfig { restarted, worker, ..NodeConfig::new(loopback, ports.collect()) });
    for (port, neighbour) in (0..).zip(neighbours) {
        let next_hop = NextHop { port: PortId(port), address: neighbour.address };
        node.apply(Command::AddNeighbour { next_hop, mac: neighbour.mac })?;
        for prefix in neighbour.prefixes {
            let action = RouteAction::Via(vec![next_hop]);
            node.apply(Command::AddRoute { table: TableId(0), prefix, action })?;
        }
    }
    Ok(node)
}
