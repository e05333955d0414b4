//! Joins in two steps (D187): a newcomer is reserved at J when the source is quiet, and joins when it has said that it
//! is ready to receive from J on. The driver measures the time that a reservation lasts.

use super::change::Wanted;
use super::order::Order;
use super::{Lifecycle, Source};
use crate::group::Join;
use crate::safeguard::Safeguard;
use srdma_wire::Psn;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

impl Lifecycle {
    /// A newcomer is ready to receive from a PSN on. Without effect unless it is the PSN at which it is reserved.
    pub fn ready(&mut self, receiver: Ipv6Addr, psn: Psn) {
        let is_reserved = self.quiet().is_some_and(|join| join.psn == psn);
        if is_reserved && self.waiting.reserved().any(|newcomer| newcomer == receiver) {
            self.ready.insert(receiver, psn);
            self.advance();
        }
    }

    /// A newcomer is deleted: what it has said is not said for one that joins with the same address later.
    pub fn forget_ready(&mut self, receiver: Ipv6Addr) {
        self.ready.remove(&receiver);
    }

    /// The newcomers that have not said that they are ready from J on, while the source is quiet at J for them.
    pub fn reserved(&self) -> BTreeSet<Ipv6Addr> {
        let Some(join) = self.quiet() else { return BTreeSet::new() };
        self.waiting.reserved().filter(|newcomer| !self.is_ready(*newcomer, join)).collect()
    }

    /// J of a receiver that joins in the change in progress, or is reserved.
    pub fn join_point(&self, receiver: Ipv6Addr) -> Option<Psn> {
        let record = self.newest().map(|group| group.record());
        let in_record = record.iter().flat_map(|record| &record.receivers).find(|one| one.address == receiver);
        if let (Some(found), Some(record)) = (in_record, record) {
            return Some(found.joined.map_or(record.initial_psn, |join| join.psn));
        }
        let join = self.quiet()?;
        self.waiting.newcomers().contains(&receiver).then_some(join.psn)
    }

    /// Newcomers that were not ready in time do not join: the others go on.
    pub fn expire(&mut self, receivers: &BTreeSet<Ipv6Addr>, reason: &str) {
        let expired = self.waiting.withdraw(receivers);
        if !expired.is_empty() {
            self.ready.retain(|receiver, _| !expired.contains(receiver));
            self.orders.push_back(Order::Aborted { reason: reason.to_owned() });
        }
        self.advance();
    }

    /// Withdraws the newcomers among these that are not members yet; returns the others.
    pub(super) fn withdraw(&mut self, mut receivers: BTreeSet<Ipv6Addr>) -> BTreeSet<Ipv6Addr> {
        for receiver in self.waiting.withdraw(&receivers) {
            receivers.remove(&receiver);
            self.ready.remove(&receiver);
            self.orders.push_back(Order::Evicted { receiver });
        }
        receivers
    }

    /// Whether the newcomers of a waiting change are ready.
    pub(super) fn may_join(&self, wanted: &Wanted, quiet: Option<Join>) -> bool {
        let is_ready = |newcomer| quiet.is_some_and(|join| self.is_ready(newcomer, join));
        self.without == Some(Safeguard::ReadinessAwaited) || wanted.reserved().all(is_ready)
    }

    fn is_ready(&self, newcomer: Ipv6Addr, join: Join) -> bool {
        self.ready.get(&newcomer) == Some(&join.psn)
    }

    /// J, while the source is quiet.
    pub(super) fn quiet(&self) -> Option<Join> {
        match self.source {
            Source::Quiet(join) => Some(join),
            Source::Waiting | Source::Running { .. } | Source::Pausing => None,
        }
    }
}
