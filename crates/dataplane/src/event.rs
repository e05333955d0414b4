//! Events that a node reports to its control plane.

use srdma_aggregation::EvictionCause;
use srdma_group::GroupId;
use std::net::Ipv6Addr;

/// Something that a node cannot settle itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Event {
    /// An edge requests the eviction of one of its receivers (D24, D25). Repeated until granted.
    EvictionRequested {
        /// The group.
        group: GroupId,
        receiver: Ipv6Addr,
        /// Why.
        cause: EvictionCause,
    },
}
