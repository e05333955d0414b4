//! What a node is in trees: stated in `controller.toml`, or confirmed by an administrator (D125).

use crate::{Registration, prefix};
use serde::{Deserialize, Serialize};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;
use utoipa::ToSchema;

/// The addresses and prefixes of a node. What its registration has beyond them is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeIdentity {
    /// Its loopback.
    #[schema(value_type = String, format = "ipv6")]
    pub loopback: Ipv6Addr,
    /// Its End.MT SID, if it can be an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "ipv6")]
    pub end_mt: Option<Ipv6Addr>,
    /// Prefix of its Replication SIDs, if it can replicate.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "prefix::optional")]
    #[schema(value_type = Option<String>)]
    pub replication: Option<Prefix>,
    /// Prefixes of its attached hosts.
    #[serde(default, with = "prefix::list")]
    #[schema(value_type = Vec<String>)]
    pub hosts: Vec<Prefix>,
}

impl Registration {
    /// What the node says that it is.
    pub fn identity(&self) -> NodeIdentity {
        NodeIdentity {
            loopback: self.loopback,
            end_mt: self.end_mt,
            replication: self.replication,
            hosts: self.hosts.clone(),
        }
    }
}

/// Gives a node another name. The node may use the former one until it registers with the new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameRequest {
    /// The new name.
    pub name: String,
}
