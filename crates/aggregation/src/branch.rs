//! What one branch of the tree has said.

use crate::response::Syndrome;
use srdma_wire::Instant;
use std::cmp::Ordering;

/// The state of a branch. Its point `next`, which only ever advances (D16), stands in
/// [`ExpectedPsns`](super::expected_psns::ExpectedPsns).
///
/// ```text
///   Unknown --- any response ---> the state of its kind: Clear, Nak, Rnr, Fatal
///
///   +-------+    NAK     +-----+    told     +---------+
///   | Clear |----------->| Nak |------------>| NakForwarded |        NAK ahead: from NakForwarded and Rnr to Nak
///   +-------+            +-----+             +---------+
///     ^   |   RNR           | RNR                 | RNR
///     |   |                 v                     |
///     |   |              +-----+                  |
///     |   '------------->| Rnr |<-----------------'
///     |                  +-----+
///     '--- from Nak, NakForwarded, Rnr: ACK ahead, or the data at `next` go down (R2)
///
///   from Clear, Nak, NakForwarded, Rnr --- fatal ---> Fatal --- told ---> FatalForwarded       for good (D24, strict)
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
    NakForwarded,
    /// Not ready for `next`, with the timer code.
    Rnr(u8),
    /// Failed at `next`, with the NAK code; upstream has not been told.
    Fatal(u8),
    /// Failed at `next`, and upstream has been told.
    FatalForwarded(u8),
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
}

impl State {
    /// R1: after a response whose point is `relation` to `next`, which then moves to it.
    pub(super) fn received(self, relation: Ordering, syndrome: Syndrome) -> State {
        match (self, relation, syndrome) {
            (State::Removed, _, _) => State::Removed,
            (State::Unknown, _, syndrome) => pending(syndrome),
            (state, Ordering::Less, _) => state,
            (state @ (State::Fatal(_) | State::FatalForwarded(_) | State::Failed(_)), _, _) => state,
            (_, Ordering::Greater, syndrome) => pending(syndrome),
            (state, Ordering::Equal, Syndrome::Ack) => state,
            (
                State::Clear | State::Nak | State::NakForwarded | State::Rnr(_),
                Ordering::Equal,
                Syndrome::Fatal(code),
            ) => State::Fatal(code),
            (
                State::Clear | State::Nak | State::NakForwarded | State::Rnr(_),
                Ordering::Equal,
                Syndrome::RnrNak(timer),
            ) => State::Rnr(timer),
            (State::Clear, Ordering::Equal, Syndrome::SequenceNak) => State::Nak,
            (state @ (State::Nak | State::NakForwarded | State::Rnr(_)), Ordering::Equal, Syndrome::SequenceNak) => {
                state
            }
        }
    }

    /// R2: the data at `next` go down once more, so what the branch missed or was not ready for is on its way.
    pub(super) fn retransmitted(self) -> State {
        match self {
            State::Nak | State::NakForwarded | State::Rnr(_) => State::Clear,
            State::Unknown
            | State::Clear
            | State::Fatal(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// R3, R4, R5: upstream has been told what is pending here, or something that makes up for it.
    pub(super) fn forwarded(self) -> State {
        match self {
            State::Nak => State::NakForwarded,
            State::Fatal(code) => State::FatalForwarded(code),
            State::Unknown
            | State::Clear
            | State::NakForwarded
            | State::Rnr(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// D24: whether a failure is said upstream, or the receiver's eviction is asked for.
    pub(super) fn with_policy(self, evicts: bool) -> State {
        match self {
            State::Fatal(code) | State::FatalForwarded(code) if evicts => State::Failed(code),
            State::Failed(code) if !evicts => State::Fatal(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakForwarded
            | State::Rnr(_)
            | State::Fatal(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// A new epoch: what upstream was told counts for nothing.
    pub(super) fn not_forwarded(self) -> State {
        match self {
            State::NakForwarded => State::Nak,
            State::FatalForwarded(code) => State::Fatal(code),
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
            | State::NakForwarded
            | State::Rnr(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => false,
        }
    }

    /// Whether the data at `next` going down change the state.
    pub(super) fn awaits_data(self) -> bool {
        self != self.retransmitted()
    }

    /// The NAK code of a branch whose failure is said upstream.
    pub(super) fn fatal_code(self) -> Option<u8> {
        match self {
            State::Fatal(code) | State::FatalForwarded(code) => Some(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakForwarded
            | State::Rnr(_)
            | State::Failed(_)
            | State::Removed => None,
        }
    }
}

/// The state that a response makes of a branch on which nothing is pending.
fn pending(syndrome: Syndrome) -> State {
    match syndrome {
        Syndrome::Ack => State::Clear,
        Syndrome::SequenceNak => State::Nak,
        Syndrome::RnrNak(timer) => State::Rnr(timer),
        Syndrome::Fatal(code) => State::Fatal(code),
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
        State::NakForwarded,
        State::Rnr(14),
        State::Fatal(2),
        State::FatalForwarded(2),
        State::Failed(2),
        State::Removed,
    ];

    /// Every state under every event: a response behind, at and ahead of `next`, the data at `next` going down,
    /// upstream being told (R1-R5, D21, D23, D24).
    #[test]
    fn the_full_table() {
        let answers = [Syndrome::Ack, Syndrome::SequenceNak, Syndrome::RnrNak(3), Syndrome::Fatal(1)];
        let relations = [(Ordering::Less, "behind"), (Ordering::Equal, "at next"), (Ordering::Greater, "ahead")];
        let cells = |next: &dyn Fn(State) -> State| STATES.map(|state| format!("{:?}", next(state)));
        let mut rows = vec![[&[String::new()][..], &cells(&|state| state)].concat()];
        let mut row = |name: String, next: &dyn Fn(State) -> State| rows.push([&[name][..], &cells(next)].concat());
        for syndrome in answers {
            let kind = match syndrome {
                Syndrome::Ack => "ACK",
                Syndrome::SequenceNak => "NAK",
                Syndrome::RnrNak(_) => "RNR",
                Syndrome::Fatal(_) => "FATAL",
            };
            for (relation, place) in relations {
                row(format!("{kind} {place}"), &|state: State| state.received(relation, syndrome));
            }
        }
        row("data at next".into(), &State::retransmitted);
        row("told upstream".into(), &State::forwarded);
        row("up forgotten".into(), &State::not_forwarded);
        row("evict".into(), &|state: State| state.with_policy(true));
        row("strict".into(), &|state: State| state.with_policy(false));
        insta::assert_snapshot!(table(&rows), @r"
                      Unknown  Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        ACK behind    Clear    Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        ACK at next   Clear    Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        ACK ahead     Clear    Clear    Clear        Clear        Clear    Fatal(2)          FatalForwarded(2) Failed(2) Removed
        NAK behind    Nak      Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        NAK at next   Nak      Nak      Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        NAK ahead     Nak      Nak      Nak          Nak          Nak      Fatal(2)          FatalForwarded(2) Failed(2) Removed
        RNR behind    Rnr(3)   Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        RNR at next   Rnr(3)   Rnr(3)   Rnr(3)       Rnr(3)       Rnr(3)   Fatal(2)          FatalForwarded(2) Failed(2) Removed
        RNR ahead     Rnr(3)   Rnr(3)   Rnr(3)       Rnr(3)       Rnr(3)   Fatal(2)          FatalForwarded(2) Failed(2) Removed
        FATAL behind  Fatal(1) Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        FATAL at next Fatal(1) Fatal(1) Fatal(1)     Fatal(1)     Fatal(1) Fatal(2)          FatalForwarded(2) Failed(2) Removed
        FATAL ahead   Fatal(1) Fatal(1) Fatal(1)     Fatal(1)     Fatal(1) Fatal(2)          FatalForwarded(2) Failed(2) Removed
        data at next  Unknown  Clear    Clear        Clear        Clear    Fatal(2)          FatalForwarded(2) Failed(2) Removed
        told upstream Unknown  Clear    NakForwarded NakForwarded Rnr(14)  FatalForwarded(2) FatalForwarded(2) Failed(2) Removed
        up forgotten  Unknown  Clear    Nak          Nak          Rnr(14)  Fatal(2)          Fatal(2)          Failed(2) Removed
        evict         Unknown  Clear    Nak          NakForwarded Rnr(14)  Failed(2)         Failed(2)         Failed(2) Removed
        strict        Unknown  Clear    Nak          NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Fatal(2)  Removed
        ");
    }
}
