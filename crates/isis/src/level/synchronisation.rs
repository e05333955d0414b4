//! Whether a circuit's neighbours have sent their databases since the start of the system (D94).

use super::OneLevel;
use crate::id::LspId;
use crate::pdu::Range;
use crate::speaker::CircuitId;
use crate::tlv::LspEntry;
use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::collections::BTreeMap;

/// Time without a newer LSP after which a circuit is synchronised without CSNPs, in nanoseconds: two retransmissions.
/// FRR sends a CSNP only once, which is lost if its side of the adjacency is up first.
const QUIET_NS: u64 = 10 * NS_PER_S;

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
    pub(super) fn settle(&mut self, now: Instant) -> bool {
        let is_complete = self.uncovered.is_none() && self.missing.is_empty();
        self.is_done |= is_complete || self.quiet_since.after_ns(QUIET_NS) <= now;
        self.is_done
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        (!self.is_done).then(|| self.quiet_since.after_ns(QUIET_NS))
    }
}

impl OneLevel {
    /// Whether a circuit is synchronised; `None` without an adjacency that is up.
    pub(crate) fn settle_synchronisation(&mut self, now: Instant, id: CircuitId) -> Option<bool> {
        Some(self.circuits.get_mut(id.0)?.synchronisation.as_mut()?.settle(now))
    }

    /// When a circuit is synchronised without CSNPs.
    pub(crate) fn synchronisation_deadline(&self) -> Option<Instant> {
        let links = self.circuits.iter().filter(|circuit| circuit.is_up);
        links.filter_map(|circuit| circuit.synchronisation.as_ref()?.next_deadline()).min()
    }
}
