//! Equality of states but for time, for model checking.

use crate::branch::Cursor;
use crate::counters::{BranchCounters, Counters};
use crate::repair::Repair;
use crate::round_trip::RoundTrip;
use srdma_wire::{Instant, Psn};

/// End of an interval that is not over.
const LATER: Instant = Instant::from_ns(2);

impl<P> Repair<P> {
    /// For model checking: replaces times, measured round trips and counters, so that states in which the same events
    /// have the same results are equal. Everything that happened, happened at [`Instant::ZERO`]; intervals that are not
    /// over at `now` end 2 ns later, or never. A tick at 1 ns finds overdue requests and nothing else; a tick after
    /// half of the source's ACK timeout finds everything overdue.
    pub fn without_time(&mut self, now: Instant) {
        let begin = |at: Instant| if at == Instant::NEVER { Instant::NEVER } else { Instant::ZERO };
        let is_answered_anew = |since: Instant, interval: std::time::Duration| now.since(since) >= interval / 2;
        for slot in self.buffer.slots_mut() {
            (slot.received, slot.is_resent) = (Instant::ZERO, false);
        }
        if let Some(received) = &mut self.received {
            received.at = Instant::ZERO;
        }
        if let Some(gap) = &mut self.gap {
            (gap.since, gap.request_at) = (Instant::ZERO, begin(gap.request_at));
        }
        for branch in &mut self.branches {
            if let Some(back) = &mut branch.back {
                back.until = match back.until {
                    Instant::NEVER => Instant::NEVER,
                    until if until > now => LATER,
                    _ => Instant::ZERO,
                };
            }
            if let Some(pause) = &mut branch.pause {
                (pause.since, pause.until) = (Instant::ZERO, begin(pause.until));
            }
            if is_answered_anew(branch.answers.since, self.rules.initial_round_trip) {
                branch.answers.packets = 0;
            }
            branch.answers.since = Instant::ZERO;
            (branch.touched, branch.level_since) = (Instant::ZERO, Instant::ZERO);
            branch.requests = [None; 2];
            branch.sent_end = match branch.cursor {
                Cursor::Behind(_) | Cursor::Ahead(_) => branch.sent_end,
                // Replaced when the cursor is.
                Cursor::Unknown | Cursor::Blind | Cursor::Level | Cursor::Removed => Psn::new(0),
            };
            branch.round_trip = RoundTrip::default();
            branch.counters = BranchCounters::default();
        }
        (self.parent_round_trip, self.requested) = (RoundTrip::default(), None);
        self.shortest_timeout = self.rules.initial_round_trip.min(self.rules.longest_probe());
        self.deadline = begin(self.deadline);
        self.counters = Counters::default();
    }
}
