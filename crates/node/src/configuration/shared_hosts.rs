//! `[[shared_hosts]]`: hosts that are attached to another node as well (D281).

use super::Draft;
use super::claims::{Claims, Leads};
use super::ports::port_named;
use srdma_dataplane::{NodeConfig, RouteAction, SharedHosts, TableId};
use srdma_frame::PortId;
use srdma_node_spec::Entries;
use srdma_node_spec::file::NodeFile;
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeSet;

/// The ports by which hosts are attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLinks {
    /// The hosts.
    pub hosts: Prefix,
    /// The ports.
    pub ports: Vec<PortId>,
}

/// The ports of shared hosts, as far as the file has them (D282).
pub(super) fn host_links(file: &NodeFile, config: &NodeConfig) -> Result<Vec<HostLinks>, Problem> {
    let mut all = Vec::new();
    for section in file.shared_hosts.iter().filter(|section| !section.ports.is_empty()) {
        let mut ports = Vec::new();
        for name in &section.ports {
            let port = port_named(config, name)?;
            if ports.contains(&port) {
                return Err(Problem::new(name.at, format!("port {} stands in this section twice", name.value.0)));
            }
            ports.push(port);
        }
        all.push(HostLinks { hosts: section.hosts.value, ports });
    }
    Ok(all)
}

/// Adds the hosts, and a route for the Proxy Addresses to which they respond, which sections may have in common.
pub(super) fn add(file: &NodeFile, claims: &mut Claims<'_>, draft: &mut Draft) -> Result<(), Problem> {
    let mut claimed = BTreeSet::new();
    for section in &file.shared_hosts {
        let (hosts, proxies, sid) = (section.hosts.value, section.proxies.value, section.sid.value.0);
        if proxies.prefix_len() == 0 {
            return Err(Problem::new(section.proxies.at, "::/0 are no Proxy Addresses: every address would be one"));
        }
        if let Some(other) = draft.entries.shared_hosts.keys().find(|other| other.overlaps(hosts)) {
            return Err(Problem::new(section.hosts.at, format!("{hosts} and {other} overlap: a host has one peer")));
        }
        claims.check_reachable(section.sid.at, "SID of the peer", sid)?;
        let shared = SharedHosts { hosts, proxies, peer: section.peer.value.0, sid };
        draft.add(section.hosts.at, Entries { shared_hosts: [(hosts, shared)].into(), ..Entries::default() })?;
        if claimed.insert(proxies) {
            let owner = "the Proxy Addresses of shared hosts";
            claims.claim(section.proxies.at, proxies, owner, Leads::Elsewhere)?;
            let route = ((TableId(0), proxies), RouteAction::ToPeer);
            draft.add(section.proxies.at, Entries { routes: [route].into(), ..Entries::default() })?;
        }
    }
    Ok(())
}
