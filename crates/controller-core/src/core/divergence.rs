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

use super::restore::{RecoverySnapshot, parse};
use super::{Core, Group};
use crate::rows::{self, RecordRow, Write};
use srdma_api::{EventKind, HeldGroup};
use srdma_group::{Ahead, Digest, EntryName, Held, Lifecycle, Resumption};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// What the nodes of a group have reported since the controller's start, until its headend has registered.
#[derive(Debug, Default)]
pub(super) struct Reports {
    nodes: BTreeMap<Ipv6Addr, Report>,
    state: State,
}

#[derive(Clone, Debug)]
struct Report {
    held: Held,
    recovery_snapshots: Vec<String>,
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
enum Obstacle {
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
    fn is_final(&self) -> bool {
        match self {
            Obstacle::Headend(_) | Obstacle::Node(_) => false,
            Obstacle::Agrees { .. } | Obstacle::NoSnapshot(_) | Obstacle::Contradicts { .. } | Obstacle::Invalid(_) => {
                true
            }
        }
    }
}

impl Reports {
    /// Passes what the nodes of a diverged group have to its lifecycle, which is closing: the newest epochs first,
    /// since no removal may be older than what a node has.
    pub(super) fn hand_over(&mut self, lifecycle: &mut Lifecycle) {
        let mut reports: Vec<(Ipv6Addr, Held)> =
            std::mem::take(&mut self.nodes).into_iter().map(|(node, report)| (node, report.held)).collect();
        reports.sort_by_key(|(_, held)| std::cmp::Reverse(held.newest_epoch()));
        for (node, held) in reports {
            // A group that is closing accepts any entry.
            let _ = lifecycle.registered(node, held);
        }
    }
}

impl Group {
    /// Whether all its nodes have reported since the controller's start, and agree with the store.
    pub(super) fn is_verified(&self) -> bool {
        let is_unverified = |lifecycle: &Lifecycle| lifecycle.unverified().next().is_some();
        !self.has_diverged() && !self.lifecycle.as_ref().is_some_and(is_unverified)
    }

    /// Whether the nodes have another record than the store.
    pub(super) fn has_diverged(&self) -> bool {
        self.reports.state != State::Consistent
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
        let Some(lifecycle) = &mut group.lifecycle else { return };
        let entries = held.map(|held| held.entries).unwrap_or_default();
        let recovery_snapshots = held.map(|held| held.recovery_snapshots.clone()).unwrap_or_default();
        let report = Report { held: entries, recovery_snapshots };
        if has_diverged && !group.row.is_closing {
            group.reports.nodes.insert(node, report);
            return self.resolve(id, None);
        }
        match lifecycle.registered(node, entries) {
            Ok(()) if is_verified => {}
            Ok(()) => drop(group.reports.nodes.insert(node, report)),
            Err(ahead) => {
                group.reports.nodes.insert(node, report);
                group.reports.state = State::Diverged;
                return self.resolve(id, Some(ahead));
            }
        }
        if group.is_verified() {
            group.reports.nodes.clear();
        }
        self.drive(id);
    }

    /// Resolves the divergence of groups that a dead node may have delayed.
    pub(super) fn resolve_without(&mut self, node: Ipv6Addr) {
        for id in self.groups_of_node.get(&node).cloned().unwrap_or_default() {
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
            Ok(snapshot) => self.take_over(id, *snapshot),
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

    /// The recovery snapshot that the headend and all other nodes agree with.
    fn newer_record(&self, id: u32, ahead: Option<Ahead>) -> Result<Box<RecoverySnapshot>, Obstacle> {
        let none = || Obstacle::Headend(String::new());
        let group = self.groups.get(&id).ok_or_else(none)?;
        let known = group.record.as_ref().ok_or_else(none)?;
        let headend = known.tree.nodes().first().map(|node| node.loopback).ok_or_else(none)?;
        let name = |node: Ipv6Addr| self.network.name(node);
        let report = group.reports.nodes.get(&headend).ok_or_else(|| Obstacle::Headend(name(headend)))?;
        let names = || group.reports.nodes.values().flat_map(|report| report.held.committed);
        // A record that no node has committed was perhaps not stored, and need not be taken over.
        let is_committed = |record: &EntryName| names().any(|name| name.record == record.record);
        let newest = report.held.names().filter(is_committed).max_by_key(|name| name.epoch);
        let newest = newest.ok_or_else(|| Obstacle::NoSnapshot(name(headend)))?;
        if let Some(ahead) = ahead.filter(|_| newest.record == Digest::of_record(known)) {
            return Err(Obstacle::Agrees { ahead, headend: name(headend) });
        }
        let snapshots = report.recovery_snapshots.iter().filter_map(|text| parse(text));
        let (_, snapshot) = snapshots
            .into_iter()
            .find(|(row, snapshot)| {
                row.id == id
                    && snapshot.store == self.site.store
                    && snapshot.record.epoch == newest.epoch
                    && Digest::of_record(&snapshot.record) == newest.record
            })
            .ok_or_else(|| Obstacle::NoSnapshot(name(headend)))?;
        let epoch = newest.epoch;
        let records = || snapshot.before.iter().chain([&snapshot.record]);
        for (node, report) in &group.reports.nodes {
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
            let is_dead = self.nodes.get(&node.loopback).is_some_and(|node| node.was_dead);
            if !is_dead && !group.reports.nodes.contains_key(&node.loopback) {
                return Err(Obstacle::Node(node.name.clone()));
            }
        }
        Ok(Box::new(snapshot))
    }

    /// Replaces members and record of a group by those of a recovery snapshot, and resumes it.
    fn take_over(&mut self, id: u32, snapshot: RecoverySnapshot) {
        let RecoverySnapshot { members, record, before, .. } = snapshot;
        let epoch = record.epoch;
        let starts = self.site.starts;
        let Some(group) = self.groups.get_mut(&id) else { return };
        let newest = group.reports.nodes.values().map(|report| report.held.newest_epoch()).max().unwrap_or(0);
        group.row.last_epoch = group.row.last_epoch.max(newest).max(epoch);
        // Greater than any round of an earlier start, and of this one before the divergence.
        let round = starts << 16 | 1 << 15;
        let resumption = Resumption::Committing { before: before.clone().map(Box::new) };
        let lifecycle = match Lifecycle::resume(record.clone(), resumption, group.row.last_epoch, round) {
            Ok(lifecycle) => lifecycle,
            Err(error) => {
                group.reports.state = State::Stopped;
                let obstacle = Obstacle::Invalid(error.to_string());
                return self.record_failure(id, &format!("nodes have a newer record than the store: {obstacle}"));
            }
        };
        let reports = std::mem::take(&mut group.reports).nodes;
        let former = std::mem::take(&mut group.members);
        (group.record, group.before) = (Some(record.clone()), before.clone());
        group.lifecycle = Some(lifecycle);
        group.joining.clear();
        group.row.failure = None;
        group.row.is_committed = true;
        for (address, member) in former {
            self.queue_pairs.remove(&(address, member.receiver.qpn));
            self.write(Write::Delete { key: rows::member_key(id, address) });
        }
        for (address, member) in members {
            // The group exists.
            let _ = self.restore_member(&rows::member_key(id, address), member);
            self.write(rows::put(rows::member_key(id, address), &member));
        }
        let row = RecordRow { record, is_settled: false, before: before.map(Box::new), explanation: Vec::new() };
        self.write(rows::put(rows::record_key(id), &row));
        self.reindex(id);
        self.unsettled.insert(id);
        self.audit("controller", "recover", format!("group {id} epoch {epoch}"));
        self.write_group(id);
        self.emit_for_group(id, EventKind::GroupChanged { group: id, epoch });
        let dead: BTreeSet<Ipv6Addr> =
            self.nodes.iter().filter(|(_, node)| node.was_dead).map(|(loopback, _)| *loopback).collect();
        if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
            for (node, report) in reports {
                // No report contradicts the record.
                let _ = lifecycle.registered(node, report.held);
            }
            dead.into_iter().for_each(|node| lifecycle.lost(node));
        }
        self.drive(id);
    }
}
