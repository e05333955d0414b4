//! The overload bit while the database is incomplete: after a start, and after an LSP was refused for want of room (ISO
//! 10589 section 7.3.19; D94, D95).
//!
//! ```text
//!   start ─▶ Starting ── every circuit is synchronised, or the bound is over ─▶ none ◀─┐
//!                                              an LSP is refused │                     │ none for a minute
//!                                                                ▼                     │
//!                                                          DatabaseFull ───────────────┘
//! ```

use super::Speaker;
use crate::id::LspId;
use crate::pdu::Range;
use crate::tlv::LspEntry;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::BTreeMap;

/// Time without a refused LSP after which the database is taken to be complete again, in nanoseconds (ISO 10589:
/// waitingTime, 60 s). Neighbours send a refused LSP again every 5 s.
const WAITING_NS: u64 = 60 * NS_PER_S;

/// Time without a newer LSP after which a circuit is synchronised without CSNPs, in nanoseconds: two retransmissions.
/// FRR sends a CSNP only once, which is lost if its side of the adjacency is up first.
const QUIET_NS: u64 = 10 * NS_PER_S;

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

/// Progress of the exchange of databases with a neighbour.
#[derive(Clone, Debug)]
pub(super) struct Synchronisation {
    /// First id that its CSNPs have not covered; `None` once they have covered all.
    uncovered: Option<LspId>,
    /// LSPs that it has and we do not, with their sequence numbers.
    missing: BTreeMap<LspId, u32>,
    /// Time at which the adjacency came up, or the last newer LSP came by it.
    quiet_since: Instant,
    is_done: bool,
}

impl Synchronisation {
    pub(super) fn new(now: Instant) -> Self {
        Synchronisation { uncovered: Some(LspId::FIRST), missing: BTreeMap::new(), quiet_since: now, is_done: false }
    }

    /// A CSNP, and its entries that are newer than ours. At most `limit` of them are kept.
    pub(super) fn on_complete(&mut self, range: Range, newer: impl Iterator<Item = LspEntry>, limit: usize) {
        if let Some(uncovered) = self.uncovered
            && range.first <= uncovered
            && uncovered <= range.last
        {
            self.uncovered = range.last.next();
        }
        let room = limit.saturating_sub(self.missing.len());
        self.missing.extend(newer.take(room).map(|entry| (entry.id, entry.sequence)));
    }

    /// An LSP is stored. `came_by_here`: by this circuit.
    pub(super) fn on_stored(&mut self, now: Instant, id: LspId, sequence: u32, came_by_here: bool) {
        if self.missing.get(&id).is_some_and(|missing| *missing <= sequence) {
            self.missing.remove(&id);
        }
        if came_by_here {
            self.quiet_since = now;
        }
    }

    /// Whether it is done at `now`; it stays so.
    fn settle(&mut self, now: Instant) -> bool {
        let is_complete = self.uncovered.is_none() && self.missing.is_empty();
        self.is_done |= is_complete || self.quiet_since.after_ns(QUIET_NS) <= now;
        self.is_done
    }

    fn next_deadline(&self) -> Option<Instant> {
        (!self.is_done).then(|| self.quiet_since.after_ns(QUIET_NS))
    }
}

impl Speaker {
    /// Why the overload bit is set; `None` if it is not.
    pub fn overload(&self) -> Option<Overload> {
        let is_starting = self.incomplete.is_starting() && self.config.timers.startup_s > 0;
        let causes = [
            (self.config.is_overloaded, Overload::Configured),
            (is_starting, Overload::Starting),
            (self.incomplete.refused_at.is_some(), Overload::DatabaseFull),
        ];
        causes.into_iter().find(|(applies, _)| *applies).map(|(_, cause)| cause)
    }

    /// An LSP is refused for want of room.
    pub(super) fn refuse_for_room(&mut self, now: Instant) {
        if self.incomplete.refused_at.replace(now).is_none() {
            self.own.touch();
        }
    }

    /// Ends the causes that are over.
    pub(super) fn settle_overload(&mut self, now: Instant) {
        if self.incomplete.refused_at.is_some_and(|at| at.after_ns(WAITING_NS) <= now) {
            self.incomplete.refused_at = None;
            self.own.touch();
        }
        if let Startup::Since(begun) = self.incomplete.startup {
            let bound = begun.after_ns(self.config.timers.startup_s * NS_PER_S);
            if bound <= now || self.is_synchronised(now) {
                self.incomplete.startup = Startup::Over;
                self.own.touch();
            }
        }
    }

    /// Whether every circuit whose link is up has an adjacency that is synchronised. Without such a circuit it is not.
    fn is_synchronised(&mut self, now: Instant) -> bool {
        let mut are_all_done = true;
        let mut links = 0;
        for circuit in self.circuits.iter_mut().filter(|circuit| circuit.is_up) {
            links += 1;
            // Each is settled, so that none has a deadline in the past.
            let is_done = circuit.synchronisation.as_mut().is_some_and(|exchange| exchange.settle(now));
            are_all_done &= is_done;
        }
        links > 0 && are_all_done
    }

    pub(super) fn overload_deadline(&self) -> Option<Instant> {
        let refused = self.incomplete.refused_at.map(|at| at.after_ns(WAITING_NS));
        let Startup::Since(begun) = self.incomplete.startup else { return refused };
        let bound = begun.after_ns(self.config.timers.startup_s * NS_PER_S);
        let links = self.circuits.iter().filter(|circuit| circuit.is_up);
        let quiet = links.filter_map(|circuit| circuit.synchronisation.as_ref()?.next_deadline());
        quiet.chain([bound]).chain(refused).min()
    }
}
