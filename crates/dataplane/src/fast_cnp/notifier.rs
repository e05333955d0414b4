//! The decision about one packet, and the Fast CNP for it.

use super::capability::Incapable;
use super::flows::{FlowKey, Flows};
use super::rates::Rates;
use super::{Connections, FastCnpConfig, FastCnpCounters, Fields};
use crate::security::Prefixes;
use crate::token_bucket::TokenBucket;
use srdma_wire::cm::CmPacket;
use srdma_wire::fast_cnp::{FastCnp, FastCnpValue, OptionTypes, can_carry};
use srdma_wire::{CnpView, Instant, Qpn};
use std::net::Ipv6Addr;

/// State of Fast CNP at a node.
#[derive(Debug)]
pub struct Notifier {
    config: FastCnpConfig,
    senders: Prefixes,
    capable: Prefixes,
    switches: Prefixes,
    hosts_inside: Prefixes,
    translated: Prefixes,
    incapable: Incapable,
    flows: Flows,
    pub(super) rates: Option<Rates>,
    bucket: TokenBucket,
    pub(crate) connections: Connections,
    pub(crate) counters: FastCnpCounters,
}

/// Decision about a packet that meets congestion.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'h> {
    /// Its sender takes no notifications: it is marked or not as without Fast CNP.
    None,
    /// A limit refuses, or there is no way to its sender: it is marked instead (D45, D63).
    Refused,
    /// Its sender supports Fast CNP and was notified within the interval; no further notification is needed.
    NotifiedBefore,
    /// Notify its sender.
    Notify(Notice<'h>),
}

/// Destination and content of a notification.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'h> {
    /// Fields of the packet.
    pub fields: Fields<'h>,
    /// The packet is marked as well: its sender may not understand (FC-4-5).
    pub and_mark: bool,
}

impl Notifier {
    /// With nothing learnt.
    pub fn new(config: FastCnpConfig) -> Self {
        Notifier {
            senders: Prefixes::new(&config.senders),
            capable: Prefixes::new(&config.capable),
            switches: Prefixes::new(&config.switches),
            hosts_inside: Prefixes::new(&config.hosts_inside),
            translated: Prefixes::new(&config.translated),
            incapable: Incapable::default(),
            flows: Flows::new(u64::try_from(config.interval.as_nanos()).unwrap_or(u64::MAX)),
            rates: config.drain.map(|drain| Rates::new(config.interval, drain)),
            bucket: TokenBucket::new(config.per_second, config.at_once),
            connections: Connections::default(),
            counters: FastCnpCounters::default(),
            config,
        }
    }

    /// Another configuration. Learnt state and counters stay.
    pub(crate) fn reconfigured(self, config: FastCnpConfig) -> Self {
        let Notifier { incapable, connections, counters, .. } = self;
        Notifier { incapable, connections, counters, ..Notifier::new(config) }
    }

    pub(crate) fn config(&self) -> &FastCnpConfig {
        &self.config
    }

    /// Whether a host behind the node may need translation.
    pub(crate) fn translates_any(&self) -> bool {
        !self.config.translated.is_empty()
    }

    pub(crate) fn translates(&self, host: &[u8; 16]) -> bool {
        self.translated.contain(host)
    }

    /// Whether a host is known to process Fast CNPs (FC-4-6).
    pub(crate) fn is_capable(&self, host: &[u8; 16]) -> bool {
        self.capable.contain(host)
    }

    /// Whether a border lets Fast CNPs of a host pass (FC-5-1).
    pub(crate) fn is_inside(&self, host: &[u8; 16]) -> bool {
        self.hosts_inside.contain(host)
    }

    /// Whether a Fast CNP from this address is accepted: a switch's, or the receiver's own (FC-4-8, FC-5-3).
    pub(crate) fn accepts(&self, source: Ipv6Addr, fast_cnp: &FastCnp<'_>) -> bool {
        !fast_cnp.is_from_switch(source) || self.switches.contain(&source.octets())
    }

    /// Decides about a packet that meets congestion: its sender is notified, or it is marked (FC-4-5, FC-4-6, D45). A
    /// notice consumes a token and the flow's interval.
    #[inline]
    pub fn decide<'h>(&mut self, now: Instant, head: &'h [u8]) -> Decision<'h> {
        self.decide_where(now, head, |_| true)
    }

    /// The same at a node without routes to all senders: without a route, the packet is marked.
    #[inline]
    pub(crate) fn decide_where<'h>(
        &mut self,
        now: Instant,
        head: &'h [u8],
        has_way: impl FnOnce(&Fields<'h>) -> bool,
    ) -> Decision<'h> {
        let Some(fields) = Fields::of(head) else { return Decision::None };
        if !self.senders.contain(fields.source) {
            self.counters.not_a_sender += 1;
            return Decision::None;
        }
        if self.incapable.contains(now, fields.source) {
            self.counters.incapable += 1;
            return Decision::None;
        }
        if !has_way(&fields) {
            self.counters.unknown_ingress += 1;
            return Decision::Refused;
        }
        let is_capable = self.capable.contain(fields.source);
        let Some(vacancy) = self.flows.vacancy(now, FlowKey::of(&fields)) else {
            self.counters.refused_by_flow += 1;
            let is_enough = is_capable && !self.config.mark_notified;
            return if is_enough { Decision::NotifiedBefore } else { Decision::Refused };
        };
        if !self.bucket.take(now) {
            self.counters.refused_by_node += 1;
            return Decision::Refused;
        }
        vacancy.fill();
        let and_mark = self.config.mark_unknown && !is_capable;
        Decision::Notify(Notice { fields, and_mark })
    }

    /// Writes the Fast CNP for a packet with these fields to the front of `into`, from the IPv6 header on, and returns
    /// its length. A trace that does not fit is left out (D41). `payload` may notify a rate (D240).
    #[inline]
    pub fn write(
        &mut self,
        fields: &Fields<'_>,
        loopback: Ipv6Addr,
        types: OptionTypes,
        payload: &CnpView,
        into: &mut [u8],
    ) -> Option<usize> {
        let Fields { source, destination, source_port, dest_qpn, trace, outer_source: _ } = *fields;
        let carried = trace.filter(|trace| can_carry(trace.len()));
        let value = FastCnpValue {
            source: loopback,
            destination: (*source).into(),
            traffic_class: FastCnpValue::TRAFFIC_CLASS,
            hop_limit: FastCnpValue::HOP_LIMIT,
            source_port,
            dest_qpn,
            original_destination: (*destination).into(),
            trace: carried,
        };
        let len = value.emit_with(types, payload, into)?;
        self.counters.sent_with_trace += u64::from(carried.is_some());
        self.counters.sent_with_rate += u64::from(payload.rate_mbit_per_s().is_some());
        self.counters.trace_too_long += u64::from(trace.is_some() && carried.is_none());
        Some(len)
    }

    /// Watches an RDMA CM message pass (D48).
    pub(crate) fn observe(&mut self, now: Instant, packet: &CmPacket) {
        let translated = &self.translated;
        let change = self.connections.observe(now, packet, |host| translated.contain(&host.octets()));
        self.counters.connections_learnt += change.learnt;
        self.counters.connections_ended += change.ended;
    }

    /// A host has answered a Fast CNP of this flow with an ICMPv6 error (D47). Accepted only if the flow was notified.
    pub(crate) fn refused(&mut self, now: Instant, host: &[u8; 16], destination: &[u8; 16], qpn: Qpn) -> bool {
        let was_notified = self.flows.was_notified(FlowKey::new(host, destination, qpn));
        if was_notified {
            self.incapable.learn(*host, now + self.config.incapable_for);
            self.counters.refusals += 1;
        }
        was_notified
    }
}

#[cfg(test)]
mod tests;
