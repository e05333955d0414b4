//! The state machine of a group's source: orders of the controller and progress of the stream go in, the right to send
//! and reports come out (D30, D31).
//!
//! ```text
//!   Paused ── Ready ──→ Sending ── Pause ──→ Draining ── all messages complete ──→ Paused
//!   any state ── Closed ──→ Ended
//! ```

use srdma_api::{SourceOrder, SourceReport};
use srdma_host::{SessionState, StreamProgress};
use srdma_wire::Psn;

/// The session of a source with its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceSession {
    initial_psn: Psn,
    /// The newest round of all orders.
    round: Option<u32>,
    may_send: bool,
    is_closed: bool,
    progress: StreamProgress,
}

impl SourceSession {
    /// A session without orders, of a stream that has not begun.
    pub(crate) fn new(initial_psn: Psn) -> Self {
        let progress = StreamProgress { is_drained: true, ..StreamProgress::default() };
        SourceSession { initial_psn, round: None, may_send: false, is_closed: false, progress }
    }

    /// Applies an order. Orders of earlier rounds than the newest are ignored, and so is a pause of the newest.
    pub(crate) fn apply(&mut self, order: SourceOrder) {
        match order {
            SourceOrder::Wait => {}
            SourceOrder::Send { round } if self.round.is_none_or(|newest| newest <= round) => {
                self.round = Some(round);
                self.may_send = true;
            }
            SourceOrder::Pause { round } if self.round.is_none_or(|newest| newest < round) => {
                self.round = Some(round);
                self.may_send = false;
            }
            SourceOrder::Send { .. } | SourceOrder::Pause { .. } => {}
            SourceOrder::End => self.is_closed = true,
        }
    }

    /// Takes the stream's progress, and returns the state.
    pub(crate) fn update(&mut self, progress: StreamProgress) -> SessionState {
        self.progress = progress;
        self.state()
    }

    pub(crate) fn state(&self) -> SessionState {
        match (self.is_closed, self.may_send, self.progress.is_drained) {
            (true, _, _) => SessionState::Ended,
            (false, true, _) => SessionState::Sending,
            (false, false, false) => SessionState::Draining,
            (false, false, true) => SessionState::Paused,
        }
    }

    /// The report, which the controller may answer after `wait_ms`.
    pub(crate) fn report(&self, wait_ms: u32) -> SourceReport {
        let pausing = self.is_paused();
        SourceReport {
            round: self.round,
            pausing,
            paused_at_psn: (pausing && self.progress.is_drained).then(|| self.psn_behind(self.progress.begun_packets)),
            completed_messages: (self.progress.completed_messages & 0xFF_FFFF) as u32,
            acknowledged_psn: (self.progress.acknowledged_packets > 0)
                .then(|| self.psn_behind(self.progress.acknowledged_packets)),
            ended: false,
            wait_ms,
        }
    }

    /// The report that ends the source, wherever the stream is.
    pub(crate) fn last_report(&self) -> SourceReport {
        SourceReport { ended: true, ..self.report(0) }
    }

    /// Whether a pause was ordered and messages that have begun are still outstanding.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_paused() && !self.progress.is_drained
    }

    fn is_paused(&self) -> bool {
        self.round.is_some() && !self.may_send
    }

    fn psn_behind(&self, packets: u64) -> u32 {
        ((u64::from(self.initial_psn.get()) + packets) & 0xFF_FFFF) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(begun_packets: u64, acknowledged_packets: u64, completed_messages: u64) -> StreamProgress {
        let is_drained = begun_packets == acknowledged_packets;
        StreamProgress { begun_packets, acknowledged_packets, completed_messages, is_drained }
    }

    /// D30: a pause is in effect when all messages that have begun are complete; PSN and messages count modulo 2^24.
    #[test]
    fn a_pause_is_reported_when_the_stream_is_drained() {
        let mut session = SourceSession::new(Psn::new(0xFF_FFFE));
        assert_eq!((session.state(), session.report(5).paused_at_psn), (SessionState::Paused, None));
        session.apply(SourceOrder::Send { round: 0 });
        assert_eq!(session.update(progress(8, 4, 1)), SessionState::Sending);
        let report = session.report(5);
        assert_eq!((report.round, report.pausing, report.acknowledged_psn), (Some(0), false, Some(2)));
        session.apply(SourceOrder::Pause { round: 1 });
        assert_eq!((session.update(progress(8, 4, 1)), session.is_draining()), (SessionState::Draining, true));
        assert_eq!((session.report(5).pausing, session.report(5).paused_at_psn), (true, None));
        session.update(progress(8, 8, 0x100_0002));
        let report = session.report(5);
        assert_eq!((report.paused_at_psn, report.completed_messages, session.is_draining()), (Some(6), 2, false));
        session.apply(SourceOrder::Send { round: 1 });
        assert_eq!((session.state(), session.report(5).paused_at_psn), (SessionState::Sending, None));
    }

    /// A source that has not begun is drained at its first PSN.
    #[test]
    fn orders_of_earlier_rounds_are_ignored() {
        let mut session = SourceSession::new(Psn::new(7));
        session.apply(SourceOrder::Pause { round: 2 });
        assert_eq!(session.report(0).paused_at_psn, Some(7));
        session.apply(SourceOrder::Send { round: 1 });
        assert_eq!(session.state(), SessionState::Paused);
        session.apply(SourceOrder::Send { round: 2 });
        session.apply(SourceOrder::Pause { round: 2 });
        session.apply(SourceOrder::Wait);
        assert_eq!(session.state(), SessionState::Sending, "the order to send of that round came first");
        session.apply(SourceOrder::End);
        session.apply(SourceOrder::Send { round: 9 });
        assert_eq!(session.state(), SessionState::Ended);
    }
}
