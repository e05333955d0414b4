//! Drawing the parts of a schedule.
//!
//! Whole numbers only: what a seed means must not depend on how a machine rounds logarithms.

use srdma_sim::random::Stream;

/// Where a schedule's parts are drawn from.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Stream);

impl Dice {
    /// The dice called `name` of a seed.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Dice(Stream::new(seed, name))
    }

    /// Once in `times`, on average.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// A position below `limit`, evenly.
    pub(crate) fn position(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    /// From `least` to `most`, both included, evenly.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most.saturating_sub(least) + 1)
    }

    /// From `least`, more than 0, to `most`, both included: each doubling as probable as every other, evenly inside.
    pub(crate) fn over_doublings(&mut self, least: u64, most: u64) -> u64 {
        let whole = (most / least).max(1).ilog2();
        let doublings = whole + u32::from(least << whole < most);
        let doubling = self.0.below(u64::from(doublings)) as u32;
        let from = least << doubling;
        let to = if doubling + 1 >= doublings { most } else { 2 * from - 1 };
        self.between(from, to)
    }

    /// One of `values`, evenly; there is at least one.
    pub(crate) fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.position(values.len())].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_between_their_bounds_and_reach_both() {
        let mut dice = Dice::new(1, "test");
        for (least, most) in [(1, 1), (1, 200), (2, 40), (16, 256), (7, 9), (1000, 1_000_000)] {
            let drawn: Vec<u64> = (0..20_000).map(|_| dice.over_doublings(least, most)).collect();
            assert!(drawn.iter().all(|number| (least..=most).contains(number)), "{least} to {most}");
            if most <= 256 {
                assert!(drawn.contains(&least) && drawn.contains(&most), "{least} to {most}");
            }
        }
    }

    #[test]
    fn each_doubling_is_as_probable_as_every_other() {
        let mut dice = Dice::new(2, "test");
        let small = (0..80_000).filter(|_| dice.over_doublings(16, 256) < 32).count();
        assert!((19_000..21_000).contains(&small), "{small} of 80,000 in the first of four doublings");
    }
}
