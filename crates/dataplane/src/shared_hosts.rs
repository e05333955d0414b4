//! Hosts that are attached to another node as well, its peer (D281, D290).
//!
//! ```text
//!            this node ── peer ── its SID ──▶ peer
//!                ▲                              │ the edge of the receiver, or the headend of the source
//!                └────── shared host ───────────┘
//! ```
//!
//! A packet of such a host may come to either. The one that does not serve the host passes it on to the other.

use crate::config::ConfigError;
use crate::counters::Traffic;
use crate::encaps::{ENCAPS_HOP_LIMIT, Encaps, EncapsError, EncapsMode};
use crate::headers::ipv6;
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

/// Hosts that are attached to this node and to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedHosts {
    /// The hosts.
    pub hosts: Prefix,
    /// The Proxy Addresses to which they send.
    pub proxies: Prefix,
    /// Loopback of the peer: outer source of what it passes on.
    pub peer: Ipv6Addr,
    /// The SID of the peer that takes packets out of their tunnel, by its main table.
    pub sid: Ipv6Addr,
}

/// Why hosts cannot be shared with a peer.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharedHostsError {
    /// Responses of IPv4 hosts are not passed on.
    #[error("{0} is no prefix of IPv6")]
    Ipv4(Prefix),
    /// A host has one peer.
    #[error("{0} and {1} overlap")]
    Overlap(Prefix, Prefix),
    /// A group that had the one Proxy Address would take its place.
    #[error("{0} is one Proxy Address, expected a prefix of all")]
    OneProxy(Prefix),
    /// A node is not its own peer.
    #[error("the peer {0} is the node itself")]
    OwnPeer(Ipv6Addr),
    /// There are no outer headers for the SID.
    #[error("{0}")]
    Encaps(#[from] EncapsError),
}

/// Where a packet of a shared host to a Proxy Address has come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// From the host, at this position in the table.
    FromHost(usize),
    /// From the peer, which has passed it on.
    FromPeer(usize),
}

/// The shared hosts of a node.
#[derive(Debug, Default)]
pub(crate) struct SharedHostTable {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    of: SharedHosts,
    to_peer: Encaps,
    passed_on: Traffic,
    from_peer: Traffic,
}

impl SharedHostTable {
    /// Replaces all. The counters of hosts that stay with their peer go on.
    pub(crate) fn set(&mut self, all: &[SharedHosts], loopback: Ipv6Addr) -> Result<(), SharedHostsError> {
        let mut entries: Vec<Entry> = Vec::new();
        for of in all {
            if let Some(ipv4) = [of.hosts, of.proxies].into_iter().find(|prefix| prefix.is_ipv4()) {
                return Err(SharedHostsError::Ipv4(ipv4));
            }
            if of.proxies.prefix_len() == 128 {
                return Err(SharedHostsError::OneProxy(of.proxies));
            }
            if of.peer == loopback {
                return Err(SharedHostsError::OwnPeer(of.peer));
            }
            if let Some(other) = entries.iter().find(|other| other.of.hosts.overlaps(of.hosts)) {
                return Err(SharedHostsError::Overlap(other.of.hosts, of.hosts));
            }
            let to_peer = Encaps::new(loopback, &[of.sid], EncapsMode::Reduced, ENCAPS_HOP_LIMIT)?;
            let known = self.entries.iter().find(|known| known.of == *of);
            let (passed_on, from_peer) = known.map(|known| (known.passed_on, known.from_peer)).unwrap_or_default();
            entries.push(Entry { of: *of, to_peer, passed_on, from_peer });
        }
        self.entries = entries;
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where a packet has come from, if it is one of a shared host to a Proxy Address. `is_at_host`: it has come in by
    /// the port that leads to its source.
    #[cold]
    pub(crate) fn arrival(
        &self,
        head: &[u8],
        outer_source: Option<[u8; 16]>,
        is_at_host: impl FnOnce(&[u8; 16]) -> bool,
    ) -> Option<Arrival> {
        let view = ipv6(head).ok()?;
        let (source, destination) = (view.source(), view.destination());
        let is_of = |entry: &Entry| entry.of.hosts.contains(source) && entry.of.proxies.contains(destination);
        let place = self.entries.iter().position(is_of)?;
        match outer_source {
            Some(outer) => (outer == self.entries[place].of.peer.octets()).then_some(Arrival::FromPeer(place)),
            None => is_at_host(view.source_octets()).then_some(Arrival::FromHost(place)),
        }
    }

    /// Whether a node may pass on what a host has sent.
    #[cold]
    pub(crate) fn may_pass_on(&self, node: &[u8; 16], host: &[u8; 16]) -> bool {
        let host = Ipv6Addr::from(*host);
        self.entries.iter().any(|entry| entry.of.peer.octets() == *node && entry.of.hosts.contains(host))
    }

    /// The outer headers to the peer of hosts, to which a frame of `len` octets is passed on.
    pub(crate) fn pass_on(&mut self, place: usize, len: usize) -> &Encaps {
        let entry = &mut self.entries[place];
        entry.passed_on.count(len);
        &entry.to_peer
    }

    /// Counts a frame that the peer of hosts has passed on to this node, which serves its sender.
    pub(crate) fn taken(&mut self, place: usize, len: usize) {
        self.entries[place].from_peer.count(len);
    }

    /// Each, with what this node has passed on to the peer, and what the peer has passed on to this node, which served
    /// the sender.
    pub(crate) fn reports(&self) -> impl Iterator<Item = (SharedHosts, Traffic, Traffic)> {
        self.entries.iter().map(|entry| (entry.of, entry.passed_on, entry.from_peer))
    }
}

impl From<SharedHostsError> for ConfigError {
    fn from(error: SharedHostsError) -> Self {
        ConfigError::SharedHosts(error)
    }
}
