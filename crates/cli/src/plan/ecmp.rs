//! The same flows on the paths that hashes choose, for comparison.

use super::jobs::Wanted;
use serde::Serialize;
use srdma_fabric::{NextHops, Topology};
use srdma_placement::{Loads, ecmp};

/// Seeds of the hashes that are tried.
const SEEDS: u64 = 21;

/// What the most loaded link carries, by its rate, over several seeds of the hashes.
#[derive(Serialize)]
pub(super) struct Hashed {
    pub(super) seeds: u64,
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

pub(super) fn hashed(topology: &Topology, wanted: &[&Wanted]) -> Hashed {
    let next_hops = NextHops::new(topology);
    let mut most_loaded: Vec<f64> = (1..=SEEDS)
        .map(|seed| {
            let mut loads = Loads::none(topology);
            for (number, Wanted { flow, .. }) in (0..).zip(wanted) {
                let along = ecmp(topology, &next_hops, [flow.from, flow.to], number, seed);
                loads.add(topology, &along, flow.rate_bits_per_s);
            }
            loads.most_loaded(topology).1
        })
        .collect();
    most_loaded.sort_by(f64::total_cmp);
    let last = most_loaded.len() - 1;
    Hashed { seeds: SEEDS, least: most_loaded[0], median: most_loaded[last / 2], most: most_loaded[last] }
}
