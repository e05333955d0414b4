//! The agents of the control plane at the nodes: they carry out what is ordered, and keep what was overtaken out.

use crate::address;
use crate::channel::Message;
use crate::outcome::StepKind;
use crate::world::{Task, World};
use srdma_dataplane::Command;
use std::collections::BTreeMap;

/// A node that is silent for so many ACK timeouts is taken for dead.
const DETECTION_ACK_TIMEOUTS: u64 = 2;

/// The agent of the control plane at a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    /// How often the node has come back: what it said before counts no more.
    incarnation: u32,
    is_down: bool,
    /// The epoch in effect of each group, or from which it has left the group.
    epochs: BTreeMap<usize, (u32, bool)>,
    /// What the control plane believes the incarnation to be.
    pub(crate) known_incarnation: u32,
}

impl World<'_> {
    /// A node's agent takes an order. One that was overtaken by a newer epoch means nothing any more.
    pub(crate) fn at_node(&mut self, group: usize, message: Message) -> Option<Message> {
        let (node, epoch, command) = match message {
            Message::Prepare { node, entry } => (node, entry.epoch, Some(Command::PrepareGroup(entry))),
            Message::Commit { node, epoch } => {
                (node, epoch, Some(Command::CommitGroup { id: self.flows[group].id(), epoch }))
            }
            Message::Abort { node } => {
                let id = self.flows[group].id();
                self.network.with_node(self.site.nodes[node], |node| node.control(Command::AbortGroup(id)));
                return None;
            }
            Message::Restore { node, entry } => (node, entry.epoch, Some(Command::AddGroup(entry))),
            Message::Remove { node, epoch } => (node, epoch, None),
            _ => return None,
        };
        let agent = &mut self.agents[node];
        if agent.is_down {
            return None;
        }
        let incarnation = agent.incarnation;
        let in_effect = agent.epochs.get(&group).copied();
        if in_effect.is_some_and(|(known, _)| known > epoch) {
            return None;
        }
        let Some(command) = command else {
            let id = self.flows[group].id();
            agent.epochs.insert(group, (epoch, false));
            self.network.with_node(self.site.nodes[node], |node| {
                // What it does not know it has left.
                let _ = node.control(Command::AbortGroup(id)).and(node.control(Command::RemoveGroup(id)));
            });
            return Some(Message::Removed { node, incarnation, epoch });
        };
        let is_prepare = matches!(command, Command::PrepareGroup(_));
        if in_effect == Some((epoch, true)) {
            // Said again.
            return Some(if is_prepare {
                Message::Prepared { node, incarnation, epoch }
            } else {
                Message::Committed { node, incarnation, epoch }
            });
        }
        match self.network.with_node(self.site.nodes[node], |node| node.control(command))? {
            Ok(()) if is_prepare => Some(Message::Prepared { node, incarnation, epoch }),
            Ok(()) => {
                self.agents[node].epochs.insert(group, (epoch, true));
                self.flows[group].note(self.network.now(), StepKind::InEffect(node));
                Some(Message::Committed { node, incarnation, epoch })
            }
            Err(error) => Some(Message::Refused { node, incarnation, epoch, reason: error.to_string() }),
        }
    }

    /// A node has gone down: what it knew is gone, and after a while it is missed.
    pub(crate) fn agent_down(&mut self, node: usize) {
        let agent = &mut self.agents[node];
        agent.is_down = true;
        agent.epochs.clear();
        let missed_ns = DETECTION_ACK_TIMEOUTS * self.scale.ack_timeout_ns;
        self.agenda.note(self.network.now().after_ns(missed_ns), Task::Miss { node, incarnation: agent.incarnation });
    }

    /// A node has been silent for a while.
    pub(crate) fn miss(&mut self, node: usize, incarnation: u32) {
        let agent = &self.agents[node];
        if agent.is_down && agent.incarnation == incarnation {
            let loopback = address::node(node).loopback;
            self.tell(&format_args!("node {node} is taken for dead"));
            for group in 0..self.controls.len() {
                self.controls[group].lifecycle.lost(loopback);
                self.send_orders(group);
            }
        }
    }

    /// A node is back, and says so; what it said before counts no more.
    pub(crate) fn agent_back(&mut self, node: usize) {
        let agent = &mut self.agents[node];
        agent.is_down = false;
        agent.incarnation += 1;
        agent.known_incarnation = agent.incarnation;
        let loopback = address::node(node).loopback;
        for group in 0..self.controls.len() {
            if !self.flows[group].is_over() {
                self.controls[group].lifecycle.restarted(loopback);
                self.send_orders(group);
            }
        }
    }
}
