//! Observation of a run. An observer changes nothing: snapshots are taken between two events.

use crate::{RunDescription, Snapshot};
use std::io;

/// Observer of a run.
pub trait Observer {
    /// The run begins.
    ///
    /// # Errors
    ///
    /// The observer's own; they end the run.
    fn begin(&mut self, description: &RunDescription) -> io::Result<()>;

    /// Gets a snapshot; the last one is that of the end of the run.
    ///
    /// # Errors
    ///
    /// The observer's own; they end the run.
    fn observe(&mut self, snapshot: &Snapshot) -> io::Result<()>;
}

/// Time between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotInterval {
    /// At least this many nanoseconds.
    Fixed(u64),
    /// Initially a step of the run; doubled whenever a number of snapshots has been taken that depends on the number of
    /// links. It bounds the size of a recording, however long the run.
    Adaptive,
}

/// Snapshots before [`SnapshotInterval::Adaptive`] first doubles, with up to 400 links and with many more.
const MAX_SNAPSHOTS: u64 = 400;
const MIN_SNAPSHOTS: u64 = 50;

/// Bound of links times snapshots, down to [`MIN_SNAPSHOTS`].
const MAX_LINK_SNAPSHOTS: u64 = 160_000;

/// Calls an observer at intervals.
pub struct PeriodicObserver<'a> {
    observer: &'a mut (dyn Observer + Send),
    interval: SnapshotInterval,
    interval_ns: u64,
    next_ns: u64,
    /// Snapshots until the interval doubles.
    until_doubling: u64,
    first_doubling: u64,
}

impl<'a> PeriodicObserver<'a> {
    #[allow(missing_docs, reason = "the types explain it")]
    pub fn new(observer: &'a mut (dyn Observer + Send), interval: SnapshotInterval) -> Self {
        PeriodicObserver {
            observer,
            interval,
            interval_ns: 1,
            next_ns: 0,
            until_doubling: u64::MAX,
            first_doubling: MAX_SNAPSHOTS,
        }
    }

    /// Begins a run with steps of `step_ns`.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub fn begin(&mut self, description: &RunDescription, step_ns: u64) -> io::Result<()> {
        let links = (description.links.len() as u64).max(1);
        self.first_doubling = (MAX_LINK_SNAPSHOTS / links).clamp(MIN_SNAPSHOTS, MAX_SNAPSHOTS);
        (self.interval_ns, self.until_doubling) = match self.interval {
            SnapshotInterval::Fixed(interval_ns) => (interval_ns, u64::MAX),
            SnapshotInterval::Adaptive => (step_ns, self.first_doubling),
        };
        self.next_ns = self.interval_ns;
        self.observer.begin(description)
    }

    /// Takes a snapshot if one is due.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub fn observe_if_due(&mut self, now_ns: u64, snapshot: impl FnOnce() -> Snapshot) -> io::Result<()> {
        if now_ns < self.next_ns {
            return Ok(());
        }
        self.until_doubling -= 1;
        if self.until_doubling == 0 {
            self.interval_ns = self.interval_ns.saturating_mul(2);
            self.until_doubling = self.first_doubling / 2;
        }
        self.next_ns = now_ns.saturating_add(self.interval_ns);
        self.observer.observe(&snapshot())
    }

    /// Ends the run with its last snapshot.
    ///
    /// # Errors
    ///
    /// Those of the observer.
    pub fn end(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        self.observer.observe(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::LinkInfo;

    #[derive(Default)]
    struct Times(Vec<u64>);

    impl Observer for Times {
        fn begin(&mut self, _: &RunDescription) -> io::Result<()> {
            Ok(())
        }

        fn observe(&mut self, snapshot: &Snapshot) -> io::Result<()> {
            self.0.push(snapshot.now_ns);
            Ok(())
        }
    }

    /// Times of the snapshots of a run with steps of 10 ns.
    fn times(interval: SnapshotInterval, links: usize, steps: u64) -> Vec<u64> {
        let link = LinkInfo { ends: ["a".to_owned(), "b".to_owned()], mtu: 1500, groups: 0 };
        let description =
            RunDescription { root: None, elements: Vec::new(), links: vec![link; links], groups: Vec::new() };
        let mut times = Times::default();
        let mut periodic = PeriodicObserver::new(&mut times, interval);
        periodic.begin(&description, 10).unwrap();
        for step in 1..=steps {
            let now_ns = step * 10;
            let snapshot = || Snapshot { now_ns, links: Vec::new(), elements: Vec::new(), groups: Vec::new() };
            periodic.observe_if_due(now_ns, snapshot).unwrap();
        }
        times.0
    }

    #[test]
    fn a_fixed_interval_is_kept() {
        assert_eq!(times(SnapshotInterval::Fixed(25), 1, 12), [30, 60, 90, 120]);
        assert_eq!(times(SnapshotInterval::Fixed(1), 1, 3), [10, 20, 30]);
    }

    #[test]
    fn a_long_run_has_few_snapshots() {
        let all = times(SnapshotInterval::Adaptive, 100, 400);
        assert_eq!(all, (1..=400).map(|step| step * 10).collect::<Vec<u64>>());
        let long = times(SnapshotInterval::Adaptive, 100, 1_000_000);
        assert!(long.len() < 3000, "{}", long.len());
        assert!(long.is_sorted_by(|one, other| one < other));
        assert_eq!(times(SnapshotInterval::Adaptive, 20_000, 1000)[48..52], [490, 500, 520, 540]);
    }
}
