//! The exchange of databases with a neighbour (RFC 2328 sections 10.6 to 10.9).

use super::{CircuitId, OspfDrop, Speaker};
use crate::lsa::{LSA_HEADER_LEN, LsaHeader, LsaKey, Scope};
use crate::neighbour::{Neighbour, NeighbourState};
use crate::packet::{ALL_ROUTERS, Body, DESCRIPTION_LEN, Description, REQUEST_LEN, options};
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_MS, NS_PER_S};
use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};

impl Speaker {
    /// Begins to negotiate who is the master.
    pub(super) fn begin_exchange(&mut self, now: Instant, id: CircuitId) {
        self.set_state(id, Some(NeighbourState::ExStart));
        let Some(neighbour) = self.neighbour_mut(id) else { return };
        let exchange = &mut neighbour.exchange;
        exchange.is_master = true;
        exchange.sequence = match exchange.sequence {
            0 => (now.as_ns() / NS_PER_MS) as u32 | 1,
            before => before.wrapping_add(1),
        };
        let (is_first, sequence) = (true, exchange.sequence);
        let description = self.description(id, is_first, true, true, sequence, Vec::new());
        self.send_description(now, id, description);
    }

    /// The exchange begins anew, for a reason.
    fn begin_anew(&mut self, now: Instant, id: CircuitId, reason: OspfDrop) -> OspfDrop {
        self.counters.restarted_exchanges += 1;
        self.begin_exchange(now, id);
        reason
    }

    pub(super) fn take_description(
        &mut self,
        now: Instant,
        id: CircuitId,
        description: Description,
    ) -> Result<(), OspfDrop> {
        if description.options & options::AT != 0 {
            return Err(OspfDrop::Authenticated);
        }
        let own_mtu = self.circuits.get(id.0).map_or(0, |circuit| circuit.config.mtu);
        if description.mtu > own_mtu {
            return Err(OspfDrop::Mtu);
        }
        // The neighbour has heard us: its hello that says so is late or lost.
        if self.neighbour(id).is_some_and(|neighbour| neighbour.state == NeighbourState::Init) {
            self.begin_exchange(now, id);
        }
        let own = self.config.router;
        let is_repeated =
            |neighbour: &Neighbour| neighbour.exchange.taken.as_ref() == Some(&without_headers(&description));
        // The neighbour begins anew, and so does this router. The description belongs to the new exchange.
        let is_initial =
            description.is_first && description.has_more && description.is_master && description.headers.is_empty();
        let is_anew = |neighbour: &Neighbour| neighbour.takes_lsas() && !is_repeated(neighbour);
        if is_initial && self.neighbour(id).is_some_and(is_anew) {
            self.counters.restarted_exchanges += 1;
            self.begin_exchange(now, id);
        }
        let neighbour = self.neighbour(id).ok_or(OspfDrop::NoNeighbour)?;
        let exchange = &neighbour.exchange;
        let is_repeated = is_repeated(neighbour);
        match neighbour.state {
            NeighbourState::Init => Err(OspfDrop::NeighbourState),
            NeighbourState::ExStart => {
                let is_from_master = is_initial && neighbour.router > own;
                let is_from_slave = !description.is_first
                    && !description.is_master
                    && description.sequence == exchange.sequence
                    && neighbour.router < own;
                match (is_from_master, is_from_slave) {
                    (true, _) => {
                        self.negotiated(now, id, false);
                        self.answer_as_slave(now, id, &description);
                        Ok(())
                    }
                    (false, true) => {
                        self.negotiated(now, id, true);
                        self.go_on_as_master(now, id, &description)
                    }
                    // The first description of a slave to be, or one from before.
                    (false, false) => Err(OspfDrop::NeighbourState),
                }
            }
            NeighbourState::Exchange | NeighbourState::Loading | NeighbourState::Full if is_repeated => {
                if !exchange.is_master {
                    self.repeat_description(id);
                }
                Ok(())
            }
            NeighbourState::Exchange => {
                let expected = if exchange.is_master { exchange.sequence } else { exchange.sequence.wrapping_add(1) };
                let fits = !description.is_first
                    && description.is_master != exchange.is_master
                    && description.sequence == expected;
                match (fits, exchange.is_master) {
                    (false, _) => Err(self.begin_anew(now, id, OspfDrop::DescriptionSequence)),
                    (true, true) => self.go_on_as_master(now, id, &description),
                    (true, false) => {
                        self.note_headers(now, id, &description)?;
                        self.answer_as_slave(now, id, &description);
                        Ok(())
                    }
                }
            }
            NeighbourState::Loading | NeighbourState::Full => {
                Err(self.begin_anew(now, id, OspfDrop::DescriptionSequence))
            }
        }
    }

    /// Who is the master is known: the database is described as it is now. LSAs at MaxAge are sent at once instead.
    fn negotiated(&mut self, now: Instant, id: CircuitId, is_master: bool) {
        self.set_state(id, Some(NeighbourState::Exchange));
        let mut summary = VecDeque::new();
        let mut old = Vec::new();
        for (place, stored) in self.database.iter() {
            if place.circuit.is_some_and(|of| of != id) {
                continue;
            }
            let header = stored.header(now);
            if header.is_old() { old.push(place) } else { summary.push_back(header) }
        }
        let again = self.retransmission(now);
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        let Some(neighbour) = &mut circuit.neighbour else { return };
        neighbour.exchange.is_master = is_master;
        neighbour.exchange.summary = summary;
        for place in old {
            neighbour.expect_acknowledgment(place, again);
            circuit.flood.insert(place);
        }
    }

    /// A description of the slave: it answers the last one of the master, this router, which sends the next.
    fn go_on_as_master(&mut self, now: Instant, id: CircuitId, description: &Description) -> Result<(), OspfDrop> {
        self.note_headers(now, id, description)?;
        let Some(neighbour) = self.neighbour_mut(id) else { return Ok(()) };
        let exchange = &mut neighbour.exchange;
        let had_more = exchange.sent.as_ref().is_some_and(|sent| sent.has_more);
        exchange.summary.drain(..exchange.in_flight);
        exchange.in_flight = 0;
        if !had_more && !description.has_more {
            exchange.resend_at = None;
            self.end_exchange(now, id);
            return Ok(());
        }
        exchange.sequence = exchange.sequence.wrapping_add(1);
        self.send_part(now, id);
        Ok(())
    }

    /// A description of the master, which gets an answer of the same number.
    fn answer_as_slave(&mut self, now: Instant, id: CircuitId, description: &Description) {
        let Some(neighbour) = self.neighbour_mut(id) else { return };
        let exchange = &mut neighbour.exchange;
        exchange.sequence = description.sequence;
        exchange.taken = Some(without_headers(description));
        exchange.summary.drain(..exchange.in_flight);
        let has_more = self.send_part(now, id);
        if !has_more && !description.has_more {
            self.end_exchange(now, id);
        }
    }

    /// Sends the next part of the summary; whether more follows.
    fn send_part(&mut self, now: Instant, id: CircuitId) -> bool {
        let count = (self.room(id).saturating_sub(DESCRIPTION_LEN) / LSA_HEADER_LEN).max(1);
        let Some(neighbour) = self.neighbour_mut(id) else { return false };
        let exchange = &mut neighbour.exchange;
        let headers: Vec<LsaHeader> = exchange.summary.iter().take(count).copied().collect();
        exchange.in_flight = headers.len();
        let has_more = exchange.summary.len() > headers.len();
        let (is_master, sequence) = (exchange.is_master, exchange.sequence);
        let description = self.description(id, false, has_more, is_master, sequence, headers);
        self.send_description(now, id, description);
        has_more
    }

    fn description(
        &self,
        id: CircuitId,
        is_first: bool,
        has_more: bool,
        is_master: bool,
        sequence: u32,
        headers: Vec<LsaHeader>,
    ) -> Description {
        let mtu = self.circuits.get(id.0).map_or(0, |circuit| circuit.config.mtu);
        Description { options: self.options(), mtu, is_first, has_more, is_master, sequence, headers }
    }

    fn send_description(&mut self, now: Instant, id: CircuitId, description: Description) {
        let again = self.retransmission(now);
        if let Some(neighbour) = self.neighbour_mut(id) {
            let exchange = &mut neighbour.exchange;
            exchange.sent = Some(description.clone());
            // A slave answers, and sends nothing by itself.
            exchange.resend_at = description.is_master.then_some(again);
        }
        self.send(id, ALL_ROUTERS, Body::Description(description));
    }

    fn repeat_description(&mut self, id: CircuitId) {
        let sent = self.neighbour(id).and_then(|neighbour| neighbour.exchange.sent.clone());
        if let Some(description) = sent {
            self.send(id, ALL_ROUTERS, Body::Description(description));
        }
    }

    /// Sends the last description of a master again, if no answer has come.
    pub(super) fn resend_description(&mut self, now: Instant, id: CircuitId) {
        let again = self.retransmission(now);
        let Some(neighbour) = self.neighbour_mut(id) else { return };
        if neighbour.exchange.resend_at.is_some_and(|at| at <= now) {
            neighbour.exchange.resend_at = Some(again);
            self.repeat_description(id);
        }
    }

    /// Notes which LSAs of a description are newer than those here.
    fn note_headers(&mut self, now: Instant, id: CircuitId, description: &Description) -> Result<(), OspfDrop> {
        if description.headers.iter().any(|header| header.kind.scope() == Scope::Reserved) {
            return Err(self.begin_anew(now, id, OspfDrop::DescriptionSequence));
        }
        for header in &description.headers {
            let present = self.database.get(self.place(id, header.key())).map(|stored| stored.header(now));
            let is_newer = present.is_none_or(|present| header.compare(&present) == Ordering::Greater);
            if let Some(neighbour) = self.neighbour_mut(id).filter(|_| is_newer) {
                neighbour.requests.insert(header.key(), *header);
            }
        }
        // More than fit into the database.
        if self.neighbour(id).is_some_and(|neighbour| neighbour.requests.len() > self.config.limit_lsas) {
            return Err(self.begin_anew(now, id, OspfDrop::DatabaseFull));
        }
        if let Some(neighbour) = self.neighbour_mut(id) {
            neighbour.exchange.taken = Some(without_headers(description));
        }
        self.send_requests(now, id);
        Ok(())
    }

    fn end_exchange(&mut self, now: Instant, id: CircuitId) {
        self.set_state(id, Some(NeighbourState::Loading));
        self.send_requests(now, id);
    }

    /// Requests what is missing, if nothing is requested yet; the neighbour is full when nothing is missing.
    pub(super) fn send_requests(&mut self, now: Instant, id: CircuitId) {
        let count = (self.room(id) / REQUEST_LEN).max(1);
        let again = self.retransmission(now);
        let Some(neighbour) = self.neighbour_mut(id) else { return };
        if neighbour.requests.is_empty() {
            (neighbour.requested, neighbour.request_at) = (0, None);
            if neighbour.state == NeighbourState::Loading {
                self.set_state(id, Some(NeighbourState::Full));
            }
        } else if neighbour.requested == 0 {
            let keys: Vec<LsaKey> = neighbour.requests.keys().take(count).copied().collect();
            (neighbour.requested, neighbour.request_at) = (keys.len(), Some(again));
            self.send(id, ALL_ROUTERS, Body::Request(keys));
        }
    }

    /// Requests again what has not come.
    pub(super) fn resend_requests(&mut self, now: Instant, id: CircuitId) {
        if let Some(neighbour) = self.neighbour_mut(id)
            && neighbour.request_at.is_some_and(|at| at <= now)
        {
            neighbour.requested = 0;
            self.send_requests(now, id);
        }
    }

    pub(super) fn take_request(&mut self, now: Instant, id: CircuitId, keys: &[LsaKey]) -> Result<(), OspfDrop> {
        let mut lsas = Vec::new();
        for key in BTreeSet::from_iter(keys) {
            let Some(stored) = self.database.get(self.place(id, *key)) else {
                return Err(self.begin_anew(now, id, OspfDrop::BadRequest));
            };
            lsas.push(super::flooding::to_send(stored, now));
        }
        self.send_update(id, ALL_ROUTERS, lsas);
        Ok(())
    }

    /// An instance came that this router has, while it has requested a newer one.
    pub(super) fn refuse_requested(&mut self, now: Instant, id: CircuitId) -> OspfDrop {
        self.begin_anew(now, id, OspfDrop::BadRequest)
    }

    pub(super) fn neighbour_mut(&mut self, id: CircuitId) -> Option<&mut Neighbour> {
        self.circuits.get_mut(id.0)?.neighbour.as_mut()
    }

    /// The time at which something is sent again.
    pub(super) fn retransmission(&self, now: Instant) -> Instant {
        now.after_ns(self.config.timers.retransmit_s * NS_PER_S)
    }
}

fn without_headers(description: &Description) -> Description {
    Description { headers: Vec::new(), ..*description }
}
