//! The paths of the queue pairs of jobs: the same as at packet level.

use crate::build::ADDRESSES;
use crate::flows::plan;
use crate::programs;
use crate::queues::TRACE_NAMESPACE;
use crate::route::{Heading, Leg};
use crate::run::{RunError, first_qpn};
use crate::scenario::{Control, FabricScenario, Paths, Variant};
use crate::tasks::Channel;
use srdma_fabric::{NextHops, Topology};
use srdma_placement::directions;
use srdma_rc::{QueuePairConfig, TraceRequest};
use srdma_wire::Qpn;

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
        let paths = programs::paths(scenario, variant, next_hops, seed, channels)?;
        let legs = |path| {
            let along = directions(topology, path).into_iter();
            along.map(|direction| Leg { link: direction.link, backwards: direction.is_backward }).collect()
        };
        return Ok(paths.iter().map(|paths| paths.iter().map(legs).collect()).collect());
    }
    let lanes = variant.queue_pairs.get() as usize;
    let first = first_qpn(seed) as usize + plan(scenario, seed).len();
    let mut paths = Vec::with_capacity(channels.len() * lanes);
    for (number, channel) in channels.iter().enumerate() {
        for lane in 0..lanes {
            let Some(qpn) = Qpn::new((first + number * lanes + lane) as u32) else { continue };
            paths.push(vec![hashed(topology, variant, next_hops, qpn, channel)]);
        }
    }
    Ok(paths)
}

/// The links that the switches' hash selects for a queue pair.
fn hashed(topology: &Topology, variant: &Variant, next_hops: &NextHops, qpn: Qpn, channel: &Channel) -> Vec<Leg> {
    let mut data = QueuePairConfig::new(qpn, ADDRESSES.host(topology, channel.to), qpn);
    data.trace = (variant.control == Control::Hpcc).then(|| TraceRequest::hpcc(TRACE_NAMESPACE, 1));
    Heading::of_data(topology, channel.from, &data).hashed(topology, next_hops, [channel.from, channel.to])
}
