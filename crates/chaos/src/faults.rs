//! Faults of nodes, links and receivers.

use crate::outcome::{StepKind, ViolationKind};
use crate::schedule::{Event, NodePlan};
use crate::world::{Task, World};
use srdma_dataplane::DropReason;
use srdma_frame::PortId;
use srdma_sim::network::Way;
use srdma_sim::station::Member;
use srdma_wire::Instant;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    /// The current parent.
    pub(crate) parent: Option<usize>,
    down_until: Instant,
    /// Cut links to parents, each with the end of the cut.
    cuts: Vec<(usize, Instant)>,
    /// End of all faults that have begun.
    pub(crate) faulty_until: Instant,
}

impl NodeState {
    pub(crate) fn new(plan: &NodePlan) -> Self {
        NodeState { parent: plan.parent, down_until: Instant::ZERO, cuts: Vec::new(), faulty_until: Instant::ZERO }
    }
}

/// Faults of a receiver, each with its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiverState {
    cut: Instant,
    slow: Instant,
    slow_by_ns: u64,
    starving: Instant,
    congested: Instant,
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
            Event::CutNode { node, for_ns } => self.cut_node(node, now.after_ns(for_ns)),
            Event::CutReceiver { receiver, for_ns } => {
                self.receivers[receiver].cut = self.receivers[receiver].cut.max(now.after_ns(for_ns));
                self.note_receiver_fault(receiver, now.after_ns(for_ns));
            }
            Event::KillReceiver { receiver } => {
                self.receivers[receiver].cut = Instant::NEVER;
                self.dead_unanswered.push((receiver, self.frames_cut_toward(receiver)));
                self.record_step_in_all_groups(StepKind::ReceiverDied(receiver));
                self.count("receiver death", 1);
                self.note_receiver_fault(receiver, Instant::NEVER);
            }
            Event::FreezeReceiver { receiver, for_ns } => {
                let thaw = now.after_ns(for_ns);
                for way in [Way::Down, Way::Up] {
                    let trouble = self.network.trouble_mut(self.testbed.receiver_links[receiver], way);
                    trouble.held_until = trouble.held_until.max(thaw);
                }
                self.count("receiver freeze", 1);
                self.note_receiver_fault(receiver, thaw);
            }
            Event::SlowReceiver { receiver, for_ns, by_ns } => {
                let state = &mut self.receivers[receiver];
                (state.slow, state.slow_by_ns) = (state.slow.max(now.after_ns(for_ns)), by_ns);
                self.count("slow receiver", 1);
                self.note_receiver_fault(receiver, now.after_ns(for_ns));
            }
            Event::StarveReceiver { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.starving = state.starving.max(now.after_ns(for_ns));
                self.count("receiver not ready", 1);
                self.note_receiver_fault(receiver, now.after_ns(for_ns));
            }
            Event::FailReceiver { receiver, group } => self.fail_receiver(receiver, group),
            Event::Congest { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.congested = state.congested.max(now.after_ns(for_ns));
                self.tasks.push(now.after_ns(for_ns), 0, Task::EndCongestion(receiver));
                self.update_receiver_faults(receiver);
            }
            Event::Forge(ref forgery) => self.forge(forgery),
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
        for way in [Way::Down, Way::Up] {
            let trouble = self.network.trouble_mut(link, way);
            trouble.is_cut = now < state.cut;
            trouble.per_frame_ns = if now < state.slow { state.slow_by_ns } else { 0 };
            trouble.marks_congestion = way == Way::Down && now < state.congested;
        }
        self.network.with_host(self.testbed.receivers[receiver], |host| host.starve(now < state.starving));
    }

    /// Frames to a receiver that its cut link dropped.
    fn frames_cut_toward(&self, receiver: usize) -> u64 {
        self.network.counters(self.testbed.receiver_links[receiver])[0].cut
    }

    /// Records which dead receivers have been sent their first frame since their death.
    pub(crate) fn check_dead_receivers(&mut self) {
        let dead_unanswered = std::mem::take(&mut self.dead_unanswered);
        for (receiver, cut_before) in dead_unanswered {
            if self.frames_cut_toward(receiver) > cut_before {
                self.record_step_in_all_groups(StepKind::SentToDeadReceiver(receiver));
            } else {
                self.dead_unanswered.push((receiver, cut_before));
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

    fn cut_node(&mut self, node: usize, until: Instant) {
        let Some(parent) = self.nodes[node].parent else {
            return;
        };
        self.nodes[node].cuts.push((parent, until));
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
        for (parent, until) in &self.nodes[node].cuts {
            if let Some(link) = self.testbed.link_above(node, *parent) {
                for way in [Way::Down, Way::Up] {
                    let trouble = self.network.trouble_mut(link, way);
                    trouble.is_cut = now < *until;
                }
            }
        }
        let cuts = &mut self.nodes[node].cuts;
        let over = cuts.iter().any(|(_, until)| *until <= now);
        cuts.retain(|(_, until)| now < *until);
        if over {
            // Cuts of the same link that last longer remain.
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
        let was_up = self.network.with(self.testbed.nodes[node], |member, _, pool| match std::mem::take(member) {
            Member::Node(mut value) => {
                for port in 0..ports {
                    value.drop_queue(PortId(port as u16), pool);
                }
                Some(value)
            }
            Member::Absent => None,
            Member::Host(host) => {
                *member = Member::Host(host);
                None
            }
        });
        if let Some(value) = was_up {
            self.count("node crash", 1);
            self.agent_stopped(node);
            add_drops(&mut self.outcome.drops, &value, ports);
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
                self.network.with(self.testbed.nodes[node], |member, _, _| *member = Member::Node(Box::new(value)));
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
        let behind_until = self.network.held_back_until(self.testbed.receiver_links[receiver]);
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
        let way = if up { Way::Up } else { Way::Down };
        let link = self.nodes[node].parent.and_then(|parent| self.testbed.link_above(node, parent));
        if let Some(link) = link {
            let replayed = self.network.replay(link, way, frames as usize);
            self.count("replay", replayed as u64);
        }
    }

    /// Counts the faults that links applied to frames. Must be called once.
    pub(crate) fn count_links(&mut self) {
        let of_receivers = self.testbed.receiver_links.iter().map(|link| (*link, "receiver link cut"));
        let links: Vec<_> =
            self.testbed.upper_links().map(|link| (link, "node link cut")).chain(of_receivers).collect();
        for (link, cut) in links {
            for counters in self.network.counters(link) {
                self.count("loss", counters.lost);
                self.count("duplication", counters.duplicated);
                self.count("reordering", counters.reordered);
                self.count("delay spike", counters.spiked);
                self.count("corruption", counters.corrupted);
                self.count("congestion", counters.marked);
                self.count(cut, counters.cut);
            }
        }
    }

    /// Adds the drops of all running nodes.
    pub(crate) fn count_drops(&mut self) {
        for node in 0..self.testbed.nodes.len() {
            let ports = self.testbed.port_count(node);
            if let Some(value) = self.network.node(self.testbed.nodes[node]) {
                add_drops(&mut self.outcome.drops, value, ports);
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
