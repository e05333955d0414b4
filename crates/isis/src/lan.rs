//! Adjacencies of a LAN, and the election of its designated system (ISO 10589 sections 8.4.2, 8.4.5).
//!
//! ```text
//!              hello               hello that has our MAC address
//!   ┌──────┐                  ┌──────────────┐   ┌────┐
//!   │ Down │ ───────────────▶ │ Initializing │ ─▶│ Up │ ── candidate in the election
//!   └──────┘                  └──────────────┘   └────┘
//!      ▲  holding time over, link lost, another MAC   │   a hello without our MAC address: Initializing
//!      └───────────────────────────────────────────────┘
//! ```

use crate::adjacency::{Adjacency, HelloRefusal, Own};
use crate::id::{NodeId, SystemId};
use crate::pdu::LanHello;
use crate::tlv::AdjacencyState;
use srdma_wire::units::NS_PER_S;
use srdma_wire::{Instant, MacAddress};

/// Most neighbours of a LAN: their MAC addresses have room in a hello, and the pseudonode's LSP is short.
pub(crate) const GREATEST_NEIGHBOURS: usize = 128;

/// A neighbour on a LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanNeighbour {
    /// The source of its hellos.
    pub mac: MacAddress,
    /// Its priority in the election.
    pub priority: u8,
    /// The LAN's pseudonode, as the neighbour knows it.
    pub lan_id: NodeId,
}

impl Adjacency {
    /// Takes the hello of a LAN. `before` is what was known of its sender so far, `mac` our own address.
    pub(crate) fn on_lan_hello(
        before: Option<&Adjacency>,
        now: Instant,
        own: Own<'_>,
        mac: MacAddress,
        hello: &LanHello,
        from: MacAddress,
    ) -> Result<Self, HelloRefusal> {
        own.accepts(hello.source, &hello.levels, &hello.areas)?;
        let is_same = before.is_none_or(|before| before.lan.is_some_and(|lan| lan.mac == from));
        let hears_us = is_same && hello.heard.contains(&mac);
        Ok(Adjacency {
            state: if hears_us { AdjacencyState::Up } else { AdjacencyState::Initializing },
            neighbour: hello.source,
            addresses: hello.addresses.clone(),
            topologies: hello.topologies.clone(),
            circuit: 0,
            lan: Some(LanNeighbour { mac: from, priority: hello.priority, lan_id: hello.lan_id }),
            until: now.after_ns(u64::from(hello.holding_time_s) * NS_PER_S),
        })
    }

    /// What it is in the election, while it is up.
    fn candidate(&self) -> Option<Candidate> {
        let LanNeighbour { mac, priority, lan_id } = self.lan.filter(|_| self.state == AdjacencyState::Up)?;
        // Its pseudonode has a number once it knows that it is elected.
        let is_its_own = lan_id.system == self.neighbour && lan_id.pseudonode != 0;
        Some(Candidate { priority, mac, pseudonode: is_its_own.then_some(lan_id) })
    }
}

/// A system in the election: the highest priority wins, and the highest MAC address among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    priority: u8,
    mac: MacAddress,
    /// The pseudonode that it originates as the designated system; `None` while it does not know that it is.
    pseudonode: Option<NodeId>,
}

/// State of a LAN on one circuit.
#[derive(Clone, Debug)]
pub(crate) struct Lan {
    /// Our pseudonode, if we are designated.
    own: NodeId,
    /// Time before which we are not elected: two hellos after the circuit was enabled.
    elect_at: Option<Instant>,
    designated: Option<NodeId>,
}

impl Lan {
    /// A circuit that is enabled; `number` is that of our pseudonode.
    pub(crate) fn new(system: SystemId, number: u8, elect_at: Instant) -> Self {
        Lan { own: NodeId { system, pseudonode: number }, elect_at: Some(elect_at), designated: None }
    }

    /// The LAN's pseudonode; `None` before an election, or while the elected system does not know of it.
    pub(crate) fn designated(&self) -> Option<NodeId> {
        self.designated
    }

    /// Whether we originate the pseudonode.
    pub(crate) fn is_ours(&self) -> bool {
        self.designated == Some(self.own)
    }

    /// Time of the first election in which we take part.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.elect_at
    }

    /// Elects the designated system among us and the neighbours whose adjacencies are up; whether it is another one.
    /// Without a neighbour there is none. The present one stays until the elected one knows that it is (D248): a system
    /// that comes back waits before it takes part.
    pub(crate) fn elect<'a>(
        &mut self,
        now: Instant,
        (priority, mac): (u8, MacAddress),
        adjacencies: impl Iterator<Item = &'a Adjacency>,
    ) -> bool {
        self.elect_at = self.elect_at.filter(|at| now < *at);
        let others: Vec<Candidate> = adjacencies.filter_map(Adjacency::candidate).collect();
        let ours = self.elect_at.is_none().then_some(Candidate { priority, mac, pseudonode: Some(self.own) });
        let present = self.designated.filter(|present| {
            let is_there = |candidate: &Candidate| candidate.pseudonode == Some(*present);
            others.iter().chain(&ours).any(is_there)
        });
        let elected = match others.iter().chain(&ours).max() {
            Some(elected) if !others.is_empty() => elected.pseudonode.or(present),
            _ => None,
        };
        std::mem::replace(&mut self.designated, elected) != elected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlv::Topologies;

    const NOW: Instant = Instant::from_ns(10);
    const OWN: SystemId = SystemId([0, 0, 0, 0, 0, 1]);

    fn neighbour(number: u8, priority: u8, lan_id: Option<u8>) -> Adjacency {
        let system = SystemId([0, 0, 0, 0, 0, number]);
        let lan_id = NodeId { system, pseudonode: lan_id.unwrap_or(0) };
        Adjacency {
            state: AdjacencyState::Up,
            neighbour: system,
            addresses: Vec::new(),
            topologies: Topologies::default(),
            circuit: 0,
            lan: Some(LanNeighbour { mac: MacAddress([2, 0, 0, 0, 0, number]), priority, lan_id }),
            until: NOW,
        }
    }

    /// The pseudonode that is elected, where we have priority 64 and MAC address 5.
    fn elected(elect_at: Instant, neighbours: &[Adjacency]) -> Option<String> {
        let mut lan = Lan::new(OWN, 7, elect_at);
        let is_other = lan.elect(NOW, (64, MacAddress([2, 0, 0, 0, 0, 5])), neighbours.iter());
        assert_eq!(is_other, lan.designated().is_some());
        lan.designated().map(|pseudonode| pseudonode.to_string())
    }

    #[test]
    fn the_highest_priority_and_then_the_highest_address_is_elected() {
        let lan = |elected: &str| Some(elected.to_owned());
        let ours = "0000.0000.0001.07";
        assert_eq!(elected(NOW, &[]), None, "alone");
        assert_eq!(elected(NOW, &[neighbour(4, 64, Some(9))]), lan(ours));
        assert_eq!(elected(NOW, &[neighbour(6, 64, Some(9))]), lan("0000.0000.0006.09"));
        assert_eq!(elected(NOW, &[neighbour(6, 63, Some(9))]), lan(ours));
        assert_eq!(elected(NOW, &[neighbour(4, 65, Some(2)), neighbour(6, 64, Some(9))]), lan("0000.0000.0004.02"));
        assert_eq!(elected(NOW, &[neighbour(6, 64, None)]), None, "it does not know of it yet");
        let of_another = NodeId { system: OWN, pseudonode: 3 };
        let mut confused = neighbour(6, 64, None);
        confused.lan = confused.lan.map(|lan| LanNeighbour { lan_id: of_another, ..lan });
        assert_eq!(elected(NOW, &[confused]), None, "another's pseudonode is not its own");
        let initializing = Adjacency { state: AdjacencyState::Initializing, ..neighbour(6, 64, Some(9)) };
        assert_eq!(elected(NOW, &[initializing, neighbour(4, 64, Some(9))]), lan(ours));
    }

    #[test]
    fn the_present_one_stays_until_the_elected_one_knows() {
        let mut lan = Lan::new(OWN, 7, NOW);
        let mut elect = |neighbours: &[Adjacency]| {
            lan.elect(NOW, (64, MacAddress([2, 0, 0, 0, 0, 5])), neighbours.iter());
            lan.designated().map(|pseudonode| pseudonode.to_string()).unwrap_or_default()
        };
        let (ours, theirs) = ("0000.0000.0001.07", "0000.0000.0006.09");
        assert_eq!(elect(&[neighbour(4, 64, None)]), ours);
        assert_eq!(elect(&[neighbour(4, 64, None), neighbour(6, 64, None)]), ours);
        assert_eq!(elect(&[neighbour(4, 64, None), neighbour(6, 64, Some(9))]), theirs);
        let higher = neighbour(8, 127, None);
        assert_eq!(elect(&[neighbour(6, 64, Some(9)), higher.clone()]), theirs);
        assert_eq!(elect(&[neighbour(6, 64, Some(3)), higher.clone()]), "", "it is another pseudonode");
        assert_eq!(elect(&[higher]), "");
        assert_eq!(elect(&[]), "");
    }

    #[test]
    fn before_two_hellos_have_passed_it_is_one_of_the_others() {
        let later = NOW.after_ns(1);
        assert_eq!(elected(later, &[neighbour(4, 1, Some(9))]), Some("0000.0000.0004.09".to_owned()));
        assert_eq!(elected(later, &[neighbour(4, 1, None)]), None);
    }
}
