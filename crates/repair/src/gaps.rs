//! What is missing: gaps in the received PSNs, and packets that a branch waits for and that are not in the buffer. The
//! parent is asked for them, or the source is sent a NAK of the minimum.

use crate::branch::{BranchKind, Cursor};
use crate::repair::{Effects, Repair, known_minimum};
use crate::request::Request;
use srdma_aggregation::{Acknowledgements, BranchIndex, Response, Rule, Syndrome, UpstreamResponse};
use srdma_wire::{Instant, Psn};

/// Requests for one PSN, after which it is given up: no node above has it any more, or the source has completed it.
const MOST_REQUESTS: u8 = 3;
/// Runs of missing PSNs that are requested at once.
const MOST_RUNS: usize = 4;

/// The lowest PSN that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gap {
    pub(crate) psn: Psn,
    /// When it became the lowest.
    pub(crate) since: Instant,
    /// Requests that were sent since; below the source, times that it went back to a PSN behind this one.
    pub(crate) requests: u8,
    /// When the next is due; never for a gap that is given up.
    pub(crate) request_at: Instant,
}

impl<P> Repair<P> {
    /// Everything from `expected` to `psn` is missing, unless it is in the buffer (D153, D154).
    #[cold]
    pub(crate) fn see_gap(&mut self, now: Instant, psn: Psn, acks: &Acknowledgements, effects: &mut Effects<P>) {
        let Some(received) = &mut self.received else { return };
        let (expected, end) = (received.expected, received.end);
        if !psn.is_before(end) {
            received.end = psn.next();
        }
        let first = end.serial_max(expected);
        if psn.is_after(first) || (end == expected && psn != expected) {
            self.counters.gaps += 1;
            if self.rules.parent_repairs {
                self.request(now, first, psn, effects);
            } else if end == expected {
                self.hasten(expected, acks, effects);
            }
        }
        self.renew_gap(now);
    }

    /// A branch waits for a packet that is not in the buffer.
    pub(crate) fn see_hole(&mut self, now: Instant, psn: Psn) {
        if self.received.is_some_and(|received| !psn.is_before(received.expected)) {
            return;
        }
        let lowest = Some(self.hole.map_or(psn, |hole| hole.serial_min(psn)));
        if self.hole != lowest {
            self.hole = lowest;
            // The timer asks for it.
            self.arm(now);
        }
    }

    /// A packet has come that may be missing no longer, and that branches may wait for.
    pub(crate) fn filled(&mut self, now: Instant, psn: Psn, acks: &Acknowledgements, effects: &mut Effects<P>) {
        if self.hole == Some(psn) {
            self.hole = None;
        }
        if let Some((_, at)) = self.requested.filter(|(requested, _)| *requested == psn) {
            self.requested = None;
            self.parent_round_trip.sample(now.since(at));
        }
        for index in 0..self.branches.len() {
            let branch = BranchIndex(index as u16);
            let of = &mut self.branches[index];
            // The source has waited for the receiver: so has this node.
            let is_awaited = acks.expected_psn(branch) == Some(psn);
            if let Some(pause) = of.pause.as_mut().filter(|pause| pause.psn == psn && pause.until != Instant::NEVER)
                && is_awaited
            {
                pause.is_over = true;
            }
            if let Cursor::Behind(_) = of.cursor {
                effects.ready.push(branch);
            }
        }
        self.renew_gap(now);
    }

    /// Finds the lowest missing PSN again.
    pub(crate) fn renew_gap(&mut self, now: Instant) {
        let missing = self.missing();
        if missing == self.gap.map(|gap| gap.psn) {
            return;
        }
        // A gap was requested when it was seen; a hole was not.
        let request_at = if self.hole == missing { now } else { now + self.request_interval() };
        self.gap = missing.map(|psn| Gap { psn, since: now, requests: 0, request_at });
        if missing.is_some() {
            self.arm(request_at);
        }
    }

    /// The lowest PSN that is missing.
    fn missing(&self) -> Option<Psn> {
        let received = self.received?;
        let gap = (received.expected != received.end).then_some(received.expected);
        match (gap, self.hole) {
            (Some(gap), Some(hole)) => Some(gap.serial_min(hole)),
            (gap, hole) => gap.or(hole),
        }
    }

    /// The parent's timeout: the round trip, and the packets on the wire before the data.
    fn request_interval(&self) -> std::time::Duration {
        let interval = self.parent_round_trip.backed_off_timeout(self.rules.initial_round_trip);
        interval.min(self.rules.longest_probe())
    }

    /// Asks for all that is missing from `first` on, before `end`.
    fn request(&mut self, now: Instant, first: Psn, end: Psn, effects: &mut Effects<P>) {
        let count = end.distance_from(first).unsigned_abs().min(self.buffer.size().max(1));
        effects.requests.push(Request { psn: first, count });
        self.counters.requests_sent += 1;
        if self.requested.is_none() {
            self.requested = Some((first, now));
        }
    }

    /// The last packet before a gap is sent again with a request for an ACK, so that the minimum reaches the gap within
    /// a round trip, wherever the source requests ACKs (D154).
    fn hasten(&mut self, expected: Psn, acks: &Acknowledgements, effects: &mut Effects<P>) {
        let last = expected.previous();
        if self.buffer.get(last).is_none_or(|slot| slot.ack_request) {
            return;
        }
        for index in 0..self.branches.len() {
            let branch = BranchIndex(index as u16);
            let lacks = acks.expected_psn(branch).is_some_and(|next| !last.is_before(next));
            if self.branches[index].cursor == Cursor::Level && lacks {
                self.branches[index].selected.add(last, 1, true);
                effects.ready.push(branch);
            }
        }
    }

    /// Requests what is missing again, or gives it up (D153, D158).
    pub(crate) fn request_again(&mut self, now: Instant, effects: &mut Effects<P>) {
        let Some(gap) = self.gap.as_mut().filter(|_| self.rules.parent_repairs) else { return };
        if now < gap.request_at {
            let at = gap.request_at;
            return self.arm(at);
        }
        if gap.requests >= MOST_REQUESTS {
            gap.request_at = Instant::NEVER;
            let psn = gap.psn;
            return self.give_up(psn);
        }
        let is_overdue = gap.requests > 0 || self.hole != Some(gap.psn);
        gap.requests += 1;
        if is_overdue {
            self.parent_round_trip.back_off();
        }
        // An answer to one of several requests is no sample.
        self.requested = self.requested.filter(|(psn, _)| *psn != gap.psn);
        let was_requested = self.requested;
        let at = now + self.request_interval();
        if let Some(gap) = &mut self.gap {
            gap.request_at = at;
        }
        self.arm(at);
        for (first, end) in self.runs() {
            self.request(now, first, end, effects);
        }
        self.requested = was_requested;
    }

    /// The source has gone back to a PSN, which is in the buffer. If it does not go back to a gap that it was sent a
    /// NAK for, again and again, it has completed that (D158).
    #[cold]
    pub(crate) fn pass_over_gap(&mut self, psn: Psn) {
        let is_reported = !self.rules.parent_repairs && self.nak_sent.is_some();
        let Some(gap) = self.gap.as_mut().filter(|gap| is_reported && gap.psn.is_before(psn)) else { return };
        gap.requests += 1;
        if gap.requests >= MOST_REQUESTS {
            gap.requests = 0;
            let psn = gap.psn;
            self.give_up(psn);
        }
    }

    /// The first runs of missing PSNs, each with the PSN after its last.
    fn runs(&self) -> Vec<(Psn, Psn)> {
        let mut runs = Vec::new();
        let (Some(received), Some(gap)) = (self.received, self.gap) else { return runs };
        if gap.psn.is_before(received.expected) {
            // A hole: those behind it that branches wait for are found when it is filled.
            let mut end = gap.psn.next();
            while end.is_before(received.expected) && !self.buffer.holds(end) {
                end = end.next();
            }
            runs.push((gap.psn, end));
        }
        let mut psn = received.expected;
        while psn.is_before(received.end) && runs.len() < MOST_RUNS {
            let first = psn;
            while psn.is_before(received.end) && !self.buffer.holds(psn) {
                psn = psn.next();
            }
            if psn != first {
                runs.push((first, psn));
            }
            while psn.is_before(received.end) && self.buffer.holds(psn) {
                psn = psn.next();
            }
        }
        runs
    }

    /// No node above has a PSN: the branches that wait for it are sent all data that come (D158).
    fn give_up(&mut self, psn: Psn) {
        let Some(received) = self.received else { return };
        self.counters.gaps_given_up += 1;
        if self.hole == Some(psn) {
            self.hole = None;
        }
        for index in 0..self.branches.len() {
            let cursor = self.branches[index].cursor.gave_up(psn, received.expected);
            self.set_cursor(index, cursor);
        }
        if self.hole.is_none() && psn.is_before(received.expected) {
            self.renew_gap(received.at);
        }
    }

    /// A branch waits again for what was given up: it is requested again.
    pub(crate) fn want_again(&mut self, now: Instant, psn: Psn) {
        if let Some(gap) = self.gap.as_mut().filter(|gap| gap.psn == psn && gap.request_at == Instant::NEVER) {
            (gap.requests, gap.request_at) = (0, now);
            self.arm(now);
        }
    }

    /// The parent does not repair, or is the source: a gap counts as a NAK that is pending at this node itself, and
    /// goes upstream as a NAK of the minimum, once for each minimum (R3-R5, D154).
    pub(crate) fn report_gap(&mut self, now: Instant, acks: &Acknowledgements, out: &mut Vec<UpstreamResponse>) {
        let (Some(gap), Some(received)) = (self.gap.filter(|_| !self.rules.parent_repairs), self.received) else {
            return;
        };
        let Some(minimum) = known_minimum(acks).filter(|minimum| self.nak_sent != Some(*minimum)) else { return };
        // What the data going down have not reached yet, a source that goes back is about to send.
        let is_passed = gap.psn.is_before(received.pass_highest);
        let quiet_at = received.at + self.rules.gap_hold;
        let held_until = if minimum == gap.psn { Instant::ZERO } else { gap.since + self.rules.gap_hold };
        let due = if is_passed { held_until } else { held_until.max(quiet_at) };
        if now < due {
            return self.arm(due);
        }
        self.nak_sent = Some(minimum);
        self.counters.naks_for_gaps += 1;
        let response = Response { psn: minimum, msn: acks.minimum_msn(), syndrome: Syndrome::SequenceNak };
        out.push(UpstreamResponse { response, rule: Rule::Gap });
    }

    /// A child that repairs lacks data (D153). It acknowledges nothing by that. Returns whether the request is within
    /// its limits.
    pub fn requested(
        &mut self,
        now: Instant,
        branch: BranchIndex,
        request: Request,
        acks: &Acknowledgements,
        effects: &mut Effects<P>,
    ) -> bool {
        let interval = self.branches.get(branch.index()).map(|of| of.round_trip.timeout(self.rules.initial_round_trip));
        let (Some(received), Some(interval), false) = (self.received, interval, self.is_off) else { return false };
        let size = self.buffer.size();
        let next = acks.expected_psn(branch);
        let Some(of) = self.branches.get_mut(branch.index()).filter(|of| of.kind == BranchKind::Repairs) else {
            return false;
        };
        if now.since(of.answers.since) >= interval / 2 {
            (of.answers.since, of.answers.packets) = (now, 0);
        }
        if request.count > size || of.answers.packets >= size {
            return false;
        }
        self.counters.requests_received += 1;
        let sent = match of.cursor {
            Cursor::Level => received.expected,
            Cursor::Behind(psn) => psn,
            Cursor::Ahead(_) | Cursor::Unknown | Cursor::Blind => received.end,
            Cursor::Removed => return false,
        };
        let mut run: Option<(Psn, u32)> = None;
        for psn in (0..request.count).map(|offset| request.psn.plus(offset)) {
            let is_sent = psn.is_before(sent) && next.is_none_or(|next| !psn.is_before(next));
            if is_sent && self.buffer.holds(psn) && self.branches[branch.index()].answers.packets < size {
                self.branches[branch.index()].answers.packets += 1;
                run = Some(run.map_or((psn, 1), |(first, count)| (first, count + 1)));
                continue;
            }
            if let Some((first, count)) = run.take() {
                self.branches[branch.index()].selected.add(first, count, false);
            }
            if is_sent && !self.buffer.holds(psn) {
                self.see_hole(now, psn);
            }
        }
        if let Some((first, count)) = run {
            self.branches[branch.index()].selected.add(first, count, false);
        }
        effects.ready.push(branch);
        true
    }
}
