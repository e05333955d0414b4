//! What may and what must not have come of a run.

use crate::faults::NEVER;
use crate::flow::Flow;
use crate::outcome::ComplaintKind;
use crate::world::{RETRY_ACK_TIMEOUTS, World};
use srdma_rc::Status;
use srdma_wire::Instant;

/// What a stall is concluded from happened within so many ACK timeouts.
const STALL_EVIDENCE_ACK_TIMEOUTS: u64 = 8;

impl World<'_> {
    /// A group fails or stays incomplete only where something entitles it to.
    pub(crate) fn judge_progress(&mut self, ended: Instant) {
        for group in 0..self.flows.len() {
            let flow = &self.flows[group];
            match (flow.completed_at, flow.failure) {
                (Some(_), _) => {}
                (None, Some((at, status))) => {
                    if !self.may_fail(group, at, status) {
                        let text = format!("group {group} failed at {} ns: {status:?}", at.as_ns());
                        self.complain(ComplaintKind::Failed, text);
                    }
                }
                (None, None) => {
                    if !self.may_be_blocked(group) {
                        let since = ended.since(flow.progress_at).as_nanos();
                        let text = format!("group {group} is not complete, its last progress is {since} ns ago");
                        self.complain(ComplaintKind::Stuck, text);
                    }
                }
            }
        }
    }

    /// Whether a source's queue pair may have failed.
    fn may_fail(&self, group: usize, at: Instant, status: Status) -> bool {
        match status {
            // Whatever is wrong, for as long as retries last.
            Status::RetryExceeded => {
                let retries_ns = RETRY_ACK_TIMEOUTS * self.scale.ack_timeout_ns;
                self.trouble_until.after_ns(retries_ns) >= at || self.may_be_blocked(group)
            }
            // Who has failed may have left since: the source was told before the leave was in effect.
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

    /// Whether a member is dead or has failed that nobody evicts.
    fn may_be_blocked(&self, group: usize) -> bool {
        let flow = &self.flows[group];
        let is_lost =
            |receiver: usize| self.receivers[receiver].troubled_until == NEVER || flow.failed.contains(&receiver);
        let lost = flow.members.iter().filter(|member| is_lost(member.receiver)).count();
        let left = flow.members.len() - lost;
        let policy = &flow.plan.policy;
        // Under the literal rules a node that lost an ACK upstream has nothing to say once a receiver is dead (D19).
        lost > 0 && (!policy.evict || policy.literal || left < policy.min_receivers as usize)
    }

    /// Only who did not answer, or failed, may be evicted (D24, D25).
    pub(crate) fn check_eviction(&mut self, group: usize, receiver: usize) {
        let now = self.network.now();
        let evidence_ns = STALL_EVIDENCE_ACK_TIMEOUTS * self.scale.ack_timeout_ns;
        let is_recent = |until: Instant| until.after_ns(evidence_ns) >= now;
        let mut on_path = false;
        let mut next = Some(self.site.edge_of(receiver));
        while let Some(node) = next {
            on_path |= is_recent(self.nodes[node].troubled_until) && self.nodes[node].troubled_until > Instant::ZERO;
            next = self.nodes[node].parent;
        }
        let own = self.receivers[receiver].troubled_until;
        let is_own = own > Instant::ZERO && is_recent(own);
        let has_failed = self.flows[group].failed.contains(&receiver);
        let by_chance = self.chances_end > Instant::ZERO && is_recent(self.chances_end);
        if !(on_path || is_own || has_failed || by_chance) {
            let text = format!("group {group}: receiver {receiver} is evicted, and nothing was wrong with it");
            self.complain(ComplaintKind::Membership, text);
        }
    }

    /// After the last frame has arrived nothing holds memory.
    pub(crate) fn check_nothing_is_left(&mut self) {
        let chunks = self.network.chunks_in_use();
        if chunks > 0 {
            self.complain(ComplaintKind::Leak, format!("{chunks} chunks of frames are still held"));
        }
        let starved = self.network.starved();
        if starved > 0 {
            self.complain(ComplaintKind::Leak, format!("{starved} frames found no chunk"));
        }
        let groups = self.flows.len();
        for position in 0..self.site.nodes.len() {
            let known = self.network.node(self.site.nodes[position]).map_or(0, |node| node.groups().count());
            if known > groups {
                self.complain(ComplaintKind::Leak, format!("node {position} has {known} groups, there are {groups}"));
            }
        }
    }

    /// Whether all groups are over.
    pub(crate) fn is_over(&self) -> bool {
        self.flows.iter().all(Flow::is_over)
    }
}
