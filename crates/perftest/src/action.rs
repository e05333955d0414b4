//! What a handshake leads to.

use crate::message::{Figures, Operation};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

/// The source of the group: the client's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its queue pair.
    pub qpn: Qpn,
    /// PSN of its first packet.
    pub initial_psn: Psn,
    /// Path MTU of all queue pairs.
    pub path_mtu: PathMtu,
}

/// What source and receivers see of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEnd {
    /// Proxy Address.
    pub proxy: Ipv6Addr,
    /// Designated QPN.
    pub designated_qpn: Qpn,
    /// R_Key of the region that the source writes to.
    pub rkey: u32,
    /// First virtual address of that region.
    pub virtual_address: u64,
}

/// A receiver of the group: a server's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its queue pair.
    pub qpn: Qpn,
    /// R_Key of its memory; 0 where a device has none for memory that only SENDs reach.
    pub rkey: u32,
    /// First virtual address of its memory.
    pub virtual_address: u64,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send octets to the client, by one write: perftest reads a message by one read.
    ToClient(Vec<u8>),
    /// Send octets to a server, by one write.
    ToServer(usize, Vec<u8>),
    /// Create a group, then call [`group_created`](crate::Conversation::group_created).
    CreateGroup(Source),
    /// Have the receivers join, commit the group, then call [`group_ready`](crate::Conversation::group_ready).
    BeginGroup(Vec<Receiver>),
    /// All is done: close the group.
    Finish(Outcome),
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The operation, as its messages show it at the end.
    pub operation: Operation,
    /// The result of a WRITE, if its rate is a number.
    pub figures: Option<Figures>,
}
