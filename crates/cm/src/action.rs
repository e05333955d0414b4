//! What an exchange leads to.

use crate::mad::Mad;
use crate::reason::Reason;
use srdma_wire::{PathMtu, Psn, Qpn};
use std::net::Ipv6Addr;

/// A party of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// The client.
    Client,
    /// A server, counted from 0.
    Server(usize),
}

/// The source of the group: the client's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its queue pair.
    pub qpn: Qpn,
    /// Path MTU of all queue pairs.
    pub path_mtu: PathMtu,
    /// ACK timeout of its queue pair: 4.096 µs times two to the power of this.
    pub ack_timeout: u8,
    /// Times that it sends a packet again.
    pub retries: u8,
}

/// A receiver of the group: a server's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its queue pair.
    pub qpn: Qpn,
    /// The PSN that it expects first.
    pub expected_psn: Psn,
}

/// A group of queue pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The client's queue pair.
    pub source: Source,
    /// Queue pair to which all send.
    pub designated_qpn: Qpn,
    /// PSN of the source's first packet.
    pub initial_psn: Psn,
    /// The servers' queue pairs, in their order.
    pub receivers: Vec<Receiver>,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message from the Proxy Address.
    Send(Ipv6Addr, Box<Mad>),
    /// Create the group, have the receivers join and commit it, then call [`group_ready`](crate::Exchange::group_ready)
    /// or [`group_failed`](crate::Exchange::group_failed).
    MakeGroup(Group),
    /// The client is connected.
    Connected,
    /// All sides are over: close the group. Messages that come again are answered still.
    Finish(End),
}

/// How an exchange has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The client has disconnected, after it was connected.
    Disconnected,
    /// A party has disconnected before its time: a server before the client.
    Left(Party),
    /// A party has rejected the connection; with the text of its private data, if that is one.
    Rejected(Party, Reason, Option<String>),
    /// A party does not answer.
    Silent(Party),
    /// The servers, or the group, were not ready in time.
    Late,
    /// There is no group.
    NoGroup,
    /// The caller has ended it.
    Closed,
}
