//! What a node tells its control plane.

use srdma_group::GroupId;
use std::net::Ipv6Addr;

/// Something that a node cannot settle itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An edge asks for the eviction of one of its receivers (D24, D25). Said again while it is not granted.
    EvictionWanted {
        /// The group.
        group: GroupId,
        /// The receiver's address.
        receiver: Ipv6Addr,
        /// Why.
        cause: Cause,
    },
}

/// Why a receiver holds its group back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// What it expects next was sent to it again and again, without progress (D25).
    Stalled,
    /// It answered with a fatal NAK of this code (D24).
    Failed(u8),
}
