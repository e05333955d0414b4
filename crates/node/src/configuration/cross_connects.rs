//! `[[cross_connect]]`.

use super::ports::port_named;
use super::{Draft, sr_policies};
use srdma_dataplane::{CrossConnect, NodeConfig, PortConfig};
use srdma_node_spec::Entries;
use srdma_node_spec::file::NodeFile;
use srdma_toml_error::Problem;

pub(super) fn add(file: &NodeFile, config: &NodeConfig, draft: &mut Draft) -> Result<(), Problem> {
    for section in &file.cross_connect {
        let (port, at) = (port_named(config, &section.port)?, section.port.at);
        let name = &section.port.value.0;
        if draft.entries.cross_connects.contains_key(&port) {
            return Err(Problem::new(at, format!("port {name} is cross-connected already")));
        }
        let carries = |other: &PortConfig| other.vlan.is_some_and(|vlan| vlan.parent == port);
        if config.ports[port.index()].vlan.is_some() || config.ports.iter().any(carries) {
            let text = format!("port {name} has a VLAN or carries one, expected a port whose frames are all its own");
            return Err(Problem::new(at, text));
        }
        // Its packets would come back in the tunnel.
        if let Some(neighbour) = file.neighbour.iter().find(|neighbour| neighbour.address.value.port == *name) {
            let text = format!("port {name} is cross-connected in SRv6, and has no neighbours of the node's own");
            return Err(Problem::new(neighbour.address.at, text));
        }
        let policy = sr_policies::used(file, &section.policy)?;
        let cross_connect = CrossConnect { policy, mode: section.mode };
        draft.add(at, Entries { cross_connects: [(port, cross_connect)].into(), ..Entries::default() })?;
    }
    Ok(())
}
