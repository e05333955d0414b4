//! Time of elements: nanoseconds since an origin that the caller defines.

use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time, in nanoseconds since the caller's origin: the start of a simulation, the epoch of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Instant = Instant(0);

    /// The end of time: a deadline that never comes.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the origin.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The instant `ns` nanoseconds later; the end of time rather than an overflow.
    pub const fn after_ns(self, ns: u64) -> Self {
        Instant(self.0.saturating_add(ns))
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        self.after_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_neither_overflows_nor_runs_backwards() {
        let end = Instant::NEVER;
        assert_eq!(end.after_ns(1), end);
        assert_eq!(Instant::ZERO + Duration::MAX, end);
        assert_eq!(Instant::ZERO.since(end), Duration::ZERO);
        let mut now = Instant::from_ns(5);
        now += Duration::from_micros(2);
        assert_eq!((now.as_ns(), now - Instant::from_ns(5)), (2_005, Duration::from_micros(2)));
    }
}
