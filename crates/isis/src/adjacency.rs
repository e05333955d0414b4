//! Adjacencies, and the three-way handshake of a point-to-point circuit (RFC 5303 section 3.2).
//!
//! ```text
//!              hello, the other       hello that names us
//!   ┌──────┐   no hello       ┌──────────────┐   ┌────┐
//!   │ Down │ ───────────────▶ │ Initializing │ ─▶│ Up │
//!   └──────┘                  └──────────────┘   └────┘
//!      ▲  holding time over, link lost, another system │
//!      └────────────────────────────────────────────────┘   the neighbour reports Down: Initializing
//! ```

use crate::id::SystemId;
use crate::lan::LanNeighbour;
use crate::pdu::{Hello, Level};
use crate::tlv::{AdjacencyState, ThreeWay, Topologies, TopologyId};
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::net::Ipv6Addr;

/// An adjacency of a circuit: the only one of a point-to-point circuit, or one of a LAN.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjacency {
    /// State of the handshake.
    pub state: AdjacencyState,
    pub neighbour: SystemId,
    /// The neighbour's addresses on the link.
    pub addresses: Vec<Ipv6Addr>,
    /// The topologies of the neighbour's interface.
    pub topologies: Topologies,
    /// The neighbour's number for the circuit; 0 on a LAN.
    pub(crate) circuit: u32,
    /// The neighbour on the LAN; `None` on a point-to-point circuit.
    pub lan: Option<LanNeighbour>,
    /// End of the holding time of its last hello.
    pub(crate) until: Instant,
}

/// Reason for which a hello is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelloRefusal {
    /// It carries our own system id: a loop, or two systems with one id.
    OwnSystemId,
    /// It is for another level.
    OtherLevel,
    /// It has no three-way handshake.
    NoThreeWay,
    /// It names another system, or another of our circuits.
    NotForUs,
    /// Two systems at level 1 are in no common area.
    OtherArea,
    /// Our topology is not among those of the neighbour's interface (RFC 5120 section 3.1; D247).
    OtherTopology,
    /// It is that of a LAN on a point-to-point circuit, or the reverse.
    OtherType,
    /// The LAN has as many neighbours as one can have.
    TooManyNeighbours,
}

/// The own system on one circuit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    pub(crate) system: SystemId,
    pub(crate) circuit: u32,
    pub(crate) level: Level,
    pub(crate) areas: &'a [Vec<u8>],
    pub(crate) topology: TopologyId,
}

impl Own<'_> {
    /// Whether the sender of a hello may be a neighbour on a circuit of any kind.
    pub(crate) fn accepts(&self, source: SystemId, levels: &[Level], areas: &[Vec<u8>]) -> Result<(), HelloRefusal> {
        if source == self.system {
            return Err(HelloRefusal::OwnSystemId);
        }
        if !levels.contains(&self.level) {
            return Err(HelloRefusal::OtherLevel);
        }
        if self.level == Level::One && !areas.iter().any(|area| self.areas.contains(area)) {
            return Err(HelloRefusal::OtherArea);
        }
        Ok(())
    }
}

impl Adjacency {
    /// Takes a hello. `before` is what was known so far.
    pub(crate) fn on_hello(
        before: Option<&Adjacency>,
        now: Instant,
        own: Own<'_>,
        hello: &Hello,
    ) -> Result<Self, HelloRefusal> {
        own.accepts(hello.source, &hello.levels, &hello.areas)?;
        let Some(ThreeWay { state: theirs, circuit: Some(circuit), neighbour }) = hello.three_way else {
            return Err(HelloRefusal::NoThreeWay);
        };
        if !hello.topologies.contains(own.topology) {
            return Err(HelloRefusal::OtherTopology);
        }
        let names_us = match neighbour {
            None => false,
            Some((system, ours)) if system == own.system && ours == own.circuit => true,
            Some(_) => return Err(HelloRefusal::NotForUs),
        };
        let is_same = before.is_some_and(|before| before.neighbour == hello.source && before.circuit == circuit);
        let present = before.filter(|_| is_same).map_or(AdjacencyState::Down, |before| before.state);
        let state = if names_us { next(present, theirs) } else { AdjacencyState::Initializing };
        let until = now.after_ns(u64::from(hello.holding_time_s) * NS_PER_S);
        let (addresses, topologies) = (hello.addresses.clone(), hello.topologies.clone());
        Ok(Adjacency { state, neighbour: hello.source, addresses, topologies, circuit, lan: None, until })
    }

    /// Its three-way state for our hellos.
    pub(crate) fn three_way(adjacency: Option<&Adjacency>, circuit: u32) -> ThreeWay {
        ThreeWay {
            state: adjacency.map_or(AdjacencyState::Down, |adjacency| adjacency.state),
            circuit: Some(circuit),
            neighbour: adjacency.map(|adjacency| (adjacency.neighbour, adjacency.circuit)),
        }
    }

    /// Whether both sides receive each other's hellos.
    pub fn is_up(&self) -> bool {
        self.state == AdjacencyState::Up
    }

    /// Time at which it is over, unless another hello comes.
    pub fn until(&self) -> Instant {
        self.until
    }
}

/// The table of RFC 5303 section 3.2 for a hello that names us: our state by theirs.
fn next(ours: AdjacencyState, theirs: AdjacencyState) -> AdjacencyState {
    match (ours, theirs) {
        (AdjacencyState::Down | AdjacencyState::Initializing | AdjacencyState::Up, AdjacencyState::Down) => {
            AdjacencyState::Initializing
        }
        (
            AdjacencyState::Down | AdjacencyState::Initializing | AdjacencyState::Up,
            AdjacencyState::Initializing | AdjacencyState::Up,
        ) => AdjacencyState::Up,
    }
}
