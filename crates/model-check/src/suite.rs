//! The configurations of the documentation and of the tests.

use crate::bounds::{Bounds, Faults};
use crate::hosts::{DuplicateHandling, NakHandling};
use crate::record::CommitOrder;
use crate::repairs::Repairs;
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
pub const SMALL: [Configuration; 9] = [
    of("star3", 2, ANY_DELAYS),
    of("star3", 2, Faults { restarts: 1, changes: 1, ..ONE_DELAY }),
    of("fork", 2, Faults { restarts: 1, ..ONE_DELAY }),
    of("chain", 3, Faults { duplicates: 1, ..ONE_DELAY }),
    of("three", 2, Faults { restarts: 1, ..ONE_DELAY }),
    of("three", 2, Faults { deaths: 1, changes: 1, losses: 0, ..ONE_DELAY }),
    of("three", 2, Faults { unready: 1, losses: 0, ..ONE_DELAY }),
    of("rehome", 2, Faults { changes: 1, losses: 0, ..ONE_DELAY }),
    of("join", 2, Faults { changes: 1, restarts: 1, ..ONE_DELAY }),
];

/// Minutes to an hour.
pub const LARGE: [Configuration; 27] = [
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
    of("join", 3, Faults { changes: 1, restarts: 1, duplicates: 1, ..ONE_DELAY }),
];

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
