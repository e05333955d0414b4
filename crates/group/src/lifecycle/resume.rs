//! Resumption of a lifecycle from the store, after its driver has restarted.

use super::member::{Member, Presence, Step, Verification};
use super::order::Order;
use super::{Change, Lifecycle, Phase, Source, Waiting, stages};
use crate::group::{Group, GroupError, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

/// The last known progress of the stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// Every node had prepared.
    Settled,
    /// Not all had prepared, or this is unknown: the commit is sent again to all concerned nodes.
    Committing {
        /// The former record, if any.
        before: Option<Box<Record>>,
    },
}

impl Lifecycle {
    /// Resumes a group whose record is stored. Changes that were not stored are aborted.
    ///
    /// `last_epoch`: the last that a node may have been given. `round` must be greater than any that the source may
    /// have received. The driver calls [`registered`](Lifecycle::registered) for each node that registers, and
    /// [`lost`](Lifecycle::lost) for those that do not; until then the group waits for them.
    ///
    /// # Errors
    ///
    /// If a record is invalid.
    pub fn resume(record: Record, resumption: Resumption, last_epoch: u32, round: u32) -> Result<Self, GroupError> {
        let group = Group::new(record)?;
        let (step, verification) = (Step::Settled, Verification::Unreported);
        let settled = Member {
            step,
            presence: Presence::Unheard,
            concern: None,
            verification,
            abandoned: None,
            must_renew: false,
        };
        let stay: BTreeSet<Ipv6Addr> = group.record().tree.nodes().iter().map(|node| node.loopback).collect();
        let mut lifecycle = Lifecycle {
            last_epoch: group.record().epoch.max(last_epoch),
            change: None,
            phase: Phase::Steady,
            members: stay.iter().map(|loopback| (*loopback, settled)).collect::<BTreeMap<_, _>>(),
            source: Source::Waiting,
            waiting: Waiting::default(),
            ready: BTreeMap::new(),
            blocked_by: BTreeSet::new(),
            fenced: BTreeSet::new(),
            orders: VecDeque::new(),
            rounds: round,
            is_closed_unverified: false,
            without: None,
            stored: Some(group.clone()),
        };
        if let Resumption::Committing { before } = resumption {
            let before = before.map(|before| Group::new(*before)).transpose()?;
            let entry_before = |node: Ipv6Addr| {
                let entry = before.as_ref().and_then(|before| stages::entry_of(before, node));
                // It may have a later one, of a change that this one has superseded.
                stages::Before { entry, is_unsettled: true }
            };
            let (concerned, stages) = stages::stages(entry_before, &group);
            for (loopback, concern) in concerned {
                let member = Member { step: Step::Prepared, concern: Some(concern), ..settled };
                lifecycle.members.insert(loopback, member);
            }
            let were = before.iter().flat_map(|before| before.record().tree.nodes()).map(|node| node.loopback);
            for loopback in were.filter(|loopback| !stay.contains(loopback)) {
                lifecycle.members.insert(loopback, Member { step: Step::Leaving, ..settled });
            }
            let receivers = before.iter().chain([&group]).flat_map(|group| &group.record().receivers);
            let receivers = receivers.map(|receiver| receiver.address).collect();
            let (after, wanted, is_superseding) = (group, None, false);
            let is_resumed = true;
            lifecycle.change = Some(Change { before, after, stages, wanted, receivers, is_superseding, is_resumed });
            lifecycle.phase = lifecycle.phase_when_stored();
        }
        lifecycle.advance();
        Ok(lifecycle)
    }

    /// The current order for the source; `None` while it has to wait.
    pub fn source_order(&self) -> Option<Order> {
        let round = self.rounds;
        match (self.source, self.phase) {
            (_, Phase::Closing | Phase::Closed) | (Source::Waiting | Source::Quiet(_), _) => None,
            (Source::Pausing, _) => Some(Order::Pause { round }),
            (Source::Running { .. }, _) => Some(Order::Ready { round }),
        }
    }

    /// The group after the change in progress, or its current state.
    pub fn newest(&self) -> Option<&Group> {
        self.change.as_ref().map(|change| &change.after).or(self.stored.as_ref())
    }

    /// The nodes that the change in progress, the next one, or the end of the group waits for.
    pub fn awaited(&self) -> BTreeSet<Ipv6Addr> {
        let is_awaited = |member: &Member| match member.presence {
            Presence::Lost => member.delays_stage() || member.delays_store(),
            Presence::Unheard => true,
            Presence::Here | Presence::Returning(_) => {
                !matches!(member.step, Step::Settled | Step::Prepared | Step::Leaving)
            }
        };
        let awaited = self.members.iter().filter(|(_, member)| is_awaited(member)).map(|(loopback, _)| *loopback);
        awaited.chain(self.ending()).chain(self.blocked_by.iter().copied()).collect()
    }
}
