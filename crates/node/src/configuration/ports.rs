//! `[node]` and `[[port]]`.

use super::claims::{Claims, Leads};
use super::egress;
use super::interfaces::{PortInterface, Purpose};
use srdma_dataplane::{HmacPolicy, NextHop, NodeConfig, PortConfig, PortVlan};
use srdma_frame::PortId;
use srdma_node_spec::file::{DriverName, FastCnpType, Located, NodeFile, PortName, PortSection};
use srdma_toml_error::Problem;
use srdma_wire::fast_cnp::OptionTypes;
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

const LINK_MTU: u16 = 1500;
const QUEUE_LIMIT_OCTETS: usize = 1 << 20;

/// The node's own settings, and where its ports are.
pub(super) fn node(file: &NodeFile, claims: &mut Claims<'_>) -> Result<(NodeConfig, Vec<PortInterface>), Problem> {
    let section = &file.node;
    let loopback = section.loopback.value.0;
    claims.claim(section.loopback.at, Prefix::host(loopback), "the node's loopback", Leads::Elsewhere)?;
    let mut ports: Vec<PortConfig> = Vec::new();
    let mut interfaces: Vec<PortInterface> = Vec::new();
    let fast_path = file.daemon.fast_path.unwrap_or(false);
    for section in &file.port {
        if ports.iter().any(|port| port.name == section.name.value.0) {
            return Err(Problem::new(section.name.at, format!("there is a port {} already", section.name.value.0)));
        }
        let mut interface = PortInterface::of(section, egress::pace(file, &section.name.value), fast_path);
        let vlan = vlan(section, &ports)?;
        if let Some(vlan) = vlan {
            let parent = &mut interfaces[vlan.parent.index()];
            parent.carries_vlans = true;
            interface.parent = Some(vlan.parent);
            if section.interface.is_none() {
                interface.name = format!("{}.{}", parent.name, vlan.id);
            }
        }
        if let Some(other) = interfaces.iter().position(|other| other.name == interface.name) {
            let at = section.interface.as_ref().map_or(section.name.at, |interface| interface.at);
            let text = format!("interface {} is already that of port {}", interface.name, ports[other].name);
            return Err(Problem::new(at, text));
        }
        let parent = vlan.map(|vlan| &ports[vlan.parent.index()]);
        let port = PortConfig { vlan, ..port(section, &interface, parent, claims)? };
        ports.push(port);
        interfaces.push(interface);
    }
    let mut config = NodeConfig::new(loopback, ports);
    config.restarted = section.restarted;
    config.icrc = section.icrc;
    config.verify_icrc = section.verify_icrc;
    config.hmac = match (section.require_hmac, section.verify_hmac) {
        (true, _) => HmacPolicy::Required,
        (false, true) => HmacPolicy::IfPresent,
        (false, false) => HmacPolicy::Ignored,
    };
    config.end_mt_cover = section.end_mt_cover;
    if let Some(rate) = &section.icmp_errors_per_second {
        config.icmp_errors_per_second = rate.value.get() as u32;
    }
    if let Some(hop_limit) = &section.replication_hop_limit {
        config.replication_hop_limit = hop_limit.value.get() as u8;
    }
    config.cm_host = section.cm_host.as_ref().map(|host| host.value.0);
    config.cm_host_ipv4 = section.cm_host_ipv4.as_ref().map(|host| host.value.0);
    let (end_mt, mr) = (&section.end_mt_tlv_type, &section.mr_tlv_type);
    for (given, kind) in [(end_mt, &mut config.tlv_types.end_mt), (mr, &mut config.tlv_types.mr)] {
        *kind = given.as_ref().map_or(*kind, |given| given.value.get() as u8);
    }
    if config.tlv_types.end_mt == config.tlv_types.mr {
        let at = mr.as_ref().or(end_mt.as_ref()).map_or(section.loopback.at, |given| given.at);
        let text = format!("end_mt_tlv_type and mr_tlv_type are both {}, expected two types", config.tlv_types.mr);
        return Err(Problem::new(at, text));
    }
    if let Some(seed) = &section.marking_seed {
        config.marking_seed = seed.value.get();
    }
    if let Some(memory) = &section.repair_memory_octets {
        config.repair_memory_octets = memory.value.get();
    }
    // FC-6-1: both are left to be assigned.
    let kind =
        |given: &Option<Located<FastCnpType>>, default| given.as_ref().map_or(default, |at| at.value.get() as u8);
    let default = config.fast_cnp_types;
    let address = kind(&section.fast_cnp_address_type, default.address());
    let trace = kind(&section.fast_cnp_trace_type, default.trace());
    config.fast_cnp_types = OptionTypes::new(address, trace).unwrap_or(default);
    Ok((config, interfaces))
}

/// The VLAN of a port, at one of the ports before it.
fn vlan(section: &PortSection, ports: &[PortConfig]) -> Result<Option<PortVlan>, Problem> {
    let (name, at) = match (&section.parent, &section.vlan) {
        (None, None) => return Ok(None),
        (Some(parent), Some(_)) => (&parent.value.0, parent.at),
        (Some(parent), None) => return Err(Problem::new(parent.at, "missing key `vlan`, the VLAN identifier")),
        (None, Some(vlan)) => {
            return Err(Problem::new(vlan.at, "missing key `parent`, the port whose link carries the VLAN"));
        }
    };
    let Some(parent) = ports.iter().position(|port| port.name == *name) else {
        return Err(Problem::new(at, format!("there is no port {name} before this one, expected its parent there")));
    };
    if ports[parent].vlan.is_some() {
        return Err(Problem::new(at, format!("port {name} has a VLAN itself, expected a port without one")));
    }
    let vlan =
        PortVlan { parent: PortId(parent as u16), id: section.vlan.as_ref().map_or(0, |vlan| vlan.value.get() as u16) };
    if let Some(other) = ports.iter().find(|port| port.vlan == Some(vlan)) {
        let at = section.vlan.as_ref().map_or(at, |vlan| vlan.at);
        return Err(Problem::new(
            at,
            format!("VLAN {} at port {name} is already that of port {}", vlan.id, other.name),
        ));
    }
    let of_parent = [
        (section.driver != DriverName::Auto, "driver"),
        (section.queue_limit_octets.is_some(), "queue_limit_octets"),
        (section.fast_path.is_some(), "fast_path"),
    ];
    match of_parent.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, key)) => {
            Err(Problem::new(at, format!("`{key}` of a VLAN port is that of its parent: give it at port {name}")))
        }
        None => Ok(Some(vlan)),
    }
}

fn port(
    section: &PortSection,
    interface: &PortInterface,
    parent: Option<&PortConfig>,
    claims: &mut Claims<'_>,
) -> Result<PortConfig, Problem> {
    let name = &section.name.value.0;
    let facts = claims.purpose().facts(&interface.name);
    let mac = match (&section.mac, claims.purpose()) {
        (Some(mac), _) => mac.value,
        // Until the interface is there, no frame is for the port.
        (None, Purpose::Interfaces(_)) => {
            facts.map(|facts| facts.mac).or(parent.map(|parent| parent.mac)).unwrap_or(MacAddress([0; 6]))
        }
        (None, Purpose::Captures) if let Some(parent) = parent => parent.mac,
        (None, Purpose::Captures) => {
            return Err(Problem::new(section.name.at, "missing key `mac`, which captures do not contain"));
        }
    };
    for address in section.addresses.iter().flatten() {
        let prefix = Prefix::host(address.value.0);
        // Link-local addresses may be the same on every link.
        if !(address.value.0.is_unicast_link_local() && claims.owner(prefix).is_some()) {
            claims.claim(address.at, prefix, format!("an address of port {name}"), Leads::Elsewhere)?;
        }
    }
    let addresses = match (&section.addresses, facts) {
        (Some(addresses), _) => addresses.iter().map(|address| address.value.0).collect(),
        (None, Some(facts)) => facts.addresses.clone(),
        (None, None) => Vec::new(),
    };
    Ok(PortConfig {
        name: name.clone(),
        mac,
        addresses,
        link_mtu: section
            .link_mtu
            .as_ref()
            .map(|mtu| mtu.value.get() as u16)
            .or(facts.map(|facts| facts.link_mtu))
            .or(parent.map(|parent| parent.link_mtu))
            .unwrap_or(LINK_MTU),
        queue_limit_octets: section
            .queue_limit_octets
            .as_ref()
            .map_or(QUEUE_LIMIT_OCTETS, |limit| limit.value.get() as usize),
        trust: section.trust,
        ..PortConfig::default()
    })
}

/// The port that a key names.
pub(super) fn port_named(config: &NodeConfig, name: &Located<PortName>) -> Result<PortId, Problem> {
    find(config, name.at, &name.value.0)
}

/// The next hop that a key names.
pub(super) fn next_hop(config: &NodeConfig, at: usize, address: Ipv6Addr, port: &str) -> Result<NextHop, Problem> {
    Ok(NextHop { port: find(config, at, port)?, address })
}

fn find(config: &NodeConfig, at: usize, name: &str) -> Result<PortId, Problem> {
    let position = config.ports.iter().position(|port| port.name == name);
    position.map(|position| PortId(position as u16)).ok_or_else(|| {
        let names: Vec<&str> = config.ports.iter().map(|port| port.name.as_str()).collect();
        let known = if names.is_empty() {
            "there is no [[port]]".to_owned()
        } else {
            format!("ports are {}", names.join(", "))
        };
        Problem::new(at, format!("unknown port {name}: {known}"))
    })
}
