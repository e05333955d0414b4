//! Responses of the branches: what this node answers itself, and what it passes on to the aggregation.

use crate::branch::{Back, Cursor, Pause};
use crate::repair::{Effects, Repair, known_minimum};
use srdma_aggregation::{Acknowledgements, BranchIndex, Refusal, Response, Syndrome, UpstreamResponse};
use srdma_wire::transport::rnr_timer;
use srdma_wire::{Instant, Psn};

impl<P> Repair<P> {
    /// Processes a response of a branch, and passes it on to the aggregation: a NAK that is answered here is an ACK of
    /// what is before it (D152), and so is an RNR NAK that is waited for here (D157).
    pub fn response(
        &mut self,
        now: Instant,
        branch: BranchIndex,
        response: Response,
        acks: &mut Acknowledgements,
        out: &mut Vec<UpstreamResponse>,
        effects: &mut Effects<P>,
    ) -> Result<(), Refusal> {
        if self.is_off {
            return acks.response(now, branch, response, out);
        }
        let index = branch.index();
        if response.syndrome == Syndrome::Ack
            && self.gap.is_none()
            && self.branches.get(index).is_some_and(|of| of.cursor == Cursor::Level)
        {
            return self.acknowledged(now, branch, response, acks, out, effects);
        }
        let next = response.expected_psn();
        let is_within = acks.highest_psn().is_some_and(|highest| next.distance_from(highest) <= 1);
        let before = acks.expected_psn(branch);
        let is_waited_for = match response.syndrome {
            Syndrome::Ack | Syndrome::Fatal(_) => false,
            Syndrome::SequenceNak => true,
            Syndrome::RnrNak(timer) => self.waits_for(now, index, next, timer),
        };
        let passed_on = if is_waited_for {
            Response { psn: next.previous(), syndrome: Syndrome::Ack, ..response }
        } else {
            response
        };
        acks.response(now, branch, passed_on, out)?;
        let (Some(expected_psn), Some(received)) = (acks.expected_psn(branch), self.received) else { return Ok(()) };
        let Some(of) = self.branches.get_mut(index) else { return Ok(()) };
        let is_sample = is_within && response.syndrome == Syndrome::Ack && of.cursor == Cursor::Level;
        if before.is_none_or(|before| expected_psn.is_after(before)) {
            of.progress(expected_psn, now);
            if is_sample {
                of.sample(now, self.buffer.get(response.psn));
            }
        }
        if of.cursor != Cursor::Level || expected_psn.is_after(received.expected) {
            let cursor = of.cursor.responded(expected_psn, is_within, received.expected);
            self.set_cursor(index, cursor);
        }
        if is_within && next == expected_psn {
            match response.syndrome {
                Syndrome::Ack => {}
                Syndrome::SequenceNak => self.nak(now, index, next, effects),
                Syndrome::RnrNak(timer) => {
                    self.counters.rnr_naks_absorbed += u64::from(is_waited_for);
                    self.not_ready(now, index, next, Some(timer));
                }
                Syndrome::Fatal(_) => self.not_ready(now, index, next, None),
            }
        }
        self.minimum_moved(now, acks, effects);
        self.report_gap(now, acks, out);
        Ok(())
    }

    /// An ACK of a branch that has been sent everything, while nothing is missing.
    #[inline]
    fn acknowledged(
        &mut self,
        now: Instant,
        branch: BranchIndex,
        response: Response,
        acks: &mut Acknowledgements,
        out: &mut Vec<UpstreamResponse>,
        effects: &mut Effects<P>,
    ) -> Result<(), Refusal> {
        let before = acks.expected_psn(branch);
        acks.response(now, branch, response, out)?;
        let (Some(expected_psn), Some(received)) = (acks.expected_psn(branch), self.received) else { return Ok(()) };
        if before.is_none_or(|before| expected_psn.is_after(before)) {
            let of = &mut self.branches[branch.index()];
            of.progress(expected_psn, now);
            of.sample(now, self.buffer.get(response.psn));
        }
        if expected_psn.is_after(received.expected) {
            self.set_cursor(branch.index(), Cursor::Ahead(expected_psn));
        }
        self.minimum_moved(now, acks, effects);
        Ok(())
    }

    /// Releases what all branches have acknowledged.
    #[inline]
    pub fn minimum_moved(&mut self, now: Instant, acks: &Acknowledgements, effects: &mut Effects<P>) {
        if self.is_off {
            return;
        }
        let Some(minimum) = known_minimum(acks).filter(|minimum| self.minimum != Some(*minimum)) else { return };
        self.release(now, minimum, effects);
    }

    fn release(&mut self, now: Instant, minimum: Psn, effects: &mut Effects<P>) {
        let size = self.buffer.size();
        let distance = self.minimum.map_or(size, |before| minimum.distance_from(before).unsigned_abs().min(size));
        self.buffer.take_run(minimum.minus(distance), distance, &mut effects.released);
        self.minimum = Some(minimum);
        self.hole = self.hole.filter(|hole| !hole.is_before(minimum));
        let Some(received) = &mut self.received else { return };
        if minimum.is_after(received.expected) {
            // Branches have what this node never received.
            let before = received.expected;
            received.end = received.end.serial_max(minimum);
            received.expected = minimum;
            while received.expected != received.end && self.buffer.holds(received.expected) {
                received.expected = received.expected.next();
            }
            let expected = received.expected;
            self.advance_branches(before, minimum, expected, effects);
        }
        if self.gap.is_some() {
            self.renew_gap(now);
        }
    }

    /// Whether a receiver that is not ready is waited for here: until the source's ACK timeout comes near (D157).
    fn waits_for(&self, now: Instant, index: usize, psn: Psn, timer: u8) -> bool {
        let pause = self.branches.get(index).and_then(|branch| branch.pause);
        let since = pause.filter(|pause| pause.psn == psn).map_or(now, |pause| pause.since);
        (now + rnr_timer(timer)).since(since) <= self.rules.longest_wait()
    }

    /// A branch lacks the packet at `psn`: it is sent everything from there on again, unless that is on its way (D152).
    fn nak(&mut self, now: Instant, index: usize, psn: Psn, effects: &mut Effects<P>) {
        let branch = &self.branches[index];
        if branch.is_paused() {
            return;
        }
        if branch.back.is_some_and(|back| back.psn == psn && now < back.until) {
            self.counters.naks_suppressed += 1;
            return;
        }
        self.counters.naks_absorbed += 1;
        self.take_back(index, psn, effects);
        self.want_again(now, psn);
    }

    /// A receiver is not ready for `psn`, or has failed, without a timer.
    fn not_ready(&mut self, now: Instant, index: usize, psn: Psn, timer: Option<u8>) {
        let Some(received) = self.received else { return };
        let cursor = self.branches[index].cursor.back(psn, received.expected);
        let branch = &self.branches[index];
        if branch.has_failed() {
            return;
        }
        let since = branch.pause.filter(|pause| pause.psn == psn).map_or(now, |pause| pause.since);
        let until = timer.map_or(Instant::NEVER, |timer| now + rnr_timer(timer));
        // A level branch would be sent what comes next.
        let cursor = if cursor == Cursor::Level { Cursor::Behind(psn) } else { cursor };
        self.set_cursor(index, cursor);
        self.branches[index].pause = Some(Pause { psn, since, until, is_over: false });
        self.branches[index].counters.times_back += 1;
        self.arm(until);
    }

    /// A branch is sent everything from `psn` on again.
    pub(crate) fn take_back(&mut self, index: usize, psn: Psn, effects: &mut Effects<P>) {
        let Some(received) = self.received else { return };
        let cursor = self.branches[index].cursor.back(psn, received.expected);
        self.set_cursor(index, cursor);
        let branch = &mut self.branches[index];
        branch.back = Some(Back { psn, until: Instant::NEVER });
        branch.requests = [None; 2];
        branch.counters.times_back += 1;
        effects.ready.push(BranchIndex(index as u16));
    }
}
