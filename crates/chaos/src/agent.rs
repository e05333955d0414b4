//! The control plane's agents at the nodes: they carry out orders and ignore those of outdated epochs.

use crate::address;
use crate::channel::Message;
use crate::outcome::StepKind;
use crate::world::{Task, World};
use srdma_dataplane::Command;
use srdma_group::EntryName;
use std::collections::BTreeMap;

/// A node that is silent for this many ACK timeouts is declared dead.
const DETECTION_ACK_TIMEOUTS: u64 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    /// Counts restarts. Replies of earlier incarnations are ignored.
    incarnation: u32,
    is_down: bool,
    /// For each group its epoch, and whether the node is in the group.
    epochs: BTreeMap<usize, (u32, bool)>,
    /// The control plane's view of the incarnation.
    pub(crate) known_incarnation: u32,
}

impl World<'_> {
    /// Handles an order at a node. Orders of an epoch older than the current one are ignored.
    pub(crate) fn handle_at_node(&mut self, group: usize, message: Message) -> Option<Message> {
        let removal = |epoch| EntryName { epoch, ..EntryName::default() };
        let (node, name, command) = match message {
            Message::Prepare { node, name, entry } => (node, name, Some(Command::PrepareGroup(entry))),
            Message::Commit { node, name, is_first } => {
                (node, name, Some(Command::CommitGroup { id: self.flows[group].id(), epoch: name.epoch, is_first }))
            }
            Message::Abort { node } => {
                let id = self.flows[group].id();
                self.network.with_workers(self.testbed.nodes[node], |node| node.apply(Command::AbortGroup(id)));
                return None;
            }
            Message::Restore { node, name, entry } => (node, name, Some(Command::AddGroup(entry))),
            Message::Remove { node, epoch } => (node, removal(epoch), None),
            _ => return None,
        };
        let epoch = name.epoch;
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
            self.network.with_workers(self.testbed.nodes[node], |node| {
                // An unknown group needs no removal.
                let _ = node.apply(Command::AbortGroup(id)).and(node.apply(Command::RemoveGroup(id)));
            });
            return Some(Message::Removed { node, incarnation, epoch });
        };
        let is_prepare = matches!(command, Command::PrepareGroup(_));
        if in_effect == Some((epoch, true)) {
            // A retransmission.
            return Some(if is_prepare {
                Message::Prepared { node, incarnation, name }
            } else {
                Message::Committed { node, incarnation, name }
            });
        }
        let applied = self.network.with_workers(self.testbed.nodes[node], |node| node.apply(command.clone()));
        match applied.into_iter().reduce(Result::and)? {
            Ok(()) if is_prepare => Some(Message::Prepared { node, incarnation, name }),
            Ok(()) => {
                self.agents[node].epochs.insert(group, (epoch, true));
                self.flows[group].note(self.network.now(), StepKind::GroupApplied(node));
                Some(Message::Committed { node, incarnation, name })
            }
            Err(error) => Some(Message::Refused { node, incarnation, name, reason: error.to_string() }),
        }
    }

    /// A node has gone down. It loses its state, and its failure is detected later.
    pub(crate) fn agent_stopped(&mut self, node: usize) {
        let agent = &mut self.agents[node];
        agent.is_down = true;
        agent.epochs.clear();
        let detected_ns = DETECTION_ACK_TIMEOUTS * self.scale.ack_timeout_ns;
        self.tasks.push(
            self.network.now().after_ns(detected_ns),
            0,
            Task::DetectFailure { node, incarnation: agent.incarnation },
        );
    }

    /// Declares a node dead unless it has restarted.
    pub(crate) fn detect_failure(&mut self, node: usize, incarnation: u32) {
        let agent = &self.agents[node];
        if agent.is_down && agent.incarnation == incarnation {
            let loopback = address::node(node).loopback;
            self.log(&format_args!("node {node} is declared dead"));
            for group in 0..self.controls.len() {
                self.controls[group].lifecycle.lost(loopback);
                self.send_orders(group);
            }
        }
    }

    /// A node has restarted and registers; replies from before the restart are ignored.
    pub(crate) fn agent_restarted(&mut self, node: usize) {
        let agent = &mut self.agents[node];
        agent.is_down = false;
        agent.incarnation += 1;
        agent.known_incarnation = agent.incarnation;
        let loopback = address::node(node).loopback;
        for group in 0..self.controls.len() {
            if !self.flows[group].is_finished() {
                self.controls[group].lifecycle.restarted(loopback);
                self.send_orders(group);
            }
        }
    }
}
