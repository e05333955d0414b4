//! What happens to nodes, links and receivers.

use crate::outcome::{ComplaintKind, StepKind};
use crate::schedule::{Event, NodePlan};
use crate::world::{Task, World};
use srdma_dataplane::DropReason;
use srdma_frame::PortId;
use srdma_sim::network::Way;
use srdma_sim::station::Member;
use srdma_wire::Instant;
use std::collections::BTreeMap;

/// What is wrong with a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    /// The node above it now.
    pub(crate) parent: Option<usize>,
    /// Down until then.
    down_until: Instant,
    /// Cut off from the node above, each until then.
    cuts: Vec<(usize, Instant)>,
    /// When all that is wrong with it, of what has begun, is over.
    pub(crate) troubled_until: Instant,
}

impl NodeState {
    pub(crate) fn new(plan: &NodePlan) -> Self {
        NodeState { parent: plan.parent, down_until: Instant::ZERO, cuts: Vec::new(), troubled_until: Instant::ZERO }
    }
}

/// What is wrong with a receiver, each until a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiverState {
    cut: Instant,
    slow: Instant,
    slow_by_ns: u64,
    starving: Instant,
    congested: Instant,
    /// When all that is wrong with it, of what has begun, is over; never for a dead one.
    pub(crate) troubled_until: Instant,
}

/// Never.
pub(crate) const NEVER: Instant = Instant::from_ns(u64::MAX);

impl World<'_> {
    /// An event of the schedule.
    pub(crate) fn happen(&mut self, event: &Event) {
        self.tell(&format_args!("{event:?}"));
        let now = self.network.now();
        match *event {
            Event::CrashNode { node, for_ns } => self.crash(node, now.after_ns(for_ns)),
            Event::CutNode { node, for_ns } => self.cut_node(node, now.after_ns(for_ns)),
            Event::CutReceiver { receiver, for_ns } => {
                self.receivers[receiver].cut = self.receivers[receiver].cut.max(now.after_ns(for_ns));
                self.trouble_receiver(receiver, now.after_ns(for_ns));
            }
            Event::KillReceiver { receiver } => {
                self.receivers[receiver].cut = NEVER;
                self.dying.push((receiver, self.cut_toward(receiver)));
                self.note_everywhere(StepKind::Death(receiver));
                self.count("receiver death", 1);
                self.trouble_receiver(receiver, NEVER);
            }
            Event::FreezeReceiver { receiver, for_ns } => {
                let thaw = now.after_ns(for_ns);
                for way in [Way::Down, Way::Up] {
                    let trouble = self.network.trouble_mut(self.site.receiver_links[receiver], way);
                    trouble.held_until = trouble.held_until.max(thaw);
                }
                self.count("receiver freeze", 1);
                self.trouble_receiver(receiver, thaw);
            }
            Event::SlowReceiver { receiver, for_ns, by_ns } => {
                let state = &mut self.receivers[receiver];
                (state.slow, state.slow_by_ns) = (state.slow.max(now.after_ns(for_ns)), by_ns);
                self.count("slow receiver", 1);
                self.trouble_receiver(receiver, now.after_ns(for_ns));
            }
            Event::StarveReceiver { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.starving = state.starving.max(now.after_ns(for_ns));
                self.count("receiver not ready", 1);
                self.trouble_receiver(receiver, now.after_ns(for_ns));
            }
            Event::FailReceiver { receiver, group } => self.fail_receiver(receiver, group),
            Event::Congest { receiver, for_ns } => {
                let state = &mut self.receivers[receiver];
                state.congested = state.congested.max(now.after_ns(for_ns));
                self.agenda.note(now.after_ns(for_ns), Task::EndCongestion(receiver));
                self.mend_receiver(receiver);
            }
            Event::Forge(ref forgery) => self.forge(forgery),
            Event::Replay { node, up, frames } => self.replay(node, up, frames),
            Event::Leave { group, receiver } => self.leave(group, receiver),
            Event::Join { group, receiver } => self.join(group, receiver),
            Event::Rehome { node, parent } => self.rehome(node, parent),
        }
    }

    /// Something has begun that lasts until then.
    fn trouble(&mut self, until: Instant) {
        self.trouble_began = self.network.now();
        if until < NEVER {
            self.trouble_until = self.trouble_until.max(until);
        }
    }

    fn trouble_receiver(&mut self, receiver: usize, until: Instant) {
        self.trouble(until);
        let state = &mut self.receivers[receiver];
        state.troubled_until = state.troubled_until.max(until);
        if until < NEVER {
            self.agenda.note(until, Task::MendReceiver(receiver));
        }
        self.mend_receiver(receiver);
    }

    /// Brings links and host of a receiver to what its state is now.
    pub(crate) fn mend_receiver(&mut self, receiver: usize) {
        let (now, state) = (self.network.now(), self.receivers[receiver].clone());
        let link = self.site.receiver_links[receiver];
        for way in [Way::Down, Way::Up] {
            let trouble = self.network.trouble_mut(link, way);
            trouble.is_cut = now < state.cut;
            trouble.per_frame_ns = if now < state.slow { state.slow_by_ns } else { 0 };
            trouble.marks_congestion = way == Way::Down && now < state.congested;
        }
        self.network.with_host(self.site.receivers[receiver], |host| host.starve(now < state.starving));
    }

    /// Frames that were sent to a receiver and did not reach it because its link was cut.
    fn cut_toward(&self, receiver: usize) -> u64 {
        self.network.counters(self.site.receiver_links[receiver])[0].cut
    }

    /// Notes which receivers have been sent something for the first time since they died.
    pub(crate) fn look_at_the_dying(&mut self) {
        let dying = std::mem::take(&mut self.dying);
        for (receiver, cut_before) in dying {
            if self.cut_toward(receiver) > cut_before {
                self.note_everywhere(StepKind::Unanswered(receiver));
            } else {
                self.dying.push((receiver, cut_before));
            }
        }
    }

    fn note_everywhere(&mut self, kind: StepKind) {
        let now = self.network.now();
        self.flows.iter_mut().for_each(|flow| flow.note(now, kind));
    }

    fn fail_receiver(&mut self, receiver: usize, group: usize) {
        let member = self.flows[group].members.iter().find(|member| member.receiver == receiver);
        if let Some(qpn) = member.map(|member| member.qpn) {
            self.network.with_host(self.site.receivers[receiver], |host| host.refuse(qpn));
            self.flows[group].failed.push(receiver);
            self.count("fatal NAK", 1);
            self.trouble(NEVER);
        }
    }

    fn cut_node(&mut self, node: usize, until: Instant) {
        let Some(parent) = self.nodes[node].parent else {
            return;
        };
        self.nodes[node].cuts.push((parent, until));
        self.trouble_node(node, until);
        self.agenda.note(until, Task::MendNode(node));
        self.mend_node(node);
    }

    fn trouble_node(&mut self, node: usize, until: Instant) {
        self.trouble(until);
        self.nodes[node].troubled_until = self.nodes[node].troubled_until.max(until);
    }

    /// Brings the links above a node to what its state is now.
    pub(crate) fn mend_node(&mut self, node: usize) {
        let now = self.network.now();
        for (parent, until) in &self.nodes[node].cuts {
            if let Some(link) = self.site.link_above(node, *parent) {
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
            // Those that last longer have their say.
            self.mend_node(node);
        }
    }

    /// The node is gone, with all that it had queued and learnt.
    fn crash(&mut self, node: usize, until: Instant) {
        let state = &mut self.nodes[node];
        state.down_until = state.down_until.max(until);
        self.trouble_node(node, until);
        self.agenda.note(until, Task::NodeBack(node));
        self.take_down(node);
    }

    fn take_down(&mut self, node: usize) {
        let ports = self.site.port_count(node);
        let was_up = self.network.with(self.site.nodes[node], |member, _, pool| match std::mem::take(member) {
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
            self.agent_down(node);
            add_drops(&mut self.outcome.drops, &value, ports);
        }
    }

    /// The node starts again with what was committed, and knows nothing else.
    pub(crate) fn bring_back(&mut self, node: usize) {
        let now = self.network.now();
        if now < self.nodes[node].down_until {
            return;
        }
        match self.site.node(node, true) {
            Ok(value) => {
                self.network.with(self.site.nodes[node], |member, _, _| *member = Member::Node(Box::new(value)));
            }
            Err(error) => return self.complain(ComplaintKind::SetUp, format!("node {node}: {error}")),
        }
        self.outcome.restarts += 1;
        self.tell(&format_args!("node {node} is back"));
        self.note_everywhere(StepKind::NodeBack(node));
        self.agent_back(node);
        self.node_is_whole(node);
    }

    /// What was wrong with a node is over: from now on the groups that it serves are to make progress.
    pub(crate) fn node_is_whole(&mut self, node: usize) {
        let now = self.network.now();
        for group in 0..self.flows.len() {
            if self.is_in_tree(group, node) && !self.flows[group].is_over() && self.nodes[node].troubled_until <= now {
                self.comebacks[group].push(now);
            }
        }
    }

    /// A receiver that was slow is well when it has worked off what has come meanwhile.
    pub(crate) fn receiver_catches_up(&mut self, receiver: usize) {
        let behind_until = self.network.held_back_until(self.site.receiver_links[receiver]);
        if behind_until > self.network.now() {
            self.trouble_receiver(receiver, behind_until);
        } else {
            self.receiver_is_well(receiver);
        }
    }

    /// The same of a receiver.
    fn receiver_is_well(&mut self, receiver: usize) {
        let now = self.network.now();
        for group in 0..self.flows.len() {
            let is_member = self.flows[group].members.iter().any(|member| member.receiver == receiver);
            if is_member && !self.flows[group].is_over() && self.receivers[receiver].troubled_until <= now {
                self.comebacks[group].push(now);
            }
        }
    }

    fn replay(&mut self, node: usize, up: bool, frames: u32) {
        let way = if up { Way::Up } else { Way::Down };
        let link = self.nodes[node].parent.and_then(|parent| self.site.link_above(node, parent));
        if let Some(link) = link {
            let replayed = self.network.replay(link, way, frames as usize);
            self.count("replay", replayed as u64);
        }
    }

    /// Counts what links have done to frames; to be called once.
    pub(crate) fn count_links(&mut self) {
        let of_receivers = self.site.receiver_links.iter().map(|link| (*link, "receiver link cut"));
        let links: Vec<_> = self.site.upper_links().map(|link| (link, "node link cut")).chain(of_receivers).collect();
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

    /// Adds up what the nodes that are there have dropped.
    pub(crate) fn count_drops(&mut self) {
        for node in 0..self.site.nodes.len() {
            let ports = self.site.port_count(node);
            if let Some(value) = self.network.node(self.site.nodes[node]) {
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
