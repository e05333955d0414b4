//! The state of one branch: how far it has been sent the data, and what is pending for it.

use crate::buffer::Slot;
use crate::counters::BranchCounters;
use crate::round_trip::RoundTrip;
use crate::selected::Selected;
use srdma_wire::{Instant, Psn};
use std::cmp::Ordering;

/// What is at the other end of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// A receiver, or a node without repair: it sends NAKs, and is sent everything from there again.
    Plain,
    /// A node with repair: it requests what it lacks, and is sent that alone.
    Repairs,
}

/// How far a branch has been sent the data.
///
/// ```text
///   Unknown --- response beyond the data seen ---> Blind
///      |                                             |
///      '------ response within the data seen --------'
///                          |
///                          v
///     Ahead(p) --------> Level <-------- caught up ------- Behind(p)
///         '-- expected     |  '-- taken back, gap filled -----^ |
///             reaches p    |                                    |
///                          '---- gap given up ---> Blind <------'
///   from any --- removed ---> Removed                                   final (R7)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cursor {
    /// No response since a restart or a renewal: all data pass, as they come.
    Unknown,
    /// Nothing above this node has what the branch waits for, or it has acknowledged more than this node has seen since
    /// a restart: all data pass, until a response is within the data seen (D158).
    Blind,
    /// It has been sent everything before the first PSN that was not received.
    Level,
    /// This PSN is the next to send to it.
    Behind(Psn),
    /// It has everything before this PSN, of which this node lacks some.
    Ahead(Psn),
    /// No longer part of the tree.
    Removed,
}

impl Cursor {
    /// Everything before `psn` was sent.
    fn at(psn: Psn, expected: Psn) -> Cursor {
        match psn.serial_cmp(expected) {
            Ordering::Less => Cursor::Behind(psn),
            Ordering::Equal => Cursor::Level,
            Ordering::Greater => Cursor::Ahead(psn),
        }
    }

    /// A response confirms everything before `next`. `is_within`: it does not exceed the data seen.
    pub(crate) fn responded(self, next: Psn, is_within: bool, expected: Psn) -> Cursor {
        match (self, is_within) {
            (Cursor::Removed, _) => Cursor::Removed,
            (Cursor::Unknown | Cursor::Blind, false) => Cursor::Blind,
            (Cursor::Unknown | Cursor::Blind | Cursor::Level, true) | (Cursor::Level, false) => {
                Cursor::at(next.serial_max(expected), expected)
            }
            (Cursor::Behind(psn) | Cursor::Ahead(psn), _) => Cursor::at(psn.serial_max(next), expected),
        }
    }

    /// The branch is to be sent everything from `psn` on again.
    pub(crate) fn back(self, psn: Psn, expected: Psn) -> Cursor {
        match self {
            Cursor::Unknown | Cursor::Blind | Cursor::Level | Cursor::Behind(_) | Cursor::Ahead(_) => {
                Cursor::at(psn, expected)
            }
            Cursor::Removed => Cursor::Removed,
        }
    }

    /// The first PSN that was not received has advanced to `expected`; a level branch has been sent what is before
    /// `sent`.
    pub(crate) fn advanced(self, sent: Psn, expected: Psn) -> Cursor {
        match self {
            Cursor::Level => Cursor::at(sent, expected),
            Cursor::Behind(psn) | Cursor::Ahead(psn) => Cursor::at(psn, expected),
            Cursor::Unknown | Cursor::Blind | Cursor::Removed => self,
        }
    }

    /// A gap at `psn` is given up.
    pub(crate) fn gave_up(self, psn: Psn, expected: Psn) -> Cursor {
        match self {
            Cursor::Level if psn == expected => Cursor::Blind,
            Cursor::Behind(next) if psn == next => Cursor::Blind,
            Cursor::Unknown
            | Cursor::Blind
            | Cursor::Level
            | Cursor::Behind(_)
            | Cursor::Ahead(_)
            | Cursor::Removed => self,
        }
    }
}

/// A branch was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Back {
    pub(crate) psn: Psn,
    /// End of the round trip after the PSN was sent again: until then a NAK at it says what is known. Never while it
    /// was not sent.
    pub(crate) until: Instant,
}

/// A receiver is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pause {
    pub(crate) psn: Psn,
    /// When it was first not ready for this PSN.
    pub(crate) since: Instant,
    /// When the data are sent again; never for a receiver that has failed.
    pub(crate) until: Instant,
    pub(crate) is_over: bool,
}

/// Packets sent for requests in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Answers {
    pub(crate) since: Instant,
    pub(crate) packets: u32,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub(crate) kind: BranchKind,
    pub(crate) cursor: Cursor,
    /// The one after the highest PSN that was sent to it, unless it is level: then that is `expected`.
    pub(crate) sent_end: Psn,
    pub(crate) back: Option<Back>,
    pub(crate) pause: Option<Pause>,
    pub(crate) selected: Selected,
    /// This PSN requests an acknowledgement when it is sent, and is the end of a probe.
    pub(crate) ack_at: Option<Psn>,
    /// The first two packets that were sent to it from the buffer with a request for an ACK, and when: none of them is
    /// acknowledged.
    pub(crate) requests: [Option<(Psn, Instant)>; 2],
    /// The last progress, or when it was last taken back or probed.
    pub(crate) touched: Instant,
    pub(crate) level_since: Instant,
    /// It was probed since the last progress.
    pub(crate) is_probed: bool,
    pub(crate) round_trip: RoundTrip,
    pub(crate) answers: Answers,
    pub(crate) counters: BranchCounters,
}

impl Branch {
    pub(crate) fn new(kind: BranchKind, cursor: Cursor, sent_end: Psn) -> Self {
        Branch {
            kind,
            cursor,
            sent_end,
            back: None,
            pause: None,
            selected: Selected::default(),
            ack_at: None,
            requests: [None; 2],
            touched: Instant::ZERO,
            level_since: Instant::ZERO,
            is_probed: false,
            round_trip: RoundTrip::default(),
            answers: Answers::default(),
            counters: BranchCounters::default(),
        }
    }

    /// A packet that requests an ACK was sent to it from the buffer.
    pub(crate) fn note_request(&mut self, psn: Psn, now: Instant) {
        if let Some(place) = self.requests.iter_mut().find(|place| place.is_none_or(|(known, _)| known == psn)) {
            *place = Some((psn, now));
        }
    }

    /// When a packet of the buffer was sent to it; not before `received`, when the others were sent it.
    pub(crate) fn sent_at(&self, psn: Psn, received: Instant) -> Instant {
        let sent = self.requests.iter().flatten().find(|(request, _)| *request == psn);
        self.touched.max(received).max(sent.map_or(Instant::ZERO, |(_, at)| *at))
    }

    /// Everything before `psn` is acknowledged.
    pub(crate) fn progress(&mut self, psn: Psn, now: Instant) {
        (self.touched, self.is_probed) = (now, false);
        if self.requests[0].is_some() || self.requests[1].is_some() {
            self.requests = self.requests.map(|request| request.filter(|(request, _)| !request.is_before(psn)));
        }
        if self.pause.is_some() {
            self.pause = self.pause.filter(|pause| pause.until == Instant::NEVER || !pause.psn.is_before(psn));
        }
    }

    /// An ACK of the packet in this slot has come from the branch, which is level: it is a sample if the packet
    /// requested it, and was sent once.
    #[inline]
    pub(crate) fn sample<P>(&mut self, now: Instant, slot: Option<&Slot<P>>) {
        if let Some(slot) = slot
            && slot.ack_request
            && !slot.is_resent
            && slot.received >= self.level_since
        {
            self.round_trip.sample(now.since(slot.received));
        }
    }

    /// Whether nothing may be sent to it now.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.is_some_and(|pause| !pause.is_over)
    }

    /// Whether the receiver has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.pause.is_some_and(|pause| pause.until == Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_testkit::table::table;

    /// Every state under every event; the first PSN that was not received is 10, and the others stand before and after it.
    #[test]
    fn the_full_table() {
        let psn = |number: u32| Psn::new(number);
        let expected = psn(10);
        let states = [
            Cursor::Unknown,
            Cursor::Blind,
            Cursor::Level,
            Cursor::Behind(psn(6)),
            Cursor::Ahead(psn(12)),
            Cursor::Removed,
        ];
        let cell = |cursor: Cursor| match cursor {
            Cursor::Behind(psn) => format!("Behind({})", psn.get()),
            Cursor::Ahead(psn) => format!("Ahead({})", psn.get()),
            Cursor::Unknown | Cursor::Blind | Cursor::Level | Cursor::Removed => format!("{cursor:?}"),
        };
        let mut rows = vec![[vec![String::new()], states.map(cell).to_vec()].concat()];
        let mut row = |name: &str, next: &dyn Fn(Cursor) -> Cursor| {
            rows.push([vec![name.to_owned()], states.map(|state| cell(next(state))).to_vec()].concat());
        };
        row("response 8", &|state| state.responded(psn(8), true, expected));
        row("response 10", &|state| state.responded(psn(10), true, expected));
        row("response 11", &|state| state.responded(psn(11), true, expected));
        row("response beyond", &|state| state.responded(psn(14), false, expected));
        row("back to 8", &|state| state.back(psn(8), expected));
        row("back to 10", &|state| state.back(psn(10), expected));
        row("advanced to 11", &|state| state.advanced(psn(11), psn(11)));
        row("advanced to 12", &|state| state.advanced(psn(11), psn(12)));
        row("gave up 6", &|state| state.gave_up(psn(6), expected));
        row("gave up 10", &|state| state.gave_up(psn(10), expected));
        insta::assert_snapshot!(table(&rows), @r"
                        Unknown   Blind     Level      Behind(6) Ahead(12) Removed
        response 8      Level     Level     Level      Behind(8) Ahead(12) Removed
        response 10     Level     Level     Level      Level     Ahead(12) Removed
        response 11     Ahead(11) Ahead(11) Ahead(11)  Ahead(11) Ahead(12) Removed
        response beyond Blind     Blind     Ahead(14)  Ahead(14) Ahead(14) Removed
        back to 8       Behind(8) Behind(8) Behind(8)  Behind(8) Behind(8) Removed
        back to 10      Level     Level     Level      Level     Level     Removed
        advanced to 11  Unknown   Blind     Level      Behind(6) Ahead(12) Removed
        advanced to 12  Unknown   Blind     Behind(11) Behind(6) Level     Removed
        gave up 6       Unknown   Blind     Level      Blind     Ahead(12) Removed
        gave up 10      Unknown   Blind     Blind      Behind(6) Ahead(12) Removed
        ");
    }
}
