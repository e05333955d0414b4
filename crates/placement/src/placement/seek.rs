//! The choices of a flow: by tier on a Clos, the cheapest path elsewhere.

use super::{MORE, Placement, Way};
use crate::flow::Flow;
use crate::load::Direction;
use crate::route::route;

/// Factor by which a limit is raised if no path fits below it.
const RAISE: f64 = 1.1;

impl Placement<'_> {
    /// Links for a flow, none of which then carries more than a limit; or little more than it, if that cannot be.
    pub(super) fn seek(&self, flow: &Flow, limit: f64) -> Option<Way> {
        if let Some(way) = self.seek_below(flow, limit).or_else(|| self.seek_choice(flow, f64::INFINITY)) {
            return Some(way);
        }
        // On a Clos with so many drained links that the path leads down and up again.
        let mut limit = limit.max(MORE);
        while limit.is_finite() {
            if let Some(way) = self.seek_route(flow, limit) {
                return Some(way);
            }
            limit *= RAISE;
        }
        None
    }

    /// Links for a flow, none of which then carries more than a limit.
    pub(super) fn seek_below(&self, flow: &Flow, limit: f64) -> Option<Way> {
        if self.clos.is_some() { self.seek_choice(flow, limit) } else { self.seek_route(flow, limit) }
    }

    /// Of all choices on a Clos the one whose links carry least. Of several the first, at every leaf: so collectives
    /// keep apart, which matters to those that fill their links (scenario `multi-job`).
    fn seek_choice(&self, flow: &Flow, limit: f64) -> Option<Way> {
        let clos = self.clos.as_ref()?;
        let mut best: Option<((f64, f64), Way)> = None;
        for choice in clos.choices(flow) {
            let along = clos.along(flow, choice);
            let shares = along.iter().map(|direction| self.share(flow, *direction));
            let cost = shares.fold((0.0_f64, 0.0), |(most, sum), own| (most.max(own), sum + own));
            if cost.0 <= limit + MORE && cost.0.is_finite() && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, (along, Some(choice))));
            }
        }
        best.map(|(_, way)| way)
    }

    /// The shortest way of all that fit.
    fn seek_route(&self, flow: &Flow, limit: f64) -> Option<Way> {
        let fits = |direction: Direction| {
            let share = self.share(flow, direction);
            share.is_finite() && share <= limit + MORE
        };
        route(self.topology, &self.loads, [flow.from, flow.to], fits).map(|along| (along, None))
    }

    /// Load of a direction with one more flow; infinite if it is drained.
    pub(super) fn share(&self, flow: &Flow, direction: Direction) -> f64 {
        self.share_with(flow.rate_bits_per_s, direction)
    }

    /// Load of a direction with so much more; infinite if it is drained.
    pub(super) fn share_with(&self, rate_bits_per_s: u64, direction: Direction) -> f64 {
        match self.is_drained[direction.link.index()] {
            true => f64::INFINITY,
            false => self.loads.share_with(self.topology, direction, rate_bits_per_s),
        }
    }

    /// Load of a direction without one of its flows.
    pub(super) fn share_without(&self, flow: &Flow, direction: Direction) -> f64 {
        let rate = self.topology.links()[direction.link.index()].rate_bits_per_s as f64;
        (self.loads.bits_per_s(direction) - flow.rate_bits_per_s) as f64 / rate
    }
}
