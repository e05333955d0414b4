//! Lower bound of the most loaded link.

use super::Placement;
use crate::bound::{cut_bound, divided_bound_with, rounded_up};
use crate::flow::Flow;
use crate::group_flow::GroupFlow;
use crate::load::Direction;

/// Rounds of the bound of fabrics that are no Clos, and their limit of work, in inspected links.
const ROUNDS: usize = 1000;
const LEAST_ROUNDS: usize = 16;
const WORK: usize = 50_000_000;

impl Placement<'_> {
    /// Lower bound of the most loaded link, for any paths of these flows and any trees of these groups.
    pub fn bound(&self) -> f64 {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        let groups = self.group_flows();
        let rounds = || self.rounds(&flows, &groups, WORK).max(LEAST_ROUNDS);
        self.clos_bound(&flows, &groups).unwrap_or_else(|| self.sharp_bound(&flows, &groups, rounds()))
    }

    /// The same in bounded time: if a sharp bound needs more work, in inspected links, one that may be lower.
    pub fn bound_within(&self, work: usize) -> f64 {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        self.bound_with(&flows, &self.group_flows(), work)
    }

    /// The same for these flows alone, such as some of its own.
    pub fn bound_of_within(&self, flows: &[Flow], work: usize) -> f64 {
        self.bound_with(flows, &[], work)
    }

    fn bound_with(&self, flows: &[Flow], groups: &[GroupFlow], work: usize) -> f64 {
        match self.rounds(flows, groups, work) {
            rounds @ LEAST_ROUNDS.. => {
                self.clos_bound(flows, groups).unwrap_or_else(|| self.sharp_bound(flows, groups, rounds))
            }
            ..LEAST_ROUNDS => self.quick_bound_with(flows, groups),
        }
    }

    /// Number of rounds of a sharp bound for so much work.
    fn rounds(&self, flows: &[Flow], groups: &[GroupFlow], work: usize) -> usize {
        let links = self.topology.links().len().max(1);
        let sources = self.topology.hosts().len().min(flows.len() + groups.len());
        (work / links / sources.max(1)).min(ROUNDS)
    }

    fn sharp_bound(&self, flows: &[Flow], groups: &[GroupFlow], rounds: usize) -> f64 {
        let may_use = |direction: Direction| !self.is_drained[direction.link.index()];
        let divided = divided_bound_with(self.topology, flows, groups, may_use, rounds);
        let cut = cut_bound(self.topology, flows, groups, may_use).0;
        rounded_up(self.topology, flows, groups, divided.max(cut))
    }

    /// A bound that costs little, for these flows and all groups: on a Clos the whole one, elsewhere that of links
    /// around hosts.
    pub(super) fn quick_bound(&self, flows: &[Flow]) -> f64 {
        self.quick_bound_with(flows, &self.group_flows())
    }

    fn quick_bound_with(&self, flows: &[Flow], groups: &[GroupFlow]) -> f64 {
        let may_use = |direction: Direction| !self.is_drained[direction.link.index()];
        let cut = || cut_bound(self.topology, flows, groups, may_use).0;
        self.clos_bound(flows, groups).unwrap_or_else(|| rounded_up(self.topology, flows, groups, cut()))
    }

    /// The bound of a Clos of which nothing is drained.
    fn clos_bound(&self, flows: &[Flow], groups: &[GroupFlow]) -> Option<f64> {
        let clos = self.clos.as_ref().filter(|_| !self.is_drained.contains(&true));
        clos.map(|clos| clos.bound_with(self.topology, flows, groups))
    }

    /// All groups.
    pub(super) fn group_flows(&self) -> Vec<GroupFlow> {
        self.groups().map(|(_, group)| group.clone()).collect()
    }
}
