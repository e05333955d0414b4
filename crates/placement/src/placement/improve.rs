//! Moves that take load off the most loaded link: of one flow, or of a chain of exchanges.

use super::{FlowId, MORE, Placed, Placement};
use crate::clos::Choice;
use crate::flow::Flow;
use crate::load::Direction;

/// Flows that may move to make room for one.
const CHAIN: usize = 64;

/// Flows that have moved, each as it was.
pub(super) type Before = Vec<(FlowId, Placed)>;

impl Placement<'_> {
    /// Moves flows off the most loaded link for as long as that makes it carry less, and returns those that moved.
    pub(super) fn improve(&mut self) -> Vec<FlowId> {
        self.improve_by(usize::MAX)
    }

    /// As [`Placement::improve`], trying so many chains of exchanges for each link: none is fastest.
    pub(super) fn improve_by(&mut self, chains: usize) -> Vec<FlowId> {
        let mut moved = Vec::new();
        if self.has_to_end() {
            return moved;
        }
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        let bound = self.quick_bound(&flows);
        for _ in 0..self.flows.len() {
            let (direction, most) = self.most_loaded();
            if most <= bound + MORE || self.has_to_end() {
                break;
            }
            // At once to the bound, if that can be: a step to what is only less may be in the way of a later one.
            let is_chained = self.clos.is_some() && chains > 0;
            let limits = [is_chained.then_some(bound), Some(most - 2.0 * MORE)];
            let Some(own) = limits.into_iter().flatten().find_map(|limit| self.relieve(direction, limit, chains))
            else {
                break;
            };
            moved.extend(own);
        }
        moved.sort_unstable();
        moved.dedup();
        moved
    }

    /// Moves a flow off a direction, to where nothing carries more than a limit, and others out of its way if need be.
    fn relieve(&mut self, direction: Direction, limit: f64, mut chains: usize) -> Option<Vec<FlowId>> {
        let users = self.users[direction.index()].clone();
        for id in &users {
            if self.has_to_end() {
                return None;
            }
            let Placed { flow, along, choice } = self.take(*id)?;
            let found = self.seek_below(&flow, limit).filter(|(found, _)| !found.contains(&direction));
            let has_moved = found.is_some();
            self.put(*id, flow, found.unwrap_or((along, choice)));
            if has_moved {
                return Some(vec![*id]);
            }
        }
        if chains > 0
            && let Some(moved) = self.exchange_planes(direction, limit)
        {
            return Some(moved);
        }
        users.into_iter().find_map(|id| self.exchange(id, limit, &mut chains))
    }

    /// Changes a flow's choice for each other one in turn, until making room for it ends well, or no chains are left.
    fn exchange(&mut self, id: FlowId, limit: f64, chains: &mut usize) -> Option<Vec<FlowId>> {
        let Placed { flow, choice, .. } = self.flows[id.0 as usize].as_ref()?;
        let (flow, own) = (*flow, (*choice)?);
        // Those of the same plane first: leaves do not notice.
        let (near, far): (Vec<Choice>, Vec<Choice>) =
            self.clos.as_ref()?.choices(&flow).partition(|choice| choice.plane == own.plane);
        let mut before = Vec::new();
        for other in near.into_iter().chain(far).filter(|choice| *choice != own) {
            *chains = chains.checked_sub(1).filter(|_| !self.has_to_end())?;
            if self.chain(id, [own, other], limit, &mut before) {
                return Some(before.into_iter().map(|(id, _)| id).collect());
            }
        }
        None
    }

    /// Changes a flow from one choice to another, a flow that conflicts with it back, and so on: along a chain of flows
    /// that alternate between the two (Kempe's chain, as in König's proof). Adds to `before` what has moved, as it was.
    /// The changes are reverted if the chain does not end.
    pub(super) fn chain(&mut self, id: FlowId, [own, other]: [Choice; 2], limit: f64, before: &mut Before) -> bool {
        let begin = before.len();
        let mut next = Some((id, other));
        while let Some((id, choice)) = next.take().filter(|_| before.len() - begin < CHAIN) {
            let Some(clos) = &self.clos else { break };
            let Some(flow) = self.flows[id.0 as usize].as_ref().map(|placed| placed.flow) else { break };
            let along = clos.along(&flow, choice);
            let Some(placed) = self.take(id) else { break };
            before.push((id, placed));
            let too_much = |direction: &&Direction| self.share(&flow, **direction) > limit + MORE;
            let full: Vec<Direction> = along.iter().filter(too_much).copied().collect();
            let is_open = along.iter().all(|direction| !self.is_drained[direction.link.index()]);
            self.put(id, flow, (along, Some(choice)));
            match full[..] {
                [] if is_open => return true,
                [full] if is_open => {
                    let back = if choice == own { other } else { own };
                    let stays = |user: &FlowId| before[begin..].iter().any(|(id, _)| id == user);
                    // Rates may differ: the one that goes has to be enough.
                    let makes_room = |user: &FlowId| {
                        let user = self.flows[user.0 as usize].as_ref().filter(|user| user.choice == Some(choice));
                        user.is_some_and(|user| self.share_without(&user.flow, full) <= limit + MORE)
                    };
                    let user = self.users[full.index()].iter().find(|user| !stays(user) && makes_room(user));
                    next = user.map(|user| (*user, back));
                }
                _ => {}
            }
        }
        self.revert(before, begin);
        false
    }

    /// Takes changes back, down to so many.
    pub(super) fn revert(&mut self, before: &mut Before, begin: usize) {
        for (id, Placed { flow, along, choice }) in before.drain(begin..).rev() {
            self.take(id);
            self.put(id, flow, (along, choice));
        }
    }
}
