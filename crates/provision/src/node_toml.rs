//! A device as `node.toml`, whose keys docs/configuration.md describes. Interfaces have the addresses of the plan.

use crate::json::tenant_table;
use srdma_fabric::provision::{Behavior, Device, DevicePort, Route, Sid};
use srdma_node_spec::file::{
    BehaviorName, CsidBits, DomainSection, InsideSection, Located, NodeFile, NodeSection, PortSection, RouteSection,
    SidSection, U16, ZonedAddress, spanned,
};
use std::fmt::Write;

/// The file. All its ports are inside the domain: NICs write the paths of their packets themselves.
///
/// # Errors
///
/// None that a device with names and addresses has.
pub fn text(device: &Device, domain: DomainSection) -> Result<String, toml::ser::Error> {
    let file = NodeFile {
        port: device.ports.iter().map(|port| PortSection::new(&port.interface)).collect(),
        domain: Some(spanned(domain)),
        inside: device.ports.iter().map(|port| InsideSection::new(&port.interface)).collect(),
        route: device.routes.iter().map(|route| spanned(self::route(device, route))).collect(),
        sid: device.sids.iter().map(|sid| self::sid(device, sid)).collect(),
        ..NodeFile::new(NodeSection::new(device.address))
    };
    let mut text = format!("# {}\n\n", device.name);
    let mut ports = device.ports.iter();
    for line in file.to_toml()?.lines() {
        if line == "[[port]]"
            && let Some(port) = ports.next()
        {
            let _ = writeln!(text, "# {}, {} at the other end", port.own, port.peer);
        }
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

fn route(device: &Device, route: &Route) -> RouteSection {
    let neighbours = route.ports.iter().filter_map(|port| device.port(*port)).map(neighbour);
    RouteSection { table: route.tenant.map(table), ..RouteSection::via(route.prefix, neighbours) }
}

fn sid(device: &Device, sid: &Sid) -> SidSection {
    match sid.behavior {
        Behavior::Node => SidSection::new(sid.prefix, BehaviorName::MicroN),
        Behavior::Link(number) => SidSection {
            next_hop: device.port(number).map(|port| neighbour(port).into()),
            // Behind a uN, both are one compressed SID of 32 bits.
            csid_bits: (sid.prefix.prefix_len() > 48).then(|| CsidBits::clamped(32).into()),
            ..SidSection::new(sid.prefix, BehaviorName::MicroA)
        },
        Behavior::Tenant(tenant) => {
            SidSection { table: Some(table(tenant)), ..SidSection::new(sid.prefix, BehaviorName::EndDt6) }
        }
    }
}

fn neighbour(port: &DevicePort) -> ZonedAddress {
    ZonedAddress { address: port.neighbour, port: port.interface.clone() }
}

fn table(tenant: u16) -> Located<U16> {
    U16::clamped(tenant_table(tenant).into()).into()
}
