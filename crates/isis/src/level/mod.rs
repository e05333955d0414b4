//! One level of a system: its adjacencies, its database, and its own LSPs.

mod circuit;
mod own;
mod receive;
mod send;
mod synchronisation;

use crate::adjacency::Adjacency;
use crate::config::{CircuitConfig, Config};
use crate::database::Database;
use crate::id::{LspId, NodeId, SystemId};
use crate::jitter::Jitter;
use crate::leaks::Leaks;
use crate::learned::{LearnedNode, learn};
use crate::pdu::{Level, Lsp};
use crate::repair::{Repairs, repairs};
use crate::shortest_paths::ShortestPaths;
use crate::speaker::{Changes, CircuitId, Counters};
use crate::tlv::PurgeOriginator;
use circuit::Circuit;
use own::Own;
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};

/// One level. A point-to-point circuit of a system at both has one handshake, in which both take part; each has its own
/// adjacency with the neighbour, since that may be at one of them alone.
pub(crate) struct OneLevel {
    level: Level,
    config: Config,
    circuits: Vec<Circuit>,
    database: Database,
    own: Own,
    jitter: Jitter,
    out: VecDeque<(CircuitId, Vec<u8>)>,
    counters: Counters,
    changes: Changes,
    /// The other level may announce something else of this one.
    has_changed: bool,
    /// An LSP was refused for want of room.
    has_refused: bool,
    is_overloaded: bool,
    /// The system's start is not over (D94).
    is_starting: bool,
    /// The system leads out of the area; of level 1.
    is_attached: bool,
    /// What it announces of the other level.
    leaks: Leaks,
    /// It sends its last hellos.
    is_leaving: bool,
}

impl OneLevel {
    pub(crate) fn new(level: Level, config: Config, first_sequence: u32, seed: u64) -> Self {
        OneLevel {
            level,
            config,
            circuits: Vec::new(),
            database: Database::default(),
            own: Own::new(first_sequence),
            jitter: Jitter::new(seed),
            out: VecDeque::new(),
            counters: Counters::default(),
            changes: Changes::default(),
            has_changed: false,
            has_refused: false,
            is_overloaded: false,
            is_starting: true,
            is_attached: false,
            leaks: Leaks::default(),
            is_leaving: false,
        }
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    pub(crate) fn add_circuit(&mut self, now: Instant, id: CircuitId, config: CircuitConfig) {
        self.circuits.push(Circuit::new(id, now, config, &self.config));
        self.own.touch();
    }

    pub(crate) fn set_link(&mut self, now: Instant, id: CircuitId, is_up: bool) {
        if !is_up {
            self.end_adjacencies(id);
        }
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.is_up = is_up;
            circuit.hello_at = now;
            if is_up {
                circuit.enable(id, now, &self.config);
            }
        }
    }

    /// Ends the adjacency with a neighbour; whether it was up.
    pub(crate) fn lose_neighbour(&mut self, now: Instant, id: CircuitId, neighbour: SystemId) -> bool {
        let adjacency = self.adjacencies(id).find(|adjacency| adjacency.neighbour == neighbour);
        let was_up = adjacency.is_some_and(Adjacency::is_up);
        if was_up {
            self.end_adjacency(id, neighbour);
            self.settle_lan(now, id);
            self.hasten_hello(now, id);
        }
        was_up
    }

    pub(crate) fn change_circuit(&mut self, now: Instant, id: CircuitId, config: CircuitConfig) {
        let Some(circuit) = self.circuits.get(id.0).filter(|circuit| circuit.config != config) else { return };
        let is_other_type = circuit.is_lan() != Circuit::new(id, now, config.clone(), &self.config).is_lan();
        if is_other_type {
            self.end_adjacencies(id);
        }
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.config = config;
            circuit.hello_at = now;
            if is_other_type {
                circuit.enable(id, now, &self.config);
            }
            self.own.touch();
        }
        self.settle_lan(now, id);
    }

    /// Ends the adjacencies of a circuit, and has the next hello say so for the last time.
    pub(crate) fn retire(&mut self, now: Instant, id: CircuitId) {
        self.is_leaving = true;
        self.end_adjacencies(id);
        self.hasten_hello(now, id);
    }

    /// The circuits are down after [`OneLevel::retire`].
    pub(crate) fn end_retiring(&mut self) {
        self.is_leaving = false;
    }

    pub(crate) fn reconfigure(&mut self, config: Config) {
        self.config = config;
        self.own.touch();
    }

    /// Ends what is over at `now`.
    pub(crate) fn age(&mut self, now: Instant) {
        for index in 0..self.circuits.len() {
            for neighbour in self.circuits.get(index).map(|circuit| circuit.ended(now)).unwrap_or_default() {
                self.end_adjacency(CircuitId(index), neighbour);
            }
            self.settle_lan(now, CircuitId(index));
        }
        for lsp in self.database.age(now) {
            self.purge(now, &lsp, None);
        }
    }

    /// Sends what is due, but for hellos of point-to-point circuits.
    pub(crate) fn send_due(&mut self, now: Instant) {
        for index in 0..self.circuits.len() {
            self.say_lan_hello(now, CircuitId(index));
            self.say_complete(now, CircuitId(index));
            self.flood(now, CircuitId(index));
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let circuits = self.circuits.iter().filter(|circuit| circuit.is_up).map(Circuit::next_deadline);
        circuits.chain([self.database.next_deadline(), self.own.next_deadline()]).flatten().min()
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<(CircuitId, Vec<u8>)> {
        self.out.pop_front()
    }

    pub(crate) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// Whether the database is another one since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Whether the other level has not taken note of the database.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Whether the own LSPs have the attached bit.
    pub(crate) fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// Whether an LSP was refused for want of room since the last call.
    pub(crate) fn take_refusal(&mut self) -> bool {
        std::mem::take(&mut self.has_refused)
    }

    /// Sets or clears the overload bit.
    pub(crate) fn set_overload(&mut self, is_overloaded: bool, is_starting: bool) {
        self.is_starting = is_starting;
        if std::mem::replace(&mut self.is_overloaded, is_overloaded) != is_overloaded {
            self.own.touch();
        }
    }

    /// The own LSPs may be others.
    pub(crate) fn touch(&mut self) {
        self.own.touch();
    }

    /// What the own LSPs have of the other level.
    pub(crate) fn announce(&mut self, is_attached: bool, leaks: Leaks) {
        (self.is_attached, self.leaks) = (is_attached, leaks);
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn adjacencies(&self, circuit: CircuitId) -> impl Iterator<Item = &Adjacency> {
        self.circuits.get(circuit.0).into_iter().flat_map(|circuit| circuit.adjacencies.values())
    }

    pub(crate) fn designated(&self, circuit: CircuitId) -> Option<NodeId> {
        self.circuits.get(circuit.0)?.lan.as_ref()?.designated()
    }

    /// The circuits that lead to a system in our topology, with the adjacency, which is up.
    pub(crate) fn circuits_to(&self, system: SystemId) -> impl Iterator<Item = (CircuitId, &Adjacency)> {
        let leads_there = move |circuit: &'_ Circuit| circuit.adjacencies.contains_key(&system);
        let circuits = self.circuits.iter().enumerate().filter(move |(_, circuit)| leads_there(circuit));
        circuits.filter_map(move |(at, circuit)| {
            let adjacency = circuit.adjacencies.get(&system)?;
            let is_used = adjacency.is_up() && adjacency.topologies.contains(self.config.topology);
            is_used.then_some((CircuitId(at), adjacency))
        })
    }

    pub(crate) fn shortest_paths(&self, now: Instant) -> ShortestPaths {
        let Config { system, topology, .. } = &self.config;
        ShortestPaths::compute(&self.database, NodeId::of(*system), self.level, *topology, now)
    }

    pub(crate) fn repairs(&self, has_node_protection: bool, now: Instant) -> Repairs {
        let Config { system, topology, .. } = &self.config;
        let paths = self.shortest_paths(now);
        repairs(&self.database, NodeId::of(*system), *topology, &paths, has_node_protection, now)
    }

    pub(crate) fn learned(&self, now: Instant) -> BTreeMap<SystemId, LearnedNode> {
        learn(&self.database, self.config.topology, now)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    fn end_adjacencies(&mut self, id: CircuitId) {
        let neighbours: Vec<SystemId> = self.adjacencies(id).map(|adjacency| adjacency.neighbour).collect();
        neighbours.into_iter().for_each(|neighbour| self.end_adjacency(id, neighbour));
    }

    fn end_adjacency(&mut self, id: CircuitId, neighbour: SystemId) {
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        let before = circuit.adjacencies.remove(&neighbour);
        if before.as_ref().is_some_and(Adjacency::is_up) {
            self.own.touch();
            self.changes.adjacencies = true;
        }
        if !circuit.is_adjacent() {
            circuit.forget_flooding();
        }
    }

    /// Elects the designated system of a LAN.
    fn settle_lan(&mut self, now: Instant, id: CircuitId) {
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        if circuit.elect(now) {
            self.own.touch();
            self.hasten_hello(now, id);
        }
    }

    /// Stores an LSP and floods it on all circuits but one.
    fn store_and_flood(&mut self, now: Instant, lsp: Lsp, but: Option<CircuitId>) {
        let (id, sequence) = (lsp.entry.id, lsp.entry.sequence);
        self.database.put(now, lsp);
        self.changes.database = true;
        self.has_changed = true;
        for (index, circuit) in self.circuits.iter_mut().enumerate() {
            if let Some(exchange) = &mut circuit.synchronisation {
                exchange.on_stored(now, id, sequence, Some(CircuitId(index)) == but);
            }
            if Some(CircuitId(index)) != but && circuit.is_adjacent() {
                circuit.flooding.send(id);
                circuit.flooding.need_not_acknowledge(id);
            }
        }
    }

    /// An LSP's lifetime has expired: its header is flooded, so that all systems remove it together. `cause` is the
    /// neighbour from which the LSP came, if the purge has no other cause than that.
    fn purge(&mut self, now: Instant, lsp: &Lsp, cause: Option<SystemId>) {
        let purge = lsp.purge(self.config.key.as_ref(), self.purge_originator(cause));
        self.store_and_flood(now, purge, None);
    }

    fn purge_originator(&self, cause: Option<SystemId>) -> PurgeOriginator {
        PurgeOriginator { system: self.config.system, received_from: cause }
    }

    fn is_own(&self, id: LspId) -> bool {
        id.node.system == self.config.system
    }
}
