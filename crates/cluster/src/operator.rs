//! The operator: drains nodes, closes groups that a restoration has brought back, and adopts or removes the foreign
//! groups that `srdma group foreign list` shows.

use crate::adapter::{self, ForeignGroup, Reply, Request};
use crate::controller::{Caller, Party};
use crate::data_network::{name_of, node_of};
use crate::world::{Task, World};
use srdma_chaos::address;
use srdma_random::Stream;
use std::collections::{BTreeMap, BTreeSet};

/// Interval between two looks at the foreign groups.
const INTERVAL_NS: u64 = 500_000_000;

/// While faults occur, the operator acts at one look of so many.
const SELDOM: u64 = 8;

/// After the last fault, nodes have this time to register before the operator decides.
const PATIENCE_NS: u64 = 4_000_000_000;

/// Decisions about a foreign group after which the operator no longer delays the end of a run.
const MAX_DECISIONS: u32 = 4;

pub(crate) struct Operator {
    rng: Stream,
    /// Decisions about each foreign group, by store and number.
    decisions: BTreeMap<(u64, u32), u32>,
    /// The foreign group of the outstanding adoption.
    adopts: Option<(u64, u32)>,
    /// The nodes that are to be drained.
    drained: BTreeSet<usize>,
}

impl Operator {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = Stream::new(seed, "cluster operator");
        Operator { rng, decisions: BTreeMap::new(), adopts: None, drained: BTreeSet::new() }
    }
}

impl World<'_> {
    /// Adopts or removes each foreign group: seldom while faults occur, and always some time after the last.
    pub(crate) fn operate(&mut self) {
        self.tasks.push(self.now().after_ns(INTERVAL_NS), 0, Task::Operate);
        self.release_drained();
        let Some(controller) = &self.controller else { return };
        let groups = adapter::foreign_groups(controller.core());
        let is_over = self.now() >= self.faults_end().after_ns(PATIENCE_NS);
        if groups.is_empty() || !(is_over || self.operator.rng.below(SELDOM) == 0) {
            return;
        }
        for ForeignGroup { store, group, is_adoptable } in groups {
            let decisions = self.operator.decisions.entry((store, group)).or_default();
            *decisions += 1;
            // A second adoption would be refused as the first one was.
            let adopts = is_adoptable && *decisions == 1 && self.operator.rng.below(2) == 0;
            if *decisions <= MAX_DECISIONS {
                self.faults.note(self.now());
            }
            self.operator.adopts = adopts.then_some((store, group));
            self.log(&format_args!("the operator {} group {group}", if adopts { "adopts" } else { "removes" }));
            self.count(if adopts { "adoption" } else { "removal" });
            // A group whose record is removed cannot go on.
            let is_older = !adopts
                && is_adoptable
                && self.controller.as_ref().is_some_and(|one| adapter::shown_state(one.core(), group).is_some());
            if is_older {
                self.request_of_operator(Request::Close { id: group });
            }
            self.request_of_operator(match adopts {
                true => Request::Adopt { store, group },
                false => Request::RemoveForeign { store, group },
            });
        }
    }

    pub(crate) fn operator_reply(&mut self, reply: &Reply) {
        if let (Some((_, group)), Reply::Refused(_, reason)) = (self.operator.adopts, reply) {
            self.log(&format_args!("the operator cannot adopt group {group}: {reason}"));
        }
    }

    /// The operator closes the former group of an application, which a restoration has brought back.
    pub(crate) fn close_former(&mut self, group: usize) {
        let Some(controller) = &self.controller else { return };
        if let Some(id) = adapter::group_of_proxy(controller.core(), address::proxy(group)) {
            self.request_of_operator(Request::Close { id });
        }
    }

    /// The operator drains a node, or admits it again, if the controller runs.
    pub(crate) fn drain(&mut self, node: usize, on: bool) {
        if on {
            self.operator.drained.insert(node);
        } else {
            self.operator.drained.remove(&node);
        }
        self.request_of_operator(Request::Drain { name: name_of(node), on });
    }

    /// The operator admits nodes again that are still drained: the request was lost, or a restoration has brought the
    /// drain back.
    fn release_drained(&mut self) {
        let Some(controller) = &self.controller else { return };
        let drained = adapter::drained_nodes(controller.core()).into_iter().filter_map(|name| node_of(&name));
        let left: Vec<usize> = drained.filter(|node| !self.operator.drained.contains(node)).collect();
        for node in left {
            self.faults.note(self.now());
            self.drain(node, false);
        }
    }

    fn request_of_operator(&mut self, request: Request) {
        let Some(run) = self.controller.as_ref().map(|controller| controller.run) else { return };
        self.calls += 1;
        let caller = Caller { party: Party::Operator, call: self.calls };
        let now = self.now();
        self.with_controller(run, |controller, out| controller.request(now, caller, request, out));
    }
}
