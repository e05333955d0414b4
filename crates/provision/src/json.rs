//! The plan itself as JSON.

use crate::FIRST_TABLE;
use serde::Serialize;
use srdma_fabric::provision::{self, Behavior};
use std::net::Ipv6Addr;

/// A device.
#[derive(Serialize)]
pub struct Device {
    address: Ipv6Addr,
    ports: Vec<Port>,
    sids: Vec<Sid>,
    routes: Vec<Route>,
}

#[derive(Serialize)]
struct Port {
    port: u16,
    interface: String,
    address: Ipv6Addr,
    peer: String,
    peer_address: Ipv6Addr,
}

#[derive(Serialize)]
struct Sid {
    sid: String,
    /// `uN`, `uA` or `End.DT6`.
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<u32>,
}

#[derive(Serialize)]
struct Route {
    prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<u32>,
    ports: Vec<u16>,
}

/// The name of a behaviour, as `node.toml` and the drafts have it.
pub fn behavior_name(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Node => "uN",
        Behavior::Link(_) => "uA",
        Behavior::Tenant(_) => "End.DT6",
    }
}

/// The table of a tenant, the same at every device.
pub fn tenant_table(tenant: u16) -> u32 {
    FIRST_TABLE + u32::from(tenant)
}

impl From<&provision::Device> for Device {
    fn from(device: &provision::Device) -> Self {
        let ports = device.ports.iter().map(|port| Port {
            port: port.port,
            interface: port.interface.clone(),
            address: port.own,
            peer: port.peer.clone(),
            peer_address: port.neighbour,
        });
        let sids = device.sids.iter().map(|sid| Sid {
            sid: sid.prefix.to_string(),
            behavior: behavior_name(sid.behavior),
            port: match sid.behavior {
                Behavior::Link(port) => Some(port),
                Behavior::Node | Behavior::Tenant(_) => None,
            },
            tenant: sid.behavior.tenant(),
            table: sid.behavior.tenant().map(tenant_table),
        });
        let routes = device.routes.iter().map(|route| Route {
            prefix: route.prefix.to_string(),
            table: route.tenant.map(tenant_table),
            ports: route.ports.clone(),
        });
        Device { address: device.address, ports: ports.collect(), sids: sids.collect(), routes: routes.collect() }
    }
}
