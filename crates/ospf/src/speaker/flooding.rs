//! Flooding (RFC 2328 section 13): LSAs go to all neighbours, and again until these acknowledge them.

use super::{CircuitId, OspfDrop, Speaker, interface};
use crate::database::{Place, Stored};
use crate::lsa::{LSA_HEADER_LEN, Lsa, LsaHeader, MAX_AGE_S, Scope};
use crate::packet::{ALL_ROUTERS, Body, UPDATE_LEN};
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::cmp::Ordering;
use std::net::Ipv6Addr;

/// MinLSArrival, in seconds.
const MIN_ARRIVAL_S: u64 = 1;
/// InfTransDelay, in seconds: what an LSA ages on a link.
const TRANSMIT_DELAY_S: u16 = 1;

/// An LSA as a neighbour gets it.
pub(super) fn to_send(stored: &Stored, now: Instant) -> Lsa {
    stored.lsa().at_age(stored.age_s(now).saturating_add(TRANSMIT_DELAY_S).min(MAX_AGE_S))
}

impl Speaker {
    pub(super) fn take_update(&mut self, now: Instant, id: CircuitId, lsas: Vec<Lsa>) {
        for lsa in lsas {
            // One of them may end the exchange.
            if !self.neighbour(id).is_some_and(|neighbour| neighbour.takes_lsas()) {
                return self.count(OspfDrop::NeighbourState);
            }
            if let Err(reason) = self.take_lsa(now, id, lsa) {
                self.count(reason);
            }
        }
        self.send_requests(now, id);
    }

    fn take_lsa(&mut self, now: Instant, id: CircuitId, lsa: Lsa) -> Result<(), OspfDrop> {
        if !lsa.has_right_checksum() {
            return Err(OspfDrop::LsaChecksum);
        }
        let header = lsa.header();
        if header.kind.scope() == Scope::Reserved {
            return Err(OspfDrop::LsaScope);
        }
        let place = self.place(id, header.key());
        let present = self.database.get(place);
        let is_exchanging =
            self.circuits.iter().filter_map(|circuit| circuit.neighbour.as_ref()).any(|other| other.is_exchanging());
        if header.is_old() && present.is_none() && !is_exchanging {
            self.acknowledge(id, header);
            return Ok(());
        }
        let order = present.map_or(Ordering::Greater, |present| header.compare(&present.header(now)));
        match order {
            Ordering::Greater => {
                let is_soon = |present: &Stored| {
                    present.is_received && present.stored_at().after_ns(MIN_ARRIVAL_S * NS_PER_S) > now
                };
                if present.is_some_and(is_soon) {
                    return Err(OspfDrop::LsaTooSoon);
                }
                if present.is_none() && self.database.len() >= self.config.limit_lsas {
                    self.refuse(now);
                    return Err(OspfDrop::DatabaseFull);
                }
                self.install(now, place, lsa, true);
                self.flood(now, place, Some(id));
                self.acknowledge(id, header);
                if header.router == self.config.router {
                    self.counters.own_from_elsewhere += 1;
                    self.own.is_outdone(place, header.sequence);
                }
                Ok(())
            }
            Ordering::Equal => {
                let neighbour = self.neighbour_mut(id).ok_or(OspfDrop::NoNeighbour)?;
                if neighbour.requests.contains_key(&header.key()) {
                    return Err(self.refuse_requested(now, id));
                }
                // An acknowledgment, unless it is a repetition.
                if neighbour.retransmissions.remove(&place).is_none() {
                    self.acknowledge(id, header);
                }
                Ok(())
            }
            Ordering::Less => {
                let neighbour = self.neighbour(id).ok_or(OspfDrop::NoNeighbour)?;
                if neighbour.requests.contains_key(&header.key()) {
                    return Err(self.refuse_requested(now, id));
                }
                let newer = present.filter(|present| {
                    let header = present.header(now);
                    !(header.is_old() && header.sequence == i32::MAX)
                });
                if let (Some(newer), Some(address)) = (newer, self.neighbour(id).map(|neighbour| neighbour.address)) {
                    let lsa = to_send(newer, now);
                    self.send_update(id, address, vec![lsa]);
                }
                Ok(())
            }
        }
    }

    pub(super) fn take_acknowledgment(&mut self, now: Instant, id: CircuitId, headers: &[LsaHeader]) {
        for header in headers {
            let place = self.place(id, header.key());
            let is_present =
                self.database.get(place).is_some_and(|present| header.compare(&present.header(now)) == Ordering::Equal);
            if let Some(neighbour) = self.neighbour_mut(id).filter(|_| is_present) {
                neighbour.retransmissions.remove(&place);
            }
        }
    }

    /// Stores an LSA in place of an older one, which no neighbour has to acknowledge any more.
    pub(super) fn install(&mut self, now: Instant, place: Place, lsa: Lsa, is_received: bool) {
        for neighbour in self.circuits.iter_mut().filter_map(|circuit| circuit.neighbour.as_mut()) {
            neighbour.retransmissions.remove(&place);
        }
        self.database.put(now, place, lsa, is_received);
        self.changes.database = true;
    }

    /// Sends a stored LSA by all circuits of its scope, but for the one that it came by.
    pub(super) fn flood(&mut self, now: Instant, place: Place, from: Option<CircuitId>) {
        let Some(header) = self.database.get(place).map(|stored| stored.header(now)) else { return };
        let again = self.retransmission(now);
        for (number, circuit) in self.circuits.iter_mut().enumerate() {
            let id = CircuitId(number);
            let is_in_scope = place.circuit.is_none_or(|of| of == id);
            let Some(neighbour) = circuit.neighbour.as_mut().filter(|_| is_in_scope) else { continue };
            if !neighbour.takes_lsas() {
                continue;
            }
            if let Some(requested) = neighbour.requests.get(&place.key) {
                let order = header.compare(requested);
                if order != Ordering::Less && neighbour.requests.remove(&place.key).is_some() {
                    neighbour.requested = neighbour.requested.saturating_sub(1);
                }
                // The neighbour has that one, or a newer one.
                if order != Ordering::Greater {
                    continue;
                }
            }
            if from == Some(id) {
                continue;
            }
            neighbour.expect_acknowledgment(place, again);
            circuit.flood.insert(place);
        }
    }

    /// Sends LSAs again that the neighbour has not acknowledged.
    pub(super) fn retransmit(&mut self, now: Instant, id: CircuitId) {
        let again = self.retransmission(now);
        let Some(neighbour) = self.neighbour_mut(id) else { return };
        let address = neighbour.address;
        let due = neighbour.due(now, again);
        let lsas: Vec<Lsa> = due.iter().filter_map(|place| Some(to_send(self.database.get(*place)?, now))).collect();
        self.counters.retransmitted += lsas.len() as u64;
        self.send_update(id, address, lsas);
    }

    /// LSAs that have become too old are flooded once more, so that all routers remove them together.
    pub(super) fn age(&mut self, now: Instant) {
        for place in self.database.expired(now) {
            self.flush(now, place);
        }
    }

    /// Ends an LSA's time.
    pub(super) fn flush(&mut self, now: Instant, place: Place) {
        let Some(lsa) = self.database.get(place).map(|stored| stored.lsa().at_age(MAX_AGE_S)) else { return };
        self.install(now, place, lsa, false);
        self.flood(now, place, None);
    }

    /// Removes LSAs at MaxAge that all neighbours have, and sends what is to be sent.
    pub(super) fn settle(&mut self, now: Instant) {
        self.sweep();
        for id in (0..self.circuits.len()).map(CircuitId) {
            // Flooding by another circuit may have brought what was requested here.
            self.send_requests(now, id);
            let Some(circuit) = self.circuits.get_mut(id.0) else { continue };
            let (flood, acknowledgments) =
                (std::mem::take(&mut circuit.flood), std::mem::take(&mut circuit.acknowledgments));
            let lsas: Vec<Lsa> =
                flood.iter().filter_map(|place| Some(to_send(self.database.get(*place)?, now))).collect();
            self.send_update(id, ALL_ROUTERS, lsas);
            let count = (self.room(id) / LSA_HEADER_LEN).max(1);
            for part in acknowledgments.chunks(count) {
                self.send(id, ALL_ROUTERS, Body::Acknowledgment(part.to_vec()));
            }
        }
    }

    fn sweep(&mut self) {
        let neighbours = || self.circuits.iter().filter_map(|circuit| circuit.neighbour.as_ref());
        if self.database.old().is_empty() || neighbours().any(|neighbour| neighbour.is_exchanging()) {
            return;
        }
        let is_kept = |place: &Place| neighbours().any(|neighbour| neighbour.retransmissions.contains_key(place));
        let removed: Vec<Place> = self.database.old().iter().copied().filter(|place| !is_kept(place)).collect();
        for place in removed {
            self.database.remove(place);
            if place.key.router == self.config.router {
                // It may be wanted again.
                self.own.touch();
            }
        }
    }

    fn acknowledge(&mut self, id: CircuitId, header: LsaHeader) {
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.acknowledgments.push(header);
        }
    }

    fn refuse(&mut self, now: Instant) {
        if self.refused_at.replace(now).is_none() {
            self.own.touch();
        }
    }

    /// Sends LSAs, as many in each packet as it has room for; a longer one has a packet of its own, in fragments.
    pub(super) fn send_update(&mut self, id: CircuitId, to: Ipv6Addr, lsas: Vec<Lsa>) {
        let room = self.room(id).saturating_sub(UPDATE_LEN);
        let (mut part, mut octets) = (Vec::new(), 0);
        for lsa in lsas {
            if octets + lsa.octets().len() > room && !part.is_empty() {
                self.send(id, to, Body::Update(std::mem::take(&mut part)));
                octets = 0;
            }
            octets += lsa.octets().len();
            part.push(lsa);
        }
        if !part.is_empty() {
            self.send(id, to, Body::Update(part));
        }
    }

    /// The circuits with a full neighbour: number, metric, neighbour.
    pub(super) fn links(&self) -> Vec<crate::lsa::RouterLink> {
        let link = |(number, circuit): (usize, &super::Circuit)| {
            let neighbour = circuit.neighbour.as_ref().filter(|neighbour| neighbour.is_full())?;
            Some(crate::lsa::RouterLink {
                kind: crate::lsa::RouterLinkKind::PointToPoint,
                metric: circuit.config.metric,
                interface: interface(CircuitId(number)),
                neighbour_interface: neighbour.interface,
                neighbour: neighbour.router,
                end_x: circuit.config.end_x.clone(),
            })
        };
        self.circuits.iter().enumerate().filter_map(link).collect()
    }
}
