//! Order and times of a node's requests to its controller: one at a time, so that orders and answers stay in order.
//!
//! ```text
//!                  registered
//!   unregistered ─────────────► registered ─┐ sync: answers, eviction requests, status
//!        ▲                          │  ▲    │ orders, or unreachable: the answers are sent again
//!        └──────────────────────────┘  └────┘
//!           unknown session, refused
//! ```

use crate::Report;
use crate::lease::Lease;
use srdma_api::{NodeAnswer, POLL_INTERVAL_MS, Session, Sync};
use std::time::Duration;

/// The first and the longest delay before a request to an unreachable controller is retried.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// The state of the protocol.
#[derive(Clone, Debug)]
pub struct ControllerSession {
    session: Option<u64>,
    accepts_unreachable: bool,
    /// Time of the last registration request.
    begun: Duration,
    /// Answers that the controller has not received yet.
    answers: Vec<NodeAnswer>,
    retry: Duration,
    lease: Lease,
}

/// A request to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The node's registration.
    Register,
    /// The report of [`ControllerSession::sync`].
    Sync,
}

/// Reason for which a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No response.
    Unreachable,
    /// The controller does not know the session any more.
    UnknownSession,
    /// The controller has refused for another reason, or its response is invalid.
    Refused,
}

impl Default for ControllerSession {
    fn default() -> Self {
        ControllerSession {
            session: None,
            accepts_unreachable: false,
            begun: Duration::ZERO,
            answers: Vec::new(),
            retry: FIRST_RETRY,
            lease: Lease::default(),
        }
    }
}

impl ControllerSession {
    /// The request to send now. `now`: since any fixed moment.
    pub fn next(&mut self, now: Duration) -> Request {
        match self.session {
            Some(_) => {
                self.lease.report(now);
                Request::Sync
            }
            None => {
                self.begun = now;
                Request::Register
            }
        }
    }

    /// The registration was accepted.
    pub fn registered(&mut self, session: &Session) {
        self.session = Some(session.session);
        self.accepts_unreachable = session.accepts_unreachable;
        self.answers.clear();
        self.lease.begin(session.lease_ms);
    }

    /// The next report.
    pub fn sync(&self, report: Report) -> Sync {
        let Report { eviction_requests, mut status } = report;
        if let Some(status) = status.as_mut().filter(|_| !self.accepts_unreachable) {
            status.unreachable.clear();
        }
        let session = self.session.unwrap_or_default();
        Sync { session, answers: self.answers.clone(), eviction_requests, status, wait_ms: POLL_INTERVAL_MS }
    }

    /// The controller has responded to a report; `answers`: those to its orders.
    pub fn synced(&mut self, answers: Vec<NodeAnswer>) {
        self.retry = FIRST_RETRY;
        self.answers = answers;
        self.lease.answered();
    }

    /// When the node stops to acknowledge for the controller's groups unless another report is answered (D122), in the
    /// time of [`ControllerSession::next`]; `None`: it does not.
    pub fn lease_end(&self) -> Option<Duration> {
        self.lease.end()
    }

    /// A request has failed; returns the delay before the next one.
    pub fn failed(&mut self, failure: Failure, now: Duration) -> Duration {
        match failure {
            // A controller that is reached again may know the session: the answers are retransmitted.
            Failure::Unreachable => self.back_off(),
            Failure::Refused => {
                self.session = None;
                self.back_off()
            }
            Failure::UnknownSession => {
                self.session = None;
                // A controller that loses its sessions at once must not receive requests without delay.
                if now.saturating_sub(self.begun) < FIRST_RETRY { self.retry } else { Duration::ZERO }
            }
        }
    }

    fn back_off(&mut self) -> Duration {
        let delay = self.retry;
        self.retry = (self.retry * 2).min(LAST_RETRY);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_api::NodeStatus;

    const NEW: Session = Session { session: 7, store: 1, dead_after_ms: 3000, accepts_unreachable: true, lease_ms: 0 };

    fn answers() -> Vec<NodeAnswer> {
        vec![NodeAnswer::Committed { group: 1, name: srdma_group::EntryName::default() }]
    }

    #[test]
    fn answers_are_sent_until_they_are_received() {
        let mut session = ControllerSession::default();
        assert_eq!(session.next(Duration::ZERO), Request::Register);
        session.registered(&NEW);
        session.synced(answers());
        assert_eq!(session.next(Duration::ZERO), Request::Sync);
        assert_eq!(session.sync(Report::default()).answers, answers());
        assert_eq!(session.failed(Failure::Unreachable, Duration::ZERO), FIRST_RETRY);
        assert_eq!(session.next(Duration::ZERO), Request::Sync);
        assert_eq!(session.sync(Report::default()).answers, answers());
        session.synced(Vec::new());
        assert!(session.sync(Report::default()).answers.is_empty());
    }

    /// A controller of the version before refuses keys that it does not know.
    #[test]
    fn unreachable_neighbours_are_reported_to_controllers_that_accept_it() {
        let status = NodeStatus { unreachable: vec![std::net::Ipv6Addr::LOCALHOST], ..NodeStatus::default() };
        let report = Report { status: Some(status.clone()), ..Report::default() };
        for accepts_unreachable in [false, true] {
            let mut session = ControllerSession::default();
            session.registered(&Session { accepts_unreachable, ..NEW });
            let sent = session.sync(report.clone()).status.expect("a status");
            assert_eq!(sent.unreachable == status.unreachable, accepts_unreachable);
        }
    }

    #[test]
    fn an_unknown_session_is_registered_again_without_its_answers() {
        let mut session = ControllerSession::default();
        session.next(Duration::ZERO);
        session.registered(&NEW);
        session.synced(answers());
        assert_eq!(session.failed(Failure::UnknownSession, Duration::from_secs(9)), Duration::ZERO);
        assert_eq!(session.next(Duration::from_secs(9)), Request::Register);
        session.registered(&NEW);
        assert!(session.sync(Report::default()).answers.is_empty());
        assert_eq!(session.failed(Failure::UnknownSession, Duration::from_secs(9)), FIRST_RETRY, "at once again");
    }

    /// D122: from sending the last report that was answered, in whatever session.
    #[test]
    fn a_lease_is_counted_from_sending_the_answered_report() {
        let at = Duration::from_millis;
        let mut session = ControllerSession::default();
        session.next(at(0));
        session.registered(&Session { lease_ms: 2000, ..NEW });
        assert_eq!(session.lease_end(), None, "the entries are not compared yet");
        session.next(at(100));
        assert_eq!(session.lease_end(), None);
        session.synced(Vec::new());
        assert_eq!(session.lease_end(), Some(at(2100)), "however late the response has come");
        session.next(at(1100));
        session.failed(Failure::Unreachable, at(1500));
        session.next(at(1700));
        assert_eq!(session.lease_end(), Some(at(2100)), "no report was answered since");
        session.failed(Failure::UnknownSession, at(1800));
        session.next(at(1900));
        session.registered(&Session { lease_ms: 2000, ..NEW });
        assert_eq!(session.lease_end(), Some(at(2100)), "a registration alone does not extend it");
        session.next(at(3000));
        session.synced(Vec::new());
        assert_eq!(session.lease_end(), Some(at(5000)));
        session.registered(&NEW);
        session.next(at(4000));
        session.synced(Vec::new());
        assert_eq!(session.lease_end(), None, "the controller gives none any more");
    }

    #[test]
    fn delays_double_up_to_a_bound_and_restart_after_a_response() {
        let mut session = ControllerSession::default();
        let delays: Vec<u128> = (0..7).map(|_| session.failed(Failure::Refused, Duration::ZERO).as_millis()).collect();
        assert_eq!(delays, [200, 400, 800, 1600, 3200, 5000, 5000]);
        session.synced(Vec::new());
        assert_eq!(session.failed(Failure::Unreachable, Duration::ZERO), FIRST_RETRY);
    }
}
