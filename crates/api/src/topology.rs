//! The topology with its load.

use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;
use utoipa::ToSchema;

/// Nodes and links with their state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Incremented when a node or link is added or removed.
    pub version: u64,
    /// By name.
    pub nodes: Vec<TopologyNode>,
    /// Each once.
    pub links: Vec<TopologyLink>,
}

/// A node.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyNode {
    pub name: String,
    #[schema(value_type = String, format = "ipv6")]
    pub loopback: Ipv6Addr,
    /// Whether it has a live session.
    pub is_alive: bool,
    /// Whether it is excluded from new trees.
    pub is_drained: bool,
    /// Whether it can be an edge.
    pub is_edge: bool,
    /// Drops of all reasons.
    pub drops: u64,
}

/// A link that both its ends have registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopologyLink {
    /// Names of its ends, in order.
    pub ends: [String; 2],
    /// Octets per second from the first to the second, and back.
    pub octets_per_second: [f64; 2],
    /// Largest IPv6 packet, octets.
    pub mtu: u16,
    /// Number of groups whose tree uses it.
    pub groups: u32,
}
