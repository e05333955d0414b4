//! A circuit at one level: its adjacencies, its LAN if it is one, and what it floods.

use super::synchronisation::Synchronisation;
use crate::adjacency::Adjacency;
use crate::config::{CircuitConfig, CircuitType, Config};
use crate::flooding::Flooding;
use crate::frame::{ALL_INTERMEDIATE_SYSTEMS, group_of};
use crate::id::SystemId;
use crate::lan::Lan;
use crate::pdu::Level;
use crate::speaker::CircuitId;
use srdma_wire::units::NS_PER_MS;
use srdma_wire::{Instant, MacAddress};
use std::collections::BTreeMap;

/// Hellos and CSNPs of a LAN's designated system come so many times as often as those of others (ISO 10589:
/// dRISISHelloTimer), so that its death is noticed sooner.
const DESIGNATED_RATE: u64 = 3;

pub(super) struct Circuit {
    pub(super) config: CircuitConfig,
    pub(super) is_up: bool,
    pub(super) adjacencies: BTreeMap<SystemId, Adjacency>,
    /// `None` on a point-to-point circuit.
    pub(super) lan: Option<Lan>,
    pub(super) flooding: Flooding,
    /// While there is an adjacency that is up.
    pub(super) synchronisation: Option<Synchronisation>,
    pub(super) hello_at: Instant,
    pub(super) complete_at: Instant,
}

impl Circuit {
    pub(super) fn new(id: CircuitId, now: Instant, config: CircuitConfig, system: &Config) -> Self {
        let mut circuit = Circuit {
            config,
            is_up: true,
            adjacencies: BTreeMap::new(),
            lan: None,
            flooding: Flooding::default(),
            synchronisation: None,
            hello_at: now,
            complete_at: now,
        };
        circuit.enable(id, now, system);
        circuit
    }

    /// The link has come up: a LAN has no designated system yet. A pseudonode's number is that of its circuit from 1,
    /// so that circuits beyond the 255th are no LANs.
    pub(super) fn enable(&mut self, id: CircuitId, now: Instant, system: &Config) {
        let number = u8::try_from(id.0 + 1).ok();
        self.lan = match (self.config.kind, number) {
            (CircuitType::PointToPoint, _) | (CircuitType::Broadcast { .. }, None) => None,
            (CircuitType::Broadcast { .. }, Some(number)) => {
                let elect_at = now.after_ns(2 * system.timers.hello_ms * NS_PER_MS);
                Some(Lan::new(system.system, number, elect_at))
            }
        };
        self.forget_flooding();
    }

    pub(super) fn is_lan(&self) -> bool {
        self.lan.is_some()
    }

    /// Whether we are the designated system of the LAN.
    pub(super) fn is_designated(&self) -> bool {
        self.lan.as_ref().is_some_and(Lan::is_ours)
    }

    pub(super) fn is_adjacent(&self) -> bool {
        self.adjacencies.values().any(Adjacency::is_up)
    }

    /// The neighbour from which a frame comes, if its adjacency is up. A point-to-point circuit has but one.
    pub(super) fn neighbour_at(&self, mac: Option<MacAddress>) -> Option<SystemId> {
        let is_it = |adjacency: &&Adjacency| adjacency.lan.is_none_or(|lan| Some(lan.mac) == mac);
        self.adjacencies.values().filter(|adjacency| adjacency.is_up()).find(is_it).map(|adjacency| adjacency.neighbour)
    }

    /// The neighbours whose holding time is over.
    pub(super) fn ended(&self, now: Instant) -> Vec<SystemId> {
        let ended = self.adjacencies.values().filter(|adjacency| adjacency.until() <= now);
        ended.map(|adjacency| adjacency.neighbour).collect()
    }

    /// Nothing is left to send, acknowledge or request.
    pub(super) fn forget_flooding(&mut self) {
        self.flooding = if self.is_lan() { Flooding::of_lan() } else { Flooding::default() };
        self.synchronisation = None;
    }

    /// Elects the designated system of a LAN; whether it is another one. One that we become sends its database at once.
    pub(super) fn elect(&mut self, now: Instant) -> bool {
        let CircuitType::Broadcast { priority } = self.config.kind else { return false };
        let Some(lan) = &mut self.lan else { return false };
        let is_other = lan.elect(now, (priority, self.config.mac), self.adjacencies.values());
        if is_other && lan.is_ours() {
            self.complete_at = now;
        }
        is_other
    }

    /// Whether it sends CSNPs: on a LAN, the designated system does.
    pub(super) fn sends_complete(&self) -> bool {
        self.is_adjacent() && (!self.is_lan() || self.is_designated())
    }

    /// An interval of hellos or CSNPs of this circuit.
    pub(super) fn interval(&self, usual: u64) -> u64 {
        if self.is_designated() { (usual / DESIGNATED_RATE).max(1) } else { usual }
    }

    /// Destination of its frames.
    pub(super) fn destination(&self, level: Level) -> MacAddress {
        if self.is_lan() { group_of(level) } else { ALL_INTERMEDIATE_SYSTEMS }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let over = self.adjacencies.values().map(Adjacency::until).min();
        let complete = self.sends_complete().then_some(self.complete_at);
        let flooding = self.flooding.next_deadline().filter(|_| self.is_adjacent());
        let election = self.lan.as_ref().and_then(Lan::next_deadline);
        [Some(self.hello_at), over, complete, flooding, election].into_iter().flatten().min()
    }
}
