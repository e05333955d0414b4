//! Nodes and a source that answer a lifecycle's orders like real ones.

use srdma_group::*;
use srdma_wire::Psn;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// State of the group at a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Agent {
    pub(crate) entry: Option<GroupEntry>,
    pub(crate) prepared: Option<GroupEntry>,
    pub(crate) held: Held,
    /// The epoch that removed it.
    pub(crate) removed: u32,
    /// Refuses every prepare.
    pub(crate) refuses: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Prepared(Ipv6Addr, EntryName),
    Refused(Ipv6Addr, EntryName, String),
    Committed(Ipv6Addr, EntryName),
    Removed(Ipv6Addr, u32),
    Quiescent(u32),
    Running(u32),
}

impl Agent {
    /// Carries an order out, refusing what is older than what it has.
    fn carry_out(&mut self, order: &Order) -> Option<Answer> {
        let now = self.held.committed.map_or(0, |name| name.epoch).max(self.removed);
        let newest = self.held.newest_epoch().max(now);
        let refused = |node, name, reason: &str| Some(Answer::Refused(node, name, reason.to_string()));
        match order.clone() {
            Order::Prepare { node, name, .. } if self.held.committed == Some(name) => {
                Some(Answer::Prepared(node, name))
            }
            Order::Prepare { node, name, .. } if name.epoch < newest => refused(node, name, "old"),
            Order::Prepare { node, name, .. } if self.refuses => refused(node, name, "no room"),
            Order::Prepare { node, name, entry } => {
                self.prepared = Some(*entry);
                self.held.prepared = Some(name);
                Some(Answer::Prepared(node, name))
            }
            Order::Commit { node, name, .. } | Order::Restore { node, name, .. }
                if self.held.committed == Some(name) =>
            {
                Some(Answer::Committed(node, name))
            }
            Order::Restore { node, name, .. } if name.epoch < now => refused(node, name, "old"),
            Order::Restore { node, name, entry } => {
                (self.entry, self.prepared) = (Some(*entry), None);
                self.held = Held { committed: Some(name), prepared: None };
                Some(Answer::Committed(node, name))
            }
            Order::Commit { node, name, .. } if self.held.prepared == Some(name) => {
                self.entry = self.prepared.take();
                self.held = Held { committed: Some(name), prepared: None };
                Some(Answer::Committed(node, name))
            }
            Order::Commit { node, name, .. } => refused(node, name, "nothing is prepared"),
            Order::Abort { name, .. } => {
                if self.held.prepared == Some(name) {
                    (self.prepared, self.held.prepared) = (None, None);
                }
                None
            }
            Order::Remove { node, epoch } if epoch >= newest => {
                *self = Agent { refuses: self.refuses, removed: epoch, ..Agent::default() };
                Some(Answer::Removed(node, epoch))
            }
            Order::Remove { .. } => None,
            Order::Pause { .. }
            | Order::Ready { .. }
            | Order::Store { .. }
            | Order::Evicted { .. }
            | Order::Changed { .. }
            | Order::Aborted { .. }
            | Order::Closed => None,
        }
    }
}

/// The whole world around a lifecycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    pub(crate) agents: BTreeMap<Ipv6Addr, Agent>,
    pub(crate) dead: BTreeSet<Ipv6Addr>,
    /// The source's next PSN while it is paused, and the rounds that have ended.
    pub(crate) next_psn: Psn,
    pub(crate) ready: Option<u32>,
    pub(crate) paused: Option<u32>,
    pub(crate) stored: Option<Record>,
    /// The record before, until all nodes have committed.
    pub(crate) before: Option<Box<Record>>,
    pub(crate) is_settled: bool,
    /// One line for each order.
    pub(crate) log: Vec<String>,
}

impl Fleet {
    /// Carries one order out.
    pub(crate) fn carry_out(&mut self, order: &Order) -> Option<Answer> {
        self.log.push(short(order));
        match order {
            Order::Store { record, before } => {
                self.stored = Some((**record).clone());
                (self.before, self.is_settled) = (before.clone(), false);
                None
            }
            Order::Changed { .. } => {
                (self.before, self.is_settled) = (None, true);
                None
            }
            Order::Pause { round }
                if self.ready.max(self.paused).is_none_or(|newest| newest < *round || self.paused == Some(*round)) =>
            {
                self.paused = Some(*round);
                Some(Answer::Quiescent(*round))
            }
            Order::Pause { .. } => None,
            Order::Ready { round } if self.ready.max(self.paused).is_none_or(|newest| newest <= *round) => {
                self.paused = None;
                self.ready = Some(*round);
                Some(Answer::Running(*round))
            }
            Order::Ready { .. } => None,
            Order::Evicted { .. } | Order::Aborted { .. } | Order::Closed => None,
            Order::Prepare { node, .. }
            | Order::Commit { node, .. }
            | Order::Abort { node, .. }
            | Order::Restore { node, .. }
            | Order::Remove { node, .. } => {
                let is_dead = self.dead.contains(node);
                let agent = self.agents.entry(*node).or_default();
                if is_dead { None } else { agent.carry_out(order) }
            }
        }
    }

    /// Carries out and answers everything, until nothing is left to do.
    pub(crate) fn settle(&mut self, lifecycle: &mut Lifecycle) {
        while let Some(order) = lifecycle.next_order() {
            if let Some(answer) = self.carry_out(&order) {
                self.hand_in(lifecycle, answer);
            }
        }
    }

    pub(crate) fn hand_in(&self, lifecycle: &mut Lifecycle, answer: Answer) {
        match answer {
            Answer::Prepared(node, name) => lifecycle.prepared(node, name),
            Answer::Refused(node, name, reason) => lifecycle.refused(node, name, reason),
            Answer::Committed(node, name) => lifecycle.committed(node, name),
            Answer::Removed(node, epoch) => lifecycle.removed(node, epoch),
            Answer::Quiescent(round) => lifecycle.quiescent(round, self.next_psn, 7),
            Answer::Running(round) => lifecycle.running(round),
        }
    }

    /// The log so far, and begins another.
    pub(crate) fn take_log(&mut self) -> String {
        let mut lines = vec![String::new()];
        for entry in std::mem::take(&mut self.log) {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(&entry),
                Some(line) if line.len() + entry.len() < 90 => line.push_str(&format!(", {entry}")),
                _ => lines.push(entry),
            }
        }
        lines.join("\n")
    }
}

/// An order in a few words; nodes by their number.
pub(crate) fn short(order: &Order) -> String {
    let number = |node: &Ipv6Addr| format!("N{:x}", node.segments()[2]);
    match order {
        Order::Pause { round } => format!("pause {round}"),
        Order::Ready { round } => format!("ready {round}"),
        Order::Store { record, .. } => format!("store {}", record.epoch),
        Order::Prepare { node, name, .. } => format!("prepare {} {}", number(node), name.epoch),
        Order::Commit { node, name, .. } => format!("commit {} {}", number(node), name.epoch),
        Order::Abort { node, name } => format!("abort {} {}", number(node), name.epoch),
        Order::Restore { node, name, .. } => format!("restore {} {}", number(node), name.epoch),
        Order::Remove { node, epoch } => format!("remove {} {epoch}", number(node)),
        Order::Evicted { receiver } => format!("evicted R{:x}", receiver.segments()[7]),
        Order::Changed { epoch } => format!("changed {epoch}"),
        Order::Aborted { reason } => format!("aborted: {reason}"),
        Order::Closed => "closed".to_string(),
    }
}

/// The name that a node's entry of an epoch has: of the stored record, or of the change in progress.
pub(crate) fn name(lifecycle: &Lifecycle, node: Ipv6Addr, epoch: u32) -> EntryName {
    let mut groups = lifecycle.group().into_iter().chain(lifecycle.newest());
    let group = groups.rfind(|group| group.record().epoch == epoch);
    let entry = group.and_then(|group| {
        let position = group.record().tree.nodes().iter().position(|one| one.loopback == node)?;
        Some(group.name_of(&group.at(NodeIndex(position))?))
    });
    entry.unwrap_or(EntryName { epoch, ..EntryName::default() })
}
