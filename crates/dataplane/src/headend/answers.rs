//! Map from responses to the flows that they belong to.
//!
//! A packet names the queue pair of its destination alone: requests that of the responder, responses that of the
//! requester. The two are paired by configuration, by the PSNs of acknowledgements, or because two hosts have a single
//! flow.
//!
//! ```text
//! request  host → peer, peer's queue pair, PSN  ─┐ the same PSN: the host's queue pair is that flow's
//! answer   peer → host, host's queue pair, PSN  ─┘
//! ```
//!
//! All tables but the configured one are of fixed size: an entry that another needs is lost.

use super::flow::{Leaving, Request, key_of_connection, mix};
use crate::fast_cnp::Connection;
use srdma_steering::FlowKey;
use srdma_wire::{Instant, Psn, Qpn};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A request whose acknowledgement is expected.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    tag: u64,
    flow: u64,
    sent: Instant,
}

/// Something about two hosts, and the flow that it means.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    tag: u64,
    /// 0: several.
    flow: u64,
}

/// Pairs responses with flows.
#[derive(Debug)]
pub(super) struct Answers {
    /// Host, peer, host's queue pair → peer's queue pair.
    configured: BTreeMap<(Ipv6Addr, Ipv6Addr, Qpn), Qpn>,
    expected: Box<[Expected]>,
    /// By host, peer and the host's queue pair.
    learnt: Box<[Known]>,
    /// By host and peer.
    single: Box<[Known]>,
}

const OF_PSN: u64 = 1 << 41;
const OF_QPN: u64 = 1 << 42;
const OF_HOSTS: u64 = 1 << 43;

impl Answers {
    /// For about so many flows at once, a power of two.
    pub(super) fn new(flows: usize) -> Self {
        let places = flows.next_power_of_two();
        Answers {
            configured: BTreeMap::new(),
            expected: vec![Expected::default(); places].into_boxed_slice(),
            learnt: vec![Known::default(); places].into_boxed_slice(),
            single: vec![Known::default(); places].into_boxed_slice(),
        }
    }

    pub(super) fn configure(&mut self, connection: Connection) {
        let Connection { host, host_qpn, peer, peer_qpn } = connection;
        self.configured.insert((host, peer, host_qpn), peer_qpn);
    }

    /// Forgets what was configured about a queue pair of a peer; whether anything was.
    pub(super) fn forget(&mut self, host: Ipv6Addr, peer: Ipv6Addr, peer_qpn: Qpn) -> bool {
        let before = self.configured.len();
        self.configured.retain(|known, qpn| (known.0, known.1, *qpn) != (host, peer, peer_qpn));
        self.configured.len() < before
    }

    /// Takes the configured connections, for a successor.
    pub(super) fn take_configured(&mut self) -> BTreeMap<(Ipv6Addr, Ipv6Addr, Qpn), Qpn> {
        std::mem::take(&mut self.configured)
    }

    pub(super) fn adopt(&mut self, configured: BTreeMap<(Ipv6Addr, Ipv6Addr, Qpn), Qpn>) {
        self.configured = configured;
    }

    /// A flow of a connection has its first packet.
    #[cold]
    pub(super) fn begin(&mut self, leaving: &Leaving<'_>) {
        let tag = mix(leaving.source, leaving.destination, OF_HOSTS).get();
        let place = place(&mut self.single, tag);
        let is_single = place.tag != tag || place.flow == leaving.key.get();
        *place = Known { tag, flow: if is_single { leaving.key.get() } else { 0 } };
    }

    /// A request that needs an answer is sent. A retransmission is not timed: its answer may be that of the first
    /// transmission.
    #[inline]
    pub(super) fn expect(&mut self, now: Instant, leaving: &Leaving<'_>, request: Request, is_again: bool) {
        let tag = mix(leaving.source, leaving.destination, OF_PSN | u64::from(request.psn.get())).get();
        let flow = if is_again { 0 } else { leaving.key.get() };
        *place(&mut self.expected, tag) = Expected { tag, flow, sent: now };
    }

    /// An acknowledgement has come: its flow, and how long ago the request was sent that it answers.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        host: &[u8; 16],
        peer: &[u8; 16],
        host_qpn: Qpn,
        psn: Psn,
    ) -> Option<(FlowKey, u64)> {
        let tag = mix(host, peer, OF_PSN | u64::from(psn.get())).get();
        let expected = place(&mut self.expected, tag);
        if expected.tag != tag || expected.flow == 0 {
            return None;
        }
        let Expected { flow, sent, .. } = std::mem::take(expected);
        let tag = mix(host, peer, OF_QPN | u64::from(host_qpn.get())).get();
        *place(&mut self.learnt, tag) = Known { tag, flow };
        Some((FlowKey::new(flow), u64::try_from(now.since(sent).as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The flow of which a peer answers to this queue pair of a host.
    pub(super) fn flow_of(&mut self, host: &[u8; 16], peer: &[u8; 16], host_qpn: Qpn) -> Option<FlowKey> {
        if let Some(peer_qpn) = self.configured.get(&((*host).into(), (*peer).into(), host_qpn)) {
            return Some(key_of_connection(host, peer, *peer_qpn));
        }
        let of_qpn = mix(host, peer, OF_QPN | u64::from(host_qpn.get())).get();
        let of_hosts = mix(host, peer, OF_HOSTS).get();
        let learnt = *place(&mut self.learnt, of_qpn);
        let single = *place(&mut self.single, of_hosts);
        let found = [(of_qpn, learnt), (of_hosts, single)].into_iter().find(|(tag, known)| known.tag == *tag)?.1;
        (found.flow != 0).then(|| FlowKey::new(found.flow))
    }
}

/// The place of a tag in a table, whose length is a power of two.
#[inline]
fn place<T>(table: &mut [T], tag: u64) -> &mut T {
    let index = (tag >> 24) as usize & (table.len() - 1);
    &mut table[index]
}
