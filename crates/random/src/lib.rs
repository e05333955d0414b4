//! Random numbers from one seed: the same seed and name give the same numbers, on every machine.
//!
//! Each user draws from a [`Stream`] of its own, so that users do not change the numbers of others.

use rand::Rng;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sha2::{Digest, Sha256};

/// A stream of random numbers, named after its user.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream `name` of `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        let digest = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(name.as_bytes()).finalize();
        let mut state = [0; 16];
        state.copy_from_slice(&digest[..16]);
        Stream(Pcg64Mcg::from_seed(state))
    }

    /// Whether an event of this probability happens. Probabilities 0 and 1 draw no number.
    #[inline]
    pub fn happens(&mut self, probability: Probability) -> bool {
        match probability.0 {
            0 => false,
            u64::MAX => true,
            threshold => self.0.next_u64() < threshold,
        }
    }

    /// A uniform number below `limit`; 0 when `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// A uniform number from 0 to 1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `octets` with random numbers.
    pub fn fill(&mut self, octets: &mut [u8]) {
        self.0.fill_bytes(octets);
    }
}

/// A probability, from 0 to 1, in units of 2^−64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probability(u64);

impl Probability {
    /// Probability 0.
    pub const ZERO: Probability = Probability(0);

    /// A probability from 0 to 1; `None` outside.
    pub fn new(probability: f64) -> Option<Self> {
        if !(0.0..=1.0).contains(&probability) {
            return None;
        }
        // From 2^64 on, the conversion stays at the greatest number, which stands for 1.
        Some(Probability((probability * 2f64.powi(64)) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_0_and_1_draw_no_number() {
        let (mut one, mut other) = (Stream::new(1, "N6-N4"), Stream::new(1, "N6-N4"));
        assert!(!one.happens(Probability::ZERO));
        assert!(one.happens(Probability::new(1.0).unwrap()));
        assert_eq!(one.below(1 << 40), other.below(1 << 40));
    }

    #[test]
    fn streams_differ_by_seed_and_name() {
        let first = |seed, name| Stream::new(seed, name).below(u64::MAX);
        assert_eq!(first(1, "N6-N4"), first(1, "N6-N4"));
        assert_ne!(first(1, "N6-N4"), first(2, "N6-N4"));
        assert_ne!(first(1, "N6-N4"), first(1, "N4-N6"));
    }

    #[test]
    fn probabilities_outside_0_to_1_are_refused() {
        for wrong in [-0.1, 1.000_001, 2.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Probability::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn events_have_their_probability() {
        let mut stream = Stream::new(7, "test");
        for probability in [0.001, 0.05, 0.5] {
            let trials = 400_000;
            let happened = (0..trials).filter(|_| stream.happens(Probability::new(probability).unwrap())).count();
            let expected = f64::from(trials) * probability;
            let deviation = (happened as f64 - expected).abs() / (expected * (1.0 - probability)).sqrt();
            assert!(deviation < 5.0, "{happened} times, expected {expected}");
        }
    }
}
