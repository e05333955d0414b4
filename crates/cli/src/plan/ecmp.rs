//! The same flows on the paths that hashes choose, for comparison.

use serde::Serialize;
use srdma_fabric::{NextHops, Topology};
use srdma_placement::{GroupFlow, ListedFlow, Loads, ecmp, hashed_tree};

/// Seeds of the hashes that are tried.
const SEEDS: u64 = 21;

/// Utilization of the most loaded link under ECMP, over several seeds of the hashes.
#[derive(Serialize)]
pub(super) struct Hashed {
    pub(super) seeds: u64,
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
    /// Loads of links under the median seed.
    #[serde(skip)]
    pub(super) loads: Loads,
}

/// Flows, and groups on the trees of the paths to their receivers.
pub(super) fn hashed(topology: &Topology, wanted: &[&ListedFlow], groups: &[&GroupFlow]) -> Hashed {
    let next_hops = NextHops::new(topology);
    let loads_by = |seed: u64| {
        let mut loads = Loads::none(topology);
        for (number, ListedFlow { flow, .. }) in (0..).zip(wanted) {
            let along = ecmp(topology, &next_hops, [flow.from, flow.to], number, seed);
            loads.add(topology, &along, flow.rate_bits_per_s);
        }
        for (number, group) in (wanted.len() as u64..).zip(groups) {
            let tree = hashed_tree(topology, &next_hops, group, number, seed);
            loads.add(topology, &tree, group.rate_bits_per_s);
        }
        loads
    };
    let most_loaded = |seed: u64| (loads_by(seed).most_loaded(topology).1, seed);
    let mut of_seeds: Vec<(f64, u64)> = (1..=SEEDS).map(most_loaded).collect();
    of_seeds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let last = of_seeds.len() - 1;
    let (median, seed) = of_seeds[last / 2];
    Hashed { seeds: SEEDS, least: of_seeds[0].0, median, most: of_seeds[last].0, loads: loads_by(seed) }
}
