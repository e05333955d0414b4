//! Timers: receivers that become ready, requests that are repeated, and branches that are silent.

use crate::branch::{BranchKind, Cursor};
use crate::repair::{Effects, Repair};
use srdma_aggregation::{Acknowledgements, BranchIndex, UpstreamResponse};
use srdma_wire::{Instant, Psn};

impl<P> Repair<P> {
    /// Does what is due.
    pub fn tick(
        &mut self,
        now: Instant,
        acks: &Acknowledgements,
        out: &mut Vec<UpstreamResponse>,
        effects: &mut Effects<P>,
    ) {
        if now < self.deadline {
            return;
        }
        // What arms the timer for this tick itself.
        self.renew_gap(now);
        self.deadline = Instant::NEVER;
        self.end_pauses(now, effects);
        self.request_again(now, effects);
        self.probe_all(now, acks, effects);
        self.report_gap(now, acks, out);
    }

    /// Receivers that asked for time are sent the data again (D157).
    fn end_pauses(&mut self, now: Instant, effects: &mut Effects<P>) {
        for index in 0..self.branches.len() {
            let Some(pause) = self.branches[index].pause.as_mut().filter(|pause| !pause.is_over) else { continue };
            if now >= pause.until {
                pause.is_over = true;
                effects.ready.push(BranchIndex(index as u16));
            } else {
                let until = pause.until;
                self.arm(until);
            }
        }
    }

    /// Probes the branches whose acknowledgement is overdue (D156).
    fn probe_all(&mut self, now: Instant, acks: &Acknowledgements, effects: &mut Effects<P>) {
        self.shortest_timeout = self.rules.longest_probe();
        if self.received.is_none_or(|received| now.since(received.at) > self.rules.silence()) {
            // The source is gone: it would have sent its data again.
            return;
        }
        for index in 0..self.branches.len() {
            let branch = BranchIndex(index as u16);
            let timeout = self.branches[index].round_trip.backed_off_timeout(self.rules.initial_round_trip);
            let timeout = timeout.min(self.rules.longest_probe());
            self.shortest_timeout = self.shortest_timeout.min(timeout);
            let Some(since) = self.awaited_since(branch, acks) else { continue };
            let due = since + timeout;
            if now < due {
                self.arm(due);
                continue;
            }
            self.probe(now, branch, acks, effects);
            self.arm(now + timeout.saturating_mul(2).min(self.rules.longest_probe()));
        }
    }

    /// Since when an acknowledgement of a branch is awaited: a packet that requests one, or one that is no longer in
    /// the buffer, was sent to it and is not acknowledged. Else a probe would be answered by nothing new.
    fn awaited_since(&self, branch: BranchIndex, acks: &Acknowledgements) -> Option<Instant> {
        let (of, received) = (self.branches.get(branch.index())?, self.received?);
        if of.is_paused() {
            return None;
        }
        let end = match of.cursor {
            Cursor::Removed => return None,
            Cursor::Unknown | Cursor::Blind => return Some(of.touched.max(received.at)),
            Cursor::Level | Cursor::Ahead(_) => received.expected,
            Cursor::Behind(psn) => psn,
        };
        let mut psn = acks.expected_psn(branch)?;
        let mut requested = None;
        for _ in 0..self.buffer.size() {
            if !psn.is_before(end) {
                return requested;
            }
            match self.buffer.get(psn) {
                Some(slot) if slot.ack_request => {
                    let since = of.sent_at(psn, slot.received);
                    // A lost ACK is made up for by the next one, whose time has to be over, too.
                    if requested.replace(since).is_some() {
                        return requested;
                    }
                }
                None => return requested.or(Some(of.touched)),
                Some(_) => {}
            }
            psn = psn.next();
        }
        requested.or(Some(of.touched))
    }

    /// A receiver is sent everything that it has not acknowledged, since it may have sent its NAK and be silent; a
    /// child that repairs the newest packet, and everything when it is silent again.
    fn probe(&mut self, now: Instant, branch: BranchIndex, acks: &Acknowledgements, effects: &mut Effects<P>) {
        let index = branch.index();
        self.counters.probes += 1;
        let of = &mut self.branches[index];
        let is_first = !of.is_probed;
        of.is_probed = true;
        of.round_trip.back_off();
        of.touched = now;
        let (cursor, kind) = (of.cursor, of.kind);
        let next = acks.expected_psn(branch);
        match (cursor, kind, next) {
            (Cursor::Level | Cursor::Behind(_) | Cursor::Ahead(_), BranchKind::Plain, Some(next)) => {
                self.take_all_back(index, next, effects);
            }
            (Cursor::Level | Cursor::Behind(_) | Cursor::Ahead(_), BranchKind::Repairs, Some(next)) if !is_first => {
                self.take_all_back(index, next, effects);
            }
            (Cursor::Removed, _, _) => {}
            (
                Cursor::Unknown | Cursor::Blind | Cursor::Level | Cursor::Behind(_) | Cursor::Ahead(_),
                BranchKind::Plain | BranchKind::Repairs,
                _,
            ) => {
                if let Some(newest) = self.newest_sent(cursor) {
                    self.branches[index].selected.add(newest, 1, true);
                    effects.ready.push(branch);
                }
            }
        }
    }

    fn take_all_back(&mut self, index: usize, next: Psn, effects: &mut Effects<P>) {
        let Some(received) = self.received else { return };
        let of = &self.branches[index];
        let end = match of.cursor {
            Cursor::Behind(_) => of.sent_end.serial_min(received.expected),
            Cursor::Unknown | Cursor::Blind | Cursor::Level | Cursor::Ahead(_) | Cursor::Removed => received.expected,
        };
        self.take_back(index, next, effects);
        self.branches[index].ack_at = end.is_after(next).then(|| end.previous());
    }

    /// The newest packet in the buffer that a branch has been sent.
    fn newest_sent(&self, cursor: Cursor) -> Option<Psn> {
        let received = self.received?;
        let end = match cursor {
            Cursor::Unknown | Cursor::Blind => received.end,
            Cursor::Level | Cursor::Ahead(_) | Cursor::Removed => received.expected,
            Cursor::Behind(psn) => psn,
        };
        (1..=self.buffer.size()).map(|back| end.minus(back)).find(|psn| self.buffer.holds(*psn))
    }
}
