//! The properties, from what the API shows and what nodes have in effect (D25, D31, D97, D98). They use no code of the
//! controller or the agent but these views.

use super::bounds::Ablation;
use super::controller::is_at_rest;
use super::network::{HEADEND, Place};
use super::world::{Model, World};
use srdma_api::{Group, GroupState, ReceiverState};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// No acknowledgement reaches the source without that of each receiver that the API shows as a member.
pub const COMMIT_SAFETY: &str = "safety: each member that the API shows is waited for";
/// Nodes have what the API shows.
pub const COMMIT_AGREEMENT: &str = "agreement: connected nodes of a group that is ready have what the API shows";
/// Orders and answers are about one entry.
pub const COMMIT_NAMES: &str = "names: orders and answers name one entry of one store";
/// A receiver that joins in two steps misses nothing (D187).
pub const COMMIT_READY: &str = "ready: a receiver that joins in two steps is a member from where it is ready";
/// The group waits for nothing without naming it.
pub const COMMIT_NAMED: &str = "named: what a group waits for is in `awaited` or `failure`";
/// From each state the group comes to rest without further faults.
pub const COMMIT_PROGRESS: &str = "progress: without further faults the group comes to rest";

impl World {
    /// The properties of a single state.
    pub(super) fn check(&self, model: &Model) -> Result<(), (&'static str, String)> {
        for group in self.controller.value.groups() {
            self.check_members(model, &group).map_err(|text| (COMMIT_SAFETY, text))?;
            self.check_agreement(model, &group).map_err(|text| (COMMIT_AGREEMENT, text))?;
            self.check_ready(model, &group)?;
        }
        Ok(())
    }

    /// If the source can receive acknowledgements, all members are behind them.
    fn check_members(&self, model: &Model, group: &Group) -> Result<(), String> {
        let Some(acknowledged) = self.acknowledged(model, HEADEND, group.summary.proxy) else { return Ok(()) };
        let is_member = |receiver: &&srdma_api::Receiver| receiver.state == ReceiverState::Member;
        let missing = group.members.iter().filter(is_member).find(|member| !acknowledged.contains(&member.address));
        match missing {
            Some(member) => {
                Err(format!("{} is a member, and acknowledgements are for {acknowledged:?}", member.address))
            }
            None => Ok(()),
        }
    }

    /// The receivers whose acknowledgements a node waits for: those of the entries in effect below it. `None`: it
    /// acknowledges nothing, since it has no entry, or a node below it has none, or one of an epoch that its parent
    /// does not accept.
    fn acknowledged(&self, model: &Model, place: Place, proxy: Ipv6Addr) -> Option<BTreeSet<Ipv6Addr>> {
        let entry = self.nodes[place.index()].value.entry(proxy)?;
        let mut all = BTreeSet::new();
        for branch in &entry.branches {
            match model.places.iter().find(|place| place.loopback() == branch.responder) {
                Some(child) => {
                    let below = self.nodes[child.index()].value.entry(proxy)?;
                    if below.epoch < branch.renewed {
                        return None;
                    }
                    all.extend(self.acknowledged(model, *child, proxy)?);
                }
                None => {
                    all.insert(branch.responder);
                }
            }
        }
        Some(all)
    }

    fn check_agreement(&self, model: &Model, group: &Group) -> Result<(), String> {
        if group.summary.state != GroupState::Ready {
            return Ok(());
        }
        for place in &model.places {
            let node = &self.nodes[place.index()].value;
            if node.is_cut || !self.is_current(place.index()) {
                continue;
            }
            let shown = group.tree.iter().flat_map(|tree| &tree.nodes).find(|node| node.loopback == place.loopback());
            let shown = shown.map(|node| node.branches.iter().map(|branch| branch.address).collect());
            let branches = node.branches(group.summary.proxy);
            if shown != branches && (shown.is_some() || !self.is_foreign(*place)) {
                return Err(format!("{} has {branches:?}, the API shows {shown:?}", place.name()));
            }
        }
        Ok(())
    }

    /// Whether the API lists what the node has as foreign.
    fn is_foreign(&self, place: Place) -> bool {
        let foreign = self.controller.value.foreign();
        let held = self.nodes[place.index()].value.table.held();
        let is_listed = |held: &srdma_api::HeldGroup| {
            let store = format!("{:016x}", held.store);
            let mut groups = foreign.iter().filter(|foreign| foreign.store == store && foreign.group == held.group);
            groups.any(|foreign| foreign.nodes.contains(&place.name()))
        };
        held.iter().all(is_listed)
    }

    /// The property of a state in which nothing happens without a fault or the return of a node.
    pub(super) fn check_named(&self) -> Result<(), String> {
        for group in self.controller.value.groups() {
            let is_named = group.failure.is_some() || !group.awaited.is_empty();
            if !is_named && !is_complete(&group) {
                let members: Vec<_> = group.members.iter().map(|member| (member.address, member.state)).collect();
                return Err(format!("the group is {:?}, its members are {members:?}", group.summary.state));
            }
        }
        Ok(())
    }

    /// Whether the state, in which nothing happens without a fault, is one in which a group may stay.
    pub(super) fn is_goal(&self, model: &Model) -> bool {
        let groups = self.controller.value.groups();
        let is_fine = |group: &Group| is_complete(group) || (is_at_rest(group) && group.failure.is_some());
        let nodes = model.places.iter().all(|place| {
            let node = &self.nodes[place.index()].value;
            let is_known = groups.iter().any(|group| node.entry(group.summary.proxy).is_some());
            !node.is_cut && self.is_current(place.index()) && (is_known || self.is_foreign(*place))
        });
        let is_skipping = model.bounds.ablation == Ablation::LostIsSettled;
        groups.iter().all(is_fine) && (nodes || is_skipping)
    }
}

/// Whether all that was requested of a group has been done.
fn is_complete(group: &Group) -> bool {
    let is_member = |receiver: &srdma_api::Receiver| receiver.state == ReceiverState::Member;
    match group.summary.state {
        GroupState::Ready => group.members.iter().all(is_member),
        GroupState::Open | GroupState::Stopped | GroupState::Closed => true,
        GroupState::Creating | GroupState::Changing | GroupState::Verifying | GroupState::Closing => false,
    }
}
