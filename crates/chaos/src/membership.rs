//! The control plane of a chaos test: it drives each group's [`Lifecycle`] over a channel that delays, loses and
//! duplicates messages, and carries out its orders at nodes and sources (D25, D30, D31).
//!
//! ```text
//!   lifecycle ── orders ──► channel ──► node's agent, source's agent
//!       ▲                                  │
//!       └───────────── channel ◄── replies, eviction requests
//! ```

use crate::address;
use crate::channel::Message;
use crate::flow::Participant;
use crate::outcome::{StepKind, ViolationKind};
use crate::world::{Task, World};
use srdma_dataplane::Event as NodeEvent;
use srdma_group::{Admission, Lifecycle, NewNode, Newcomer, NodeRole, Order, Record, Rehoming};
use std::net::Ipv6Addr;

/// The control plane's state of one group.
pub(crate) struct Control {
    pub(crate) lifecycle: Lifecycle,
    /// Receivers that have asked to join, with their memory.
    newcomers: Vec<Participant>,
    /// Receivers that have asked to leave.
    leavers: Vec<usize>,
    /// Number of the source's current or last pause.
    round: u32,
    is_pausing: bool,
    /// Whether a [`Task::Retransmit`] is scheduled.
    repeats: bool,
}

impl World<'_> {
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

    /// Starts a group's source unless the control plane has paused it.
    pub(crate) fn start(&mut self, group: usize) {
        if !self.controls[group].is_pausing {
            self.flows[group].pause(&mut self.network, false);
        }
    }

    /// Carries out a group's initial orders, without delay or loss.
    pub(crate) fn commit_immediately(&mut self, group: usize) {
        while let Some(order) = self.controls[group].lifecycle.next_order() {
            if let Some(message) = self.message_of(group, order) {
                for reply in self.handle(group, message) {
                    self.on_reply(group, reply);
                }
            }
        }
    }

    /// Sends the orders of a group's lifecycle.
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
            self.tasks.push(at, 0, Task::Retransmit(group));
        }
    }

    /// Retransmits orders without a reply.
    pub(crate) fn repeat(&mut self, group: usize) {
        self.controls[group].repeats = false;
        if !self.flows[group].is_finished() {
            self.controls[group].lifecycle.repeat();
            self.send_orders(group);
        }
    }

    /// The message that carries an order; `None` for orders that need none.
    fn message_of(&mut self, group: usize, order: Order) -> Option<Message> {
        let nodes = self.schedule.nodes.len();
        let at = |node: Ipv6Addr| address::node_of(node, nodes);
        match order {
            Order::Pause { round } => Some(Message::Pause { round }),
            Order::Ready { round } => Some(Message::Ready { round }),
            Order::Prepare { node, name, entry } => Some(Message::Prepare { node: at(node)?, name, entry }),
            Order::Commit { node, name, is_first } => Some(Message::Commit { node: at(node)?, name, is_first }),
            Order::Abort { node, name: _ } => Some(Message::Abort { node: at(node)? }),
            Order::Restore { node, name, entry } => Some(Message::Restore { node: at(node)?, name, entry }),
            Order::Remove { node, epoch } => Some(Message::Remove { node: at(node)?, epoch }),
            Order::Store { record, .. } => {
                self.store(group, &record);
                None
            }
            Order::Evicted { receiver } => {
                self.log(&format_args!("group {group}: {receiver} is evicted at all nodes"));
                None
            }
            Order::Changed { epoch } => {
                self.log(&format_args!("group {group}: epoch {epoch} is in effect"));
                None
            }
            Order::Aborted { reason } => {
                self.log(&format_args!("group {group}: given up: {reason}"));
                None
            }
            Order::Closed => None,
        }
    }

    /// Stores a record: receivers that are not in it are no longer members, new ones are.
    fn store(&mut self, group: usize, record: &Record) {
        let mut newcomers = Vec::new();
        for receiver in &record.receivers {
            let waits = self.controls[group].newcomers.iter().position(|newcomer| newcomer.qpn == receiver.qpn);
            if let (Some(position), Some(join)) = (waits, receiver.joined) {
                let newcomer = self.controls[group].newcomers.swap_remove(position);
                match self.flows[group].connect(newcomer, Some(join), &self.testbed, &mut self.network) {
                    Ok(newcomer) => newcomers.push(newcomer),
                    Err(error) => self.violation(ViolationKind::Setup, format!("group {group}: {error}")),
                }
                self.outcome.joins += 1;
                self.count("join", 1);
            }
        }
        let (testbed, stored) = (&self.testbed, &record.receivers);
        let keep = |receiver: usize| {
            let address = testbed.receiver_address(receiver);
            stored.iter().any(|stored| stored.address == address)
        };
        let gone = self.flows[group].change_members(keep, &newcomers);
        let leavers = &mut self.controls[group].leavers;
        let left = gone.iter().filter(|receiver| leavers.contains(receiver)).count();
        leavers.retain(|receiver| !gone.contains(receiver));
        self.outcome.leaves += left as u64;
        self.outcome.evictions += (gone.len() - left) as u64;
        self.log(&format_args!(
            "group {group}: epoch {} is stored, {} gone, {} new",
            record.epoch,
            gone.len(),
            newcomers.len()
        ));
    }

    /// Handles a message at its destination. Returns the replies.
    pub(crate) fn handle(&mut self, group: usize, message: Message) -> Vec<Message> {
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
            | Message::Remove { .. } => self.handle_at_node(group, message).into_iter().collect(),
            Message::Prepared { .. }
            | Message::Refused { .. }
            | Message::Committed { .. }
            | Message::Removed { .. }
            | Message::Quiescent { .. }
            | Message::Running { .. }
            | Message::EvictionRequest { .. } => {
                self.on_reply(group, message);
                Vec::new()
            }
        }
    }

    /// The paused source's report that nothing is outstanding (D30).
    fn quiescence(&self, group: usize) -> Option<Message> {
        let control = &self.controls[group];
        let join = self.flows[group].join_point(&self.network).filter(|_| control.is_pausing)?;
        Some(Message::Quiescent { round: control.round, psn: join.psn, msn: join.msn })
    }

    /// Reports that a paused source has become quiescent, if it has.
    pub(crate) fn report_quiescence(&mut self, group: usize) {
        if let Some(message) = self.quiescence(group) {
            self.send(group, message);
        }
    }

    /// Handles a reply at the control plane.
    fn on_reply(&mut self, group: usize, reply: Message) {
        let sender = match &reply {
            Message::Prepared { node, incarnation, .. }
            | Message::Refused { node, incarnation, .. }
            | Message::Committed { node, incarnation, .. }
            | Message::Removed { node, incarnation, .. } => Some((*node, *incarnation)),
            _ => None,
        };
        if sender.is_some_and(|(node, incarnation)| self.agents[node].known_incarnation != incarnation) {
            return;
        }
        let loopback = sender.map_or(Ipv6Addr::UNSPECIFIED, |(node, _)| address::node(node).loopback);
        let lifecycle = &mut self.controls[group].lifecycle;
        match reply {
            Message::Prepared { name, .. } => lifecycle.prepared(loopback, name),
            Message::Refused { name, reason, .. } => lifecycle.refused(loopback, name, reason),
            Message::Committed { name, .. } => lifecycle.committed(loopback, name),
            Message::Removed { epoch, .. } => lifecycle.removed(loopback, epoch),
            Message::Quiescent { round, psn, msn } => lifecycle.quiescent(round, psn, msn),
            Message::Running { round } => lifecycle.running(round),
            Message::EvictionRequest { receiver } => self.evict(group, receiver),
            Message::Prepare { .. }
            | Message::Commit { .. }
            | Message::Abort { .. }
            | Message::Restore { .. }
            | Message::Remove { .. }
            | Message::Pause { .. }
            | Message::Ready { .. } => {}
        }
    }

    /// Handles an edge's eviction request: granted unless the policy forbids it (D25).
    fn evict(&mut self, group: usize, address: Ipv6Addr) {
        let member =
            self.flows[group].members.iter().find(|member| self.testbed.receiver_address(member.receiver) == address);
        let Some(receiver) = member.map(|member| member.receiver) else {
            return;
        };
        if self.controls[group].lifecycle.evict(&[address]).is_ok() {
            self.count("eviction granted", 1);
            self.check_eviction(group, receiver);
        }
    }

    /// Sends the eviction requests of an edge.
    pub(crate) fn forward_eviction_requests(&mut self, node: usize) {
        let events = self.network.with_workers(self.testbed.nodes[node], |node| node.take_events().collect::<Vec<_>>());
        for NodeEvent::EvictionRequested { group, receiver, cause: _ } in events.into_iter().flatten() {
            let group = group.0 as usize - 1;
            let position = (0..self.receivers.len()).find(|other| self.testbed.receiver_address(*other) == receiver);
            if let Some(position) = position {
                self.flows[group].note(self.network.now(), StepKind::EvictionRequested(position));
            }
            self.count("eviction requested", 1);
            self.send(group, Message::EvictionRequest { receiver });
        }
    }

    /// A member leaves (D30).
    pub(crate) fn leave(&mut self, group: usize, receiver: usize) {
        let address = self.testbed.receiver_address(receiver);
        if !self.flows[group].is_finished() && self.controls[group].lifecycle.leave(&[address]).is_ok() {
            self.count("leave", 1);
            self.controls[group].leavers.push(receiver);
            self.send_orders(group);
        }
    }

    /// A receiver joins, with the nodes that it needs in the tree (D30).
    pub(crate) fn join(&mut self, group: usize, receiver: usize) {
        let is_known = |participant: &Participant| participant.receiver == receiver;
        let is_there =
            self.flows[group].members.iter().any(is_known) || self.controls[group].newcomers.iter().any(is_known);
        if self.flows[group].is_finished() || is_there {
            return;
        }
        let newcomer = self.flows[group].register_memory(receiver, &self.testbed, &mut self.network);
        let edge = self.testbed.edge_of(receiver);
        let mut regions = self.flows[group].regions_of(&newcomer);
        let wanted = Newcomer {
            address: self.testbed.receiver_address(receiver),
            qpn: newcomer.qpn,
            region: regions.next(),
            edge: address::node(edge).loopback,
            admission: Admission::AtOnce,
            psn_offset: newcomer.psn_offset,
            more_regions: regions.collect(),
        };
        let nodes = self.new_nodes(group, edge);
        if self.controls[group].lifecycle.join(vec![wanted], nodes, None).is_ok() {
            self.controls[group].newcomers.push(newcomer);
            self.send_orders(group);
        }
    }

    /// Moves a node below another parent, in all of its groups.
    pub(crate) fn rehome(&mut self, node: usize, parent: usize) {
        self.nodes[node].parent = Some(parent);
        self.nodes[node].parents.insert(parent);
        let loopback = address::node(node).loopback;
        for group in 0..self.flows.len() {
            let rehoming = Rehoming {
                node: loopback,
                parent: address::node(parent).loopback,
                parent_sid: None,
                new_nodes: self.new_nodes(group, parent),
                link_mtu: None,
            };
            if !self.flows[group].is_finished() && self.controls[group].lifecycle.rehome_by(rehoming).is_ok() {
                self.count("re-homing", 1);
                self.send_orders(group);
            }
        }
    }

    /// The nodes from `from` up to the tree that are not yet in a group's tree.
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
            nodes.extend(next.map(|parent| NewNode {
                name: format!("N{node}"),
                loopback: address::node(node).loopback,
                sid: self.testbed.sid(node, group),
                parent: address::node(parent).loopback,
                parent_sid: None,
                // Its receivers make it a bud node.
                role: if self.testbed.replicates(node) { NodeRole::Transit } else { NodeRole::Edge },
                multicast: None,
                can_repair: self.testbed.can_repair(node),
            }));
        }
        nodes.reverse();
        nodes
    }

    pub(crate) fn is_in_tree(&self, group: usize, node: usize) -> bool {
        let loopback = address::node(node).loopback;
        let stored = self.controls[group].lifecycle.group();
        stored.is_some_and(|group| group.record().tree.nodes().iter().any(|node| node.loopback == loopback))
    }
}
