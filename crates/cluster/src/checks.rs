//! Checks of a run. They read what the API shows, what the nodes' data planes have, packets by their offsets, and the
//! memory of the receivers.

use crate::adapter;
use crate::controller::Controller;
use crate::copies::{Copies, IN_FLIGHT_NS};
use crate::data_network::node_of;
use crate::flow::Flow;
use crate::orders::Orders;
use crate::outcome::{Finding, ViolationKind};
use crate::reading::{Seen, distance};
use crate::world::{DETECTION_NS, World};
use srdma_api::{Group, GroupState, Receiver, ReceiverState, TreeNodeView};
use srdma_chaos::address;
use srdma_controller_core::Core;
use srdma_dataplane::Node;
use srdma_group::Parent;
use srdma_wire::Instant;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::rc::Rc;

/// A source makes progress at least so often when its group is ready: some ACK timeouts and messages.
const PROGRESS_NS: u64 = 1_500_000_000;

/// Requests of a node or a source between two checks: each of a burst of orders takes some milliseconds.
const MOST_REQUESTS: u32 = 20;

/// State of the checks.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) reported: BTreeSet<(ViolationKind, Finding, usize)>,
    /// Since when a node differs from what is shown, by group and node.
    differs_since: BTreeMap<(u32, usize), Instant>,
    pub(crate) copies: Copies,
    pub(crate) orders: Orders,
    pub(crate) reservations: crate::two_steps::Reservations,
    /// Since when everything is as it should be.
    pub(crate) calm_since: Option<Instant>,
    /// What the API showed last of each flow, while the controller is down.
    kept: BTreeMap<usize, Option<Rc<Group>>>,
    /// The groups as the API shows them, at a start and a version of the controller's state.
    views: RefCell<Views>,
}

#[derive(Default)]
struct Views {
    of: (u32, u64),
    groups: BTreeMap<u32, Option<Rc<Group>>>,
}

impl Checks {
    /// The controller goes down: its last views stand until it is back.
    pub(crate) fn keep_views(&mut self, core: &Core, flows: &[Flow]) {
        self.kept = flows.iter().enumerate().map(|(number, flow)| (number, shown(core, flow).map(Rc::new))).collect();
    }
}

/// The group of a flow as the API shows it.
fn shown(core: &Core, flow: &Flow) -> Option<Group> {
    adapter::shown_group(core, flow.id?).filter(|group| group.source.qpn == flow.qpn.get())
}

impl World<'_> {
    /// The group of a flow as the API shows it, or showed it last.
    pub(crate) fn view(&self, flow: usize) -> Option<Rc<Group>> {
        let Some(controller) = &self.controller else { return self.checks.kept.get(&flow).cloned().flatten() };
        let flow = &self.flows[flow];
        self.shown_by(controller, flow.id?).filter(|group| group.source.qpn == flow.qpn.get())
    }

    /// The group of a number as the API of a controller shows it.
    pub(crate) fn shown_by(&self, controller: &Controller, id: u32) -> Option<Rc<Group>> {
        let mut views = self.checks.views.borrow_mut();
        let version = (controller.run, controller.version);
        if views.of != version {
            *views = Views { of: version, groups: BTreeMap::new() };
        }
        let shown = || adapter::shown_group(controller.core(), id).map(Rc::new);
        views.groups.entry(id).or_insert_with(shown).clone()
    }

    /// The members of a flow as the API shows them: receiver, queue pair, and first PSN.
    fn members(&self, flow: usize) -> Option<Vec<(Ipv6Addr, u32, u32)>> {
        let group = self.view(flow)?;
        let first = group.initial_psn;
        let members = group.members.iter().filter(|member| member.state == ReceiverState::Member);
        Some(members.map(|member| (member.address, member.qpn, member.joined_psn.unwrap_or(first))).collect())
    }

    /// Checks the responses that went to sources since the last call.
    pub(crate) fn check_responses(&mut self) {
        for tap in 0..self.taps.len() {
            let (group, node, ref tap) = self.taps[tap];
            for seen in tap.responses() {
                let flow = self.flows.iter().position(|flow| flow.group == group && flow.qpn.get() == seen.qpn);
                if let Some(flow) = flow {
                    self.check_lease(node, flow, "acknowledges to its source");
                    self.check_response(flow, seen);
                }
            }
        }
    }

    /// MT-5.3.1-1, MT-5.3.2-1: every packet that a response covers is in the memory of every member from its first PSN
    /// on. Without members nothing may be covered.
    fn check_response(&mut self, flow: usize, seen: Seen) {
        let state = &self.flows[flow];
        let near = (u64::from(state.first_psn) + state.confirmed) & 0xFF_FFFF;
        let ahead = distance(near as u32, seen.psn) + i64::from(seen.is_ack);
        let packets = u64::try_from(state.confirmed as i64 + ahead).unwrap_or(0);
        self.outcome.responses += 1;
        let Some(members) = self.members(flow).filter(|_| !self.flows[flow].is_spoiled) else { return };
        let mut missing = None;
        // After a start of the controller the API vouches for no receiver before its nodes have reported.
        // One that leaves is served until its leave is committed.
        let has_others = self.view(flow).is_some_and(|group| {
            let is_other =
                |member: &Receiver| matches!(member.state, ReceiverState::Unverified | ReceiverState::Leaving);
            group.summary.state == GroupState::Verifying || group.members.iter().any(is_other)
        });
        if members.is_empty() && !has_others && packets > self.flows[flow].confirmed {
            missing = Some((None, "the group has no member".to_owned()));
        }
        for (address, qpn, first_psn) in members {
            self.outcome.comparisons += 1;
            let state = &self.flows[flow];
            let (from, to) = (state.octets_before(first_psn), state.octets_of(packets));
            let receiver = self.testbed.receiver_of(address);
            let has = receiver.and_then(|receiver| {
                let participant = state.participant(receiver, qpn)?;
                let connected = participant.connected?;
                // What lies before the queue pair's first PSN did not arrive.
                let begins = state.octets_before(connected) <= from;
                let memory = state.memory(receiver, participant, &self.testbed, &self.network)?;
                (begins && memory.agrees_from(from)).then(|| memory.complete_octets())
            });
            if to > from && has.unwrap_or(0) < to {
                let text = format!("{address} has {} of {to} octets", has.unwrap_or(0));
                missing = Some((receiver, text));
                break;
            }
        }
        match missing {
            Some((receiver, text)) => {
                let finding = self.diagnose_response(flow, receiver);
                let text = format!("flow {flow}: PSN {} covers {packets} packets, but {text}", seen.psn);
                self.violation(ViolationKind::Safety, finding, flow, text);
                self.flows[flow].is_spoiled = true;
            }
            None if packets > self.flows[flow].confirmed => {
                let now = self.now();
                self.log(&format_args!("flow {flow}: {packets} packets are confirmed"));
                let state = &mut self.flows[flow];
                (state.confirmed, state.progress_at) = (packets, now);
            }
            None => {}
        }
    }

    /// D122: a node sends nothing for a group when its lease, counted from the last report that was answered, is over.
    pub(crate) fn check_lease(&mut self, node: usize, flow: usize, what: &str) {
        let Some(answered) = self.agents[node].answered_at.filter(|_| self.schedule.has_leases) else { return };
        let end = answered.after_ns(adapter::NODE_LEASE_NS + IN_FLIGHT_NS);
        if self.now() > end {
            let text = format!("flow {flow}: n{node} {what}, and its lease ended at {} ns", end.as_ns());
            self.violation(ViolationKind::Lease, Finding::Unknown, node, text);
        }
    }

    /// Compares a receiver's memory with the source's data, as it is written.
    pub(crate) fn check_memory(&mut self, receiver: usize) {
        for flow in 0..self.flows.len() {
            let state = &self.flows[flow];
            if state.is_over {
                continue;
            }
            let Some(participant) = state.participants.get(&receiver) else { continue };
            let Some(first_psn) = participant.connected else { continue };
            let from = state.octets_before(first_psn);
            let memory = state.memory(receiver, participant, &self.testbed, &self.network);
            if memory.is_some_and(|memory| !memory.agrees_from(from)) {
                let text = format!("flow {flow}: receiver {receiver} has octets that differ from the source's");
                let finding = if self.faults.store_changed { Finding::OtherStore } else { Finding::Unknown };
                self.violation(ViolationKind::WrongData, finding, flow, text);
            }
        }
    }

    /// The checks at intervals.
    pub(crate) fn check_all(&mut self) {
        self.poll_members();
        self.report_receivers();
        self.check_requests();
        self.check_orders();
        self.check_succession();
        for node in 0..self.agents.len() {
            if !self.is_heard(node) {
                self.faults.unheard_at[node] = self.now();
            }
        }
        let mut is_calm = self.controller.is_some();
        let mut differing = BTreeSet::new();
        for flow in 0..self.flows.len() {
            if self.flows[flow].is_over {
                continue;
            }
            let Some(group) = self.view(flow) else {
                is_calm &= self.flows[flow].is_closed;
                continue;
            };
            let id = group.summary.id;
            let is_ready = group.summary.state == GroupState::Ready;
            is_calm &= is_ready && self.flows[flow].steps.is_empty() && self.makes_progress(flow);
            if !is_ready || self.controller.is_none() {
                continue;
            }
            for (node, what) in self.differences(&group) {
                is_calm = false;
                if !is_named(&group, node) {
                    differing.insert((id, node));
                    let finding = self.diagnose_node(node);
                    self.check_difference(flow, id, node, finding, &what);
                }
            }
        }
        is_calm &= self.check_leftovers(&mut differing);
        self.checks.differs_since.retain(|subject, _| differing.contains(subject));
        is_calm &= self.tasks_are_calm();
        self.checks.calm_since = match self.checks.calm_since {
            Some(since) if is_calm => Some(since),
            _ if is_calm => Some(self.now()),
            _ => None,
        };
    }

    /// Nodes and sources wait between requests, or the controller delays its replies.
    fn check_requests(&mut self) {
        for flow in 0..self.flows.len() {
            let requests = std::mem::take(&mut self.flows[flow].requests);
            if requests > MOST_REQUESTS {
                let text = format!("flow {flow}: its source has sent {requests} requests within 100 ms");
                self.violation(ViolationKind::Busy, Finding::SourceAsksAgain, flow, text);
            }
        }
        for node in 0..self.agents.len() {
            let requests = std::mem::take(&mut self.agents[node].requests);
            if requests > MOST_REQUESTS {
                let text = format!("n{node} has sent {requests} requests within 100 ms");
                self.violation(ViolationKind::Busy, Finding::Unknown, node, text);
            }
        }
    }

    /// Nodes that are heard have no group that the API does not show, or shows without them. Groups of another store
    /// stay (see `docs/controller.md`). Returns whether there is none.
    fn check_leftovers(&mut self, differing: &mut BTreeSet<(u32, usize)>) -> bool {
        let Some(controller) = self.controller.as_ref().filter(|_| !self.faults.store_changed) else { return true };
        let mut leftovers = Vec::new();
        for node in 0..self.agents.len() {
            let workers = self.network.workers(self.testbed.nodes[node]);
            if workers.is_empty() || !self.is_heard(node) {
                continue;
            }
            let name = crate::data_network::name_of(node);
            let groups: BTreeSet<u32> = workers.iter().flat_map(Node::groups).map(|id| id.0).collect();
            for id in groups {
                let group = self.shown_by(controller, id);
                let is_shown = group.as_ref().is_some_and(|group| {
                    // A change in progress has nodes before and after it.
                    group.summary.state != GroupState::Ready
                        || group.tree.iter().flat_map(|tree| &tree.nodes).any(|one| one.name == name)
                });
                if !is_shown {
                    leftovers.push((id, node, group.is_none()));
                }
            }
        }
        let is_none = leftovers.is_empty();
        for (id, node, is_gone) in leftovers {
            differing.insert((id, node));
            let finding = if is_gone { Finding::LeftoverKept } else { Finding::Unknown };
            let flow = self.flows.iter().rposition(|flow| flow.id == Some(id)).unwrap_or_default();
            self.check_difference(flow, id, node, finding, "still has it without being in its tree");
        }
        is_none
    }

    fn tasks_are_calm(&self) -> bool {
        self.crash.is_none()
            && self.aimed.is_empty()
            && self.flow_of.iter().flatten().all(|flow| self.flows[*flow].steps.is_empty())
    }

    pub(crate) fn makes_progress(&self, flow: usize) -> bool {
        let state = &self.flows[flow];
        state.is_exhausted() || self.now().since(state.progress_at).as_nanos() <= u128::from(PROGRESS_NS)
    }

    fn check_difference(&mut self, flow: usize, id: u32, node: usize, finding: Finding, what: &str) {
        let now = self.now();
        let since = *self.checks.differs_since.entry((id, node)).or_insert(now);
        let since = since.max(self.faults.controller_started);
        if now.since(since).as_nanos() > u128::from(DETECTION_NS) {
            let text = format!("flow {flow}: group {id} is ready or gone, but n{node} {what}");
            self.violation(ViolationKind::NotAsShown, finding, flow, text);
        }
    }

    /// The nodes that do not have what the API shows.
    pub(crate) fn differences(&self, group: &Group) -> Vec<(usize, String)> {
        let Some(tree) = &group.tree else { return Vec::new() };
        let mut differences = Vec::new();
        for shown in &tree.nodes {
            let Some(node) = node_of(&shown.name) else { continue };
            let what = match self.network.workers(self.testbed.nodes[node]) {
                [] => Some("is down".to_owned()),
                workers => workers.iter().find_map(|worker| difference(group, shown, worker)),
            };
            differences.extend(what.map(|what| (node, what)));
        }
        differences
    }

    /// Whether a node does not have what the API shows.
    pub(crate) fn differs(&self, group: &Group, node: usize) -> bool {
        self.differences(group).iter().any(|(other, _)| *other == node)
    }
}

/// Whether the failure or the awaited nodes of a group name a node.
pub(crate) fn is_named(group: &Group, node: usize) -> bool {
    let (name, loopback) = (crate::data_network::name_of(node), address::node(node).loopback.to_string());
    let failure = group.failure.as_deref().unwrap_or_default();
    let names = |text: &str| text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == name);
    group.awaited.contains(&name) || names(failure) || failure.contains(&loopback)
}

/// What a node has otherwise than the API shows it.
fn difference(group: &Group, shown: &TreeNodeView, value: &Node) -> Option<String> {
    let Some(entry) = value.group_entry(adapter::group_id(group.summary.id)) else {
        return Some("does not have it".to_owned());
    };
    let branches: BTreeSet<Ipv6Addr> = entry.branches.iter().map(|branch| branch.responder).collect();
    let shown_branches: BTreeSet<Ipv6Addr> = shown.branches.iter().map(|branch| branch.address).collect();
    if entry.proxy != group.summary.proxy {
        return Some(format!("has another group: {}", entry.proxy));
    }
    if branches != shown_branches {
        return Some(format!("has epoch {}, branches {branches:?} instead of {shown_branches:?}", entry.epoch));
    }
    if let Some(headend) = entry.headend.as_ref().filter(|headend| !headend.lists.is_empty()) {
        let listed = headend.lists.iter().flat_map(|list| &list.receivers).map(|receiver| receiver.address);
        // Receivers of bud nodes are in no list (D246).
        let others = group.tree.iter().flat_map(|tree| &tree.nodes).filter(|node| node.role != "edge");
        let of_others: BTreeSet<Ipv6Addr> =
            others.flat_map(|node| &node.branches).map(|branch| branch.address).collect();
        let members = group.members.iter().filter(|member| member.state != ReceiverState::Joining);
        let members = members.map(|member| member.address).filter(|member| !of_others.contains(member));
        let members: BTreeSet<Ipv6Addr> = members.collect();
        if listed.collect::<BTreeSet<Ipv6Addr>>() != members {
            return Some(format!("has epoch {}, and lists of other receivers", entry.epoch));
        }
    }
    let parent = match entry.parent {
        Parent::Source(source) => {
            let is_other = source.address != group.source.address || source.qpn.get() != group.source.qpn;
            return is_other.then(|| format!("answers to queue pair {} of {}", source.qpn.get(), source.address));
        }
        Parent::Node { loopback, .. } => loopback,
    };
    let shown_parent = shown.parent.as_deref().and_then(node_of).map(|node| address::node(node).loopback);
    if shown_parent != Some(parent) {
        return Some(format!("has epoch {}, parent {parent} instead of {shown_parent:?}", entry.epoch));
    }
    let of_member = |address: Ipv6Addr| group.members.iter().find(|member| member.address == address);
    let other =
        entry.receivers.iter().find(|one| of_member(one.address).is_some_and(|member| member.qpn != one.qpn.get()));
    other.map(|one| format!("has queue pair {} of {}", one.qpn.get(), one.address))
}
