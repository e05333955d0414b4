//! Path signals in received packets: congestion, loss and delay of the paths of packets sent (D84). Packets are only
//! read: hosts get them unchanged.

use super::Headend;
use super::flow::key_of_connection;
use crate::headers::IPV6;
use srdma_frame::{Frame, Pool};
use srdma_steering::{Signal, Subject};
use srdma_wire::fast_cnp::FastCnp;
use srdma_wire::ipv6::Ecn;
use srdma_wire::rocev2::Packet;
use srdma_wire::{Instant, Ipv6View, NextHeader, Opcode, Syndrome, View};

/// Outer headers that are looked behind.
const MAX_TUNNELS: usize = 2;

/// Kinds of received packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Not for the headend: it goes where it would without one.
    Passing,
    /// A probe of the headend's own: it has done its work.
    Probe,
}

impl Headend {
    /// Reads the path signals of a received packet, in tunnels or not. A probe of the headend itself is consumed; every
    /// other packet is forwarded unchanged.
    #[inline]
    pub fn incoming(&mut self, now: Instant, frame: &Frame, pool: &Pool) -> Incoming {
        let Some((octets, skipped)) = innermost(frame.head(pool)) else { return Incoming::Passing };
        if let Some(probes) = &mut self.probes
            && let Some(packet) = probes.take(octets)
        {
            probes.answer(now, &packet, &mut self.steering, &mut self.counters);
            return Incoming::Probe;
        }
        if let Ok(packet) = Packet::parse(octets, frame.len() - skipped) {
            let further = || frame.body().iter().map(|segment| segment.octets(pool)).chain([frame.tail()]);
            self.listen(now, &packet, further);
        }
        Incoming::Passing
    }

    #[inline]
    fn listen<'a, I>(&mut self, now: Instant, packet: &Packet<'a>, further: impl Fn() -> I)
    where
        I: Iterator<Item = &'a [u8]>,
    {
        let traffic_class = packet.ipv6.traffic_class();
        self.counters.marked_received += u64::from(Ecn::of_traffic_class(traffic_class) == Ecn::Ce);
        self.counters.trimmed_received += u64::from(self.config.trimmed_dscp == Some(traffic_class >> 2));
        let is_whole = || packet.icrc(further()).is_ok_and(|check| check.is_good());
        match packet.bth.opcode() {
            Opcode::CNP if is_whole() => self.hear_cnp(now, packet),
            Opcode::CNP => self.counters.damaged += 1,
            Opcode::ACKNOWLEDGE => match packet.extended.aeth().map(|aeth| aeth.value().syndrome) {
                Some(Syndrome::SEQUENCE_ERROR) if is_whole() => self.hear_nak(now, packet),
                Some(Syndrome::SEQUENCE_ERROR) => self.counters.damaged += 1,
                Some(Syndrome::Ack(_)) => self.hear_ack(now, packet),
                Some(Syndrome::Nak(_) | Syndrome::RnrNak(_) | Syndrome::Reserved(_)) | None => {}
            },
            _ => {}
        }
    }

    /// A CNP, or a Fast CNP, whose source is the node to avoid (FC-4-8).
    fn hear_cnp(&mut self, now: Instant, packet: &Packet<'_>) {
        let (host, source) = (packet.ipv6.destination_octets(), packet.ipv6.source());
        let dest_qpn = packet.bth.dest_qpn();
        match FastCnp::find(packet, self.config.fast_cnp_types) {
            Err(_) => self.counters.damaged += 1,
            Ok(Some(fast_cnp)) if fast_cnp.only_returns_trace(source) => {}
            Ok(Some(fast_cnp)) => {
                let flow = key_of_connection(host, &fast_cnp.original_destination.octets(), dest_qpn);
                let signal = if fast_cnp.is_from_switch(source) {
                    self.counters.fast_cnps += 1;
                    Signal::FastCnp { avoid: source }
                } else {
                    self.counters.cnps += 1;
                    Signal::Cnp
                };
                self.steering.handle_signal(now, Subject::Flow(flow), signal);
            }
            Ok(None) => {
                self.counters.cnps += 1;
                self.hear_of(now, packet, Signal::Cnp);
            }
        }
    }

    fn hear_nak(&mut self, now: Instant, packet: &Packet<'_>) {
        self.counters.naks += 1;
        self.hear_of(now, packet, Signal::Loss);
    }

    fn hear_of(&mut self, now: Instant, packet: &Packet<'_>, signal: Signal) {
        let (host, peer) = (packet.ipv6.destination_octets(), packet.ipv6.source_octets());
        match self.answers.flow_of(host, peer, packet.bth.dest_qpn()) {
            Some(flow) => {
                self.steering.handle_signal(now, Subject::Flow(flow), signal);
            }
            None => self.counters.unmatched += 1,
        }
    }

    #[inline]
    fn hear_ack(&mut self, now: Instant, packet: &Packet<'_>) {
        let (host, peer) = (packet.ipv6.destination_octets(), packet.ipv6.source_octets());
        let bth = packet.bth;
        if let Some((flow, ns)) = self.answers.acknowledge(now, host, peer, bth.dest_qpn(), bth.psn()) {
            self.counters.acks_timed += 1;
            if self.config.steering.limits.two_way_ns.is_some() {
                self.steering.handle_signal(now, Subject::Flow(flow), Signal::TwoWayLatency { ns });
            }
        }
    }
}

/// The innermost IPv6 packet of a frame whose first segment is `head`, and how many octets stand before it.
#[inline]
fn innermost(head: &[u8]) -> Option<(&[u8], usize)> {
    let mut octets = head.get(IPV6..)?;
    for _ in 0..=MAX_TUNNELS {
        let (ipv6, after) = Ipv6View::split(octets).ok()?;
        let inner = match ipv6.next_header() {
            NextHeader::UDP => return Some((octets, head.len() - octets.len())),
            NextHeader::IPV6 => after,
            next_header => match behind_extensions(next_header, after) {
                Some((NextHeader::IPV6, inner)) => inner,
                Some(_) => return Some((octets, head.len() - octets.len())),
                None => return None,
            },
        };
        octets = inner;
    }
    None
}

#[cold]
fn behind_extensions(next_header: NextHeader, after: &[u8]) -> Option<(NextHeader, &[u8])> {
    let mut headers = srdma_wire::extension::ExtensionHeaders::new(next_header, after);
    for header in headers.by_ref() {
        header.ok()?;
    }
    Some((headers.next_header(), headers.rest()))
}
