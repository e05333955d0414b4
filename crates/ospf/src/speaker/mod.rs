//! An OSPFv3 router, as a value: packets and time in, packets out.

mod drop_reason;
mod exchange;
mod flooding;
mod own;
mod receive;

use crate::config::{CircuitConfig, Config};
use crate::database::{Database, Place};
use crate::id::RouterId;
use crate::learned::learn;
use crate::lsa::{LsaHeader, LsaKey};
use crate::neighbour::{Neighbour, NeighbourState};
use crate::packet::{ALL_ROUTERS, Body, HEADER_LEN, Hello, Packet, options};
use crate::paths::Paths;
pub use drop_reason::OspfDrop;
use own::Own;
use srdma_isis::LearnedNode;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// A circuit's number: its place in the order in which circuits were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub usize);

/// A packet to send.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    pub circuit: CircuitId,
    pub destination: Ipv6Addr,
    pub octets: Vec<u8>,
}

/// Changes since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// A neighbour became full or ceased to be, or has another address.
    pub neighbours: bool,
    /// LSAs came or went: shortest paths and learned SIDs may be others.
    pub database: bool,
}

/// Events for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were taken.
    pub received: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// LSAs that were sent again because no acknowledgment came.
    pub retransmitted: u64,
    /// LSAs with our own id that we have not originated: older ones of ours, or two routers with one id.
    pub own_from_elsewhere: u64,
    /// Exchanges that began anew, by a wrong number or an unknown request.
    pub restarted_exchanges: u64,
    /// Own LSAs that do not fit into one.
    pub lsa_overflows: u64,
}

/// The router.
pub struct Speaker {
    config: Config,
    circuits: Vec<Circuit>,
    database: Database,
    own: Own,
    /// Time since which no LSA has been refused for want of room counts (D278).
    refused_at: Option<Instant>,
    outgoing: VecDeque<Transmission>,
    drops: BTreeMap<OspfDrop, u64>,
    counters: Counters,
    changes: Changes,
}

struct Circuit {
    config: CircuitConfig,
    is_up: bool,
    hello_at: Instant,
    neighbour: Option<Neighbour>,
    /// LSAs that are sent next.
    flood: BTreeSet<Place>,
    acknowledgments: Vec<LsaHeader>,
}

/// Time for which a router whose database was full is avoided by others (D278).
const FULL_S: u64 = 60;

/// Octets of an IPv6 header.
const IPV6_HEADER_LEN: usize = 40;

impl Speaker {
    /// A router without circuits.
    pub fn new(config: Config) -> Self {
        Speaker {
            config,
            circuits: Vec::new(),
            database: Database::default(),
            own: Own::default(),
            refused_at: None,
            outgoing: VecDeque::new(),
            drops: BTreeMap::new(),
            counters: Counters::default(),
            changes: Changes::default(),
        }
    }

    /// Adds a circuit, whose link is up.
    pub fn add_circuit(&mut self, now: Instant, config: CircuitConfig) -> CircuitId {
        let id = CircuitId(self.circuits.len());
        self.circuits.push(Circuit {
            config,
            is_up: true,
            hello_at: now,
            neighbour: None,
            flood: BTreeSet::new(),
            acknowledgments: Vec::new(),
        });
        self.own.touch();
        id
    }

    /// The link of a circuit came up or went down.
    pub fn set_link(&mut self, now: Instant, id: CircuitId, is_up: bool) {
        let Some(circuit) = self.circuits.get_mut(id.0).filter(|circuit| circuit.is_up != is_up) else { return };
        (circuit.is_up, circuit.hello_at) = (is_up, now);
        if !is_up {
            self.lose_neighbour(id);
            for place in self.database.of_circuit(id) {
                self.database.remove(place);
                self.own.forget(place);
            }
        }
        self.own.touch();
        self.settle(now);
    }

    /// Changes a circuit's metric, address and SIDs. Its neighbour stays, unless the address is another: the neighbour
    /// would not recognise its source.
    pub fn change_circuit(&mut self, now: Instant, id: CircuitId, config: CircuitConfig) {
        let Some(circuit) = self.circuits.get_mut(id.0) else { return };
        circuit.config = config;
        circuit.hello_at = now;
        self.own.touch();
    }

    /// Changes the router's announcements and timers. Its id stays.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        let router = self.config.router;
        change(&mut self.config);
        self.config.router = router;
        self.own.touch();
    }

    /// Flushes the router's own LSAs, sends hellos without neighbours, by which these are neighbours no more, and takes
    /// all circuits down.
    pub fn retire(&mut self, now: Instant) {
        self.flush_all(now);
        self.settle(now);
        for id in (0..self.circuits.len()).map(CircuitId) {
            if let Some(circuit) = self.circuits.get_mut(id.0).filter(|circuit| circuit.is_up) {
                circuit.neighbour = None;
                self.changes.neighbours = true;
                self.say_hello(id);
            }
            self.set_link(now, id, false);
        }
    }

    /// Time has come.
    pub fn tick(&mut self, now: Instant) {
        for id in (0..self.circuits.len()).map(CircuitId) {
            let neighbour = self.neighbour(id);
            if neighbour.is_some_and(|neighbour| neighbour.until <= now) {
                self.lose_neighbour(id);
            }
        }
        self.age(now);
        if self.refused_at.is_some_and(|at| at.after_ns(FULL_S * NS_PER_S) <= now) {
            self.refused_at = None;
            self.own.touch();
        }
        self.settle(now);
        self.renew_own(now);
        for id in (0..self.circuits.len()).map(CircuitId) {
            let hello_ns = u64::from(self.config.timers.hello_s) * NS_PER_S;
            if let Some(circuit) =
                self.circuits.get_mut(id.0).filter(|circuit| circuit.is_up && circuit.hello_at <= now)
            {
                circuit.hello_at = now.after_ns(hello_ns);
                self.say_hello(id);
            }
            self.resend_description(now, id);
            self.resend_requests(now, id);
            self.retransmit(now, id);
        }
        self.settle(now);
    }

    /// When [`Speaker::tick`] is wanted next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let of_circuit = |circuit: &Circuit| {
            let of_neighbour = circuit.neighbour.as_ref().and_then(Neighbour::next_deadline);
            [Some(circuit.hello_at), of_neighbour].into_iter().flatten().min()
        };
        let circuits = self.circuits.iter().filter(|circuit| circuit.is_up).filter_map(of_circuit);
        let full = self.refused_at.map(|at| at.after_ns(FULL_S * NS_PER_S));
        circuits.chain([self.own.next_deadline(), self.database.next_deadline(), full].into_iter().flatten()).min()
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmission> {
        let next = self.outgoing.pop_front()?;
        self.counters.sent += 1;
        Some(next)
    }

    /// Changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// The LSAs of all routers.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The neighbour of a circuit.
    pub fn neighbour(&self, id: CircuitId) -> Option<&Neighbour> {
        self.circuits.get(id.0)?.neighbour.as_ref()
    }

    /// The circuits that lead to a router, with the neighbour, which is full.
    pub fn circuits_to(&self, router: RouterId) -> impl Iterator<Item = (CircuitId, &Neighbour)> {
        let all = self.circuits.iter().enumerate();
        let full = all.filter_map(|(number, circuit)| Some((CircuitId(number), circuit.neighbour.as_ref()?)));
        full.filter(move |(_, neighbour)| neighbour.is_full() && neighbour.router == router)
    }

    /// The shortest paths from here.
    pub fn paths(&self) -> Paths {
        Paths::compute(&self.database, self.config.router)
    }

    /// Announcements of all routers, including this one.
    pub fn learned(&self) -> BTreeMap<RouterId, LearnedNode> {
        learn(&self.database)
    }

    /// Whether others are asked not to send transit packets through this router: as configured, or since its database
    /// was full (D278).
    pub fn is_overloaded(&self) -> bool {
        self.config.is_overloaded || self.refused_at.is_some()
    }

    /// Packets and LSAs that were dropped, by reason.
    pub fn drops(&self) -> &BTreeMap<OspfDrop, u64> {
        &self.drops
    }

    /// Further counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Options in hellos, descriptions and LSAs.
    fn options(&self) -> u32 {
        let transit = if self.is_overloaded() { 0 } else { options::R };
        options::V6 | options::E | transit
    }

    fn say_hello(&mut self, id: CircuitId) {
        let heard = self.neighbour(id).map(|neighbour| neighbour.router);
        let hello = Hello {
            interface: interface(id),
            priority: 0,
            options: self.options(),
            hello_s: self.config.timers.hello_s,
            dead_s: self.config.timers.dead_s,
            designated: RouterId::default(),
            backup: RouterId::default(),
            neighbours: heard.into_iter().collect(),
        };
        self.send(id, ALL_ROUTERS, Body::Hello(hello));
    }

    fn send(&mut self, id: CircuitId, destination: Ipv6Addr, body: Body) {
        let Some(circuit) = self.circuits.get(id.0).filter(|circuit| circuit.is_up) else { return };
        let packet = Packet { router: self.config.router, area: 0, instance: 0, body };
        let octets = packet.emit(circuit.config.address, destination);
        self.outgoing.push_back(Transmission { circuit: id, destination, octets });
    }

    /// Octets of a packet's body on a circuit.
    fn room(&self, id: CircuitId) -> usize {
        let mtu = self.circuits.get(id.0).map_or(0, |circuit| usize::from(circuit.config.mtu));
        mtu.saturating_sub(IPV6_HEADER_LEN + HEADER_LEN)
    }

    /// The neighbour is gone.
    fn lose_neighbour(&mut self, id: CircuitId) {
        self.set_state(id, None);
        if let Some(circuit) = self.circuits.get_mut(id.0) {
            circuit.neighbour = None;
            circuit.flood.clear();
            circuit.acknowledgments.clear();
        }
    }

    /// Begins another state of the neighbour; `None` before it is forgotten.
    fn set_state(&mut self, id: CircuitId, state: Option<NeighbourState>) {
        let Some(neighbour) = self.circuits.get_mut(id.0).and_then(|circuit| circuit.neighbour.as_mut()) else {
            return;
        };
        let was_full = neighbour.is_full();
        match state {
            // Those states begin without lists.
            None => neighbour.restart(NeighbourState::Init),
            Some(state @ (NeighbourState::Init | NeighbourState::ExStart)) => neighbour.restart(state),
            Some(state @ (NeighbourState::Exchange | NeighbourState::Loading | NeighbourState::Full)) => {
                neighbour.state = state;
            }
        }
        if was_full != (state == Some(NeighbourState::Full)) {
            self.changes.neighbours = true;
            self.own.touch();
        }
    }

    fn place(&self, id: CircuitId, key: LsaKey) -> Place {
        let is_of_link = key.kind.scope() == crate::lsa::Scope::Link;
        Place { circuit: is_of_link.then_some(id), key }
    }
}

/// The number by which a circuit is known to its neighbour.
fn interface(id: CircuitId) -> u32 {
    id.0 as u32 + 1
}
