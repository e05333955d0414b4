//! Received PDUs (ISO 10589 sections 7.3.15.1, 7.3.15.2, 7.3.16).

use super::{CircuitId, IsisDrop, Speaker, Synchronisation};
use crate::adjacency::{Adjacency, Own};
use crate::database::Compared;
use crate::frame::unwrap;
use crate::id::LspId;
use crate::pdu::{Complete, Hello, Level, Lsp, Partial, Pdu, PduKind};
use crate::tlv::{AdjacencyState, LspEntry, kind};
use srdma_wire::Instant;

impl Speaker {
    /// Processes a frame received by a circuit. The next [`Speaker::tick`] sends the replies.
    pub fn receive(&mut self, now: Instant, circuit: CircuitId, frame: &[u8]) {
        match self.take(now, circuit, frame) {
            Ok(()) => self.counters.received += 1,
            Err(reason) => *self.drops.entry(reason).or_default() += 1,
        }
        self.settle_overload(now);
    }

    fn take(&mut self, now: Instant, circuit: CircuitId, frame: &[u8]) -> Result<(), IsisDrop> {
        let octets = unwrap(frame).ok_or(IsisDrop::NotIsis)?;
        let pdu = Pdu::parse(octets).map_err(|_| IsisDrop::Malformed)?;
        if self.config.key.as_ref().is_some_and(|key| !key.verifies(&pdu)) {
            return Err(IsisDrop::NotAuthentic);
        }
        let malformed = |_| IsisDrop::Malformed;
        match pdu.kind {
            PduKind::Hello => self.take_hello(now, circuit, &Hello::parse(&pdu).map_err(malformed)?),
            PduKind::Lsp(level) => {
                self.expect_adjacent(circuit, level)?;
                self.take_lsp(now, circuit, Lsp::parse(&pdu, level).map_err(|_| IsisDrop::Checksum)?)
            }
            PduKind::Complete(level) => {
                self.expect_adjacent(circuit, level)?;
                self.take_complete(now, circuit, &Complete::parse(&pdu).map_err(malformed)?);
                Ok(())
            }
            PduKind::Partial(level) => {
                self.expect_adjacent(circuit, level)?;
                for entry in Partial::parse(&pdu).map_err(malformed)?.entries {
                    self.take_entry(now, circuit, &entry);
                }
                Ok(())
            }
        }
    }

    fn expect_adjacent(&self, circuit: CircuitId, level: Level) -> Result<(), IsisDrop> {
        if level != self.config.level {
            return Err(IsisDrop::OtherLevel);
        }
        let is_adjacent = self.circuits.get(circuit.0).is_some_and(super::Circuit::is_adjacent);
        if is_adjacent { Ok(()) } else { Err(IsisDrop::NoAdjacency) }
    }

    fn take_hello(&mut self, now: Instant, id: CircuitId, hello: &Hello) -> Result<(), IsisDrop> {
        let own = Own {
            system: self.config.system,
            circuit: id.0 as u32 + 1,
            level: self.config.level,
            areas: &self.config.areas,
        };
        let Some(circuit) = self.circuits.get_mut(id.0).filter(|circuit| circuit.is_up) else {
            return Err(IsisDrop::NoAdjacency);
        };
        let adjacency = Adjacency::on_hello(circuit.adjacency.as_ref(), now, own, hello).map_err(IsisDrop::Hello)?;
        let after = (adjacency.state, adjacency.neighbour);
        if let Some(before) = &circuit.adjacency
            && (before.state, before.neighbour) == after
        {
            // Routes lead to its address.
            self.changes.adjacencies |= before.addresses != adjacency.addresses;
            circuit.adjacency = Some(adjacency);
            return Ok(());
        }
        self.end_adjacency(id);
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.adjacency = Some(adjacency);
            if after.0 == AdjacencyState::Up {
                // The database is sent to the new neighbour, with a CSNP (ISO 10589 section 7.3.17).
                self.database.iter().for_each(|(lsp, _)| circuit.flooding.send(*lsp));
                circuit.complete_at = now;
                circuit.synchronisation = self.incomplete.is_starting().then(|| Synchronisation::new(now));
                self.own.touch();
                self.changes.adjacencies = true;
            }
        }
        self.hasten_hello(now, id);
        Ok(())
    }

    fn take_lsp(&mut self, now: Instant, circuit: CircuitId, lsp: Lsp) -> Result<(), IsisDrop> {
        let id = lsp.entry.id;
        if lsp.is_purge() && self.config.key.is_some() && !lsp.has_only_tlvs_of_purges() {
            return Err(IsisDrop::PurgeTlvs);
        }
        let compared = self.database.compare(now, &lsp.entry);
        if self.database.get(id).is_none() {
            if lsp.is_purge() {
                // Nothing to forget: it is acknowledged, and not kept.
                self.say_partial(circuit, vec![lsp.entry]);
                return Ok(());
            }
            // An unknown LSP of our own system takes room as well: its purge is stored.
            if self.database.len() >= self.config.limit_lsps {
                self.refuse_for_room(now);
                return Err(IsisDrop::DatabaseFull);
            }
        }
        if self.is_own(id) {
            self.take_own(now, circuit, &lsp, compared);
            return Ok(());
        }
        match compared {
            Compared::Newer => {
                let lsp = self.to_store(circuit, lsp);
                self.store_and_flood(now, lsp, Some(circuit));
                self.acknowledge(now, circuit, id);
            }
            Compared::Same => self.acknowledge(now, circuit, id),
            Compared::Older => self.send_by(circuit, id),
            Compared::Confused => {
                // As if its lifetime were over (ISO 10589 section 7.3.16.2): its system will make a new one.
                self.counters.confusions += 1;
                self.purge(now, &lsp, Some(circuit));
            }
        }
        Ok(())
    }

    /// A newer LSP as it is stored and flooded. A purge that does not state its generator gets the TLV from here (RFC
    /// 6232 section 3). The lifetime of other LSPs, which neither digest nor checksum covers, is raised to its least
    /// value, so that no system expires an LSP before its originator refreshes it (RFC 7987).
    fn to_store(&self, circuit: CircuitId, mut lsp: Lsp) -> Lsp {
        let states_generator = || lsp.tlvs().of_kind(kind::PURGE_ORIGINATOR).next().is_some();
        if lsp.is_purge() && !states_generator() {
            return lsp.purge(self.config.key.as_ref(), self.purge_originator(Some(circuit)));
        }
        if !lsp.is_purge() {
            lsp.set_lifetime(lsp.entry.lifetime_s.max(self.config.timers.least_lifetime_s()));
        }
        lsp
    }

    /// An LSP of our own system. One that this system did not make, or made before a restart, is purged.
    fn take_own(&mut self, now: Instant, circuit: CircuitId, lsp: &Lsp, compared: Compared) {
        match compared {
            Compared::Same => self.acknowledge(now, circuit, lsp.entry.id),
            Compared::Older => self.send_by(circuit, lsp.entry.id),
            Compared::Newer | Compared::Confused => {
                self.counters.own_from_elsewhere += 1;
                self.outdo(now, lsp, circuit);
            }
        }
    }

    fn take_complete(&mut self, now: Instant, circuit: CircuitId, complete: &Complete) {
        let range = complete.range;
        let mut listed: Vec<LspId> = complete.entries.iter().map(|entry| entry.id).collect();
        listed.sort_unstable();
        let missing: Vec<LspId> = self
            .database
            .range(range.first, range.last)
            .filter(|(id, stored)| listed.binary_search(id).is_err() && stored.lifetime_s(now) > 0)
            .map(|(id, _)| *id)
            .collect();
        for id in missing {
            self.send_by(circuit, id);
        }
        self.note_complete(now, circuit, complete);
        for entry in &complete.entries {
            self.take_entry(now, circuit, entry);
        }
    }

    /// Notes what the neighbour has and we do not.
    fn note_complete(&mut self, now: Instant, circuit: CircuitId, complete: &Complete) {
        let (database, limit) = (&self.database, self.config.limit_lsps);
        let is_newer = |entry: &&LspEntry| {
            let is_known = database.get(entry.id).is_some();
            (is_known || entry.lifetime_s > 0) && database.compare(now, entry) == Compared::Newer
        };
        if let Some(exchange) = self.circuits.get_mut(circuit.0).and_then(|circuit| circuit.synchronisation.as_mut()) {
            exchange.on_complete(complete.range, complete.entries.iter().filter(is_newer).copied(), limit);
        }
    }

    /// The neighbour's version of one LSP.
    fn take_entry(&mut self, now: Instant, circuit: CircuitId, entry: &LspEntry) {
        let is_known = self.database.get(entry.id).is_some();
        if !is_known && (entry.sequence == 0 || entry.lifetime_s == 0) {
            return;
        }
        match self.database.compare(now, entry) {
            Compared::Same => self.need_not_send(circuit, entry.id),
            Compared::Older => self.send_by(circuit, entry.id),
            // Requests it, with the number that we have.
            Compared::Newer => {
                self.need_not_send(circuit, entry.id);
                self.acknowledge(now, circuit, entry.id);
            }
            Compared::Confused => {
                self.counters.confusions += 1;
                let purge = self.database.get(entry.id).map(|stored| stored.lsp().clone());
                match purge {
                    Some(lsp) if self.is_own(entry.id) => self.outdo(now, &lsp, circuit),
                    Some(lsp) => self.purge(now, &lsp, Some(circuit)),
                    None => {}
                }
            }
        }
    }

    fn acknowledge(&mut self, now: Instant, circuit: CircuitId, id: LspId) {
        let limit = self.config.limit_lsps;
        if let Some(circuit) = self.circuits.get_mut(circuit.0) {
            circuit.flooding.need_not_send(id);
            circuit.flooding.acknowledge(now, id, limit);
        }
    }

    fn send_by(&mut self, circuit: CircuitId, id: LspId) {
        if let Some(circuit) = self.circuits.get_mut(circuit.0) {
            circuit.flooding.send(id);
            circuit.flooding.need_not_acknowledge(id);
        }
    }

    fn need_not_send(&mut self, circuit: CircuitId, id: LspId) {
        if let Some(circuit) = self.circuits.get_mut(circuit.0) {
            circuit.flooding.need_not_send(id);
        }
    }
}
