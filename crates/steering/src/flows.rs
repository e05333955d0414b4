//! The flows of a NIC: a table of fixed size, in which the least recently used flow is replaced.
//!
//! ```text
//! key → set of 4 entries → entry
//! ```

use crate::signal::Cause;
use crate::steering::{PathIndex, SetId};
use srdma_wire::Instant;

const WAYS: usize = 4;

/// A flow: a hash of what its packets have in common. Two flows with one key, once in 2^64, are steered as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey(u64);

impl FlowKey {
    /// The flow of this hash, all of whose bits count.
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
    /// Where it goes.
    pub set: SetId,
    /// The path that it takes.
    pub path: PathIndex,
    /// Number of times that it has moved.
    pub moves: u32,
    /// When its last packet was sent.
    pub last: Instant,
    /// Its place in the table, below [`Steering::flow_places`](crate::Steering::flow_places).
    pub place: usize,
}

/// What is kept of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// 0: free.
    pub(crate) key: u64,
    pub(crate) last: Instant,
    /// Until then it stays where it is.
    pub(crate) dwells_until: Instant,
    /// When it has to reconsider its path, if nothing happens to its set before.
    pub(crate) reconsiders_at: Instant,
    pub(crate) losses_since: Instant,
    pub(crate) set: SetId,
    /// The version of the set at its last packet.
    pub(crate) version: u32,
    /// The congestion rounds of its path at its last packet.
    pub(crate) rounds: u32,
    pub(crate) moves: u32,
    pub(crate) path: PathIndex,
    pub(crate) losses: u8,
    /// It is to move, at once or at the next boundary.
    pub(crate) wanted: Option<Cause>,
}

#[derive(Debug)]
pub(crate) struct Flows {
    entries: Box<[Flow]>,
    /// Of the number of a set.
    mask: usize,
}

impl Flows {
    pub(crate) fn new(flows: usize) -> Self {
        let sets = flows.div_ceil(WAYS).clamp(1, 1 << 24).next_power_of_two();
        Flows { entries: vec![Flow::default(); sets * WAYS].into_boxed_slice(), mask: sets - 1 }
    }

    pub(crate) fn places(&self) -> usize {
        self.entries.len()
    }

    /// The place of a flow, if it is known.
    #[inline]
    pub(crate) fn find(&self, key: FlowKey) -> Option<usize> {
        let first = self.first_of(key);
        let set = self.entries.get(first..first + WAYS)?;
        set.iter().position(|flow| flow.key == key.0).map(|way| first + way)
    }

    /// The place for a flow that is not known, and whether another has to go.
    pub(crate) fn vacancy(&self, key: FlowKey) -> (usize, bool) {
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

    /// All flows that are known, with their places.
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
