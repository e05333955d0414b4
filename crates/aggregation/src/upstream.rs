//! ACK and NAK aggregation: what a node says upstream, and when.

use crate::acknowledgements::Acknowledgements;
use crate::branch::State;
use crate::response::{Response, Syndrome};
use crate::rules::Repeat;
use crate::upstream_response::{Rule, UpstreamResponse};
use srdma_wire::Psn;
use srdma_wire::transport::rnr_timer;
use std::cmp::Ordering;

/// What is pending at one point, over all branches that stand there.
#[derive(Default)]
struct Pending {
    /// The NAK code of a branch that failed.
    fatal: Option<u8>,
    /// Upstream knows of a failure.
    fatal_forwarded: bool,
    /// The timer code of the longest wait asked for.
    rnr: Option<u8>,
    /// A NAK that upstream does not know of.
    nak: bool,
    /// A NAK that upstream knows of.
    nak_forwarded: bool,
}

impl Acknowledgements {
    /// The minimum, if this node may speak of it: R6, while any branch is unknown, nothing goes upstream.
    #[inline]
    pub(super) fn minimum_of_known(&self) -> Option<Psn> {
        self.expected_psns.minimum().filter(|_| self.group.unknown == 0)
    }

    /// After a response with point `next` was taken in: R3 if the minimum has advanced, R4 if it has not.
    #[inline]
    pub(super) fn forward_response(
        &mut self,
        index: usize,
        next: Psn,
        syndrome: Syndrome,
        relation: Ordering,
        out: &mut Vec<UpstreamResponse>,
    ) {
        let Some(minimum) = self.minimum_of_known() else {
            return;
        };
        let advanced = self.advance_to(minimum);
        if self.rules.literal_nak && syndrome == Syndrome::SequenceNak {
            if advanced && !self.rules.literal_ack {
                self.send(Rule::R3, minimum, Syndrome::Ack, out);
            }
            self.forward_literally(syndrome, out);
            self.group.nak_up = true;
            self.mark_nak_forwarded(index);
        } else if advanced {
            // R3: first what is confirmed, for a requester that sees only NAKs spends a retry on each (D21).
            self.send(Rule::R3, minimum, Syndrome::Ack, out);
        } else if syndrome == Syndrome::Ack {
            self.forward_literally(syndrome, out);
            if relation == Ordering::Equal && next == minimum {
                self.count_repeat(index, minimum, out);
            }
        }
        if advanced {
            self.forward_pending(minimum, Rule::R3, true, out);
        } else if next == minimum && syndrome != Syndrome::Ack {
            // R4; of many NAKs of the same data the first one goes.
            if self.group.nak_up {
                self.mark_nak_forwarded(index);
            }
            if self.branches[index].state != State::NakForwarded {
                self.forward_pending(minimum, Rule::R4, matches!(syndrome, Syndrome::RnrNak(_)), out);
            }
        }
    }

    /// Upstream knows of the NAK of a branch, if that is what is pending there.
    #[inline]
    fn mark_nak_forwarded(&mut self, index: usize) {
        let branch = &mut self.branches[index];
        if branch.state == State::Nak {
            branch.state = branch.state.forwarded();
        }
    }

    /// R2, data with PSN x going down that has AckReq, or is not above the previous data PSN: if x < m, the source has
    /// not heard what is confirmed: ACK(m-1) now. And a failure is said again (D24): on AckReq too, for where the
    /// network changed the order of the data, a step back may not look like one.
    pub(super) fn respond_to_data(&mut self, psn: Psn, out: &mut Vec<UpstreamResponse>) {
        let Some(minimum) = self.minimum_of_known() else {
            return;
        };
        if psn.is_before(minimum) && self.rules.answers_data() {
            self.counters.answered_data = self.counters.answered_data.wrapping_add(1);
            self.send(Rule::R2, minimum, Syndrome::Ack, out);
        }
        if self.group.fatal == 0 {
            return;
        }
        let told = self.branches.iter().find_map(|branch| match branch.state {
            State::FatalForwarded(code) => Some(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakForwarded
            | State::Rnr(_)
            | State::Fatal(_)
            | State::Failed(_)
            | State::Removed => None,
        });
        if let Some(code) = told {
            self.send(Rule::FailureAgain, minimum, Syndrome::Fatal(code), out);
        }
    }

    /// Whether the minimum is above `up`, which it then is no longer.
    #[inline]
    pub(super) fn advance_to(&mut self, minimum: Psn) -> bool {
        if self.group.up.get() == Some(minimum) {
            return false;
        }
        self.group.up = minimum.into();
        (self.group.nak_up, self.group.rnr_up) = (false, None);
        self.group.repeats = 0;
        true
    }

    /// R7: what there is to say after the branches have changed.
    pub(super) fn forward_all(&mut self, minimum: Psn, rule: Rule, out: &mut Vec<UpstreamResponse>) {
        let advanced = self.advance_to(minimum);
        if advanced {
            self.send(rule, minimum, Syndrome::Ack, out);
        }
        self.forward_pending(minimum, rule, advanced, out);
    }

    /// The end of R3, and R4: the strongest of what is pending at the minimum, unless upstream knows of it. RNR NAKs
    /// are repeated as they come; `rnr` says that one has, or that the minimum has come to it. But of those that answer
    /// one sending of the data only the longest wait goes up, or each receiver that is not ready would cost the source
    /// one of its `rnr_retry` (D23).
    pub(super) fn forward_pending(&mut self, minimum: Psn, rule: Rule, rnr: bool, out: &mut Vec<UpstreamResponse>) {
        if self.group.awaiting_data + self.group.fatal == 0 {
            return;
        }
        let pending = self.pending_at(minimum);
        if let Some(code) = pending.fatal {
            if !pending.fatal_forwarded {
                self.send(rule, minimum, Syndrome::Fatal(code), out);
            }
        } else if let Some(timer) = pending.rnr {
            if rnr && self.group.rnr_up.is_none_or(|said| longer(said, timer) != said) {
                self.group.rnr_up = Some(timer);
                self.send(rule, minimum, Syndrome::RnrNak(timer), out);
            }
            return; // A NAK now would end the receiver's wait (D23); it stays held.
        } else if pending.nak && !pending.nak_forwarded && !self.group.nak_up {
            self.group.nak_up = true;
            self.send(rule, minimum, Syndrome::SequenceNak, out);
        }
        // What one branch at the minimum has said, it has said for all of them.
        for index in self.expected_psns.at(minimum) {
            let branch = &mut self.branches[index];
            branch.state = branch.state.forwarded();
        }
    }

    /// R5 for branches whose hold has ended: NAK(m), or FATAL(m) if one of them failed (D24).
    pub(super) fn end_hold(&mut self, minimum: Psn, fatal: Option<u8>, nak: bool, out: &mut Vec<UpstreamResponse>) {
        let pending = self.pending_at(minimum);
        let syndrome = match fatal {
            Some(code) => Syndrome::Fatal(code),
            // One NAK of the minimum brings back all that follows; and it must not end a receiver's wait (D23).
            None if nak && !self.group.nak_up && pending.rnr.is_none() && pending.fatal.is_none() => {
                Syndrome::SequenceNak
            }
            None => return,
        };
        self.group.nak_up |= syndrome == Syndrome::SequenceNak;
        self.counters.hold_expired = self.counters.hold_expired.wrapping_add(1);
        self.send(Rule::R5, minimum, syndrome, out);
    }

    /// The literal rules forward each ACK and each NAK as the minimum, whether it tells anything new or not (D19, D20).
    pub(super) fn forward_literally(&mut self, syndrome: Syndrome, out: &mut Vec<UpstreamResponse>) {
        let forwards = match syndrome {
            Syndrome::Ack => self.rules.literal_ack,
            Syndrome::SequenceNak => self.rules.literal_nak,
            Syndrome::RnrNak(_) | Syndrome::Fatal(_) => false,
        };
        if let (true, Some(minimum)) = (forwards, self.minimum_of_known()) {
            self.send(Rule::Literal, minimum, syndrome, out);
        }
    }

    /// The ablations of R2: a branch at the minimum has repeated itself.
    fn count_repeat(&mut self, index: usize, minimum: Psn, out: &mut Vec<UpstreamResponse>) {
        match self.rules.repeat {
            Repeat::OnBackwardData | Repeat::Never => return,
            Repeat::AllRepeated | Repeat::RepeatCount => {}
        }
        self.group.repeats = self.group.repeats.saturating_add(1);
        self.branches[index].repeated = true;
        let due = match self.rules.repeat {
            Repeat::OnBackwardData | Repeat::Never => false,
            Repeat::AllRepeated => self.expected_psns.at(minimum).all(|index| self.branches[index].repeated),
            Repeat::RepeatCount => usize::from(self.group.repeats) >= self.expected_psns.at(minimum).count(),
        };
        if due {
            self.group.repeats = 0;
            for index in self.expected_psns.at(minimum) {
                self.branches[index].repeated = false;
            }
            self.send(Rule::Repetition, minimum, Syndrome::Ack, out);
        }
    }

    fn pending_at(&self, point: Psn) -> Pending {
        let mut pending = Pending::default();
        for index in self.expected_psns.at(point) {
            match self.branches[index].state {
                State::Unknown | State::Clear | State::Failed(_) | State::Removed => {}
                State::Nak => pending.nak = true,
                State::NakForwarded => pending.nak_forwarded = true,
                State::Rnr(timer) => pending.rnr = Some(pending.rnr.map_or(timer, |other| longer(other, timer))),
                State::Fatal(code) => pending.fatal = pending.fatal.or(Some(code)),
                State::FatalForwarded(code) => {
                    (pending.fatal, pending.fatal_forwarded) = (pending.fatal.or(Some(code)), true)
                }
            }
        }
        pending
    }

    /// Adds a response of this node: an ACK of what is before the minimum, any other kind at it (MT-5.3.1-3,
    /// MT-5.3.2-4), with the MSN of a branch that holds it (D18).
    pub(super) fn send(&self, rule: Rule, minimum: Psn, syndrome: Syndrome, out: &mut Vec<UpstreamResponse>) {
        let psn = match syndrome {
            Syndrome::Ack => minimum.previous(),
            Syndrome::SequenceNak | Syndrome::RnrNak(_) | Syndrome::Fatal(_) => minimum,
        };
        out.push(UpstreamResponse { response: Response { psn, msn: self.minimum_msn(), syndrome }, rule });
    }

    /// The message sequence number that goes with the minimum: that of a branch which holds it (D18).
    pub fn minimum_msn(&self) -> u32 {
        self.expected_psns.holder().map_or(0, |index| self.branches[index].msn)
    }
}

/// The timer code of the longer wait: not the greater code, for code 0 is the longest (D23).
fn longer(one: u8, other: u8) -> u8 {
    if rnr_timer(other) > rnr_timer(one) { other } else { one }
}
