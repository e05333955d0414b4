//! Messages on wires: octets of their packets and acknowledgements, and the delay of the last packet.

use crate::path::{ACK_OCTETS, HEADERS_OCTETS, RETH_OCTETS};
use crate::route::Leg;
use crate::scenario::{FabricScenario, Paths, Variant};
use srdma_fabric::Topology;
use srdma_sim::link::{FRAMING_OCTETS, transmission_ps};
use srdma_wire::units::PS_PER_NS;

/// Octets of the outer header with the program of a path (PP-4-3).
const OUTER_OCTETS: u64 = 40;

/// Octets of the immediate data that notifies a receiver of a message.
const IMMEDIATE_OCTETS: u64 = 4;

/// Packet format of a variant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    mtu_octets: u64,
    ack_every: u64,
    outer_octets: u64,
}

/// Delay from the source to the destination, in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    propagation_ps: u64,
    /// Rates of all links but the first, in bits per second: store and forward.
    behind: Vec<u64>,
}

impl Wire {
    pub(super) fn new(scenario: &FabricScenario, variant: &Variant) -> Self {
        Wire {
            mtu_octets: scenario.hosts.path_mtu().octets().into(),
            ack_every: scenario.hosts.ack_every.get(),
            outer_octets: if variant.paths == Paths::Ecmp { 0 } else { OUTER_OCTETS },
        }
    }

    /// Payload of each lane's piece of a message: whole packets, divided as evenly as possible.
    pub(super) fn piece_octets(&self, octets: u64, lane: u64, lanes: u64) -> u64 {
        let piece = octets.div_ceil(self.mtu_octets).div_ceil(lanes) * self.mtu_octets;
        octets.saturating_sub(lane * piece).min(piece)
    }

    fn packets(&self, octets: u64) -> u64 {
        octets.div_ceil(self.mtu_octets).max(1)
    }

    /// Octets of a piece on each link. Acknowledgements take the reverse path, where as much data goes and
    /// is acknowledged on this one: so the own ones are counted here.
    pub(super) fn wire_octets(&self, octets: u64) -> u64 {
        let packets = self.packets(octets);
        let around = HEADERS_OCTETS + FRAMING_OCTETS + self.outer_octets;
        let answers = packets.div_ceil(self.ack_every) * (ACK_OCTETS + FRAMING_OCTETS + self.outer_octets);
        octets + packets * around + RETH_OCTETS + IMMEDIATE_OCTETS + answers
    }

    /// Octets of a piece's last frame.
    pub(super) fn last_frame_octets(&self, octets: u64) -> u64 {
        let payload = octets - (self.packets(octets) - 1) * self.mtu_octets;
        let first = if self.packets(octets) == 1 { RETH_OCTETS } else { 0 };
        payload + HEADERS_OCTETS + self.outer_octets + IMMEDIATE_OCTETS + first
    }

    /// Octets of an acknowledgement's frame.
    pub(super) fn ack_octets(&self) -> u64 {
        ACK_OCTETS + self.outer_octets
    }
}

impl Delay {
    /// The delay of a path.
    pub(super) fn along(topology: &Topology, legs: &[Leg]) -> Self {
        let links = legs.iter().map(|leg| &topology.links()[leg.link.index()]);
        Delay {
            propagation_ps: links.clone().map(|link| link.delay_ns * PS_PER_NS).sum(),
            behind: links.skip(1).map(|link| link.rate_bits_per_s).collect(),
        }
    }

    /// Time from the end of a frame's transmission at its source to its arrival.
    pub(super) fn ps(&self, frame_octets: u64) -> u64 {
        let behind = self.behind.iter().map(|rate| transmission_ps(frame_octets as usize, *rate));
        self.propagation_ps + behind.sum::<u64>()
    }
}
