//! Round-trip times, smoothed as in RFC 6298 section 2.

use std::time::Duration;

/// Least margin of a timeout over the smoothed round trip: a few packets that are on the wire before.
const MARGIN_NS: u32 = 2_000;
/// Doublings of a timeout; callers have limits of their own.
const MOST_DOUBLINGS: u8 = 16;

/// The estimate of a round trip. Samples of retransmitted packets are left out by the caller, since their responses are
/// ambiguous (section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct RoundTrip {
    /// SRTT; 0 before the first sample.
    smoothed_ns: u32,
    /// RTTVAR.
    variation_ns: u32,
    /// Doublings of the timeout, since the last sample (sections 5.5 to 5.7): while every packet is sent again before
    /// its response arrives, no response is a sample, and only a longer timeout leads to one.
    doublings: u8,
}

impl RoundTrip {
    /// Takes in a sample.
    pub(crate) fn sample(&mut self, round_trip: Duration) {
        self.doublings = 0;
        let sample = u32::try_from(round_trip.as_nanos()).unwrap_or(u32::MAX).max(1);
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.variation_ns) = (sample, sample / 2);
            return;
        }
        let difference = self.smoothed_ns.abs_diff(sample);
        self.variation_ns = self.variation_ns - self.variation_ns / 4 + difference / 4;
        self.smoothed_ns = (self.smoothed_ns - self.smoothed_ns / 8 + sample / 8).max(1);
    }

    /// A response was overdue.
    pub(crate) fn back_off(&mut self) {
        self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
    }

    /// Time after which a response is overdue, doubled for each one that was since the last sample.
    pub(crate) fn backed_off_timeout(&self, initial: Duration) -> Duration {
        self.timeout(initial).saturating_mul(1 << self.doublings)
    }

    /// Time after which a response is overdue; `initial` before the first sample.
    pub(crate) fn timeout(&self, initial: Duration) -> Duration {
        if self.smoothed_ns == 0 {
            return initial;
        }
        let margin = self.variation_ns.saturating_mul(4).max(MARGIN_NS);
        Duration::from_nanos(u64::from(self.smoothed_ns) + u64::from(margin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: Duration = Duration::from_micros(100);

    fn timeout_ns(round_trip: &RoundTrip) -> u128 {
        round_trip.timeout(INITIAL).as_nanos()
    }

    /// RFC 6298 section 2: 2.1 initial value, 2.2 first sample, 2.3 later ones, by hand.
    #[test]
    fn timeouts_follow_rfc_6298() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(timeout_ns(&round_trip), 100_000);
        round_trip.sample(Duration::from_micros(8));
        assert_eq!(timeout_ns(&round_trip), 8_000 + 4 * 4_000);
        round_trip.sample(Duration::from_micros(16));
        // RTTVAR = 3/4 * 4 us + 1/4 * |8 - 16| us = 5 us; SRTT = 7/8 * 8 us + 1/8 * 16 us = 9 us.
        assert_eq!(timeout_ns(&round_trip), 9_000 + 4 * 5_000);
    }

    /// RFC 6298 sections 5.5 and 5.7: doubled for each overdue response, until the next sample.
    #[test]
    fn a_timeout_stays_doubled_until_a_sample() {
        let mut round_trip = RoundTrip::default();
        let timeout_us = |round_trip: &RoundTrip| round_trip.backed_off_timeout(INITIAL).as_micros();
        let overdue: Vec<u128> = (0..4)
            .map(|_| {
                round_trip.back_off();
                timeout_us(&round_trip)
            })
            .collect();
        assert_eq!(overdue, [200, 400, 800, 1_600]);
        (0..100).for_each(|_| round_trip.back_off());
        assert_eq!(timeout_us(&round_trip), 100 << MOST_DOUBLINGS);
        round_trip.sample(Duration::from_micros(1_000));
        assert_eq!(timeout_us(&round_trip), 1_000 + 4 * 500);
    }

    /// A constant round trip has a timeout of the margin above it.
    #[test]
    fn a_constant_round_trip_leaves_the_margin() {
        let mut round_trip = RoundTrip::default();
        (0..100).for_each(|_| round_trip.sample(Duration::from_micros(40)));
        assert!((42_000..42_100).contains(&timeout_ns(&round_trip)), "{round_trip:?}");
    }
}
