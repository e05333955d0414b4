//! Configuration of each device at bring-up, which never changes: its SIDs, and the routes to the SIDs of others
//! (PP-4-2, PP-5.1-1, D80–D82).
//!
//! | a switch has | for programs by | prefix |
//! |---|---|---|
//! | uN | nodes | block, own id |
//! | uA of each port | links | block, id of the port |
//! | uA of each port that has a parallel one, behind its uN | nodes | block, own id, id of the port |
//! | End.DT6 of each tenant with NICs here, behind its uN | nodes | block, own id, id of the tenant |
//! | End.DT6 of each tenant with NICs here | links | block, id of the tenant |
//! | routes to the uN of all other switches, by all shortest paths | nodes | block, id |
//! | a route to each NIC at its ports | both | the NIC's /64 |
//!
//! A NIC has routes to the uN of the switches that it is attached to. Links have link-local addresses alone: fe80::1 at
//! the first end, fe80::2 at the second, so that no plan is needed for them.

use crate::address::AddressPlan;
use crate::next_hops;
use crate::program::ProgramError;
use crate::sid::{SidPlan, port_id, tenant_id};
use crate::topology::{HostId, NodeId, Port, SwitchId, Topology};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Octets that the name of an interface may have: the kernel's limit without the final zero.
const MAX_INTERFACE_NAME: usize = 15;

/// Choices for a whole fabric.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    pub sids: &'a SidPlan,
    /// The addresses of switches and NICs.
    pub addresses: AddressPlan,
    /// There are programs by nodes (uN).
    pub by_nodes: bool,
    /// There are programs by links (uA).
    pub by_links: bool,
    /// Names of interfaces: `{port}` is the port's number, `{peer}` the name at the other end in lower case.
    pub interfaces: &'a str,
    /// The tenants, with the NICs of each. NICs of none are reached by the main table.
    pub tenants: &'a BTreeMap<u16, Vec<HostId>>,
}

/// A device with its configuration.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub node: NodeId,
    pub name: String,
    pub address: Ipv6Addr,
    /// Its ports with links, in the order of their numbers.
    pub ports: Vec<DevicePort>,
    /// Its SIDs: uN, uA by port, End.DT6 by tenant.
    pub sids: Vec<Sid>,
    /// Its routes, in the order of the topology.
    pub routes: Vec<Route>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DevicePort {
    pub port: u16,
    pub interface: String,
    /// Its link-local address.
    pub own: Ipv6Addr,
    /// The link-local address at the other end.
    pub neighbour: Ipv6Addr,
    /// The name of the device there.
    pub peer: String,
    /// The address of the NIC there, if it is one.
    pub nic: Option<Ipv6Addr>,
}

/// A SID with what it does.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sid {
    /// The SID. Bits after the prefix are its argument.
    pub prefix: Prefix,
    pub behavior: Behavior,
}

/// Behaviour of a SID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// uN: End with NEXT-CSID, PSP and USD.
    Node,
    /// uA: End.X with NEXT-CSID, PSP and USD, out of this port.
    Link(u16),
    /// End.DT6 to the table of this tenant.
    Tenant(u16),
}

/// A route by neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub prefix: Prefix,
    /// The tenant of its table; `None`: the main table.
    pub tenant: Option<u16>,
    /// The ports of all shortest paths, in ascending order.
    pub ports: Vec<u16>,
}

impl Device {
    /// The port of this number.
    pub fn port(&self, number: u16) -> Option<&DevicePort> {
        self.ports.iter().find(|port| port.port == number)
    }

    /// The tenants of its SIDs.
    pub fn tenants(&self) -> Vec<u16> {
        let mut tenants: Vec<u16> = self.sids.iter().filter_map(|sid| sid.behavior.tenant()).collect();
        tenants.dedup();
        tenants
    }
}

impl Behavior {
    /// The tenant of an End.DT6.
    pub fn tenant(self) -> Option<u16> {
        match self {
            Behavior::Tenant(tenant) => Some(tenant),
            Behavior::Node | Behavior::Link(_) => None,
        }
    }
}

/// The configuration of these devices, in their order.
///
/// # Errors
///
/// A tenant of 4,096 or more; a port whose interface has no name, a long one, or that of another port.
pub fn provision(topology: &Topology, choices: &Choices<'_>, of: &[NodeId]) -> Result<Vec<Device>, ProgramError> {
    let mut devices = Vec::new();
    for node in of.iter().copied() {
        let mut device = Device {
            node,
            name: topology.name(node).to_owned(),
            address: match node {
                NodeId::Host(host) => choices.addresses.headend(topology, host),
                NodeId::Switch(switch) => choices.addresses.loopback(topology, switch),
            },
            ports: ports(topology, choices, node)?,
            sids: Vec::new(),
            routes: Vec::new(),
        };
        match node {
            NodeId::Switch(switch) => {
                device.sids = sids(topology, choices, switch)?;
                device.routes = routes_to_nics(topology, choices, switch);
            }
            NodeId::Host(host) if choices.by_nodes => device.routes = routes_of_nic(topology, choices, host),
            NodeId::Host(_) => {}
        }
        devices.push(device);
    }
    if choices.by_nodes {
        add_routes_to_nodes(topology, choices, &mut devices);
    }
    Ok(devices)
}

fn ports(topology: &Topology, choices: &Choices<'_>, node: NodeId) -> Result<Vec<DevicePort>, ProgramError> {
    let mut ports: Vec<DevicePort> = Vec::new();
    for Port { port, link, peer } in topology.ports(node).iter().copied() {
        let is_first = topology.links()[link.index()].ends[0].node == node;
        let [own, neighbour] =
            if is_first { [1, 2] } else { [2, 1] }.map(|n| Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n));
        let name = topology.name(peer.node);
        let interface = choices.interfaces.replace("{port}", &port.to_string());
        let interface = interface.replace("{peer}", &name.to_ascii_lowercase());
        let (device, octets) = (topology.name(node), interface.len());
        if octets == 0 || octets > MAX_INTERFACE_NAME {
            let problem = format!("port {port} of {device} would be interface {interface:?} of {octets} octets");
            let expected = format!("expected 1 to {MAX_INTERFACE_NAME}: name interfaces as eth{{port}}");
            return Err(ProgramError { problem: format!("{problem}, {expected}") });
        }
        if let Some(other) = ports.iter().find(|other| other.interface == interface) {
            let problem = format!("ports {} and {port} of {device} would both be interface {interface}", other.port);
            return Err(ProgramError { problem: format!("{problem}: name interfaces as eth{{port}}") });
        }
        let nic = match peer.node {
            NodeId::Host(host) => Some(choices.addresses.headend(topology, host)),
            NodeId::Switch(_) => None,
        };
        ports.push(DevicePort { port, interface, own, neighbour, peer: name.to_owned(), nic });
    }
    Ok(ports)
}

fn sids(topology: &Topology, choices: &Choices<'_>, switch: SwitchId) -> Result<Vec<Sid>, ProgramError> {
    let plan = choices.sids;
    let own = plan.id(switch);
    let mut sids = Vec::new();
    let mut add = |ids: &[u16], behavior| {
        let bits = 32 + 16 * ids.len() as u8;
        let prefix = Prefix::new(plan.address(ids.iter().copied()), bits);
        sids.extend(prefix.map(|prefix| Sid { prefix, behavior }));
    };
    if choices.by_nodes {
        add(&[own], Behavior::Node);
    }
    let ports = topology.ports(NodeId::Switch(switch));
    for port in ports {
        let has_parallel = ports.iter().filter(|other| other.peer.node == port.peer.node).count() > 1;
        if choices.by_links {
            add(&[port_id(port.port)], Behavior::Link(port.port));
        }
        if choices.by_nodes && has_parallel {
            add(&[own, port_id(port.port)], Behavior::Link(port.port));
        }
    }
    for (tenant, nics) in choices.tenants {
        let Some(id) = tenant_id(*tenant).filter(|_| *tenant < 4096) else {
            return Err(ProgramError { problem: format!("tenant {tenant} has no id: expected 4095 at most") });
        };
        if !nics.iter().any(|nic| topology.attached_to(*nic).any(|at| at == switch)) {
            continue;
        }
        if choices.by_links {
            add(&[id], Behavior::Tenant(*tenant));
        }
        if choices.by_nodes {
            add(&[own, id], Behavior::Tenant(*tenant));
        }
    }
    Ok(sids)
}

/// A NIC is in the main table, or in those of its tenants.
fn routes_to_nics(topology: &Topology, choices: &Choices<'_>, switch: SwitchId) -> Vec<Route> {
    let mut ports: BTreeMap<HostId, Vec<u16>> = BTreeMap::new();
    for port in topology.ports(NodeId::Switch(switch)) {
        if let NodeId::Host(host) = port.peer.node {
            ports.entry(host).or_default().push(port.port);
        }
    }
    let mut routes = Vec::new();
    for (host, ports) in ports {
        let of_host = choices.tenants.iter().filter(|(_, nics)| nics.contains(&host)).map(|(tenant, _)| Some(*tenant));
        let mut tables: Vec<Option<u16>> = of_host.collect();
        if tables.is_empty() {
            tables.push(None);
        }
        let prefix = Prefix::new(choices.addresses.host_prefix(topology, host), 64);
        let route = |tenant| prefix.map(|prefix| Route { prefix, tenant, ports: ports.clone() });
        routes.extend(tables.into_iter().filter_map(route));
    }
    routes
}

fn routes_of_nic(topology: &Topology, choices: &Choices<'_>, nic: HostId) -> Vec<Route> {
    let mut ports: BTreeMap<SwitchId, Vec<u16>> = BTreeMap::new();
    for port in topology.ports(NodeId::Host(nic)) {
        if let NodeId::Switch(switch) = port.peer.node {
            ports.entry(switch).or_default().push(port.port);
        }
    }
    let route = |(switch, ports)| to_node(choices.sids, switch, ports);
    ports.into_iter().filter_map(route).collect()
}

/// At each switch among the devices a route to every other one.
fn add_routes_to_nodes(topology: &Topology, choices: &Choices<'_>, devices: &mut [Device]) {
    let neighbours = next_hops::all_neighbours(topology);
    for to in topology.switch_ids() {
        let distance = next_hops::distances(&neighbours, &[to]);
        for device in devices.iter_mut() {
            let NodeId::Switch(at) = device.node else { continue };
            let is_nearer = |(_, next): &&(u16, SwitchId)| distance[next.index()] < distance[at.index()];
            let ports: Vec<u16> = neighbours[at.index()].iter().filter(is_nearer).map(|(port, _)| *port).collect();
            if !ports.is_empty() {
                device.routes.extend(to_node(choices.sids, to, ports));
            }
        }
    }
}

fn to_node(sids: &SidPlan, switch: SwitchId, ports: Vec<u16>) -> Option<Route> {
    Prefix::new(sids.node_sid(switch), 48).map(|prefix| Route { prefix, tenant: None, ports })
}
