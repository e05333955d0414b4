//! The configurations of the documentation and of the tests.

use crate::bounds::{Bounds, Faults};
use crate::hosts::{DuplicateHandling, NakHandling, Reception};
use crate::record::CommitOrder;
use crate::repairs::Repairers::{All, BelowRoot, Edges, Root, RootAndEdges};
use crate::repairs::{Repairers, Repairs};
use srdma_aggregation::Rules;
use srdma_wire::Psn;

/// A configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The name of the tree.
    pub shape: &'static str,
    /// Packets of the source.
    pub packets: u8,
    /// Possible faults.
    pub faults: Faults,
}

const NONE: Faults = Faults::NONE;
/// Any link may be slower than any other at any time.
const ANY_DELAYS: Faults = Faults { delays: Faults::ANY, losses: 1, ..NONE };
const TWO_DELAYS: Faults = Faults { delays: 2, losses: 1, ..NONE };
const ONE_DELAY: Faults = Faults { delays: 1, losses: 1, ..NONE };

const fn of(shape: &'static str, packets: u8, faults: Faults) -> Configuration {
    Configuration { shape, packets, faults }
}

/// Seconds: for the tests.
pub const SMALL: [Configuration; 10] = [
    of("star3", 2, ANY_DELAYS),
    of("star3", 2, Faults { restarts: 1, changes: 1, ..ONE_DELAY }),
    of("fork", 2, Faults { restarts: 1, ..ONE_DELAY }),
    of("chain", 3, Faults { duplicates: 1, ..ONE_DELAY }),
    of("three", 2, Faults { restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { deaths: 1, changes: 1, losses: 0, ..ONE_DELAY }),
    of("three", 2, Faults { unready: 1, losses: 0, ..ONE_DELAY }),
    of("rehome", 2, Faults { changes: 1, losses: 0, ..ONE_DELAY }),
    of("move", 2, Faults { changes: 1, ..ONE_DELAY }),
    of("join", 2, Faults { changes: 1, restarts: 1, ..ONE_DELAY }),
];

/// Minutes.
pub const LARGE: [Configuration; 30] = [
    of("star2", 3, Faults { losses: 2, duplicates: 1, restarts: 1, ..ANY_DELAYS }),
    of("star2", 2, Faults { losses: 2, deaths: 1, changes: 1, restarts: 1, ..ANY_DELAYS }),
    of("star3", 2, Faults { duplicates: 1, restarts: 1, ..ANY_DELAYS }),
    of("star3", 2, Faults { deaths: 1, changes: 1, restarts: 1, ..ANY_DELAYS }),
    of("star3", 2, Faults { unready: 1, failures: 1, ..ANY_DELAYS }),
    of("star3", 4, Faults { ..ANY_DELAYS }),
    of("pair", 2, Faults { duplicates: 1, restarts: 1, overtakings: 1, ..ANY_DELAYS }),
    of("fork", 2, Faults { restarts: 1, ..ANY_DELAYS }),
    of("fork", 2, Faults { duplicates: 1, ..ANY_DELAYS }),
    of("chain", 2, Faults { duplicates: 1, restarts: 1, ..ANY_DELAYS }),
    of("chain", 2, Faults { deaths: 1, changes: 1, restarts: 1, ..ANY_DELAYS }),
    of("fork3", 2, Faults { restarts: 1, changes: 1, ..ONE_DELAY }),
    of("three", 3, Faults { restarts: 1, ..TWO_DELAYS }),
    of("three", 2, Faults { duplicates: 1, restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { overtakings: 1, restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { early_timeouts: 1, restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { losses: 2, restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { deaths: 1, changes: 1, restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { deaths: 1, changes: 1, ..TWO_DELAYS }),
    of("three", 2, Faults { unready: 1, restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { failures: 1, restarts: 1, ..ONE_DELAY }),
    of("three", 4, ONE_DELAY),
    of("rehome", 2, Faults { changes: 1, ..ONE_DELAY }),
    of("rehome", 2, Faults { changes: 1, losses: 0, ..TWO_DELAYS }),
    of("rehome", 2, Faults { changes: 1, losses: 0, restarts: 1, ..ONE_DELAY }),
    of("rehome", 2, Faults { changes: 1, losses: 0, duplicates: 1, ..ONE_DELAY }),
    of("move", 2, Faults { changes: 1, restarts: 1, ..ONE_DELAY }),
    of("move", 2, Faults { changes: 1, ..TWO_DELAYS }),
    of("move", 2, Faults { changes: 2, ..ONE_DELAY }),
    of("join", 3, Faults { changes: 1, restarts: 1, duplicates: 1, ..ONE_DELAY }),
];

/// A configuration with nodes that repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairConfiguration {
    /// The tree, packets and faults.
    pub of: Configuration,
    /// Packets in flight.
    pub window: u8,
    /// Packets of a message.
    pub message: u8,
    /// Which nodes repair.
    pub repairs: Repairs,
}

const fn repaired(shape: &'static str, by: Repairers, buffer: u8, faults: Faults) -> RepairConfiguration {
    let repairs = Repairs { by, buffer, waits: true, alone: false };
    RepairConfiguration { of: of(shape, 3, faults), window: 3, message: 1, repairs }
}

impl RepairConfiguration {
    /// Of three packets a message.
    const fn one_message(self) -> Self {
        RepairConfiguration { message: 3, ..self }
    }

    /// Of so many packets, with fewer in flight.
    const fn in_flight(self, window: u8, packets: u8) -> Self {
        RepairConfiguration { of: Configuration { packets, ..self.of }, window, ..self }
    }

    /// The source must not notice.
    const fn alone(self) -> Self {
        RepairConfiguration { repairs: Repairs { alone: true, ..self.repairs }, ..self }
    }

    /// RNR NAKs go up.
    const fn rnr_up(self) -> Self {
        RepairConfiguration { repairs: Repairs { waits: false, ..self.repairs }, ..self }
    }

    /// Its bounds.
    pub fn bounds(&self) -> Bounds {
        Bounds { window: self.window, message: self.message, repairs: self.repairs, depth: 5, ..self.of.bounds() }
    }
}

impl Configuration {
    /// Its bounds: the rule R1-R7, the second packet behind the wrap of the PSN, each packet a message.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            initial_psn: Psn::new(0xFF_FFFF),
            packets: self.packets,
            window: 6,
            message: 1,
            source: NakHandling::Strict,
            receivers: DuplicateHandling::AllDuplicates,
            reception: Reception::InOrder,
            rules: Rules::default(),
            repairs: Repairs::NONE,
            depth: 3,
            faults: self.faults,
            patience: 2,
            order: CommitOrder::OldPathLast,
            epochs_checked: true,
        }
    }
}

/// Seconds: for the tests. Three packets; a buffer of 4 has room for all of them.
pub const REPAIR_SMALL: [RepairConfiguration; 28] = [
    repaired("pair", All, 4, ANY_DELAYS),
    repaired("fork", All, 4, ANY_DELAYS),
    repaired("pair", All, 4, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("pair", All, 2, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("pair", All, 1, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("fork", All, 4, Faults { restarts: 1, ..ONE_DELAY }).one_message(),
    repaired("pair", Root, 4, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("fork", Edges, 4, Faults { restarts: 1, delays: 0, ..ONE_DELAY }),
    repaired("chain", BelowRoot, 4, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("pair", All, 4, Faults { overtakings: 1, ..ONE_DELAY }),
    repaired("pair", All, 4, Faults { early_ticks: 1, ..ONE_DELAY }),
    repaired("fork", All, 4, Faults { changes: 1, delays: 0, ..ONE_DELAY }),
    repaired("pair", All, 4, Faults { deaths: 1, changes: 1, delays: 0, ..ONE_DELAY }),
    repaired("join", All, 4, Faults { changes: 1, ..ONE_DELAY }),
    repaired("pair", All, 4, Faults { unready: 1, delays: 0, ..ONE_DELAY }),
    repaired("pair", Root, 4, Faults { unready: 1, ..ONE_DELAY }).rnr_up(),
    repaired("fork", All, 4, Faults { unready: 1, failures: 1, delays: 0, ..ONE_DELAY }),
    repaired("pair", All, 4, ANY_DELAYS).alone(),
    repaired("fork", All, 4, ANY_DELAYS).alone().one_message(),
    repaired("chain", All, 4, Faults { losses: 3, ..NONE }).alone(),
    repaired("fork", Root, 4, Faults { losses: 2, ..NONE }).alone(),
    repaired("fork3", All, 4, Faults { duplicates: 1, losses: 1, ..NONE }).alone(),
    repaired("chain", RootAndEdges, 4, Faults { losses: 2, ..NONE }).alone(),
    repaired("fork", All, 4, Faults { damages: 1, ..ONE_DELAY }).alone(),
    repaired("fork", All, 4, Faults { restarts: 1, delays: 0, ..ONE_DELAY }).alone(),
    repaired("fork", All, 1, Faults { changes: 1, losses: 1, ..NONE }).in_flight(1, 3).alone(),
    repaired("fork", All, 2, Faults { restarts: 1, losses: 1, ..NONE }).in_flight(2, 4).alone(),
    repaired("pair", All, 2, Faults { damages: 1, unready: 1, losses: 1, ..NONE }).in_flight(2, 4).alone(),
];

/// Minutes.
pub const REPAIR_LARGE: [RepairConfiguration; 27] = [
    repaired("pair", All, 4, Faults { restarts: 1, ..ANY_DELAYS }),
    repaired("pair", All, 2, Faults { restarts: 1, ..ANY_DELAYS }),
    repaired("pair", All, 1, Faults { restarts: 1, ..ANY_DELAYS }),
    repaired("pair", Edges, 4, Faults { restarts: 1, ..ANY_DELAYS }),
    repaired("pair", Root, 4, Faults { restarts: 1, ..ANY_DELAYS }),
    repaired("pair", All, 4, Faults { duplicates: 1, ..ANY_DELAYS }),
    repaired("pair", All, 4, Faults { overtakings: 1, ..ANY_DELAYS }),
    repaired("pair", All, 4, Faults { deaths: 1, changes: 1, ..ANY_DELAYS }),
    repaired("fork", All, 4, Faults { restarts: 1, ..ANY_DELAYS }),
    repaired("fork", All, 2, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("fork", All, 1, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("fork", All, 4, Faults { restarts: 1, duplicates: 1, overtakings: 1, delays: 0, ..ONE_DELAY }),
    repaired("fork", BelowRoot, 4, Faults { restarts: 1, duplicates: 1, overtakings: 1, delays: 0, ..ONE_DELAY }),
    repaired("fork", All, 4, Faults { restarts: 1, changes: 1, delays: 0, ..ONE_DELAY }),
    repaired("fork", All, 1, Faults { restarts: 1, changes: 1, delays: 0, ..ONE_DELAY }),
    repaired("fork", All, 4, Faults { restarts: 1, losses: 2, early_ticks: 1, delays: 0, ..ONE_DELAY }),
    repaired("fork", All, 4, Faults { unready: 1, ..ONE_DELAY }).rnr_up(),
    repaired("three", All, 4, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("three", Edges, 4, Faults { restarts: 1, ..ONE_DELAY }),
    repaired("rehome", All, 4, Faults { changes: 1, delays: 0, ..ONE_DELAY }),
    repaired("rehome", BelowRoot, 4, Faults { changes: 1, delays: 0, ..ONE_DELAY }),
    repaired("three", All, 4, Faults { losses: 2, ..ONE_DELAY }).alone(),
    repaired("pair", All, 4, Faults { overtakings: 1, ..ANY_DELAYS }).alone(),
    repaired("pair", All, 4, Faults { early_ticks: 1, ..ANY_DELAYS }).alone(),
    repaired("fork", All, 2, Faults { changes: 1, ..ONE_DELAY }).in_flight(2, 4).alone(),
    repaired("fork", All, 4, Faults { restarts: 1, changes: 1, damages: 1, ..ONE_DELAY }).alone(),
    repaired("three", RootAndEdges, 4, Faults { restarts: 1, ..ONE_DELAY }).alone(),
];
