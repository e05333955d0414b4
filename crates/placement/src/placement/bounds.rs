//! Lower bound of the most loaded link.

use super::Placement;
use crate::bound::{cut_bound, divided_bound, rounded_up};
use crate::flow::Flow;
use crate::load::Direction;

/// Rounds of the bound of fabrics that are no Clos, and their limit of work, in inspected links.
const ROUNDS: usize = 1000;
const LEAST_ROUNDS: usize = 16;
const WORK: usize = 50_000_000;

impl Placement<'_> {
    /// Lower bound of the most loaded link, for any paths of these flows.
    pub fn bound(&self) -> f64 {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        self.clos_bound(&flows).unwrap_or_else(|| self.sharp_bound(&flows, self.rounds(&flows, WORK).max(LEAST_ROUNDS)))
    }

    /// The same in bounded time: if a sharp bound needs more work, in inspected links, one that may be lower.
    pub fn bound_within(&self, work: usize) -> f64 {
        let flows: Vec<Flow> = self.flows().map(|(_, flow)| *flow).collect();
        self.bound_of_within(&flows, work)
    }

    /// The same for these flows alone, such as some of its own.
    pub fn bound_of_within(&self, flows: &[Flow], work: usize) -> f64 {
        match self.rounds(flows, work) {
            rounds @ LEAST_ROUNDS.. => self.clos_bound(flows).unwrap_or_else(|| self.sharp_bound(flows, rounds)),
            ..LEAST_ROUNDS => self.quick_bound(flows),
        }
    }

    /// Number of rounds of a sharp bound for so much work.
    fn rounds(&self, flows: &[Flow], work: usize) -> usize {
        let links = self.topology.links().len().max(1);
        (work / links / self.topology.hosts().len().min(flows.len()).max(1)).min(ROUNDS)
    }

    fn sharp_bound(&self, flows: &[Flow], rounds: usize) -> f64 {
        let may_use = |direction: Direction| !self.is_drained[direction.link.index()];
        let divided = divided_bound(self.topology, flows, may_use, rounds);
        rounded_up(self.topology, flows, divided.max(cut_bound(self.topology, flows, may_use).0))
    }

    /// A bound that costs little: on a Clos the whole one, elsewhere that of links around hosts.
    pub(super) fn quick_bound(&self, flows: &[Flow]) -> f64 {
        let may_use = |direction: Direction| !self.is_drained[direction.link.index()];
        self.clos_bound(flows)
            .unwrap_or_else(|| rounded_up(self.topology, flows, cut_bound(self.topology, flows, may_use).0))
    }

    /// The bound of a Clos of which nothing is drained.
    fn clos_bound(&self, flows: &[Flow]) -> Option<f64> {
        let clos = self.clos.as_ref().filter(|_| !self.is_drained.contains(&true));
        clos.map(|clos| clos.bound(self.topology, flows))
    }
}
