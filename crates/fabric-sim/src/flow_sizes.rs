//! Published distributions of flow sizes.

use super::scenario::FlowSizes;
use srdma_random::Stream;

/// Octets, and the fraction of flows of at most this size; linear between two points.
type Table = &'static [(u64, f64)];

/// See [`FlowSizes::WebSearch`].
const WEB_SEARCH: Table = &[
    (0, 0.0),
    (10_000, 0.15),
    (20_000, 0.20),
    (30_000, 0.30),
    (50_000, 0.40),
    (80_000, 0.53),
    (200_000, 0.60),
    (1_000_000, 0.70),
    (2_000_000, 0.80),
    (5_000_000, 0.90),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
];

/// See [`FlowSizes::Hadoop`].
const HADOOP: Table = &[
    (0, 0.0),
    (100, 0.01),
    (200, 0.02),
    (300, 0.05),
    (350, 0.15),
    (400, 0.20),
    (500, 0.30),
    (600, 0.40),
    (700, 0.50),
    (1_000, 0.60),
    (2_000, 0.67),
    (7_000, 0.70),
    (30_000, 0.72),
    (50_000, 0.82),
    (80_000, 0.87),
    (120_000, 0.90),
    (300_000, 0.95),
    (1_000_000, 0.975),
    (2_000_000, 0.99),
    (10_000_000, 1.0),
];

impl FlowSizes {
    fn table(self) -> Table {
        match self {
            FlowSizes::WebSearch => WEB_SEARCH,
            FlowSizes::Hadoop => HADOOP,
        }
    }

    /// The mean, in octets.
    pub(super) fn mean_octets(self) -> f64 {
        let pairs = self.table().windows(2);
        pairs.map(|pair| (pair[0].0 + pair[1].0) as f64 / 2.0 * (pair[1].1 - pair[0].1)).sum()
    }

    /// Draws a size of at least one octet.
    pub(super) fn draw(self, rng: &mut Stream) -> u64 {
        let share = rng.unit();
        let table = self.table();
        let above = table.partition_point(|(_, up_to)| *up_to <= share).clamp(1, table.len() - 1);
        let ((from, low), (to, high)) = (table[above - 1], table[above]);
        let octets = from as f64 + (to - from) as f64 * (share - low) / (high - low);
        (octets as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_sizes_have_the_distribution_of_the_table() {
        for sizes in [FlowSizes::WebSearch, FlowSizes::Hadoop] {
            let mut rng = Stream::new(1, "sizes");
            let drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut rng)).collect();
            for (octets, share) in sizes.table() {
                let found = drawn.iter().filter(|size| *size <= octets).count() as f64 / drawn.len() as f64;
                assert!((found - share).abs() < 0.005, "{sizes:?}: {found} up to {octets}, expected {share}");
            }
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((mean / sizes.mean_octets() - 1.0).abs() < 0.02, "{sizes:?}: {mean}");
        }
    }

    /// The means of the tables, calculated by hand.
    #[test]
    fn the_means_are_those_of_the_tables() {
        assert!(
            (FlowSizes::WebSearch.mean_octets() - 1_711_250.0).abs() < 1.0,
            "{}",
            FlowSizes::WebSearch.mean_octets()
        );
    }
}
