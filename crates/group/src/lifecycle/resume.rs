//! Resumption of a lifecycle from the store, after its driver has restarted.

use super::member::{Member, Presence, Step};
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
    /// `round` must be greater than any that the source may have received. The driver calls
    /// [`restarted`](Lifecycle::restarted) for each node that reports no entry of the group.
    ///
    /// # Errors
    ///
    /// If a record is invalid.
    pub fn resume(record: Record, resumption: Resumption, round: u32) -> Result<Self, GroupError> {
        let group = Group::new(record)?;
        let settled = Member { step: Step::Settled, presence: Presence::Here, stage: 0 };
        let stay: BTreeSet<Ipv6Addr> = group.record().tree.nodes().iter().map(|node| node.loopback).collect();
        let mut lifecycle = Lifecycle {
            last_epoch: group.record().epoch,
            change: None,
            phase: Phase::Steady,
            members: stay.iter().map(|loopback| (*loopback, settled)).collect::<BTreeMap<_, _>>(),
            source: Source::Waiting,
            waiting: Waiting::default(),
            orders: VecDeque::new(),
            rounds: round,
            stored: Some(group.clone()),
        };
        if let Resumption::Committing { before } = resumption {
            let before = before.map(|before| Group::new(*before)).transpose()?;
            let (concerned, stages) = stages::stages(before.as_ref(), &group);
            for (loopback, stage) in concerned {
                lifecycle.members.insert(loopback, Member { step: Step::Prepared, stage, ..settled });
            }
            let were = before.iter().flat_map(|before| before.record().tree.nodes()).map(|node| node.loopback);
            for loopback in were.filter(|loopback| !stay.contains(loopback)) {
                lifecycle.members.insert(loopback, Member { step: Step::Leaving, ..settled });
            }
            lifecycle.change = Some(Change { before, after: group, stages });
            lifecycle.phase = Phase::Committing { stage: 0 };
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

    /// The nodes that the change in progress, or the end of the group, waits for.
    pub fn awaited(&self) -> impl Iterator<Item = Ipv6Addr> {
        let awaited = self.members.iter().filter(|(_, member)| {
            member.presence != Presence::Lost && !matches!(member.step, Step::Settled | Step::Prepared | Step::Leaving)
        });
        awaited.map(|(loopback, _)| *loopback)
    }
}
