//! Differences between two snapshots of a node.

use srdma_node::daemon::Snapshot;
use srdma_wire::units::NS_PER_S;

/// The newest snapshot, and the one before.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) now: Snapshot,
    before: Option<Snapshot>,
}

impl Seen {
    /// The first look.
    pub(super) fn first(now: Snapshot) -> Self {
        Seen { now, before: None }
    }

    /// Another look. The same state seen again changes nothing; after a restart of the node there is no before.
    pub(super) fn next(self, now: Snapshot) -> Self {
        if now.started_unix_s != self.now.started_unix_s || now.uptime_ns < self.now.uptime_ns {
            return Seen::first(now);
        }
        if now.uptime_ns == self.now.uptime_ns {
            return self;
        }
        Seen { now, before: Some(self.now) }
    }

    pub(super) fn has_rates(&self) -> bool {
        self.before.is_some()
    }

    /// Increase of a counter per second; 0 when it is new or was reset.
    pub(super) fn per_second(&self, counter: impl Fn(&Snapshot) -> Option<u64>) -> u64 {
        let Some(before) = &self.before else { return 0 };
        let (Some(then), Some(now)) = (counter(before), counter(&self.now)) else { return 0 };
        let elapsed_ns = u128::from(self.now.uptime_ns - before.uptime_ns);
        let rate = u128::from(now.saturating_sub(then)) * u128::from(NS_PER_S) / elapsed_ns.max(1);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}
