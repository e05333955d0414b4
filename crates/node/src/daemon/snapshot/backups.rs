//! Backups of a snapshot.

use crate::process::TrafficReport;
use serde::{Deserialize, Serialize};
use srdma_dataplane::{NextHop, Node, Traffic};
use std::net::Ipv6Addr;

/// Backups around a neighbour, which packets take while it is avoided (D266).
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupSnapshot {
    pub port: String,
    /// The neighbour's address.
    pub peer: Ipv6Addr,
    /// Prefixes that have one.
    pub prefixes: usize,
    /// What has taken them.
    pub sent: TrafficReport,
}

/// The backups of a node, by neighbour.
pub(super) fn of(node: &Node) -> Vec<BackupSnapshot> {
    let ports = &node.config().ports;
    let one = |(next_hop, prefixes, sent): (NextHop, usize, Traffic)| {
        let port = ports.get(next_hop.port.index()).map(|port| port.name.clone()).unwrap_or_default();
        BackupSnapshot { port, peer: next_hop.address, prefixes, sent: sent.into() }
    };
    node.backup_reports().map(one).collect()
}
