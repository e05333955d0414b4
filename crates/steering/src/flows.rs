//! The flow table of a NIC: set-associative, of fixed size, with least-recently-used replacement.
//!
//! ```text
//! key → set of 4 entries → entry
//! ```

use crate::signal::Cause;
use crate::steering::{PathIndex, SetId};
use srdma_wire::Instant;

const WAYS: usize = 4;

/// A flow: a hash of the fields that its packets share. Two flows with the same key are steered as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(u64);

impl FlowKey {
    /// The flow with this hash; all bits must be used.
    #[inline]
    pub const fn new(hash: u64) -> Self {
        // Zero is the key of an empty entry.
        FlowKey(if hash == 0 { 1 } else { hash })
    }

    /// The hash.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A flow, for status and metrics.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    pub key: FlowKey,
    /// The set of paths to its destination.
    pub set: SetId,
    /// Its current path.
    pub path: PathIndex,
    /// Number of moves.
    pub moves: u32,
    /// Time of its last packet.
    pub last: Instant,
    /// Its index in the table, below [`Steering::flow_capacity`](crate::Steering::flow_capacity).
    pub place: usize,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// 0: free.
    pub(crate) key: u64,
    pub(crate) last: Instant,
    /// End of the dwell time.
    pub(crate) dwells_until: Instant,
    /// Time at which the path is reconsidered, without a change of the set.
    pub(crate) reconsiders_at: Instant,
    pub(crate) losses_since: Instant,
    pub(crate) set: SetId,
    /// The version of the set at its last packet.
    pub(crate) version: u32,
    /// Congestion reports of its path at its last packet.
    pub(crate) path_reports: u32,
    pub(crate) moves: u32,
    pub(crate) path: PathIndex,
    pub(crate) losses: u8,
    /// Cause of a pending move, at once or at the next boundary.
    pub(crate) pending_move: Option<Cause>,
}

#[derive(Debug)]
pub(crate) struct Flows {
    entries: Box<[Flow]>,
    /// Mask of the set number.
    mask: usize,
}

impl Flows {
    pub(crate) fn new(flows: usize) -> Self {
        let sets = flows.div_ceil(WAYS).clamp(1, 1 << 24).next_power_of_two();
        Flows { entries: vec![Flow::default(); sets * WAYS].into_boxed_slice(), mask: sets - 1 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// The index of a flow, if it is in the table.
    #[inline]
    pub(crate) fn find(&self, key: FlowKey) -> Option<usize> {
        let first = self.first_of(key);
        let set = self.entries.get(first..first + WAYS)?;
        set.iter().position(|flow| flow.key == key.0).map(|way| first + way)
    }

    /// The index for a new flow, and whether it evicts another.
    pub(crate) fn slot_for(&self, key: FlowKey) -> (usize, bool) {
        let first = self.first_of(key);
        let ways = first..first + WAYS;
        let age = |place: &usize| (self.entries[*place].key != 0, self.entries[*place].last);
        let place = ways.min_by_key(age).unwrap_or(first);
        (place, self.entries[place].key != 0)
    }

    #[inline]
    pub(crate) fn at(&mut self, place: usize) -> &mut Flow {
        &mut self.entries[place]
    }

    /// All flows with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Flow)> {
        self.entries.iter().enumerate().filter(|(_, flow)| flow.key != 0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.entries.iter_mut().filter(|flow| flow.key != 0)
    }

    #[inline]
    fn first_of(&self, key: FlowKey) -> usize {
        ((key.0 >> 32) as usize & self.mask) * WAYS
    }
}
