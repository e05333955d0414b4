//! The network of a topology: switches and servers, with routes along the shortest paths.

use super::device::Device;
use super::engine::Engine;
use super::page_memory::{PAGE_OCTETS, PageMemory, SharedPage, octets_of_page};
use super::partition_plan::PartitionPlan;
use super::programs;
use super::queue_monitor::QueueMonitor;
use super::queues;
use super::scenario::{FabricScenario, Variant};
use super::server::{REGION_OCTETS, SERVER_PORT, Scratch, Server};
use srdma_dataplane::{Command, ConfigError, NextHop, Node, NodeConfig, PortConfig, RouteAction, TableId};
use srdma_fabric::{AddressPlan, End, HostId, LinkId, NextHops, NodeId, SidPlan, SwitchId, Topology};
use srdma_frame::PortId;
use srdma_random::Stream;
use srdma_rc::{EndpointConfig, FastCnpConfig};
use srdma_sim::addressing::mac;
use srdma_sim::fabric::default_route;
use srdma_sim::host::HostConfig;
use srdma_sim::link::LinkModel;
use srdma_sim::network::{ElementId, ElementPort};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex};

/// The addressing plan.
pub(super) const ADDRESSES: AddressPlan = AddressPlan::DOCUMENTATION;

/// Common prefix of these addresses, and its length.
pub(super) const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);
pub(super) const PREFIX_LEN: u8 = 32;

/// Maximum number of chunks of the pool, of each size. Frames beyond it are dropped.
const POOL_CHUNKS: usize = 1 << 22;

/// Largest IPv6 packet of every link: a full RoCEv2 packet with room for SRH and trace.
pub(super) const LINK_MTU: u16 = 9000;

/// A network, and the position of each element in it.
pub(super) struct Fabric {
    pub(super) network: Engine<Device>,
    /// The switches, in the topology's order.
    pub(super) switches: Vec<ElementId>,
    /// The servers, in the order of the topology's hosts.
    pub(super) servers: Vec<ElementId>,
}

impl Fabric {
    /// Builds the network of a scenario, for at most `threads` threads.
    ///
    /// # Errors
    ///
    /// Those of the switches' configuration.
    pub(super) fn new(
        scenario: &FabricScenario,
        variant: &Variant,
        next_hops: &NextHops,
        sids: Option<&SidPlan>,
        seed: u64,
        threads: usize,
    ) -> Result<Self, ConfigError> {
        let topology = &scenario.topology;
        let (plan, page) = (PartitionPlan::new(topology, threads), octets_of_page());
        let mut network = Engine::new(plan.partitions(), POOL_CHUNKS, &page[..]);
        let mut switches = Vec::new();
        for switch in topology.switch_ids() {
            let node = Box::new(Builder { scenario, variant, next_hops, sids, seed }.switch(switch, false)?);
            let device = match queues::queue_monitor(scenario, variant, next_hops, switch) {
                Some(queue_monitor) => Device::Monitored(node, Box::new(queue_monitor)),
                None => Device::Switch(node),
            };
            switches.push(network.add(plan.of_switch(switch), device));
        }
        let scratch_of = |partition| Scratch::new(SharedPage::new(Arc::clone(&page), network.page(partition)));
        let scratches: Vec<Arc<Mutex<Scratch>>> = (0..plan.partitions()).map(scratch_of).collect();
        let mut servers = Vec::new();
        for host in topology.host_ids() {
            let partition = plan.of_host(host);
            let server = server(scenario, variant, host, &page, &scratches[usize::from(partition)]);
            servers.push(network.add(partition, Device::Server(Box::new(server))));
        }
        let mut fabric = Fabric { network, switches, servers };
        for link in topology.links() {
            let model = LinkModel::perfect(link.rate_bits_per_s, link.delay_ns);
            let [lower, upper] = link.ends.map(|end| fabric.place(end));
            fabric.network.connect(lower, upper, model);
        }
        for link in topology.link_ids().filter(|link| topology.is_failed(*link)) {
            fabric.set_link_down(topology, link, true);
        }
        Ok(fabric)
    }

    fn place(&self, end: End) -> ElementPort {
        place(&self.switches, &self.servers, end)
    }

    /// Sets whether a link is down, in both directions.
    pub(super) fn set_link_down(&mut self, topology: &Topology, link: LinkId, is_down: bool) {
        for end in topology.links()[link.index()].ends {
            let place = self.place(end);
            self.network.set_down(place, is_down);
        }
    }

    /// Lets `action` change a server.
    pub(super) fn with_server<R>(&mut self, host: HostId, action: impl FnOnce(&mut Server) -> R) -> Option<R> {
        self.network.with(self.servers[host.index()], |device, _, _| device.server_mut().map(action))
    }

    /// Lets `action` change a switch.
    pub(super) fn with_switch<R>(&mut self, switch: SwitchId, action: impl FnOnce(&mut Node) -> R) -> Option<R> {
        self.network.with(self.switches[switch.index()], |device, _, _| device.switch_mut().map(action))
    }

    /// A switch; `None` if it is down.
    pub(super) fn switch(&self, switch: SwitchId) -> Option<&Node> {
        self.network.element(self.switches[switch.index()]).switch()
    }

    /// The queue monitor of a switch.
    pub(super) fn queue_monitor(&self, switch: SwitchId) -> Option<&QueueMonitor> {
        self.network.element(self.switches[switch.index()]).queue_monitor()
    }

    /// All servers, in the order of the topology's hosts.
    pub(super) fn all_servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter_map(|id| self.network.element(*id).server())
    }

    /// A server.
    pub(super) fn server(&self, host: HostId) -> Option<&Server> {
        self.network.element(self.servers[host.index()]).server()
    }
}

/// The port at an end of a link.
pub(super) fn place(switches: &[ElementId], servers: &[ElementId], end: End) -> ElementPort {
    match end.node {
        NodeId::Host(host) => (servers[host.index()], SERVER_PORT),
        NodeId::Switch(switch) => (switches[switch.index()], PortId(end.port)),
    }
}

/// The position of a node among the elements.
fn position(topology: &Topology, node: NodeId) -> usize {
    match node {
        NodeId::Switch(switch) => switch.index(),
        NodeId::Host(host) => topology.switches().len() + host.index(),
    }
}

/// The MAC address of a port.
fn mac_of(topology: &Topology, end: End) -> srdma_wire::MacAddress {
    let port = match end.node {
        NodeId::Host(_) => SERVER_PORT,
        NodeId::Switch(_) => PortId(end.port),
    };
    mac(position(topology, end.node), port)
}

pub(super) fn address_of(topology: &Topology, node: NodeId) -> Ipv6Addr {
    match node {
        NodeId::Host(host) => ADDRESSES.host(topology, host),
        NodeId::Switch(switch) => ADDRESSES.loopback(topology, switch),
    }
}

/// Addresses of a host, and the rate of its link.
pub(super) fn attachment(topology: &Topology, host: HostId) -> (HostConfig, u64) {
    let node = NodeId::Host(host);
    let own = mac(position(topology, node), SERVER_PORT);
    let port = topology.ports(node).first();
    // Every host of a topology has a link.
    let gateway = port.map_or(own, |port| mac_of(topology, port.peer));
    let rate_bits_per_s = port.map_or(0, |port| topology.links()[port.link.index()].rate_bits_per_s);
    (HostConfig { address: ADDRESSES.host(topology, host), mac: own, gateway }, rate_bits_per_s)
}

/// The endpoint of a host.
pub(super) fn endpoint(scenario: &FabricScenario, variant: &Variant, host: HostId) -> EndpointConfig {
    let mut config = EndpointConfig::new(ADDRESSES.host(&scenario.topology, host));
    config.verify_icrc = scenario.hosts.verify_icrc;
    config.cnp_pace_ns = variant.cnp_pace_ns();
    if variant.signal.has_fast_cnps() {
        let everybody = Prefix::new(PREFIX, PREFIX_LEN).into_iter().collect();
        // A receiver's trace must not suppress the Fast CNP of a switch at the same time.
        config.fast_cnp = Some(FastCnpConfig { min_interval_ns: 0, ..FastCnpConfig::new(everybody) });
    }
    config
}

pub(super) fn server(
    scenario: &FabricScenario,
    variant: &Variant,
    host: HostId,
    page: &Arc<[u8; PAGE_OCTETS]>,
    scratch: &Arc<Mutex<Scratch>>,
) -> Server {
    let (HostConfig { mac, gateway, .. }, rate_bits_per_s) = attachment(&scenario.topology, host);
    let period = scenario.hosts.path_mtu().octets() as usize;
    let memory = PageMemory::new(Arc::clone(page), period, REGION_OCTETS);
    Server::new(endpoint(scenario, variant, host), mac, gateway, rate_bits_per_s, memory, Arc::clone(scratch))
}

/// Common input of all switches.
#[derive(Clone, Copy)]
pub(super) struct Builder<'a> {
    pub(super) scenario: &'a FabricScenario,
    pub(super) variant: &'a Variant,
    pub(super) next_hops: &'a NextHops,
    pub(super) sids: Option<&'a SidPlan>,
    pub(super) seed: u64,
}

impl Builder<'_> {
    /// A switch after its start or restart.
    ///
    /// # Errors
    ///
    /// Those of the switch's configuration.
    pub(super) fn switch(&self, switch: SwitchId, restarted: bool) -> Result<Node, ConfigError> {
        let topology = &self.scenario.topology;
        let node = NodeId::Switch(switch);
        let ports = topology.ports(node);
        let count = ports.last().map_or(0, |port| port.port + 1);
        let configs = (0..count).map(|port| PortConfig {
            name: topology.port(node, port).map_or_else(
                || format!("port{port}"),
                |port| format!("{}-{}", topology.name(node), topology.name(port.peer.node)),
            ),
            mac: mac_of(topology, End { node, port }),
            addresses: Vec::new(),
            link_mtu: LINK_MTU,
            queue_limit_octets: self.scenario.switches.queue_limit_octets.get() as usize,
            ..PortConfig::default()
        });
        let mut config = NodeConfig::new(ADDRESSES.loopback(topology, switch), configs.collect());
        config.restarted = restarted;
        config.marking_seed = Stream::new(self.seed, topology.name(node)).below(u64::MAX);
        let mut element = Node::new(config);
        for command in queues::commands(self.scenario, self.variant, switch) {
            element.apply(command)?;
        }
        for port in ports {
            let next_hop = NextHop { port: PortId(port.port), address: address_of(topology, port.peer.node) };
            element.apply(Command::AddNeighbour { next_hop, mac: mac_of(topology, port.peer) })?;
        }
        for (prefix, ports) in routes(topology, self.next_hops, switch) {
            element.apply(route(topology, switch, prefix, &ports))?;
        }
        let of_wan = self.scenario.wan.iter().flat_map(|wan| wan.commands(topology, switch));
        for command in of_wan {
            element.apply(command)?;
        }
        for command in self.sids.map(|plan| programs::commands(self.scenario, plan, switch)).into_iter().flatten() {
            element.apply(command)?;
        }
        Ok(element)
    }
}

/// A route of a switch via these ports.
pub(super) fn route(topology: &Topology, switch: SwitchId, prefix: Prefix, ports: &[u16]) -> Command {
    let node = NodeId::Switch(switch);
    let via = ports
        .iter()
        .filter_map(|port| topology.port(node, *port))
        .map(|port| NextHop { port: PortId(port.port), address: address_of(topology, port.peer.node) });
    Command::AddRoute { table: TableId(0), prefix, action: RouteAction::Via(via.collect()) }
}

/// The routes of a switch: the ports of most destinations as default route, the others by their prefixes.
pub(super) fn routes(topology: &Topology, next_hops: &NextHops, switch: SwitchId) -> Vec<(Prefix, Vec<u16>)> {
    let mut routes = Vec::new();
    let mut users: BTreeMap<Vec<u16>, usize> = BTreeMap::new();
    for destination in ADDRESSES.destinations(topology, next_hops) {
        let ports = next_hops.toward_class(switch, destination.class);
        let Some(prefix) = Prefix::new(destination.prefix, destination.length) else { continue };
        if !ports.is_empty() {
            *users.entry(ports.to_vec()).or_default() += 1;
            routes.push((prefix, ports.to_vec()));
        }
    }
    let most = users.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 1);
    if let Some((ports, _)) = most {
        routes.retain(|(_, other)| *other != ports);
        routes.push((default_route(), ports));
    }
    for host in topology.host_ids().filter(|host| topology.attached_to(*host).any(|at| at == switch)) {
        if let Some(prefix) = Prefix::new(ADDRESSES.host_prefix(topology, host), 64) {
            routes.push((prefix, next_hops.toward(switch, host).to_vec()));
        }
    }
    routes
}
