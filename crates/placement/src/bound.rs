//! What the most loaded link of any fabric carries at least, even if flows could be divided.
//!
//! Let every direction of a link have a length. However flows are divided, a flow covers at least the distance between
//! its ends; so rates times distances, all flows together, over rates times lengths, all links together, is a share
//! that some link carries at least. That holds for any lengths (weak duality of the linear program of least
//! congestion); good ones are found by making loaded links longer, round by round (Young 1995, Garg and Könemann 1998).

use crate::flow::Flow;
use crate::load::Direction;
use crate::search::Ways;
use srdma_fabric::{HostId, Topology};
use std::collections::BTreeMap;

/// How much longer the most loaded link becomes in a round.
const STEP: f64 = 0.2;

/// A bound below which no placement of the flows loads its most loaded link, by the link's rate. More rounds make it
/// sharper.
pub fn divided_bound(topology: &Topology, flows: &[Flow], may_use: impl Fn(Direction) -> bool, rounds: usize) -> f64 {
    let mut by_source: BTreeMap<HostId, Vec<&Flow>> = BTreeMap::new();
    flows
        .iter()
        .filter(|flow| flow.from != flow.to)
        .for_each(|flow| by_source.entry(flow.from).or_default().push(flow));
    let usable: Vec<bool> = (0..2 * topology.links().len()).map(|index| may_use(Direction::at(index))).collect();
    let rate = |index: usize| topology.links()[index / 2].rate_bits_per_s as f64;
    // A length times a rate is a weight: all links begin with the same.
    let mut weights = vec![1.0_f64; usable.len()];
    let mut bound = 0.0_f64;
    for _ in 0..rounds {
        let lengths: Vec<f64> = (0..weights.len()).map(|index| weights[index] / rate(index)).collect();
        let total: f64 = (0..weights.len()).filter(|index| usable[*index]).map(|index| weights[index]).sum();
        let mut covered = 0.0;
        let mut used = vec![0.0_f64; weights.len()];
        for (source, flows) in &by_source {
            // Lengths are not negative, and the bits of such numbers have their order.
            let ways = Ways::from(topology, *source, None, 0.0_f64.to_bits(), |length, direction| {
                let index = direction.index();
                usable[index].then(|| (f64::from_bits(length) + lengths[index]).to_bits())
            });
            for flow in flows {
                let rate_bits_per_s = flow.rate_bits_per_s as f64;
                covered += rate_bits_per_s * ways.cost(flow.to).map_or(0.0, f64::from_bits);
                ways.back(flow.to).for_each(|direction| used[direction.index()] += rate_bits_per_s);
            }
        }
        bound = bound.max(covered / total);
        let most = (0..used.len()).map(|index| used[index] / rate(index)).fold(0.0, f64::max);
        if most == 0.0 {
            break;
        }
        for index in 0..weights.len() {
            weights[index] *= 1.0 + STEP * used[index] / rate(index) / most;
        }
    }
    bound
}
