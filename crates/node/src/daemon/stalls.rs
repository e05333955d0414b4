//! Stalls: branches that have a lag and make no progress.

use super::snapshot::Snapshot;
use srdma_wire::units::NS_PER_S;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Time without progress of the expected PSN, with a lag, that counts as a stall.
const PATIENCE_NS: u64 = NS_PER_S;

/// Counts stalls over successive snapshots of one process.
///
/// ```text
///            lag > 0                    1 s without progress, count one
///   moving ───────────→ standing still ───────────────────────────────────→ stalled
///      ↑                  │                                                  │
///      └── progress, or no lag ←──────────────────────────────────────────────┘
/// ```
#[derive(Clone, Debug, Default)]
pub struct StallWatch {
    branches: BTreeMap<(u32, Ipv6Addr), Watched>,
}

/// State of a branch.
#[derive(Clone, Copy, Debug)]
struct Watched {
    expected_psn: Option<u32>,
    state: State,
    stalls: u64,
}

/// States of a branch in the drawing above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Moving,
    StandingStill { since_ns: u64 },
    Stalled,
}

impl StallWatch {
    /// Writes the stalls so far into a snapshot, which is later than those before. The state of a branch that the
    /// snapshot lacks is discarded.
    pub fn observe(&mut self, snapshot: &mut Snapshot) {
        let now_ns = snapshot.uptime_ns;
        let mut branches = BTreeMap::new();
        for group in &mut snapshot.groups {
            for branch in &mut group.branches {
                let key = (group.id, branch.address);
                let before = self.branches.get(&key).copied();
                let watched = Watched::next(before, now_ns, branch.expected_psn, branch.lag.unwrap_or(0) > 0);
                branch.stalls = watched.stalls;
                branches.insert(key, watched);
            }
        }
        self.branches = branches;
    }
}

impl Watched {
    fn next(before: Option<Watched>, now_ns: u64, expected_psn: Option<u32>, lags: bool) -> Self {
        let Some(before) = before.filter(|before| before.expected_psn == expected_psn && lags) else {
            let state = if lags { State::StandingStill { since_ns: now_ns } } else { State::Moving };
            return Watched { expected_psn, state, stalls: before.map_or(0, |before| before.stalls) };
        };
        let (state, stalls) = match before.state {
            State::Moving => (State::StandingStill { since_ns: now_ns }, before.stalls),
            State::StandingStill { since_ns } if now_ns.saturating_sub(since_ns) >= PATIENCE_NS => {
                (State::Stalled, before.stalls + 1)
            }
            state @ (State::StandingStill { .. } | State::Stalled) => (state, before.stalls),
        };
        Watched { expected_psn, state, stalls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stalls after each of these observations of one branch: time in milliseconds, expected PSN, whether it lags.
    fn stalls(observations: &[(u64, Option<u32>, bool)]) -> Vec<u64> {
        let mut before = None;
        let observe = |(ms, expected_psn, lags): &(u64, Option<u32>, bool)| {
            let watched = Watched::next(before, ms * 1_000_000, *expected_psn, *lags);
            before = Some(watched);
            watched.stalls
        };
        observations.iter().map(observe).collect()
    }

    #[test]
    fn a_second_without_movement_is_one_stall_however_long_it_lasts() {
        let seen = [(0, Some(5), true), (500, Some(5), true), (1000, Some(5), true), (9000, Some(5), true)];
        assert_eq!(stalls(&seen), [0, 0, 1, 1]);
    }

    #[test]
    fn after_movement_the_next_stall_counts_again() {
        let seen = [
            (0, Some(5), true),
            (1000, Some(5), true),
            (1100, Some(6), true),
            (2000, Some(6), true),
            (2100, Some(6), true),
        ];
        assert_eq!(stalls(&seen), [0, 1, 1, 1, 2]);
    }

    #[test]
    fn without_a_lag_no_branch_stalls_and_the_second_begins_with_it() {
        let seen = [(0, Some(5), false), (5000, Some(5), false), (6000, Some(5), true), (6900, Some(5), true)];
        assert_eq!(stalls(&seen), [0, 0, 0, 0]);
    }

    #[test]
    fn a_gap_in_the_lag_begins_anew() {
        let seen = [(0, Some(5), true), (900, Some(5), false), (1100, Some(5), true), (2100, Some(5), true)];
        assert_eq!(stalls(&seen), [0, 0, 0, 1]);
    }
}
