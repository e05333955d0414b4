//! Pacing: a limit of the sending rate, so that frames wait in the node's classes, and not in or behind an interface.

use srdma_wire::Instant;
use srdma_wire::units::NS_PER_S;
use std::time::Duration;

/// Longest delay that is made up for: a thread that does not get its processor for this time loses nothing of the rate.
const REST: Duration = Duration::from_millis(1);

/// A rate, and how far it is used up.
#[derive(Debug)]
pub(super) struct Pace {
    bits_per_s: u64,
    /// Time at which the frames sent so far would have left a wire of that rate.
    free_at: Instant,
}

impl Pace {
    /// A rate that nothing has been sent at.
    pub(super) fn new(bits_per_s: u64) -> Self {
        Pace { bits_per_s: bits_per_s.max(1), free_at: Instant::ZERO }
    }

    /// Time that the next frame has to wait; zero when it may go now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.free_at.since(now)
    }

    /// Accounts for a sent frame of this length.
    pub(super) fn sends(&mut self, now: Instant, len_octets: usize) {
        let begins = self.free_at.max(Instant::from_ns(now.as_ns().saturating_sub(REST.as_nanos() as u64)));
        let takes_ns = len_octets as u128 * 8 * u128::from(NS_PER_S) / u128::from(self.bits_per_s);
        self.free_at = begins.after_ns(u64::try_from(takes_ns).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of frames that are always there, looked after every 150 µs: the rate is kept to a frame and the rest.
    #[test]
    fn the_rate_is_kept() {
        let mut pace = Pace::new(100_000_000);
        let mut sent_octets = 0;
        for round in 0..6_667 {
            let now = Instant::from_ns(1_000_000_000 + round * 150_000);
            while pace.wait(now).is_zero() {
                pace.sends(now, 1_250);
                sent_octets += 1_250;
            }
        }
        // 1,250 octets take 100 µs at 100 Mbit/s.
        let (least, most) = (12_500_000 - 2 * 1_250, 12_500_000 + 12 * 1_250);
        assert!((least..=most).contains(&sent_octets), "{sent_octets}");
    }

    #[test]
    fn a_rest_is_made_up_for_only_in_part() {
        let mut pace = Pace::new(100_000_000);
        pace.sends(Instant::from_ns(0), 1_250);
        assert_eq!(pace.wait(Instant::from_ns(0)), Duration::from_micros(100));
        let (later, mut frames) = (Instant::from_ns(60_000_000_000), 0);
        while pace.wait(later).is_zero() {
            pace.sends(later, 1_250);
            frames += 1;
        }
        // A millisecond of rest, and the frame that then begins.
        assert_eq!(frames, 11);
    }
}
