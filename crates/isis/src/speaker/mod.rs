//! An IS-IS system, as a value: frames and time in, frames out.

mod drop_reason;
mod overload;
mod receive;

use crate::adjacency::Adjacency;
use crate::config::{CircuitConfig, CircuitType, Config};
use crate::database::Database;
use crate::id::{NodeId, SystemId};
use crate::leaks::{Leaks, is_attached, own_prefixes};
use crate::learned::LearnedNode;
use crate::level::OneLevel;
use crate::pdu::{Level, Levels};
use crate::repair::Repairs;
use crate::shortest_paths::ShortestPaths;
use crate::tlv::AdjacencyState;
pub use drop_reason::IsisDrop;
use overload::Incomplete;
pub use overload::Overload;
use srdma_wire::Instant;
use std::collections::BTreeMap;

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
    /// Level 1 first.
    levels: Vec<OneLevel>,
    /// Whether the link of each circuit is up, and its type.
    circuits: Vec<(bool, CircuitType)>,
    incomplete: Incomplete,
    drops: BTreeMap<IsisDrop, u64>,
    counters: Counters,
}

impl Speaker {
    /// A system without circuits. `first_sequence` is the number of its first LSPs: a system that has lost its memory
    /// may take it from its clock; otherwise it learns it from its neighbours. `seed` is that of the jitter of timers,
    /// another one for each system.
    pub fn new(config: Config, first_sequence: u32, seed: u64) -> Self {
        let level = |level: &Level| OneLevel::new(*level, config.clone(), first_sequence, seed);
        let mut speaker = Speaker {
            levels: config.levels.as_slice().iter().map(level).collect(),
            config,
            circuits: Vec::new(),
            incomplete: Incomplete::new(),
            drops: BTreeMap::new(),
            counters: Counters::default(),
        };
        speaker.settle_overload(Instant::ZERO);
        speaker
    }

    /// Adds a circuit, whose link is up.
    pub fn add_circuit(&mut self, now: Instant, config: CircuitConfig) -> CircuitId {
        let id = CircuitId(self.circuits.len());
        self.circuits.push((true, config.kind));
        for level in &mut self.levels {
            level.add_circuit(now, id, config.clone());
        }
        self.incomplete.begin(now);
        id
    }

    /// The link of a circuit came up or went down.
    pub fn set_link(&mut self, now: Instant, id: CircuitId, is_up: bool) {
        if let Some((was_up, _)) = self.circuits.get_mut(id.0) {
            *was_up = is_up;
        }
        for level in &mut self.levels {
            level.set_link(now, id, is_up);
        }
    }

    /// A neighbour of a circuit is not to be used, since another protocol has lost it: the handshake begins anew with
    /// its next hello.
    pub fn lose_neighbour(&mut self, now: Instant, id: CircuitId, neighbour: SystemId) {
        // It goes at all levels.
        let lost = self.levels.iter_mut().filter_map(|level| level.lose_neighbour(now, id, neighbour).then_some(()));
        if lost.count() > 0 {
            self.counters.neighbours_lost += 1;
            self.say_hello(now, id);
        }
    }

    /// Changes a circuit's address, metric and advertisements. Its adjacencies stay, unless its type is another.
    pub fn change_circuit(&mut self, now: Instant, id: CircuitId, config: CircuitConfig) {
        if let Some((_, kind)) = self.circuits.get_mut(id.0) {
            *kind = config.kind;
        }
        for level in &mut self.levels {
            level.change_circuit(now, id, config.clone());
        }
    }

    /// Reports state Down to all neighbours, so that they need not wait for the holding time to expire, and takes all
    /// circuits down. Some implementations only restart the handshake: the last hello has a holding time of a second.
    pub fn retire(&mut self, now: Instant) {
        for id in (0..self.circuits.len()).map(CircuitId) {
            self.levels.iter_mut().for_each(|level| level.retire(now, id));
            self.say_hello(now, id);
            self.set_link(now, id, false);
        }
        self.levels.iter_mut().for_each(OneLevel::end_retiring);
    }

    /// Changes the system's advertisements. Its id and its levels stay. Another topology is in the next hellos.
    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        let (system, levels) = (self.config.system, self.config.levels);
        change(&mut self.config);
        (self.config.system, self.config.levels) = (system, levels);
        for level in &mut self.levels {
            level.reconfigure(self.config.clone());
        }
    }

    /// Time has come.
    pub fn tick(&mut self, now: Instant) {
        self.levels.iter_mut().for_each(|level| level.age(now));
        self.settle_overload(now);
        self.settle_leaks(now);
        self.levels.iter_mut().for_each(|level| level.renew_own(now));
        for id in (0..self.circuits.len()).map(CircuitId) {
            self.say_hello(now, id);
        }
        self.levels.iter_mut().for_each(|level| level.send_due(now));
    }

    /// When [`Speaker::tick`] is wanted next.
    pub fn next_deadline(&self) -> Option<Instant> {
        let is_due = self.levels.len() > 1 && self.levels.iter().any(OneLevel::has_changed);
        let at_once = is_due.then_some(Instant::ZERO);
        let levels = self.levels.iter().map(OneLevel::next_deadline);
        levels.chain([self.overload_deadline(), at_once]).flatten().min()
    }

    /// The next frame to send, and its circuit.
    pub fn poll_transmit(&mut self) -> Option<(CircuitId, Vec<u8>)> {
        self.levels.iter_mut().find_map(OneLevel::poll_transmit)
    }

    /// Changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        let all = self.levels.iter_mut().map(OneLevel::take_changes);
        all.fold(Changes::default(), |all, Changes { adjacencies, database }| Changes {
            adjacencies: all.adjacencies || adjacencies,
            database: all.database || database,
        })
    }

    /// The database of a level; an empty one of a level at which the system does not work.
    pub fn database(&self, level: Level) -> &Database {
        static EMPTY: Database = Database::EMPTY;
        self.at(level).map_or(&EMPTY, OneLevel::database)
    }

    /// The levels at which it works.
    pub fn levels(&self) -> Levels {
        self.config.levels
    }

    /// The adjacencies of a circuit at a level by the neighbours' ids, at most one if it is point-to-point.
    pub fn adjacencies(&self, level: Level, circuit: CircuitId) -> impl Iterator<Item = &Adjacency> {
        self.at(level).into_iter().flat_map(move |at| at.adjacencies(circuit))
    }

    /// The adjacency of a point-to-point circuit at a level; of a LAN, the first of them.
    pub fn adjacency(&self, level: Level, circuit: CircuitId) -> Option<&Adjacency> {
        self.adjacencies(level, circuit).next()
    }

    /// The type of a circuit.
    pub fn circuit_type(&self, circuit: CircuitId) -> Option<CircuitType> {
        self.circuits.get(circuit.0).map(|(_, kind)| *kind)
    }

    /// The pseudonode of a LAN at a level, by which its designated system is known; `None` before an election, and on a
    /// point-to-point circuit.
    pub fn designated(&self, level: Level, circuit: CircuitId) -> Option<NodeId> {
        self.at(level)?.designated(circuit)
    }

    /// The circuits that lead to a system at a level in our topology, with the adjacency, which is up.
    pub fn circuits_to(&self, level: Level, system: SystemId) -> impl Iterator<Item = (CircuitId, &Adjacency)> {
        self.at(level).into_iter().flat_map(move |at| at.circuits_to(system))
    }

    /// The shortest paths from here. At level 1 the way out of the area is among the prefixes, as `::/0`. At both
    /// levels each prefix has the path of the preferred level (RFC 5308 section 5).
    pub fn shortest_paths(&self, now: Instant) -> ShortestPaths {
        match self.levels.as_slice() {
            [one, two] => {
                let (of_one, of_two) = (one.shortest_paths(now), two.shortest_paths(now));
                let is_attached = is_attached(&self.config, two.database(), &of_two, now);
                let mut both = ShortestPaths::of_both(of_one, of_two, is_attached);
                // Others of the area announce them at level 2 as well.
                for own in own_prefixes(&self.config) {
                    both.prefixes.remove(&own);
                }
                both
            }
            levels => levels.first().map(|level| level.shortest_paths(now)).unwrap_or_default(),
        }
    }

    /// Paths around the links of a level to each neighbour, for the prefixes that are reached by that neighbour alone;
    /// around the neighbour as well, where that is possible and asked for (D265, D286, D287).
    pub fn repairs(&self, level: Level, has_node_protection: bool, now: Instant) -> Repairs {
        self.at(level).map(|at| at.repairs(has_node_protection, now)).unwrap_or_default()
    }

    /// Announcements of all nodes, including this one.
    pub fn learned(&self, now: Instant) -> BTreeMap<SystemId, LearnedNode> {
        let mut all: BTreeMap<SystemId, LearnedNode> = BTreeMap::new();
        for (system, node) in self.levels.iter().flat_map(|level| level.learned(now)) {
            all.entry(system).or_default().extend(node);
        }
        all
    }

    /// Whether this system's level-1 LSPs have the attached bit: level 2 leads to other areas.
    pub fn is_attached(&self) -> bool {
        self.levels.first().is_some_and(OneLevel::is_attached)
    }

    /// Frames that were dropped, by reason.
    pub fn drops(&self) -> &BTreeMap<IsisDrop, u64> {
        &self.drops
    }

    /// Further counters.
    pub fn counters(&self) -> Counters {
        let mut all = self.counters;
        for level in self.levels.iter().map(OneLevel::counters) {
            all.sent += level.sent;
            all.own_from_elsewhere += level.own_from_elsewhere;
            all.confusions += level.confusions;
            all.lsp_overflows += level.lsp_overflows;
        }
        all
    }

    fn at(&self, level: Level) -> Option<&OneLevel> {
        self.levels.iter().find(|at| at.level() == level)
    }

    fn is_link_up(&self, id: CircuitId) -> bool {
        self.circuits.get(id.0).is_some_and(|(is_up, _)| *is_up)
    }

    /// Sends the hello of a point-to-point circuit, one for all levels, if it is due at any of them.
    fn say_hello(&mut self, now: Instant, id: CircuitId) {
        if !self.levels.iter().any(|level| level.owes_hello(now, id)) {
            return;
        }
        // Of two adjacencies with one neighbour, the one that is up.
        let rank = |adjacency: &&Adjacency| adjacency.state == AdjacencyState::Up;
        let adjacency = self.levels.iter().flat_map(|level| level.adjacencies(id)).max_by_key(rank);
        let three_way = Adjacency::three_way(adjacency, id.0 as u32 + 1);
        let next = self.levels.first_mut().and_then(|first| first.say_hello(now, id, three_way));
        for level in &mut self.levels {
            next.into_iter().for_each(|next| level.said_hello(id, next));
        }
    }

    /// At both levels: has each announce what the other knows now, if it is about to renew its LSPs.
    fn settle_leaks(&mut self, now: Instant) {
        let [one, two] = self.levels.as_mut_slice() else { return };
        let (is_one_new, is_two_new) = (one.take_change(), two.take_change());
        if is_one_new {
            two.touch();
        }
        // What comes down gives way to routes of level 1 itself.
        if is_two_new || is_one_new && !self.config.leak_down.is_empty() {
            one.touch();
        }
        if !one.owes_own(now) && !two.owes_own(now) {
            return;
        }
        let (of_one, of_two) = (one.shortest_paths(now), two.shortest_paths(now));
        let up = Leaks::up(&self.config, one.database(), &of_one, now);
        let down = Leaks::down(&self.config, two.database(), &of_one, &of_two, now);
        one.announce(is_attached(&self.config, two.database(), &of_two, now), down);
        two.announce(false, up);
    }
}
