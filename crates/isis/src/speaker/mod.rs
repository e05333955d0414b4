//! An IS-IS system, as a value: frames and time in, frames out.

mod circuit;
mod drop_reason;
mod overload;
mod own;
mod receive;
mod send;

use crate::adjacency::Adjacency;
use crate::config::{CircuitConfig, CircuitType, Config};
use crate::database::Database;
use crate::id::{LspId, NodeId, SystemId};
use crate::jitter::Jitter;
use crate::learned::{LearnedNode, learn};
use crate::pdu::Lsp;
use crate::shortest_paths::ShortestPaths;
use crate::tlv::PurgeOriginator;
use circuit::Circuit;
pub use drop_reason::IsisDrop;
use overload::Incomplete;
pub use overload::Overload;
use own::Own;
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};

/// A circuit's number: its place in the order in which circuits were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub usize);

/// Changes since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// An adjacency went up or down, or a neighbour has other addresses.
    pub adjacencies: bool,
    /// LSPs came or went: shortest paths and learned SIDs may be others.
    pub database: bool,
}

/// Events for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that were taken.
    pub received: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// LSPs with our own system id that we have not originated: older ones of ours, or two systems with one id.
    pub own_from_elsewhere: u64,
    /// LSPs of one number and different octets: two systems with one id, or damage.
    pub confusions: u64,
    /// Times that the own LSPs exceeded 256 fragments.
    pub lsp_overflows: u64,
    /// Adjacencies that BFD has taken down.
    pub neighbours_lost: u64,
}

/// The system.
pub struct Speaker {
    config: Config,
    circuits: Vec<Circuit>,
    database: Database,
    own: Own,
    incomplete: Incomplete,
    jitter: Jitter,
    out: VecDeque<(CircuitId, Vec<u8>)>,
    drops: BTreeMap<IsisDrop, u64>,
    counters: Counters,
    changes: Changes,
    /// It sends its last hellos.
    is_leaving: bool,
}

impl Speaker {
    /// A system without circuits. `first_sequence` is the number of its first LSPs: a system that has lost its memory
    /// may take it from its clock; otherwise it learns it from its neighbours. `seed` is that of the jitter of timers,
    /// another one for each system.
    pub fn new(config: Config, first_sequence: u32, seed: u64) -> Self {
        Speaker {
            config,
            circuits: Vec::new(),
            database: Database::default(),
            own: Own::new(first_sequence),
            incomplete: Incomplete::new(),
            jitter: Jitter::new(seed),
            out: VecDeque::new(),
            drops: BTreeMap::new(),
            counters: Counters::default(),
            changes: Changes::default(),
            is_leaving: false,
        }
    }

    /// Adds a circuit, whose link is up.
    pub fn add_circuit(&mut self, now: Instant, config: CircuitConfig) -> CircuitId {
        let id = CircuitId(self.circuits.len());
        self.circuits.push(Circuit::new(id, now, config, &self.config));
        self.incomplete.begin(now);
        self.own.touch();
        id
    }

    /// The link of a circuit came up or went down.
    pub fn set_link(&mut self, now: Instant, id: CircuitId, is_up: bool) {
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

    /// A neighbour of a circuit is not to be used, since another protocol has lost it: the handshake begins anew with
    /// its next hello.
    pub fn lose_neighbour(&mut self, now: Instant, id: CircuitId, neighbour: SystemId) {
        let adjacency = self.adjacencies(id).find(|adjacency| adjacency.neighbour == neighbour);
        if adjacency.is_some_and(Adjacency::is_up) {
            self.counters.neighbours_lost += 1;
            self.end_adjacency(id, neighbour);
            self.settle_lan(now, id);
            self.hasten_hello(now, id);
        }
    }

    /// Changes a circuit's address, metric and advertisements. Its adjacencies stay, unless its type is another.
    pub fn change_circuit(&mut self, now: Instant, id: CircuitId, config: CircuitConfig) {
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

    /// Reports state Down to all neighbours, so that they need not wait for the holding time to expire, and takes all
    /// circuits down. Some implementations only restart the handshake: the last hello has a holding time of a second.
    pub fn retire(&mut self, now: Instant) {
        self.is_leaving = true;
        for circuit in (0..self.circuits.len()).map(CircuitId) {
            self.end_adjacencies(circuit);
            self.hasten_hello(now, circuit);
            self.set_link(now, circuit, false);
        }
        self.is_leaving = false;
    }

    /// Changes the system's advertisements. Its id and its level stay. Another topology is in the next hellos.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        let (system, level) = (self.config.system, self.config.level);
        change(&mut self.config);
        (self.config.system, self.config.level) = (system, level);
        self.own.touch();
    }

    /// Time has come.
    pub fn tick(&mut self, now: Instant) {
        for index in 0..self.circuits.len() {
            for neighbour in self.circuits.get(index).map(|circuit| circuit.ended(now)).unwrap_or_default() {
                self.end_adjacency(CircuitId(index), neighbour);
            }
            self.settle_lan(now, CircuitId(index));
        }
        for lsp in self.database.age(now) {
            self.purge(now, &lsp, None);
        }
        self.settle_overload(now);
        self.renew_own(now);
        for index in 0..self.circuits.len() {
            self.say_hello(now, CircuitId(index));
            self.say_complete(now, CircuitId(index));
            self.flood(now, CircuitId(index));
        }
    }

    /// When [`Speaker::tick`] is wanted next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let circuits = self.circuits.iter().filter(|circuit| circuit.is_up).map(Circuit::next_deadline);
        let others = [self.database.next_deadline(), self.own.next_deadline(), self.overload_deadline()];
        circuits.chain(others).flatten().min()
    }

    /// The next frame to send, and its circuit.
    pub fn poll_transmit(&mut self) -> Option<(CircuitId, Vec<u8>)> {
        self.out.pop_front()
    }

    /// Changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The adjacencies of a circuit, at most one if it is point-to-point, by the neighbours' ids.
    pub fn adjacencies(&self, circuit: CircuitId) -> impl Iterator<Item = &Adjacency> {
        self.circuits.get(circuit.0).into_iter().flat_map(|circuit| circuit.adjacencies.values())
    }

    /// The adjacency of a point-to-point circuit; of a LAN, the first of them.
    pub fn adjacency(&self, circuit: CircuitId) -> Option<&Adjacency> {
        self.adjacencies(circuit).next()
    }

    /// The type of a circuit.
    pub fn circuit_type(&self, circuit: CircuitId) -> Option<CircuitType> {
        Some(self.circuits.get(circuit.0)?.config.kind)
    }

    /// The pseudonode of a LAN, by which its designated system is known; `None` before an election, and on a
    /// point-to-point circuit.
    pub fn designated(&self, circuit: CircuitId) -> Option<NodeId> {
        self.circuits.get(circuit.0)?.lan.as_ref()?.designated()
    }

    /// The circuits that lead to a system in our topology, with the adjacency, which is up.
    pub fn circuits_to(&self, system: SystemId) -> impl Iterator<Item = (CircuitId, &Adjacency)> {
        let leads_there = move |circuit: &'_ Circuit| circuit.adjacencies.contains_key(&system);
        let circuits = self.circuits.iter().enumerate().filter(move |(_, circuit)| leads_there(circuit));
        circuits.filter_map(move |(at, circuit)| {
            let adjacency = circuit.adjacencies.get(&system)?;
            let is_used = adjacency.is_up() && adjacency.topologies.contains(self.config.topology);
            is_used.then_some((CircuitId(at), adjacency))
        })
    }

    /// The shortest paths from here. At level 1 the way out of the area is among the prefixes, as `::/0`.
    pub fn shortest_paths(&self, now: Instant) -> ShortestPaths {
        let Config { system, level, topology, .. } = &self.config;
        ShortestPaths::compute(&self.database, NodeId::of(*system), *level, *topology, now)
    }

    /// Announcements of all nodes, including this one.
    pub fn learned(&self, now: Instant) -> BTreeMap<SystemId, LearnedNode> {
        learn(&self.database, self.config.topology, now)
    }

    /// Frames that were dropped, by reason.
    pub fn drops(&self) -> &BTreeMap<IsisDrop, u64> {
        &self.drops
    }

    /// Further counters.
    pub fn counters(&self) -> Counters {
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
