//! Responses forwarded upstream at the minimum PSN: the acknowledged minimum, and the NAKs sent at it.
//!
//! ```text
//!             minimum advances: ACK             NAK pending: NAK
//!   Nothing -------------------------> Ack ---------------------------> Nak
//!                                       |                                |
//!                                       | RNR pending: RNR NAK           | RNR pending: RNR NAK
//!                                       v                                v
//!                                    Rnr(t) -----------------------> RnrAndNak(t)
//!                                               NAK pending: NAK
//!
//!   from any but Nothing --- minimum advances (R3), or the data at it are retransmitted (R2) ---> Ack
//!   Rnr(t), RnrAndNak(t) --- RNR pending that waits longer than t: RNR NAK (D23) ---> the same with its timer
//!   from any ------------ another node upstream, or a new subtree (R7) ---------------------> Nothing
//! ```
//!
//! While a branch is unknown, no event of this machine sends anything (R6), and its state stays. A fatal NAK is a state
//! of its branch, for it does not end with the minimum.

use srdma_wire::Psn;
use srdma_wire::transport::rnr_timer;

/// Responses that were sent upstream at a minimum PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Forwarded {
    /// No minimum was acknowledged.
    Nothing,
    /// The ACK of what is before the minimum.
    Ack,
    /// A NAK, and the data at the minimum were not retransmitted since (R4).
    Nak,
    /// An RNR NAK, with the timer code of the longest wait.
    Rnr(u8),
    /// Both.
    RnrAndNak(u8),
}

impl Forwarded {
    /// R3: the minimum advances.
    pub(crate) fn advanced(self) -> Forwarded {
        match self {
            Forwarded::Nothing | Forwarded::Ack | Forwarded::Nak | Forwarded::Rnr(_) | Forwarded::RnrAndNak(_) => {
                Forwarded::Ack
            }
        }
    }

    /// R2: the data at the minimum are retransmitted.
    pub(crate) fn retransmitted(self) -> Forwarded {
        match self {
            Forwarded::Nothing => Forwarded::Nothing,
            Forwarded::Ack | Forwarded::Nak | Forwarded::Rnr(_) | Forwarded::RnrAndNak(_) => Forwarded::Ack,
        }
    }

    /// R3, R4, R5: a NAK is pending at the minimum. Returns whether it is sent: the first of many.
    pub(crate) fn nak(self) -> (Forwarded, bool) {
        match self {
            Forwarded::Nothing | Forwarded::Ack => (Forwarded::Nak, true),
            Forwarded::Rnr(timer) => (Forwarded::RnrAndNak(timer), true),
            Forwarded::Nak | Forwarded::RnrAndNak(_) => (self, false),
        }
    }

    /// R3, R4: an RNR NAK is pending at the minimum. Returns whether it is sent: if its wait is longer than before, or
    /// each receiver that is not ready would cost the source one of its `rnr_retry` (D23).
    pub(crate) fn rnr(self, timer: u8) -> (Forwarded, bool) {
        match self {
            Forwarded::Nothing | Forwarded::Ack => (Forwarded::Rnr(timer), true),
            Forwarded::Nak => (Forwarded::RnrAndNak(timer), true),
            Forwarded::Rnr(sent) if is_longer(timer, sent) => (Forwarded::Rnr(timer), true),
            Forwarded::RnrAndNak(sent) if is_longer(timer, sent) => (Forwarded::RnrAndNak(timer), true),
            Forwarded::Rnr(_) | Forwarded::RnrAndNak(_) => (self, false),
        }
    }

    /// Whether retransmitted data change the state.
    #[inline]
    pub(crate) fn awaits_data(self) -> bool {
        match self {
            Forwarded::Nak | Forwarded::Rnr(_) | Forwarded::RnrAndNak(_) => true,
            Forwarded::Nothing | Forwarded::Ack => false,
        }
    }

    /// Whether a NAK was sent.
    pub(crate) fn has_nak(self) -> bool {
        match self {
            Forwarded::Nak | Forwarded::RnrAndNak(_) => true,
            Forwarded::Nothing | Forwarded::Ack | Forwarded::Rnr(_) => false,
        }
    }
}

/// Whether the wait of one timer code is longer than that of another; code 0 is the longest (D23).
pub(crate) fn is_longer(timer: u8, than: u8) -> bool {
    rnr_timer(timer) > rnr_timer(than)
}

/// The state with its minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Upstream {
    /// Zero in [`Forwarded::Nothing`].
    psn: Psn,
    forwarded: Forwarded,
}

impl Upstream {
    pub(crate) const NOTHING: Upstream = Upstream { psn: Psn::new(0), forwarded: Forwarded::Nothing };

    /// The start: upstream has the same minimum, if there is one.
    pub(crate) fn at(minimum: Option<Psn>) -> Self {
        minimum.map_or(Self::NOTHING, |psn| Upstream { psn, forwarded: Forwarded::Ack })
    }

    /// The minimum that was acknowledged.
    pub(crate) fn minimum(self) -> Option<Psn> {
        (self.forwarded != Forwarded::Nothing).then_some(self.psn)
    }

    #[inline]
    pub(crate) fn forwarded(self) -> Forwarded {
        self.forwarded
    }

    /// Returns whether the minimum advances, which is then acknowledged.
    #[inline]
    pub(crate) fn advance_to(&mut self, minimum: Psn) -> bool {
        let advances = self.minimum() != Some(minimum);
        if advances {
            *self = Upstream { psn: minimum, forwarded: self.forwarded.advanced() };
        }
        advances
    }

    /// See [`Forwarded::retransmitted`].
    pub(crate) fn retransmitted(&mut self) {
        self.forwarded = self.forwarded.retransmitted();
    }

    /// See [`Forwarded::nak`].
    pub(crate) fn nak(&mut self) -> bool {
        let (forwarded, is_sent) = self.forwarded.nak();
        self.forwarded = forwarded;
        is_sent
    }

    /// See [`Forwarded::rnr`].
    pub(crate) fn rnr(&mut self, timer: u8) -> bool {
        let (forwarded, is_sent) = self.forwarded.rnr(timer);
        self.forwarded = forwarded;
        is_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_testkit::table::table;

    /// Every state under every event, with `!` where something is sent (R2-R5, D23). Timer code 14 waits for 1.28 ms,
    /// code 20 for longer, code 3 for less.
    #[test]
    fn the_full_table() {
        let states = [Forwarded::Nothing, Forwarded::Ack, Forwarded::Nak, Forwarded::Rnr(14), Forwarded::RnrAndNak(14)];
        let cell = |(state, is_sent): (Forwarded, bool)| format!("{state:?}{}", if is_sent { "!" } else { "" });
        let mut rows = vec![[vec![String::new()], states.map(|state| format!("{state:?}")).to_vec()].concat()];
        let mut row = |name: &str, next: &dyn Fn(Forwarded) -> (Forwarded, bool)| {
            rows.push([vec![name.to_owned()], states.map(|state| cell(next(state))).to_vec()].concat());
        };
        row("minimum advances", &|state| (state.advanced(), true));
        row("data retransmitted", &|state| (state.retransmitted(), false));
        row("NAK pending", &Forwarded::nak);
        row("RNR 3 pending", &|state| state.rnr(3));
        row("RNR 14 pending", &|state| state.rnr(14));
        row("RNR 20 pending", &|state| state.rnr(20));
        row("RNR 0 pending", &|state| state.rnr(0));
        insta::assert_snapshot!(table(&rows), @r"
                           Nothing  Ack      Nak            Rnr(14)        RnrAndNak(14)
        minimum advances   Ack!     Ack!     Ack!           Ack!           Ack!
        data retransmitted Nothing  Ack      Ack            Ack            Ack
        NAK pending        Nak!     Nak!     Nak            RnrAndNak(14)! RnrAndNak(14)
        RNR 3 pending      Rnr(3)!  Rnr(3)!  RnrAndNak(3)!  Rnr(14)        RnrAndNak(14)
        RNR 14 pending     Rnr(14)! Rnr(14)! RnrAndNak(14)! Rnr(14)        RnrAndNak(14)
        RNR 20 pending     Rnr(20)! Rnr(20)! RnrAndNak(20)! Rnr(20)!       RnrAndNak(20)!
        RNR 0 pending      Rnr(0)!  Rnr(0)!  RnrAndNak(0)!  Rnr(0)!        RnrAndNak(0)!
        ");
    }
}
