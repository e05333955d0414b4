//! Branches that are repaired again and again: congested or lossy links, and receivers that are slow.

use super::snapshot::Snapshot;
use srdma_wire::units::NS_PER_S;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Shortest interval over which packets are compared.
const INTERVAL_NS: u64 = NS_PER_S;

/// A branch is repairing when, of this many packets of the group in the interval, more than one was sent again to it.
const PACKETS_PER_REPAIR: u64 = 100;

/// Compares successive snapshots of one process.
#[derive(Clone, Debug, Default)]
pub struct RepairWatch {
    branches: BTreeMap<(u32, Ipv6Addr), Watched>,
}

/// A branch: its counters at the begin of the interval, and the result of the one before.
#[derive(Clone, Copy, Debug)]
struct Watched {
    since_ns: u64,
    data: u64,
    resent: u64,
    is_repairing: bool,
}

impl RepairWatch {
    /// Writes into a snapshot, which is later than those before, which branches are repairing.
    pub fn observe(&mut self, snapshot: &mut Snapshot) {
        let now_ns = snapshot.uptime_ns;
        let mut branches = BTreeMap::new();
        for group in &mut snapshot.groups {
            let data = group.counters.data_packets;
            for branch in &mut group.branches {
                let Some(repair) = &mut branch.repair else { continue };
                let key = (group.id, branch.address);
                let watched = Watched::next(self.branches.get(&key).copied(), now_ns, data, repair.packets_resent);
                repair.is_repairing = watched.is_repairing;
                branches.insert(key, watched);
            }
        }
        self.branches = branches;
    }
}

impl Watched {
    fn next(before: Option<Watched>, now_ns: u64, data: u64, resent: u64) -> Self {
        // Counters of a group that was removed and added again begin at zero.
        match before.filter(|before| before.data <= data && before.resent <= resent) {
            None => Watched { since_ns: now_ns, data, resent, is_repairing: false },
            Some(before) if now_ns.saturating_sub(before.since_ns) < INTERVAL_NS => before,
            Some(before) => {
                let is_repairing = (resent - before.resent) * PACKETS_PER_REPAIR > data - before.data;
                Watched { since_ns: now_ns, data, resent, is_repairing }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results after each of these observations: time in milliseconds, packets of the group, packets sent again.
    fn results(observations: &[(u64, u64, u64)]) -> Vec<bool> {
        let mut watched = None;
        let observe = |(ms, data, resent): &(u64, u64, u64)| {
            let next = Watched::next(watched, ms * 1_000_000, *data, *resent);
            watched = Some(next);
            next.is_repairing
        };
        observations.iter().map(observe).collect()
    }

    #[test]
    fn more_than_one_in_a_hundred_is_repairing() {
        assert_eq!(results(&[(0, 0, 0), (1_000, 1_000, 10), (2_000, 2_000, 21)]), [false, false, true]);
        assert_eq!(results(&[(0, 0, 0), (1_000, 100, 2), (2_000, 200, 2)]), [false, true, false]);
    }

    /// What is sent again when nothing new comes is repair, too; nothing at all is none.
    #[test]
    fn a_group_at_rest_may_be_repairing() {
        assert_eq!(results(&[(0, 50, 0), (1_000, 50, 1), (2_000, 50, 1)]), [false, true, false]);
    }

    /// Requests for the status may come at any time.
    #[test]
    fn shorter_intervals_do_not_change_the_result() {
        assert_eq!(
            results(&[(0, 0, 0), (1_000, 10, 5), (1_001, 2_000, 5), (2_000, 2_000, 5)]),
            [false, true, true, false]
        );
        assert_eq!(results(&[(0, 500, 300), (1_000, 10, 0), (2_000, 20, 0)]), [false, false, false]);
    }
}
