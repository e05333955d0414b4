//! `[controller]`: the controller that orders groups beside those of the file, and the status that it receives.

use super::ports::port_named;
use super::{Draft, count_or};
use srdma_dataplane::{NodeConfig, SidBehavior};
use srdma_frame::PortId;
use srdma_node_spec::file::{ControllerSection, HostAddress, LinkSection, Located, NodeFile};
use srdma_toml_error::Problem;
use srdma_wire::Prefix;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

/// Controller of a node, and the status that it receives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ControllerSettings {
    /// Address of the controller.
    pub url: String,
    /// File with the bearer token.
    pub token_file: Option<PathBuf>,
    /// CA bundle (PEM) that verifies the controller's certificate.
    pub ca_file: Option<PathBuf>,
    pub name: String,
    /// Its End.MT SID, if it can be an edge.
    pub end_mt: Option<Ipv6Addr>,
    /// Prefix of its Replication SIDs, if it can replicate.
    pub replication: Option<Prefix>,
    /// Links to its neighbours.
    pub links: Vec<ControllerLink>,
    pub hosts: Vec<Prefix>,
}

/// A link to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerLink {
    /// The other's loopback.
    pub to: Ipv6Addr,
    /// The port that leads there.
    pub port: Option<PortId>,
    /// The largest IPv6 packet, in octets, when it is not the port's.
    pub mtu: Option<u16>,
    /// Cost of a copy on it.
    pub cost: u32,
}

/// The longest prefix that has a Replication SID for each number of a group.
const LONGEST_REPLICATION: u8 = 96;

/// Settings of a controller. Read after the SIDs and groups.
pub(super) fn settings(
    path: &Path,
    file: &NodeFile,
    name: &str,
    node: &NodeConfig,
    draft: &Draft,
) -> Result<Option<ControllerSettings>, Problem> {
    let Some(section) = &file.controller else { return Ok(None) };
    let (at, section) = (section.span().start, section.get_ref());
    srdma_api::Client::new(section.url.get_ref(), None, None)
        .map_err(|error| Problem::new(section.url.span().start, error.to_string()))?;
    let end_mt = section.end_mt.as_ref().map(|sid| end_mt(sid, draft)).transpose()?;
    let replication = section.replication.as_ref().map(|prefix| replication(prefix, draft)).transpose()?;
    if end_mt.is_none() && replication.is_none() {
        let text = "expected end_mt, replication or both: without, the node can be in no tree";
        return Err(Problem::new(at, text));
    }
    let beside = |file: &PathBuf| path.parent().unwrap_or(Path::new("")).join(file);
    Ok(Some(ControllerSettings {
        url: section.url.get_ref().clone(),
        token_file: section.token_file.as_ref().map(beside),
        ca_file: section.ca_file.as_ref().map(beside),
        name: section.name.as_ref().map_or(name, |name| &name.value.0).to_owned(),
        end_mt,
        replication,
        links: links(section, node)?,
        hosts: section.hosts.iter().map(|hosts| hosts.value.0).collect(),
    }))
}

fn end_mt(sid: &Located<HostAddress>, draft: &Draft) -> Result<Ipv6Addr, Problem> {
    match draft.entries.sids.get(&Prefix::host(sid.value.0)) {
        Some(SidBehavior::EndMt { .. }) => Ok(sid.value.0),
        _ => Err(Problem::new(sid.at, format!("end_mt: {} is no [[sid]] of behavior End.MT", sid.value.0))),
    }
}

/// A prefix with room for a SID of each group, in which nothing else is.
fn replication(prefix: &Located<Prefix>, draft: &Draft) -> Result<Prefix, Problem> {
    let (at, prefix) = (prefix.at, prefix.value);
    if !(1..=LONGEST_REPLICATION).contains(&prefix.prefix_len()) {
        let text = format!("replication: {prefix} has no SID for each group, expected a prefix of 1 to 96 bits");
        return Err(Problem::new(at, text));
    }
    let sids = draft.entries.sids.keys().filter(|sid| prefix.contains(sid.address()));
    let proxies = draft.entries.proxies().filter(|proxy| prefix.contains(*proxy));
    let inside =
        sids.map(|sid| format!("SID {sid}")).chain(proxies.map(|proxy| format!("Proxy Address {proxy}"))).next();
    match inside {
        Some(other) => {
            Err(Problem::new(at, format!("replication: {other} lies in {prefix}, which is the controller's")))
        }
        None => Ok(prefix),
    }
}

fn links(section: &ControllerSection, node: &NodeConfig) -> Result<Vec<ControllerLink>, Problem> {
    let mut known = BTreeSet::new();
    let link = |section: &LinkSection| {
        let (at, to) = (section.to.at, section.to.value.0);
        if to == node.loopback {
            return Err(Problem::new(at, format!("link to {to}: that is this node itself")));
        }
        if !known.insert(to) {
            return Err(Problem::new(at, format!("link to {to} stands here twice")));
        }
        Ok(ControllerLink {
            to,
            port: section.port.as_ref().map(|port| port_named(node, port)).transpose()?,
            mtu: section.mtu.as_ref().map(|mtu| mtu.value.get() as u16),
            cost: count_or(&section.cost, 1),
        })
    };
    section.link.iter().map(link).collect()
}
