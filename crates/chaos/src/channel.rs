//! The channel between control plane, nodes and sources. It delays, loses and duplicates messages.

use crate::world::{Task, World};
use srdma_group::{EntryName, GroupEntry};
use srdma_random::Probability;
use srdma_wire::Psn;
use std::net::Ipv6Addr;

/// Probability of losing a message, and of duplicating one, in percent.
const CHANNEL_FAULTS_PERCENT: u32 = 5;

/// The delay is at least this part of an ACK timeout, and at most `CHANNEL_SPREAD` times that.
const CHANNEL_PART: u64 = 16;
const CHANNEL_SPREAD: u64 = 4;

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Prepare { node: usize, name: EntryName, entry: Box<GroupEntry> },
    Commit { node: usize, name: EntryName, is_first: bool },
    Abort { node: usize },
    Restore { node: usize, name: EntryName, entry: Box<GroupEntry> },
    Remove { node: usize, epoch: u32 },
    Pause { round: u32 },
    Ready { round: u32 },
    Prepared { node: usize, incarnation: u32, name: EntryName },
    Refused { node: usize, incarnation: u32, name: EntryName, reason: String },
    Committed { node: usize, incarnation: u32, name: EntryName },
    Removed { node: usize, incarnation: u32, epoch: u32 },
    Quiescent { round: u32, psn: Psn, msn: u32 },
    Running { round: u32 },
    EvictionRequest { receiver: Ipv6Addr },
}

impl World<'_> {
    /// Sends a message over the channel.
    pub(crate) fn send(&mut self, group: usize, message: Message) {
        let is_rough = self.network.now() < self.random_faults_end;
        let fault = Probability::new(f64::from(CHANNEL_FAULTS_PERCENT) / 100.0).unwrap_or_default();
        if is_rough && self.rng.happens(fault) {
            return self.count("control message lost", 1);
        }
        let times = 1 + u64::from(is_rough && self.rng.happens(fault));
        for _ in 0..times {
            let least_ns = self.flows[group].ack_timeout_ns() / CHANNEL_PART;
            let delay_ns = least_ns + self.rng.below(least_ns * (CHANNEL_SPREAD - 1));
            self.messages.push(Some((group, message.clone())));
            let number = self.messages.len() - 1;
            self.tasks.push(self.network.now().after_ns(delay_ns), 0, Task::Deliver(number));
        }
    }

    /// Delivers a message.
    pub(crate) fn deliver(&mut self, number: usize) {
        let Some((group, message)) = self.messages[number].take() else {
            return;
        };
        if self.flows[group].is_finished() {
            return;
        }
        for reply in self.handle(group, message) {
            self.send(group, reply);
        }
        self.send_orders(group);
    }
}
