//! A device as configuration of FRR 10.4 or newer (doc/user/static.rst, "SRv6 Static SIDs Commands", and
//! doc/user/zebra.rst, "Segment-Routing IPv6"). VRFs, and the interface sr0 that SIDs stand at, are there beforehand.

use srdma_fabric::provision::{Behavior, Device, Route};
use srdma_fabric::{NodeId, SidPlan};
use std::fmt::Write;

/// The configuration, in the form in which FRR shows it.
pub fn configuration(device: &Device, sids: &SidPlan) -> String {
    let mut text = format!("! {}\nhostname {}\n!\n", device.name, device.name);
    let _ = write!(text, "interface lo\n ipv6 address {}/128\nexit\n!\n", device.address);
    for port in &device.ports {
        let _ = write!(text, "interface {}\n ipv6 address {}/64\nexit\n!\n", port.interface, port.own);
    }
    for tenant in device.tenants() {
        let _ = writeln!(text, "vrf Vrf{tenant}");
        for route in device.routes.iter().filter(|route| route.tenant == Some(tenant)) {
            lines(device, route).iter().for_each(|line| text += &format!(" {line} nexthop-vrf default\n"));
        }
        text += "exit-vrf\n!\n";
    }
    for route in device.routes.iter().filter(|route| route.tenant.is_none()) {
        lines(device, route).iter().for_each(|line| text += &format!("{line}\n"));
    }
    if let NodeId::Switch(switch) = device.node {
        let locator = format!("{}/48", sids.node_sid(switch));
        text += "!\nsegment-routing\n srv6\n  locators\n   locator MAIN\n";
        let _ = writeln!(text, "    prefix {locator} block-len 32 node-len 16 func-bits 16");
        text += "    behavior usid\n    format usid-f3216\n   exit\n   !\n  exit\n  !\n  static-sids\n";
        for sid in &device.sids {
            let behavior = behavior(device, sid.behavior);
            let _ = writeln!(text, "   sid {} locator MAIN behavior {behavior}", sid.prefix);
        }
        text += "  exit\n  !\n exit\n !\nexit\n";
    }
    text += "!\n";
    text
}

fn behavior(device: &Device, behavior: Behavior) -> String {
    match behavior {
        Behavior::Node => "uN".to_owned(),
        Behavior::Link(number) => match device.port(number) {
            Some(port) => format!("uA interface {} nexthop {}", port.interface, port.neighbour),
            None => "uA".to_owned(),
        },
        Behavior::Tenant(tenant) => format!("uDT6 vrf Vrf{tenant}"),
    }
}

/// A line for each next hop.
fn lines(device: &Device, route: &Route) -> Vec<String> {
    let ports = route.ports.iter().filter_map(|port| device.port(*port));
    ports.map(|port| format!("ipv6 route {} {} {}", route.prefix, port.neighbour, port.interface)).collect()
}
