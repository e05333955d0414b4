//! What a source has been told, as a value: whether it may send, and what it reports (D30, D31).

use srdma_api::{SourceOrder, SourceReport};
use srdma_host::{Passage, SourceState};
use srdma_wire::Psn;

/// A source between its controller and its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Baton {
    initial_psn: Psn,
    /// The newest round that it has seen.
    round: Option<u32>,
    is_released: bool,
    is_closed: bool,
    state: SourceState,
}

impl Baton {
    /// Nothing was told yet, and nothing has begun.
    pub(super) fn new(initial_psn: Psn) -> Self {
        let state = SourceState { is_quiet: true, ..SourceState::default() };
        Baton { initial_psn, round: None, is_released: false, is_closed: false, state }
    }

    /// Takes an order. One of an earlier round than the newest means nothing, nor does the pause of a round that it was
    /// released from.
    pub(super) fn take(&mut self, order: SourceOrder) {
        match order {
            SourceOrder::Wait => {}
            SourceOrder::Ready { round } if self.round.is_none_or(|newest| newest <= round) => {
                self.round = Some(round);
                self.is_released = true;
            }
            SourceOrder::Pause { round } if self.round.is_none_or(|newest| newest < round) => {
                self.round = Some(round);
                self.is_released = false;
            }
            SourceOrder::Ready { .. } | SourceOrder::Pause { .. } => {}
            SourceOrder::Closed => self.is_closed = true,
        }
    }

    /// Hears how far the stream is, and says what it may.
    pub(super) fn pass(&mut self, state: SourceState) -> Passage {
        self.state = state;
        self.passage()
    }

    /// What the stream may.
    pub(super) fn passage(&self) -> Passage {
        match (self.is_closed, self.is_released) {
            (true, _) => Passage::Closed,
            (false, true) => Passage::Open,
            (false, false) => Passage::Shut,
        }
    }

    /// What is reported. Waiting for another order makes sense once there is nothing else to report.
    pub(super) fn report(&self, wait_ms: u32) -> SourceReport {
        let paused = self.is_paused();
        SourceReport {
            round: self.round,
            paused,
            quiet_at_psn: (paused && self.state.is_quiet).then(|| self.psn_behind(self.state.begun_packets)),
            completed_messages: (self.state.completed_messages & 0xFF_FFFF) as u32,
            settled_psn: (self.state.acknowledged_packets > 0)
                .then(|| self.psn_behind(self.state.acknowledged_packets)),
            ended: false,
            wait_ms,
        }
    }

    /// What is reported last: nothing more is sent, however far the stream has come.
    pub(super) fn last_report(&self) -> SourceReport {
        SourceReport { ended: true, ..self.report(0) }
    }

    /// Whether it obeys a pause and has yet to become quiet.
    pub(super) fn is_calming(&self) -> bool {
        self.is_paused() && !self.state.is_quiet
    }

    fn is_paused(&self) -> bool {
        self.round.is_some() && !self.is_released
    }

    fn psn_behind(&self, packets: u64) -> u32 {
        ((u64::from(self.initial_psn.get()) + packets) & 0xFF_FFFF) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(begun_packets: u64, acknowledged_packets: u64, completed_messages: u64) -> SourceState {
        let is_quiet = begun_packets == acknowledged_packets;
        SourceState { begun_packets, acknowledged_packets, completed_messages, is_quiet }
    }

    /// D30: a pause is obeyed when what has begun is over; PSN and messages count modulo 2^24.
    #[test]
    fn a_pause_is_reported_when_the_stream_is_quiet() {
        let mut baton = Baton::new(Psn::new(0xFF_FFFE));
        assert_eq!((baton.passage(), baton.report(5).quiet_at_psn), (Passage::Shut, None));
        baton.take(SourceOrder::Ready { round: 0 });
        assert_eq!(baton.pass(state(8, 4, 1)), Passage::Open);
        let report = baton.report(5);
        assert_eq!((report.round, report.paused, report.settled_psn), (Some(0), false, Some(2)));
        baton.take(SourceOrder::Pause { round: 1 });
        assert_eq!((baton.pass(state(8, 4, 1)), baton.is_calming()), (Passage::Shut, true));
        assert_eq!((baton.report(5).paused, baton.report(5).quiet_at_psn), (true, None));
        baton.pass(state(8, 8, 0x100_0002));
        let report = baton.report(5);
        assert_eq!((report.quiet_at_psn, report.completed_messages, baton.is_calming()), (Some(6), 2, false));
        baton.take(SourceOrder::Ready { round: 1 });
        assert_eq!((baton.passage(), baton.report(5).quiet_at_psn), (Passage::Open, None));
    }

    /// What was overtaken means nothing; a source that has not begun is quiet at its first PSN.
    #[test]
    fn only_the_newest_round_counts() {
        let mut baton = Baton::new(Psn::new(7));
        baton.take(SourceOrder::Pause { round: 2 });
        assert_eq!(baton.report(0).quiet_at_psn, Some(7));
        baton.take(SourceOrder::Ready { round: 1 });
        assert_eq!(baton.passage(), Passage::Shut);
        baton.take(SourceOrder::Ready { round: 2 });
        baton.take(SourceOrder::Pause { round: 2 });
        baton.take(SourceOrder::Wait);
        assert_eq!(baton.passage(), Passage::Open, "it was released from that round");
        baton.take(SourceOrder::Closed);
        baton.take(SourceOrder::Ready { round: 9 });
        assert_eq!(baton.passage(), Passage::Closed);
    }
}
