//! A device as `node.toml`, whose keys docs/configuration.md describes. Interfaces have the addresses of the plan.

use crate::json::{behavior_name, tenant_table};
use srdma_fabric::provision::{Behavior, Device};
use std::fmt::Write;

/// The file.
pub fn text(device: &Device) -> String {
    let mut text = format!("# {}\n\n[node]\nloopback = \"{}\"\n", device.name, device.address);
    for port in &device.ports {
        let _ = write!(text, "\n# {}, {} at the other end\n", port.own, port.peer);
        let _ = writeln!(text, "[[port]]\nname = \"{}\"", port.interface);
    }
    for route in &device.routes {
        let hops = route.ports.iter().filter_map(|port| device.port(*port));
        let hops: Vec<String> = hops.map(|port| format!("\"{}%{}\"", port.neighbour, port.interface)).collect();
        let _ = write!(text, "\n[[route]]\nprefix = \"{}\"\nvia = [{}]\n", route.prefix, hops.join(", "));
        let _ = route.tenant.map(|tenant| writeln!(text, "table = {}", tenant_table(tenant)));
    }
    for sid in &device.sids {
        let _ = write!(text, "\n[[sid]]\nsid = \"{}\"\nbehavior = \"{}\"\n", sid.prefix, behavior_name(sid.behavior));
        match sid.behavior {
            Behavior::Node => {}
            Behavior::Link(number) => {
                if let Some(port) = device.port(number) {
                    let _ = writeln!(text, "next_hop = \"{}%{}\"", port.neighbour, port.interface);
                }
                if sid.prefix.prefix_len() > 48 {
                    let _ = writeln!(text, "csid_bits = 32");
                }
            }
            Behavior::Tenant(tenant) => {
                let _ = writeln!(text, "table = {}", tenant_table(tenant));
            }
        }
    }
    text
}
