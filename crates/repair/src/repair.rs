//! The machine: data that arrive, and what the branches are sent. `responses.rs` has the way back, `gaps.rs` what is
//! missing, `probes.rs` what is overdue.

use crate::branch::{Branch, BranchKind, Cursor};
use crate::buffer::{Buffer, Slot};
use crate::counters::{BranchCounters, Counters};
use crate::gaps::Gap;
use crate::request::Request;
use crate::round_trip::RoundTrip;
use crate::rules::RepairRules;
use srdma_aggregation::{Acknowledgements, BranchIndex, Origin};
use srdma_wire::{Instant, Psn};
use std::cmp::Ordering;
use std::time::Duration;

/// The repair of one group at one node. `P` is a packet that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repair<P> {
    pub(crate) rules: RepairRules,
    pub(crate) buffer: Buffer<P>,
    /// `None` until the first data since a restart.
    pub(crate) received: Option<Received>,
    /// Packets before it were released.
    pub(crate) minimum: Option<Psn>,
    pub(crate) branches: Box<[Branch]>,
    /// Branches that are neither level nor removed.
    pub(crate) not_level: u16,
    /// The lowest PSN that is missing.
    pub(crate) gap: Option<Gap>,
    /// A PSN before `expected` that a branch waits for and that is not in the buffer; the lowest.
    pub(crate) hole: Option<Psn>,
    /// The minimum that the source was sent a NAK of (D154).
    pub(crate) nak_sent: Option<Psn>,
    pub(crate) parent_round_trip: RoundTrip,
    /// The PSN of a request that was sent once, and when.
    pub(crate) requested: Option<(Psn, Instant)>,
    /// The shortest time after which a branch is overdue, as of the last tick.
    pub(crate) shortest_timeout: Duration,
    /// Not later than the first timer.
    pub(crate) deadline: Instant,
    /// The source has exceeded its window: until the next epoch, the node only aggregates.
    pub(crate) is_off: bool,
    pub(crate) counters: Counters,
}

/// PSNs that were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Received {
    /// The first that was not.
    pub(crate) expected: Psn,
    /// The one after the highest.
    pub(crate) end: Psn,
    /// The last; `None` before the first data.
    pub(crate) previous: Option<Psn>,
    /// The highest since the data last went back.
    pub(crate) pass_highest: Psn,
    /// When the last came.
    pub(crate) at: Instant,
}

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

/// Results of an event besides responses upstream. The caller empties it and uses it again.
#[derive(Clone, Debug)]
pub struct Effects<P> {
    /// Requests to the parent.
    pub requests: Vec<Request>,
    /// Branches that [`Repair::poll`] may return packets for.
    pub ready: Vec<BranchIndex>,
    /// Packets that are no longer kept.
    pub released: Vec<P>,
}

impl Arrival {
    /// Whether data before it are missing: it is not sent on before them.
    pub fn is_ahead(&self) -> bool {
        self.kind == ArrivalKind::AheadOfGap
    }
}

impl<P> Default for Effects<P> {
    fn default() -> Self {
        Effects { requests: Vec::new(), ready: Vec::new(), released: Vec::new() }
    }
}

/// A packet of the buffer to send to a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Its PSN.
    pub psn: Psn,
    /// It is to request an acknowledgement.
    pub ack_request: bool,
    /// It was sent to the branch before.
    pub is_again: bool,
    /// A child that restores the order waits for it: it may go ahead of what is queued.
    pub goes_ahead: bool,
}

impl<P> Repair<P> {
    /// The repair of a group with these branches. Unless all expect a PSN, the first one that is received is taken for
    /// the first of all.
    pub fn new(rules: RepairRules, branches: &[(BranchKind, Origin)]) -> Self {
        let expected = |(_, origin): &(BranchKind, Origin)| match origin {
            Origin::At(psn) => Some(*psn),
            Origin::Kept(_) | Origin::Unknown => None,
        };
        let first = branches.iter().map(expected).reduce(|left, right| Some(left?.serial_min(right?)));
        let received = first.flatten().map(Received::nothing_before);
        let branches: Box<[Branch]> =
            branches.iter().map(|(kind, origin)| new_branch(*kind, *origin, received.as_ref())).collect();
        Repair {
            rules,
            buffer: Buffer::new(rules.capacity.min(RepairRules::MAX_CAPACITY)),
            minimum: received.map(|received| received.expected),
            received,
            not_level: branches.iter().filter(|branch| is_not_level(branch.cursor)).count() as u16,
            branches,
            gap: None,
            hole: None,
            nak_sent: None,
            parent_round_trip: RoundTrip::default(),
            requested: None,
            shortest_timeout: rules.initial_round_trip.min(rules.longest_probe()),
            deadline: Instant::NEVER,
            is_off: false,
            counters: Counters::default(),
        }
    }

    /// Takes the branches into the next epoch, as the aggregation has done: the buffer stays, but for what a branch
    /// that has gone alone had not acknowledged.
    pub fn succeed(
        &mut self,
        rules: RepairRules,
        branches: &[(BranchKind, Origin)],
        acks: &Acknowledgements,
        effects: &mut Effects<P>,
    ) {
        let resized = Buffer::new(rules.capacity.min(RepairRules::MAX_CAPACITY));
        if resized.size() != self.buffer.size() {
            effects.released.extend(self.buffer.drain());
            self.buffer = resized;
        }
        self.rules = rules;
        if self.is_off {
            // What is in flight was not kept.
            let unknown: Vec<_> = branches.iter().map(|(kind, _)| (*kind, Origin::Unknown)).collect();
            *self = Repair { counters: self.counters, ..Repair::new(rules, &unknown) };
            return;
        }
        let of = |(kind, origin): &(BranchKind, Origin)| match origin {
            Origin::Kept(index) => match self.branches.get(index.index()) {
                Some(branch) => Branch { kind: *kind, ..branch.clone() },
                None => new_branch(*kind, Origin::Unknown, None),
            },
            Origin::At(_) | Origin::Unknown => new_branch(*kind, *origin, self.received.as_ref()),
        };
        self.branches = branches.iter().map(of).collect();
        self.not_level = self.branches.iter().filter(|branch| is_not_level(branch.cursor)).count() as u16;
        self.nak_sent = None;
        self.minimum_moved(self.received.map_or(Instant::ZERO, |received| received.at), acks, effects);
        effects.ready.extend((0..self.branches.len()).map(|index| BranchIndex(index as u16)));
        self.arm(Instant::ZERO);
    }

    /// R7: takes a branch out of the tree.
    pub fn remove_branch(&mut self, branch: BranchIndex) {
        self.set_cursor(branch.index(), Cursor::Removed);
    }

    /// A data packet has come, and the aggregation has taken note of it. The caller sends it to the branches that
    /// [want](Self::wants) it, then [stores](Self::store) it.
    #[inline]
    pub fn arrive(&mut self, now: Instant, psn: Psn, ack_request: bool, acks: &Acknowledgements) -> Arrival {
        if self.is_off {
            return Arrival { psn, ack_request, kind: ArrivalKind::Passing, is_for_all: true };
        }
        let received = self.received.get_or_insert(Received::nothing_before(psn));
        received.note(now, psn);
        let kind = match psn.serial_cmp(received.expected) {
            Ordering::Equal => ArrivalKind::InOrder,
            _ if known_minimum(acks).is_some_and(|minimum| psn.is_before(minimum)) => ArrivalKind::Below,
            order => match (self.buffer.get(psn), order) {
                (Some(slot), _) => ArrivalKind::Held { adds_ack_request: ack_request && !slot.ack_request },
                (None, Ordering::Greater) => ArrivalKind::AheadOfGap,
                (None, Ordering::Less | Ordering::Equal) => ArrivalKind::Refill,
            },
        };
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
    /// they are sent all data as they come: a receiver that makes no progress with it is stalled (D25, D158).
    pub fn count_again(&self, now: Instant, arrival: &Arrival, acks: &mut Acknowledgements) {
        if self.not_level == 0 || !matches!(arrival.kind, ArrivalKind::Held { .. } | ArrivalKind::Refill) {
            return;
        }
        let (cursors, psn) = (self.branches.iter().map(|branch| branch.cursor), arrival.psn);
        for (branch, cursor) in (0..).map(BranchIndex).zip(cursors) {
            if matches!(cursor, Cursor::Unknown | Cursor::Blind) && acks.expected_psn(branch) == Some(psn) {
                acks.data_resent(now, branch, psn);
            }
        }
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
        if ack_request || self.deadline == Instant::NEVER {
            self.arm(now + self.shortest_timeout);
        }
        match kind {
            ArrivalKind::InOrder => self.advance(now, psn.next(), effects),
            ArrivalKind::AheadOfGap => self.see_gap(now, psn, acks, effects),
            ArrivalKind::Below | ArrivalKind::Passing => {}
            ArrivalKind::Held { .. } | ArrivalKind::Refill => self.filled(now, psn, acks, effects),
        }
        if kind != ArrivalKind::InOrder {
            self.counters.duplicates_absorbed += u64::from(placement == Placement::Absorbed);
        } else if self.gap.is_some() || self.requested.is_some() {
            self.renew_gap(now);
        }
        placement
    }

    /// The next packet for a branch, when the link has room for it.
    pub fn poll(&mut self, now: Instant, branch: BranchIndex, acks: &mut Acknowledgements) -> Option<Sending> {
        let (index, received) = (branch.index(), self.received?);
        let of = self.branches.get(index)?;
        if self.is_off || of.is_paused() || of.cursor == Cursor::Removed {
            return None;
        }
        let next = acks.expected_psn(branch);
        while let Some((psn, ack_request)) = self.branches[index].selected.next() {
            if self.buffer.holds(psn) && next.is_none_or(|next| !psn.is_before(next)) {
                // What only asks for an acknowledgement must not arrive before the data that it is asked for.
                let goes_ahead = self.branches[index].kind == BranchKind::Repairs && !ack_request;
                return Some(Sending { goes_ahead, ..self.send(now, index, psn, ack_request, acks) });
            }
        }
        loop {
            let Cursor::Behind(psn) = self.branches[index].cursor else { return None };
            if let Some(next) = next.filter(|next| psn.is_before(*next)) {
                self.set_cursor(index, Cursor::Behind(psn).responded(next, true, received.expected));
                continue;
            }
            if !self.buffer.holds(psn) {
                self.see_hole(now, psn);
                return None;
            }
            let sending = self.send(now, index, psn, false, acks);
            let cursor = Cursor::Behind(psn.next()).advanced(psn.next(), received.expected);
            self.set_cursor(index, cursor);
            return Some(sending);
        }
    }

    /// A packet that is kept.
    pub fn packet(&self, psn: Psn) -> Option<&P> {
        Some(&self.buffer.get(psn)?.packet)
    }

    /// A packet that is kept, to change what the caller notes of it.
    pub fn packet_mut(&mut self, psn: Psn) -> Option<&mut P> {
        Some(&mut self.buffer.get_mut(psn)?.packet)
    }

    /// A packet proved damaged, and is as good as lost (D159).
    pub fn discard(&mut self, now: Instant, psn: Psn, effects: &mut Effects<P>) {
        if let Some(packet) = self.buffer.take(psn) {
            self.counters.damaged += 1;
            effects.released.push(packet);
            self.see_hole(now, psn);
        }
    }

    /// Releases all packets: the group ends.
    pub fn drain(&mut self) -> impl Iterator<Item = P> {
        self.buffer.drain()
    }

    /// Time of the next [`Self::tick`].
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        Some(self.deadline).filter(|deadline| *deadline != Instant::NEVER)
    }

    /// The rules.
    pub fn rules(&self) -> &RepairRules {
        &self.rules
    }

    /// Number of packets that are kept.
    pub fn kept(&self) -> usize {
        self.buffer.len()
    }

    /// The first PSN that was not received, and the one after the highest.
    pub fn received(&self) -> Option<(Psn, Psn)> {
        self.received.map(|received| (received.expected, received.end))
    }

    /// Whether the group goes on without repair, because the source has exceeded its window (D160).
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// Whether all branches have been sent all that was received in order.
    pub fn is_level(&self) -> bool {
        self.not_level == 0
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counters of a branch.
    pub fn branch_counters(&self, branch: BranchIndex) -> Option<BranchCounters> {
        Some(self.branches.get(branch.index())?.counters)
    }

    /// Whether a branch is to be sent data of the buffer.
    pub fn is_behind(&self, branch: BranchIndex) -> bool {
        let cursor = self.branches.get(branch.index()).map(|branch| branch.cursor);
        matches!(cursor, Some(Cursor::Behind(_)))
    }
}

impl<P> Repair<P> {
    /// The next timer is not later than `at`.
    pub(crate) fn arm(&mut self, at: Instant) {
        self.deadline = self.deadline.min(at);
    }

    pub(crate) fn set_cursor(&mut self, index: usize, cursor: Cursor) {
        let Some(branch) = self.branches.get_mut(index) else { return };
        let before = branch.cursor;
        if before == cursor {
            return;
        }
        if let Some(received) = &self.received {
            match before {
                Cursor::Level => branch.sent_end = received.expected,
                Cursor::Unknown | Cursor::Blind => branch.sent_end = received.end,
                Cursor::Behind(_) | Cursor::Ahead(_) | Cursor::Removed => {}
            }
        }
        branch.cursor = cursor;
        if cursor == Cursor::Level {
            branch.level_since = self.received.map_or(Instant::ZERO, |received| received.at);
        }
        self.not_level = self.not_level + u16::from(is_not_level(cursor)) - u16::from(is_not_level(before));
    }

    /// Puts a packet into the buffer. If another one is there, the source has more in flight than its window, and the
    /// group goes on without repair (D160).
    fn keep(&mut self, now: Instant, psn: Psn, ack_request: bool, packet: P, effects: &mut Effects<P>) -> Placement {
        if self.buffer.size() == 0 || self.buffer.occupant(psn).is_some_and(|occupant| occupant != psn) {
            self.counters.windows_exceeded += 1;
            effects.released.push(packet);
            effects.released.extend(self.buffer.drain());
            self.is_off = true;
            self.deadline = Instant::NEVER;
            return Placement::NoRoom;
        }
        let slot = Slot { psn, packet, ack_request, is_resent: false, received: now };
        effects.released.extend(self.buffer.put(slot));
        Placement::Kept
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

    /// A packet of the buffer goes to a branch.
    fn send(
        &mut self,
        now: Instant,
        index: usize,
        psn: Psn,
        ack_request: bool,
        acks: &mut Acknowledgements,
    ) -> Sending {
        let expected = self.received.map_or(psn, |received| received.expected);
        let end = self.received.map_or(psn, |received| received.end);
        let timeout = self.branches[index].round_trip.timeout(self.rules.initial_round_trip);
        let branch = &mut self.branches[index];
        let sent_end = match branch.cursor {
            Cursor::Level => expected,
            Cursor::Unknown | Cursor::Blind => end,
            Cursor::Behind(_) | Cursor::Ahead(_) | Cursor::Removed => branch.sent_end,
        };
        let is_again = psn.is_before(sent_end);
        branch.sent_end = sent_end.serial_max(psn.next());
        let ends_probe = branch.ack_at == Some(psn);
        if ends_probe {
            branch.ack_at = None;
        }
        if let Some(back) = branch.back.as_mut().filter(|back| back.psn == psn) {
            back.until = now + timeout;
            branch.touched = now;
        }
        if ack_request || ends_probe || self.buffer.get(psn).is_some_and(|slot| slot.ack_request) {
            branch.note_request(psn, now);
        }
        branch.counters.packets_resent += u64::from(is_again);
        self.counters.packets_resent += u64::from(is_again);
        if is_again {
            if let Some(slot) = self.buffer.get_mut(psn) {
                slot.is_resent = true;
            }
            acks.data_resent(now, BranchIndex(index as u16), psn);
        }
        self.arm(now + timeout);
        Sending { psn, ack_request: ack_request || ends_probe, is_again, goes_ahead: false }
    }
}

impl Received {
    /// Nothing was received, and what is before `psn` will not be.
    fn nothing_before(psn: Psn) -> Self {
        Received { expected: psn, end: psn, previous: None, pass_highest: psn, at: Instant::ZERO }
    }

    /// A packet has come.
    #[inline]
    fn note(&mut self, now: Instant, psn: Psn) {
        let goes_back = self.previous.is_none_or(|previous| !psn.is_after(previous));
        self.pass_highest = if goes_back { psn } else { self.pass_highest.serial_max(psn) };
        self.previous = Some(psn);
        self.at = now;
    }
}

/// A branch that was not there before.
fn new_branch(kind: BranchKind, origin: Origin, received: Option<&Received>) -> Branch {
    match (origin, received) {
        (Origin::At(psn), Some(received)) => Branch::new(kind, Cursor::Level.back(psn, received.expected), psn),
        (Origin::At(psn), None) => Branch::new(kind, Cursor::Unknown, psn),
        (Origin::Kept(_) | Origin::Unknown, _) => Branch::new(kind, Cursor::Unknown, Psn::new(0)),
    }
}

/// Whether a branch needs to be looked at for each packet.
fn is_not_level(cursor: Cursor) -> bool {
    match cursor {
        Cursor::Level | Cursor::Removed => false,
        Cursor::Unknown | Cursor::Blind | Cursor::Behind(_) | Cursor::Ahead(_) => true,
    }
}

/// The minimum PSN, once all branches have responded.
#[inline]
pub(crate) fn known_minimum(acks: &Acknowledgements) -> Option<Psn> {
    if acks.unknown_branches() > 0 { None } else { acks.minimum_psn() }
}
