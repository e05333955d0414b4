//! Groups of which nodes have a newer record than the store, which was lost or restored from a backup (D98).
//!
//! ```text
//!                    a node is ahead                  headend and all other nodes agree
//!   verifying ─────────────────────────► diverged ─────────────────────────────────────► record of the snapshot
//!       │                                   │
//!       └─ the headend has the store's      └─ a node contradicts the snapshot: stopped, until it is closed
//!          record: no group can diverge
//! ```
//!
//! No change begins before the headend has registered, since it takes part in each one. What the other nodes have
//! reported until then is still true when the group is found to have diverged.

use super::restore::{Recovered, parse};
use super::{Core, Group};
use crate::rows::{self, RecordRow, Write};
use srdma_api::{EventKind, HeldGroup, NodeOrder, SourceState};
use srdma_group::{Ahead, Digest, EntryName, Held, Lifecycle, Resumption};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// What the nodes of a group have reported since the controller's start, until its headend has registered.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    nodes: BTreeMap<Ipv6Addr, Report>,
    state: State,
    /// The headend has reported the record of the store.
    has_agreed: bool,
}

/// What a node has of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    held: Held,
    recovery_snapshots: Vec<String>,
    /// The group's lifecycle has it, and knows what has changed since.
    is_passed_on: bool,
}

impl Report {
    pub(super) fn of(held: &HeldGroup) -> Self {
        Report { held: held.entries, recovery_snapshots: held.recovery_snapshots.clone(), is_passed_on: false }
    }
}

/// The newest epoch that a node has reported; 0 without any.
pub(super) fn newest_epoch(reports: &BTreeMap<Ipv6Addr, Report>) -> u32 {
    reports.values().map(|report| report.held.newest_epoch()).max().unwrap_or(0)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No node is ahead.
    #[default]
    Consistent,
    /// A node is ahead: the group waits for the headend, and for the other nodes.
    Diverged,
    /// The nodes contradict each other.
    Stopped,
}

/// Reason for which nodes' records cannot be taken over yet, or at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Obstacle {
    #[error("waiting for the report of headend {0}")]
    Headend(String),
    #[error("waiting for the report of node {0}")]
    Node(String),
    #[error("{ahead}, while headend {headend} has the record of the store")]
    Agrees { ahead: Ahead, headend: String },
    #[error("headend {0} has no recovery snapshot of the record that it has in effect")]
    NoSnapshot(String),
    #[error("node {node} has {name}, which contradicts the recovery snapshot of epoch {epoch}")]
    Contradicts { node: String, name: EntryName, epoch: u32 },
    #[error("the record of the recovery snapshot is invalid: {0}")]
    Invalid(String),
}

impl Obstacle {
    /// Whether no report that is still to come can change it.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Obstacle::Headend(_) | Obstacle::Node(_) => false,
            Obstacle::Agrees { .. } | Obstacle::NoSnapshot(_) | Obstacle::Contradicts { .. } | Obstacle::Invalid(_) => {
                true
            }
        }
    }
}

impl Reports {
    /// The nodes that have reported.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Ipv6Addr> {
        self.nodes.keys()
    }

    /// Passes what the nodes of a diverged group have to its lifecycle, which is closing: the newest epochs first,
    /// since no removal may be older than what a node has.
    pub(super) fn hand_over(&mut self, lifecycle: &mut Lifecycle) {
        let reports = std::mem::take(&mut self.nodes).into_iter().filter(|(_, report)| !report.is_passed_on);
        let mut reports: Vec<(Ipv6Addr, Held)> = reports.map(|(node, report)| (node, report.held)).collect();
        reports.sort_by_key(|(_, held)| std::cmp::Reverse(held.newest_epoch()));
        for (node, held) in reports {
            // A group that is closing accepts any entry.
            let _ = lifecycle.registered(node, held);
        }
    }
}

impl Group {
    /// Whether all its nodes have reported since the controller's start, and agree with the store, or have confirmed
    /// what was restored (D132).
    pub(super) fn is_verified(&self) -> bool {
        !self.has_diverged() && self.lifecycle.as_ref().is_none_or(Lifecycle::is_verified)
    }

    /// Whether the nodes have another record than the store.
    pub(super) fn has_diverged(&self) -> bool {
        self.reports.state != State::Consistent
    }

    /// Whether the store has the newest record: no node that is not in it can be ahead (D128).
    fn is_newest(&self) -> bool {
        !self.is_restored || self.reports.has_agreed
    }

    /// Whether the nodes may have another record, by which the store's is replaced.
    pub(super) fn may_be_replaced(&self) -> bool {
        self.is_restored && (self.lifecycle.is_none() || !self.is_verified())
    }

    /// The headend of the record.
    fn headend(&self) -> Option<Ipv6Addr> {
        self.record.as_ref()?.tree.nodes().first().map(|node| node.loopback)
    }

    /// Whether the nodes contradict each other, so that the group can only be closed.
    pub(super) fn is_stopped(&self) -> bool {
        self.reports.state == State::Stopped
    }
}

impl Core {
    /// Passes a node's report to the group's lifecycle, unless the group has diverged.
    pub(super) fn compare(&mut self, id: u32, node: Ipv6Addr, held: Option<&HeldGroup>) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let (is_verified, has_diverged) = (group.is_verified(), group.has_diverged());
        let is_headend = group.headend() == Some(node);
        let Some(lifecycle) = &mut group.lifecycle else { return };
        let report = held.map(Report::of).unwrap_or_default();
        if has_diverged && !group.row.is_closing {
            self.note_report(id, node, report);
            return self.resolve(id, None);
        }
        match lifecycle.registered(node, report.held) {
            Ok(()) => {
                let mut known = group.record.iter().chain(&group.before).map(Digest::of_record);
                group.reports.has_agreed |=
                    is_headend && report.held.committed.is_some_and(|name| known.any(|known| known == name.record));
                if !is_verified {
                    group.reports.nodes.insert(node, Report { is_passed_on: true, ..report });
                }
            }
            Err(ahead) if !group.nodes.contains(&node) => return self.outsider_ahead(id, ahead, report),
            Err(ahead) => {
                group.reports.nodes.insert(node, report);
                group.reports.state = State::Diverged;
                return self.resolve(id, Some(ahead));
            }
        }
        if is_headend {
            self.settle_outsiders(id);
        }
        if let Some(group) = self.groups.get_mut(&id).filter(|group| group.is_verified()) {
            group.reports.nodes.clear();
            group.left.clear();
        }
        self.drive(id);
    }

    /// A node that is not in the group's record has a newer entry. That is possible only if the store is not the newest
    /// one, which the headend shows (D128).
    fn outsider_ahead(&mut self, id: u32, ahead: Ahead, report: Report) {
        let (store, node) = (self.site.store, ahead.node);
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.is_newest() {
            return self.remove_leftover((node, store, id), report.held.newest_epoch());
        }
        let headend = group.headend();
        let mut unverified = group.lifecycle.iter().flat_map(Lifecycle::unverified);
        let is_awaited = unverified.any(|node| Some(node) == headend);
        drop(unverified);
        if !is_awaited {
            group.reports.state = State::Diverged;
        }
        self.note_report(id, node, report);
        if !is_awaited {
            self.resolve(id, Some(ahead));
        }
    }

    /// Keeps the report of a node until the group is resolved. Its next registration replaces it, also if the node has
    /// the group no more, and is in no record of the store.
    fn note_report(&mut self, id: u32, node: Ipv6Addr, report: Report) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.reports.nodes.insert(node, report);
            self.groups_of_node.add(node, id);
        }
    }

    /// The headend has registered: what nodes outside the record have said is true, or is left over.
    fn settle_outsiders(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let is_outside = |node: &Ipv6Addr| !group.nodes.contains(node);
        let outside: Vec<Ipv6Addr> = group.reports.nodes.keys().copied().filter(is_outside).collect();
        for node in outside {
            let Some(group) = self.groups.get_mut(&id) else { return };
            let (Some(report), Some(lifecycle)) = (group.reports.nodes.remove(&node), &mut group.lifecycle) else {
                continue;
            };
            self.groups_of_node.remove(node, id);
            if let Err(ahead) = lifecycle.registered(node, report.held) {
                self.outsider_ahead(id, ahead, report);
            }
        }
    }

    /// Resolves the divergence of groups that a dead node may have delayed.
    pub(super) fn resolve_without(&mut self, node: Ipv6Addr) {
        for id in self.groups_of_node.of(node).collect::<Vec<_>>() {
            if self.groups.get(&id).is_some_and(|group| group.reports.state == State::Diverged) {
                self.resolve(id, None);
            }
        }
    }

    fn resolve(&mut self, id: u32, ahead: Option<Ahead>) {
        if self.groups.get(&id).is_none_or(Group::is_stopped) {
            return;
        }
        match self.newer_record(id, ahead) {
            Ok(recovered) => {
                let group = self.groups.get_mut(&id);
                let reports = group.map(|group| std::mem::take(&mut group.reports).nodes).unwrap_or_default();
                self.adopt(*recovered, reports);
            }
            Err(obstacle) => {
                if obstacle.is_final()
                    && let Some(group) = self.groups.get_mut(&id)
                {
                    group.reports.state = State::Stopped;
                }
                self.record_failure(id, &format!("nodes have a newer record than the store: {obstacle}"));
            }
        }
    }

    /// The newer record of a group that has diverged.
    fn newer_record(&self, id: u32, ahead: Option<Ahead>) -> Result<Box<Recovered>, Obstacle> {
        let none = || Obstacle::Headend(String::new());
        let group = self.groups.get(&id).ok_or_else(none)?;
        let known = group.record.as_ref().ok_or_else(none)?;
        let headend = known.tree.nodes().first().map(|node| node.loopback).ok_or_else(none)?;
        let name = self.network.name(headend);
        let Some(report) = group.reports.nodes.get(&headend) else {
            let is_unverified = |lifecycle: &Lifecycle| lifecycle.unverified().any(|node| node == headend);
            return Err(match ahead {
                Some(ahead) if !group.lifecycle.as_ref().is_some_and(is_unverified) => {
                    Obstacle::Agrees { ahead, headend: name }
                }
                Some(_) | None => Obstacle::Headend(name),
            });
        };
        if let Some(ahead) = ahead
            && report.held.committed.is_some_and(|name| name.record == Digest::of_record(known))
            && report.held.prepared.is_none()
        {
            return Err(Obstacle::Agrees { ahead, headend: name });
        }
        self.agreed(id, &group.reports.nodes, Some(headend))
    }

    /// The recovery snapshot of a group that its headend and all other nodes agree with. Only the node that is the
    /// headend by the snapshot's own record is believed.
    pub(super) fn agreed(
        &self,
        id: u32,
        reports: &BTreeMap<Ipv6Addr, Report>,
        headend: Option<Ipv6Addr>,
    ) -> Result<Box<Recovered>, Obstacle> {
        let name = |node: Ipv6Addr| self.network.name(node);
        let has_source = |node: &Ipv6Addr, text: &String| {
            parse(text).is_some_and(|found| self.network.is_attached(found.record.source.address, *node))
        };
        let with_snapshot = |(node, report): (&Ipv6Addr, &Report)| match headend {
            Some(headend) => headend == *node,
            None => report.recovery_snapshots.iter().any(|text| has_source(node, text)),
        };
        // A source may be attached to a former headend as well (D289).
        let newest = |(_, report): &(&Ipv6Addr, &Report)| report.held.committed.map_or(0, |name| name.epoch);
        let found = reports.iter().filter(|report| with_snapshot(*report)).max_by_key(newest);
        let (headend, report) = found.ok_or_else(|| Obstacle::Headend(headend.map(name).unwrap_or_default()))?;
        let names = || reports.values().flat_map(|report| report.held.committed);
        // A record that no node has committed was perhaps not stored, and need not be taken over.
        let is_committed = |record: &EntryName| names().any(|name| name.record == record.record);
        let newest = report.held.names().filter(is_committed).max_by_key(|name| name.epoch);
        let newest = newest.ok_or_else(|| Obstacle::NoSnapshot(name(*headend)))?;
        let snapshots = report.recovery_snapshots.iter().filter_map(|text| parse(text));
        let is_newest = |Recovered { store, row, record, .. }: &Recovered| {
            row.id == id
                && record.id.0 == id
                && *store == self.site.store
                && record.epoch == newest.epoch
                && record.tree.nodes().first().is_some_and(|node| node.loopback == *headend)
                && Digest::of_record(record) == newest.record
        };
        let found = snapshots.into_iter().find(is_newest);
        let recovered = found.ok_or_else(|| Obstacle::NoSnapshot(name(*headend)))?;
        let epoch = newest.epoch;
        let records = || recovered.before.iter().chain([&recovered.record]);
        // What other nodes say is no obstacle: they are in no record that the headend has.
        let is_inside =
            |node: &Ipv6Addr| records().any(|record| record.tree.nodes().iter().any(|inside| inside.loopback == *node));
        for (node, report) in reports.iter().filter(|(node, _)| is_inside(node)) {
            let contradicts = |held: &EntryName| {
                let is_other = |record: &srdma_group::Record| {
                    record.epoch == held.epoch && Digest::of_record(record) != held.record
                };
                held.epoch > epoch || records().any(is_other)
            };
            if let Some(held) = report.held.names().find(contradicts) {
                return Err(Obstacle::Contradicts { node: name(*node), name: held, epoch });
            }
        }
        for node in records().flat_map(|record| record.tree.nodes()) {
            let known = self.nodes.get(&node.loopback);
            let is_dead = known.is_some_and(|node| node.was_dead);
            // A connected node that has not reported the group does not have it.
            let has_reported = reports.contains_key(&node.loopback) || known.is_some_and(|node| node.session.is_some());
            if !is_dead && !has_reported {
                return Err(Obstacle::Node(node.name.clone()));
            }
        }
        Ok(Box::new(recovered))
    }

    /// Enters the members and the record of a recovery snapshot, whose nodes have these entries, and resumes the group.
    pub(super) fn adopt(&mut self, recovered: Recovered, reports: BTreeMap<Ipv6Addr, Report>) {
        let Recovered { row, members, record, before, .. } = recovered;
        let (id, epoch, store) = (row.id, record.epoch, self.site.store);
        let records = || before.iter().chain([&record]);
        let is_inside =
            |node: &Ipv6Addr| records().any(|record| record.tree.nodes().iter().any(|one| one.loopback == *node));
        let (reports, outside): (BTreeMap<_, _>, BTreeMap<_, _>) =
            reports.into_iter().partition(|(node, _)| is_inside(node));
        for (node, report) in outside {
            self.groups_of_node.remove(node, id);
            if !report.held.is_empty() {
                self.remove_leftover((node, store, id), report.held.newest_epoch());
            }
        }
        if !self.groups.contains_key(&id) {
            self.enter(row);
        }
        // Greater than any round of an earlier start, and of this one before the divergence.
        let round = self.site.starts << 16 | 1 << 15;
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.row.last_epoch = group.row.last_epoch.max(newest_epoch(&reports)).max(epoch);
        let resumption = Resumption::Committing { before: before.clone().map(Box::new) };
        let lifecycle = match Lifecycle::resume(record.clone(), resumption, group.row.last_epoch, round) {
            Ok(lifecycle) => lifecycle.without(self.settings.without).renewing(&group.row.unrenewed),
            Err(error) => {
                group.reports.state = State::Stopped;
                let obstacle = Obstacle::Invalid(error.to_string());
                return self.record_failure(id, &format!("nodes have a newer record than the store: {obstacle}"));
            }
        };
        let (former, left) = (std::mem::take(&mut group.members), std::mem::take(&mut group.left));
        (group.record, group.before) = (Some(record.clone()), before.clone());
        for (node, name) in group.lifecycle.replace(lifecycle).into_iter().flat_map(Lifecycle::abandon) {
            self.effects.orders.push((node, NodeOrder::Abort { store, group: id, name }));
        }
        group.joining.clear();
        group.row.failure = None;
        group.row.is_committed = true;
        // The snapshot is from before the source's first report.
        if group.row.source == SourceState::Idle {
            group.row.source = SourceState::Sending;
        }
        for (address, member) in former {
            self.queue_pairs.remove(&(address, member.receiver.qpn));
            self.write(Write::Delete { key: rows::member_key(id, address) });
        }
        for (address, mut member) in members {
            // A leave that was accepted is not forgotten.
            member.is_leaving |= left.get(&address) == Some(&member.receiver);
            self.write(rows::put(rows::member_key(id, address), &member));
            // The group exists.
            let _ = self.restore_member(&rows::member_key(id, address), member);
        }
        let before = before.map(Box::new);
        let row = RecordRow { record, is_settled: false, before, explanation: Vec::new(), links_of_unicast: None };
        self.write(rows::put(rows::record_key(id), &row));
        self.repeat_requests(id);
        self.reindex(id);
        self.unsettled.insert(id);
        self.audit("controller", "recover", format!("group {id} epoch {epoch}"));
        self.write_group(id);
        self.emit_for_group(id, EventKind::GroupChanged { group: id, epoch });
        let nodes = self.groups.get(&id).map(|group| group.nodes.clone()).unwrap_or_default();
        let (mut connected, mut lost) = (Vec::new(), Vec::new());
        for node in nodes {
            let has_reported = reports.contains_key(&node);
            match self.nodes.get(&node) {
                Some(known) if known.session.is_some() && !has_reported => connected.push(node),
                // Its report may be older than its loss.
                Some(known) if known.session.is_none() && (known.was_dead || has_reported) => lost.push(node),
                Some(_) | None => {}
            }
        }
        if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
            for (node, report) in reports {
                // No report contradicts the record.
                let _ = lifecycle.registered(node, report.held);
            }
            connected.into_iter().for_each(|node| lifecycle.restarted(node));
            lost.into_iter().for_each(|node| lifecycle.lost(node));
        }
        self.drive(id);
    }
}
