//! An IS-IS system on point-to-point circuits, as a value: frames and time in, frames out.

mod drop_reason;
mod overload;
mod own;
mod receive;
mod send;

use crate::adjacency::Adjacency;
use crate::config::{CircuitConfig, Config};
use crate::database::Database;
use crate::flooding::Flooding;
use crate::id::{LspId, NodeId, SystemId};
use crate::jitter::Jitter;
use crate::learned::{LearnedNode, learn};
use crate::pdu::Lsp;
use crate::shortest_paths::ShortestPaths;
use crate::tlv::{AdjacencyState, PurgeOriginator};
pub use drop_reason::IsisDrop;
pub use overload::Overload;
use overload::{Incomplete, Synchronisation};
use own::Own;
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};

/// A circuit's number: its place in the order in which circuits were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub usize);

/// Changes since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// An adjacency went up or down, or the neighbour has other addresses.
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

struct Circuit {
    config: CircuitConfig,
    is_up: bool,
    adjacency: Option<Adjacency>,
    flooding: Flooding,
    /// While there is an adjacency that is up.
    synchronisation: Option<Synchronisation>,
    hello_at: Instant,
    complete_at: Instant,
}

impl Circuit {
    fn is_adjacent(&self) -> bool {
        self.adjacency.as_ref().is_some_and(|adjacency| adjacency.state == AdjacencyState::Up)
    }

    fn has_ended(&self, now: Instant) -> bool {
        self.adjacency.as_ref().is_some_and(|adjacency| adjacency.until() <= now)
    }
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
        let circuit = Circuit {
            config,
            is_up: true,
            adjacency: None,
            flooding: Flooding::default(),
            synchronisation: None,
            hello_at: now,
            complete_at: now,
        };
        self.circuits.push(circuit);
        self.incomplete.begin(now);
        self.own.touch();
        CircuitId(self.circuits.len() - 1)
    }

    /// The link of a circuit came up or went down.
    pub fn set_link(&mut self, now: Instant, circuit: CircuitId, is_up: bool) {
        if let Some(circuit) = self.circuits.get_mut(circuit.0) {
            circuit.is_up = is_up;
            circuit.hello_at = now;
        }
        if !is_up {
            self.end_adjacency(circuit);
        }
    }

    /// The neighbour of a circuit is not to be used, since another protocol has lost it: the handshake begins anew with
    /// its next hello.
    pub fn lose_neighbour(&mut self, now: Instant, circuit: CircuitId) {
        if self.circuits.get(circuit.0).is_some_and(Circuit::is_adjacent) {
            self.counters.neighbours_lost += 1;
            self.end_adjacency(circuit);
            self.hasten_hello(now, circuit);
        }
    }

    /// Changes a circuit's address, metric and advertisements. Its adjacency stays.
    pub fn change_circuit(&mut self, now: Instant, circuit: CircuitId, config: CircuitConfig) {
        if let Some(circuit) = self.circuits.get_mut(circuit.0).filter(|circuit| circuit.config != config) {
            circuit.config = config;
            circuit.hello_at = now;
            self.own.touch();
        }
    }

    /// Reports state Down to all neighbours, so that they need not wait for the holding time to expire, and takes all
    /// circuits down. Some implementations only restart the handshake: the last hello has a holding time of a second.
    pub fn retire(&mut self, now: Instant) {
        self.is_leaving = true;
        for circuit in (0..self.circuits.len()).map(CircuitId) {
            self.end_adjacency(circuit);
            self.hasten_hello(now, circuit);
            self.set_link(now, circuit, false);
        }
        self.is_leaving = false;
    }

    /// Changes the system's advertisements. Its id and its level stay.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        let (system, level) = (self.config.system, self.config.level);
        change(&mut self.config);
        (self.config.system, self.config.level) = (system, level);
        self.own.touch();
    }

    /// Time has come.
    pub fn tick(&mut self, now: Instant) {
        for index in 0..self.circuits.len() {
            if self.circuits.get(index).is_some_and(|circuit| circuit.has_ended(now)) {
                self.end_adjacency(CircuitId(index));
            }
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
        let circuits = self.circuits.iter().filter(|circuit| circuit.is_up).flat_map(|circuit| {
            let adjacent = circuit.is_adjacent();
            let over = circuit.adjacency.as_ref().map(Adjacency::until);
            let complete = adjacent.then_some(circuit.complete_at);
            let flooding = circuit.flooding.next_deadline().filter(|_| adjacent);
            [Some(circuit.hello_at), over, complete, flooding]
        });
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

    /// The adjacency of a circuit.
    pub fn adjacency(&self, circuit: CircuitId) -> Option<&Adjacency> {
        self.circuits.get(circuit.0)?.adjacency.as_ref()
    }

    /// The circuits that lead to a system, with an adjacency that is up.
    pub fn circuits_to(&self, system: SystemId) -> impl Iterator<Item = CircuitId> {
        let leads_there = move |circuit: &Circuit| {
            circuit.is_adjacent() && circuit.adjacency.as_ref().is_some_and(|adjacency| adjacency.neighbour == system)
        };
        self.circuits.iter().enumerate().filter(move |(_, circuit)| leads_there(circuit)).map(|(at, _)| CircuitId(at))
    }

    /// The shortest paths from here.
    pub fn shortest_paths(&self, now: Instant) -> ShortestPaths {
        ShortestPaths::compute(&self.database, NodeId::of(self.config.system), now)
    }

    /// Announcements of all nodes, including this one.
    pub fn learned(&self, now: Instant) -> BTreeMap<SystemId, LearnedNode> {
        learn(&self.database, now)
    }

    /// Frames that were dropped, by reason.
    pub fn drops(&self) -> &BTreeMap<IsisDrop, u64> {
        &self.drops
    }

    /// Further counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn end_adjacency(&mut self, circuit: CircuitId) {
        let Some(circuit) = self.circuits.get_mut(circuit.0) else { return };
        if circuit.is_adjacent() {
            self.own.touch();
            self.changes.adjacencies = true;
        }
        circuit.adjacency = None;
        circuit.flooding = Flooding::default();
        circuit.synchronisation = None;
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
    /// circuit by which the LSP came, if the purge has no other cause than that.
    fn purge(&mut self, now: Instant, lsp: &Lsp, cause: Option<CircuitId>) {
        let purge = lsp.purge(self.config.key.as_ref(), self.purge_originator(cause));
        self.store_and_flood(now, purge, None);
    }

    fn purge_originator(&self, cause: Option<CircuitId>) -> PurgeOriginator {
        let received_from = cause.and_then(|circuit| Some(self.adjacency(circuit)?.neighbour));
        PurgeOriginator { system: self.config.system, received_from }
    }

    fn is_own(&self, id: LspId) -> bool {
        id.node.system == self.config.system
    }
}
