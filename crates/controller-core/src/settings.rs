//! The part of a controller's configuration that its core depends on.

use serde::Deserialize;
use srdma_group::Safeguard;
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Name of the tenant that owns all groups when no tenants are configured.
pub const DEFAULT_TENANT: &str = "default";

/// Tenants and timeouts.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub tenants: BTreeMap<String, Tenant>,
    /// Timeout after which a silent node is dead.
    pub node_dead_after: Duration,
    /// Timeout after which joins that wait for a silent source are aborted.
    pub source_silent_after: Duration,
    /// Disabled by a test; `None` in the product.
    pub without: Option<Safeguard>,
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
