//! Data that arrive: what a packet is, which branches are sent it, and whether it is kept.

use crate::branch::Cursor;
use crate::buffer::Slot;
use crate::repair::{Effects, Received, Repair, known_minimum};
use srdma_aggregation::{Acknowledgements, BranchIndex};
use srdma_wire::{Instant, Psn};
use std::cmp::Ordering;

/// What a received packet is, and so where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    psn: Psn,
    ack_request: bool,
    kind: ArrivalKind,
    /// All branches are level and the packet is the expected one: every branch is sent it.
    pub is_for_all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrivalKind {
    /// All branches have acknowledged it.
    Below,
    /// It is in the buffer.
    Held { adds_ack_request: bool },
    /// It was received before, and is no longer in the buffer.
    Refill,
    /// The expected one.
    InOrder,
    /// Others before it are missing.
    AheadOfGap,
    /// The group goes on without repair.
    Passing,
}

/// Whether a received packet was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It is in the buffer, in place of an equal one if there was one.
    Kept,
    /// It was not needed.
    Absorbed,
    /// There was no room.
    NoRoom,
}

impl Arrival {
    /// Whether data before it are missing: it is not sent on before them.
    pub fn is_ahead(&self) -> bool {
        self.kind == ArrivalKind::AheadOfGap
    }
}

impl<P> Repair<P> {
    /// A data packet has come, and the aggregation has taken note of it. The caller sends it to the branches that
    /// [want](Self::wants) it, then [stores](Self::store) it.
    #[inline]
    pub fn arrive(&mut self, now: Instant, psn: Psn, ack_request: bool, acks: &Acknowledgements) -> Arrival {
        if self.is_off {
            return Arrival { psn, ack_request, kind: ArrivalKind::Passing, is_for_all: true };
        }
        let received = self.received.get_or_insert(Received::nothing_before(psn));
        let goes_back = received.note(now, psn);
        let kind = match psn.serial_cmp(received.expected) {
            Ordering::Equal => ArrivalKind::InOrder,
            _ if known_minimum(acks).is_some_and(|minimum| psn.is_before(minimum)) => ArrivalKind::Below,
            order => match (self.buffer.get(psn), order) {
                (Some(slot), _) => ArrivalKind::Held { adds_ack_request: ack_request && !slot.ack_request },
                (None, Ordering::Greater) => ArrivalKind::AheadOfGap,
                (None, Ordering::Less | Ordering::Equal) => ArrivalKind::Refill,
            },
        };
        if let (true, ArrivalKind::Held { .. }) = (goes_back, kind) {
            self.pass_over_gap(psn);
        }
        let is_for_all = kind == ArrivalKind::InOrder && self.not_level == 0;
        Arrival { psn, ack_request, kind, is_for_all }
    }

    /// Whether a packet is sent to a branch as it arrives.
    pub fn wants(&self, arrival: &Arrival, branch: BranchIndex, acks: &Acknowledgements) -> bool {
        let Some(of) = self.branches.get(branch.index()) else { return false };
        let lacks = || acks.expected_psn(branch).is_none_or(|next| !arrival.psn.is_before(next)) && !of.is_paused();
        match (of.cursor, arrival.kind) {
            (Cursor::Removed, _) => false,
            (Cursor::Unknown | Cursor::Blind, _) | (_, ArrivalKind::Passing) => true,
            (Cursor::Level, ArrivalKind::InOrder) => true,
            (Cursor::Level, ArrivalKind::Held { adds_ack_request: true } | ArrivalKind::Refill) => {
                self.received.is_some_and(|received| arrival.psn.is_before(received.expected)) && lacks()
            }
            (
                Cursor::Behind(psn) | Cursor::Ahead(psn),
                ArrivalKind::Held { adds_ack_request: true } | ArrivalKind::Refill,
            ) => arrival.psn.is_before(psn) && lacks(),
            (
                Cursor::Level,
                ArrivalKind::Below | ArrivalKind::Held { adds_ack_request: false } | ArrivalKind::AheadOfGap,
            )
            | (
                Cursor::Behind(_) | Cursor::Ahead(_),
                ArrivalKind::Below
                | ArrivalKind::Held { adds_ack_request: false }
                | ArrivalKind::InOrder
                | ArrivalKind::AheadOfGap,
            ) => false,
        }
    }

    /// Counts a packet that has come again for the branches that have responded and were sent it nevertheless, since
    /// they are sent all data as they come: a receiver that makes no progress with it is stalled (D25, D158). Returns
    /// whether there are such branches: the deadline of the aggregation may have changed.
    #[inline]
    pub fn count_again(&self, now: Instant, arrival: &Arrival, acks: &mut Acknowledgements) -> bool {
        let comes_again = match arrival.kind {
            ArrivalKind::Held { .. } | ArrivalKind::Refill => true,
            ArrivalKind::Below | ArrivalKind::InOrder | ArrivalKind::AheadOfGap | ArrivalKind::Passing => false,
        };
        self.not_level > 0 && comes_again && self.count_for_all(now, arrival.psn, acks)
    }

    #[cold]
    fn count_for_all(&self, now: Instant, psn: Psn, acks: &mut Acknowledgements) -> bool {
        let mut is_counted = false;
        for (index, of) in self.branches.iter().enumerate() {
            let branch = BranchIndex(index as u16);
            if matches!(of.cursor, Cursor::Unknown | Cursor::Blind) && acks.expected_psn(branch) == Some(psn) {
                acks.data_resent(now, branch, psn);
                is_counted = true;
            }
        }
        is_counted
    }

    /// Keeps a packet that has been sent to the branches that want it.
    #[inline]
    pub fn store(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: P,
        acks: &Acknowledgements,
        effects: &mut Effects<P>,
    ) -> Placement {
        match arrival.kind {
            ArrivalKind::InOrder => self.store_expected(now, arrival, packet, effects),
            ArrivalKind::Below
            | ArrivalKind::Held { .. }
            | ArrivalKind::Refill
            | ArrivalKind::AheadOfGap
            | ArrivalKind::Passing => self.store_other(now, arrival, packet, acks, effects),
        }
    }

    /// The expected packet.
    #[inline]
    fn store_expected(&mut self, now: Instant, arrival: Arrival, packet: P, effects: &mut Effects<P>) -> Placement {
        let placement = self.keep(now, arrival.psn, arrival.ack_request, packet, effects);
        if self.is_off {
            return placement;
        }
        self.arm_for(now, arrival.ack_request);
        let next = arrival.psn.next();
        match &mut self.received {
            // Nothing is missing, and no branch is behind.
            Some(received)
                if received.end == arrival.psn
                    && self.not_level == 0
                    && self.gap.is_none()
                    && self.requested.is_none() =>
            {
                (received.expected, received.end) = (next, next);
            }
            Some(_) | None => self.advance_past_gaps(now, next, effects),
        }
        placement
    }

    /// The expected packet, while others are missing or branches are behind.
    #[cold]
    fn advance_past_gaps(&mut self, now: Instant, sent: Psn, effects: &mut Effects<P>) {
        self.advance(now, sent, effects);
        if self.gap.is_some() || self.requested.is_some() {
            self.renew_gap(now);
        }
    }

    /// A packet that is not the expected one.
    #[cold]
    fn store_other(
        &mut self,
        now: Instant,
        arrival: Arrival,
        packet: P,
        acks: &Acknowledgements,
        effects: &mut Effects<P>,
    ) -> Placement {
        let Arrival { psn, ack_request, kind, .. } = arrival;
        let placement = match kind {
            ArrivalKind::Below | ArrivalKind::Passing => {
                effects.released.push(packet);
                Placement::Absorbed
            }
            ArrivalKind::Held { adds_ack_request: false } => {
                // The lists of the former one may name receivers that have gone: edges drop it (D96, D155).
                let former = match self.buffer.get_mut(psn) {
                    Some(slot) => std::mem::replace(&mut slot.packet, packet),
                    None => packet,
                };
                effects.released.push(former);
                Placement::Absorbed
            }
            ArrivalKind::Held { adds_ack_request: true }
            | ArrivalKind::Refill
            | ArrivalKind::InOrder
            | ArrivalKind::AheadOfGap => self.keep(now, psn, ack_request, packet, effects),
        };
        if self.is_off {
            return placement;
        }
        self.arm_for(now, ack_request);
        match kind {
            ArrivalKind::AheadOfGap => self.see_gap(now, psn, acks, effects),
            ArrivalKind::Below | ArrivalKind::Passing | ArrivalKind::InOrder => {}
            ArrivalKind::Held { .. } | ArrivalKind::Refill => self.filled(now, psn, acks, effects),
        }
        self.counters.duplicates_absorbed += u64::from(placement == Placement::Absorbed);
        placement
    }

    /// A branch may be overdue when the shortest timeout has passed.
    #[inline]
    fn arm_for(&mut self, now: Instant, ack_request: bool) {
        if ack_request || self.deadline == Instant::NEVER {
            self.arm(now + self.shortest_timeout);
        }
    }
}

impl<P> Repair<P> {
    /// Puts a packet into the buffer. If there is no room, the source has more in flight than its window, and the group
    /// goes on without repair (D160).
    #[inline]
    fn keep(&mut self, now: Instant, psn: Psn, ack_request: bool, packet: P, effects: &mut Effects<P>) -> Placement {
        let slot = Slot { psn, packet, ack_request, is_resent: false, received: now };
        match self.buffer.put(slot) {
            Ok(None) => Placement::Kept,
            Ok(Some(before)) => {
                effects.released.push(before);
                Placement::Kept
            }
            Err(packet) => self.give_up_all(packet, effects),
        }
    }

    #[cold]
    fn give_up_all(&mut self, packet: P, effects: &mut Effects<P>) -> Placement {
        self.counters.windows_exceeded += 1;
        effects.released.push(packet);
        effects.released.extend(self.buffer.drain());
        self.is_off = true;
        self.deadline = Instant::NEVER;
        Placement::NoRoom
    }

    /// Everything before `sent` was received and sent to level branches, and perhaps more was received.
    #[inline]
    fn advance(&mut self, now: Instant, sent: Psn, effects: &mut Effects<P>) {
        let Some(received) = &mut self.received else { return };
        let before = received.expected;
        received.expected = sent;
        received.end = received.end.serial_max(sent);
        if received.end != sent {
            while received.expected != received.end && self.buffer.holds(received.expected) {
                received.expected = received.expected.next();
            }
        }
        let expected = received.expected;
        if self.not_level > 0 || expected != sent {
            self.advance_branches(before, sent, expected, effects);
        }
        if let Some((_, at)) = self.requested.filter(|(psn, _)| psn.is_before(sent)) {
            self.requested = None;
            self.parent_round_trip.sample(now.since(at));
        }
    }

    /// `expected` has advanced: branches become behind, or level.
    #[cold]
    pub(crate) fn advance_branches(&mut self, before: Psn, sent: Psn, expected: Psn, effects: &mut Effects<P>) {
        for index in 0..self.branches.len() {
            let branch = &mut self.branches[index];
            let cursor = branch.cursor.advanced(sent.serial_max(before), expected);
            if cursor == branch.cursor {
                continue;
            }
            let was_level = branch.cursor == Cursor::Level;
            self.set_cursor(index, cursor);
            if was_level {
                self.branches[index].sent_end = sent;
            }
            if let Cursor::Behind(_) = cursor {
                effects.ready.push(BranchIndex(index as u16));
            }
        }
    }
}

impl Received {
    /// Nothing was received, and what is before `psn` will not be.
    pub(crate) fn nothing_before(psn: Psn) -> Self {
        Received { expected: psn, end: psn, previous: None, pass_highest: psn, at: Instant::ZERO }
    }

    /// A packet has come. Returns whether it begins a pass: the data have gone back to it.
    #[inline]
    fn note(&mut self, now: Instant, psn: Psn) -> bool {
        let goes_back = self.previous.is_none_or(|previous| !psn.is_after(previous));
        self.pass_highest = if goes_back { psn } else { self.pass_highest.serial_max(psn) };
        self.previous = Some(psn);
        self.at = now;
        goes_back
    }
}
