//! ACK and NAK aggregation: what a node says upstream, and when.

use crate::acknowledgements::Acknowledgements;
use crate::branch::State;
use crate::response::{Answer, Response};
use crate::rules::Repeat;
use crate::statement::{Rule, Statement};
use srdma_wire::Psn;
use srdma_wire::transport::rnr_timer;
use std::cmp::Ordering;

/// What is pending at one point, over all branches that stand there.
#[derive(Default)]
struct Pending {
    /// The NAK code of a branch that failed.
    fatal: Option<u8>,
    /// Upstream knows of a failure.
    fatal_told: bool,
    /// The timer code of the longest wait asked for.
    rnr: Option<u8>,
    /// A NAK that upstream does not know of.
    nak: bool,
    /// A NAK that upstream knows of.
    nak_told: bool,
}

impl Acknowledgements {
    /// The minimum, if this node may speak of it: R6, while any branch is unknown, nothing goes upstream.
    #[inline]
    pub(super) fn settled_minimum(&self) -> Option<Psn> {
        self.points.minimum().filter(|_| self.group.unknown == 0)
    }

    /// After a response with point `next` was taken in: R3 if the minimum has advanced, R4 if it has not.
    #[inline]
    pub(super) fn speak(
        &mut self,
        index: usize,
        next: Psn,
        answer: Answer,
        relation: Ordering,
        out: &mut Vec<Statement>,
    ) {
        let Some(minimum) = self.settled_minimum() else {
            return;
        };
        let advanced = self.advance_to(minimum);
        if self.rules.literal_nak && answer == Answer::SequenceNak {
            if advanced && !self.rules.literal_ack {
                self.say(Rule::R3, minimum, Answer::Ack, out);
            }
            self.forward_literally(answer, out);
            self.group.nak_up = true;
            self.tell_nak(index);
        } else if advanced {
            // R3: first what is confirmed, for a requester that sees only NAKs spends a retry on each (D21).
            self.say(Rule::R3, minimum, Answer::Ack, out);
        } else if answer == Answer::Ack {
            self.forward_literally(answer, out);
            if relation == Ordering::Equal && next == minimum {
                self.hear_repeat(index, minimum, out);
            }
        }
        if advanced {
            self.tell_pending(minimum, Rule::R3, true, out);
        } else if next == minimum && answer != Answer::Ack {
            // R4; of many NAKs of the same data the first one goes.
            if self.group.nak_up {
                self.tell_nak(index);
            }
            if self.branches[index].state != State::NakTold {
                self.tell_pending(minimum, Rule::R4, matches!(answer, Answer::RnrNak(_)), out);
            }
        }
    }

    /// Upstream knows of the NAK of a branch, if that is what is pending there.
    #[inline]
    fn tell_nak(&mut self, index: usize) {
        let branch = &mut self.branches[index];
        if branch.state == State::Nak {
            branch.state = branch.state.told();
        }
    }

    /// R2, data with PSN x going down that has AckReq, or is not above the previous data PSN: if x < m, the source has
    /// not heard what is confirmed: ACK(m-1) now. And a failure is said again (D24): on AckReq too, for where the
    /// network changed the order of the data, a step back may not look like one.
    pub(super) fn answer_data(&mut self, psn: Psn, out: &mut Vec<Statement>) {
        let Some(minimum) = self.settled_minimum() else {
            return;
        };
        if psn.is_before(minimum) && self.rules.answers_data() {
            self.counters.answered_data = self.counters.answered_data.wrapping_add(1);
            self.say(Rule::R2, minimum, Answer::Ack, out);
        }
        if self.group.fatal == 0 {
            return;
        }
        let told = self.branches.iter().find_map(|branch| match branch.state {
            State::FatalTold(code) => Some(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakTold
            | State::Rnr(_)
            | State::Fatal(_)
            | State::Failed(_)
            | State::Removed => None,
        });
        if let Some(code) = told {
            self.say(Rule::FailureAgain, minimum, Answer::Fatal(code), out);
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
    pub(super) fn tell_all(&mut self, minimum: Psn, rule: Rule, out: &mut Vec<Statement>) {
        let advanced = self.advance_to(minimum);
        if advanced {
            self.say(rule, minimum, Answer::Ack, out);
        }
        self.tell_pending(minimum, rule, advanced, out);
    }

    /// The end of R3, and R4: the strongest of what is pending at the minimum, unless upstream knows of it. RNR NAKs
    /// are repeated as they come; `rnr` says that one has, or that the minimum has come to it. But of those that answer
    /// one sending of the data only the longest wait goes up, or each receiver that is not ready would cost the source
    /// one of its `rnr_retry` (D23).
    pub(super) fn tell_pending(&mut self, minimum: Psn, rule: Rule, rnr: bool, out: &mut Vec<Statement>) {
        if self.group.awaiting_data + self.group.fatal == 0 {
            return;
        }
        let pending = self.pending_at(minimum);
        if let Some(code) = pending.fatal {
            if !pending.fatal_told {
                self.say(rule, minimum, Answer::Fatal(code), out);
            }
        } else if let Some(timer) = pending.rnr {
            if rnr && self.group.rnr_up.is_none_or(|said| longer(said, timer) != said) {
                self.group.rnr_up = Some(timer);
                self.say(rule, minimum, Answer::RnrNak(timer), out);
            }
            return; // A NAK now would end the receiver's wait (D23); it stays held.
        } else if pending.nak && !pending.nak_told && !self.group.nak_up {
            self.group.nak_up = true;
            self.say(rule, minimum, Answer::SequenceNak, out);
        }
        // What one branch at the minimum has said, it has said for all of them.
        for index in self.points.at(minimum) {
            let branch = &mut self.branches[index];
            branch.state = branch.state.told();
        }
    }

    /// R5 for branches whose hold has ended: NAK(m), or FATAL(m) if one of them failed (D24).
    pub(super) fn end_hold(&mut self, minimum: Psn, fatal: Option<u8>, nak: bool, out: &mut Vec<Statement>) {
        let pending = self.pending_at(minimum);
        let answer = match fatal {
            Some(code) => Answer::Fatal(code),
            // One NAK of the minimum brings back all that follows; and it must not end a receiver's wait (D23).
            None if nak && !self.group.nak_up && pending.rnr.is_none() && pending.fatal.is_none() => {
                Answer::SequenceNak
            }
            None => return,
        };
        self.group.nak_up |= answer == Answer::SequenceNak;
        self.counters.hold_expired = self.counters.hold_expired.wrapping_add(1);
        self.say(Rule::R5, minimum, answer, out);
    }

    /// The literal rules forward each ACK and each NAK as the minimum, whether it tells anything new or not (D19, D20).
    pub(super) fn forward_literally(&mut self, answer: Answer, out: &mut Vec<Statement>) {
        let forwards = match answer {
            Answer::Ack => self.rules.literal_ack,
            Answer::SequenceNak => self.rules.literal_nak,
            Answer::RnrNak(_) | Answer::Fatal(_) => false,
        };
        if let (true, Some(minimum)) = (forwards, self.settled_minimum()) {
            self.say(Rule::Literal, minimum, answer, out);
        }
    }

    /// The ablations of R2: a branch at the minimum has repeated itself.
    fn hear_repeat(&mut self, index: usize, minimum: Psn, out: &mut Vec<Statement>) {
        match self.rules.repeat {
            Repeat::OnBackwardData | Repeat::Never => return,
            Repeat::AllRepeated | Repeat::RepeatCount => {}
        }
        self.group.repeats = self.group.repeats.saturating_add(1);
        self.branches[index].repeated = true;
        let due = match self.rules.repeat {
            Repeat::OnBackwardData | Repeat::Never => false,
            Repeat::AllRepeated => self.points.at(minimum).all(|index| self.branches[index].repeated),
            Repeat::RepeatCount => usize::from(self.group.repeats) >= self.points.at(minimum).count(),
        };
        if due {
            self.group.repeats = 0;
            for index in self.points.at(minimum) {
                self.branches[index].repeated = false;
            }
            self.say(Rule::Repetition, minimum, Answer::Ack, out);
        }
    }

    fn pending_at(&self, point: Psn) -> Pending {
        let mut pending = Pending::default();
        for index in self.points.at(point) {
            match self.branches[index].state {
                State::Unknown | State::Clear | State::Failed(_) | State::Removed => {}
                State::Nak => pending.nak = true,
                State::NakTold => pending.nak_told = true,
                State::Rnr(timer) => pending.rnr = Some(pending.rnr.map_or(timer, |other| longer(other, timer))),
                State::Fatal(code) => pending.fatal = pending.fatal.or(Some(code)),
                State::FatalTold(code) => (pending.fatal, pending.fatal_told) = (pending.fatal.or(Some(code)), true),
            }
        }
        pending
    }

    /// Adds a response of this node: an ACK of what is before the minimum, any other kind at it (MT-5.3.1-3,
    /// MT-5.3.2-4), with the MSN of a branch that holds it (D18).
    pub(super) fn say(&self, rule: Rule, minimum: Psn, answer: Answer, out: &mut Vec<Statement>) {
        let psn = match answer {
            Answer::Ack => minimum.previous(),
            Answer::SequenceNak | Answer::RnrNak(_) | Answer::Fatal(_) => minimum,
        };
        out.push(Statement { response: Response { psn, msn: self.minimum_msn(), answer }, rule });
    }

    /// The message sequence number that goes with the minimum: that of a branch which holds it (D18).
    pub fn minimum_msn(&self) -> u32 {
        self.points.holder().map_or(0, |index| self.branches[index].msn)
    }
}

/// The timer code of the longer wait: not the greater code, for code 0 is the longest (D23).
fn longer(one: u8, other: u8) -> u8 {
    if rnr_timer(other) > rnr_timer(one) { other } else { one }
}
