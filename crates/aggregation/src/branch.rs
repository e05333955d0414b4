//! The state of one branch of the tree.

use crate::response::Syndrome;
use srdma_wire::Instant;
use std::cmp::Ordering;

/// The state of a branch. Its expected PSN, which only ever advances (D16), is in
/// [`ExpectedPsns`](super::expected_psns::ExpectedPsns).
///
/// ```text
///   Unknown --- any response ---> the state of its syndrome: Clear, Nak, Rnr, Fatal
///
///   +-------+    NAK     +-----+  forwarded  +--------------+
///   | Clear |----------->| Nak |------------>| NakForwarded |   NAK ahead: from NakEarly, NakForwarded and Rnr to Nak
///   +-------+            +-----+             +--------------+   T_hold ends above the minimum: from Nak to NakEarly,
///                                                               which is as Nak, but no longer held (R5)
///     ^   |   RNR           | RNR                 | RNR
///     |   |                 v                     |
///     |   |              +-----+                  |
///     |   '------------->| Rnr |<-----------------'
///     |                  +-----+
///     '--- from Nak, NakEarly, NakForwarded, Rnr: ACK ahead, or the data at the expected PSN are retransmitted (R2)
///
///   from Clear, Nak, NakEarly, NakForwarded, Rnr --- fatal ---> Fatal
///                               Fatal --- forwarded ---> FatalForwarded                          final (D24, strict)
///                                                       '------ evict ---> Failed                final (D24, evict)
///   from any --- removed ---> Removed                                                            final (R7)
/// ```
///
/// At the expected PSN a stronger syndrome replaces a weaker one (fatal > RNR > NAK), and an ACK changes nothing (R1).
/// Ahead of it, a response replaces what was pending; but a failure stays (D24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// No response since this node restarted (D17, R6).
    Unknown,
    /// Everything before the expected PSN is acknowledged, nothing is pending.
    Clear,
    /// A NAK that was not forwarded: the expected PSN is not the minimum yet, or another branch is unknown.
    Nak,
    /// A NAK in whose place one was sent at the minimum, which was below the expected PSN, when T_hold ended (R5).
    NakEarly,
    /// A NAK that was forwarded, or covered by another one.
    NakForwarded,
    /// Not ready for the expected PSN, with the timer code.
    Rnr(u8),
    /// Failed, with the NAK code, which was not forwarded.
    Fatal(u8),
    /// Failed, with the NAK code, which was forwarded.
    FatalForwarded(u8),
    /// Failed, with the NAK code, which is not forwarded: the eviction of the receiver is requested (D24).
    Failed(u8),
    /// No longer part of the tree (R7).
    Removed,
}

/// One branch, besides its expected PSN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Branch {
    /// When the pending syndrome was received: the beginning of T_hold (R5).
    pub(super) since: Instant,
    /// The message sequence number of the last response (D18).
    pub(super) msn: u32,
    pub(super) state: State,
}

impl State {
    /// R1: after a response; `relation` compares its PSN with the expected PSN, which then moves to it.
    pub(super) fn received(self, relation: Ordering, syndrome: Syndrome) -> State {
        match (self, relation, syndrome) {
            (State::Removed, _, _) => State::Removed,
            (State::Unknown, _, syndrome) => pending(syndrome),
            (state, Ordering::Less, _) => state,
            (state @ (State::Fatal(_) | State::FatalForwarded(_) | State::Failed(_)), _, _) => state,
            (_, Ordering::Greater, syndrome) => pending(syndrome),
            (state, Ordering::Equal, Syndrome::Ack) => state,
            (
                State::Clear | State::Nak | State::NakEarly | State::NakForwarded | State::Rnr(_),
                Ordering::Equal,
                Syndrome::Fatal(code),
            ) => State::Fatal(code),
            (
                State::Clear | State::Nak | State::NakEarly | State::NakForwarded | State::Rnr(_),
                Ordering::Equal,
                Syndrome::RnrNak(timer),
            ) => State::Rnr(timer),
            (State::Clear, Ordering::Equal, Syndrome::SequenceNak) => State::Nak,
            (
                state @ (State::Nak | State::NakEarly | State::NakForwarded | State::Rnr(_)),
                Ordering::Equal,
                Syndrome::SequenceNak,
            ) => state,
        }
    }

    /// R2: the data at the expected PSN are retransmitted.
    pub(super) fn retransmitted(self) -> State {
        match self {
            State::Nak | State::NakEarly | State::NakForwarded | State::Rnr(_) => State::Clear,
            State::Unknown
            | State::Clear
            | State::Fatal(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// R3, R4, R5: the pending syndrome was forwarded, or is covered by another one.
    pub(super) fn forwarded(self) -> State {
        match self {
            State::Nak | State::NakEarly => State::NakForwarded,
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

    /// R5: T_hold has ended at an expected PSN above the minimum.
    pub(super) fn held_above_minimum(self) -> State {
        match self {
            State::Nak => State::NakEarly,
            State::Fatal(code) => State::FatalForwarded(code),
            State::Unknown
            | State::Clear
            | State::NakEarly
            | State::NakForwarded
            | State::Rnr(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// D24: whether a failure is forwarded, or the eviction of the receiver is requested.
    pub(super) fn with_policy(self, evicts: bool) -> State {
        match self {
            State::Fatal(code) | State::FatalForwarded(code) if evicts => State::Failed(code),
            State::Failed(code) if !evicts => State::Fatal(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakEarly
            | State::NakForwarded
            | State::Rnr(_)
            | State::Fatal(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => self,
        }
    }

    /// A new epoch in which nothing counts as forwarded.
    pub(super) fn not_forwarded(self) -> State {
        match self {
            State::NakEarly | State::NakForwarded => State::Nak,
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

    /// Whether the syndrome waits for the minimum, or for T_hold, to be forwarded (R5, D24).
    pub(super) fn is_held(self) -> bool {
        match self {
            State::Nak | State::Fatal(_) => true,
            State::Unknown
            | State::Clear
            | State::NakEarly
            | State::NakForwarded
            | State::Rnr(_)
            | State::FatalForwarded(_)
            | State::Failed(_)
            | State::Removed => false,
        }
    }

    /// Whether a retransmission of the data changes the state.
    pub(super) fn awaits_data(self) -> bool {
        self != self.retransmitted()
    }

    /// The NAK code of a failure that is forwarded.
    pub(super) fn fatal_code(self) -> Option<u8> {
        match self {
            State::Fatal(code) | State::FatalForwarded(code) => Some(code),
            State::Unknown
            | State::Clear
            | State::Nak
            | State::NakEarly
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
    use srdma_testkit::table::table;

    const STATES: [State; 10] = [
        State::Unknown,
        State::Clear,
        State::Nak,
        State::NakEarly,
        State::NakForwarded,
        State::Rnr(14),
        State::Fatal(2),
        State::FatalForwarded(2),
        State::Failed(2),
        State::Removed,
    ];

    /// Every state under every event: a response behind, at and ahead of the expected PSN, the data at it
    /// retransmitted, the syndrome forwarded (R1-R5, D21, D23, D24).
    #[test]
    fn the_full_table() {
        let syndromes = [Syndrome::Ack, Syndrome::SequenceNak, Syndrome::RnrNak(3), Syndrome::Fatal(1)];
        let relations = [(Ordering::Less, "behind"), (Ordering::Equal, "at next"), (Ordering::Greater, "ahead")];
        let cells = |next: &dyn Fn(State) -> State| STATES.map(|state| format!("{:?}", next(state)));
        let mut rows = vec![[&[String::new()][..], &cells(&|state| state)].concat()];
        let mut row = |name: String, next: &dyn Fn(State) -> State| rows.push([&[name][..], &cells(next)].concat());
        for syndrome in syndromes {
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
        row("forwarded".into(), &State::forwarded);
        row("T_hold above".into(), &State::held_above_minimum);
        row("up forgotten".into(), &State::not_forwarded);
        row("evict".into(), &|state: State| state.with_policy(true));
        row("strict".into(), &|state: State| state.with_policy(false));
        insta::assert_snapshot!(table(&rows), @r"
                      Unknown  Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        ACK behind    Clear    Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        ACK at next   Clear    Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        ACK ahead     Clear    Clear    Clear        Clear        Clear        Clear    Fatal(2)          FatalForwarded(2) Failed(2) Removed
        NAK behind    Nak      Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        NAK at next   Nak      Nak      Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        NAK ahead     Nak      Nak      Nak          Nak          Nak          Nak      Fatal(2)          FatalForwarded(2) Failed(2) Removed
        RNR behind    Rnr(3)   Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        RNR at next   Rnr(3)   Rnr(3)   Rnr(3)       Rnr(3)       Rnr(3)       Rnr(3)   Fatal(2)          FatalForwarded(2) Failed(2) Removed
        RNR ahead     Rnr(3)   Rnr(3)   Rnr(3)       Rnr(3)       Rnr(3)       Rnr(3)   Fatal(2)          FatalForwarded(2) Failed(2) Removed
        FATAL behind  Fatal(1) Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Failed(2) Removed
        FATAL at next Fatal(1) Fatal(1) Fatal(1)     Fatal(1)     Fatal(1)     Fatal(1) Fatal(2)          FatalForwarded(2) Failed(2) Removed
        FATAL ahead   Fatal(1) Fatal(1) Fatal(1)     Fatal(1)     Fatal(1)     Fatal(1) Fatal(2)          FatalForwarded(2) Failed(2) Removed
        data at next  Unknown  Clear    Clear        Clear        Clear        Clear    Fatal(2)          FatalForwarded(2) Failed(2) Removed
        forwarded     Unknown  Clear    NakForwarded NakForwarded NakForwarded Rnr(14)  FatalForwarded(2) FatalForwarded(2) Failed(2) Removed
        T_hold above  Unknown  Clear    NakEarly     NakEarly     NakForwarded Rnr(14)  FatalForwarded(2) FatalForwarded(2) Failed(2) Removed
        up forgotten  Unknown  Clear    Nak          Nak          Nak          Rnr(14)  Fatal(2)          Fatal(2)          Failed(2) Removed
        evict         Unknown  Clear    Nak          NakEarly     NakForwarded Rnr(14)  Failed(2)         Failed(2)         Failed(2) Removed
        strict        Unknown  Clear    Nak          NakEarly     NakForwarded Rnr(14)  Fatal(2)          FatalForwarded(2) Fatal(2)  Removed
        ");
    }
}
