//! Packets that come in: checks of all (RFC 2328 section 8.2, RFC 5340 section 4.2.2), and hellos (section 10.5).

use super::{CircuitId, OspfDrop, Speaker};
use crate::id::RouterId;
use crate::neighbour::{Neighbour, NeighbourState};
use crate::packet::{ALL_ROUTERS, Body, Hello, NoPacket, Packet, options};
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::net::Ipv6Addr;

impl From<NoPacket> for OspfDrop {
    fn from(reason: NoPacket) -> Self {
        match reason {
            NoPacket::Version(_) => OspfDrop::Version,
            NoPacket::Type(_) => OspfDrop::Type,
            NoPacket::Checksum => OspfDrop::Checksum,
            NoPacket::Malformed(_) => OspfDrop::Malformed,
        }
    }
}

impl Speaker {
    /// Takes a packet, from behind its IPv6 header on.
    pub fn receive(&mut self, now: Instant, id: CircuitId, source: Ipv6Addr, destination: Ipv6Addr, octets: &[u8]) {
        match self.take(now, id, source, destination, octets) {
            Ok(()) => self.counters.received += 1,
            Err(reason) => self.count(reason),
        }
        self.settle(now);
    }

    pub(super) fn count(&mut self, reason: OspfDrop) {
        *self.drops.entry(reason).or_default() += 1;
    }

    fn take(
        &mut self,
        now: Instant,
        id: CircuitId,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        octets: &[u8],
    ) -> Result<(), OspfDrop> {
        let circuit = self.circuits.get(id.0).filter(|circuit| circuit.is_up).ok_or(OspfDrop::CircuitDown)?;
        if !source.is_unicast_link_local() {
            return Err(OspfDrop::NotLinkLocal);
        }
        if destination != ALL_ROUTERS && destination != circuit.config.address {
            return Err(OspfDrop::OtherDestination);
        }
        let packet = Packet::parse(octets, source, destination)?;
        let wrong = match (packet.area, packet.instance, packet.router) {
            (1.., ..) => Some(OspfDrop::OtherArea),
            (_, 1.., _) => Some(OspfDrop::OtherInstance),
            (.., router) if router == self.config.router => Some(OspfDrop::OwnRouterId),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if let Body::Hello(hello) = packet.body {
            return self.take_hello(now, id, source, packet.router, &hello);
        }
        let neighbour = circuit.neighbour.as_ref().filter(|neighbour| neighbour.router == packet.router);
        let state = neighbour.ok_or(OspfDrop::NoNeighbour)?.state;
        if !matches!(packet.body, Body::Description(_)) && state < NeighbourState::Exchange {
            return Err(OspfDrop::NeighbourState);
        }
        match packet.body {
            Body::Hello(_) => Ok(()),
            Body::Description(description) => self.take_description(now, id, description),
            Body::Request(keys) => self.take_request(now, id, &keys),
            Body::Update(lsas) => {
                self.take_update(now, id, lsas);
                Ok(())
            }
            Body::Acknowledgment(headers) => {
                self.take_acknowledgment(now, id, &headers);
                Ok(())
            }
        }
    }

    fn take_hello(
        &mut self,
        now: Instant,
        id: CircuitId,
        source: Ipv6Addr,
        router: RouterId,
        hello: &Hello,
    ) -> Result<(), OspfDrop> {
        let timers = self.config.timers;
        let wrong = [
            (hello.options & options::AT != 0, OspfDrop::Authenticated),
            (hello.hello_s != timers.hello_s, OspfDrop::HelloInterval),
            (hello.dead_s != timers.dead_s, OspfDrop::DeadInterval),
            (hello.options & (options::E | options::N) != options::E, OspfDrop::AreaType),
        ];
        if let Some((_, reason)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(reason);
        }
        let until = now.after_ns(u64::from(timers.dead_s) * NS_PER_S);
        match self.neighbour(id).map(|present| (present.router == router, present.address == source)) {
            Some((true, _)) => {}
            // The same interface with another id: the router before is gone.
            Some((false, true)) => self.lose_neighbour(id),
            Some((false, false)) => return Err(OspfDrop::OtherNeighbour),
            None => {}
        }
        let Some(circuit) = self.circuits.get_mut(id.0) else { return Err(OspfDrop::CircuitDown) };
        let neighbour = match &mut circuit.neighbour {
            Some(neighbour) => neighbour,
            none => {
                // It learns of us at once.
                circuit.hello_at = now;
                none.insert(Neighbour::new(router, source, hello.interface, until))
            }
        };
        neighbour.until = until;
        if (neighbour.address, neighbour.interface) != (source, hello.interface) {
            (neighbour.address, neighbour.interface) = (source, hello.interface);
            self.changes.neighbours = true;
            self.own.touch();
        }
        let is_heard = hello.neighbours.contains(&self.config.router);
        match (neighbour.state, is_heard) {
            (NeighbourState::Init, true) => self.begin_exchange(now, id),
            (NeighbourState::Init, false) => {}
            (
                NeighbourState::ExStart | NeighbourState::Exchange | NeighbourState::Loading | NeighbourState::Full,
                true,
            ) => {}
            (
                NeighbourState::ExStart | NeighbourState::Exchange | NeighbourState::Loading | NeighbourState::Full,
                false,
            ) => {
                self.set_state(id, Some(NeighbourState::Init));
                // It may have restarted, and waits for a hello that lists it.
                if let Some(circuit) = self.circuits.get_mut(id.0) {
                    circuit.hello_at = now;
                }
            }
        }
        Ok(())
    }
}
