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
    /// The epoch that removed it.
    pub(crate) removed: u32,
    /// Refuses every prepare.
    pub(crate) refuses: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Prepared(Ipv6Addr, u32),
    Refused(Ipv6Addr, u32, String),
    Committed(Ipv6Addr, u32),
    Removed(Ipv6Addr, u32),
    Quiescent(u32),
    Running(u32),
}

impl Agent {
    /// Carries an order out, ignoring what is older than what it has.
    fn carry_out(&mut self, order: &Order) -> Option<Answer> {
        let now = self.entry.as_ref().map_or(0, |entry| entry.epoch);
        let newest = self.prepared.as_ref().map_or(now, |entry| entry.epoch.max(now)).max(self.removed);
        match order.clone() {
            Order::Prepare { entry, .. } | Order::Restore { entry, .. } if entry.epoch < newest => None,
            Order::Prepare { node, entry } if entry.epoch == now => Some(Answer::Prepared(node, entry.epoch)),
            Order::Prepare { node, entry } if self.refuses => {
                Some(Answer::Refused(node, entry.epoch, "no room".to_string()))
            }
            Order::Prepare { node, entry } => {
                let epoch = entry.epoch;
                self.prepared = Some(*entry);
                Some(Answer::Prepared(node, epoch))
            }
            Order::Restore { node, entry } => {
                let epoch = entry.epoch;
                self.entry = Some(*entry);
                Some(Answer::Committed(node, epoch))
            }
            Order::Commit { node, epoch } if epoch == now => Some(Answer::Committed(node, epoch)),
            Order::Commit { epoch, .. } if epoch < now => None,
            Order::Commit { node, epoch } => match self.prepared.take() {
                Some(entry) if entry.epoch == epoch => {
                    self.entry = Some(entry);
                    Some(Answer::Committed(node, epoch))
                }
                other => {
                    self.prepared = other;
                    Some(Answer::Refused(node, epoch, "nothing is prepared".to_string()))
                }
            },
            Order::Abort { epoch, .. } => {
                self.prepared = self.prepared.take().filter(|entry| entry.epoch != epoch);
                None
            }
            Order::Remove { node, epoch } if epoch >= newest => {
                *self = Agent { refuses: self.refuses, removed: epoch, ..Agent::default() };
                Some(Answer::Removed(node, epoch))
            }
            Order::Remove { .. } => None,
            Order::Pause { .. }
            | Order::Ready { .. }
            | Order::Store(_)
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
    /// One line for each order.
    pub(crate) log: Vec<String>,
}

impl Fleet {
    /// Carries one order out.
    pub(crate) fn carry_out(&mut self, order: &Order) -> Option<Answer> {
        self.log.push(short(order));
        match order {
            Order::Store(record) => {
                self.stored = Some((**record).clone());
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
            Order::Evicted { .. } | Order::Changed { .. } | Order::Aborted { .. } | Order::Closed => None,
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
            Answer::Prepared(node, epoch) => lifecycle.prepared(node, epoch),
            Answer::Refused(node, epoch, reason) => lifecycle.refused(node, epoch, reason),
            Answer::Committed(node, epoch) => lifecycle.committed(node, epoch),
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
        Order::Store(record) => format!("store {}", record.epoch),
        Order::Prepare { node, entry } => format!("prepare {} {}", number(node), entry.epoch),
        Order::Commit { node, epoch } => format!("commit {} {epoch}", number(node)),
        Order::Abort { node, epoch } => format!("abort {} {epoch}", number(node)),
        Order::Restore { node, entry } => format!("restore {} {}", number(node), entry.epoch),
        Order::Remove { node, epoch } => format!("remove {} {epoch}", number(node)),
        Order::Evicted { receiver } => format!("evicted R{:x}", receiver.segments()[7]),
        Order::Changed { epoch } => format!("changed {epoch}"),
        Order::Aborted { reason } => format!("aborted: {reason}"),
        Order::Closed => "closed".to_string(),
    }
}
