//! Checks of a run's outcome.

use crate::flow::Flow;
use crate::outcome::ViolationKind;
use crate::world::{RETRY_ACK_TIMEOUTS, World};
use srdma_rc::Status;
use srdma_sim::node_or_host::NodeOrHost;
use srdma_wire::Instant;

/// Evidence for an eviction is at most this many ACK timeouts old.
const STALL_EVIDENCE_ACK_TIMEOUTS: u64 = 8;

impl World<'_> {
    /// A group may fail or stay incomplete only if a fault explains it.
    pub(crate) fn check_progress(&mut self, ended: Instant) {
        for group in 0..self.flows.len() {
            let flow = &self.flows[group];
            match (flow.completed_at, flow.failure) {
                (Some(_), _) => {}
                (None, Some((at, status))) => {
                    if !self.may_fail(group, at, status) {
                        let text = format!("group {group} failed at {} ns: {status:?}", at.as_ns());
                        self.violation(ViolationKind::UnexpectedFailure, text);
                    }
                }
                (None, None) => {
                    if !self.may_be_blocked(group) {
                        let since = ended.since(flow.progress_at).as_nanos();
                        let text = format!("group {group} is incomplete, its last progress was {since} ns ago");
                        self.violation(ViolationKind::Liveness, text);
                    }
                }
            }
        }
    }

    /// Whether a fault explains a failed source queue pair.
    fn may_fail(&self, group: usize, at: Instant, status: Status) -> bool {
        match status {
            // Any fault explains it as long as retries last.
            Status::RetryExceeded => {
                let retries_ns = RETRY_ACK_TIMEOUTS * self.scale.ack_timeout_ns;
                self.faults_until.after_ns(retries_ns) >= at || self.may_be_blocked(group)
            }
            // An untrue NAK ends it.
            Status::RemoteOperationalError if !self.flows[group].insiders.is_empty() => true,
            // The failed receiver may have left since: its NAK went up before the leave was applied.
            Status::RemoteOperationalError => {
                let flow = &self.flows[group];
                self.may_be_blocked(group) || (!flow.plan.policy.evict && !flow.failed.is_empty())
            }
            Status::Success
            | Status::LocalLengthError
            | Status::RemoteInvalidRequest
            | Status::RemoteAccessError
            | Status::RnrRetryExceeded
            | Status::Flushed => false,
        }
    }

    /// Whether a dead or failed member blocks the group because the policy does not permit its eviction.
    fn may_be_blocked(&self, group: usize) -> bool {
        let flow = &self.flows[group];
        let is_lost = |receiver: usize| {
            self.receivers[receiver].faulty_until == Instant::NEVER || flow.failed.contains(&receiver)
        };
        // Members that are behind an insider get no data that it has acknowledged for them.
        if flow.members.iter().any(|member| flow.deceived.contains(&member.receiver)) {
            return true;
        }
        let lost = flow.members.iter().filter(|member| is_lost(member.receiver)).count();
        let left = flow.members.len() - lost;
        let policy = &flow.plan.policy;
        // Under the literal rules an ACK that was lost before the receiver died is not retransmitted (D19).
        lost > 0 && (!policy.evict || policy.literal || left < policy.min_receivers as usize)
    }

    /// Only receivers that failed or did not respond may be evicted (D24, D25).
    pub(crate) fn check_eviction(&mut self, group: usize, receiver: usize) {
        let now = self.network.now();
        let evidence_ns = STALL_EVIDENCE_ACK_TIMEOUTS * self.scale.ack_timeout_ns;
        let is_recent = |until: Instant| until.after_ns(evidence_ns) >= now;
        let mut on_path = false;
        let mut next = Some(self.testbed.edge_of(receiver));
        while let Some(node) = next {
            on_path |= is_recent(self.nodes[node].faulty_until) && self.nodes[node].faulty_until > Instant::ZERO;
            next = self.nodes[node].parent;
        }
        let own = self.receivers[receiver].faulty_until;
        let is_own = own > Instant::ZERO && is_recent(own);
        let has_failed = self.flows[group].failed.contains(&receiver);
        let by_chance = self.random_faults_end > Instant::ZERO && is_recent(self.random_faults_end);
        let is_deceived = self.flows[group].deceived.contains(&receiver);
        if !(on_path || is_deceived || is_own || has_failed || by_chance) {
            let text = format!("group {group}: receiver {receiver} was evicted without a fault");
            self.violation(ViolationKind::Membership, text);
        }
    }

    /// No memory may be in use after the last frame has arrived.
    pub(crate) fn check_for_leaks(&mut self) {
        for node in self.testbed.nodes.clone() {
            self.network.with(node, |element, _, pool| match element {
                NodeOrHost::Node(node) => node.drop_kept(pool),
                NodeOrHost::Workers(workers) => workers.drop_kept(pool),
                NodeOrHost::Host(_) | NodeOrHost::Absent => {}
            });
        }
        let chunks = self.network.chunks_in_use();
        if chunks > 0 {
            self.violation(ViolationKind::Leak, format!("{chunks} frame chunks are still in use"));
        }
        let dropped = self.network.dropped_for_memory();
        if dropped > 0 {
            self.violation(ViolationKind::Leak, format!("{dropped} frames were dropped for lack of memory"));
        }
        let groups = self.flows.len();
        for position in 0..self.testbed.nodes.len() {
            let workers = self.network.workers(self.testbed.nodes[position]).iter();
            let known = workers.map(|worker| worker.groups().count()).max().unwrap_or(0);
            if known > groups {
                self.violation(ViolationKind::Leak, format!("node {position} has {known} groups of {groups}"));
            }
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.flows.iter().all(Flow::is_finished)
    }
}

#[cfg(test)]
mod tests;
