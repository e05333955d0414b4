//! A device as config_db.json of SONiC: SRV6_MY_LOCATORS and SRV6_MY_SIDS as in doc/srv6/srv6_static_config_hld.md of
//! sonic-net/SONiC, whose action uA came with its pull request 2124 (November 2025), and static routes.
//!
//! SONiC has no action uDT6; uDT46 is the same for IPv6.

use serde_json::{Map, Value, json};
use srdma_fabric::provision::{Behavior, Device, Route, Sid};
use srdma_fabric::{NodeId, SidPlan};

/// The config_db.json of a device.
pub fn config_db(device: &Device, sids: &SidPlan) -> Value {
    let mut tables = Map::new();
    let mut add = |table: &str, key: String, value: Value| {
        let table = tables.entry(table).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(table) = table {
            table.insert(key, value);
        }
    };
    add("LOOPBACK_INTERFACE", "Loopback0".to_owned(), json!({}));
    add("LOOPBACK_INTERFACE", format!("Loopback0|{}/128", device.address), json!({}));
    for port in &device.ports {
        add("INTERFACE", port.interface.clone(), json!({"ipv6_use_link_local_only": "enable"}));
        add("INTERFACE", format!("{}|{}/64", port.interface, port.own), json!({}));
    }
    for tenant in device.tenants() {
        add("VRF", format!("Vrf{tenant}"), json!({}));
    }
    if let NodeId::Switch(switch) = device.node {
        let locator = json!({
            "prefix": sids.node_sid(switch).to_string(), "block_len": "32", "node_len": "16", "func_len": "0",
        });
        add("SRV6_MY_LOCATORS", "MAIN".to_owned(), locator);
    }
    for sid in &device.sids {
        add("SRV6_MY_SIDS", format!("MAIN|{}", sid.prefix), of_sid(device, sid));
    }
    for route in &device.routes {
        let vrf = route.tenant.map_or("default".to_owned(), |tenant| format!("Vrf{tenant}"));
        add("STATIC_ROUTE", format!("{vrf}|{}", route.prefix), of_route(device, route));
    }
    Value::Object(tables)
}

fn of_sid(device: &Device, sid: &Sid) -> Value {
    match sid.behavior {
        Behavior::Node => json!({"action": "uN", "decap_dscp_mode": "pipe"}),
        Behavior::Link(number) => {
            let mut value = json!({"action": "uA", "decap_dscp_mode": "pipe"});
            if let Some(port) = device.port(number) {
                value["interface"] = port.interface.clone().into();
                value["adj"] = port.neighbour.to_string().into();
            }
            value
        }
        Behavior::Tenant(tenant) => {
            json!({"action": "uDT46", "decap_vrf": format!("Vrf{tenant}"), "decap_dscp_mode": "pipe"})
        }
    }
}

/// Of several next hops the table has lists of the same length, separated by commas.
fn of_route(device: &Device, route: &Route) -> Value {
    let ports: Vec<_> = route.ports.iter().filter_map(|port| device.port(*port)).collect();
    let list = |of: fn(&srdma_fabric::provision::DevicePort) -> String| {
        ports.iter().map(|port| of(port)).collect::<Vec<_>>().join(",")
    };
    let mut value =
        json!({"nexthop": list(|port| port.neighbour.to_string()), "ifname": list(|port| port.interface.clone())});
    if route.tenant.is_some() {
        value["nexthop-vrf"] = list(|_| "default".to_owned()).into();
    }
    value
}
