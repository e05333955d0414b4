//! A plan: the flows of jobs, with numbers that stay while others come and go, and the effect of a change on them.
//!
//! A plan is resumed from the paths of its flows, changed, and saved again. The state before the change is kept, so
//! that a flow that has moved away and back does not count as moved.

use crate::deadline::Deadline;
use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use crate::placement::{FlowId, Placement, PlacementError};
use srdma_fabric::{LinkId, Path, Topology};
use std::collections::BTreeMap;

/// A flow of a plan, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Its number in the plan; stays when other flows are removed.
    pub number: u32,
    /// Its id in the placement.
    pub id: FlowId,
    /// The flow, and what it belongs to.
    pub wanted: ListedFlow,
}

/// A flow of a plan with its path, as it is kept between changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFlow {
    /// Its number in the plan; stays when other flows are removed.
    pub number: u32,
    /// The flow, and what it belongs to.
    pub wanted: ListedFlow,
    /// Its path.
    pub path: Path,
}

/// The flows of jobs, placed.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    topology: &'a Topology,
    placement: Placement<'a>,
    flows: Vec<Numbered>,
    /// The paths that flows had before the change.
    was: BTreeMap<FlowId, Path>,
    /// In their order.
    added: Vec<FlowId>,
    removed: Vec<u32>,
    /// Flows that were touched; they may be where they were.
    moved: Vec<FlowId>,
    deadline: Deadline<'a>,
}

impl<'a> Plan<'a> {
    /// Places flows on a fabric of which some links are drained.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::new`] and [`Placement::drain`].
    pub fn new(topology: &'a Topology, wanted: Vec<ListedFlow>, drained: &[LinkId]) -> Result<Self, PlacementError> {
        Plan::new_within(topology, wanted, drained, Deadline::NONE)
    }

    fn new_within(
        topology: &'a Topology,
        wanted: Vec<ListedFlow>,
        drained: &[LinkId],
        deadline: Deadline<'a>,
    ) -> Result<Self, PlacementError> {
        let flows: Vec<Flow> = wanted.iter().map(|own| own.flow).collect();
        let mut placement = Placement::new_within(topology, &flows, deadline)?;
        placement.drain(drained)?;
        let numbered = |(number, wanted)| Numbered { number, id: FlowId(number), wanted };
        let flows: Vec<Numbered> = (0..).zip(wanted).map(numbered).collect();
        let added = flows.iter().map(|flow| flow.id).collect();
        let (was, removed, moved) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Plan { topology, placement, flows, was, added, removed, moved, deadline })
    }

    /// Goes on with flows that have their paths. Those whose links have failed since then move.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::with_paths`].
    pub fn resume(topology: &'a Topology, kept: &[KeptFlow], drained: &[LinkId]) -> Result<Self, PlacementError> {
        Plan::resume_within(topology, kept, drained, Deadline::NONE)
    }

    /// The same within time limits, which the changes of the plan have too.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::resume`]; the time is over.
    pub fn resume_within(
        topology: &'a Topology,
        kept: &[KeptFlow],
        drained: &[LinkId],
        deadline: Deadline<'a>,
    ) -> Result<Self, PlacementError> {
        let paths: Vec<(Flow, Path)> = kept.iter().map(|own| (own.wanted.flow, own.path.clone())).collect();
        let (placement, moved) = Placement::with_paths_within(topology, &paths, drained, deadline)?;
        let numbered = |(id, own): (u32, &KeptFlow)| {
            let KeptFlow { number, wanted, .. } = own;
            Numbered { number: *number, id: FlowId(id), wanted: wanted.clone() }
        };
        Ok(Plan {
            topology,
            placement,
            flows: (0..).zip(kept).map(numbered).collect(),
            was: (0..).map(FlowId).zip(paths.into_iter().map(|(_, path)| path)).collect(),
            added: Vec::new(),
            removed: Vec::new(),
            moved,
            deadline,
        })
    }

    /// Adds flows, numbered from the highest number on. On a plan without flows all of them are placed together.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::add`]; some may have been added then.
    pub fn add(&mut self, wanted: Vec<ListedFlow>) -> Result<(), PlacementError> {
        if self.flows.is_empty() {
            let removed = std::mem::take(&mut self.removed);
            *self = Plan { removed, ..Plan::new_within(self.topology, wanted, &self.drained(), self.deadline)? };
            return Ok(());
        }
        let highest = self.flows.iter().map(|flow| flow.number).max().unwrap_or(0);
        if wanted.len() as u64 > u64::from(u32::MAX - highest) {
            let problem = "the numbers of flows are used up: remove the flow with the highest one".to_owned();
            return Err(PlacementError { problem });
        }
        for (more, wanted) in (1..).zip(wanted) {
            let number = highest + more;
            let (id, moved) = self.placement.add(wanted.flow)?;
            self.flows.push(Numbered { number, id, wanted });
            self.added.push(id);
            self.moved.extend(moved);
        }
        Ok(())
    }

    /// Takes flows away.
    pub fn remove(&mut self, goes: impl Fn(&Numbered) -> bool) {
        let (gone, stay): (Vec<Numbered>, Vec<Numbered>) = self.flows.drain(..).partition(|flow| goes(flow));
        self.flows = stay;
        for Numbered { number, id, .. } in gone {
            self.placement.remove(id);
            self.removed.push(number);
        }
    }

    /// Takes links out of use.
    ///
    /// # Errors
    ///
    /// A host would be cut off; nothing has changed then.
    pub fn drain(&mut self, links: &[LinkId]) -> Result<(), PlacementError> {
        self.moved.extend(self.placement.drain(links)?);
        Ok(())
    }

    /// Releases drained links, except failed ones.
    pub fn release(&mut self, links: &[LinkId]) {
        self.moved.extend(self.placement.release(links));
    }

    /// The flows' placement.
    pub fn placement(&self) -> &Placement<'a> {
        &self.placement
    }

    /// The flows, in the order in which they were added.
    pub fn flows(&self) -> &[Numbered] {
        &self.flows
    }

    /// The flows that the change has added.
    pub fn added(&self) -> impl Iterator<Item = &Numbered> {
        self.flows.iter().filter(|flow| self.added.binary_search(&flow.id).is_ok())
    }

    /// The numbers of the flows that the change has removed.
    pub fn removed(&self) -> &[u32] {
        &self.removed
    }

    /// The flows that have another path than before the change, each with that.
    pub fn moved(&self) -> impl Iterator<Item = (&Numbered, &Path)> {
        let mut touched = self.moved.clone();
        touched.sort_unstable();
        touched.dedup();
        self.flows.iter().filter_map(move |flow| {
            let was = self.was.get(&flow.id).filter(|_| touched.binary_search(&flow.id).is_ok())?;
            (self.placement.path(flow.id).as_ref() != Some(was)).then_some((flow, was))
        })
    }

    /// The links that are drained, and have not failed.
    pub fn drained(&self) -> Vec<LinkId> {
        let is_drained = |link: &LinkId| self.placement.is_drained(*link) && !self.topology.is_failed(*link);
        self.topology.link_ids().filter(is_drained).collect()
    }

    /// The flows with their paths, to resume from.
    pub fn kept(&self) -> Vec<KeptFlow> {
        self.flows.iter().filter_map(|flow| self.keep(flow)).collect()
    }

    /// A flow of the plan with its path.
    pub fn keep(&self, flow: &Numbered) -> Option<KeptFlow> {
        let path = self.placement.path(flow.id)?;
        Some(KeptFlow { number: flow.number, wanted: flow.wanted.clone(), path })
    }
}
