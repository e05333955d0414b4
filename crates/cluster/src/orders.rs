//! The check that no order of the leader stays unanswered while nothing names its node.

use crate::adapter::{self, OrderName, Request};
use crate::checks::is_named;
use crate::data_network::name_of;
use crate::outcome::ViolationKind;
use crate::phase::Phase;
use crate::world::{DETECTION_NS, World};
use srdma_api::GroupState;
use srdma_wire::Instant;
use std::collections::BTreeMap;

/// The newest order of each node and group.
#[derive(Default)]
pub(crate) struct Orders(BTreeMap<(usize, u32), Newest>);

struct Newest {
    order: OrderName,
    /// Since when it is not answered and nothing names the node, unless it is answered.
    missed_since: Option<Instant>,
}

impl Orders {
    /// An order has left, for the first time or again: a repetition may leave after the answer has arrived.
    pub(crate) fn sent(&mut self, node: usize, order: OrderName, now: Instant) {
        let key = (node, order.group);
        match order.phase {
            // It has no answer, and takes back the one before.
            Phase::Aborting => drop(self.0.remove(&key)),
            _ if self.0.get(&key).is_some_and(|known| known.order.covers(&order)) => {}
            _ => drop(self.0.insert(key, Newest { order, missed_since: Some(now) })),
        }
    }

    /// A node's request with its answers has arrived.
    pub(crate) fn answered(&mut self, node: usize, request: &Request) {
        for (group, epoch) in adapter::answered_orders(request) {
            if let Some(newest) = self.0.get_mut(&(node, group)).filter(|newest| newest.order.is_answered_by(epoch)) {
                newest.missed_since = None;
            }
        }
    }

    /// A node has registered: its orders are made anew.
    pub(crate) fn registered(&mut self, node: usize) {
        self.0.retain(|(of, _), _| *of != node);
    }

    /// A controller has read its store.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl World<'_> {
    /// Orders that were not answered, and whose node was not named, for longer than detection takes.
    pub(crate) fn check_orders(&mut self) {
        let now = self.now();
        let mut orders = std::mem::take(&mut self.checks.orders);
        let unanswered = orders.0.iter_mut().filter(|(_, newest)| newest.missed_since.is_some());
        for (_, newest) in unanswered.filter(|((node, group), _)| !self.is_missed(*node, *group)) {
            newest.missed_since = Some(now);
        }
        let is_late = |since: Instant| now.since(since).as_nanos() > u128::from(DETECTION_NS);
        let late = orders.0.iter().filter(|(_, newest)| newest.missed_since.is_some_and(is_late));
        let late: Vec<(usize, OrderName)> = late.map(|((node, _), newest)| (*node, newest.order)).collect();
        self.checks.orders = orders;
        for (node, OrderName { group, phase, epoch }) in late {
            let finding = self.diagnose_node(node);
            let text = format!("n{node} has not answered an order ({}, epoch {epoch}) of group {group}", phase.name());
            self.violation(ViolationKind::Unanswered, finding, node, text);
        }
    }

    /// Whether nothing names a node that has to answer an order. A group that is gone has leftovers, which have a
    /// check of their own; a lost node that was to join a tree is no longer awaited; a stopped group, whose `failure`
    /// says why, gives no orders until it is closed; nothing leaves a leader whose write is not durable.
    fn is_missed(&self, node: usize, group: u32) -> bool {
        let controller = self.controller.as_ref();
        let Some(group) = controller.and_then(|controller| self.shown_by(controller, group)) else { return false };
        let is_in_tree = group.tree.iter().flat_map(|tree| &tree.nodes).any(|one| one.name == name_of(node));
        let is_stopped = group.summary.state == GroupState::Stopped && group.failure.is_some();
        (is_in_tree || self.is_heard(node)) && !is_stopped && !is_named(&group, node) && !self.waits_for_store()
    }
}
