//! Received PDUs (ISO 10589 sections 7.3.15.1, 7.3.15.2, 7.3.16).

use super::synchronisation::Synchronisation;
use super::{Circuit, OneLevel};
use crate::adjacency::{Adjacency, HelloRefusal, Own};
use crate::database::Compared;
use crate::id::{LspId, SystemId};
use crate::lan::GREATEST_NEIGHBOURS;
use crate::pdu::{Complete, Hello, LanHello, Lsp, Partial, Pdu, PduKind};
use crate::speaker::{CircuitId, IsisDrop};
use crate::tlv::{LspEntry, kind};
use srdma_wire::{Instant, MacAddress};

/// Where a PDU comes from.
#[derive(Clone, Copy)]
struct Sender {
    circuit: CircuitId,
    neighbour: SystemId,
}

impl OneLevel {
    /// Takes a PDU of the level that is no hello, from a MAC address.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        circuit: CircuitId,
        pdu: &Pdu<'_>,
        mac: Option<MacAddress>,
    ) -> Result<(), IsisDrop> {
        let neighbour = self.circuits.get(circuit.0).and_then(|circuit| circuit.neighbour_at(mac));
        let from = neighbour.map(|neighbour| Sender { circuit, neighbour }).ok_or(IsisDrop::NoAdjacency)?;
        let malformed = |_| IsisDrop::Malformed;
        match pdu.kind {
            PduKind::Lsp(level) => self.take_lsp(now, from, Lsp::parse(pdu, level).map_err(|_| IsisDrop::Checksum)?),
            PduKind::Complete(_) => {
                self.take_complete(now, from, &Complete::parse(pdu).map_err(malformed)?);
                Ok(())
            }
            PduKind::Partial(_) => {
                let entries = Partial::parse(pdu).map_err(malformed)?.entries;
                // On a LAN they are requests, and for the designated system alone (ISO 10589 section 7.3.15.2).
                let is_for_us = self.circuits.get(circuit.0).is_some_and(|it| !it.is_lan() || it.is_designated());
                for entry in entries.iter().filter(|_| is_for_us) {
                    self.take_entry(now, from, entry);
                }
                Ok(())
            }
            PduKind::Hello | PduKind::LanHello(_) => Err(IsisDrop::Malformed),
        }
    }

    fn own(&self, id: CircuitId) -> Own<'_> {
        Own {
            system: self.config.system,
            circuit: id.0 as u32 + 1,
            level: self.level,
            areas: &self.config.areas,
            topology: self.config.topology,
        }
    }

    /// A circuit whose link is up, if it is a LAN or not as wanted.
    pub(crate) fn expect_circuit(&self, id: CircuitId, is_lan: bool) -> Result<(), IsisDrop> {
        let Some(circuit) = self.circuits.get(id.0).filter(|circuit| circuit.is_up) else {
            return Err(IsisDrop::NoAdjacency);
        };
        if circuit.is_lan() == is_lan { Ok(()) } else { Err(IsisDrop::Hello(HelloRefusal::OtherType)) }
    }

    /// The adjacency of a point-to-point circuit after a hello.
    pub(crate) fn on_hello(&self, now: Instant, id: CircuitId, hello: &Hello) -> Result<Adjacency, HelloRefusal> {
        Adjacency::on_hello(self.adjacencies(id).next(), now, self.own(id), hello)
    }

    /// Takes the adjacency of a point-to-point circuit after a hello; `None`: the neighbour is not at this level.
    pub(crate) fn take_hello(&mut self, now: Instant, id: CircuitId, adjacency: Option<Adjacency>) {
        let neighbour = adjacency.as_ref().map(|adjacency| adjacency.neighbour);
        if self.adjacencies(id).any(|before| Some(before.neighbour) != neighbour) {
            self.end_adjacencies(id);
        }
        if let Some(adjacency) = adjacency {
            self.put_adjacency(now, id, adjacency);
        }
    }

    /// Takes the hello of a LAN.
    pub(crate) fn take_lan_hello(
        &mut self,
        now: Instant,
        id: CircuitId,
        hello: &LanHello,
        from: MacAddress,
    ) -> Result<(), IsisDrop> {
        self.expect_circuit(id, true)?;
        let Some(circuit) = self.circuits.get(id.0) else { return Err(IsisDrop::NoAdjacency) };
        let before = circuit.adjacencies.get(&hello.source);
        let mac = circuit.config.mac;
        let adjacency =
            Adjacency::on_lan_hello(before, now, self.own(id), mac, hello, from).map_err(IsisDrop::Hello)?;
        if before.is_none() && circuit.adjacencies.len() >= GREATEST_NEIGHBOURS {
            return Err(IsisDrop::Hello(HelloRefusal::TooManyNeighbours));
        }
        self.put_adjacency(now, id, adjacency);
        self.settle_lan(now, id);
        Ok(())
    }

    /// Takes an adjacency in place of what was known of the neighbour.
    fn put_adjacency(&mut self, now: Instant, id: CircuitId, adjacency: Adjacency) {
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        let neighbour = adjacency.neighbour;
        if let Some(before) = circuit.adjacencies.get(&neighbour).filter(|before| before.state == adjacency.state) {
            // Routes lead to its address; its links are those of the topologies.
            self.changes.adjacencies |= before.addresses != adjacency.addresses;
            // So are the SIDs of a LAN, which are those of addresses.
            if before.topologies != adjacency.topologies || before.addresses != adjacency.addresses {
                self.own.touch();
            }
            circuit.adjacencies.insert(neighbour, adjacency);
            return;
        }
        self.end_adjacency(id, neighbour);
        let is_starting = self.is_starting;
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            let (is_up, is_first) = (adjacency.is_up(), !circuit.is_adjacent());
            circuit.adjacencies.insert(neighbour, adjacency);
            if is_up {
                // The database is sent to the new neighbour, with a CSNP (ISO 10589 section 7.3.17); on a LAN the
                // neighbour requests what the CSNP has.
                if !circuit.is_lan() {
                    self.database.iter().for_each(|(lsp, _)| circuit.flooding.send(*lsp));
                }
                circuit.complete_at = now;
                if is_first {
                    circuit.synchronisation = is_starting.then(|| Synchronisation::new(now));
                }
                self.own.touch();
                self.changes.adjacencies = true;
            }
        }
        self.hasten_hello(now, id);
    }

    fn take_lsp(&mut self, now: Instant, from: Sender, lsp: Lsp) -> Result<(), IsisDrop> {
        let circuit = from.circuit;
        let id = lsp.entry.id;
        if lsp.is_purge() && self.config.key.is_some() && !lsp.has_only_tlvs_of_purges() {
            return Err(IsisDrop::PurgeTlvs);
        }
        let compared = self.database.compare(now, &lsp.entry);
        if self.database.get(id).is_none() {
            if lsp.is_purge() {
                // Nothing to forget: it is acknowledged, and not kept. On a LAN nothing is acknowledged.
                if !self.is_lan(circuit) {
                    self.say_partial(circuit, vec![lsp.entry]);
                }
                return Ok(());
            }
            // An unknown LSP of our own system takes room as well: its purge is stored.
            if self.database.len() >= self.config.limit_lsps {
                self.has_refused = true;
                return Err(IsisDrop::DatabaseFull);
            }
        }
        if self.is_own(id) {
            self.take_own(now, from, &lsp, compared);
            return Ok(());
        }
        match compared {
            Compared::Newer => {
                let lsp = self.to_store(from, lsp);
                self.store_and_flood(now, lsp, Some(circuit));
                self.acknowledge(now, circuit, id);
            }
            Compared::Same => self.acknowledge(now, circuit, id),
            Compared::Older => self.send_by(circuit, id),
            Compared::Confused => {
                // As if its lifetime were over (ISO 10589 section 7.3.16.2): its system will make a new one.
                self.counters.confusions += 1;
                self.purge(now, &lsp, Some(from.neighbour));
            }
        }
        Ok(())
    }

    /// A newer LSP as it is stored and flooded. A purge that does not state its generator gets the TLV from here (RFC
    /// 6232 section 3). The lifetime of other LSPs, which neither digest nor checksum covers, is raised to its least
    /// value, so that no system expires an LSP before its originator refreshes it (RFC 7987).
    fn to_store(&self, from: Sender, mut lsp: Lsp) -> Lsp {
        let states_generator = || lsp.tlvs().of_kind(kind::PURGE_ORIGINATOR).next().is_some();
        if lsp.is_purge() && !states_generator() {
            return lsp.purge(self.config.key.as_ref(), self.purge_originator(Some(from.neighbour)));
        }
        if !lsp.is_purge() {
            lsp.set_lifetime(lsp.entry.lifetime_s.max(self.config.timers.least_lifetime_s()));
        }
        lsp
    }

    /// An LSP of our own system. One that this system did not make, or made before a restart, is purged.
    fn take_own(&mut self, now: Instant, from: Sender, lsp: &Lsp, compared: Compared) {
        match compared {
            Compared::Same => self.acknowledge(now, from.circuit, lsp.entry.id),
            Compared::Older => self.send_by(from.circuit, lsp.entry.id),
            Compared::Newer | Compared::Confused => {
                self.counters.own_from_elsewhere += 1;
                self.outdo(now, lsp, from.neighbour);
            }
        }
    }

    fn take_complete(&mut self, now: Instant, from: Sender, complete: &Complete) {
        let (circuit, range) = (from.circuit, complete.range);
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
            self.take_entry(now, from, entry);
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
    fn take_entry(&mut self, now: Instant, from: Sender, entry: &LspEntry) {
        let circuit = from.circuit;
        let is_known = self.database.get(entry.id).is_some();
        if !is_known && (entry.sequence == 0 || entry.lifetime_s == 0) {
            return;
        }
        match self.database.compare(now, entry) {
            // On a LAN one system has it, and others may lack it.
            Compared::Same if self.is_lan(circuit) => {}
            Compared::Same => self.need_not_send(circuit, entry.id),
            Compared::Older => self.send_by(circuit, entry.id),
            Compared::Newer => self.request(now, circuit, entry.id),
            Compared::Confused => {
                self.counters.confusions += 1;
                let purge = self.database.get(entry.id).map(|stored| stored.lsp().clone());
                match purge {
                    Some(lsp) if self.is_own(entry.id) => self.outdo(now, &lsp, from.neighbour),
                    Some(lsp) => self.purge(now, &lsp, Some(from.neighbour)),
                    None => {}
                }
            }
        }
    }

    /// An LSP is here that has come by a circuit. On a LAN all have it, and nothing is acknowledged.
    fn acknowledge(&mut self, now: Instant, circuit: CircuitId, id: LspId) {
        let limit = self.config.limit_lsps;
        if let Some(circuit) = self.circuits.get_mut(circuit.0) {
            circuit.flooding.need_not_send(id);
            match circuit.is_lan() {
                true => circuit.flooding.need_not_acknowledge(id),
                false => circuit.flooding.acknowledge(now, id, limit),
            }
        }
    }

    /// Requests an LSP, with the number that we have, in place of an acknowledgement. The designated system of a LAN
    /// requests nothing: its next CSNP has others send what they have.
    fn request(&mut self, now: Instant, circuit: CircuitId, id: LspId) {
        let limit = self.config.limit_lsps;
        if let Some(circuit) = self.circuits.get_mut(circuit.0) {
            circuit.flooding.need_not_send(id);
            if !circuit.is_designated() {
                circuit.flooding.acknowledge(now, id, limit);
            }
        }
    }

    fn is_lan(&self, circuit: CircuitId) -> bool {
        self.circuits.get(circuit.0).is_some_and(Circuit::is_lan)
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
