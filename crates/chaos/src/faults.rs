//! Faults of nodes, links and receivers.

use crate::outcome::{StepKind, ViolationKind};
use crate::schedule::{Event, NodePlan};
use crate::world::{Task, World};
use srdma_dataplane::DropReason;
use srdma_frame::PortId;
use srdma_sim::network::Direction;
use srdma_wire::Instant;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    /// The current parent.
    pub(crate) parent: Option<usize>,
    /// This parent, and those before: a group's nodes have an earlier one until a change is in effect.
    pub(crate) parents: BTreeSet<usize>,
    down_until: Instant,
    /// Links to parents that are down, each with the end of the failure.
    links_down: Vec<(usize, Instant)>,
    /// End of all faults that have begun.
    pub(crate) faulty_until: Instant,
}

impl NodeState {
    pub(crate) fn new(plan: &NodePlan) -> Self {
        NodeState {
            parent: plan.parent,
            parents: plan.parent.into_iter().collect(),
            down_until: Instant::ZERO,
            links_down: Vec::new(),
            faulty_until: Instant::ZERO,
        }
    }
}

/// Faults of a receiver, each with its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiverState {
    link_down_until: Instant,
    slow_until: Instant,
    slow_by_ns: u64,
    not_ready_until: Instant,
    congested_until: Instant,
    /// End of all faults that have begun; [`Instant::NEVER`] for a dead receiver.
    pub(crate) faulty_until: Instant,
}
impl World<'_> {
    /// Applies an event of the schedule.
    pub(crate) fn apply_event(&mut self, event: &Event) {
        self.log(&format_args!("{event:?}"));
        let now = self.network.now();
        match *event {
            Event::CrashNode { node, for_ns } => self.crash_node(node, now.after_ns(for_ns)),
            Event::CutNode { node, for_ns } => self.take_node_link_down(node, now.after_ns(for_ns)),
            Event::CutReceiver { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.link_down_until = state.link_down_until.max(now.after_ns(for_ns));
                self.note_receiver_fault(receiver, now.after_ns(for_ns));
            }
            Event::KillReceiver { receiver } => {
                self.receivers[receiver].link_down_until = Instant::NEVER;
                self.dead_unanswered.push((receiver, self.frames_lost_toward(receiver)));
                self.record_step_in_all_groups(StepKind::ReceiverDied(receiver));
                self.count("receiver death", 1);
                self.note_receiver_fault(receiver, Instant::NEVER);
            }
            Event::FreezeReceiver { receiver, for_ns } => {
                let thaw = now.after_ns(for_ns);
                for direction in [Direction::Down, Direction::Up] {
                    let faults = self.network.faults_mut(self.testbed.receiver_links[receiver], direction);
                    faults.held_until = faults.held_until.max(thaw);
                }
                self.count("receiver freeze", 1);
                self.note_receiver_fault(receiver, thaw);
            }
            Event::SlowReceiver { receiver, for_ns, by_ns } => {
                let state = &mut self.receivers[receiver];
                (state.slow_until, state.slow_by_ns) = (state.slow_until.max(now.after_ns(for_ns)), by_ns);
                self.count("slow receiver", 1);
                self.note_receiver_fault(receiver, now.after_ns(for_ns));
            }
            Event::StarveReceiver { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.not_ready_until = state.not_ready_until.max(now.after_ns(for_ns));
                self.count("receiver not ready", 1);
                self.note_receiver_fault(receiver, now.after_ns(for_ns));
            }
            Event::FailReceiver { receiver, group } => self.fail_receiver(receiver, group),
            Event::Congest { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.congested_until = state.congested_until.max(now.after_ns(for_ns));
                self.tasks.push(now.after_ns(for_ns), 0, Task::EndCongestion(receiver));
                self.update_receiver_faults(receiver);
            }
            Event::Forge(ref forgery) => self.forge(forgery),
            Event::UntrueResponse(ref untrue) => self.respond_untruly(untrue),
            Event::Replay { node, up, frames } => self.replay(node, up, frames),
            Event::Leave { group, receiver } => self.leave(group, receiver),
            Event::Join { group, receiver } => self.join(group, receiver),
            Event::Rehome { node, parent } => self.rehome(node, parent),
        }
    }

    /// Records a fault that lasts until `until`.
    fn note_fault(&mut self, until: Instant) {
        self.last_fault_at = self.network.now();
        if until < Instant::NEVER {
            self.faults_until = self.faults_until.max(until);
        }
    }

    fn note_receiver_fault(&mut self, receiver: usize, until: Instant) {
        self.note_fault(until);
        let state = &mut self.receivers[receiver];
        state.faulty_until = state.faulty_until.max(until);
        if until < Instant::NEVER {
            self.tasks.push(until, 0, Task::RepairReceiver(receiver));
        }
        self.update_receiver_faults(receiver);
    }

    /// Sets the faults of a receiver's link and host to its current state.
    pub(crate) fn update_receiver_faults(&mut self, receiver: usize) {
        let (now, state) = (self.network.now(), self.receivers[receiver].clone());
        let link = self.testbed.receiver_links[receiver];
        for direction in [Direction::Down, Direction::Up] {
            let faults = self.network.faults_mut(link, direction);
            faults.is_down = now < state.link_down_until;
            faults.per_frame_ns = if now < state.slow_until { state.slow_by_ns } else { 0 };
            faults.marks_congestion = direction == Direction::Down && now < state.congested_until;
        }
        self.network
            .with_host(self.testbed.receivers[receiver], |host| host.set_not_ready(now < state.not_ready_until));
    }

    /// Frames to a receiver that were lost while its link was down.
    fn frames_lost_toward(&self, receiver: usize) -> u64 {
        self.network.counters(self.testbed.receiver_links[receiver])[0].lost_link_down
    }

    /// Records which dead receivers have been sent their first frame since their death.
    pub(crate) fn check_dead_receivers(&mut self) {
        let dead_unanswered = std::mem::take(&mut self.dead_unanswered);
        for (receiver, lost_before) in dead_unanswered {
            if self.frames_lost_toward(receiver) > lost_before {
                self.record_step_in_all_groups(StepKind::SentToDeadReceiver(receiver));
            } else {
                self.dead_unanswered.push((receiver, lost_before));
            }
        }
    }

    fn record_step_in_all_groups(&mut self, kind: StepKind) {
        let now = self.network.now();
        self.flows.iter_mut().for_each(|flow| flow.note(now, kind));
    }

    fn fail_receiver(&mut self, receiver: usize, group: usize) {
        let member = self.flows[group].members.iter().find(|member| member.receiver == receiver);
        if let Some(qpn) = member.map(|member| member.qpn) {
            self.network.with_host(self.testbed.receivers[receiver], |host| host.refuse(qpn));
            self.flows[group].failed.push(receiver);
            self.count("fatal NAK", 1);
            self.note_fault(Instant::NEVER);
        }
    }

    fn take_node_link_down(&mut self, node: usize, until: Instant) {
        let Some(parent) = self.nodes[node].parent else {
            return;
        };
        self.nodes[node].links_down.push((parent, until));
        self.note_node_fault(node, until);
        self.tasks.push(until, 0, Task::RepairNode(node));
        self.update_node_links(node);
    }

    fn note_node_fault(&mut self, node: usize, until: Instant) {
        self.note_fault(until);
        self.nodes[node].faulty_until = self.nodes[node].faulty_until.max(until);
    }

    /// Sets the faults of the links above a node to its current state.
    pub(crate) fn update_node_links(&mut self, node: usize) {
        let now = self.network.now();
        for (parent, until) in &self.nodes[node].links_down {
            if let Some(link) = self.testbed.link_above(node, *parent) {
                for direction in [Direction::Down, Direction::Up] {
                    let faults = self.network.faults_mut(link, direction);
                    faults.is_down = now < *until;
                }
            }
        }
        let links_down = &mut self.nodes[node].links_down;
        let over = links_down.iter().any(|(_, until)| *until <= now);
        links_down.retain(|(_, until)| now < *until);
        if over {
            // Failures of the same link that last longer remain.
            self.update_node_links(node);
        }
    }

    /// Stops a node: its queues and learned state are lost.
    fn crash_node(&mut self, node: usize, until: Instant) {
        let state = &mut self.nodes[node];
        state.down_until = state.down_until.max(until);
        self.note_node_fault(node, until);
        self.tasks.push(until, 0, Task::RestartNode(node));
        self.stop_node(node);
    }

    fn stop_node(&mut self, node: usize) {
        let ports = self.testbed.port_count(node);
        let was_up = self.network.with(self.testbed.nodes[node], |element, _, pool| element.end_node(pool));
        if let Some(value) = was_up {
            self.count("node crash", 1);
            self.agent_stopped(node);
            value.workers().iter().for_each(|worker| add_drops(&mut self.outcome.drops, worker, ports));
        }
    }

    /// Restarts a node without any state but its configuration.
    pub(crate) fn restart_node(&mut self, node: usize) {
        let now = self.network.now();
        if now < self.nodes[node].down_until {
            return;
        }
        match self.testbed.node(node, true) {
            Ok(value) => {
                self.network.with(self.testbed.nodes[node], |element, _, _| *element = value);
            }
            Err(error) => return self.violation(ViolationKind::Setup, format!("node {node}: {error}")),
        }
        self.outcome.restarts += 1;
        self.log(&format_args!("node {node} has restarted"));
        self.record_step_in_all_groups(StepKind::NodeRestarted(node));
        self.agent_restarted(node);
        self.node_recovered(node);
    }

    /// All faults of a node are over: its groups must make progress from now on.
    pub(crate) fn node_recovered(&mut self, node: usize) {
        let now = self.network.now();
        for group in 0..self.flows.len() {
            if self.is_in_tree(group, node) && !self.flows[group].is_finished() && self.nodes[node].faulty_until <= now
            {
                self.recovering_since[group].push(now);
            }
        }
    }

    /// A slow receiver has recovered when its backlog is empty.
    pub(crate) fn slow_receiver_recovers(&mut self, receiver: usize) {
        let behind_until = self.network.delayed_until(self.testbed.receiver_links[receiver]);
        if behind_until > self.network.now() {
            self.note_receiver_fault(receiver, behind_until);
        } else {
            self.receiver_recovered(receiver);
        }
    }

    /// All faults of a receiver are over: its groups must make progress from now on.
    fn receiver_recovered(&mut self, receiver: usize) {
        let now = self.network.now();
        for group in 0..self.flows.len() {
            let is_member = self.flows[group].members.iter().any(|member| member.receiver == receiver);
            if is_member && !self.flows[group].is_finished() && self.receivers[receiver].faulty_until <= now {
                self.recovering_since[group].push(now);
            }
        }
    }

    fn replay(&mut self, node: usize, up: bool, frames: u32) {
        let direction = if up { Direction::Up } else { Direction::Down };
        let link = self.nodes[node].parent.and_then(|parent| self.testbed.link_above(node, parent));
        if let Some(link) = link {
            let replayed = self.network.replay(link, direction, frames as usize);
            self.count("replay", replayed as u64);
        }
    }

    /// Counts the faults that links applied to frames. Must be called once.
    pub(crate) fn count_links(&mut self) {
        let of_receivers = self.testbed.receiver_links.iter().map(|link| (*link, "receiver link cut"));
        let links: Vec<_> =
            self.testbed.upper_links().map(|link| (link, "node link cut")).chain(of_receivers).collect();
        for (link, link_down) in links {
            for counters in self.network.counters(link) {
                self.count("loss", counters.lost);
                self.count("duplication", counters.duplicated);
                self.count("reordering", counters.reordered);
                self.count("delay spike", counters.spiked);
                self.count("corruption", counters.corrupted);
                self.count("congestion", counters.marked);
                self.count(link_down, counters.lost_link_down);
            }
        }
    }

    /// Adds the drops of all running nodes.
    pub(crate) fn count_drops(&mut self) {
        for node in 0..self.testbed.nodes.len() {
            let ports = self.testbed.port_count(node);
            for worker in self.network.workers(self.testbed.nodes[node]) {
                add_drops(&mut self.outcome.drops, worker, ports);
            }
        }
    }
}

fn add_drops(drops: &mut BTreeMap<&'static str, u64>, node: &srdma_dataplane::Node, ports: usize) {
    let of_ports = (0..ports).filter_map(|port| node.port_counters(PortId(port as u16)));
    for counters in of_ports.map(|counters| &counters.drops).chain([node.own_drops()]) {
        for (reason, count) in counters.iter() {
            *drops.entry(DropReason::name(reason)).or_default() += count;
        }
    }
}
