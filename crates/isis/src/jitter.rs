//! Jitter of timers (ISO 10589 section 10.1): intervals are shortened at random, so that systems that were started
//! together do not stay in step.

/// Random shortening of intervals, the same for the same seed (splitmix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Jitter(seed)
    }

    /// An interval shortened by up to so many percent.
    pub(crate) fn shorten_ns(&mut self, interval_ns: u64, percent: u8) -> u64 {
        let greatest_ns = interval_ns / 100 * u64::from(percent.min(100));
        interval_ns - self.next() % (greatest_ns + 1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_lie_between_three_quarters_and_all_of_it() {
        let mut jitter = Jitter::new(7);
        let drawn: Vec<u64> = (0..10_000).map(|_| jitter.shorten_ns(1000, 25)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&750), Some(&1000)));
        let mean = drawn.iter().sum::<u64>() / 10_000;
        assert!((865..885).contains(&mean), "{mean}");
        assert_eq!(jitter.shorten_ns(1000, 0), 1000);
    }
}
