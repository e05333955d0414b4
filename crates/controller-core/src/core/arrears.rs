//! Receivers that hold their group back: those that have missed data which the source does not send again, and those
//! that do not acknowledge what they are sent (D131).
//!
//! A backup may have receivers that have left since, and a record that is lost is replaced by one of other receivers.
//! Such a receiver expects data that the source has completed. Nothing false is acknowledged, since its edge waits for
//! it; but the group makes no progress until it is removed.

use super::stalls::Actor;
use super::{Core, Group};
use srdma_group::OnFailure;
use srdma_wire::Psn;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

/// A receiver's arrears, as its edge reports them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrears {
    edge: Ipv6Addr,
    expected: Psn,
    /// The source has completed what the receiver expects.
    has_missed: bool,
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

    /// The receivers that have missed data or do not acknowledge any, as a failure.
    pub(super) fn receivers_in_arrears(&self) -> Option<String> {
        let is_member = |address: &Ipv6Addr| self.members.get(address).is_some_and(|member| !member.is_leaving);
        let proven = self.arrears.iter().filter(|(address, arrears)| arrears.is_proven && is_member(address));
        let texts: Vec<String> = proven.map(|(address, arrears)| self.text_of(*address, *arrears)).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    fn text_of(&self, address: Ipv6Addr, Arrears { expected, has_missed, .. }: Arrears) -> String {
        let expected = expected.get();
        match self.completed.filter(|_| has_missed).map(Psn::get) {
            Some(completed) => format!(
                "of receiver {address} its edge expects PSN {expected}, and the source has completed everything before \
                 PSN {completed}, which is not sent again: the receiver has to leave"
            ),
            None => format!("receiver {address} has not acknowledged PSN {expected}, which it was sent"),
        }
    }
}

impl Core {
    /// Notes which receivers of an edge have data outstanding, by its last status, and whether their sources have
    /// completed these.
    pub(super) fn note_arrears(&mut self, edge: Ipv6Addr) {
        let now = self.now.monotonic;
        let found = self.arrears_at(edge);
        let has_some = |id: &u32| self.groups.get(id).is_some_and(|group| !group.arrears.is_empty());
        let known = self.groups_of_node.of(edge).filter(has_some);
        let concerned: BTreeSet<u32> = known.chain(found.keys().copied()).collect();
        for id in concerned {
            let Some(group) = self.groups.get_mut(&id) else { continue };
            let limit = self.settings.node_dead_after.max(group.row.request.policy.t_stall);
            let of_group = found.get(&id).map_or(&[][..], Vec::as_slice);
            let is_found = |address: &Ipv6Addr| of_group.iter().any(|(receiver, ..)| receiver == address);
            let mut is_changed = false;
            group.arrears.retain(|address, arrears| {
                let is_kept = arrears.edge != edge || is_found(address);
                is_changed |= !is_kept && arrears.is_proven;
                is_kept
            });
            let mut due = Vec::new();
            for (receiver, expected, has_missed) in of_group.iter().copied() {
                let new = Arrears { edge, expected, has_missed, since: now, is_proven: false };
                let arrears = group.arrears.entry(receiver).or_insert(new);
                if (arrears.edge, arrears.expected, arrears.has_missed) != (edge, expected, has_missed) {
                    is_changed |= arrears.is_proven;
                    *arrears = new;
                }
                if now.saturating_sub(arrears.since) >= limit {
                    (arrears.is_proven, arrears.since, is_changed) = (true, now, true);
                    due.extend(has_missed.then_some(receiver));
                }
            }
            if is_changed {
                self.effects.changed_groups.insert(id);
            }
            self.remove_those_in_arrears(id, &due);
        }
    }

    /// Receivers of an edge with data outstanding, by group: what each expects, and whether its source has completed
    /// it.
    fn arrears_at(&self, edge: Ipv6Addr) -> BTreeMap<u32, Vec<(Ipv6Addr, Psn, bool)>> {
        let status = self.nodes.get(&edge).and_then(|node| node.status.as_ref());
        let mut found: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for status in status.iter().flat_map(|status| &status.groups) {
            let Some(group) = self.groups.get(&status.group) else { continue };
            for branch in status.branches.iter().filter(|branch| group.members.contains_key(&branch.address)) {
                let expected = branch.expected_psn.map(Psn::new);
                let has_missed = match (expected, group.completed) {
                    (Some(expected), Some(completed)) => expected.is_before(completed),
                    (None, _) | (_, None) => false,
                };
                let outstanding = match expected {
                    Some(expected) => branch.lag.is_some_and(|lag| lag > 0).then_some(expected),
                    // Data came since the node has restarted, and were sent to it: it has responded to none.
                    None => status.highest_psn.map(Psn::new),
                };
                if let Some(expected) = outstanding {
                    found.entry(status.group).or_default().push((branch.address, expected, has_missed));
                }
            }
        }
        found
    }

    fn remove_those_in_arrears(&mut self, id: u32, receivers: &[Ipv6Addr]) {
        if receivers.is_empty() {
            return;
        }
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
