//! The part of a controller's configuration that its core depends on.

use crate::identity::overlap;
use crate::reports::check_node_name;
use serde::Deserialize;
use srdma_api::NodeIdentity;
use srdma_group::Safeguard;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Name of the tenant that owns all groups when no tenants are configured.
pub const DEFAULT_TENANT: &str = "default";

/// Limit of nodes, unless another one is configured.
pub const MAX_NODES: usize = 4096;

/// Tenants, nodes, and timeouts.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub tenants: BTreeMap<String, Tenant>,
    /// The nodes of the configuration, by name (D125).
    pub nodes: BTreeMap<String, NodeIdentity>,
    /// Prefixes of hosts that may be attached to several nodes (D280).
    pub shared_hosts: Vec<Prefix>,
    /// Limit of nodes.
    pub max_nodes: usize,
    /// Timeout after which a silent node is dead.
    pub node_dead_after: Duration,
    /// Lease of nodes, shorter than `node_dead_after`; `None`: they have none (D122).
    pub node_lease: Option<Duration>,
    /// Timeout after which joins that wait for a silent source are aborted.
    pub source_silent_after: Duration,
    /// Time after which the reservation of a receiver expires that is not heard, or not ready (D188).
    pub join_timeout: Duration,
    /// Disabled by a test; `None` in the product.
    pub without: Option<Safeguard>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tenants: BTreeMap::from([(DEFAULT_TENANT.to_owned(), Tenant::default())]),
            nodes: BTreeMap::new(),
            shared_hosts: Vec::new(),
            max_nodes: MAX_NODES,
            node_dead_after: Duration::from_secs(3),
            node_lease: None,
            source_silent_after: Duration::from_secs(30),
            join_timeout: Duration::from_secs(1),
            without: None,
        }
    }
}

/// A node of the configuration.
#[allow(missing_docs, reason = "the fields are those of NodeIdentity")]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedNode {
    pub name: String,
    pub loopback: Ipv6Addr,
    #[serde(default)]
    pub end_mt: Option<Ipv6Addr>,
    #[serde(default, with = "srdma_api::prefix::optional")]
    pub replication: Option<Prefix>,
    #[serde(default, with = "srdma_api::prefix::list")]
    pub hosts: Vec<Prefix>,
}

impl StatedNode {
    /// Its identity.
    pub fn identity(&self) -> NodeIdentity {
        let StatedNode { name: _, loopback, end_mt, replication, hosts } = self;
        NodeIdentity { loopback: *loopback, end_mt: *end_mt, replication: *replication, hosts: hosts.clone() }
    }
}

/// Checks names and prefixes of the nodes of a configuration (D126); an error as text.
///
/// # Errors
///
/// A name is invalid, or a prefix overlaps that of another node or of a tenant.
pub fn check_nodes(settings: &Settings) -> Result<(), String> {
    for (name, identity) in &settings.nodes {
        check_node_name(name).map_err(|refusal| format!("[[node]] {name:?}: {}", refusal.detail))?;
        let others = settings.nodes.iter().filter(|(other, _)| *other != name);
        let others = others.map(|(name, identity)| (name.as_str(), identity));
        if let Some(text) = overlap(name, identity, &settings.shared_hosts, others, settings.tenants.values()) {
            return Err(format!("[[node]]: {text}"));
        }
    }
    Ok(())
}

/// A tenant and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    #[allow(missing_docs, reason = "explained by its type")]
    pub name: String,
    /// Prefixes of the addresses of its sources, receivers and Proxy Addresses.
    #[serde(with = "srdma_api::prefix::list")]
    pub prefixes: Vec<Prefix>,
    /// Prefix of Proxy Addresses for groups that name none.
    #[serde(default, with = "srdma_api::prefix::optional")]
    pub proxies: Option<Prefix>,
    /// Limit of groups.
    #[serde(default = "max_groups")]
    pub groups: usize,
    /// Limit of receivers of a group: copies of each packet.
    #[serde(default = "max_copies")]
    pub copies: usize,
    /// NICs of the fabric that its jobs may use, as jobs files name them: a star stands for every NIC whose name begins
    /// so.
    #[serde(default)]
    pub nics: Vec<String>,
    /// The tenant number in which the programs of its jobs end (End.DT6).
    #[serde(default)]
    pub number: Option<u16>,
    /// Limit of jobs.
    #[serde(default = "max_jobs")]
    pub jobs: usize,
    /// Limit of the flows of all its jobs together.
    #[serde(default = "max_flows")]
    pub flows: u64,
    /// Whether its jobs may use all NICs and tenant numbers: where no tenants are configured.
    #[serde(skip)]
    pub has_all_nics: bool,
}

fn max_groups() -> usize {
    16_384
}

fn max_copies() -> usize {
    4096
}

fn max_jobs() -> usize {
    1000
}

fn max_flows() -> u64 {
    65_536
}

impl Default for Tenant {
    fn default() -> Self {
        Tenant {
            name: DEFAULT_TENANT.to_owned(),
            prefixes: Prefix::new(Ipv6Addr::UNSPECIFIED, 0).into_iter().collect(),
            proxies: None,
            groups: max_groups(),
            copies: max_copies(),
            nics: Vec::new(),
            number: None,
            jobs: max_jobs(),
            flows: crate::jobs::MAX_FLOWS,
            has_all_nics: true,
        }
    }
}
