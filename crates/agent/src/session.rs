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
use srdma_api::{FIRST_PROTOCOL, NodeAnswer, POLL_INTERVAL_MS, PROTOCOL, Protocols, Session, Sync};
use std::time::Duration;

/// The first and the longest delay before a request to an unreachable controller is retried.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// The state of the protocol.
#[derive(Clone, Debug)]
pub struct ControllerSession {
    session: Option<u64>,
    /// Protocol of the session.
    protocol: u32,
    /// The newest protocol that the next registration states.
    offer: u32,
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
    Register {
        /// The newest protocol that it states.
        protocol: u32,
    },
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
    /// The controller has refused the request as invalid.
    NotUnderstood,
    /// The controller has refused for another reason, or its response is invalid.
    Refused,
}

/// The session has a protocol that the node does not speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// Protocol of the session.
    pub protocol: u32,
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ProtocolError { protocol } = self;
        let older = if *protocol > PROTOCOL { "node" } else { "controller" };
        write!(f, "the controller speaks protocol {protocol}, the node {}: upgrade the {older}", Protocols::OWN)
    }
}

impl Default for ControllerSession {
    fn default() -> Self {
        ControllerSession {
            session: None,
            protocol: FIRST_PROTOCOL,
            offer: PROTOCOL,
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
                Request::Register { protocol: self.offer }
            }
        }
    }

    /// The registration was accepted.
    ///
    /// # Errors
    ///
    /// The node does not speak the protocol of the session, which is not used: [`Failure::Refused`] follows.
    pub fn registered(&mut self, session: &Session) -> Result<(), ProtocolError> {
        let protocol = session.protocol;
        if !Protocols::OWN.contain(protocol) {
            return Err(ProtocolError { protocol });
        }
        self.session = Some(session.session);
        (self.protocol, self.offer) = (protocol, PROTOCOL);
        self.answers.clear();
        self.lease.begin(session.lease_ms);
        Ok(())
    }

    /// The next report.
    pub fn sync(&self, report: Report) -> Sync {
        let Report { eviction_requests, mut status } = report;
        if let Some(status) = status.as_mut().filter(|_| self.protocol == FIRST_PROTOCOL) {
            status.unreachable.clear();
            status.lost_hosts.clear();
            for group in &mut status.groups {
                (group.awaits_first_psn, group.repair) = (false, None);
                for branch in &mut group.branches {
                    (branch.packets_resent, branch.is_repairing) = (None, false);
                }
            }
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
        let offered = std::mem::replace(&mut self.offer, PROTOCOL);
        match failure {
            // A controller of protocol 1 refuses the key that states the protocol (D112).
            Failure::NotUnderstood if self.session.is_none() && offered != FIRST_PROTOCOL => {
                self.offer = FIRST_PROTOCOL;
                Duration::ZERO
            }
            // A controller that is reached again may know the session: the answers are retransmitted.
            Failure::Unreachable => self.back_off(),
            Failure::Refused | Failure::NotUnderstood => {
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

    const NEW: Session = Session { session: 7, store: 1, dead_after_ms: 3000, protocol: PROTOCOL, lease_ms: 0 };
    const REGISTER: Request = Request::Register { protocol: PROTOCOL };

    fn answers() -> Vec<NodeAnswer> {
        vec![NodeAnswer::Committed { group: 1, name: srdma_group::EntryName::default() }]
    }

    #[test]
    fn answers_are_sent_until_they_are_received() {
        let mut session = ControllerSession::default();
        assert_eq!(session.next(Duration::ZERO), REGISTER);
        session.registered(&NEW).unwrap();
        session.synced(answers());
        assert_eq!(session.next(Duration::ZERO), Request::Sync);
        assert_eq!(session.sync(Report::default()).answers, answers());
        assert_eq!(session.failed(Failure::Unreachable, Duration::ZERO), FIRST_RETRY);
        assert_eq!(session.next(Duration::ZERO), Request::Sync);
        assert_eq!(session.sync(Report::default()).answers, answers());
        session.synced(Vec::new());
        assert!(session.sync(Report::default()).answers.is_empty());
    }

    /// A controller of protocol 1 refuses keys that it does not know.
    #[test]
    fn unreachable_neighbours_and_lost_hosts_are_reported_from_protocol_2_on() {
        let (unreachable, lost_hosts) = (vec!["::1".parse().unwrap()], vec!["::1/128".parse().unwrap()]);
        let status = NodeStatus { unreachable, lost_hosts, ..NodeStatus::default() };
        let report = Report { status: Some(status.clone()), ..Report::default() };
        for protocol in [1, 2] {
            let mut session = ControllerSession::default();
            session.registered(&Session { protocol, ..NEW }).unwrap();
            let sent = session.sync(report.clone()).status.expect("a status");
            assert_eq!(sent, if protocol == 2 { status.clone() } else { NodeStatus::default() });
        }
    }

    /// D112: a controller of protocol 1 is asked without the number, at once; and each later registration begins with
    /// the newest protocol, since the controller may have been upgraded.
    #[test]
    fn a_controller_of_protocol_1_gets_a_registration_without_the_number() {
        let mut session = ControllerSession::default();
        assert_eq!(session.next(Duration::ZERO), REGISTER);
        assert_eq!(session.failed(Failure::NotUnderstood, Duration::ZERO), Duration::ZERO);
        assert_eq!(session.next(Duration::ZERO), Request::Register { protocol: 1 });
        session.registered(&Session { protocol: 1, ..NEW }).unwrap();
        assert_eq!(session.next(Duration::ZERO), Request::Sync);
        session.failed(Failure::UnknownSession, Duration::from_secs(9));
        assert_eq!(session.next(Duration::from_secs(9)), REGISTER);
        session.failed(Failure::NotUnderstood, Duration::from_secs(9));
        assert_eq!(session.failed(Failure::NotUnderstood, Duration::from_secs(9)), FIRST_RETRY, "neither is right");
        assert_eq!(session.next(Duration::from_secs(9)), REGISTER);
    }

    /// A report that is refused as invalid does not choose the protocol of the next session.
    #[test]
    fn a_report_that_is_not_understood_leads_to_a_registration_of_the_newest_protocol() {
        let mut session = ControllerSession::default();
        session.registered(&NEW).unwrap();
        assert_eq!(session.failed(Failure::NotUnderstood, Duration::ZERO), FIRST_RETRY);
        assert_eq!(session.next(Duration::ZERO), REGISTER);
    }

    #[test]
    fn a_session_of_a_protocol_that_the_node_does_not_speak_is_not_used() {
        for (protocol, older) in [(0, "upgrade the controller"), (PROTOCOL + 1, "upgrade the node")] {
            let mut session = ControllerSession::default();
            let error = session.registered(&Session { protocol, ..NEW }).unwrap_err();
            assert!(error.to_string().ends_with(older), "{error}");
            assert!(error.to_string().contains(&format!("protocol {protocol}, the node {}", Protocols::OWN)));
            assert_eq!(session.failed(Failure::Refused, Duration::ZERO), FIRST_RETRY);
            assert_eq!(session.next(Duration::ZERO), REGISTER);
        }
    }

    #[test]
    fn an_unknown_session_is_registered_again_without_its_answers() {
        let mut session = ControllerSession::default();
        session.next(Duration::ZERO);
        session.registered(&NEW).unwrap();
        session.synced(answers());
        assert_eq!(session.failed(Failure::UnknownSession, Duration::from_secs(9)), Duration::ZERO);
        assert_eq!(session.next(Duration::from_secs(9)), REGISTER);
        session.registered(&NEW).unwrap();
        assert!(session.sync(Report::default()).answers.is_empty());
        assert_eq!(session.failed(Failure::UnknownSession, Duration::from_secs(9)), FIRST_RETRY, "at once again");
    }

    /// D122: from sending the last report that was answered, in whatever session.
    #[test]
    fn a_lease_is_counted_from_sending_the_answered_report() {
        let at = Duration::from_millis;
        let mut session = ControllerSession::default();
        session.next(at(0));
        session.registered(&Session { lease_ms: 2000, ..NEW }).unwrap();
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
        session.registered(&Session { lease_ms: 2000, ..NEW }).unwrap();
        assert_eq!(session.lease_end(), Some(at(2100)), "a registration alone does not extend it");
        session.next(at(3000));
        session.synced(Vec::new());
        assert_eq!(session.lease_end(), Some(at(5000)));
        session.registered(&NEW).unwrap();
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
