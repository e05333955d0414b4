//! Poll Sequences (RFC 5880 sections 6.5 and 6.8.3): the peer is asked to confirm that it knows our intervals.
//!
//! ```text
//!          intervals change              Final
//!   Idle ───────────────────▶ Polling ──────────▶ Settling
//!    ▲                           ▲                 │   │
//!    │                           └─────────────────┘   │
//!    │                            intervals change     │
//!    └──── a packet that is no Final, a round trip ────┘
//!          after the last Poll
//! ```
//!
//! While Settling, a Final may still answer a Poll of the sequence that is over. Intervals that the operator changes
//! wait for Idle. Those that change because the session leaves Up do not: nothing depends on their confirmation.

/// Progress of a Poll Sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PollSequence {
    #[default]
    Idle,
    /// Packets carry the Poll bit.
    Polling,
    /// The Final was received, and no other packet since.
    Settling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollEvent {
    /// We advertise other intervals.
    Changed,
    /// A packet with the Final bit was received, after a Poll.
    Final,
    /// A packet without it was received, when all answers to Polls of the last sequence have come.
    Settled,
}

impl PollSequence {
    pub(crate) const fn next(self, event: PollEvent) -> Self {
        use PollSequence::{Idle, Polling, Settling};
        match (self, event) {
            (Idle | Polling | Settling, PollEvent::Changed) => Polling,
            (Polling | Settling, PollEvent::Final) => Settling,
            (Idle, PollEvent::Final | PollEvent::Settled) | (Settling, PollEvent::Settled) => Idle,
            (Polling, PollEvent::Settled) => Polling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_testkit::table::table;

    /// Every state under every event.
    #[test]
    fn the_full_table() {
        let states = [PollSequence::Idle, PollSequence::Polling, PollSequence::Settling];
        let mut rows = vec![[String::new()].into_iter().chain(states.map(|state| format!("{state:?}"))).collect()];
        for event in [PollEvent::Changed, PollEvent::Final, PollEvent::Settled] {
            let cells = states.map(|state| format!("{:?}", state.next(event)));
            rows.push([format!("{event:?}")].into_iter().chain(cells).collect());
        }
        insta::assert_snapshot!(table(&rows), @r"
                Idle    Polling  Settling
        Changed Polling Polling  Polling
        Final   Idle    Settling Settling
        Settled Idle    Polling  Idle
        ");
    }
}
