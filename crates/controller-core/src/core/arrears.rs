//! Receivers that have missed data which the source does not send again (D131).
//!
//! A backup may have receivers that have left since, and a record that is lost is replaced by one of other receivers.
//! Such a receiver expects data that the source has completed. Nothing false is acknowledged, since its edge waits for
//! it; but the group makes no progress until it is removed.

use super::stalls::Actor;
use super::{Core, Group};
use srdma_group::OnFailure;
use srdma_wire::Psn;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

/// A receiver's arrears, as its edge reports them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrears {
    edge: Ipv6Addr,
    expected: Psn,
    since: Duration,
    /// They have lasted long enough that no report on its way explains them.
    is_proven: bool,
}

impl Group {
    /// The source has completed everything before `psn`.
    pub(super) fn note_completed(&mut self, psn: Psn) {
        if self.completed.is_none_or(|known| psn.is_after(known)) {
            self.completed = Some(psn);
        }
    }

    /// The receivers that have missed data, as a failure.
    pub(super) fn missed_data(&self) -> Option<String> {
        let completed = self.completed?.get();
        let is_member = |address: &Ipv6Addr| self.members.get(address).is_some_and(|member| !member.is_leaving);
        let missed = self.arrears.iter().filter(|(address, arrears)| arrears.is_proven && is_member(address));
        let texts: Vec<String> = missed
            .map(|(address, Arrears { expected, .. })| {
                format!(
                    "receiver {address} expects PSN {}, and the source has completed everything before PSN \
                     {completed}: it has missed data that are not sent again, and has to leave",
                    expected.get()
                )
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

impl Core {
    /// Compares what the receivers of an edge expect, by its last status, with what their sources have completed.
    pub(super) fn note_arrears(&mut self, edge: Ipv6Addr) {
        let now = self.now.monotonic;
        let found = self.arrears_at(edge);
        let has_some = |id: &&u32| self.groups.get(id).is_some_and(|group| !group.arrears.is_empty());
        let known = self.groups_of_node.get(&edge).into_iter().flatten().filter(has_some);
        let concerned: BTreeSet<u32> = known.chain(found.iter().map(|(id, ..)| id)).copied().collect();
        for id in concerned {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            let limit = self.settings.node_dead_after.max(group.row.request.policy.t_stall);
            let of_group = || found.iter().filter(|(of, ..)| *of == id);
            let is_found = |address: &Ipv6Addr| of_group().any(|(_, receiver, _)| receiver == address);
            group.arrears.retain(|address, arrears| arrears.edge != edge || is_found(address));
            let mut due = Vec::new();
            for (_, receiver, expected) in of_group() {
                let new = Arrears { edge, expected: *expected, since: now, is_proven: false };
                let arrears = group.arrears.entry(*receiver).or_insert(new);
                if (arrears.edge, arrears.expected) != (edge, *expected) {
                    *arrears = new;
                }
                if now.saturating_sub(arrears.since) >= limit {
                    (arrears.is_proven, arrears.since) = (true, now);
                    due.push(*receiver);
                }
            }
            self.remove_those_in_arrears(id, &due);
        }
    }

    /// Receivers of an edge that were sent data, by group, and expect earlier ones than the source will send.
    fn arrears_at(&self, edge: Ipv6Addr) -> Vec<(u32, Ipv6Addr, Psn)> {
        let status = self.nodes.get(&edge).and_then(|node| node.status.as_ref());
        let mut found = Vec::new();
        for status in status.iter().flat_map(|status| &status.groups) {
            let Some(group) = self.groups.get(&status.group) else { continue };
            let Some(completed) = group.completed else { continue };
            for branch in status.branches.iter().filter(|branch| group.members.contains_key(&branch.address)) {
                let expected = branch.expected_psn.map(Psn::new).filter(|psn| psn.is_before(completed));
                let was_sent = branch.lag.is_some_and(|lag| lag > 0);
                found.extend(expected.filter(|_| was_sent).map(|expected| (status.group, branch.address, expected)));
            }
        }
        found
    }

    fn remove_those_in_arrears(&mut self, id: u32, receivers: &[Ipv6Addr]) {
        if receivers.is_empty() {
            return;
        }
        self.effects.changed_groups.insert(id);
        let policy = self.groups.get(&id).map(|group| group.row.request.policy.on_failure);
        if policy == Some(OnFailure::Evict) {
            for receiver in receivers {
                let cause = "it has missed data that the source does not send again".to_owned();
                self.evict(id, *receiver, cause, &Actor::Controller);
            }
            self.drive(id);
        }
    }
}
