//! Evictions of receivers below a node that is dead (D25, D99).
//!
//! The edge that requests evictions cannot do so when it is itself dead, and no edge can when a node above it is dead
//! and no other path leads around that. A lost connection alone is no proof of death: the receivers are evicted when
//! the node's parent, which is connected, has data outstanding for it and no progress for the policy's stall time.

use super::Core;
use srdma_api::{BranchStatus, EventKind};
use srdma_group::{NodeIndex, NodeRole, OnFailure, Safeguard};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Lost nodes without progress, by group: the PSN that each expects, and since when.
#[derive(Clone, Debug, Default)]
pub(super) struct Stalls(BTreeMap<(u32, Ipv6Addr), (Option<u32>, Duration)>);

impl Stalls {
    /// Notes a report about a node; returns how long it has been without progress.
    fn note(&mut self, group: u32, node: Ipv6Addr, branch: &BranchStatus, now: Duration) -> Duration {
        let (psn, since) = self.0.entry((group, node)).or_insert((branch.expected_psn, now));
        if *psn != branch.expected_psn {
            (*psn, *since) = (branch.expected_psn, now);
        }
        now.saturating_sub(*since)
    }

    fn forget(&mut self, group: u32, node: Ipv6Addr) {
        self.0.remove(&(group, node));
    }
}

/// Who evicts a receiver, for the audit log.
pub(super) enum Actor<'a> {
    /// The controller, below a dead node.
    Controller,
    /// The holder of a token.
    Operator(&'a str),
    /// The receiver's edge, and its token.
    Edge { token: &'a str, node: &'a str },
}

impl Core {
    /// Evicts the receivers below lost nodes that their parents find stalled.
    pub(super) fn evict_stalled(&mut self) {
        if self.settings.without == Some(Safeguard::DeadEdgesEvicted) {
            return;
        }
        let lost: Vec<Ipv6Addr> =
            self.nodes.iter().filter(|(_, node)| node.was_dead).map(|(loopback, _)| *loopback).collect();
        for node in lost {
            for id in self.groups_of_node.of(node).collect::<Vec<_>>() {
                match self.stall(id, node) {
                    Some((branch, stall_time)) => {
                        if self.stalls.note(id, node, &branch, self.now.monotonic) >= stall_time {
                            self.stalls.forget(id, node);
                            self.evict_below(id, node);
                        }
                    }
                    None => self.stalls.forget(id, node),
                }
            }
        }
    }

    /// The branch of a lost node with data outstanding, as its connected parent reports it, and the stall time of a
    /// group whose policy evicts.
    fn stall(&self, id: u32, node: Ipv6Addr) -> Option<(BranchStatus, Duration)> {
        let group = self.groups.get(&id).filter(|group| !group.row.is_closing)?;
        let record = group.record.as_ref().filter(|record| record.policy.on_failure == OnFailure::Evict)?;
        let nodes = record.tree.nodes();
        let lost = nodes.iter().find(|one| one.loopback == node)?;
        // A change in progress may lead around a node that replicates.
        let may_move = || group.lifecycle.as_ref().is_none_or(|lifecycle| lifecycle.may_reroute());
        if lost.role.replicates() && may_move() {
            return None;
        }
        let parent = self.nodes.get(&nodes.get(lost.parent?.0)?.loopback).filter(|node| node.session.is_some())?;
        let group = parent.status.as_ref()?.groups.iter().find(|group| group.group == id)?;
        let branch = group.branches.iter().find(|branch| branch.address == node)?;
        // After a restart of the parent the branch is unknown until it responds.
        let is_outstanding = branch.lag.map_or(group.highest_psn.is_some(), |lag| lag > 0);
        is_outstanding.then_some((*branch, record.policy.t_stall))
    }

    fn evict_below(&mut self, id: u32, node: Ipv6Addr) {
        let Some(record) = self.groups.get(&id).and_then(|group| group.record.as_ref()) else { return };
        let Some(position) = record.tree.nodes().iter().position(|one| one.loopback == node) else { return };
        let lost = record.tree.nodes().get(position).map(|node| node.role);
        let below = record.receivers.iter().filter(|receiver| record.tree.is_below(receiver.edge, NodeIndex(position)));
        let below: Vec<Ipv6Addr> = below.map(|receiver| receiver.address).collect();
        let role = if lost == Some(NodeRole::Edge) { "edge" } else { "node" };
        let cause = format!("{role} {} is lost and stalled", self.network.name(node));
        for receiver in below {
            self.evict(id, receiver, cause.clone(), &Actor::Controller);
        }
        self.drive(id);
    }

    /// Evicts a receiver if enough others remain, and reports it.
    pub(super) fn evict(&mut self, group: u32, receiver: Ipv6Addr, cause: String, actor: &Actor<'_>) {
        let members = self.groups.get(&group).filter(|group| !group.row.is_closing).map(|group| &group.members);
        if members.and_then(|members| members.get(&receiver)).is_none_or(|member| member.is_leaving) {
            return;
        }
        let refusal = self.remove_receiver(group, receiver).err().map(|refusal| refusal.detail);
        if refusal.is_none() {
            let target = format!("group {group} receiver {receiver}");
            match actor {
                Actor::Controller => self.audit("controller", "evict", target),
                Actor::Operator(token) => self.audit(token, "evict", target),
                Actor::Edge { token, node } => {
                    self.audit(token, "evict", format!("{target} at the request of node {node}"));
                }
            }
            self.write_group(group);
        }
        self.emit_for_group(group, EventKind::EvictionRequested { group, receiver, cause, refusal });
    }
}
