//! A device as commands of iproute2, for Linux 6.17 or newer: since then End.X takes the interface of a link-local next
//! hop (`oif`). Without uA, 6.6 is enough, the first with NEXT-CSID at both behaviours.
//!
//! Linux has no USD. A program that is at its end has nothing behind the SID, so that another SID of 128 bits beside
//! the uN takes it and decapsulates by End.DT6, and beside the uA of a NIC by End.DX6. A uA toward a switch takes no
//! program to its end. End.X has no PSP either: where a uA is behind an SRH, the SRH stays until the packet is
//! decapsulated.

use crate::json::tenant_table;
use srdma_fabric::provision::{Behavior, Device, DevicePort, Route, Sid};
use std::fmt::Write;

/// Device of the SIDs' routes, so that they stay when links are removed.
const SID_DEVICE: &str = "sr0";

/// The commands, as a script.
pub fn script(device: &Device, sid_device: Option<&str>) -> String {
    let mut text = format!("#!/bin/sh -e\n# {}\n", device.name);
    for command in commands(device, sid_device) {
        let _ = writeln!(text, "{command}");
    }
    text
}

/// The commands, each of which may be repeated.
fn commands(device: &Device, sid_device: Option<&str>) -> Vec<String> {
    let mut commands = vec!["sysctl -qw net.ipv6.conf.all.forwarding=1".to_owned()];
    if sid_device.is_none() && !device.sids.is_empty() {
        commands.push(format!("ip link show {SID_DEVICE} >/dev/null 2>&1 || ip link add {SID_DEVICE} type dummy"));
        commands.push(format!("ip link set {SID_DEVICE} up"));
    }
    commands.push(format!("ip -6 address replace {}/128 dev lo", device.address));
    let addresses = device.ports.iter();
    commands
        .extend(addresses.map(|port| format!("ip -6 address replace {}/64 dev {} nodad", port.own, port.interface)));
    commands.extend(device.routes.iter().map(|route| format!("ip -6 route replace {}", words(device, route))));
    let at = sid_device.unwrap_or(SID_DEVICE);
    for sid in &device.sids {
        for (prefix, action) in actions(device, sid) {
            commands.push(format!("ip -6 route replace {prefix} encap seg6local {action} dev {at}"));
        }
    }
    commands
}

/// Each prefix of a SID with its action in the words of iproute2.
pub fn actions(device: &Device, sid: &Sid) -> Vec<(String, String)> {
    let (prefix, exact) = (sid.prefix.to_string(), format!("{}/128", sid.prefix.address()));
    match sid.behavior {
        Behavior::Node => vec![
            (prefix, "action End flavors next-csid,psp".to_owned()),
            (exact, "action End.DT6 table main".to_owned()),
        ],
        Behavior::Link(number) => {
            let Some(port) = device.port(number) else { return Vec::new() };
            let (at, interface) = (port.neighbour, &port.interface);
            // Behind a uN both are one SID of 32 bits to the kernel, which shifts them out together.
            let both = if sid.prefix.prefix_len() > 48 { " lblen 32 nflen 32" } else { "" };
            let action = format!("action End.X nh6 {at} oif {interface} flavors next-csid{both}");
            [(prefix, action)].into_iter().chain(decapsulating(port).map(|action| (exact, action))).collect()
        }
        Behavior::Tenant(tenant) => vec![(prefix, format!("action End.DT6 table {}", tenant_table(tenant)))],
    }
}

fn decapsulating(port: &DevicePort) -> Option<String> {
    port.nic.map(|nic| format!("action End.DX6 nh6 {nic}"))
}

/// A route without its verb.
fn words(device: &Device, route: &Route) -> String {
    let hops: Vec<String> = route
        .ports
        .iter()
        .filter_map(|port| device.port(*port))
        .map(|port| format!("via {} dev {}", port.neighbour, port.interface))
        .collect();
    let table = route.tenant.map(|tenant| format!(" table {}", tenant_table(tenant))).unwrap_or_default();
    match &hops[..] {
        [only] => format!("{}{table} {only}", route.prefix),
        hops => format!("{}{table} nexthop {}", route.prefix, hops.join(" nexthop ")),
    }
}
