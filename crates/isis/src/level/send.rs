//! Sent PDUs: hellos, CSNPs, and those of flooding.

use super::{Circuit, OneLevel};
use crate::authentication::Key;
use crate::config::{CircuitType, Config};
use crate::flooding::SEND_AGAIN_NS;
use crate::frame::{GREATEST_PDU, wrap_to};
use crate::id::{LspId, NodeId};
use crate::pdu::{Complete, GREATEST_LSP, Hello, LanHello, Partial, PduKind, Range};
use crate::speaker::CircuitId;
use crate::tlv::{LspEntry, Member, ThreeWay, Topologies};
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_MS, NS_PER_S};

impl OneLevel {
    /// Holding time of hellos that are sent at an interval, in seconds.
    fn holding_time_s(&self, interval_ms: u64) -> u16 {
        let ms = interval_ms * u64::from(self.config.timers.hold_multiplier);
        let ms = if self.is_leaving { 1_000 } else { ms };
        u16::try_from(ms.div_ceil(1000)).unwrap_or(u16::MAX)
    }

    /// Whether the hello of a point-to-point circuit is due.
    pub(crate) fn owes_hello(&self, now: Instant, id: CircuitId) -> bool {
        let circuit = self.circuits.get(id.0);
        circuit.is_some_and(|circuit| circuit.is_up && !circuit.is_lan() && circuit.hello_at <= now)
    }

    /// Sends the hello of a point-to-point circuit for all levels, with the state of the handshake. Returns the time of
    /// the next one.
    pub(crate) fn say_hello(&mut self, now: Instant, id: CircuitId, three_way: ThreeWay) -> Option<Instant> {
        let interval_ms = self.config.timers.hello_ms;
        let next = now.after_ns(self.jittered_ns(interval_ms * NS_PER_MS));
        let holding_time_s = self.holding_time_s(interval_ms);
        let circuit = self.circuits.get(id.0)?;
        let hello = Hello {
            levels: self.config.levels.as_slice().to_vec(),
            source: self.config.system,
            holding_time_s,
            circuit: 0,
            areas: self.config.areas.clone(),
            addresses: circuit.config.addresses.clone(),
            three_way: Some(three_way),
            topologies: topologies(&self.config),
        };
        self.send_signed(id, PduKind::Hello, hello.emit(&self.authentication()));
        Some(next)
    }

    /// The hello of a point-to-point circuit has been sent.
    pub(crate) fn said_hello(&mut self, id: CircuitId, next: Instant) {
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.hello_at = next;
        }
    }

    pub(super) fn say_lan_hello(&mut self, now: Instant, id: CircuitId) {
        let timers = self.config.timers;
        let is_due = |circuit: &&Circuit| circuit.is_up && circuit.is_lan() && circuit.hello_at <= now;
        let due = self.circuits.get(id.0).filter(is_due);
        let Some(interval_ms) = due.map(|circuit| circuit.interval(timers.hello_ms)) else { return };
        let interval_ns = self.jittered_ns(interval_ms * NS_PER_MS);
        let holding_time_s = self.holding_time_s(interval_ms);
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        circuit.hello_at = now.after_ns(interval_ns);
        let (CircuitType::Broadcast { priority }, Some(lan)) = (circuit.config.kind, &circuit.lan) else { return };
        let hello = LanHello {
            levels: self.config.levels.as_slice().to_vec(),
            source: self.config.system,
            holding_time_s,
            priority,
            lan_id: lan.designated().unwrap_or_default(),
            areas: self.config.areas.clone(),
            addresses: circuit.config.addresses.clone(),
            heard: circuit.adjacencies.values().filter_map(|adjacency| Some(adjacency.lan?.mac)).collect(),
            topologies: topologies(&self.config),
        };
        let pdu = hello.emit(self.level, &self.authentication());
        self.send_signed(id, PduKind::LanHello(self.level), pdu);
    }

    /// Sends a hello at once: the adjacency has changed. That of a point-to-point circuit is sent for all levels.
    pub(super) fn hasten_hello(&mut self, now: Instant, id: CircuitId) {
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.hello_at = now;
        }
        self.say_lan_hello(now, id);
    }

    /// All that the database has, in as many CSNPs as it needs; their ranges leave nothing out.
    pub(super) fn say_complete(&mut self, now: Instant, id: CircuitId) {
        let is_due = |circuit: &&Circuit| circuit.sends_complete() && circuit.complete_at <= now;
        let usual_ns = self.config.timers.complete_s * NS_PER_S;
        let due = self.circuits.get(id.0).filter(is_due);
        let Some(interval_ns) = due.map(|circuit| circuit.interval(usual_ns)) else { return };
        let interval_ns = self.jittered_ns(interval_ns);
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        circuit.complete_at = now.after_ns(interval_ns);
        let per_pdu = self.entries_per_pdu(id);
        let entries: Vec<LspEntry> = self.database.iter().map(|(_, stored)| stored.entry(now)).collect();
        let mut first = LspId::FIRST;
        let mut chunks = entries.chunks(per_pdu).peekable();
        loop {
            let chunk = chunks.next().unwrap_or_default();
            let last = match chunks.peek() {
                Some(_) => chunk.last().map_or(LspId::LAST, |entry| entry.id),
                None => LspId::LAST,
            };
            let source = NodeId::of(self.config.system);
            let complete = Complete { source, range: Range { first, last }, entries: chunk.to_vec() };
            let pdu = complete.emit(self.level, &self.authentication());
            self.send_signed(id, PduKind::Complete(self.level), pdu);
            let Some(next) = chunks.peek().and_then(|next| next.first()) else { return };
            // The range begins after the last entry, not at the next one: LSPs in between are absent.
            first = last.next().unwrap_or(next.id);
        }
    }

    pub(super) fn flood(&mut self, now: Instant, id: CircuitId) {
        if !self.circuits.get(id.0).is_some_and(|circuit| circuit.flooding.is_due(now) && circuit.is_adjacent()) {
            return;
        }
        let again_ns = self.jittered_ns(SEND_AGAIN_NS);
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        let due = circuit.flooding.take_due(now, again_ns);
        let acknowledged = circuit.flooding.take_acknowledgements(now);
        // Of a LAN they are requests to the designated system, which we may have become.
        let acknowledged = if circuit.is_designated() { Vec::new() } else { acknowledged };
        for lsp in due {
            match self.database.get(lsp).map(|stored| stored.octets(now)) {
                Some(octets) => self.send(id, &octets),
                None => {
                    if let Some(circuit) = self.circuits.get_mut(id.0) {
                        circuit.flooding.need_not_send(lsp);
                    }
                }
            }
        }
        let entries: Vec<LspEntry> = acknowledged.into_iter().map(|lsp| self.entry(now, lsp)).collect();
        for chunk in entries.chunks(self.entries_per_pdu(id)) {
            self.say_partial(id, chunk.to_vec());
        }
    }

    pub(super) fn say_partial(&mut self, id: CircuitId, entries: Vec<LspEntry>) {
        let partial = Partial { source: NodeId::of(self.config.system), entries };
        let pdu = partial.emit(self.level, &self.authentication());
        self.send_signed(id, PduKind::Partial(self.level), pdu);
    }

    /// Our entry of an LSP; sequence number 0, which requests it, if we have none.
    fn entry(&self, now: Instant, id: LspId) -> LspEntry {
        let nothing = LspEntry { lifetime_s: 0, id, sequence: 0, checksum: 0 };
        self.database.get(id).map_or(nothing, |stored| stored.entry(now))
    }

    fn entries_per_pdu(&self, id: CircuitId) -> usize {
        let limit = self.circuits.get(id.0).map_or(GREATEST_LSP, |circuit| circuit.config.limit_pdu).min(GREATEST_PDU);
        let authentication = self.config.key.as_ref().map_or(0, Key::tlv_len);
        let in_front = PduKind::Complete(self.level).header_len() + authentication;
        // Each TLV has fifteen entries.
        let tlvs = limit.saturating_sub(in_front) / (2 + 15 * LspEntry::LEN);
        (tlvs * 15).max(1)
    }

    fn authentication(&self) -> Vec<u8> {
        self.config.key.as_ref().map(Key::tlv).unwrap_or_default()
    }

    fn send_signed(&mut self, id: CircuitId, kind: PduKind, mut pdu: Vec<u8>) {
        if let Some(key) = &self.config.key {
            key.sign(kind, &mut pdu);
        }
        self.send(id, &pdu);
    }

    /// An interval, shortened at random.
    pub(super) fn jittered_ns(&mut self, interval_ns: u64) -> u64 {
        self.jitter.shorten_ns(interval_ns, self.config.timers.jitter_percent)
    }

    fn send(&mut self, id: CircuitId, pdu: &[u8]) {
        let Some(circuit) = self.circuits.get(id.0) else { return };
        let destination = circuit.destination(self.level);
        if let Some(frame) = wrap_to(destination, circuit.config.mac, pdu) {
            self.counters.sent += 1;
            self.out.push_back((id, frame));
        }
    }
}

/// Membership of the interfaces.
fn topologies(config: &Config) -> Topologies {
    Topologies::only(Member { topology: config.topology, ..Member::default() })
}
