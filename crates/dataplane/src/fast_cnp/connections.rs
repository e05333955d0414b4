//! Map from (address, queue pair) of one side of a connection to the queue pair of a host: provisioned, or learnt by
//! observing RDMA CM messages (D48).
//!
//! ```text
//! ConnectRequest host → peer: name, QPN of the host      ─┐ together: a connection
//! ConnectReply   peer → host: the same name, QPN of peer ─┘
//! DisconnectRequest: the connection is over
//! ```
//!
//! Both tables are bounded; the oldest entry makes room.

use super::Connection;
use srdma_wire::cm::{CmMessage, CmPacket};
use srdma_wire::{Instant, Qpn};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;
use std::time::Duration;

/// Connections that are remembered, and requests that wait for their reply.
const MOST_LEARNT: usize = 4096;
const MOST_PENDING: usize = 256;

/// How long a request waits for its reply: RDMA CM repeats either for some tens of seconds.
const PENDING_FOR: Duration = Duration::from_secs(60);

/// Host, and the peer's address and queue pair.
type Key = (Ipv6Addr, Ipv6Addr, Qpn);

/// Result of a look-up of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The host's queue pair.
    Found(Qpn),
    /// Two queue pairs of the host were seen connected to the same one of the peer, and neither connection's end.
    Ambiguous,
    /// Nothing.
    Unknown,
}

/// Requester, responder and communication ID of a pending request.
type PendingKey = (Ipv6Addr, Ipv6Addr, u32);

/// The connections of the hosts behind a first hop.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    provisioned: BTreeMap<Key, Qpn>,
    /// `None` when it is ambiguous.
    learnt: BTreeMap<Key, Option<Qpn>>,
    /// Keys of `learnt`, the oldest first.
    order: VecDeque<Key>,
    pending: VecDeque<(PendingKey, Qpn, Instant)>,
}

/// Change by a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Connections that were learnt.
    pub(crate) learnt: u64,
    /// Connections that are over.
    pub(crate) ended: u64,
}

impl Connections {
    pub(crate) fn provision(&mut self, connection: Connection) {
        let Connection { host, host_qpn, peer, peer_qpn } = connection;
        self.provisioned.insert((host, peer, peer_qpn), host_qpn);
    }

    /// Forgets a provisioned connection; `false` when there was none.
    pub(crate) fn withdraw(&mut self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> bool {
        self.provisioned.remove(&(host, peer, peer_qpn)).is_some()
    }

    /// The host's queue pair that is connected to one of the peer. Provisioned connections take precedence.
    pub(crate) fn find(&self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> Lookup {
        let key = (host, peer, peer_qpn);
        match (self.provisioned.get(&key), self.learnt.get(&key)) {
            (Some(qpn), _) | (None, Some(Some(qpn))) => Lookup::Found(*qpn),
            (None, Some(None)) => Lookup::Ambiguous,
            (None, None) => Lookup::Unknown,
        }
    }

    /// Observes a message. Connections of hosts for which `is_watched` returns false are not stored.
    pub(crate) fn observe(&mut self, now: Instant, packet: &CmPacket, is_watched: impl Fn(Ipv6Addr) -> bool) -> Change {
        let CmPacket { source, destination, message } = *packet;
        if !is_watched(source) && !is_watched(destination) {
            return Change::default();
        }
        match message {
            CmMessage::ConnectRequest { local_id, local_qpn } => {
                self.ask((source, destination, local_id), local_qpn, now);
                Change::default()
            }
            CmMessage::ConnectReply { remote_id, local_qpn } => {
                let Some(asked) = self.answer((destination, source, remote_id), now) else { return Change::default() };
                let mut learnt = 0;
                for (host, host_qpn, peer, peer_qpn) in
                    [(destination, asked, source, local_qpn), (source, local_qpn, destination, asked)]
                {
                    if is_watched(host) {
                        self.learn((host, peer, peer_qpn), host_qpn);
                        learnt += 1;
                    }
                }
                Change { learnt, ended: 0 }
            }
            CmMessage::DisconnectRequest { remote_qpn } => {
                let from = (destination, source, Qpn::default());
                let of_both = self.learnt.range(from..).take_while(|(key, _)| (key.0, key.1) == (from.0, from.1));
                let mirrored = of_both.filter(|(_, qpn)| **qpn == Some(remote_qpn)).map(|(key, _)| *key).next();
                let over = [Some((source, destination, remote_qpn)), mirrored];
                Change { learnt: 0, ended: over.into_iter().flatten().map(|key| self.forget(key)).sum() }
            }
        }
    }

    fn ask(&mut self, key: PendingKey, qpn: Qpn, now: Instant) {
        self.pending.retain(|(known, _, since)| *known != key && now - *since < PENDING_FOR);
        if self.pending.len() >= MOST_PENDING {
            self.pending.pop_front();
        }
        self.pending.push_back((key, qpn, now));
    }

    fn answer(&mut self, key: PendingKey, now: Instant) -> Option<Qpn> {
        let place = self.pending.iter().position(|(known, _, _)| *known == key)?;
        let (_, qpn, since) = self.pending.remove(place)?;
        (now - since < PENDING_FOR).then_some(qpn)
    }

    fn learn(&mut self, key: Key, host_qpn: Qpn) {
        if let Some(known) = self.learnt.get_mut(&key) {
            *known = known.filter(|known| *known == host_qpn);
            return;
        }
        while self.learnt.len() >= MOST_LEARNT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.learnt.remove(&oldest);
        }
        self.learnt.insert(key, Some(host_qpn));
        self.order.push_back(key);
    }

    fn forget(&mut self, key: Key) -> u64 {
        match self.learnt.remove(&key) {
            Some(_) => {
                self.order.retain(|known| *known != key);
                1
            }
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests;
