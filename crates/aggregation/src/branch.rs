//! What one branch of the tree has said.

use crate::response::Answer;
use srdma_wire::Instant;
use std::cmp::Ordering;

/// The state of a branch. Its point `next`, which only ever advances (D16), stands in
/// [`Points`](super::points::Points).
///
/// ```text
///   Unknown --- any response ---> the state of its kind: Clear, Nak, Rnr, Fatal
///
///   +-------+    NAK     +-----+    told     +---------+
///   | Clear |----------->| Nak |------------>| NakTold |        NAK ahead: from NakTold and Rnr to Nak
///   +-------+            +-----+             +---------+
///     ^   |   RNR           | RNR                 | RNR
///     |   |                 v                     |
///     |   |              +-----+                  |
///     |   '------------->| Rnr |<-----------------'
///     |                  +-----+
///     '--- from Nak, NakTold, Rnr: ACK ahead, or the data at `next` go down (R2)
///
///   from Clear, Nak, NakTold, Rnr --- fatal ---> Fatal --- told ---> FatalTold       for good (D24, strict)
///                                                  '------ evict ---> Failed          for good (D24, evict)
///   from any --- removed ---> Removed                                                for good (R7)
/// ```
///
/// At the same point a stronger kind replaces a weaker one (fatal > RNR > NAK) and an ACK leaves what stands there
/// (R1). Ahead of it, a response replaces what stood behind; but what is fatal stays so (D24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// Not heard since this node restarted (D17, R6).
    Unknown,
    /// Everything before `next` is confirmed, nothing is pending.
    Clear,
    /// A NAK at `next` that nobody upstream has been told of: `next` is not the minimum yet, or another branch is
    /// unknown.
    Nak,
    /// A NAK at `next` that upstream knows of.
    NakTold,
    /// Not ready for `next`, with the timer code.
    Rnr(u8),
    /// Failed at `next`, with the NAK code; upstream has not been told.
    Fatal(u8),
    /// Failed at `next`, and upstream has been told.
    FatalTold(u8),
    /// Failed at `next`, with the NAK code; upstream is not told, for its eviction is asked for (D24).
    Failed(u8),
    /// No longer part of the tree (R7).
    Removed,
}

/// One branch, besides its point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Branch {
    /// When what is pending was heard: the beginning of T_hold (R5).
    pub(super) since: Instant,
    /// The message sequence number that came with the point (D18).
    pub(super) msn: u32,
    pub(super) state: State,
    /// Ablations of R2: it has repeated itself since the minimum went upstream.
    pub(super) repeated: bool,
}

impl State {
    /// R1: after a response whose point is `relation` to `next`, which then moves to it.
    pub(super) fn heard(self, relation: Ordering, answer: Answer) -> State {
        match (self, relation, answer) {
            (State::Removed, _, _) => State::Removed,
            (State::Unknown, _, answer) => pending(answer),
            (state, Ordering::Less, _) => state,
            (state @ (State::Fatal(_) | State::FatalTold(_) | State::Failed(_)), _, _) => state,
            (_, Ordering::Greater, answer) => pending(answer),
            (state, Ordering::Equal, Answer::Ack) => state,
            (State::Clear | State::Nak | State::NakTold | State::Rnr(_), Ordering::Equal, Answer::Fatal(code)) => {
                State::Fatal(code)
            }
            (State::Clear | State::Nak | State::NakTold | State::Rnr(_), Ordering::Equal, Answer::RnrNak(timer)) => {
                State::Rnr(timer)
            }
            (State::Clear, Ordering::Equal, Answer::SequenceNak) => State::Nak,
            (state @ (State::Nak | State::NakTold | State::Rnr(_)), Ordering::Equal, Answer::SequenceNak) => state,
        }
    }

    /// R2: the data at `next` go down once more, so what the branch missed or was not ready for is on its way.
    pub(super) fn served(self) -> State {
        match self {
            State::Nak | State::NakTold | State::Rnr(_) => State::Clear,
            State::Unknown
            | State::Clear
            | State::Fatal(_)
            | State::FatalTold(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// R3, R4, R5: upstream has been told what is pending here, or something that makes up for it.
    pub(super) fn told(self) -> State {
        match self {
            State::Nak => State::NakTold,
            State::Fatal(code) => State::FatalTold(code),
            State::Unknown
            | State::Clear
            | State::NakTold
            | State::Rnr(_)
            | State::FatalTold(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// D24: whether a failure is said upstream, or the receiver's eviction is asked for.
    pub(super) fn under(self, evicts: bool) -> State {
        match self {
            State::Fatal(code) | State::FatalTold(code) if evicts => State::Failed(code),
            State::Failed(code) if !evicts => State::Fatal(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakTold
            | State::Rnr(_)
            | State::Fatal(_)
            | State::FatalTold(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// A new epoch: what upstream was told counts for nothing.
    pub(super) fn untold(self) -> State {
        match self {
            State::NakTold => State::Nak,
            State::FatalTold(code) => State::Fatal(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::Rnr(_)
            | State::Fatal(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// Whether something waits for the minimum, or for T_hold, to go upstream (R5, D24).
    pub(super) fn is_held(self) -> bool {
        match self {
            State::Nak | State::Fatal(_) => true,
            State::Unknown
            | State::Clear
            | State::NakTold
            | State::Rnr(_)
            | State::FatalTold(_)
            | State::Failed(_)
            | State::Removed => false,
        }
    }

    /// Whether the data at `next` going down change the state.
    pub(super) fn is_served_by_data(self) -> bool {
        self != self.served()
    }

    /// The NAK code of a branch whose failure is said upstream.
    pub(super) fn fatal_code(self) -> Option<u8> {
        match self {
            State::Fatal(code) | State::FatalTold(code) => Some(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakTold
            | State::Rnr(_)
            | State::Failed(_)
            | State::Removed => None,
        }
    }
}

/// The state that a response makes of a branch on which nothing is pending.
fn pending(answer: Answer) -> State {
    match answer {
        Answer::Ack => State::Clear,
        Answer::SequenceNak => State::Nak,
        Answer::RnrNak(timer) => State::Rnr(timer),
        Answer::Fatal(code) => State::Fatal(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::table;

    const STATES: [State; 9] = [
        State::Unknown,
        State::Clear,
        State::Nak,
        State::NakTold,
        State::Rnr(14),
        State::Fatal(2),
        State::FatalTold(2),
        State::Failed(2),
        State::Removed,
    ];

    /// Every state under every event: a response behind, at and ahead of `next`, the data at `next` going down,
    /// upstream being told (R1-R5, D21, D23, D24).
    #[test]
    fn the_full_table() {
        let answers = [Answer::Ack, Answer::SequenceNak, Answer::RnrNak(3), Answer::Fatal(1)];
        let relations = [(Ordering::Less, "behind"), (Ordering::Equal, "at next"), (Ordering::Greater, "ahead")];
        let cells = |next: &dyn Fn(State) -> State| STATES.map(|state| format!("{:?}", next(state)));
        let mut rows = vec![[&[String::new()][..], &cells(&|state| state)].concat()];
        let mut row = |name: String, next: &dyn Fn(State) -> State| rows.push([&[name][..], &cells(next)].concat());
        for answer in answers {
            let kind = match answer {
                Answer::Ack => "ACK",
                Answer::SequenceNak => "NAK",
                Answer::RnrNak(_) => "RNR",
                Answer::Fatal(_) => "FATAL",
            };
            for (relation, place) in relations {
                row(format!("{kind} {place}"), &|state: State| state.heard(relation, answer));
            }
        }
        row("data at next".into(), &State::served);
        row("told upstream".into(), &State::told);
        row("up forgotten".into(), &State::untold);
        row("evict".into(), &|state: State| state.under(true));
        row("strict".into(), &|state: State| state.under(false));
        insta::assert_snapshot!(table(&rows), @r"
                      Unknown  Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        ACK behind    Clear    Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        ACK at next   Clear    Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        ACK ahead     Clear    Clear    Clear    Clear    Clear    Fatal(2)     FatalTold(2) Failed(2) Removed
        NAK behind    Nak      Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        NAK at next   Nak      Nak      Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        NAK ahead     Nak      Nak      Nak      Nak      Nak      Fatal(2)     FatalTold(2) Failed(2) Removed
        RNR behind    Rnr(3)   Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        RNR at next   Rnr(3)   Rnr(3)   Rnr(3)   Rnr(3)   Rnr(3)   Fatal(2)     FatalTold(2) Failed(2) Removed
        RNR ahead     Rnr(3)   Rnr(3)   Rnr(3)   Rnr(3)   Rnr(3)   Fatal(2)     FatalTold(2) Failed(2) Removed
        FATAL behind  Fatal(1) Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Failed(2) Removed
        FATAL at next Fatal(1) Fatal(1) Fatal(1) Fatal(1) Fatal(1) Fatal(2)     FatalTold(2) Failed(2) Removed
        FATAL ahead   Fatal(1) Fatal(1) Fatal(1) Fatal(1) Fatal(1) Fatal(2)     FatalTold(2) Failed(2) Removed
        data at next  Unknown  Clear    Clear    Clear    Clear    Fatal(2)     FatalTold(2) Failed(2) Removed
        told upstream Unknown  Clear    NakTold  NakTold  Rnr(14)  FatalTold(2) FatalTold(2) Failed(2) Removed
        up forgotten  Unknown  Clear    Nak      Nak      Rnr(14)  Fatal(2)     Fatal(2)     Failed(2) Removed
        evict         Unknown  Clear    Nak      NakTold  Rnr(14)  Failed(2)    Failed(2)    Failed(2) Removed
        strict        Unknown  Clear    Nak      NakTold  Rnr(14)  Fatal(2)     FatalTold(2) Fatal(2)  Removed
        ");
    }
}
