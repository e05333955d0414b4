//! What a node says upstream: responses and CNPs as packets to its parent or, at the root, to the source (D12, D13).

use super::state::GroupState;
use super::{Arrival, Node};
use crate::drop::DropReason;
use crate::event::Event;
use crate::headers::{AFTER_IPV6, IPV6};
use srdma_aggregation::{EpochTag, Response, Rule, Syndrome, UpstreamResponse};
use srdma_frame::{Frame, Pool};
use srdma_group::Parent;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::Computation;
use srdma_wire::transport::CnpView;
use srdma_wire::{AethView, Bth, Icrc, Instant, Ipv6, NextHeader, Opcode, Psn, Qpn, Udp, View};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// NAK code: invalid request.
const INVALID_REQUEST: u8 = 1;

/// Where a response goes: addresses, queue pair and adjacency.
struct Upward {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    qpn: Qpn,
    /// Outer source and destination, when the parent is not a neighbour.
    tunnel: Option<(Ipv6Addr, Ipv6Addr)>,
    adjacency: Option<u32>,
    to_host: bool,
    /// Of the UDP datagram.
    source_port: u16,
}

impl Node {
    /// The headend's own answer to a request that a group cannot carry. A requester takes a NAK for an ACK of
    /// everything before it, so that it goes only when the receivers have confirmed that (D24, D26).
    pub(super) fn refuse(&mut self, now: Instant, group: u32, psn: Psn, pool: &mut Pool) {
        let Some(state) = self.groups[group as usize].as_mut() else {
            return;
        };
        state.refused = Some(state.refused.map_or(psn, |earlier| earlier.serial_min(psn)));
        self.send_upstream(now, group, pool);
    }

    /// Time has come for a group: held NAKs (R5), CNP windows (MT-5.3.3-2).
    pub(super) fn group_tick(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        let Some(state) = self.groups[group as usize].as_mut() else {
            return;
        };
        state.acks.tick(now, &mut self.upstream);
        state.cnps.tick(now, &mut self.cnps);
        self.journal_tick(now, group);
        self.ask_for_evictions(now, group);
        self.send_cnps(now, group, pool);
        self.send_upstream(now, group, pool);
    }

    /// Tells the control plane which receivers hold the group back (D24, D25). What it has not fetched yet is not told
    /// twice.
    #[inline]
    pub(super) fn ask_for_evictions(&mut self, now: Instant, group: u32) {
        if self.groups[group as usize].as_ref().is_some_and(|state| state.acks.has_eviction_requests()) {
            self.tell_evictions(now, group);
        }
    }

    #[cold]
    fn tell_evictions(&mut self, now: Instant, group: u32) {
        let Some(GroupState { entry, acks, .. }) = self.groups[group as usize].as_mut() else {
            return;
        };
        let (mut wanted, id) = (Vec::new(), entry.id);
        acks.take_eviction_requests(now, |branch, cause| {
            let receiver = entry.branches.get(branch.index()).map(|branch| branch.responder);
            wanted.extend(receiver.map(|receiver| Event::EvictionWanted { group: id, receiver, cause }));
        });
        for event in wanted {
            if !self.events.contains(&event) {
                self.events.push(event);
            }
        }
        self.rearm(group);
    }

    pub(super) fn rearm(&mut self, group: u32) {
        let Some(state) = self.groups[group as usize].as_ref() else {
            return;
        };
        let owed = (!state.owed.is_empty()).then_some(Instant::ZERO);
        let deadline = [owed, state.acks.next_deadline(), state.cnps.next_deadline()].into_iter().flatten().min();
        self.timers.arm(group, deadline);
    }

    /// Sends what the reverse path has to say, as packets to the parent or, at the root, to the source (D12,
    /// MT-5.3.1-4).
    pub(super) fn send_upstream(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        self.add_refusal(group);
        let mut upstream = std::mem::take(&mut self.upstream);
        if let Some(state) = self.groups[group as usize].as_mut().filter(|state| !state.owed.is_empty()) {
            upstream.splice(0..0, state.owed.drain(..));
        }
        if let Some(up) = upstream.first().and_then(|_| self.upward(group)) {
            for statement in &upstream {
                let response = &statement.response;
                self.journal_statement(now, group, *statement);
                if let Some(state) = self.groups[group as usize].as_mut() {
                    match response.syndrome {
                        Syndrome::Ack => state.counters.acks_sent += 1,
                        Syndrome::SequenceNak | Syndrome::RnrNak(_) | Syndrome::Fatal(_) => {
                            state.counters.naks_sent += 1
                        }
                    }
                }
                let bth = Bth::new(Opcode::ACKNOWLEDGE, up.qpn, response.psn);
                let aeth: AethView = response.aeth().emit();
                self.send_response(now, &up, &bth, aeth.as_bytes(), pool);
            }
        }
        upstream.clear();
        self.upstream = upstream;
        self.rearm(group);
    }

    /// A refused request is answered once everything before it is confirmed; a repeated one sets it anew.
    fn add_refusal(&mut self, group: u32) {
        let Some(state) = self.groups[group as usize].as_mut() else {
            return;
        };
        if state.refused.is_some() && state.refused == state.acks.minimum_psn() && state.acks.unknown_branches() == 0 {
            let psn = state.refused.take().unwrap_or_default();
            let response = Response { psn, msn: state.acks.minimum_msn(), syndrome: Syndrome::Fatal(INVALID_REQUEST) };
            self.upstream.push(UpstreamResponse { response, rule: Rule::RefusedRequest });
        }
    }

    /// Sends CNPs upward; the source gets standard ones, their payload zero (MT-5.3.3-4, D29).
    pub(super) fn send_cnps(&mut self, now: Instant, group: u32, pool: &mut Pool) {
        let mut cnps = std::mem::take(&mut self.cnps);
        if let Some(up) = cnps.first().and_then(|_| self.upward(group)) {
            for cnp in &cnps {
                self.journal_cnp_up(now, group, *cnp);
                if let Some(state) = self.groups[group as usize].as_mut() {
                    state.counters.cnps_sent += 1;
                }
                let bth = Bth { becn: true, ..Bth::new(Opcode::CNP, up.qpn, Psn::new(0)) };
                let payload = CnpView::with_count(if up.to_host { 0 } else { cnp.count });
                self.send_response(now, &up, &bth, payload.as_bytes(), pool);
            }
        }
        cnps.clear();
        self.cnps = cnps;
    }

    fn upward(&self, group: u32) -> Option<Upward> {
        let entry = &self.groups[group as usize].as_ref()?.entry;
        let (loopback, proxy) = (self.config.loopback, entry.proxy.octets());
        Some(match entry.parent {
            Parent::Source(source) => Upward {
                source: entry.proxy,
                destination: source.address,
                qpn: source.qpn,
                tunnel: None,
                adjacency: self.resolve(&source.address.octets(), &proxy),
                to_host: true,
                source_port: 0xC000 | (source.qpn.get() & 0x3FFF) as u16,
            },
            Parent::Node { loopback: parent, sid } => Upward {
                source: loopback,
                destination: entry.proxy,
                qpn: entry.designated_qpn,
                tunnel: sid.map(|sid| (loopback, sid)),
                adjacency: self.resolve(&sid.unwrap_or(parent).octets(), &proxy),
                to_host: false,
                source_port: EpochTag::of(entry.epoch).port(),
            },
        })
    }

    /// Builds one response, ICRC included, and sends it.
    fn send_response(&mut self, now: Instant, up: &Upward, bth: &Bth, extended: &[u8], pool: &mut Pool) {
        const OUTER: usize = Ipv6::LEN;
        const MOST: usize = AFTER_IPV6 + OUTER + Udp::LEN + Bth::LEN + CnpView::LEN + Icrc::LEN;
        let arrival = Arrival::own(now);
        let Some(adjacency) = up.adjacency else {
            return self.count_drop(arrival, DropReason::NoRoute);
        };
        let udp_len = Udp::LEN + Bth::LEN + extended.len() + Icrc::LEN;
        let header = |source, destination, next_header, payload_length: usize| Ipv6 {
            traffic_class: 0,
            flow_label: 0,
            payload_length: payload_length as u16,
            next_header,
            hop_limit: 64,
            source,
            destination,
        };
        let ipv6 = header(up.source, up.destination, NextHeader::UDP, udp_len).emit();
        let udp =
            Udp { source_port: up.source_port, destination_port: ROCEV2_PORT, length: udp_len as u16, checksum: 0 }
                .emit();
        let bth = bth.emit();
        let mut computation = Computation::begin(&ipv6, 0, &udp, &bth);
        computation.update(extended);
        let icrc = computation.finish();
        let outer = up
            .tunnel
            .map(|(source, destination)| header(source, destination, NextHeader::IPV6, Ipv6::LEN + udp_len).emit());
        let pieces: [&[u8]; 7] = [
            &[0; IPV6],
            outer.as_ref().map_or(&[], |outer| outer.as_bytes()),
            ipv6.as_bytes(),
            udp.as_bytes(),
            bth.as_bytes(),
            extended,
            &icrc.0,
        ];
        let mut octets = [0; MOST];
        let mut len = 0;
        for piece in pieces {
            octets[len..len + piece.len()].copy_from_slice(piece);
            len += piece.len();
        }
        match Frame::small(&octets[..len], pool) {
            Some(frame) => self.transmit(arrival, frame, pool, adjacency),
            None => self.count_drop(arrival, DropReason::NoBuffer),
        }
    }
}
