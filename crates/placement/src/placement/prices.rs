//! All flows choose again in turn, by prices: a link costs more the more it carries, steeply where it carries most.
//!
//! Moving flows off the most loaded link alone ends where every alternative is as full. Prices see all links at once:
//! they are those by which linear programs of minimum congestion are solved (Plotkin, Shmoys and Tardos 1995), each
//! flow being rounded to one path as soon as it chooses (Aspnes et al. 1993). A flow that has chosen cheaply may choose
//! again at steeper prices.

use super::{FlowId, MORE, Placed, Placement, Way};
use crate::flow::Flow;
use crate::load::{Direction, Loads};
use crate::search::Ways;

/// Steepness of prices, relative to the load to be improved, from first to last.
const STEEPNESS: [f64; 5] = [8.0, 16.0, 32.0, 64.0, 128.0];

/// Number of rounds in which all flows choose, at each steepness.
const ROUNDS: usize = 4;

/// Limit of the total work, in inspected links.
const WORK: usize = 100_000_000;

/// Minimum price of a link, so that the shortest of paths without load is chosen.
const LEAST_PRICE: f64 = 1e-12;

impl Placement<'_> {
    /// Lets all flows, and trees, choose again in turn while that improves the result, and keeps the best one.
    pub(super) fn settle(&mut self) {
        self.settle_flows();
        self.settle_trees(Self::settle_flows);
    }

    fn settle_flows(&mut self) {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        let bound = self.quick_bound(&flows);
        let per_round = flows.len().max(1) * self.topology.links().len().max(1);
        let mut rounds = WORK / per_round;
        self.fill(bound);
        self.start_greedily(bound);
        let mut best = self.most_loaded().1;
        if best <= bound + MORE || rounds == 0 || self.has_to_end() {
            return self.level(bound);
        }
        let mut kept = self.flows.clone();
        for steepness in STEEPNESS {
            if best <= bound + MORE || rounds == 0 || self.has_to_end() {
                break;
            }
            (0..rounds.min(ROUNDS)).for_each(|_| self.choose_again(steepness, best));
            rounds = rounds.saturating_sub(ROUNDS);
            self.improve_by(0);
            let found = self.most_loaded().1;
            if found < best - MORE {
                best = found;
                kept.clone_from(&self.flows);
            }
        }
        self.reset(kept.clone());
        self.improve();
        if self.most_loaded().1 > best + MORE {
            self.reset(kept);
        }
        self.level(bound);
    }

    /// Puts all flows where they were, among the trees that there are.
    pub(super) fn reset(&mut self, kept: Vec<Option<Placed>>) {
        self.loads = Loads::none(self.topology);
        for placed in self.groups.iter().flatten() {
            self.loads.add(self.topology, &placed.along, placed.group.rate_bits_per_s);
        }
        self.users.iter_mut().for_each(Vec::clear);
        self.flows.fill_with(|| None);
        for (id, placed) in (0..).map(FlowId).zip(kept) {
            if let Some(Placed { flow, along, choice }) = placed {
                self.put(id, flow, (along, choice));
            }
        }
    }

    fn choose_again(&mut self, steepness: f64, most: f64) {
        for id in (0..self.flows.len() as u32).map(FlowId) {
            if self.has_to_end() {
                return;
            }
            let Some(Placed { flow, along, choice }) = self.take(id) else { continue };
            let found = self.cheapest(&flow, steepness, most);
            self.put(id, flow, found.unwrap_or((along, choice)));
        }
    }

    /// The way whose links cost least together.
    fn cheapest(&self, flow: &Flow, steepness: f64, most: f64) -> Option<Way> {
        let price = |direction: Direction| {
            let with = self.share(flow, direction);
            let without = self.loads.share_with(self.topology, direction, 0);
            let at = |share: f64| (steepness * (share / most - 1.0)).exp();
            LEAST_PRICE + at(with) - at(without)
        };
        let Some(clos) = &self.clos else {
            // Prices are not negative, and the bits of such numbers have their order.
            let ways = Ways::from(self.topology, flow.from, Some(flow.to), 0.0_f64.to_bits(), |cost, direction| {
                let cost = f64::from_bits(cost) + price(direction);
                cost.is_finite().then_some(cost.to_bits())
            });
            ways.cost(flow.to)?;
            let mut along: Vec<Direction> = ways.back(flow.to).collect();
            along.reverse();
            return Some((along, None));
        };
        let ways = clos.choices(flow).map(|choice| (clos.along(flow, choice), Some(choice)));
        let priced = ways.map(|way| (way.0.iter().map(|direction| price(*direction)).sum::<f64>(), way));
        let best = priced.filter(|(cost, _)| cost.is_finite()).min_by(|one, other| one.0.total_cmp(&other.0));
        best.map(|(_, way)| way)
    }
}
