//! `[controller]` of a topology file, and the controller sections of nodes.

use super::check::{Checked, designated_qpn, find, find_host, initial_psn, prefix, wrong};
use super::file::{ControlledSection, ControllerSection, NodeSection};
use super::{ControlledGroup, ControllerPlan};
use super::{Kind, Node};
use toml::Value;

/// Default port of a controller.
const DEFAULT_PORT: u16 = 8470;

pub(super) fn controller(section: &ControllerSection, nodes: &[Node]) -> Checked<ControllerPlan> {
    let at = section.node.span().start;
    let node = find(nodes, &section.node)?;
    let Node { name, kind, addresses, .. } = &nodes[node];
    match kind {
        Kind::Srdma { .. } | Kind::Router => {}
        Kind::Endpoint | Kind::Guest => {
            return wrong(at, format!("{name} is a host: expected a node of kind router or srdma for the controller"));
        }
    }
    let Some(address) = addresses.first().copied() else {
        return wrong(at, format!("{name} needs an address at which the controller is found"));
    };
    let port = section.port.as_ref().map_or(DEFAULT_PORT, |port| *port.get_ref());
    if let Some(section) = section.port.as_ref().filter(|_| port == 0) {
        return wrong(section.span().start, "port 0: expected 1 to 65535");
    }
    let proxies = section.proxies.as_ref().map(prefix).transpose()?;
    let shared_hosts = section.shared_hosts.iter().map(prefix).collect::<Checked<_>>()?;
    let group = section.group.as_ref().map(|group| self::group(group, at, nodes)).transpose()?;
    Ok(ControllerPlan { node, address, port, proxies, shared_hosts, group })
}

/// The group to create; `at` is the position for errors about missing keys.
fn group(section: &ControlledSection, at: usize, nodes: &[Node]) -> Checked<ControlledGroup> {
    let source = find_host(nodes, &section.source)?;
    let mut receivers = Vec::new();
    for name in &section.receivers {
        let node = find_host(nodes, name)?;
        if node == source {
            return wrong(name.span().start, format!("{} is the source", name.get_ref()));
        }
        if receivers.contains(&node) {
            return wrong(name.span().start, format!("{} stands here twice", name.get_ref()));
        }
        receivers.push(node);
    }
    if receivers.is_empty() {
        return wrong(at, "[controller.group] needs at least one receiver");
    }
    Ok(ControlledGroup {
        proxy: section.proxy,
        designated_qpn: designated_qpn(&section.designated_qpn)?,
        initial_psn: initial_psn(&section.initial_psn)?,
        source,
        receivers,
    })
}

/// Checks that nodes which take groups from a controller have its address: they name one, or the lab has one.
pub(super) fn check_nodes(sections: &[NodeSection], has_controller: bool) -> Checked<()> {
    for section in sections.iter().filter(|_| !has_controller) {
        let Some(config) = &section.config else { continue };
        let own = config.get_ref().get("controller").and_then(Value::as_table);
        if own.is_some_and(|own| !own.contains_key("url")) {
            let name = section.name.get_ref();
            let text =
                format!("{name} has a [controller] without url, and the lab has no [controller] to take it from");
            return wrong(config.span().start, text);
        }
    }
    Ok(())
}
