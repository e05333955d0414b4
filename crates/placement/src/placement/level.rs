//! Flows of different rates on a Clos. A colouring makes their numbers even, not their rates.
//!
//! So they are also put one after the other, each where its most loaded link then carries least: in the order in which
//! they are listed, as by [`Choosing::Greedy`], and those of the highest rates first (Graham 1969, longest processing
//! time first), so that what is small fills the gaps that large ones leave. The best of all stays, the greedy paths
//! unless others are better. Then single flows move wherever that makes the squares of all loads less, and the most
//! loaded link carries no more: traffic that comes in bursts needs room on the others, too.
//!
//! [`Choosing::Greedy`]: crate::Choosing::Greedy

use super::{FlowId, MORE, Placed, Placement, Way};
use crate::choose::greedy;
use crate::clos::Clos;
use crate::flow::Flow;
use crate::load::Direction;
use srdma_fabric::NextHops;
use std::cmp::Reverse;

/// Rounds in which each flow may move once; the last one seldom moves any.
const ROUNDS: usize = 8;

/// Limit of the work of a round, in links of choices.
const WORK: usize = 20_000_000;

/// Links of a choice, at most.
const LINKS: usize = 6;

/// Differences of squares above this count when a flow moves.
const LESS: f64 = 1e-9;

/// What the squares of all loads have to become, at most, for paths at the bound to be better. What bursts cost depends
/// on which flows meet, of which squares tell little: in the scenario `multi-job` 0.02 % less took 5 % longer.
const BETTER: f64 = 0.99;

/// The share of the squares of others that the squares of better paths have at most, for a load and its bound.
fn better(most: f64, bound: f64) -> f64 {
    if most <= bound + MORE { BETTER } else { 1.0 - LESS }
}

impl Placement<'_> {
    /// Puts flows one after the other, where rates differ or a bound is not met: on greedy paths, unless those that
    /// they have are better; and by their rates, if that is better still.
    pub(super) fn fill(&mut self, bound: f64) {
        let is_met = !self.rates_differ() && self.most_loaded().1 <= bound + MORE;
        if is_met || self.is_too_much() || self.has_to_end() {
            return;
        }
        let mut kept = self.flows.clone();
        let (mut most, mut squares) = (self.most_loaded().1, self.squares());
        if self.put_greedily() {
            let (own, own_squares) = (self.most_loaded().1, self.squares());
            if own < most - MORE || (own <= most + MORE && squares > own_squares * better(own, bound)) {
                (most, squares) = (own, own_squares);
                kept.clone_from(&self.flows);
            }
        }
        // Among flows of one rate the order decides which of equal links each gets.
        let orders: [fn(&Flow) -> u32; 3] = [|_| 0, |flow| flow.from.0, |flow| flow.to.0];
        for (number, order) in orders.into_iter().enumerate() {
            if (number > 0 && most <= bound + MORE) || !self.put_by_rates(order) {
                break;
            }
            let (own, own_squares) = (self.most_loaded().1, self.squares());
            if own < most - MORE || (own <= most + MORE && own_squares < squares * better(own, bound)) {
                (most, squares) = (own, own_squares);
                kept.clone_from(&self.flows);
            }
        }
        self.reset(kept);
    }

    /// Greedy paths, if they are better, where there is no Clos and a bound is not met.
    pub(super) fn start_greedily(&mut self, bound: f64) {
        let most = self.most_loaded().1;
        if self.clos.is_some() || most <= bound + MORE || self.has_to_end() {
            return;
        }
        let kept = self.flows.clone();
        if !self.put_greedily() || self.most_loaded().1 >= most - MORE {
            self.reset(kept);
        }
    }

    /// All flows, on greedy paths; `false` if that is too much work, or a flow has no such path.
    fn put_greedily(&mut self) -> bool {
        let flows: Vec<(FlowId, Flow)> = self.flows().map(|(id, flow)| (id, *flow)).collect();
        let listed: Vec<Flow> = flows.iter().map(|(_, flow)| *flow).collect();
        let Some(ways) = greedy(self.topology, &NextHops::new(self.topology), &listed, WORK) else { return false };
        let is_open = |along: &Vec<Direction>| {
            !along.is_empty() && along.iter().all(|direction| !self.is_drained[direction.link.index()])
        };
        if !ways.iter().all(is_open) {
            return false;
        }
        flows.iter().for_each(|(id, _)| drop(self.take(*id)));
        for ((id, flow), along) in flows.into_iter().zip(ways) {
            let choice = self.clos.as_ref().and_then(|clos| clos.choice(&flow, &along));
            self.put(id, flow, (along, choice));
        }
        true
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

    /// Moves flows, one at a time, for as long as that makes the squares of loads less; and back if that is little.
    pub(super) fn level(&mut self, bound: f64) {
        if !self.rates_differ() || self.is_too_much() {
            return;
        }
        let (kept, squares) = (self.flows.clone(), self.squares());
        self.level_all();
        if self.squares() > squares * better(self.most_loaded().1, bound) {
            self.reset(kept);
        }
    }

    fn level_all(&mut self) {
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
