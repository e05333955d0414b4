//! Progress of a lifecycle: phases that wait for no reply, and their orders.

use super::change::{ChangeError, Wanted, is_receiver};
use super::member::{Member, Presence, Step};
use super::order::Order;
use super::{Change, Lifecycle, Phase, Source, draft, stages};
use crate::group::{Group, Join};
use crate::name::EntryName;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

impl Lifecycle {
    /// Aborts the change in progress: the former epoch stays. A change that takes the place of a stored one cannot be
    /// aborted; its orders are repeated.
    pub(super) fn abort(&mut self, reason: String) {
        if self.undo().is_some() {
            self.orders.push_back(Order::Aborted { reason });
        }
    }

    /// Aborts the change in progress, to begin it again when the nodes are connected that it needs.
    pub(super) fn postpone(&mut self) {
        if let Some(wanted) = self.undo().and_then(|change| change.wanted) {
            self.waiting.put_back(wanted);
        }
        // One that has left meanwhile says no more that it is ready.
        let leaving = self.waiting.evictions();
        self.withdraw(leaving);
    }

    /// Ends the lifecycle for another one that takes its place. Returns the entries that nodes may have prepared, and
    /// have to drop: the next record may have an earlier epoch. A node that has committed its entry ignores the order.
    pub fn abandon(self) -> impl Iterator<Item = (Ipv6Addr, EntryName)> {
        self.members.into_iter().filter_map(|(node, member)| match (member.presence, member.step) {
            (Presence::Here, Step::Preparing | Step::Prepared | Step::Committing) => Some((node, member.next()?)),
            (Presence::Here | Presence::Returning(_) | Presence::Lost | Presence::Unheard, _) => None,
        })
    }

    fn undo(&mut self) -> Option<Change> {
        let change = self.change.take_if(|change| !change.is_superseding)?;
        let stored = self.stored.as_ref().map(|group| group.record().tree.nodes());
        let is_outside = |node: Ipv6Addr| stored.is_some_and(|nodes| nodes.iter().all(|one| one.loopback != node));
        for (node, member) in &mut self.members {
            match (member.presence, member.step, member.next()) {
                // Its new entry took the place of a removal, which may not have been executed.
                (Presence::Here, Step::Preparing | Step::Prepared, Some(_)) if is_outside(*node) => {
                    self.orders.push_back(Order::Remove { node: *node, epoch: self.last_epoch });
                }
                (Presence::Here, Step::Preparing | Step::Prepared, Some(name)) => {
                    self.orders.push_back(Order::Abort { node: *node, name });
                }
                (Presence::Here | Presence::Returning(_) | Presence::Lost | Presence::Unheard, _, _) => {}
            }
            member.step = Step::Settled;
            member.concern = None;
        }
        self.members.retain(|node, _| change.is_known(*node));
        self.phase = if self.stored.is_some() { Phase::Steady } else { Phase::Closing };
        Some(change)
    }

    /// Advances while no reply is awaited.
    pub(super) fn advance(&mut self) {
        loop {
            let goes_on = match self.phase {
                Phase::Preparing => !self.members.values().any(Member::delays_store) && self.store(),
                Phase::Fencing => self.fence(),
                Phase::Committing { stage } => self.commit_stage(stage) || self.supersede(stage),
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
        let record = Box::new(change.after.record().clone());
        let before = change.before.as_ref().map(|before| Box::new(before.record().clone()));
        self.orders.push_back(Order::Store { record, before });
        self.stored = Some(change.after.clone());
        self.phase = self.phase_when_stored();
        true
    }

    /// Sends the commit to the nodes of a stage; continues when they have committed.
    pub(super) fn commit_stage(&mut self, stage: usize) -> bool {
        let begins = self.headend().filter(|_| self.is_creation());
        for (node, member) in self.members.iter_mut().filter(|(_, member)| member.is_in_stage(stage)) {
            match (member.presence, member.step, member.next()) {
                (Presence::Here, Step::Prepared, Some(name)) => {
                    member.step = Step::Committing;
                    let is_first = begins == Some(*node);
                    self.orders.push_back(Order::Commit { node: *node, name, is_first });
                }
                // When it returns, its new entry is restored.
                (Presence::Lost, Step::Preparing | Step::Prepared | Step::Committing, _) if !member.must_commit() => {
                    member.step = Step::Settled;
                }
                (Presence::Here | Presence::Returning(_) | Presence::Lost | Presence::Unheard, _, _) => {}
            }
        }
        if self.members.values().any(|member| member.is_in_stage(stage) && member.delays_stage()) {
            return false;
        }
        let stages = self.change.as_ref().map_or(0, |change| change.stages);
        if stage + 1 < stages {
            self.phase = Phase::Committing { stage: stage + 1 };
        } else {
            self.begin_removal();
        }
        true
    }

    /// All nodes have committed: those that are not in the record any more remove the group.
    fn begin_removal(&mut self) {
        let epoch = self.last_epoch;
        self.phase = Phase::Removing;
        self.members.retain(|_, member| (member.presence, member.step) != (Presence::Lost, Step::Leaving));
        for (node, member) in &mut self.members {
            member.concern = None;
            if member.step == Step::Leaving {
                member.step = Step::Removing;
                if member.presence != Presence::Unheard {
                    // A node that has not returned yet needs no restoration.
                    member.presence = Presence::Here;
                    self.orders.push_back(Order::Remove { node: *node, epoch });
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> bool {
        let Some(change) = self.change.take() else { return false };
        let (epoch, nodes) = (change.after.record().epoch, change.after.record().tree.nodes());
        for node in nodes.iter().filter(|node| node.renewed == epoch) {
            if let Some(member) = self.members.get_mut(&node.loopback) {
                member.must_renew = false;
            }
        }
        let stay: BTreeSet<Ipv6Addr> =
            change.after.record().receivers.iter().map(|receiver| receiver.address).collect();
        for receiver in change.receivers.into_iter().filter(|receiver| !stay.contains(receiver)) {
            self.orders.push_back(Order::Evicted { receiver });
        }
        self.ready.retain(|receiver, _| !stay.contains(receiver));
        self.orders.push_back(Order::Changed { epoch });
        self.phase = Phase::Steady;
        true
    }

    /// The next change, or the release of the source.
    pub(super) fn start_next(&mut self) -> bool {
        if self.start_waiting(self.quiet(), |_| true) {
            return true;
        }
        let is_heard = !self.members.values().any(|member| member.presence == Presence::Unheard);
        match (self.source, self.needs_quiet_source()) {
            (Source::Waiting | Source::Quiet(_), false) | (Source::Waiting, true) if is_heard => {
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
            (Source::Waiting | Source::Quiet(_), _)
            | (Source::Pausing, true)
            | (Source::Running { .. } | Source::Pausing, false) => false,
        }
    }

    /// An eviction takes the place of a stored change that a lost node holds up, if it does not need that node.
    pub(super) fn supersede(&mut self, stage: usize) -> bool {
        let is_held_up =
            |member: &Member| member.is_in_stage(stage) && member.presence == Presence::Lost && member.delays_stage();
        self.members.values().any(is_held_up) && self.start_waiting(None, |wanted| matches!(wanted, Wanted::Evict(_)))
    }

    /// Begins the first waiting change that no lost node holds up.
    fn start_waiting(&mut self, quiet: Option<Join>, may_start: impl Fn(&Wanted) -> bool) -> bool {
        self.blocked_by.clear();
        if self.waiting.is_empty() {
            return false;
        }
        let Some(group) = &self.stored else { return false };
        self.waiting.separate_evictions(|address| is_receiver(group, *address));
        if let Some(headend) = self.unverified_headend() {
            self.blocked_by.insert(headend);
            return false;
        }
        let epoch = self.next_epoch();
        let renewed: BTreeSet<Ipv6Addr> = self.unrenewed().collect();
        // A receiver may be unknown because it has not joined yet.
        let joins_wait = self.waiting.in_order().any(|(_, wanted)| wanted.needs_quiet_source());
        let mut next = None;
        for (position, wanted) in self.waiting.in_order() {
            if !may_start(wanted) || (wanted.needs_quiet_source() && quiet.is_none()) || !self.may_join(wanted, quiet) {
                continue;
            }
            let after = epoch.clone().and_then(|epoch| draft::after(group, epoch, wanted, quiet, &renewed));
            if matches!(after, Err(ChangeError::NotAReceiver(_))) && joins_wait {
                continue;
            }
            let blockers = after.as_ref().map(|after| self.blockers(after)).unwrap_or_default();
            if blockers.is_empty() {
                next = Some((position, after));
                break;
            }
            self.blocked_by.extend(blockers);
        }
        let Some((position, after)) = next else { return false };
        let wanted = self.waiting.remove(position);
        match after {
            Ok(after) => self.begin(after, wanted),
            // Its join was aborted.
            Err(ChangeError::NotAReceiver(_)) => {
                let receivers = wanted.into_iter().flat_map(Wanted::evicted);
                self.orders.extend(receivers.map(|receiver| Order::Evicted { receiver }));
            }
            Err(error) => self.orders.push_back(Order::Aborted { reason: error.to_string() }),
        }
        true
    }

    /// Whether a waiting change needs a quiet source, and no lost node holds it up.
    fn needs_quiet_source(&self) -> bool {
        let Some(group) = self.stored.as_ref().filter(|_| self.unverified_headend().is_none()) else { return false };
        let join = Join { psn: group.record().initial_psn, msn: 0 };
        let mut waiting = self.waiting.in_order().filter(|(_, wanted)| wanted.needs_quiet_source());
        waiting.any(|(_, wanted)| {
            let after =
                self.next_epoch().and_then(|epoch| draft::after(group, epoch, wanted, Some(join), &BTreeSet::new()));
            // An impossible change is rejected when the source is quiet.
            after.map_or(true, |after| self.blockers(&after).is_empty())
        })
    }

    /// The headend, if it has not registered since the controller's start: the record may not be the newest.
    pub(super) fn unverified_headend(&self) -> Option<Ipv6Addr> {
        self.headend().filter(|headend| self.members.get(headend).is_some_and(Member::is_unreported))
    }

    /// The headend of the stored record.
    pub(super) fn headend(&self) -> Option<Ipv6Addr> {
        Some(self.stored.as_ref()?.record().tree.nodes().first()?.loopback)
    }

    /// Whether a node must not be given an entry yet: the record may not be the newest, and other nodes may count on
    /// entries of that one.
    pub(super) fn awaits_headend(&self, node: Ipv6Addr) -> bool {
        self.unverified_headend().is_some_and(|headend| headend != node)
    }

    /// The nodes that have to commit a change, and are not connected.
    fn blockers(&self, after: &Group) -> BTreeSet<Ipv6Addr> {
        let (concerned, _) = self.concerned(after);
        let is_away = |node: &Ipv6Addr| {
            self.members.get(node).is_some_and(|member| matches!(member.presence, Presence::Lost | Presence::Unheard))
        };
        let must = concerned.into_iter().filter(|(_, concern)| concern.must_commit).map(|(node, _)| node);
        must.filter(is_away).collect()
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

    /// Whether the change in progress is the group's first: its source is released when it is complete.
    fn is_creation(&self) -> bool {
        self.change.as_ref().is_some_and(|change| change.before.is_none())
    }

    /// The order that a node has not replied to.
    pub(super) fn order_for(&mut self, node: Ipv6Addr) {
        let Some(member) = self.members.get(&node) else {
            return;
        };
        let epoch = self.last_epoch;
        let entry = self.change.as_ref().and_then(|change| stages::entry_of(&change.after, node)).map(Box::new);
        let (awaits_headend, is_first) =
            (self.awaits_headend(node), self.headend() == Some(node) && self.is_creation());
        match (member.presence, member.step, member.next()) {
            (Presence::Returning(_), _, _) => self.restore(node),
            (Presence::Here, Step::Preparing | Step::Committing, Some(_)) if awaits_headend => {}
            (Presence::Here, Step::Preparing, Some(name)) => {
                // An order to prepare an earlier epoch than that would be refused.
                self.orders.extend(member.abandoned.map(|name| Order::Abort { node, name }));
                self.orders.extend(entry.map(|entry| Order::Prepare { node, name, entry }));
            }
            (Presence::Here, Step::Committing, Some(name)) => {
                self.orders.push_back(Order::Commit { node, name, is_first });
            }
            (Presence::Here, Step::Removing, _) => self.orders.push_back(Order::Remove { node, epoch }),
            (Presence::Here, Step::Preparing | Step::Committing, None)
            | (Presence::Here, Step::Settled | Step::Prepared | Step::Leaving, _)
            | (Presence::Lost | Presence::Unheard, _, _) => {}
        }
    }
}
