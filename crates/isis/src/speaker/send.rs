//! Sent PDUs: hellos, CSNPs, and those of flooding.

use super::{Circuit, CircuitId, Speaker};
use crate::adjacency::Adjacency;
use crate::authentication::Key;
use crate::config::{CircuitType, Config};
use crate::flooding::SEND_AGAIN_NS;
use crate::frame::{GREATEST_PDU, wrap_to};
use crate::id::{LspId, NodeId};
use crate::pdu::{Complete, GREATEST_LSP, Hello, LanHello, Partial, PduKind, Range};
use crate::tlv::{LspEntry, Member, Topologies};
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_MS, NS_PER_S};

impl Speaker {
    pub(super) fn say_hello(&mut self, now: Instant, id: CircuitId) {
        let timers = self.config.timers;
        if !self.circuits.get(id.0).is_some_and(|circuit| circuit.is_up && circuit.hello_at <= now) {
            return;
        }
        let Some(interval_ms) = self.circuits.get(id.0).map(|circuit| circuit.interval(timers.hello_ms)) else {
            return;
        };
        let interval_ns = self.jittered_ns(interval_ms * NS_PER_MS);
        let ms = interval_ms * u64::from(timers.hold_multiplier);
        let holding_time_ms = if self.is_leaving { 1_000 } else { ms };
        let holding_time_s = u16::try_from(holding_time_ms.div_ceil(1000)).unwrap_or(u16::MAX);
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        circuit.hello_at = now.after_ns(interval_ns);
        let (kind, pdu) = hello(&self.config, id, circuit, holding_time_s);
        self.send_signed(id, kind, pdu);
    }

    /// Sends a hello at once: the adjacency has changed.
    pub(super) fn hasten_hello(&mut self, now: Instant, id: CircuitId) {
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.hello_at = now;
        }
        self.say_hello(now, id);
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
            let pdu = complete.emit(self.config.level, &self.authentication());
            self.send_signed(id, PduKind::Complete(self.config.level), pdu);
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
        let pdu = partial.emit(self.config.level, &self.authentication());
        self.send_signed(id, PduKind::Partial(self.config.level), pdu);
    }

    /// Our entry of an LSP; sequence number 0, which requests it, if we have none.
    fn entry(&self, now: Instant, id: LspId) -> LspEntry {
        let nothing = LspEntry { lifetime_s: 0, id, sequence: 0, checksum: 0 };
        self.database.get(id).map_or(nothing, |stored| stored.entry(now))
    }

    fn entries_per_pdu(&self, id: CircuitId) -> usize {
        let limit = self.circuits.get(id.0).map_or(GREATEST_LSP, |circuit| circuit.config.limit_pdu).min(GREATEST_PDU);
        let authentication = self.config.key.as_ref().map_or(0, Key::tlv_len);
        let in_front = PduKind::Complete(self.config.level).header_len() + authentication;
        // Each TLV has fifteen entries.
        let tlvs = limit.saturating_sub(in_front) / (2 + 15 * LspEntry::LEN);
        (tlvs * 15).max(1)
    }

    fn authentication(&self) -> Vec<u8> {
        authentication(&self.config)
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
        let destination = circuit.destination(self.config.level);
        if let Some(frame) = wrap_to(destination, circuit.config.mac, pdu) {
            self.counters.sent += 1;
            self.out.push_back((id, frame));
        }
    }
}

fn authentication(config: &Config) -> Vec<u8> {
    config.key.as_ref().map(Key::tlv).unwrap_or_default()
}

/// The hello of a circuit, unsigned.
fn hello(config: &Config, id: CircuitId, circuit: &Circuit, holding_time_s: u16) -> (PduKind, Vec<u8>) {
    let (levels, level) = (vec![config.level], config.level);
    let (source, areas, addresses) = (config.system, config.areas.clone(), circuit.config.addresses.clone());
    let topologies = Topologies::only(Member { topology: config.topology, ..Member::default() });
    let authentication = authentication(config);
    let (CircuitType::Broadcast { priority }, Some(lan)) = (circuit.config.kind, &circuit.lan) else {
        let three_way = Some(Adjacency::three_way(circuit.adjacencies.values().next(), id.0 as u32 + 1));
        let hello = Hello { levels, source, holding_time_s, circuit: 0, areas, addresses, three_way, topologies };
        return (PduKind::Hello, hello.emit(&authentication));
    };
    let lan_id = lan.designated().unwrap_or_default();
    let heard = circuit.adjacencies.values().filter_map(|adjacency| Some(adjacency.lan?.mac)).collect();
    let hello = LanHello { levels, source, holding_time_s, priority, lan_id, areas, addresses, heard, topologies };
    (PduKind::LanHello(level), hello.emit(level, &authentication))
}
