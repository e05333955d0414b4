//! Random numbers for schedules. Integer arithmetic only: the meaning of a seed must not depend on the rounding of
//! logarithms.

use srdma_random::Stream;

/// The random numbers of a schedule.
#[derive(Clone, Debug)]
pub struct Rng(Stream);

impl Rng {
    /// The stream `name` of a seed.
    pub fn new(seed: u64, name: &str) -> Self {
        Rng(Stream::new(seed, name))
    }

    /// True with probability 1 / `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// Uniform below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    /// Uniform from `least` to `most`, both included.
    pub fn range(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most.saturating_sub(least) + 1)
    }

    /// Log-uniform from `least` > 0 to `most`, both included: each doubling is equally probable, uniform within.
    pub fn log_uniform(&mut self, least: u64, most: u64) -> u64 {
        let whole = (most / least).max(1).ilog2();
        let doublings = whole + u32::from(least << whole < most);
        let doubling = self.0.below(u64::from(doublings)) as u32;
        let from = least << doubling;
        let to = if doubling + 1 >= doublings { most } else { 2 * from - 1 };
        self.range(from, to)
    }

    /// A uniform choice; `values` must not be empty.
    pub fn choose<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    /// A choice by weights; their sum must not be 0.
    pub fn weighted<T: Copy>(&mut self, values: &[(T, u64)]) -> T {
        let total: u64 = values.iter().map(|(_, weight)| weight).sum();
        let mut left = self.range(1, total);
        for (value, weight) in values {
            if left <= *weight {
                return *value;
            }
            left -= weight;
        }
        unreachable!("the weights add up to the total")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_between_their_bounds_and_reach_both() {
        let mut rng = Rng::new(1, "test");
        for (least, most) in [(1, 1), (1, 200), (2, 40), (16, 256), (7, 9), (1000, 1_000_000)] {
            let drawn: Vec<u64> = (0..20_000).map(|_| rng.log_uniform(least, most)).collect();
            assert!(drawn.iter().all(|number| (least..=most).contains(number)), "{least} to {most}");
            if most <= 256 {
                assert!(drawn.contains(&least) && drawn.contains(&most), "{least} to {most}");
            }
        }
    }

    #[test]
    fn each_doubling_is_as_probable_as_every_other() {
        let mut rng = Rng::new(2, "test");
        let small = (0..80_000).filter(|_| rng.log_uniform(16, 256) < 32).count();
        assert!((19_000..21_000).contains(&small), "{small} of 80,000 in the first of four doublings");
    }
}
