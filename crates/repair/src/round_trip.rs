//! Round-trip times, smoothed as in RFC 6298 section 2.

use std::time::Duration;

/// Least margin of a timeout over the smoothed round trip: a few packets that are on the wire before.
const MARGIN_NS: u32 = 2_000;

/// The estimate of a round trip. Samples of retransmitted packets are left out by the caller, since their responses are
/// ambiguous (section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct RoundTrip {
    /// SRTT; 0 before the first sample.
    smoothed_ns: u32,
    /// RTTVAR.
    variation_ns: u32,
}

impl RoundTrip {
    /// Takes in a sample.
    pub(crate) fn sample(&mut self, round_trip: Duration) {
        let sample = u32::try_from(round_trip.as_nanos()).unwrap_or(u32::MAX).max(1);
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.variation_ns) = (sample, sample / 2);
            return;
        }
        let difference = self.smoothed_ns.abs_diff(sample);
        self.variation_ns = self.variation_ns - self.variation_ns / 4 + difference / 4;
        self.smoothed_ns = (self.smoothed_ns - self.smoothed_ns / 8 + sample / 8).max(1);
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

    /// A constant round trip has a timeout of the margin above it.
    #[test]
    fn a_constant_round_trip_leaves_the_margin() {
        let mut round_trip = RoundTrip::default();
        (0..100).for_each(|_| round_trip.sample(Duration::from_micros(40)));
        assert!((42_000..42_100).contains(&timeout_ns(&round_trip)), "{round_trip:?}");
    }
}
