//! The overload bit while the database is incomplete: after a start, and after an LSP was refused for want of room (ISO
//! 10589 section 7.3.19; D94, D95).
//!
//! ```text
//!   start ─▶ Starting ── every circuit is synchronised, or the bound is over ─▶ none ◀─┐
//!                                              an LSP is refused │                     │ none for a minute
//!                                                                ▼                     │
//!                                                          DatabaseFull ───────────────┘
//! ```

use super::{CircuitId, Speaker};
use crate::level::OneLevel;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;

/// Time without a refused LSP after which the database is taken to be complete again, in nanoseconds (ISO 10589:
/// waitingTime, 60 s). Neighbours send a refused LSP again every 5 s.
const WAITING_NS: u64 = 60 * NS_PER_S;

/// Why the system has set its overload bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overload {
    /// By its configuration.
    Configured,
    /// Its database is not complete since the start.
    Starting,
    /// LSPs are missing in its database for want of room.
    DatabaseFull,
}

impl Overload {
    /// All causes.
    pub const ALL: [Overload; 3] = [Overload::Configured, Overload::Starting, Overload::DatabaseFull];

    /// The cause's name, for status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Overload::Configured => "configured",
            Overload::Starting => "starting",
            Overload::DatabaseFull => "database_full",
        }
    }
}

/// State of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Startup {
    /// There was no circuit yet.
    NotBegun,
    Since(Instant),
    Over,
}

/// Causes that come and go by themselves.
#[derive(Debug)]
pub(super) struct Incomplete {
    startup: Startup,
    /// Time of the last refused LSP.
    refused_at: Option<Instant>,
}

impl Incomplete {
    pub(super) fn new() -> Self {
        Incomplete { startup: Startup::NotBegun, refused_at: None }
    }

    /// The first circuit is there.
    pub(super) fn begin(&mut self, now: Instant) {
        if self.startup == Startup::NotBegun {
            self.startup = Startup::Since(now);
        }
    }

    /// Whether the start is not over.
    pub(super) fn is_starting(&self) -> bool {
        self.startup != Startup::Over
    }
}

impl Speaker {
    /// Why the overload bit is set, at all levels; `None` if it is not.
    pub fn overload(&self) -> Option<Overload> {
        let is_starting = self.incomplete.is_starting() && self.config.timers.startup_s > 0;
        let causes = [
            (self.config.is_overloaded, Overload::Configured),
            (is_starting, Overload::Starting),
            (self.incomplete.refused_at.is_some(), Overload::DatabaseFull),
        ];
        causes.into_iter().find(|(applies, _)| *applies).map(|(_, cause)| cause)
    }

    /// Notes refused LSPs, ends the causes that are over, and has the levels set their bits.
    pub(super) fn settle_overload(&mut self, now: Instant) {
        // All of them are asked.
        let refused = self.levels.iter_mut().filter_map(|level| level.take_refusal().then_some(())).count();
        if refused > 0 {
            self.incomplete.refused_at = Some(now);
        }
        if self.incomplete.refused_at.is_some_and(|at| at.after_ns(WAITING_NS) <= now) {
            self.incomplete.refused_at = None;
        }
        if let Startup::Since(begun) = self.incomplete.startup {
            let bound = begun.after_ns(self.config.timers.startup_s * NS_PER_S);
            if bound <= now || self.is_synchronised(now) {
                self.incomplete.startup = Startup::Over;
            }
        }
        let (is_overloaded, is_starting) = (self.overload().is_some(), self.incomplete.is_starting());
        for level in &mut self.levels {
            level.set_overload(is_overloaded, is_starting);
        }
    }

    /// Whether every circuit whose link is up has an adjacency, and those of all levels are synchronised: at one level
    /// of two there may be no neighbour. Without such a circuit it is not.
    fn is_synchronised(&mut self, now: Instant) -> bool {
        let mut are_all_done = true;
        let mut links = 0;
        for id in (0..self.circuits.len()).map(CircuitId).filter(|id| self.is_link_up(*id)).collect::<Vec<_>>() {
            links += 1;
            // Each is settled, so that none has a deadline in the past.
            let settled = self.levels.iter_mut().filter_map(|level| level.settle_synchronisation(now, id));
            let settled: Vec<bool> = settled.collect();
            are_all_done &= !settled.is_empty() && settled.iter().all(|is_done| *is_done);
        }
        links > 0 && are_all_done
    }

    pub(super) fn overload_deadline(&self) -> Option<Instant> {
        let refused = self.incomplete.refused_at.map(|at| at.after_ns(WAITING_NS));
        let Startup::Since(begun) = self.incomplete.startup else { return refused };
        let bound = begun.after_ns(self.config.timers.startup_s * NS_PER_S);
        let quiet = self.levels.iter().filter_map(OneLevel::synchronisation_deadline);
        quiet.chain([bound]).chain(refused).min()
    }
}
