//! A plan: the flows of jobs, with numbers that stay while others come and go, and the effect of a change on them.
//!
//! A plan is resumed from the paths of its flows, changed, and saved again. The state before the change is kept, so
//! that a flow that has moved away and back does not count as moved.

use crate::deadline::Deadline;
use crate::flow::Flow;
use crate::flow_file::ListedFlow;
use crate::group_flow::{GroupFlow, ListedGroup};
use crate::placement::{FlowId, Placement, PlacementError, TreeId};
use srdma_fabric::{LinkId, Path, Topology};
use std::collections::{BTreeMap, BTreeSet};

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

/// A multicast group of a plan, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedGroup {
    /// Its number in the plan, which no flow has.
    pub number: u32,
    /// Its id in the placement.
    pub id: TreeId,
    /// The group, and what it belongs to.
    pub wanted: ListedGroup,
}

/// A group of a plan with its tree, as it is kept between changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptGroup {
    /// Its number in the plan.
    pub number: u32,
    /// The group, and what it belongs to.
    pub wanted: ListedGroup,
    /// The links of its tree.
    pub links: Vec<LinkId>,
}

/// The flows and groups of jobs, placed.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    topology: &'a Topology,
    placement: Placement<'a>,
    flows: Vec<Numbered>,
    groups: Vec<NumberedGroup>,
    /// The paths that flows had before the change, and the links of trees.
    was: BTreeMap<FlowId, Path>,
    trees_were: BTreeMap<TreeId, BTreeSet<LinkId>>,
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
        Plan::with_groups(topology, wanted, Vec::new(), drained)
    }

    /// The same with multicast groups.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::new`] and [`Placement::with_groups_within`].
    pub fn with_groups(
        topology: &'a Topology,
        wanted: Vec<ListedFlow>,
        groups: Vec<ListedGroup>,
        drained: &[LinkId],
    ) -> Result<Self, PlacementError> {
        Plan::new_within(topology, wanted, groups, drained, Deadline::NONE)
    }

    fn new_within(
        topology: &'a Topology,
        wanted: Vec<ListedFlow>,
        groups: Vec<ListedGroup>,
        drained: &[LinkId],
        deadline: Deadline<'a>,
    ) -> Result<Self, PlacementError> {
        let flows: Vec<Flow> = wanted.iter().map(|own| own.flow).collect();
        let trees: Vec<GroupFlow> = groups.iter().map(|own| own.group.clone()).collect();
        let mut placement = Placement::with_groups_within(topology, &flows, &trees, deadline)?;
        placement.drain(drained)?;
        let first = wanted.len() as u32;
        let group = |(number, wanted)| NumberedGroup { number: first + number, id: TreeId(number), wanted };
        let groups = (0..).zip(groups).map(group).collect();
        let numbered = |(number, wanted)| Numbered { number, id: FlowId(number), wanted };
        let flows: Vec<Numbered> = (0..).zip(wanted).map(numbered).collect();
        let added = flows.iter().map(|flow| flow.id).collect();
        let (was, trees_were, removed, moved) = (BTreeMap::new(), BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Plan { topology, placement, flows, groups, was, trees_were, added, removed, moved, deadline })
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
            groups: Vec::new(),
            trees_were: BTreeMap::new(),
            was: (0..).map(FlowId).zip(paths.into_iter().map(|(_, path)| path)).collect(),
            added: Vec::new(),
            removed: Vec::new(),
            moved,
            deadline,
        })
    }

    /// Goes on with groups that have their trees, after the flows. Those whose links have failed since then get others.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::restore_group`].
    pub fn resume_groups(&mut self, kept: &[KeptGroup]) -> Result<(), PlacementError> {
        for KeptGroup { number, wanted, links } in kept {
            let id = self.placement.restore_group(wanted.group.clone(), links)?;
            self.trees_were.insert(id, links.iter().copied().collect());
            self.groups.push(NumberedGroup { number: *number, id, wanted: wanted.clone() });
        }
        Ok(())
    }

    /// Adds flows, numbered from the highest number on. On a plan without flows all of them are placed together.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::add`]; some may have been added then.
    pub fn add(&mut self, wanted: Vec<ListedFlow>) -> Result<(), PlacementError> {
        if self.flows.is_empty() && self.groups.is_empty() {
            let removed = std::mem::take(&mut self.removed);
            let plan = Plan::new_within(self.topology, wanted, Vec::new(), &self.drained(), self.deadline)?;
            *self = Plan { removed, ..plan };
            return Ok(());
        }
        let first = self.next_number(wanted.len())?;
        for (more, wanted) in (0..).zip(wanted) {
            let number = first + more;
            let (id, moved) = self.placement.add(wanted.flow)?;
            self.flows.push(Numbered { number, id, wanted });
            self.added.push(id);
            self.moved.extend(moved);
        }
        Ok(())
    }

    /// Adds groups, numbered from the highest number on.
    ///
    /// # Errors
    ///
    /// Those of [`Placement::add_group`]; some may have been added then.
    pub fn add_groups(&mut self, wanted: Vec<ListedGroup>) -> Result<(), PlacementError> {
        let first = self.next_number(wanted.len())?;
        for (more, wanted) in (0..).zip(wanted) {
            let id = self.placement.add_group(wanted.group.clone())?;
            self.groups.push(NumberedGroup { number: first + more, id, wanted });
        }
        Ok(())
    }

    /// The first of so many numbers that are not used.
    fn next_number(&self, count: usize) -> Result<u32, PlacementError> {
        let flows = self.flows.iter().map(|flow| flow.number);
        let next = flows.chain(self.groups.iter().map(|group| group.number)).max().map_or(0, |most| most as u64 + 1);
        if next + count as u64 > u64::from(u32::MAX) {
            let problem = "the numbers of flows are used up: remove the flow with the highest one".to_owned();
            return Err(PlacementError { problem });
        }
        Ok(next as u32)
    }

    /// Takes groups away.
    pub fn remove_groups(&mut self, goes: impl Fn(&NumberedGroup) -> bool) {
        let (gone, stay): (Vec<NumberedGroup>, Vec<NumberedGroup>) = self.groups.drain(..).partition(|own| goes(own));
        self.groups = stay;
        for NumberedGroup { number, id, .. } in gone {
            self.placement.remove_group(id);
            self.removed.push(number);
        }
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

    /// The groups, in the order in which they were added.
    pub fn groups(&self) -> &[NumberedGroup] {
        &self.groups
    }

    /// The groups that the change has added.
    pub fn added_groups(&self) -> impl Iterator<Item = &NumberedGroup> {
        self.groups.iter().filter(|group| !self.trees_were.contains_key(&group.id))
    }

    /// The groups whose trees have other links than before the change.
    pub fn moved_groups(&self) -> impl Iterator<Item = &NumberedGroup> {
        let has_moved = |group: &&NumberedGroup| {
            let links = || self.placement.tree(group.id).iter().map(|direction| direction.link).collect();
            self.trees_were.get(&group.id).is_some_and(|was: &BTreeSet<LinkId>| *was != links())
        };
        self.groups.iter().filter(has_moved)
    }

    /// The groups with their trees, to resume from.
    pub fn kept_groups(&self) -> Vec<KeptGroup> {
        let kept = |NumberedGroup { number, id, wanted }: &NumberedGroup| {
            let links = self.placement.tree(*id).iter().map(|direction| direction.link).collect();
            KeptGroup { number: *number, wanted: wanted.clone(), links }
        };
        self.groups.iter().map(kept).collect()
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
