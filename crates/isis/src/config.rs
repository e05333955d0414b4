//! Configuration of a speaker.

use crate::authentication::Key;
use crate::id::SystemId;
use crate::pdu::{GREATEST_LSP, Levels};
use crate::tlv::{EndXSid, Locator, Reachability, RouterCapability, TopologyId};
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

/// A system.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its id, unlike any other's.
    pub system: SystemId,
    /// Its area addresses, three at most; 49.0001 is `[0x49, 0x00, 0x01]`.
    pub areas: Vec<Vec<u8>>,
    /// The levels at which it works.
    pub levels: Levels,
    /// At both levels: what it announces in level 1 of the routes of level 2, those within these prefixes (D263).
    pub leak_down: Vec<Prefix>,
    /// The one topology of its paths, and of all that it announces (D247).
    pub topology: TopologyId,
    /// Its name, at most 255 octets.
    pub hostname: String,
    /// With what PDUs are signed; PDUs that are not are dropped then.
    pub key: Option<Key>,
    /// Whether paths must not lead through it.
    pub is_overloaded: bool,
    pub capability: RouterCapability,
    /// Its locators and their SIDs.
    pub locators: Vec<Locator>,
    pub prefixes: Vec<Reachability>,
    /// Timers of the speaker.
    pub timers: Timers,
    /// Maximum number of stored LSPs of a level: further ones are dropped.
    pub limit_lsps: usize,
}

impl Config {
    /// A system at level 2 with no locators, prefixes or key.
    pub fn new(system: SystemId, areas: Vec<Vec<u8>>, hostname: &str) -> Self {
        Config {
            system,
            areas,
            levels: Levels::Two,
            leak_down: Vec::new(),
            topology: TopologyId::STANDARD,
            hostname: hostname.to_owned(),
            key: None,
            is_overloaded: false,
            capability: RouterCapability::default(),
            locators: Vec::new(),
            prefixes: Vec::new(),
            timers: Timers::default(),
            limit_lsps: 16_384,
        }
    }
}

/// Intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// From hello to hello, in milliseconds.
    pub hello_ms: u64,
    /// Number of hellos that may be missed before an adjacency is over.
    pub hold_multiplier: u16,
    /// Lifetime of our own LSPs, in seconds.
    pub lifetime_s: u16,
    /// Refresh interval, in seconds.
    pub refresh_s: u16,
    /// From CSNP to CSNP of a circuit, in seconds.
    pub complete_s: u64,
    /// Between two versions of our own LSPs, in milliseconds.
    pub generation_ms: u64,
    /// Bound on the time after a start for which the overload bit is set because the database is incomplete, in
    /// seconds; 0: the bit is not set (D94).
    pub startup_s: u64,
    /// Greatest part of an interval by which it is shortened at random, in percent (ISO 10589 section 10.1).
    pub jitter_percent: u8,
}

/// MaxAge of ISO 10589, in seconds.
const MAX_AGE_S: u16 = 1_200;

impl Timers {
    /// Least lifetime of a received LSP, in seconds: a lesser one is raised (RFC 7987; D93). It is no less than the
    /// default of other systems, whatever the lifetime of our own LSPs.
    pub fn least_lifetime_s(&self) -> u16 {
        self.lifetime_s.max(MAX_AGE_S)
    }
}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            hello_ms: 3_000,
            hold_multiplier: 10,
            lifetime_s: 1_200,
            refresh_s: 900,
            complete_s: 30,
            generation_ms: 100,
            startup_s: 60,
            jitter_percent: 25,
        }
    }
}

/// Type of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CircuitType {
    /// One neighbour at most.
    #[default]
    PointToPoint,
    /// A LAN with any number of neighbours.
    Broadcast {
        /// Priority in the election of its designated system, 127 at most.
        priority: u8,
    },
}

/// A circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitConfig {
    /// Its type.
    pub kind: CircuitType,
    /// The MAC address of the interface.
    pub mac: MacAddress,
    /// Metric of the link.
    pub metric: u32,
    /// The interface's addresses; neighbours want its link-local one.
    pub addresses: Vec<Ipv6Addr>,
    /// SIDs of packets that are to leave by it, each with the neighbour's address on the link, by which a LAN's is
    /// found.
    pub end_x: Vec<(Ipv6Addr, EndXSid)>,
    /// The longest PDU, in octets.
    pub limit_pdu: usize,
}

impl CircuitConfig {
    /// A point-to-point circuit of metric 10.
    pub fn new(mac: MacAddress) -> Self {
        CircuitConfig {
            kind: CircuitType::PointToPoint,
            mac,
            metric: 10,
            addresses: Vec::new(),
            end_x: Vec::new(),
            limit_pdu: GREATEST_LSP,
        }
    }
}
