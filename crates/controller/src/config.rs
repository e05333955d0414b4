//! `controller.toml`: addresses, tokens, tenants, timeouts and limits.

use serde::Deserialize;
use srdma_api::POLL_INTERVAL_MS;
use srdma_controller_core::{Jobs, MAX_NODES, Role, Settings, StatedNode, Tenant, check_nodes, is_printable};
use srdma_fabric::{Encoding, SidPlan, Topology};
use srdma_toml_error::{FileError, Problem};
use srdma_wire::Prefix;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A controller's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The file that it was read from, which SIGHUP reads again.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// URL that standbys report for this controller as the leader [default: the first of `listen`].
    pub url: Option<String>,
    /// Certificate and key; without them HTTP without TLS, on loopback addresses only.
    pub tls: Option<Tls>,
    /// TLS towards etcd, if that is the store.
    pub etcd: EtcdTrust,
    /// Bearer tokens; without them no authentication, on loopback addresses only.
    pub token: Vec<Token>,
    /// Owners of groups.
    pub tenant: Vec<Tenant>,
    /// Nodes, whose registrations then have no more than is stated here (D125).
    pub node: Vec<StatedNode>,
    /// Prefixes of hosts that may be attached to several nodes, each of which registers the same prefix (D280).
    #[serde(with = "srdma_api::prefix::list")]
    pub shared_hosts: Vec<Prefix>,
    /// Limit of nodes.
    pub nodes: usize,
    /// Timeout after which a silent node is dead, milliseconds.
    pub node_dead_after_ms: u32,
    /// Lease of nodes, milliseconds; 0: none (D122).
    pub node_lease_ms: u32,
    /// Timeout after which joins that wait for a silent source are aborted, milliseconds.
    pub source_silent_after_ms: u32,
    /// Time after which the reservation of a receiver expires that is not heard, or not ready, milliseconds (D188).
    pub join_timeout_ms: u32,
    /// Limit of open connections, each of which takes memory (D113).
    pub connections: usize,
    /// Limit of open connections from one IPv4 address or IPv6 /64.
    pub connections_per_client: usize,
    /// Time after which the paths of a placement are no longer improved, milliseconds; after twice this time a
    /// placement without a path for each flow is refused.
    pub placement_deadline_ms: u32,
    /// Limit of concurrent placements of all tenants together.
    pub placements: usize,
    /// Limit of concurrent placements of one tenant, and of the operators.
    pub placements_per_tenant: usize,
    /// File of the fabric that jobs are placed on, as for `srdma plan`.
    pub fabric: Option<PathBuf>,
    /// The /32 block of the fabric's SIDs.
    pub block: std::net::Ipv6Addr,
}

/// A certificate and its key, files in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// TLS towards etcd.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EtcdTrust {
    /// CA bundle (PEM) that verifies etcd's certificate [default: the system's].
    pub ca: Option<PathBuf>,
    /// Client certificate and key.
    pub client: Option<Tls>,
}

/// A token.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Its name in the audit log.
    pub name: String,
    /// SHA-256 of the token, hexadecimal; the token itself is not stored.
    pub sha256: String,
    pub role: Role,
    /// The tenant, for the role `tenant`.
    pub tenant: Option<String>,
    /// The node that uses it, for the role `node`.
    pub node: Option<String>,
}

/// Reason for which a configuration is refused.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read, or a key or value is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its settings contradict each other.
    #[error("{}: {reason}", file.display())]
    Contradiction { file: PathBuf, reason: String },
}

impl Default for Config {
    fn default() -> Self {
        Config {
            file: None,
            listen: vec![SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 8470))],
            url: None,
            tls: None,
            etcd: EtcdTrust::default(),
            token: Vec::new(),
            tenant: Vec::new(),
            node: Vec::new(),
            shared_hosts: Vec::new(),
            nodes: MAX_NODES,
            node_dead_after_ms: 3000,
            node_lease_ms: 0,
            source_silent_after_ms: 30_000,
            join_timeout_ms: 1000,
            connections: 4096,
            connections_per_client: 2048,
            placement_deadline_ms: 30_000,
            placements: 2,
            placements_per_tenant: 1,
            fabric: None,
            block: SidPlan::BLOCK,
        }
    }
}

/// Between a lease and what has to happen after it: clocks differ, and packets are on their way.
const LEASE_MARGIN_MS: u32 = 500;

/// A key of the file, and its value as text.
type Key = (&'static str, fn(&Config) -> String);

impl Config {
    /// Keys that are read at the start only.
    pub(crate) const RESTART_KEYS: [Key; 15] = [
        ("listen", |config| format!("{:?}", config.listen)),
        ("url", |config| format!("{:?}", config.url)),
        ("etcd", |config| format!("{:?}", config.etcd)),
        ("tenant", |config| format!("{:?}", config.tenant)),
        ("node", |config| format!("{:?}", config.node)),
        ("shared_hosts", |config| format!("{:?}", config.shared_hosts)),
        ("nodes", |config| config.nodes.to_string()),
        ("node_dead_after_ms", |config| config.node_dead_after_ms.to_string()),
        ("node_lease_ms", |config| config.node_lease_ms.to_string()),
        ("source_silent_after_ms", |config| config.source_silent_after_ms.to_string()),
        ("join_timeout_ms", |config| config.join_timeout_ms.to_string()),
        ("connections", |config| config.connections.to_string()),
        ("connections_per_client", |config| config.connections_per_client.to_string()),
        ("fabric", |config| format!("{:?}", config.fabric)),
        ("block", |config| config.block.to_string()),
    ];

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, and those of [`Config::check`].
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        Config::parse(file, &srdma_toml_error::read(file)?)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// If it is no configuration, and those of [`Config::check`].
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut config: Config =
            toml::from_str(text).map_err(|error| Problem::of_toml(&error, text).in_file(file, text))?;
        config.check().map_err(|reason| ConfigError::Contradiction { file: file.to_owned(), reason })?;
        config.file = Some(file.to_owned());
        Ok(config)
    }

    /// Checks that the settings are consistent; an error as text.
    ///
    /// # Errors
    ///
    /// Authentication or TLS is missing on a public address, or names do not match.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() {
            return Err("listen: expected at least one address".to_owned());
        }
        if let Some(open) = self.listen.iter().find(|address| !address.ip().is_loopback()) {
            if self.token.is_empty() {
                return Err(format!("listen {open}: without a [[token]] only loopback addresses may be listened on"));
            }
            if self.tls.is_none() {
                return Err(format!("listen {open}: without [tls] only loopback addresses may be listened on"));
            }
        }
        // A node that waits for an order is not heard of meanwhile.
        let least_dead_after = POLL_INTERVAL_MS + POLL_INTERVAL_MS / 2;
        for (key, value, least) in [
            ("node_dead_after_ms", self.node_dead_after_ms, least_dead_after),
            ("source_silent_after_ms", self.source_silent_after_ms, 100),
            ("join_timeout_ms", self.join_timeout_ms, 100),
            ("placement_deadline_ms", self.placement_deadline_ms, 100),
        ] {
            if !(least..=600_000).contains(&value) {
                return Err(format!("{key} = {value}: expected {least} to 600000"));
            }
        }
        // A report is answered after an interval, when the lease that it extends has run for as long, and the next one
        // after another interval.
        let least = 2 * POLL_INTERVAL_MS + LEASE_MARGIN_MS;
        let (lease, most) = (self.node_lease_ms, self.node_dead_after_ms - LEASE_MARGIN_MS);
        if lease != 0 && !(least..=most).contains(&lease) {
            return Err(format!(
                "node_lease_ms = {lease}: expected 0 for none, or {least} to {most}, which is node_dead_after_ms less \
                 {LEASE_MARGIN_MS}"
            ));
        }
        for (key, value) in [
            ("nodes", self.nodes),
            ("connections", self.connections),
            ("connections_per_client", self.connections_per_client),
            ("placements", self.placements),
            ("placements_per_tenant", self.placements_per_tenant),
        ] {
            if value == 0 {
                return Err(format!("{key} = 0: expected at least 1"));
            }
        }
        let tenants = self.tenants();
        for (number, token) in self.token.iter().enumerate() {
            let name = &token.name;
            if name.is_empty() || name.len() > 64 || !is_printable(name) {
                return Err(format!("token {name:?}: expected a name of 1 to 64 octets that can be printed"));
            }
            let former = &self.token[..number];
            if former.iter().any(|other| other.name == *name) {
                return Err(format!("two [[token]]s have the name {name}"));
            }
            if let Some(other) = former.iter().find(|other| other.sha256.eq_ignore_ascii_case(&token.sha256)) {
                return Err(format!("the [[token]]s {} and {name} have the same sha256", other.name));
            }
            if token.sha256.len() != 64 || !token.sha256.bytes().all(|octet| octet.is_ascii_hexdigit()) {
                return Err(format!("token {name}: sha256 is not 64 hexadecimal digits"));
            }
            match (token.role, &token.tenant) {
                (Role::Tenant, None) => return Err(format!("token {name}: the role tenant needs a tenant")),
                (Role::Tenant, Some(tenant)) if !tenants.contains_key(tenant.as_str()) => {
                    return Err(format!("token {name}: [[tenant]] {tenant} is not defined"));
                }
                (Role::Admin | Role::Node | Role::Read, Some(_)) => {
                    return Err(format!("token {name}: only the role tenant has a tenant"));
                }
                (Role::Tenant, Some(_)) | (Role::Admin | Role::Node | Role::Read, None) => {}
            }
            match (token.role, &token.node) {
                (Role::Node, None) => {
                    return Err(format!("token {name}: the role node needs a `node`, a token for each one"));
                }
                (Role::Admin | Role::Tenant | Role::Read, Some(_)) => {
                    return Err(format!("token {name}: only the role node names a node"));
                }
                (Role::Node, Some(_)) | (Role::Admin | Role::Tenant | Role::Read, None) => {}
            }
        }
        if tenants.len() < self.tenant.len() {
            return Err("two [[tenant]]s have the same name".to_owned());
        }
        for tenant in self.tenant.iter().filter(|tenant| tenant.number.is_some()) {
            let (name, number) = (&tenant.name, tenant.number.unwrap_or_default());
            if number > 4095 {
                return Err(format!("[[tenant]] {name}: number {number}: expected 0 to 4095"));
            }
            if let Some(other) = self.tenant.iter().find(|other| other.name != *name && other.number == tenant.number) {
                return Err(format!("[[tenant]] {name}: number {number} is that of {}", other.name));
            }
        }
        self.check_nodes()?;
        match self.tenant.iter().find(|tenant| tenant.name.is_empty() || tenant.name.contains(['/', '?', ' '])) {
            Some(tenant) => Err(format!("[[tenant]] {:?}: expected a name without /, ? and spaces", tenant.name)),
            None => Ok(()),
        }
    }

    /// Checks the nodes; an error as text.
    fn check_nodes(&self) -> Result<(), String> {
        let settings = self.settings();
        if settings.nodes.len() < self.node.len() {
            return Err("two [[node]]s have the same name".to_owned());
        }
        if settings.nodes.len() > self.nodes {
            return Err(format!("nodes = {}: there are {} [[node]]s", self.nodes, settings.nodes.len()));
        }
        check_nodes(&settings)
    }

    /// Checks a lease of nodes against that of the leader among several controllers: nodes that are without a
    /// controller until another one leads must not stop (D122). An error as text.
    ///
    /// # Errors
    ///
    /// It is too short.
    pub(crate) fn check_leader_lease(&self, leader: Duration) -> Result<(), String> {
        let least = leader + Duration::from_millis(LEASE_MARGIN_MS.into());
        match self.node_lease_ms {
            0 => Ok(()),
            lease if Duration::from_millis(lease.into()) >= least => Ok(()),
            lease => Err(format!(
                "node_lease_ms = {lease}: expected at least {} with a store in etcd, where another controller leads \
                 {} ms after the last renewal",
                least.as_millis(),
                leader.as_millis()
            )),
        }
    }

    /// The tenants by name. Without configured tenants there is one for all addresses.
    fn tenants(&self) -> BTreeMap<String, Tenant> {
        if self.tenant.is_empty() {
            let tenant = Tenant::default();
            return BTreeMap::from([(tenant.name.clone(), tenant)]);
        }
        self.tenant.iter().map(|tenant| (tenant.name.clone(), tenant.clone())).collect()
    }

    /// Settings of the core.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            tenants: self.tenants(),
            nodes: self.node.iter().map(|node| (node.name.clone(), node.identity())).collect(),
            shared_hosts: self.shared_hosts.clone(),
            max_nodes: self.nodes,
            node_dead_after: Duration::from_millis(self.node_dead_after_ms.into()),
            node_lease: (self.node_lease_ms > 0).then(|| Duration::from_millis(self.node_lease_ms.into())),
            source_silent_after: self.source_silent_after(),
            join_timeout: self.join_timeout(),
            without: None,
        }
    }

    /// The fabric without jobs, if one is configured; an error as text.
    pub(crate) fn jobs(&self) -> Result<Option<Jobs>, String> {
        let Some(file) = &self.fabric else { return Ok(None) };
        let wrong = |reason: &dyn std::fmt::Display| format!("fabric {}: {reason}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        let topology = Topology::from_toml(&text).map_err(|error| wrong(&error))?;
        let sids = SidPlan::new(&topology, self.block).map_err(|error| wrong(&error))?;
        let jobs = Jobs::new(topology, sids, Encoding::Nodes);
        for Tenant { name, nics, .. } in &self.tenant {
            if let Some(nic) = jobs.unknown_nic(nics) {
                return Err(wrong(&format!("nics of [[tenant]] {name}: {nic} is no NIC of this fabric")));
            }
        }
        Ok(Some(jobs))
    }

    /// The URL of this controller.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let first = || self.listen.first().map_or_else(String::new, |address| format!("{scheme}://{address}"));
        self.url.clone().unwrap_or_else(first)
    }

    /// Time after which paths are no longer improved.
    pub(crate) fn placement_deadline(&self) -> Duration {
        Duration::from_millis(self.placement_deadline_ms.into())
    }

    /// Time for which a reservation lasts.
    pub(crate) fn join_timeout(&self) -> Duration {
        Duration::from_millis(self.join_timeout_ms.into())
    }

    /// Timeout of silent sources.
    pub(crate) fn source_silent_after(&self) -> Duration {
        Duration::from_millis(self.source_silent_after_ms.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that waits for an order would be dead as often as not.
    #[test]
    fn nodes_are_not_dead_between_two_polls() {
        let refused = |node_dead_after_ms| Config { node_dead_after_ms, ..Config::default() }.check().err();
        assert_eq!(refused(800).as_deref(), Some("node_dead_after_ms = 800: expected 1500 to 600000"));
        assert_eq!(refused(1500), None);
    }

    /// D122: it ends before the controller acts, and outlives a change of leader.
    #[test]
    fn a_lease_is_shorter_than_the_timeout_and_longer_than_the_leaders() {
        let config =
            |node_lease_ms, node_dead_after_ms| Config { node_lease_ms, node_dead_after_ms, ..Config::default() };
        let check = |lease, dead_after| config(lease, dead_after).check();
        assert_eq!((check(0, 1500), check(2500, 3000), check(9500, 10_000)), (Ok(()), Ok(()), Ok(())));
        for (lease, dead_after) in [(2499, 9000), (2501, 3000), (1500, 1500), (3000, 3000)] {
            let refusal = check(lease, dead_after).unwrap_err();
            assert!(refusal.starts_with(&format!("node_lease_ms = {lease}: expected 0")), "{refusal}");
        }
        let leader = Duration::from_secs(5);
        assert_eq!(config(0, 3000).check_leader_lease(leader), Ok(()));
        assert_eq!(config(5500, 6000).check_leader_lease(leader), Ok(()));
        let refusal = config(5499, 6000).check_leader_lease(leader).unwrap_err();
        assert!(refusal.starts_with("node_lease_ms = 5499: expected at least 5500"), "{refusal}");
    }
}
