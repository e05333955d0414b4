//! The part of a controller's configuration that its core depends on.

use serde::Deserialize;
use srdma_api::Prefix;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Name of the tenant that owns all groups when no tenants are configured.
pub const DEFAULT_TENANT: &str = "default";

/// Tenants and timeouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The tenants by name.
    pub tenants: BTreeMap<String, Tenant>,
    /// A node that is silent for longer is taken for dead.
    pub node_dead_after: Duration,
    /// Joins that wait for a source which is silent for longer are given up.
    pub source_silent_after: Duration,
}

/// A tenant, and how much it may have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Prefixes of the addresses of its sources, receivers and Proxy Addresses.
    pub prefixes: Vec<Prefix>,
    /// Prefix of Proxy Addresses for groups that name none.
    pub proxies: Option<Prefix>,
    /// Groups at a time.
    #[serde(default = "most_groups")]
    pub groups: usize,
    /// Receivers of a group: a packet of its source has as many copies.
    #[serde(default = "most_copies")]
    pub copies: usize,
}

fn most_groups() -> usize {
    16_384
}

fn most_copies() -> usize {
    4096
}

impl Default for Tenant {
    fn default() -> Self {
        Tenant {
            name: DEFAULT_TENANT.to_owned(),
            prefixes: Prefix::new(Ipv6Addr::UNSPECIFIED, 0).into_iter().collect(),
            proxies: None,
            groups: most_groups(),
            copies: most_copies(),
        }
    }
}
