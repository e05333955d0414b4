//! A path through any fabric: the fewest links, and of several such paths the least loaded one.

use crate::load::{Direction, Loads};
use crate::search::Ways;
use srdma_fabric::{HostId, Topology};

/// Parts of a link's rate that costs are counted in.
const PARTS: f64 = 1e6;

/// The links from a host to another one that a flow may use; `None` if there is no way.
pub(crate) fn route(
    topology: &Topology,
    loads: &Loads,
    [from, to]: [HostId; 2],
    may_use: impl Fn(Direction) -> bool,
) -> Option<Vec<Direction>> {
    // Links first, then how much they and the switches behind them carry.
    let ways = Ways::from(topology, from, Some(to), (0_u32, 0_u64), |(links, used), direction| {
        let own = loads.share_with(topology, direction, 0) + loads.through(direction.to(topology));
        may_use(direction).then_some((links + 1, used + (own * PARTS) as u64))
    });
    ways.cost(to)?;
    let mut along: Vec<Direction> = ways.back(to).collect();
    along.reverse();
    Some(along)
}
