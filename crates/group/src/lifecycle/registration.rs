//! Registrations of nodes: what a node has of the group is compared with what it should have.

use super::change::Wanted;
use super::member::{Member, Presence, Step, Verification};
use super::order::Order;
use super::{Change, Lifecycle, Phase, stages};
use crate::name::{EntryName, Held};
use crate::safeguard::Safeguard;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// A node has an entry of a record that the controller does not know: its store was lost or is an older one (D98).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node} has {name}, which is not in the store")]
pub struct Ahead {
    /// The node.
    pub node: Ipv6Addr,
    /// The name of its entry.
    pub name: EntryName,
}

impl Lifecycle {
    /// A node has registered with these entries. Its entry is restored if it is not what the node should have. Replies
    /// from before the registration must not be passed in any more.
    ///
    /// # Errors
    ///
    /// The node is ahead of the stored record; nothing has changed. The group must not be driven any more.
    pub fn registered(&mut self, node: Ipv6Addr, held: Held) -> Result<(), Ahead> {
        if !matches!(self.phase, Phase::Closing | Phase::Closed)
            && let Some(name) = held.names().find(|name| self.is_unknown(*name, held.committed == Some(*name)))
        {
            return Err(Ahead { node, name });
        }
        // A removal of an earlier epoch would be outdated.
        self.last_epoch = self.last_epoch.max(held.newest_epoch());
        self.orders.retain(|order| order.node() != Some(node));
        self.fenced.remove(&node);
        let step = self.members.get(&node).map(|member| member.step);
        match (self.phase, step) {
            (Phase::Closed, _) => {}
            (_, None) if !held.is_empty() => self.orders.push_back(Order::Remove { node, epoch: self.last_epoch }),
            (_, None) => {}
            // A node without the group needs no removal.
            (_, Some(Step::Removing)) if held.is_empty() => {
                self.members.remove(&node);
            }
            (_, Some(Step::Leaving)) if held.is_empty() && self.phase != Phase::Preparing => {
                self.members.remove(&node);
            }
            (_, Some(step)) => self.compare(node, step, held),
        }
        self.advance();
        Ok(())
    }

    /// A node has registered without any entry.
    pub fn restarted(&mut self, node: Ipv6Addr) {
        // A node without an entry is not ahead of any record.
        let _ = self.registered(node, Held::default());
    }

    /// The nodes whose entries are not known: they have not registered since the controller's start. While the
    /// headend is one of them, no change begins.
    pub fn unverified(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.members.iter().filter(|(_, member)| member.is_unreported()).map(|(loopback, _)| *loopback)
    }

    /// Whether all nodes have what the records say, as far as they have registered since the controller's start or have
    /// confirmed an entry, and have been renewed where that is required: until then a receiver may be one that its node
    /// does not wait for. A group that is closed before that stays unverified.
    pub fn is_verified(&self) -> bool {
        let is_verified = |member: &Member| member.verification == Verification::Verified && !member.must_renew;
        !self.is_closed_unverified && self.members.values().all(is_verified)
    }

    /// The nodes that are to be renewed: they had an entry that the record does not explain, or have lost the one that
    /// they had, and their parents may count what they acknowledged by it (D136). A driver stores them before it
    /// executes the orders that follow, and passes them to [`renewing`](Lifecycle::renewing) when it resumes.
    pub fn unrenewed(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.members.iter().filter(|(_, member)| member.must_renew).map(|(loopback, _)| *loopback)
    }

    /// A resumed lifecycle, of which these nodes have not been renewed yet.
    pub fn renewing(mut self, nodes: &BTreeSet<Ipv6Addr>) -> Self {
        for (_, member) in self.members.iter_mut().filter(|(loopback, _)| nodes.contains(loopback)) {
            member.must_renew = true;
        }
        self.want_renewal();
        self.advance();
        self
    }

    /// Requests a change that renews nodes, if there are any to renew. One that is rejected is requested again by
    /// [`repeat`](Lifecycle::repeat).
    pub(super) fn want_renewal(&mut self) {
        if self.unrenewed().next().is_some() && !matches!(self.phase, Phase::Closing | Phase::Closed) {
            let _ = self.waiting.push(Wanted::Renew);
        }
    }

    /// Whether no record of this name was ever made from this store. A record that a node has committed was stored, so
    /// that none is newer than the last stored one: the epoch of a change that is being prepared says nothing.
    fn is_unknown(&self, name: EntryName, is_committed: bool) -> bool {
        let newest = self.stored.as_ref().or(self.newest()).map_or(0, |group| group.record().epoch);
        let change = self.change.iter().flat_map(|change| change.before.iter().chain([&change.after]));
        if self.without == Some(Safeguard::EntriesNamed) {
            return false;
        }
        let is_other = |group: &crate::Group| group.record().epoch == name.epoch && group.digest() != name.record;
        name.epoch > self.last_epoch
            || (is_committed && name.epoch > newest)
            || self.stored.iter().chain(change).any(is_other)
    }

    fn compare(&mut self, node: Ipv6Addr, step: Step, held: Held) {
        let before = self.change.as_ref().and_then(|change| change.before.as_ref());
        let group = match step {
            Step::Settled => self.stored.as_ref(),
            Step::Preparing | Step::Prepared | Step::Committing | Step::Leaving | Step::Removing => before,
        };
        let wanted = group.and_then(|group| Some(group.name_of(&stages::entry_of(group, node)?)));
        // An entry between the two records of a change is of a change that this one has superseded: it is replaced in
        // the order of commits.
        let fits = match (wanted, held.committed) {
            (Some(_), Some(_)) if self.without == Some(Safeguard::OldEntriesReplaced) => true,
            (Some(wanted), Some(has)) if self.without == Some(Safeguard::EntriesNamed) => has.epoch >= wanted.epoch,
            (Some(wanted), Some(has)) => {
                has.entry == wanted.entry || (has.epoch > wanted.epoch && step != Step::Settled)
            }
            (None, has) => has.is_none() || step != Step::Settled,
            (Some(_), None) => false,
        };
        let is_unsettled = self.change.as_ref().is_some_and(Change::is_unsettled);
        let was_awaited = self.unverified_headend() == Some(node);
        let is_headend = self.headend() == Some(node);
        let has_to_end = self.has_to_end(node);
        let Some(member) = self.members.get_mut(&node) else { return };
        member.presence = Presence::Here;
        let next = member.next();
        let (has_committed, has_prepared) =
            (next.is_some() && held.committed == next, next.is_some() && held.prepared == next);
        member.abandoned = held.prepared.filter(|name| Some(*name) != next);
        let is_explained = has_committed || (step == Step::Settled && fits);
        let entry = |name: EntryName| name.entry;
        let is_other = !is_explained && held.committed.map(entry) != wanted.map(entry);
        let may_be_counted = member.verification != Verification::Verified && !is_headend && step != Step::Removing;
        member.must_renew |= is_other && may_be_counted && self.without != Some(Safeguard::NodesRenewed);
        member.verification = match member.verification {
            Verification::Unreported | Verification::Differs if is_other && held.committed.is_some() => {
                Verification::Differs
            }
            Verification::Unreported | Verification::Differs | Verification::Verified => Verification::Verified,
        };
        match step {
            Step::Settled if fits => {
                let abandoned = held.prepared.map(|name| Order::Abort { node, name });
                self.orders.extend(abandoned);
            }
            Step::Preparing | Step::Prepared | Step::Committing if has_committed => member.step = Step::Settled,
            Step::Leaving if has_to_end => {
                member.step = Step::Removing;
                self.order_for(node);
            }
            Step::Preparing | Step::Prepared if has_to_end => {
                member.step = Step::Committing;
                self.restore(node);
            }
            Step::Committing if has_prepared => self.order_for(node),
            Step::Preparing | Step::Prepared if fits && has_prepared => member.step = Step::Prepared,
            Step::Preparing | Step::Prepared if fits => {
                member.step = Step::Preparing;
                self.order_for(node);
            }
            // It may have committed its next entry, which nodes above it count on: its former one would acknowledge
            // data without a receiver. It has none before its stage.
            Step::Preparing | Step::Prepared if held.committed.is_none() && is_unsettled => {
                member.step = Step::Preparing;
                self.order_for(node);
            }
            Step::Preparing | Step::Prepared => {
                member.step = Step::Preparing;
                self.restore(node);
            }
            Step::Leaving if fits => {}
            Step::Removing => self.order_for(node),
            Step::Settled | Step::Committing | Step::Leaving => self.restore(node),
        }
        if was_awaited {
            self.order_for_all();
        }
        self.want_renewal();
    }

    /// Restores the entry of a node: the next one, if its commit was sent.
    pub(super) fn restore(&mut self, node: Ipv6Addr) {
        let Some(member) = self.members.get_mut(&node) else {
            return;
        };
        let before = self.change.as_ref().and_then(|change| change.before.as_ref());
        let group = match member.step {
            Step::Settled | Step::Committing => self.stored.as_ref(),
            Step::Preparing | Step::Prepared | Step::Leaving | Step::Removing => before,
        };
        match group.and_then(|group| Some((group, stages::entry_of(group, node)?))) {
            Some((group, entry)) => {
                let name = group.name_of(&entry);
                member.presence = Presence::Returning(name);
                if !self.awaits_headend(node) {
                    self.orders.push_back(Order::Restore { node, name, entry: Box::new(entry) });
                }
            }
            None => {
                member.presence = Presence::Here;
                self.order_for(node);
            }
        }
    }
}
