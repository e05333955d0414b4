//! ACK and NAK aggregation: the responses that a node sends upstream.

use crate::acknowledgements::Acknowledgements;
use crate::branch::State;
use crate::forwarded::is_longer;
use crate::response::{Response, Syndrome};
use crate::upstream_response::{Rule, UpstreamResponse};
use srdma_wire::Psn;
use std::cmp::Ordering;

/// Syndromes that are pending at one PSN, over all branches that expect it.
#[derive(Default)]
struct Pending {
    /// The NAK code of a branch that failed.
    fatal: Option<u8>,
    /// A failure was forwarded upstream.
    fatal_forwarded: bool,
    /// The timer code of the longest requested wait.
    rnr: Option<u8>,
    /// A NAK that was not forwarded upstream.
    nak: bool,
    /// A NAK was forwarded upstream.
    nak_forwarded: bool,
}

impl Acknowledgements {
    /// The minimum, if no branch is unknown: else nothing is sent upstream (R6).
    #[inline]
    pub(super) fn minimum_of_known(&self) -> Option<Psn> {
        self.expected_psns.minimum().filter(|_| self.group.unknown == 0)
    }

    /// After a response with expected PSN `psn` was accepted: R3 if the minimum has advanced, R4 if it has not.
    #[inline]
    pub(super) fn forward_response(
        &mut self,
        index: usize,
        psn: Psn,
        syndrome: Syndrome,
        relation: Ordering,
        out: &mut Vec<UpstreamResponse>,
    ) {
        if self.ablation.is_some() {
            return self.forward_by_variant(index, psn, syndrome, relation, out);
        }
        let Some(minimum) = self.minimum_of_known() else {
            return;
        };
        let advanced = self.group.upstream.advance_to(minimum);
        if advanced {
            // R3: the ACK first, for a requester that receives only NAKs spends a retry on each (D21).
            self.send(Rule::R3, minimum, Syndrome::Ack, out);
        }
        self.forward_at_minimum(index, psn, syndrome, minimum, advanced, out);
    }

    /// R3 after its ACK, or R4.
    #[inline]
    pub(super) fn forward_at_minimum(
        &mut self,
        index: usize,
        psn: Psn,
        syndrome: Syndrome,
        minimum: Psn,
        advanced: bool,
        out: &mut Vec<UpstreamResponse>,
    ) {
        if advanced {
            self.forward_pending(minimum, Rule::R3, true, out);
        } else if psn == minimum && syndrome != Syndrome::Ack {
            // R4; of many NAKs of the same data the first one goes.
            if self.group.upstream.forwarded().has_nak() {
                self.mark_nak_forwarded(index);
            }
            if self.branches[index].state != State::NakForwarded {
                self.forward_pending(minimum, Rule::R4, matches!(syndrome, Syndrome::RnrNak(_)), out);
            }
        }
    }

    /// R2, data with PSN x that have AckReq, or are not above the previous data PSN: if x < m, the source lacks an ACK:
    /// ACK(m-1) now. A failure is sent again too (D24): also on AckReq, for the network may reorder the data and so
    /// hide a step back.
    pub(super) fn respond_to_data(&mut self, psn: Psn, out: &mut Vec<UpstreamResponse>) {
        let Some(minimum) = self.minimum_of_known() else {
            return;
        };
        if psn.is_before(minimum) && self.policy.resends_ack {
            self.counters.repeated_acks = self.counters.repeated_acks.wrapping_add(1);
            self.send(Rule::R2, minimum, Syndrome::Ack, out);
        }
        if self.group.fatal == 0 {
            return;
        }
        let forwarded = self.branches.iter().find_map(|branch| match branch.state {
            State::FatalForwarded(code) => Some(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakEarly
            | State::NakForwarded
            | State::Rnr(_)
            | State::Fatal(_)
            | State::Failed(_)
            | State::Removed => None,
        });
        if let Some(code) = forwarded {
            self.send(Rule::FailureAgain, minimum, Syndrome::Fatal(code), out);
        }
    }

    /// Returns whether the minimum advances, which is then acknowledged.
    pub(super) fn advance_to(&mut self, minimum: Psn) -> bool {
        let advances = self.group.upstream.advance_to(minimum);
        if let (true, Some(ablation)) = (advances, &mut self.ablation) {
            ablation.advanced();
        }
        advances
    }

    /// R7: the responses after a change of branches.
    pub(super) fn forward_all(&mut self, minimum: Psn, rule: Rule, out: &mut Vec<UpstreamResponse>) {
        let advanced = self.advance_to(minimum);
        if advanced {
            self.send(rule, minimum, Syndrome::Ack, out);
        }
        self.forward_pending(minimum, rule, advanced, out);
    }

    /// The end of R3, and R4: the strongest syndrome pending at the minimum, unless it was forwarded. RNR NAKs are
    /// forwarded as they arrive; `rnr` is true if one has, or if the minimum has reached one. Of those for one
    /// transmission of the data only the longest wait is forwarded, or each receiver that is not ready would cost the
    /// source one of its `rnr_retry` (D23).
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
            if rnr && self.group.upstream.rnr(timer) {
                self.send(rule, minimum, Syndrome::RnrNak(timer), out);
            }
            return; // A NAK now would end the receiver's wait (D23); it stays held.
        } else if pending.nak && !pending.nak_forwarded && self.group.upstream.nak() {
            self.send(rule, minimum, Syndrome::SequenceNak, out);
        }
        // One response covers all branches at the minimum.
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
            // One NAK of the minimum brings back all that follows, from a source that goes back; and it must not end a
            // receiver's wait (D23).
            None if nak && pending.rnr.is_none() && pending.fatal.is_none() && self.group.upstream.nak() => {
                Syndrome::SequenceNak
            }
            None => return,
        };
        self.counters.hold_expired = self.counters.hold_expired.wrapping_add(1);
        self.send(Rule::R5, minimum, syndrome, out);
    }

    fn pending_at(&self, psn: Psn) -> Pending {
        let mut pending = Pending::default();
        for index in self.expected_psns.at(psn) {
            match self.branches[index].state {
                State::Unknown | State::Clear | State::Failed(_) | State::Removed => {}
                State::Nak | State::NakEarly => pending.nak = true,
                State::NakForwarded => pending.nak_forwarded = true,
                State::Rnr(timer) => {
                    pending.rnr = Some(pending.rnr.filter(|&other| !is_longer(timer, other)).unwrap_or(timer));
                }
                State::Fatal(code) => pending.fatal = pending.fatal.or(Some(code)),
                State::FatalForwarded(code) => {
                    (pending.fatal, pending.fatal_forwarded) = (pending.fatal.or(Some(code)), true);
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
