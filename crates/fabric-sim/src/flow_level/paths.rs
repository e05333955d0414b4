//! The paths of the queue pairs of jobs: the same as at packet level; and the trees of their groups.

use crate::build::ADDRESSES;
use crate::flows::plan;
use crate::programs::{self, ChannelRoute};
use crate::queues::TRACE_NAMESPACE;
use crate::route::{Heading, Leg};
use crate::run::{RunError, first_qpn};
use crate::scenario::{Control, FabricScenario, Paths, Variant};
use crate::tasks::Channel;
use srdma_fabric::{NextHops, NodeId, Topology};
use srdma_placement::{Direction, directions, hashed_tree};
use srdma_rc::{QueuePairConfig, TraceRequest};
use srdma_wire::Qpn;
use std::collections::BTreeMap;

/// The links of each queue pair, by channel: those of its first path, and those of its alternatives.
///
/// # Errors
///
/// Those of the placement.
pub(super) fn paths(
    scenario: &FabricScenario,
    variant: &Variant,
    next_hops: &NextHops,
    seed: u64,
    channels: &[Channel],
) -> Result<Vec<Vec<Vec<Leg>>>, RunError> {
    let topology = &scenario.topology;
    if variant.paths != Paths::Ecmp {
        let legs = |route: ChannelRoute| match route {
            ChannelRoute::Paths(paths) => paths.iter().map(|path| legs(&directions(topology, path))).collect(),
            ChannelRoute::Tree(tree) => vec![legs(&tree)],
        };
        return Ok(programs::routes(scenario, variant, next_hops, seed, channels)?.into_iter().map(legs).collect());
    }
    let lanes = variant.queue_pairs.get() as usize;
    let first = first_qpn(seed) as usize + plan(scenario, seed).len();
    let mut paths = Vec::with_capacity(channels.len() * lanes);
    for (number, channel) in channels.iter().enumerate() {
        for lane in 0..lanes {
            if let Some(group) = &channel.group {
                let tree = hashed_tree(topology, next_hops, group, (number * lanes + lane) as u64, seed);
                paths.push(vec![legs(&tree)]);
                continue;
            }
            let Some(qpn) = Qpn::new((first + number * lanes + lane) as u32) else { continue };
            paths.push(vec![hashed(topology, variant, next_hops, qpn, channel)]);
        }
    }
    Ok(paths)
}

fn legs(along: &[Direction]) -> Vec<Leg> {
    along.iter().map(|direction| Leg { link: direction.link, backwards: direction.is_backward }).collect()
}

/// The longest path of a tree; a path itself. Parents come before children.
pub(super) fn longest(topology: &Topology, tree: &[Leg]) -> Vec<Leg> {
    let mut above: BTreeMap<NodeId, Vec<Leg>> = BTreeMap::new();
    let mut longest = Vec::new();
    for leg in tree {
        let direction = Direction { link: leg.link, is_backward: leg.backwards };
        let mut path = above.get(&direction.origin(topology)).cloned().unwrap_or_default();
        path.push(*leg);
        if path.len() > longest.len() {
            longest.clone_from(&path);
        }
        above.insert(direction.to(topology), path);
    }
    longest
}

/// The links that the switches' hash selects for a queue pair.
fn hashed(topology: &Topology, variant: &Variant, next_hops: &NextHops, qpn: Qpn, channel: &Channel) -> Vec<Leg> {
    let mut data = QueuePairConfig::new(qpn, ADDRESSES.host(topology, channel.to), qpn);
    data.trace = (variant.control == Control::Hpcc).then(|| TraceRequest::hpcc(TRACE_NAMESPACE, 1));
    Heading::of_data(topology, channel.from, &data).hashed(topology, next_hops, [channel.from, channel.to])
}
