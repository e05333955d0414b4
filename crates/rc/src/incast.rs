//! The extent of an endpoint's congestion: how many of its queue pairs get marked packets, and how often each is then
//! to get a CNP (D284).
//!
//! ```text
//!   marked packet ──► queue pair: the first in this interval? ──► flows of the interval
//!                       a CNP in flows x pace ◄── the larger of this interval and the one before
//! ```

use srdma_wire::units::NS_PER_US;
use srdma_wire::{CnpView, Instant};

/// What CNPs tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    flows: u16,
    pub(crate) period_ns: u64,
}

impl Extent {
    /// The payload of a CNP, in which the period is in microseconds.
    pub(crate) fn payload(self) -> CnpView {
        let period_us = self.period_ns.div_ceil(NS_PER_US);
        CnpView::with_incast(self.flows, u16::try_from(period_us).unwrap_or(u16::MAX))
    }
}

/// The number of an interval; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval(u64);

/// Counts congested queue pairs, in intervals as long as the period of CNPs.
#[derive(Debug)]
pub(crate) struct Incasts {
    pace_ns: u64,
    interval: Interval,
    ends: Instant,
    flows: u16,
    flows_before: u16,
}

impl Incasts {
    /// All queue pairs together send a CNP in `pace_ns` at most.
    pub(crate) fn new(pace_ns: u64) -> Self {
        Incasts { pace_ns, interval: Interval(0), ends: Instant::ZERO, flows: 0, flows_before: 0 }
    }

    /// A marked packet has come for a queue pair that gets a CNP in `least_ns` at most; `seen` is the interval in which
    /// it had one before.
    pub(crate) fn mark(&mut self, now: Instant, seen: &mut Interval, least_ns: u64) -> Extent {
        if now >= self.ends {
            // After a longer silence nothing is left of the interval before.
            let is_next = now < self.ends.after_ns(self.period_ns(least_ns));
            self.flows_before = if is_next { self.flows } else { 0 };
            self.flows = 0;
            self.interval = Interval(self.interval.0 + 1);
            self.ends = now.after_ns(self.period_ns(least_ns));
        }
        if *seen != self.interval {
            *seen = self.interval;
            self.flows = self.flows.saturating_add(1);
        }
        Extent { flows: self.flows.max(self.flows_before), period_ns: self.period_ns(least_ns) }
    }

    fn period_ns(&self, least_ns: u64) -> u64 {
        self.pace_ns.saturating_mul(self.flows.max(self.flows_before).into()).max(least_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    /// One CNP in 2 µs for all, and in 10 µs for each.
    #[test]
    fn flows_are_those_of_this_interval_or_the_one_before() {
        let (mut incasts, mut seen) = (Incasts::new(2_000), [Interval::default(); 20]);
        let mark = |incasts: &mut Incasts, seen: &mut Interval, ns| {
            let extent = incasts.mark(at(ns), seen, 10_000);
            (extent.flows, extent.period_ns)
        };
        for (number, seen) in seen.iter_mut().enumerate() {
            let flows = number as u16 + 1;
            let expected = (flows, 10_000.max(2_000 * u64::from(flows)));
            assert_eq!(mark(&mut incasts, seen, 5_000 + number as u64), expected);
            assert_eq!(mark(&mut incasts, seen, 5_000 + number as u64), expected, "it was counted");
        }
        assert_eq!(mark(&mut incasts, &mut seen[0], 15_000), (20, 40_000), "one, after an interval with twenty");
        assert_eq!(mark(&mut incasts, &mut seen[1], 54_999), (20, 40_000), "40 µs from 15 µs on");
        assert_eq!(mark(&mut incasts, &mut seen[1], 55_000), (2, 10_000), "after one with two");
        assert_eq!(mark(&mut incasts, &mut seen[1], 900_000), (1, 10_000), "after a silence");
    }

    #[test]
    fn a_cnp_has_flows_and_period() {
        assert_eq!(Extent { flows: 3, period_ns: 50_001 }.payload().incast(), Some((3, 51)));
        assert_eq!(Extent { flows: 3, period_ns: u64::MAX }.payload().incast(), Some((3, u16::MAX)));
    }
}
