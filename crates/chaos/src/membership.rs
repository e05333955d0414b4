//! The control plane of a storm: it drives each group's [`Lifecycle`] over a channel of its own, which delays, loses
//! and repeats, and carries out its orders at nodes and sources (D25, D30, D31).
//!
//! ```text
//!   lifecycle ── orders ──► channel ──► node's agent, source's agent
//!       ▲                                  │
//!       └───────────── channel ◄── answers, evictions wanted
//! ```

use crate::address;
use crate::channel::Message;
use crate::flow::Participant;
use crate::outcome::{ComplaintKind, StepKind};
use crate::world::{Task, World};
use srdma_dataplane::Event as NodeEvent;
use srdma_group::{Lifecycle, NewNode, Newcomer, NodeRole, Order, Record, Rehoming};
use std::net::Ipv6Addr;

/// What the control plane knows of one group.
pub(crate) struct Control {
    pub(crate) lifecycle: Lifecycle,
    /// Receivers that have asked to join, and what was made ready for them.
    newcomers: Vec<Participant>,
    /// Receivers that have asked to leave.
    leavers: Vec<usize>,
    /// The pause that the source is in, or was last.
    round: u32,
    is_pausing: bool,
    /// [`Task::Repeat`] is noted.
    repeats: bool,
}

impl World<'_> {
    /// Creates a group, at once and without any loss.
    pub(crate) fn create_group(&mut self, record: Record) -> Result<Control, srdma_group::GroupError> {
        let lifecycle = Lifecycle::create(record)?;
        Ok(Control {
            lifecycle,
            newcomers: Vec::new(),
            leavers: Vec::new(),
            round: 0,
            is_pausing: false,
            repeats: false,
        })
    }

    /// A group's source begins, unless the control plane holds it.
    pub(crate) fn start(&mut self, group: usize) {
        if !self.controls[group].is_pausing {
            self.flows[group].pause(&mut self.network, false);
        }
    }

    /// Carries out what a group's lifecycle orders before anything is sent.
    pub(crate) fn commit_at_once(&mut self, group: usize) {
        while let Some(order) = self.controls[group].lifecycle.next_order() {
            if let Some(message) = self.message_of(group, order) {
                for answer in self.carry_out(group, message) {
                    self.take_answer(group, answer);
                }
            }
        }
    }

    /// Sends what a group's lifecycle orders.
    pub(crate) fn send_orders(&mut self, group: usize) {
        while let Some(order) = self.controls[group].lifecycle.next_order() {
            if let Some(message) = self.message_of(group, order) {
                self.send(group, message);
            }
        }
        let control = &mut self.controls[group];
        if !control.repeats && (!control.lifecycle.is_steady() || control.is_pausing) {
            control.repeats = true;
            let at = self.network.now().after_ns(self.flows[group].ack_timeout_ns());
            self.agenda.note(at, Task::Repeat(group));
        }
    }

    /// An answer is long in coming.
    pub(crate) fn repeat(&mut self, group: usize) {
        self.controls[group].repeats = false;
        if !self.flows[group].is_over() {
            self.controls[group].lifecycle.repeat();
            self.send_orders(group);
        }
    }

    /// What an order says to whom; `None` when it is not for the channel.
    fn message_of(&mut self, group: usize, order: Order) -> Option<Message> {
        let nodes = self.schedule.nodes.len();
        let at = |node: Ipv6Addr| address::node_of(node, nodes);
        match order {
            Order::Pause { round } => Some(Message::Pause { round }),
            Order::Ready { round } => Some(Message::Ready { round }),
            Order::Prepare { node, entry } => Some(Message::Prepare { node: at(node)?, entry }),
            Order::Commit { node, epoch } => Some(Message::Commit { node: at(node)?, epoch }),
            Order::Abort { node, epoch: _ } => Some(Message::Abort { node: at(node)? }),
            Order::Restore { node, entry } => Some(Message::Restore { node: at(node)?, entry }),
            Order::Remove { node, epoch } => Some(Message::Remove { node: at(node)?, epoch }),
            Order::Store(record) => {
                self.store(group, &record);
                None
            }
            Order::Evicted { receiver } => {
                self.tell(&format_args!("group {group}: {receiver} is evicted at every node"));
                None
            }
            Order::Changed { epoch } => {
                self.tell(&format_args!("group {group}: epoch {epoch} is in effect"));
                None
            }
            Order::GivenUp { reason } => {
                self.tell(&format_args!("group {group}: given up: {reason}"));
                None
            }
            Order::Closed => None,
        }
    }

    /// The record outlives everything from now on: who is not in it is no member any more, who is new in it is one.
    fn store(&mut self, group: usize, record: &Record) {
        let mut newcomers = Vec::new();
        for receiver in &record.receivers {
            let waits = self.controls[group].newcomers.iter().position(|newcomer| newcomer.qpn == receiver.qpn);
            if let (Some(position), Some(join)) = (waits, receiver.joined) {
                let newcomer = self.controls[group].newcomers.swap_remove(position);
                match self.flows[group].connect(newcomer, Some(join), &self.site, &mut self.network) {
                    Ok(newcomer) => newcomers.push(newcomer),
                    Err(error) => self.complain(ComplaintKind::SetUp, format!("group {group}: {error}")),
                }
                self.outcome.joins += 1;
                self.count("join", 1);
            }
        }
        let (site, stored) = (&self.site, &record.receivers);
        let keep = |receiver: usize| {
            let address = site.receiver_address(receiver);
            stored.iter().any(|stored| stored.address == address)
        };
        let gone = self.flows[group].change_members(keep, &newcomers);
        let leavers = &mut self.controls[group].leavers;
        let left = gone.iter().filter(|receiver| leavers.contains(receiver)).count();
        leavers.retain(|receiver| !gone.contains(receiver));
        self.outcome.leaves += left as u64;
        self.outcome.evictions += (gone.len() - left) as u64;
        self.tell(&format_args!(
            "group {group}: epoch {} is stored, {} gone, {} new",
            record.epoch,
            gone.len(),
            newcomers.len()
        ));
    }

    /// What an agent or the control plane does with a message, and what it answers.
    pub(crate) fn carry_out(&mut self, group: usize, message: Message) -> Vec<Message> {
        match message {
            Message::Pause { round } => {
                let control = &mut self.controls[group];
                if round > control.round {
                    (control.round, control.is_pausing) = (round, true);
                    self.flows[group].pause(&mut self.network, true);
                }
                self.quiescence(group).into_iter().collect()
            }
            Message::Ready { round } => {
                let control = &mut self.controls[group];
                if round >= control.round {
                    (control.round, control.is_pausing) = (round, false);
                    if self.network.now().as_ns() >= self.schedule.groups[group].start_ns {
                        self.flows[group].pause(&mut self.network, false);
                    }
                }
                vec![Message::Running { round }]
            }
            Message::Prepare { .. }
            | Message::Commit { .. }
            | Message::Abort { .. }
            | Message::Restore { .. }
            | Message::Remove { .. } => self.at_node(group, message).into_iter().collect(),
            Message::Prepared { .. }
            | Message::Refused { .. }
            | Message::Committed { .. }
            | Message::Removed { .. }
            | Message::Quiescent { .. }
            | Message::Running { .. }
            | Message::EvictionWanted { .. } => {
                self.take_answer(group, message);
                Vec::new()
            }
        }
    }

    /// What the source says while it pauses, as soon as nothing is on its way (D30).
    fn quiescence(&self, group: usize) -> Option<Message> {
        let control = &self.controls[group];
        let join = self.flows[group].join_point(&self.network).filter(|_| control.is_pausing)?;
        Some(Message::Quiescent { round: control.round, psn: join.psn, msn: join.msn })
    }

    /// A group's source may have become quiet.
    pub(crate) fn look_for_quiet(&mut self, group: usize) {
        if let Some(message) = self.quiescence(group) {
            self.send(group, message);
        }
    }

    /// The control plane hears something.
    fn take_answer(&mut self, group: usize, answer: Message) {
        let speaker = match &answer {
            Message::Prepared { node, incarnation, .. }
            | Message::Refused { node, incarnation, .. }
            | Message::Committed { node, incarnation, .. }
            | Message::Removed { node, incarnation, .. } => Some((*node, *incarnation)),
            _ => None,
        };
        if speaker.is_some_and(|(node, incarnation)| self.agents[node].known_incarnation != incarnation) {
            return;
        }
        let loopback = speaker.map_or(Ipv6Addr::UNSPECIFIED, |(node, _)| address::node(node).loopback);
        let lifecycle = &mut self.controls[group].lifecycle;
        match answer {
            Message::Prepared { epoch, .. } => lifecycle.prepared(loopback, epoch),
            Message::Refused { epoch, reason, .. } => lifecycle.refused(loopback, epoch, reason),
            Message::Committed { epoch, .. } => lifecycle.committed(loopback, epoch),
            Message::Removed { epoch, .. } => lifecycle.removed(loopback, epoch),
            Message::Quiescent { round, psn, msn } => lifecycle.quiescent(round, psn, msn),
            Message::Running { round } => lifecycle.running(round),
            Message::EvictionWanted { receiver } => self.evict(group, receiver),
            Message::Prepare { .. }
            | Message::Commit { .. }
            | Message::Abort { .. }
            | Message::Restore { .. }
            | Message::Remove { .. }
            | Message::Pause { .. }
            | Message::Ready { .. } => {}
        }
    }

    /// An edge's wish arrives: granted unless the policy forbids it (D25).
    fn evict(&mut self, group: usize, address: Ipv6Addr) {
        let member =
            self.flows[group].members.iter().find(|member| self.site.receiver_address(member.receiver) == address);
        let Some(receiver) = member.map(|member| member.receiver) else {
            return;
        };
        if self.controls[group].lifecycle.evict(&[address]).is_ok() {
            self.count("eviction granted", 1);
            self.check_eviction(group, receiver);
        }
    }

    /// Edges say which receivers they want evicted.
    pub(crate) fn take_wishes(&mut self, node: usize) {
        let events = self.network.with_node(self.site.nodes[node], |node| node.take_events().collect::<Vec<_>>());
        for NodeEvent::EvictionWanted { group, receiver, cause: _ } in events.unwrap_or_default() {
            let group = group.0 as usize - 1;
            let position = (0..self.receivers.len()).find(|other| self.site.receiver_address(*other) == receiver);
            if let Some(position) = position {
                self.flows[group].note(self.network.now(), StepKind::EvictionWanted(position));
            }
            self.count("eviction wanted", 1);
            self.send(group, Message::EvictionWanted { receiver });
        }
    }

    /// A member leaves by its own wish (D30).
    pub(crate) fn leave(&mut self, group: usize, receiver: usize) {
        let address = self.site.receiver_address(receiver);
        if !self.flows[group].is_over() && self.controls[group].lifecycle.leave(&[address]).is_ok() {
            self.count("leave", 1);
            self.controls[group].leavers.push(receiver);
            self.send_orders(group);
        }
    }

    /// A receiver joins, with the nodes that it needs (D30).
    pub(crate) fn join(&mut self, group: usize, receiver: usize) {
        let is_known = |participant: &Participant| participant.receiver == receiver;
        let is_there =
            self.flows[group].members.iter().any(is_known) || self.controls[group].newcomers.iter().any(is_known);
        if self.flows[group].is_over() || is_there {
            return;
        }
        let newcomer = self.flows[group].enroll(receiver, &self.site, &mut self.network);
        let edge = self.site.edge_of(receiver);
        let wanted = Newcomer {
            address: self.site.receiver_address(receiver),
            qpn: newcomer.qpn,
            region: self.flows[group].region_of(&newcomer),
            edge: address::node(edge).loopback,
        };
        let nodes = self.new_nodes(group, edge);
        if self.controls[group].lifecycle.join(vec![wanted], nodes).is_ok() {
            self.controls[group].newcomers.push(newcomer);
            self.send_orders(group);
        }
    }

    /// A node hangs below another, in all groups that it is in.
    pub(crate) fn rehome(&mut self, node: usize, parent: usize) {
        self.nodes[node].parent = Some(parent);
        let loopback = address::node(node).loopback;
        for group in 0..self.flows.len() {
            let rehoming = Rehoming {
                node: loopback,
                parent: address::node(parent).loopback,
                parent_sid: None,
                new_nodes: self.new_nodes(group, parent),
            };
            if !self.flows[group].is_over() && self.controls[group].lifecycle.rehome_by(rehoming).is_ok() {
                self.count("re-homing", 1);
                self.send_orders(group);
            }
        }
    }

    /// The nodes from this one upwards that are not in a group's tree.
    fn new_nodes(&self, group: usize, from: usize) -> Vec<NewNode> {
        let stored = self.controls[group].lifecycle.group();
        let is_there = |node: usize| {
            let loopback = address::node(node).loopback;
            stored.is_some_and(|group| group.record().tree.nodes().iter().any(|node| node.loopback == loopback))
        };
        let mut nodes = Vec::new();
        let mut next = Some(from);
        while let Some(node) = next.filter(|node| !is_there(*node)) {
            next = self.nodes[node].parent;
            let is_edge = self.site.is_edge(node);
            let addresses = address::node(node);
            nodes.extend(next.map(|parent| NewNode {
                name: format!("N{node}"),
                loopback: addresses.loopback,
                sid: if is_edge { addresses.end_mt } else { address::replication(node, group) },
                parent: address::node(parent).loopback,
                parent_sid: None,
                role: if is_edge { NodeRole::Edge } else { NodeRole::Transit },
                multicast: None,
            }));
        }
        nodes.reverse();
        nodes
    }

    /// Whether a node is in a group's tree.
    pub(crate) fn is_in_tree(&self, group: usize, node: usize) -> bool {
        let loopback = address::node(node).loopback;
        let stored = self.controls[group].lifecycle.group();
        stored.is_some_and(|group| group.record().tree.nodes().iter().any(|node| node.loopback == loopback))
    }
}
