//! Progress of a lifecycle: phases that wait for no reply, and their orders.

use super::member::{Member, Presence, Step};
use super::order::Order;
use super::{Lifecycle, Phase, Source, draft, stages};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

impl Lifecycle {
    /// Restores the entry of a restarted node: the next one, if its commit was sent.
    pub(super) fn give_back(&mut self, node: Ipv6Addr) {
        let Some(member) = self.members.get_mut(&node) else {
            return;
        };
        let before = self.change.as_ref().and_then(|change| change.before.as_ref());
        let group = match member.step {
            Step::Settled | Step::Committing => self.stored.as_ref(),
            Step::Preparing | Step::Prepared | Step::Leaving | Step::Removing => before,
        };
        match group.and_then(|group| stages::entry_of(group, node)) {
            Some(entry) => {
                member.presence = Presence::Returning(entry.epoch);
                self.orders.push_back(Order::Restore { node, entry: Box::new(entry) });
            }
            None => {
                member.presence = Presence::Here;
                self.order_for(node);
            }
        }
    }

    /// Aborts the change in progress: the former epoch stays.
    pub(super) fn abort(&mut self, reason: String) {
        let Some(change) = self.change.take() else {
            return;
        };
        let epoch = change.after.record().epoch;
        for (node, member) in &mut self.members {
            match (member.presence, member.step) {
                (Presence::Here, Step::Preparing | Step::Prepared) => {
                    self.orders.push_back(Order::Abort { node: *node, epoch });
                }
                (Presence::Returning(_) | Presence::Lost, _)
                | (Presence::Here, Step::Settled | Step::Committing | Step::Leaving | Step::Removing) => {}
            }
            member.step = Step::Settled;
        }
        self.members.retain(|node, _| change.is_known(*node));
        self.orders.push_back(Order::Aborted { reason });
        self.phase = if self.stored.is_some() { Phase::Steady } else { Phase::Closing };
    }

    /// Advances while no reply is awaited.
    pub(super) fn advance(&mut self) {
        loop {
            let goes_on = match self.phase {
                Phase::Preparing => !self.members.values().any(Member::delays_store) && self.store(),
                Phase::Committing { stage } => self.commit_stage(stage),
                Phase::Removing => self.members.values().all(|member| member.step == Step::Settled) && self.finish(),
                Phase::Steady => self.start_next(),
                Phase::Closing => {
                    let is_done = self.members.is_empty();
                    if is_done {
                        self.phase = Phase::Closed;
                        self.orders.push_back(Order::Closed);
                    }
                    is_done
                }
                Phase::Closed => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    pub(super) fn store(&mut self) -> bool {
        let Some(change) = &self.change else { return false };
        self.orders.push_back(Order::Store(Box::new(change.after.record().clone())));
        self.stored = Some(change.after.clone());
        self.phase = Phase::Committing { stage: 0 };
        true
    }

    /// Sends the commit to the nodes of a stage; continues when they have committed.
    pub(super) fn commit_stage(&mut self, stage: usize) -> bool {
        let epoch = self.last_epoch;
        for (node, member) in self.members.iter_mut().filter(|(_, member)| member.stage == stage) {
            match (member.presence, member.step) {
                (Presence::Here, Step::Prepared) => {
                    member.step = Step::Committing;
                    self.orders.push_back(Order::Commit { node: *node, epoch });
                }
                // When it returns, its new entry is restored.
                (Presence::Lost, Step::Preparing | Step::Prepared | Step::Committing) => member.step = Step::Settled,
                (Presence::Here | Presence::Returning(_), Step::Preparing | Step::Committing)
                | (Presence::Returning(_), Step::Prepared)
                | (_, Step::Settled | Step::Leaving | Step::Removing) => {}
            }
        }
        if self.members.values().any(|member| member.stage == stage && member.delays_stage()) {
            return false;
        }
        let stages = self.change.as_ref().map_or(0, |change| change.stages);
        if stage + 1 < stages {
            self.phase = Phase::Committing { stage: stage + 1 };
        } else {
            self.phase = Phase::Removing;
            self.members.retain(|_, member| (member.presence, member.step) != (Presence::Lost, Step::Leaving));
            for (node, member) in &mut self.members {
                if member.step == Step::Leaving {
                    // A node that has not returned yet needs no restoration.
                    *member = Member { step: Step::Removing, presence: Presence::Here, ..*member };
                    self.orders.push_back(Order::Remove { node: *node, epoch });
                }
            }
        }
        true
    }

    pub(super) fn finish(&mut self) -> bool {
        let Some(change) = self.change.take() else { return false };
        let stay: BTreeSet<Ipv6Addr> =
            change.after.record().receivers.iter().map(|receiver| receiver.address).collect();
        let before = change.before.iter().flat_map(|before| &before.record().receivers);
        for receiver in before.filter(|receiver| !stay.contains(&receiver.address)) {
            self.orders.push_back(Order::Evicted { receiver: receiver.address });
        }
        self.orders.push_back(Order::Changed { epoch: self.last_epoch });
        self.phase = Phase::Steady;
        true
    }

    /// The next change, or the release of the source.
    pub(super) fn start_next(&mut self) -> bool {
        let quiet = match self.source {
            Source::Quiet(join) => Some(join),
            Source::Waiting | Source::Running { .. } | Source::Pausing => None,
        };
        if let (Some(wanted), Some(group)) = (self.waiting.pop(quiet.is_some()), &self.stored) {
            match self.next_epoch().and_then(|epoch| draft::after(group, epoch, &wanted, quiet)) {
                Ok(after) => self.begin(after),
                Err(error) => self.orders.push_back(Order::Aborted { reason: error.to_string() }),
            }
            return true;
        }
        match (self.source, self.waiting.needs_quiet_source()) {
            (Source::Waiting | Source::Quiet(_), false) | (Source::Waiting, true) => {
                self.source = Source::Running { acknowledged: false };
                self.orders.push_back(Order::Ready { round: self.rounds });
                true
            }
            (Source::Running { .. }, true) => {
                self.rounds = self.rounds.wrapping_add(1);
                self.source = Source::Pausing;
                self.orders.push_back(Order::Pause { round: self.rounds });
                false
            }
            (Source::Quiet(_) | Source::Pausing, true) | (Source::Running { .. } | Source::Pausing, false) => false,
        }
    }

    pub(super) fn order_for_all(&mut self) {
        let nodes: Vec<Ipv6Addr> = self.members.keys().copied().collect();
        for node in nodes {
            self.order_for(node);
        }
    }

    pub(super) fn order_for_source(&mut self) {
        let round = self.rounds;
        match (self.source, self.phase) {
            (_, Phase::Closing | Phase::Closed) => {}
            (Source::Pausing, _) => self.orders.push_back(Order::Pause { round }),
            (Source::Running { acknowledged: false }, _) => self.orders.push_back(Order::Ready { round }),
            (Source::Waiting | Source::Running { acknowledged: true } | Source::Quiet(_), _) => {}
        }
    }

    /// The order that a node has not replied to.
    pub(super) fn order_for(&mut self, node: Ipv6Addr) {
        let Some(member) = self.members.get(&node) else {
            return;
        };
        let epoch = self.last_epoch;
        let next = self.change.as_ref().and_then(|change| stages::entry_of(&change.after, node));
        match (member.presence, member.step) {
            (Presence::Returning(_), _) => self.give_back(node),
            (Presence::Here, Step::Preparing) => {
                self.orders.extend(next.map(|entry| Order::Prepare { node, entry: Box::new(entry) }));
            }
            (Presence::Here, Step::Committing) => self.orders.push_back(Order::Commit { node, epoch }),
            (Presence::Here, Step::Removing) => self.orders.push_back(Order::Remove { node, epoch }),
            (Presence::Here, Step::Settled | Step::Prepared | Step::Leaving) | (Presence::Lost, _) => {}
        }
    }
}
