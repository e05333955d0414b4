//! Executes the orders of groups' lifecycles.

use super::commit::links_of_unicast;
use super::links::links_of;
use super::{Core, Group};
use crate::rows::{self, RecordRow};
use srdma_api::{EventKind, FIRST_PROTOCOL, NodeOrder, SourceState};
use srdma_group::{GroupEntry, Order, Record};
use srdma_wire::Psn;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

impl Core {
    /// Executes the orders of a group's lifecycle, and starts waiting joins.
    pub(super) fn drive(&mut self, id: u32) {
        if self.groups.get(&id).is_some_and(|group| group.has_diverged() && !group.row.is_closing) {
            return;
        }
        loop {
            self.note_fenced(id);
            self.execute_orders(id);
            if self.start_moves(id) {
                continue;
            }
            self.start_joins(id);
            let is_idle = self.has_sent_nothing(id);
            let Some(group) = self.groups.get_mut(&id) else { break };
            let Some(lifecycle) = &mut group.lifecycle else { break };
            if is_idle && let Some(Order::Pause { round }) = lifecycle.source_order() {
                lifecycle.quiescent(round, Psn::new(group.row.request.initial_psn), 0);
                continue;
            }
            break;
        }
        self.update_unsettled(id);
    }

    /// Whether a source has sent nothing: it has never reported. A store may have been restored from before its first
    /// report; then the headend has not forwarded any data either.
    fn has_sent_nothing(&self, id: u32) -> bool {
        let Some(group) = self.groups.get(&id).filter(|group| group.row.source == SourceState::Idle) else {
            return false;
        };
        let headend = group.record.as_ref().and_then(|record| Some(record.tree.nodes().first()?.loopback));
        let status = headend.and_then(|headend| self.nodes.get(&headend)?.status.as_ref());
        let reported = status.and_then(|status| status.groups.iter().find(|status| status.group == id));
        !group.is_restored || reported.is_some_and(|status| status.highest_psn.is_none())
    }

    /// Aborts the joins that wait for a source that is silent, or does not complete its messages.
    fn abort_joins(&mut self, id: u32) {
        let silent_after = self.settings.source_silent_after;
        let Some(group) = self.groups.get_mut(&id) else { return };
        let Some(lifecycle) = &mut group.lifecycle else { return };
        let now = self.now.monotonic;
        let Some(Order::Pause { round }) = lifecycle.source_order() else {
            group.pausing = None;
            return;
        };
        let (_, since) =
            *group.pausing.insert(group.pausing.filter(|(known, _)| *known == round).unwrap_or((round, now)));
        let limit_ms = silent_after.as_millis();
        if now.saturating_sub(group.source_seen) >= silent_after {
            lifecycle.abort_joins(&format!(
                "the source was silent for {limit_ms} ms: no receiver can join before it pauses"
            ));
        } else if now.saturating_sub(since) >= silent_after {
            lifecycle.abort_joins(&format!(
                "the source has not completed its messages within {limit_ms} ms: no receiver can join before"
            ));
        }
    }

    fn execute_orders(&mut self, id: u32) {
        let store = self.site.store;
        self.note_progress(id);
        while let Some(order) =
            self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()).and_then(|life| life.next_order())
        {
            match order {
                // The source polls its orders.
                Order::Pause { .. } | Order::Ready { .. } => {}
                Order::Store { record, before } => self.store(id, *record, before.map(|before| *before)),
                Order::Prepare { node, name, entry } => {
                    let recovery_snapshot = self.recovery_snapshot(id, &entry);
                    self.order(id, node, NodeOrder::Prepare { store, name, entry, recovery_snapshot });
                }
                Order::Restore { node, name, entry } => {
                    let recovery_snapshot = self.recovery_snapshot(id, &entry);
                    self.order(id, node, NodeOrder::Restore { store, name, entry, recovery_snapshot });
                }
                Order::Commit { node, name, is_first } => {
                    // A node of protocol 1 does not know it (D112).
                    let knows = self.nodes.get(&node).is_some_and(|node| node.protocol > FIRST_PROTOCOL);
                    let is_first = is_first && knows;
                    self.order(id, node, NodeOrder::Commit { store, group: id, name, is_first });
                }
                Order::Abort { node, name } => self.order(id, node, NodeOrder::Abort { store, group: id, name }),
                Order::Remove { node, epoch } => {
                    self.order(id, node, NodeOrder::Remove { store, group: id, epoch });
                    // The node may be in no record any more, or the group be closed before it answers.
                    self.leftovers.note((node, store, id), epoch);
                }
                Order::Evicted { receiver } => self.delete_member(id, receiver),
                Order::Changed { epoch } => self.changed(id, epoch),
                Order::Aborted { reason } => self.change_aborted(id, reason),
                Order::Closed => self.closed(id),
            }
        }
    }

    fn order(&mut self, id: u32, node: Ipv6Addr, order: NodeOrder) {
        self.leftovers.forget((node, self.site.store, id));
        if let Some(group) = self.groups.get_mut(&id)
            && group.nodes.insert(node)
        {
            self.groups_of_node.add(node, id);
        }
        self.effects.orders.push((node, order));
    }

    /// The recovery snapshot that the headend keeps with an entry.
    fn recovery_snapshot(&self, id: u32, entry: &GroupEntry) -> Option<String> {
        let group = self.groups.get(&id).filter(|_| entry.headend.is_some())?;
        super::restore::recovery_snapshot(group, self.site.store, entry.epoch)
    }

    /// Writes the epoch of a change before a node is given it: an entry that a node has prepared and that was never
    /// stored is known by its epoch (D98). So are the nodes that are to be renewed, before their entries are replaced
    /// (D136).
    fn note_progress(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let Some(lifecycle) = &group.lifecycle else { return };
        let row = &mut group.row;
        if row.last_epoch < lifecycle.last_epoch() || !lifecycle.unrenewed().eq(row.unrenewed.iter().copied()) {
            row.last_epoch = row.last_epoch.max(lifecycle.last_epoch());
            row.unrenewed = lifecycle.unrenewed().collect();
            self.effects.writes.push(rows::put(rows::group_key(id), &group.row));
        }
    }

    fn store(&mut self, id: u32, record: Record, before: Option<Record>) {
        let explanation = before.as_ref().and_then(|before| self.explain_replacement(&record, before));
        let Some(group) = self.groups.get_mut(&id) else { return };
        let earlier = group.record.as_ref().zip(group.links_of_unicast);
        group.links_of_unicast = Some(match (&group.record, group.links_of_unicast) {
            // Counted by the commit.
            (None, Some(links)) => links,
            _ => links_of_unicast(&self.network, &record, earlier),
        });
        group.record = Some(record.clone());
        group.before = before;
        if let Some(explanation) = explanation {
            group.explanation = explanation;
        }
        let row = RecordRow {
            record,
            is_settled: false,
            before: group.before.clone().map(Box::new),
            explanation: group.explanation.clone(),
            links_of_unicast: group.links_of_unicast,
        };
        self.effects.writes.push(rows::put(rows::record_key(id), &row));
        self.write_group(id);
    }

    /// Every node has committed an epoch.
    fn changed(&mut self, id: u32, epoch: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.before = None;
        // A join that was postponed still waits (D116).
        let record = group.record.as_ref();
        let has_joined =
            |address| record.is_some_and(|record| record.receivers.iter().any(|one| one.address == address));
        group.joining.retain(|newcomer| !has_joined(newcomer.address));
        group.row.failure = None;
        if let Some(record) = group.record.clone() {
            let (explanation, links_of_unicast) = (group.explanation.clone(), group.links_of_unicast);
            let row = RecordRow { record, is_settled: true, before: None, explanation, links_of_unicast };
            self.effects.writes.push(rows::put(rows::record_key(id), &row));
        }
        self.reindex(id);
        self.write_group(id);
        self.emit_for_group(id, EventKind::GroupChanged { group: id, epoch });
    }

    /// A change was aborted: receivers whose join was it are removed.
    fn change_aborted(&mut self, id: u32, reason: String) {
        self.record_failure(id, &reason);
        let mut rejected = Vec::new();
        if let Some(group) = self.groups.get_mut(&id) {
            let waiting = group.lifecycle.as_ref().map(|lifecycle| lifecycle.joining()).unwrap_or_default();
            rejected.extend(group.joining.extract_if(.., |newcomer| !waiting.contains(&newcomer.address)));
        }
        for newcomer in rejected {
            self.delete_member(id, newcomer.address);
        }
        self.keep_those_that_cannot_leave(id);
        self.reindex(id);
    }

    /// Receivers whose leave was aborted are members as before (D116).
    fn keep_those_that_cannot_leave(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let (Some(lifecycle), Some(record)) = (&group.lifecycle, &group.record) else { return };
        let leaving = lifecycle.leaving();
        let stays = |address: &Ipv6Addr| {
            !leaving.contains(address) && record.receivers.iter().any(|receiver| receiver.address == *address)
        };
        for (address, member) in group.members.iter_mut().filter(|(_, member)| member.is_leaving) {
            if stays(address) {
                member.is_leaving = false;
                self.effects.writes.push(rows::put(rows::member_key(id, *address), member));
            }
        }
    }

    pub(super) fn record_failure(&mut self, id: u32, reason: &str) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.row.failure = Some(reason.to_owned());
        }
        self.write_group(id);
        self.emit_for_group(id, EventKind::ChangeAborted { group: id, reason: reason.to_owned() });
    }

    /// No node has the group: it is deleted or, when only its creation was aborted, open again.
    fn closed(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.lifecycle = None;
        if group.row.is_closing {
            self.forget(id);
        } else {
            group.row.is_committed = false;
            self.delete_leaving(id);
            self.reindex(id);
            self.write_group(id);
        }
    }

    /// Updates the indices by node and by link.
    pub(super) fn reindex(&mut self, id: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let nodes = nodes_of(group);
        for node in group.nodes.difference(&nodes) {
            self.groups_of_node.remove(*node, id);
        }
        for node in &nodes {
            self.groups_of_node.add(*node, id);
        }
        group.nodes = nodes;
        let links = group.record.as_ref().map(links_of).unwrap_or_default();
        self.load.replace(&group.links, &links);
        group.links = links;
    }

    fn update_unsettled(&mut self, id: u32) {
        self.effects.changed_groups.insert(id);
        let is_unsettled = self.groups.get(&id).is_some_and(|group| match &group.lifecycle {
            Some(lifecycle) => !lifecycle.is_steady() || !group.joining.is_empty(),
            None => group.row.is_committed,
        });
        if is_unsettled {
            self.unsettled.insert(id);
        } else {
            self.unsettled.remove(&id);
        }
    }

    /// Retransmits unanswered orders in all groups with a change in progress, and orders to remove what is left over.
    pub fn retransmit(&mut self) {
        self.repeat_removals();
        let may_wait = self.now.monotonic < self.expects_until;
        for id in self.unsettled.clone() {
            self.retry_creation(id, may_wait);
            self.abort_joins(id);
            if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
                lifecycle.repeat();
            }
            self.drive(id);
        }
    }
}

fn nodes_of(group: &Group) -> BTreeSet<Ipv6Addr> {
    let records = group.record.iter().chain(&group.before);
    records.flat_map(|record| record.tree.nodes()).map(|node| node.loopback).collect()
}
