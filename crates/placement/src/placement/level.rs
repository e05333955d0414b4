//! Flows of different rates on a Clos. A colouring makes their numbers even, not their rates.
//!
//! So they are also put one after the other, those of the highest rates first, each where its most loaded link then
//! carries least (Graham 1969, longest processing time first): what is small fills the gaps that large ones leave. The
//! best of all stays. Then single flows move wherever that makes the squares of all loads less, and the most loaded
//! link carries no more: traffic that comes in bursts needs room on the others, too.

use super::{FlowId, MORE, Placed, Placement, Way};
use crate::clos::Clos;
use crate::flow::Flow;
use crate::load::Direction;
use std::cmp::Reverse;

/// Rounds in which each flow may move once; the last one seldom moves any.
const ROUNDS: usize = 8;

/// Limit of the work of a round, in links of choices.
const WORK: usize = 20_000_000;

/// Links of a choice, at most.
const LINKS: usize = 6;

/// Differences of squares above this count.
const LESS: f64 = 1e-9;

impl Placement<'_> {
    /// Puts flows by their rates, if that is better, where rates differ or a bound is not met.
    pub(super) fn fill(&mut self, bound: f64) {
        let is_met = !self.rates_differ() && self.most_loaded().1 <= bound + MORE;
        if is_met || self.is_too_much() || self.has_to_end() {
            return;
        }
        let mut kept = self.flows.clone();
        let (mut most, mut squares) = (self.most_loaded().1, self.squares());
        // Among flows of one rate the order decides which of equal links each gets.
        let orders: [fn(&Flow) -> u32; 3] = [|_| 0, |flow| flow.from.0, |flow| flow.to.0];
        for (number, order) in orders.into_iter().enumerate() {
            if (number > 0 && most <= bound + MORE) || !self.put_by_rates(order) {
                break;
            }
            let (own, own_squares) = (self.most_loaded().1, self.squares());
            if own < most - MORE || (own <= most + MORE && own_squares < squares - LESS) {
                (most, squares) = (own, own_squares);
                kept.clone_from(&self.flows);
            }
        }
        self.reset(kept);
    }

    /// All flows, by rates, and of one rate in an order; `false` if the time is over.
    fn put_by_rates(&mut self, order: impl Fn(&Flow) -> u32) -> bool {
        let mut flows: Vec<(FlowId, Flow)> = self.flows().map(|(id, flow)| (id, *flow)).collect();
        flows.sort_by_key(|(_, flow)| (Reverse(flow.rate_bits_per_s), order(flow)));
        flows.iter().for_each(|(id, _)| drop(self.take(*id)));
        flows.into_iter().all(|(id, flow)| {
            let way = if self.has_to_end() { None } else { self.seek(&flow, f64::INFINITY) };
            way.map(|way| self.put(id, flow, way)).is_some()
        })
    }

    /// Moves flows, one at a time, for as long as that makes the squares of loads less.
    pub(super) fn level(&mut self) {
        if !self.rates_differ() || self.is_too_much() {
            return;
        }
        let order = self.by_rates();
        let limit = self.most_loaded().1;
        for _ in 0..ROUNDS {
            let mut has_moved = false;
            for (id, _) in &order {
                if self.has_to_end() {
                    return;
                }
                let Some(Placed { flow, along, choice }) = self.take(*id) else { continue };
                let own = self.more_squares(&flow, &along);
                let found = self.evenest(&flow, limit).filter(|(least, _)| *least < own - LESS);
                has_moved |= found.is_some();
                self.put(*id, flow, found.map_or((along, choice), |(_, way)| way));
            }
            if !has_moved {
                break;
            }
        }
    }

    /// All flows, the highest rates first.
    fn by_rates(&self) -> Vec<(FlowId, Flow)> {
        let mut order: Vec<(FlowId, Flow)> = self.flows().map(|(id, flow)| (id, *flow)).collect();
        order.sort_by_key(|(_, flow)| Reverse(flow.rate_bits_per_s));
        order
    }

    fn rates_differ(&self) -> bool {
        let mut rates = self.flows().map(|(_, flow)| flow.rate_bits_per_s);
        let first = rates.next();
        rates.any(|rate| Some(rate) != first)
    }

    /// Whether all choices of all flows are too much work, or there are none: elsewhere than on a Clos.
    fn is_too_much(&self) -> bool {
        let choices = |clos: &Clos| self.flows().map(|(_, flow)| clos.choices(flow).count()).sum::<usize>();
        self.clos.as_ref().is_none_or(|clos| choices(clos) * LINKS > WORK)
    }

    /// The way on which a flow adds least to the squares of loads, without a link above a limit.
    fn evenest(&self, flow: &Flow, limit: f64) -> Option<(f64, Way)> {
        let clos = self.clos.as_ref()?;
        let ways = clos.choices(flow).map(|choice| (clos.along(flow, choice), Some(choice)));
        let fitting = ways.filter(|way| way.0.iter().all(|direction| self.share(flow, *direction) <= limit + MORE));
        let priced = fitting.map(|way| (self.more_squares(flow, &way.0), way));
        priced.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// What a flow adds to the squares of loads.
    fn more_squares(&self, flow: &Flow, along: &[Direction]) -> f64 {
        let more = |direction: &Direction| {
            let without = self.loads.share_with(self.topology, *direction, 0);
            self.share(flow, *direction).powi(2) - without.powi(2)
        };
        along.iter().map(more).sum()
    }

    /// The squares of all loads together.
    fn squares(&self) -> f64 {
        let directions = (0..self.users.len()).map(Direction::at);
        directions.map(|direction| self.loads.share_with(self.topology, direction, 0).powi(2)).sum()
    }
}
