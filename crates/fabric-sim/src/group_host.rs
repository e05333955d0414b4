//! A host of a group in end-to-end runs: [`Host`], whose memory holds what it has received and which the checker of the
//! invariants inspects, behind the NIC of the servers, which adds programs (PP-4-3), with PFC. `server` says why there
//! are two host models.

use super::nic::{Nic, Outer};
use super::server::{DATA_CLASS, SERVER_PORT};
use srdma_dataplane::Pauses;
use srdma_dataplane::headend::HeadendError;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_rc::EndpointConfig;
use srdma_sim::host::{Host, HostConfig};
use srdma_sim::network::SimElement;
use srdma_wire::{EtherType, Ethernet, EthernetView, Instant, Pfc, Qpn, View};
use std::net::Ipv6Addr;

/// A host of a group.
pub(super) struct GroupHost {
    /// The host behind the NIC.
    pub(super) host: Host,
    nic: Nic,
    pauses: Pauses,
    ethernet: EthernetView,
}

impl GroupHost {
    /// A host without queue pairs, with a link of this rate.
    pub(super) fn new(config: &HostConfig, endpoint: EndpointConfig, rate_bits_per_s: u64) -> Self {
        let ethernet = Ethernet { destination: config.gateway, source: config.mac, ethertype: EtherType::IPV6 };
        GroupHost {
            host: Host::with_endpoint(config, endpoint),
            nic: Nic::new(config.address),
            pauses: Pauses::new(rate_bits_per_s, 1 << DATA_CLASS, None),
            ethernet: ethernet.emit(),
        }
    }

    /// Adds outer headers to all packets to a queue pair of a peer.
    ///
    /// # Errors
    ///
    /// Those of the headend.
    pub(super) fn encapsulate(&mut self, peer: Ipv6Addr, qpn: Qpn, outer: Outer) -> Result<(), HeadendError> {
        self.nic.encapsulate(peer, qpn, outer)
    }

    /// Whether its data class is paused.
    pub(super) fn is_paused(&mut self, now: Instant) -> bool {
        self.pauses.paused(now) >> DATA_CLASS & 1 == 1
    }

    /// Handles a PFC frame; other frames, malformed PFC frames included, go to the host.
    fn handle_pause(&mut self, now: Instant, frame: &Frame, pool: &Pool) -> bool {
        let split = EthernetView::split(frame.head(pool)).ok();
        let control = split.filter(|(ethernet, _)| ethernet.ethertype() == EtherType::MAC_CONTROL);
        let pfc = control.and_then(|(_, octets)| Pfc::parse(octets).ok());
        pfc.inspect(|pfc| self.pauses.receive(now, pfc)).is_some()
    }
}

impl Element for GroupHost {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        let mut others = Vec::with_capacity(frames.len());
        for frame in frames.drain(..) {
            if self.handle_pause(now, &frame, pool) {
                frame.release(pool);
            } else {
                others.push(frame);
            }
        }
        self.host.receive(now, port, &mut others, pool);
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        self.pauses.paused(now);
        self.host.tick(now, pool);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.host.next_deadline().into_iter().chain(self.pauses.next_deadline()).min()
    }

    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        let paused = self.is_paused(now);
        let mut frame = if paused { self.host.dequeue_cnp(now, pool) } else { self.host.dequeue(now, port, pool) }?;
        self.nic.outgoing(now, &mut frame, &self.ethernet, pool);
        Some(frame)
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        debug_assert_eq!(SERVER_PORT, srdma_sim::host::HOST_PORT);
        self.host.take_ready(wake);
    }
}

impl SimElement for GroupHost {
    fn wants_driver_layout(&self) -> bool {
        false
    }
}
