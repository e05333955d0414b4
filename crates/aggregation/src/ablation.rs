//! Variants of the forwarding rule, measured beside R1-R7: the literal readings of the drafts, and rejected readings.
//!
//! [`Ablation::of`] is `None` for R1-R7, whose path per response does not depend on this module.

use crate::acknowledgements::{Acknowledgements, WINDOW};
use crate::branch::{Branch, State};
use crate::refusal::Refusal;
use crate::response::{Response, Syndrome};
use crate::rules::{Repeat, Rules};
use crate::succession::Origin;
use crate::upstream_response::{Rule, UpstreamResponse};
use srdma_wire::Psn;
use std::cmp::Ordering;

/// A variant, with the state that only variants have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ablation {
    literal_ack: bool,
    literal_nak: bool,
    forwards_data: bool,
    repeat: Repeat,
    /// Repeats received since the minimum was sent upstream.
    repeats: u16,
    /// For each branch, whether it has repeated itself since.
    repeated: Box<[bool]>,
}

impl Ablation {
    /// The variant of these rules for branches of these origins.
    pub(crate) fn of(rules: &Rules, origins: &[Origin], before: Option<&Ablation>) -> Option<Box<Self>> {
        let counts_repeats = match rules.repeat {
            Repeat::AllRepeated | Repeat::RepeatCount => true,
            Repeat::OnBackwardData | Repeat::Never => false,
        };
        if !(rules.literal_ack || rules.literal_nak || !rules.forwards_data || counts_repeats) {
            return None;
        }
        let kept = |origin: &Origin| match (origin, before) {
            (Origin::Kept(index), Some(before)) => before.repeated.get(index.index()).copied().unwrap_or(false),
            (Origin::Kept(_), None) | (Origin::At(_) | Origin::Unknown, _) => false,
        };
        Some(Box::new(Ablation {
            literal_ack: rules.literal_ack,
            literal_nak: rules.literal_nak,
            forwards_data: rules.forwards_data,
            repeat: rules.repeat,
            repeats: before.map_or(0, |before| before.repeats),
            repeated: origins.iter().map(kept).collect(),
        }))
    }

    /// The minimum was sent upstream.
    pub(crate) fn advanced(&mut self) {
        self.repeats = 0;
    }
}

impl Acknowledgements {
    /// R1 without the data that would bound it (D15): branches can only be compared with each other.
    #[cold]
    pub(crate) fn plausible_by_variant(&mut self, response: Response) -> Result<(Psn, Syndrome), Refusal> {
        if self.ablation.as_ref().is_none_or(|ablation| ablation.forwards_data) {
            return self.plausible(response);
        }
        let (psn, syndrome) = (response.expected_psn(), response.syndrome);
        let newest = self.expected_psns.minimum().unwrap_or(psn);
        let above = psn.distance_from(newest);
        if above > WINDOW {
            Err(Refusal::ImplausiblePsn { psn, highest: newest })
        } else if above < -WINDOW {
            Err(Refusal::Stale { psn, newest })
        } else {
            Ok((psn, syndrome))
        }
    }

    /// R3 and R4 of a variant.
    #[cold]
    pub(crate) fn forward_by_variant(
        &mut self,
        index: usize,
        psn: Psn,
        syndrome: Syndrome,
        relation: Ordering,
        out: &mut Vec<UpstreamResponse>,
    ) {
        let Some(ablation) = &mut self.ablation else {
            return;
        };
        let (literal_ack, literal_nak) = (ablation.literal_ack, ablation.literal_nak);
        if let (Ordering::Greater, Some(repeated)) = (relation, ablation.repeated.get_mut(index)) {
            *repeated = false;
        }
        let Some(minimum) = self.minimum_of_known() else {
            return;
        };
        let advanced = self.advance_to(minimum);
        if literal_nak && syndrome == Syndrome::SequenceNak {
            if advanced && !literal_ack {
                self.send(Rule::R3, minimum, Syndrome::Ack, out);
            }
            self.forward_literally(syndrome, out);
            self.group.upstream.nak();
            self.mark_nak_forwarded(index);
        } else if advanced {
            self.send(Rule::R3, minimum, Syndrome::Ack, out);
        } else if syndrome == Syndrome::Ack {
            self.forward_literally(syndrome, out);
            if relation == Ordering::Equal && psn == minimum {
                self.count_repeat(index, minimum, out);
            }
        }
        self.forward_at_minimum(index, psn, syndrome, minimum, advanced, out);
    }

    /// The literal rules forward each ACK and each NAK as the minimum, whether it is new or not (D19, D20).
    #[cold]
    pub(crate) fn forward_literally(&mut self, syndrome: Syndrome, out: &mut Vec<UpstreamResponse>) {
        let Some(ablation) = &self.ablation else {
            return;
        };
        let forwards = match syndrome {
            Syndrome::Ack => ablation.literal_ack,
            Syndrome::SequenceNak => ablation.literal_nak,
            Syndrome::RnrNak(_) | Syndrome::Fatal(_) => false,
        };
        if let (true, Some(minimum)) = (forwards, self.minimum_of_known()) {
            self.send(Rule::Literal, minimum, syndrome, out);
        }
    }

    /// Marks the pending NAK of a branch, if any, as forwarded upstream.
    pub(crate) fn mark_nak_forwarded(&mut self, index: usize) {
        let branch: &mut Branch = &mut self.branches[index];
        if branch.state == State::Nak {
            branch.state = branch.state.forwarded();
        }
    }

    /// A branch at the minimum has repeated itself.
    fn count_repeat(&mut self, index: usize, minimum: Psn, out: &mut Vec<UpstreamResponse>) {
        let Some(ablation) = &mut self.ablation else {
            return;
        };
        let at_minimum = || self.expected_psns.at(minimum);
        let is_due = match ablation.repeat {
            Repeat::OnBackwardData | Repeat::Never => return,
            Repeat::AllRepeated => {
                ablation.repeats = ablation.repeats.saturating_add(1);
                ablation.repeated[index] = true;
                at_minimum().all(|index| ablation.repeated[index])
            }
            Repeat::RepeatCount => {
                ablation.repeats = ablation.repeats.saturating_add(1);
                ablation.repeated[index] = true;
                usize::from(ablation.repeats) >= at_minimum().count()
            }
        };
        if is_due {
            ablation.repeats = 0;
            for index in self.expected_psns.at(minimum) {
                ablation.repeated[index] = false;
            }
            self.send(Rule::Repetition, minimum, Syndrome::Ack, out);
        }
    }
}
