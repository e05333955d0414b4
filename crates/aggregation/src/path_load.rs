//! The most loaded path below a node of a group's tree, whose trace goes to the source (D242).
//!
//! ```text
//!   sample of a branch's link ──▶ its load since the last sample ─┐
//!                                                                 ├─▶ load of the path: the greater one
//!   report of the node below ───▶ load of the paths below it ─────┘        │
//!                                      greatest of all branches' last ones? └─▶ yes: goes upstream at once
//! ```

use crate::BranchIndex;
use srdma_wire::Instant;
use std::time::Duration;

/// A link's load: this many are its capacity.
pub const FULL_LOAD: u32 = 1000;

/// Counters of a link, toward a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSample {
    /// When they had these values.
    pub at: Instant,
    /// Octets that the link has sent.
    pub sent_octets: u64,
    /// Octets that wait for it.
    pub queued_octets: u64,
    /// Its rate.
    pub rate_bits_per_s: u64,
}

/// Two samples of a link, and its load between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkMeasurement {
    /// Octets sent and octets that wait, as parts of what it can send, in [thousandths](FULL_LOAD).
    pub load: u32,
    /// The earlier sample; `None` for the first one.
    pub earlier: Option<LinkSample>,
    /// The later sample.
    pub later: LinkSample,
}

/// The loads of the paths below a node, of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLoads {
    interval_ns: u64,
    due: Instant,
    branches: Box<[BranchLoad]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BranchLoad {
    measured: Option<LinkMeasurement>,
    /// Load of the path, and when it was reported.
    reported: Option<(u32, Instant)>,
}

/// A report counts for so many intervals.
const INTERVALS_OF_A_REPORT: u64 = 2;

impl PathLoads {
    /// Nothing is known of so many branches.
    pub fn new(interval: Duration, branches: usize) -> Self {
        let interval_ns = whole_ns(interval);
        PathLoads { interval_ns, due: Instant::ZERO, branches: vec![BranchLoad::default(); branches].into() }
    }

    /// Whether it is for this interval and number of branches.
    pub fn is_for(&self, interval: Duration, branches: usize) -> bool {
        self.interval_ns == whole_ns(interval) && self.branches.len() == branches
    }

    /// True once in an interval.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now.after_ns(self.interval_ns);
        }
        is_due
    }

    /// Takes a sample of the link to a branch. One that comes less than half an interval after the last one changes
    /// nothing.
    pub fn measure(&mut self, branch: BranchIndex, sample: LinkSample) -> Option<LinkMeasurement> {
        let state = self.branches.get_mut(branch.index())?;
        let earlier = state.measured.map(|measured| measured.later);
        let elapsed_ns = earlier.map_or(0, |earlier| sample.at.since(earlier.at).as_nanos() as u64);
        if earlier.is_none() || elapsed_ns >= self.interval_ns.div_ceil(2) {
            let load = earlier.map_or(0, |earlier| load_between(earlier, sample, self.interval_ns));
            state.measured = Some(LinkMeasurement { load, earlier, later: sample });
        }
        state.measured
    }

    /// Takes the load of the path to a branch. Returns whether it goes upstream: no other branch has reported more
    /// lately. `None` if the branch has reported less than half an interval ago, or does not exist (MT-9-3).
    pub fn report(&mut self, now: Instant, branch: BranchIndex, load: u32) -> Option<bool> {
        let half_ns = self.interval_ns / 2;
        let state = self.branches.get_mut(branch.index())?;
        if state.reported.is_some_and(|(_, at)| now < at.after_ns(half_ns)) {
            return None;
        }
        state.reported = Some((load, now));
        let counts_ns = INTERVALS_OF_A_REPORT.saturating_mul(self.interval_ns);
        let others = self.branches.iter().enumerate().filter(|(other, _)| *other != branch.index());
        let mut fresh = others.filter_map(|(other, state)| {
            state.reported.filter(|(_, at)| now < at.after_ns(counts_ns)).map(|(load, _)| (load, other))
        });
        Some(fresh.all(|(other_load, other)| (other_load, branch.index()) < (load, other)))
    }
}

fn whole_ns(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// Load of a link: octets sent since the earlier sample, and octets that wait, which it sends within an interval.
fn load_between(earlier: LinkSample, later: LinkSample, interval_ns: u64) -> u32 {
    let elapsed_ns = u128::from(later.at.since(earlier.at).as_nanos() as u64);
    let (interval_ns, rate) = (u128::from(interval_ns), u128::from(later.rate_bits_per_s));
    let sent = u128::from(later.sent_octets.saturating_sub(earlier.sent_octets));
    let octets_ns = (sent * interval_ns).saturating_add(u128::from(later.queued_octets) * elapsed_ns);
    let capacity = (rate * elapsed_ns).saturating_mul(interval_ns);
    let load = octets_ns.saturating_mul(8_000_000_000 * u128::from(FULL_LOAD)) / capacity.max(1);
    u32::try_from(load).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_micros(5);
    const RATE: u64 = 100_000_000_000;

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    fn sample(us: u64, sent_octets: u64, queued_octets: u64) -> LinkSample {
        LinkSample { at: at(us), sent_octets, queued_octets, rate_bits_per_s: RATE }
    }

    /// By hand: 100 Gbit/s are 62,500 octets in 5 µs.
    #[test]
    fn the_load_is_what_was_sent_and_what_waits() {
        let mut loads = PathLoads::new(INTERVAL, 2);
        let mut measure = |sample| loads.measure(BranchIndex(1), sample).unwrap();
        assert_eq!(measure(sample(0, 1000, 0)).load, 0, "nothing to compare with");
        let half = measure(sample(10, 1000 + 62_500, 0));
        assert_eq!((half.load, half.earlier, half.later.at), (500, Some(sample(0, 1000, 0)), at(10)));
        assert_eq!(measure(sample(15, 1000 + 125_000, 31_250)).load, 1500, "all, and half an interval's worth waits");
        let early = measure(sample(17, 1000 + 125_000, 0));
        assert_eq!((early.load, early.later.at), (1500, at(15)), "less than half an interval");
        assert_eq!(loads.measure(BranchIndex(2), sample(0, 0, 0)), None);
    }

    #[test]
    fn the_path_with_most_load_goes_upstream_at_once() {
        let mut loads = PathLoads::new(INTERVAL, 3);
        let mut report = |us, branch, load| loads.report(at(us), BranchIndex(branch), load);
        assert_eq!(report(0, 0, 400), Some(true), "the first one");
        assert_eq!(report(1, 1, 300), Some(false));
        assert_eq!(report(1, 2, 900), Some(true), "worse, so it does not wait");
        assert_eq!(report(2, 2, 950), None, "twice in half an interval");
        assert_eq!(report(5, 0, 900), Some(true), "the lowest of equal ones");
        assert_eq!(report(6, 2, 900), Some(false));
        assert_eq!(report(11, 1, 899), Some(false), "the others' last ones count for two intervals");
        assert_eq!(report(16, 1, 100), Some(true), "and then no more");
        assert_eq!(report(16, 3, 1), None, "there is no such branch");
    }

    #[test]
    fn it_is_due_once_in_an_interval() {
        let mut loads = PathLoads::new(INTERVAL, 1);
        let due: Vec<u64> = (0..20).filter(|us| loads.is_due(at(*us))).collect();
        assert_eq!(due, [0, 5, 10, 15]);
        assert!(loads.is_for(INTERVAL, 1) && !loads.is_for(INTERVAL, 2) && !loads.is_for(2 * INTERVAL, 1));
    }
}
