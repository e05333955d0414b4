use srdma_wire::Prefix;
use srdma_wire::Qpn;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Configuration of Fast CNP at a node. Without it the node does not use Fast CNP (FC-5-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCnpConfig {
    /// Prefixes of senders that may be notified: sources of data packets, and Proxy Addresses of groups (D45).
    pub senders: Vec<Prefix>,
    /// Of these, senders with Fast CNP support (D47).
    pub capable: Vec<Prefix>,
    /// Sources of Fast CNPs that this node accepts for translation or aggregation (FC-5-3): the loopbacks of switches.
    /// Those that a receiver sends from its own address are accepted, too.
    pub switches: Vec<Prefix>,
    /// Hosts behind border ports that belong to the controlled domain: Fast CNPs may go out to them, and come in from
    /// them in their own name (FC-5-1). For all others a border lets none pass.
    pub hosts_inside: Vec<Prefix>,
    /// Hosts behind this node without Fast CNP support: they are sent standard CNPs instead (D48).
    pub translated: Vec<Prefix>,
    /// Whether connections of `translated` hosts are learnt from the RDMA CM messages that pass (D48).
    pub learn_connections: bool,
    /// Whether a packet is marked as well when its sender may lack Fast CNP support (FC-4-5).
    pub mark_unknown: bool,
    /// Whether a packet is marked when its flow was notified within the interval, although its sender is known to
    /// process Fast CNPs (D45). Of other senders it always is.
    pub mark_notified: bool,
    /// A flow is notified at most once in this time (D45).
    pub interval: Duration,
    /// Fast CNPs a second that the node sends (FC-5-2, D45).
    pub per_second: u32,
    /// Fast CNPs that it sends at once.
    pub at_once: u32,
    /// Fast CNPs carry the rate that each flow of the congested queue may send, such that what is above the threshold
    /// drains in this time; `None`: they carry none (D240).
    pub drain: Option<Duration>,
    /// How long a host is taken for incapable that has answered with an ICMPv6 error (D47).
    pub incapable_for: Duration,
}

impl FastCnpConfig {
    /// One in 50 µs for a flow, a million a second for all, 256 at once; a host that has refused is tried again after
    /// five minutes. No notifications are sent or accepted.
    pub fn new() -> Self {
        FastCnpConfig {
            senders: Vec::new(),
            capable: Vec::new(),
            switches: Vec::new(),
            hosts_inside: Vec::new(),
            translated: Vec::new(),
            learn_connections: false,
            mark_unknown: true,
            mark_notified: true,
            interval: Duration::from_micros(50),
            per_second: 1_000_000,
            at_once: 256,
            drain: None,
            incapable_for: Duration::from_secs(300),
        }
    }
}

impl Default for FastCnpConfig {
    fn default() -> Self {
        Self::new()
    }
}

/// A connection of a host behind a translating first hop (D48).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The host.
    pub host: Ipv6Addr,
    /// Its queue pair.
    pub host_qpn: Qpn,
    /// The other side's address.
    pub peer: Ipv6Addr,
    /// The other side's queue pair.
    pub peer_qpn: Qpn,
}
