//! Receivers that are not ready (D196).

use crate::succession::Origin;
use srdma_wire::Instant;
use std::time::Duration;

/// Receivers that are not ready, where the policy has a time for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NotReady {
    limit: Duration,
    /// For each branch the first RNR NAK since its last progress; [`Instant::NEVER`] without one.
    since: Box<[Instant]>,
}

impl NotReady {
    pub(super) fn new(limit: Duration, branches: usize) -> Self {
        NotReady { limit, since: vec![Instant::NEVER; branches].into_boxed_slice() }
    }

    /// An RNR NAK; returns whether the receiver has been not ready for too long.
    pub(super) fn note(&mut self, now: Instant, branch: usize) -> bool {
        let Some(since) = self.since.get_mut(branch) else { return false };
        *since = (*since).min(now);
        now.since(*since) >= self.limit
    }

    pub(super) fn forget(&mut self, branch: usize) {
        if let Some(since) = self.since.get_mut(branch) {
            *since = Instant::NEVER;
        }
    }

    /// The branches that are kept in another epoch keep their times.
    pub(super) fn succeed(&mut self, known: &NotReady, origins: &[Origin]) {
        let since = |origin: &Origin| match origin {
            Origin::Kept(index) => known.since.get(index.index()).copied().unwrap_or(Instant::NEVER),
            Origin::Unknown | Origin::At(_) => Instant::NEVER,
        };
        self.since = origins.iter().map(since).collect();
    }
}
