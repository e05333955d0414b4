//! The reasons for a flow's path: the load of its alternatives, and the links that determine the bound.

use super::FlowId;
use super::Placement;
use crate::bound::{Cut, cut_bound};
use crate::flow::Flow;
use crate::load::{Direction, directions};
use crate::route::route;
use srdma_fabric::{LinkId, Path};

/// A way that a flow could go.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The way.
    pub path: Path,
    /// The most loaded direction on it, relative to its link's rate, if the flow used it.
    pub most_loaded: Direction,
    /// Its utilization with the flow.
    pub load: f64,
}

impl Placement<'_> {
    /// Whether a link is drained, or has failed.
    pub fn is_drained(&self, link: LinkId) -> bool {
        self.is_drained[link.index()]
    }

    /// Other ways of a flow, those first that would carry least: on a Clos all of them, elsewhere for each of its links
    /// the cheapest way around it.
    pub fn alternatives(&self, id: FlowId) -> Vec<Alternative> {
        let Some(placed) = self.flows.get(id.0 as usize).and_then(Option::as_ref) else {
            return Vec::new();
        };
        let (flow, own) = (placed.flow, &placed.along);
        let is_open = |direction: &Direction| !self.is_drained[direction.link.index()];
        let mut ways: Vec<Vec<Direction>> = match &self.clos {
            Some(clos) => clos.choices(&flow).map(|choice| clos.along(&flow, choice)).collect(),
            None => {
                let around = |avoided: &Direction| {
                    let may_use = |direction: Direction| is_open(&direction) && direction.link != avoided.link;
                    route(self.topology, &self.loads, [flow.from, flow.to], may_use)
                };
                own.iter().filter_map(around).collect()
            }
        };
        ways.sort_unstable();
        ways.dedup();
        let others = ways.into_iter().filter(|along| along != own && along.iter().all(is_open));
        let mut alternatives: Vec<Alternative> =
            others.filter_map(|along| self.alternative(&flow, own, &along)).collect();
        alternatives.sort_by(|one, other| one.load.total_cmp(&other.load));
        alternatives
    }

    fn alternative(&self, flow: &Flow, own: &[Direction], along: &[Direction]) -> Option<Alternative> {
        let load = |direction: &Direction| {
            let more = if own.contains(direction) { 0 } else { flow.rate_bits_per_s };
            self.loads.share_with(self.topology, *direction, more)
        };
        // The first of several that carry as much.
        let most = along.iter().rev().max_by(|one, other| load(one).total_cmp(&load(other)))?;
        let path = Path { from: flow.from, to: flow.to, links: along.iter().map(|direction| direction.link).collect() };
        Some(Alternative { path, most_loaded: *most, load: load(most) })
    }

    /// The hosts or leaves whose links need the bound; `None` if the bound comes from the fabric as a whole.
    pub fn binding(&self) -> Option<Cut> {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        let may_use = |direction: Direction| !self.is_drained[direction.link.index()];
        let (bound, cut) = cut_bound(self.topology, &flows, &self.group_flows(), may_use);
        cut.filter(|_| bound >= self.bound() * (1.0 - 1e-6))
    }

    /// Utilization of each direction of a path.
    pub fn loads_along(&self, path: &Path) -> Vec<(Direction, f64)> {
        let along = directions(self.topology, path);
        along.into_iter().map(|own| (own, self.loads.share_with(self.topology, own, 0))).collect()
    }
}
