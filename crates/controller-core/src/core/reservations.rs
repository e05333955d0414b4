//! Receivers that join in two steps (D187, D188).
//!
//! ```text
//!   reserve ──► waiting ── source quiet at J ──► reserved at J ── ready ──► member
//!                  │                                 │
//!                  └── not heard for join_timeout ───┴── not ready for join_timeout ──► deleted
//! ```

use super::{Core, Group};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::{self, MemberRow};
use srdma_api::{NewReceiver, ProblemType, ReceiverOrder, ReceiverReport, ReceiverState};
use srdma_group::{Lifecycle, Safeguard};
use srdma_wire::Psn;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::time::Duration;

/// A receiver that joins in two steps and is no member yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// When it was heard last, or the controller started.
    heard: Duration,
    /// It was heard since the controller's start.
    is_heard: bool,
    /// J that it was given and has not said to be ready for, and since when.
    reserved: Option<(Psn, Duration)>,
}

impl Group {
    /// Whether a receiver that joins in two steps was heard since the controller's start.
    pub(super) fn is_heard(&self, address: &Ipv6Addr) -> bool {
        self.reservations.get(address).is_some_and(|reservation| reservation.is_heard)
    }

    /// Whether the stored record, or that of the change in progress, has a receiver.
    fn has_in_record(&self, address: Ipv6Addr) -> bool {
        let newest = self.lifecycle.as_ref().and_then(Lifecycle::newest).map(srdma_group::Group::record);
        let mut receivers = self.record.iter().chain(newest).flat_map(|record| &record.receivers);
        receivers.any(|receiver| receiver.address == address)
    }

    /// Whether a receiver joins in two steps, and is neither a member nor about to be one.
    fn is_pending(&self, address: Ipv6Addr, member: &MemberRow) -> bool {
        member.in_two_steps && !member.is_leaving && !self.has_in_record(address) && !self.is_first(member)
    }

    /// Whether a receiver of a group that was not committed is ready for the commit.
    fn is_first(&self, member: &MemberRow) -> bool {
        self.lifecycle.is_none() && member.ready_at_psn == Some(self.row.request.initial_psn)
    }

    /// Whether a receiver joins in two steps and has not said that it is ready.
    pub(super) fn awaits_ready(&self, address: Ipv6Addr, member: &MemberRow) -> bool {
        let is_ready = self.lifecycle.as_ref().is_some_and(|lifecycle| {
            lifecycle.join_point(address).is_some() && !lifecycle.reserved().contains(&address)
        });
        self.is_pending(address, member) && !is_ready
    }
}

impl Core {
    /// A receiver joins in two steps. The same request again changes nothing.
    pub fn reserve(
        &mut self,
        principal: &Principal,
        id: u32,
        address: Ipv6Addr,
        receiver: NewReceiver,
        version: Option<u64>,
    ) -> Result<(), Refusal> {
        let member = MemberRow { receiver, is_leaving: false, in_two_steps: true, ready_at_psn: None };
        self.enter_member(principal, id, address, member, version)?;
        self.hear(id, address);
        Ok(())
    }

    /// A receiver that has a reservation is alive.
    pub(super) fn hear(&mut self, id: u32, address: Ipv6Addr) {
        let heard = self.now.monotonic;
        let Some(group) = self.groups.get_mut(&id) else { return };
        if !group.members.get(&address).is_some_and(|member| group.is_pending(address, member)) {
            return;
        }
        let new = Reservation { heard, is_heard: true, reserved: None };
        let reservation = group.reservations.entry(address).or_insert(new);
        (reservation.heard, reservation.is_heard) = (heard, true);
        self.reserving.insert(id);
    }

    /// Handles a report of a receiver that has a reservation; returns its order.
    pub fn report_receiver(
        &mut self,
        principal: &Principal,
        id: u32,
        address: Ipv6Addr,
        report: ReceiverReport,
    ) -> Result<ReceiverOrder, Refusal> {
        let group = self.changeable(id, principal, None)?;
        let found = group.members.get(&address).filter(|member| member.receiver.qpn == report.qpn);
        let Some(member) = found else {
            if self.is_verifying(group) {
                let text = format!("the nodes of group {id} have not reported its receivers yet");
                return Err(Refusal::new(ProblemType::Recovering, text));
            }
            let text = format!("{address} is not a receiver of group {id} with queue pair {:#x}", report.qpn);
            return Err(Refusal::new(ProblemType::UnknownReceiver, text));
        };
        if group.is_pending(address, member) {
            self.hear(id, address);
            if let Some(psn) = report.ready_at_psn {
                self.note_ready(id, address, psn);
            }
            self.drive(id);
        }
        Ok(self.receiver_order(id, address, report.qpn))
    }

    /// A receiver is ready from a PSN on.
    fn note_ready(&mut self, id: u32, address: Ipv6Addr, psn: u32) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if let Some(lifecycle) = &mut group.lifecycle {
            return lifecycle.ready(address, Psn::new(psn));
        }
        let is_first = psn == group.row.request.initial_psn;
        if let Some(member) = group.members.get_mut(&address).filter(|member| is_first && member.in_two_steps) {
            member.ready_at_psn = Some(psn);
            let write = rows::put(rows::member_key(id, address), member);
            self.write(write);
            self.effects.changed_groups.insert(id);
        }
    }

    /// The current order of a receiver that joins in two steps.
    pub fn receiver_order(&self, id: u32, address: Ipv6Addr, qpn: u32) -> ReceiverOrder {
        let Some(group) = self.groups.get(&id).filter(|group| !group.row.is_closing) else {
            return ReceiverOrder::End;
        };
        let Some(view) = self.member(group, address).filter(|view| view.qpn == qpn) else {
            return ReceiverOrder::End;
        };
        match view.state {
            ReceiverState::Member => {
                ReceiverOrder::Member { psn: view.joined_psn.unwrap_or(group.row.request.initial_psn) }
            }
            ReceiverState::Joining => match view.reserved_psn {
                Some(psn) => ReceiverOrder::Reserved { psn },
                None => ReceiverOrder::Wait,
            },
            ReceiverState::Unverified => ReceiverOrder::Wait,
            ReceiverState::Leaving => ReceiverOrder::End,
        }
    }

    /// J of a receiver that joins in two steps, if it is known.
    pub(super) fn reserved_psn(&self, group: &Group, address: Ipv6Addr) -> Option<u32> {
        match &group.lifecycle {
            Some(lifecycle) => lifecycle.join_point(address).map(Psn::get),
            None => (!self.may_be_installed(group)).then_some(group.row.request.initial_psn),
        }
    }

    /// Whether the source of a group is quiet for a receiver that has not said that it is ready.
    pub fn is_reserving(&self, id: u32) -> bool {
        let lifecycle = self.groups.get(&id).and_then(|group| group.lifecycle.as_ref());
        lifecycle.is_some_and(|lifecycle| !lifecycle.reserved().is_empty())
    }

    /// Deletes the receivers whose reservations have expired. `since`: time since the last call.
    pub(super) fn expire_reservations(&mut self, since: Duration) {
        // Time in which the controller itself did not listen does not count.
        let was_deaf = since > self.settings.join_timeout / 2;
        for id in self.reserving.clone() {
            let expired = self.expired(id, if was_deaf { since } else { Duration::ZERO });
            if !expired.is_empty() {
                self.delete_expired(id, &expired);
            }
        }
    }

    /// The receivers of a group whose reservations have expired.
    fn expired(&mut self, id: u32, deaf_for: Duration) -> BTreeSet<Ipv6Addr> {
        let (now, timeout) = (self.now.monotonic, self.settings.join_timeout);
        let Some(group) = self.groups.get_mut(&id) else { return BTreeSet::new() };
        let members = group.members.iter().filter(|(address, member)| group.is_pending(**address, member));
        let pending: BTreeSet<Ipv6Addr> = members.map(|(address, _)| *address).collect();
        let lifecycle = group.lifecycle.as_ref();
        let reserved = lifecycle.map(Lifecycle::reserved).unwrap_or_default();
        group.reservations.retain(|address, _| pending.contains(address));
        let mut expired = BTreeSet::new();
        for address in &pending {
            let new = Reservation { heard: now, is_heard: false, reserved: None };
            let reservation = group.reservations.entry(*address).or_insert(new);
            reservation.heard += deaf_for;
            let j =
                lifecycle.filter(|_| reserved.contains(address)).and_then(|lifecycle| lifecycle.join_point(*address));
            reservation.reserved = j.map(|j| match reservation.reserved {
                Some((known, since)) if known == j => (j, since + deaf_for),
                Some(_) | None => (j, now),
            });
            let waited = reservation.reserved.map(|(_, since)| now.saturating_sub(since));
            if now.saturating_sub(reservation.heard) >= timeout || waited.is_some_and(|waited| waited >= timeout) {
                expired.insert(*address);
            }
        }
        // One whose join is in progress waits again if that is postponed.
        let has_joined = |address: &Ipv6Addr| {
            group.record.iter().flat_map(|record| &record.receivers).any(|receiver| receiver.address == *address)
        };
        let may_wait = |(address, member): (&Ipv6Addr, &MemberRow)| {
            member.in_two_steps && !member.is_leaving && !has_joined(address)
        };
        if !group.members.iter().any(may_wait) {
            self.reserving.remove(&id);
        }
        if self.settings.without == Some(Safeguard::ReservationsExpire) { BTreeSet::new() } else { expired }
    }

    fn delete_expired(&mut self, id: u32, expired: &BTreeSet<Ipv6Addr>) {
        let limit_ms = self.settings.join_timeout.as_millis();
        let names: Vec<String> = expired.iter().map(Ipv6Addr::to_string).collect();
        let reason =
            format!("no report of {} within {limit_ms} ms that it is ready: it does not join", names.join(", "));
        let Some(group) = self.groups.get(&id) else { return };
        let begun = group.lifecycle.as_ref().map(Lifecycle::joining).unwrap_or_default();
        // Those whose join has not begun do not begin it when the others go.
        let not_begun: Vec<Ipv6Addr> = expired.difference(&begun).copied().collect();
        if !not_begun.is_empty() {
            self.record_failure(id, &reason);
            not_begun.into_iter().for_each(|address| self.delete_member(id, address));
        }
        if let Some(lifecycle) = self.groups.get_mut(&id).and_then(|group| group.lifecycle.as_mut()) {
            lifecycle.expire(expired, &reason);
        }
        self.drive(id);
    }
}
