//! Configuration of the groups that an edge learns from the lists in their packets (D17). They are applied in
//! `groups/learn.rs`.

use srdma_group::{GroupId, OnFailure, Policy};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// Group numbers from here on are those of groups that a node has learnt; no record has them.
pub const FIRST_LEARNT_GROUP: GroupId = GroupId(0xFFFF_0000);

/// How an edge learns groups that it has no record of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learning {
    /// Where their Proxy Addresses lie.
    pub proxies: Vec<Prefix>,
    /// The loopback of the node upstream, to which responses go (D12).
    pub parent: Ipv6Addr,
    /// The SID to encapsulate them to, when it is not a neighbour.
    pub parent_sid: Option<Ipv6Addr>,
    /// The policy of each of them. Settings for a headend or a control plane alone have no effect.
    pub policy: Policy,
    /// How many groups there may be at once.
    pub max_groups: u16,
    /// How many receivers each may have.
    pub max_receivers: u16,
    /// Idle timeout of a learnt group, in nanoseconds: without data and responses for so long it is removed.
    pub idle_ns: u64,
}

impl Learning {
    /// Whether a group of this Proxy Address is learnt.
    pub(crate) fn covers(&self, proxy: Ipv6Addr) -> bool {
        self.proxies.iter().any(|prefix| prefix.contains(proxy))
    }

    /// That settings can work, whatever node they are for.
    pub(crate) fn check(&self) -> Result<(), LearningError> {
        if self.proxies.is_empty() {
            return Err(LearningError::NoProxies);
        }
        let bounds = [
            (u64::from(self.max_groups), "max_groups"),
            (u64::from(self.max_receivers), "max_receivers"),
            (self.idle_ns, "idle"),
        ];
        if let Some((_, name)) = bounds.into_iter().find(|(bound, _)| *bound == 0) {
            return Err(LearningError::Zero(name));
        }
        match self.policy.on_failure {
            OnFailure::Strict => Ok(()),
            OnFailure::Evict => Err(LearningError::Evicts),
        }
    }
}

/// Why an edge cannot learn groups so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LearningError {
    /// No prefix of Proxy Addresses.
    #[error("there is no prefix of Proxy Addresses to learn groups of")]
    NoProxies,
    /// A bound that leaves nothing.
    #[error("{0} is zero: no group could be learnt")]
    Zero(&'static str),
    /// No controller grants eviction requests of such a group, and its learnt set never shrinks (D17, D25).
    #[error("on_failure cannot be evict: no controller or operator could evict a learnt receiver (D25)")]
    Evicts,
    /// A Proxy Address is not an address of a node (D2).
    #[error("{address} is an address of this node, but in {proxies}, the Proxy Addresses of groups that it learns")]
    OwnAddress {
        /// The prefix of Proxy Addresses.
        proxies: Prefix,
        /// The node's address.
        address: Ipv6Addr,
    },
    /// Responses would go to the node itself.
    #[error("the tree loops: parent {0} is this node itself")]
    ParentIsOwn(Ipv6Addr),
    /// Proxy Addresses that hosts could not reach, or could send from.
    #[error("{0} is in none of the domain's prefixes of Proxy Addresses")]
    OutsideDomain(Prefix),
}
