//! Evictions of receivers below an edge that is dead (D25, D99).
//!
//! The edge that requests evictions cannot do so when it is itself dead. A lost connection alone is no proof of that:
//! the receivers are evicted when the edge's parent, which is connected, has data outstanding for it and no progress
//! for the policy's stall time.

use super::Core;
use srdma_api::{BranchStatus, EventKind};
use srdma_group::{NodeIndex, NodeRole, OnFailure, Safeguard};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Edges without progress, by group: the PSN that each expects, and since when.
#[derive(Clone, Debug, Default)]
pub(super) struct Stalls(BTreeMap<(u32, Ipv6Addr), (Option<u32>, Duration)>);

impl Stalls {
    /// Notes a report about an edge; returns how long it has been without progress.
    fn note(&mut self, group: u32, edge: Ipv6Addr, branch: &BranchStatus, now: Duration) -> Duration {
        let (psn, since) = self.0.entry((group, edge)).or_insert((branch.expected_psn, now));
        if *psn != branch.expected_psn {
            (*psn, *since) = (branch.expected_psn, now);
        }
        now.saturating_sub(*since)
    }

    fn forget(&mut self, group: u32, edge: Ipv6Addr) {
        self.0.remove(&(group, edge));
    }
}

/// Who evicts a receiver, for the audit log.
pub(super) enum Actor<'a> {
    /// The controller, below a dead edge.
    Controller,
    /// The holder of a token.
    Operator(&'a str),
    /// The receiver's edge, and its token.
    Edge { token: &'a str, node: &'a str },
}

impl Core {
    /// Evicts the receivers of lost edges that their parents find stalled.
    pub(super) fn evict_stalled(&mut self) {
        if self.settings.without == Some(Safeguard::DeadEdgesEvicted) {
            return;
        }
        let lost: Vec<Ipv6Addr> =
            self.nodes.iter().filter(|(_, node)| node.was_dead).map(|(loopback, _)| *loopback).collect();
        for edge in lost {
            for id in self.groups_of_node.get(&edge).cloned().unwrap_or_default() {
                match self.stall(id, edge) {
                    Some((branch, stall_time)) => {
                        if self.stalls.note(id, edge, &branch, self.now.monotonic) >= stall_time {
                            self.stalls.forget(id, edge);
                            self.evict_below(id, edge);
                        }
                    }
                    None => self.stalls.forget(id, edge),
                }
            }
        }
    }

    /// The branch of a lost edge with data outstanding, as its connected parent reports it, and the stall time of a
    /// group whose policy evicts.
    fn stall(&self, id: u32, edge: Ipv6Addr) -> Option<(BranchStatus, Duration)> {
        let record = self.groups.get(&id).filter(|group| !group.row.is_closing)?.record.as_ref()?;
        if record.policy.on_failure != OnFailure::Evict {
            return None;
        }
        let nodes = record.tree.nodes();
        let node = nodes.iter().find(|node| node.loopback == edge && node.role == NodeRole::Edge)?;
        let parent = self.nodes.get(&nodes.get(node.parent?.0)?.loopback).filter(|node| node.session.is_some())?;
        let group = parent.status.as_ref()?.groups.iter().find(|group| group.group == id)?;
        let branch = group.branches.iter().find(|branch| branch.address == edge)?;
        // After a restart of the parent the branch is unknown until it responds.
        let is_outstanding = branch.lag.map_or(group.highest_psn.is_some(), |lag| lag > 0);
        is_outstanding.then_some((*branch, record.policy.t_stall))
    }

    fn evict_below(&mut self, id: u32, edge: Ipv6Addr) {
        let Some(record) = self.groups.get(&id).and_then(|group| group.record.as_ref()) else { return };
        let Some(position) = record.tree.nodes().iter().position(|node| node.loopback == edge) else { return };
        let below = record.receivers.iter().filter(|receiver| receiver.edge == NodeIndex(position));
        let below: Vec<Ipv6Addr> = below.map(|receiver| receiver.address).collect();
        let cause = format!("edge {} is lost and stalled", self.network.name(edge));
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
