//! The checks at the end of a run, when all faults have been over for long.

use crate::adapter;
use crate::checks::is_named;
use crate::data_network::node_of;
use crate::outcome::{Finding, ViolationKind};
use crate::world::World;
use srdma_aggregation::Acknowledgements;
use srdma_api::{Group, GroupState, Receiver, ReceiverState};
use srdma_dataplane::Node;
use srdma_sim::host::{HOST_PORT, SECOND_HOST_PORT};
use srdma_wire::{Instant, Psn};
use std::net::Ipv6Addr;

/// A commit that is aborted again for the same reason is so within this time.
const COMMIT_NS: u64 = 2_000_000_000;

impl World<'_> {
    /// Checks what each group has come to.
    pub(crate) fn check_end(&mut self) {
        self.check_responses();
        if self.checks.calm_since.is_some() {
            self.outcome.ready += self.flow_of.iter().flatten().count() as u64;
            return;
        }
        for group in 0..self.flow_of.len() {
            let Some(flow) = self.flow_of[group] else { continue };
            self.check_end_of(flow);
        }
    }

    fn check_end_of(&mut self, flow: usize) {
        let Some(group) = self.view(flow) else {
            // Without a commit and a further step, a request was refused, and the application knows why. So it does
            // while the Proxy Address is that of another group, which a node that does not return may have for ever.
            let state = &self.flows[flow];
            let is_refused = (!state.is_committed && state.steps.is_empty()) || state.is_creation_refused;
            if !self.flows[flow].is_closed && !self.flows[flow].is_over && !is_refused {
                let text = format!("flow {flow}: the group does not exist, and its application does not learn it");
                let finding = self.diagnose_group(flow, None);
                self.violation(ViolationKind::Convergence, finding, flow, text);
            }
            return;
        };
        let (id, state) = (group.summary.id, group.summary.state);
        if self.flows[flow].is_spoiled {
            return;
        }
        // An open group was refused, and its application knows why. It commits again.
        let is_again = self.flows[flow].aborted.is_some_and(|at| self.now() < at.after_ns(COMMIT_NS));
        if state == GroupState::Open || (state == GroupState::Creating && is_again) {
            return;
        }
        self.check_evictions(flow, &group);
        self.check_moves(flow, &group);
        self.check_headend(flow, &group);
        if state != GroupState::Ready {
            if !names_something(&group) {
                let finding = self.diagnose_group(flow, Some(&group));
                let text = format!(
                    "flow {flow}: group {id} is {state:?}, awaits {:?}, failure {:?}",
                    group.awaited, group.failure
                );
                self.violation(ViolationKind::Convergence, finding, flow, text);
            }
            return;
        }
        self.outcome.ready += 1;
        // A dead member stops a strict group, and a dead node too.
        // A restored store may have the last receiver again that its application has removed; or its leave was refused
        // after it was accepted, since others had left meanwhile, which `failure` says.
        let has_left = |member: &Receiver| self.flows[flow].left.iter().any(|(_, left)| left.qpn.get() == member.qpn);
        let is_back =
            |member: &Receiver| (self.faults.store_changed || names_refused_leave(&group)) && has_left(member);
        // A failure that names a receiver says why it stops the group, if it is so (D131).
        let is_behind = |member: &Receiver| self.has_missed(flow, member) || self.has_lost_position(flow, id, member);
        let is_named = |member: &Receiver| names_receiver(&group, member.address) && is_behind(member);
        let is_excused = |member: &Receiver| is_back(member) || is_named(member) || self.is_cut_off(&group, member);
        let is_blocked = |member: &Receiver| self.is_member_dead(member.address) || is_excused(member);
        let is_blocked = group.members.iter().any(is_blocked);
        let differs = !self.differences(&group).is_empty();
        // A restored store may have a group that its application has ended.
        let state = &self.flows[flow];
        let is_closed = state.is_closed && state.steps.is_empty();
        let is_attached = self.is_source_attached(state.group, &group);
        let has_source = state.is_committed && !state.is_over && !is_closed && is_attached;
        if !is_blocked && !self.has_lost_stream(flow, &group) && !differs && !self.makes_progress(flow) && has_source {
            let finding = self.diagnose_progress(flow, &group);
            let text = format!(
                "flow {flow}: group {id} is ready, but {} packets are confirmed since {} ns",
                self.flows[flow].confirmed,
                self.flows[flow].progress_at.as_ns()
            );
            self.violation(ViolationKind::Liveness, finding, flow, text);
        }
    }

    /// Whether the group is a new one for its headend, and not for its source, and `failure` says so (D137).
    fn has_lost_stream(&self, flow: usize, group: &Group) -> bool {
        let is_named =
            group.failure.as_ref().is_some_and(|failure| failure.contains("a record that the store has lost"));
        let has_forwarded = self.headend_state(group).is_some_and(|state| state.highest_psn().is_some());
        // What passes it as a branch of a lost record does not count.
        let id = adapter::group_id(group.summary.id);
        let waits = self.headend_worker(group).is_some_and(|headend| headend.awaits_first_psn(id));
        // What was acknowledged while the API showed no group is not confirmed.
        let has_completed = self.flows[flow].acknowledged_octets(&self.network).is_some_and(|octets| octets > 0);
        is_named && (waits || !has_forwarded) && has_completed
    }

    /// The worker of a group's headend that has the group.
    fn headend_worker(&self, group: &Group) -> Option<&Node> {
        let id = adapter::group_id(group.summary.id);
        adapter::owner(self.network.workers(self.testbed.nodes[headend_of(group)?]), id)
    }

    /// What a group's headend knows of its branches.
    fn headend_state(&self, group: &Group) -> Option<&Acknowledgements> {
        self.headend_worker(group)?.acknowledgements(adapter::group_id(group.summary.id))
    }

    /// Whether a group's headend has sent data that not all branches have acknowledged.
    fn has_outstanding(&self, group: &Group) -> bool {
        let Some(state) = self.headend_state(group) else { return false };
        let is_behind = |highest: Psn| state.minimum_psn().is_none_or(|least| !least.is_after(highest));
        state.highest_psn().is_some_and(is_behind)
    }

    /// Whether a member lacks data that its source has completed.
    fn has_missed(&self, flow: usize, member: &Receiver) -> bool {
        let state = &self.flows[flow];
        self.octets_of_member(flow, member).is_some_and(|octets| octets < state.octets_of(state.confirmed))
    }

    /// Whether a member's edge waits for data that the member has: the store is another one, and the nodes had removed
    /// the group's entries, with what was acknowledged.
    fn has_lost_position(&self, flow: usize, id: u32, member: &Receiver) -> bool {
        let (state, testbed) = (&self.flows[flow], &self.testbed);
        let Some(receiver) = testbed.receiver_of(member.address) else { return false };
        let expected = testbed.nodes_of_receiver(receiver).find_map(|number| {
            let status = adapter::status(&self.agents[number].agent, self.network.workers(testbed.nodes[number]));
            let mut branches = status.groups.iter().filter(|one| one.group == id).flat_map(|status| &status.branches);
            branches.find(|branch| branch.address == member.address).and_then(|branch| branch.expected_psn)
        });
        self.faults.store_changed
            && expected.zip(self.octets_of_member(flow, member)).is_some_and(|(expected, octets)| {
                let packets = Psn::new(expected).distance_from(Psn::new(state.first_psn));
                octets > state.octets_of(packets.unsigned_abs().into())
            })
    }

    /// Whether a member has lost its link to its edge, and `failure` says that no path leads to its other one.
    fn is_cut_off(&self, group: &Group, member: &Receiver) -> bool {
        let Some(receiver) = self.testbed.receiver_of(member.address) else { return false };
        let has_no_path = group.failure.as_ref().is_some_and(|failure| failure.contains("no path to node"));
        has_no_path && self.is_severed(receiver, self.edge_of(group, receiver))
    }

    /// Octets that a member has without a gap.
    fn octets_of_member(&self, flow: usize, member: &Receiver) -> Option<u64> {
        let (state, receiver) = (&self.flows[flow], self.testbed.receiver_of(member.address)?);
        let participant = state.participant(receiver, member.qpn)?;
        let memory = state.memory(receiver, participant, &self.testbed, &self.network)?;
        Some(memory.complete_octets())
    }

    /// D25: the dead receivers of a group that evicts are gone, as far as enough others are left.
    fn check_evictions(&mut self, flow: usize, group: &Group) {
        if !self.schedule.groups[self.flows[flow].group].evict {
            return;
        }
        let (dead, alive): (Vec<&Receiver>, Vec<&Receiver>) =
            group.members.iter().partition(|member| self.is_member_dead(member.address));
        // Only what was sent shows that a receiver is dead.
        let state = &self.flows[flow];
        let is_attached = self.is_source_attached(state.group, group);
        let is_sending = state.session.may_send && !state.is_over && (is_attached || self.has_outstanding(group));
        let has_begun = state.confirmed > 0 && is_sending;
        let differs = !self.differences(group).is_empty();
        let is_any_left = alive.iter().any(|member| member.state == ReceiverState::Member);
        if !is_any_left || !has_begun || self.has_lost_stream(flow, group) {
            return;
        }
        for member in dead.iter().filter(|member| member.state == ReceiverState::Member) {
            let receiver = self.testbed.receiver_of(member.address);
            let edge = receiver.map(|receiver| self.edge_of(group, receiver));
            let is_edge_dead = edge.is_some_and(|edge| self.faults.is_dead(edge));
            let is_named = edge.is_some_and(|edge| is_named(group, edge));
            let parent = edge.and_then(|edge| parent_of(group, edge));
            let is_watched = parent.is_some_and(|parent| {
                self.is_heard(parent) && !self.differs(group, parent) && !self.is_below_dead(group, parent)
            });
            // No data come to its edge that would show it, or no node sees that it does not respond (D99).
            if (is_edge_dead && is_named && !is_watched) || (!is_edge_dead && differs) {
                continue;
            }
            let finding = match is_edge_dead {
                _ if self.faults.store_changed => Finding::OtherStore,
                true => Finding::DeadEdgeKept,
                false => self.diagnose_group(flow, Some(group)),
            };
            let text = format!("flow {flow}: {} is dead and still a member", member.address);
            self.violation(ViolationKind::Eviction, finding, flow, text);
        }
    }

    /// Whether a node above another one in a group's tree is dead for good: no data come to it.
    fn is_below_dead(&self, group: &Group, node: usize) -> bool {
        let mut above = std::iter::successors(parent_of(group, node), |node| parent_of(group, *node));
        above.any(|node| self.faults.is_dead(node))
    }

    /// Whether a receiver or its edge is dead for good.
    fn is_member_dead(&self, address: Ipv6Addr) -> bool {
        self.testbed.receiver_of(address).is_some_and(|receiver| {
            self.faults.receiver_down_until[receiver] == Instant::NEVER
                || self.testbed.nodes_of_receiver(receiver).all(|node| self.is_severed(receiver, node))
        })
    }

    /// Whether a node of a receiver, or the link between them, is dead for good.
    fn is_severed(&self, receiver: usize, node: usize) -> bool {
        let mut here = self.testbed.receivers_at(node).into_iter().filter(|(other, _)| *other == receiver);
        let has_lost = |port| self.faults.host_link_down_until(receiver, port) == Instant::NEVER;
        self.faults.is_dead(node) || here.any(|(_, port)| has_lost(port))
    }

    /// The node of a receiver, as the API shows it, or else the first that it is attached to.
    fn edge_of(&self, group: &Group, receiver: usize) -> usize {
        let address = self.testbed.receiver_address(receiver);
        let mut nodes = group.tree.iter().flat_map(|tree| &tree.nodes);
        let edge = nodes.find(|node| node.branches.iter().any(|branch| branch.address == address));
        edge.and_then(|edge| node_of(&edge.name)).unwrap_or_else(|| self.testbed.node_of_receiver(receiver))
    }

    /// D280, D282: no receiver is left at an edge that is dead and fenced, or has lost its link to it, while another
    /// edge can serve it.
    fn check_moves(&mut self, flow: usize, group: &Group) {
        let is_same_store = !self.faults.store_changed;
        for member in group.members.iter().filter(|member| is_same_store && member.state == ReceiverState::Member) {
            let Some(receiver) = self.testbed.receiver_of(member.address) else { continue };
            let edge = self.edge_of(group, receiver);
            let mut others = self.testbed.nodes_of_receiver(receiver).filter(|other| *other != edge);
            // A dead edge needs a fence, a lost link does not (D282).
            let is_left = if self.faults.is_dead(edge) {
                self.schedule.has_leases
            } else {
                self.is_severed(receiver, edge) && self.is_heard(edge)
            };
            let is_served = !is_left || !others.any(|other| self.is_heard(other) && !self.is_severed(receiver, other));
            // The dead edge, or another node that the move needs, is awaited or named.
            if !is_served && !names_something(group) && group.awaited.is_empty() {
                let text =
                    format!("flow {flow}: {} is left at n{edge}, which is dead, or has lost the link", member.address);
                self.violation(ViolationKind::Unserved, Finding::Unknown, flow, text);
            }
        }
    }
}

impl World<'_> {
    /// D289: no group is left to a headend that is dead and fenced, or has lost its link to the source, while the other
    /// node of the source can be the headend.
    fn check_headend(&mut self, flow: usize, group: &Group) {
        let Some(headend) = headend_of(group) else { return };
        let source = self.flows[flow].group;
        let is_left = if self.faults.is_dead(headend) {
            self.schedule.has_leases
        } else {
            self.is_source_severed(source, headend) && self.is_heard(headend)
        };
        let mut others = self.testbed.headends().filter(|other| *other != headend);
        let is_served = !is_left || !others.any(|other| self.is_heard(other) && !self.is_source_severed(source, other));
        if !is_served && !self.faults.store_changed && !names_something(group) && group.awaited.is_empty() {
            let text =
                format!("flow {flow}: n{headend} is the headend, and is dead, or has lost the link to the source");
            self.violation(ViolationKind::Unserved, Finding::Unknown, flow, text);
        }
    }

    /// Whether the source of a group has its headend, and the link to it.
    fn is_source_attached(&self, source: usize, group: &Group) -> bool {
        !self.is_source_severed(source, headend_of(group).unwrap_or_default())
    }

    /// Whether a node of a source, or the link between them, is dead for good.
    fn is_source_severed(&self, source: usize, node: usize) -> bool {
        let mut here = self.testbed.headends().zip([HOST_PORT, SECOND_HOST_PORT]).filter(|(other, _)| *other == node);
        let has_lost = |port| self.faults.source_link_down_until(source, port) == Instant::NEVER;
        self.faults.is_dead(node) || here.any(|(_, port)| has_lost(port))
    }
}

/// The headend of a group, as the API shows it.
fn headend_of(group: &Group) -> Option<usize> {
    group.tree.as_ref().and_then(|tree| node_of(&tree.nodes.first()?.name))
}

/// Whether the failure of a group names a receiver.
fn names_receiver(group: &Group, receiver: Ipv6Addr) -> bool {
    let failure = group.failure.as_deref().unwrap_or_default();
    failure.split_whitespace().any(|word| word == receiver.to_string())
}

/// A failure says that a leave was refused.
fn names_refused_leave(group: &Group) -> bool {
    group.failure.as_ref().is_some_and(|failure| failure.contains("receivers would be left"))
}

/// The node above another one in a group's tree.
fn parent_of(group: &Group, node: usize) -> Option<usize> {
    let name = crate::data_network::name_of(node);
    let shown = group.tree.iter().flat_map(|tree| &tree.nodes).find(|one| one.name == name)?;
    node_of(shown.parent.as_deref()?)
}

/// A failure says what is missing.
fn names_something(group: &Group) -> bool {
    group.failure.as_ref().is_some_and(|failure| !failure.is_empty())
}
