//! The process of a node's agent: what the daemon does around `srdma_agent`, without HTTP and threads.

use crate::adapter::{self, Reply};
use crate::reachability::Sessions;
use srdma_agent::{Agent, ControllerSession, Failure, GroupTable, Report, Request as Next};
use srdma_aggregation::{BranchIndex, EvictionCause};
use srdma_api::{NodeAnswer, NodeOrder, NodeStatus, ProblemType, Registration, Sync};
use srdma_dataplane::{Event, Lease, Node};
use srdma_wire::{Instant, Prefix};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;
use std::time::Duration;

pub(crate) struct AgentHost {
    pub(crate) agent: Agent,
    session: ControllerSession,
    evictions: BTreeMap<(u32, Ipv6Addr), &'static str>,
    /// Counts restarts.
    pub(crate) incarnation: u32,
    pub(crate) is_down: bool,
    pub(crate) paused_until: Instant,
    /// The request that is not answered yet.
    pub(crate) call: Option<u64>,
    /// A reply that came while the agent was paused.
    pub(crate) unread: Option<Reply>,
    /// Requests since the last check.
    pub(crate) requests: u32,
    /// Orders in execution, and the answers so far.
    pub(crate) orders: VecDeque<NodeOrder>,
    pub(crate) answers: Vec<NodeAnswer>,
    /// The node is in execution of orders.
    pub(crate) is_executing: bool,
    pub(crate) sessions: Sessions,
    /// Hosts whose links to the node are down.
    pub(crate) lost_hosts: Vec<Prefix>,
    /// When the last report was sent, and when the last one was whose answer is executed: the check's own count.
    sent_at: Instant,
    pub(crate) answered_at: Option<Instant>,
}

/// What the agent sends next.
pub(crate) enum Call {
    Register(Box<Registration>),
    Sync(Sync),
}

/// What follows a reply.
pub(crate) enum Followed {
    /// The next request, after a time.
    NextAfter(Duration),
    /// Orders are to be executed.
    Execute,
}

impl AgentHost {
    pub(crate) fn new(table: GroupTable, incarnation: u32) -> Self {
        let mut agent = Agent::default();
        agent.table = table;
        AgentHost {
            agent,
            session: ControllerSession::default(),
            evictions: BTreeMap::new(),
            incarnation,
            is_down: false,
            paused_until: Instant::ZERO,
            call: None,
            unread: None,
            requests: 0,
            orders: VecDeque::new(),
            answers: Vec::new(),
            is_executing: false,
            sessions: Sessions::default(),
            lost_hosts: Vec::new(),
            sent_at: Instant::ZERO,
            answered_at: None,
        }
    }

    /// The next request to the controller.
    pub(crate) fn next(&mut self, now: Instant, registration: Registration, workers: &[Node]) -> Call {
        match self.session.next(since_origin(now)) {
            Next::Register { protocol } => Call::Register(Box::new(self.agent.registration(registration.by(protocol)))),
            Next::Sync => {
                self.evictions.retain(|(group, receiver), _| lags(workers, *group, *receiver));
                let known = self.evictions.iter().filter(|((group, _), _)| adapter::has_group(&self.agent, *group));
                let pending: Vec<_> = known.map(|((group, receiver), cause)| (*group, *receiver, *cause)).collect();
                self.agent.evictions.set(pending);
                let unreachable = self.sessions.unreachable();
                let lost_hosts = self.lost_hosts.clone();
                self.agent.set_status(NodeStatus { unreachable, lost_hosts, ..adapter::status(&self.agent, workers) });
                self.sent_at = now;
                let report: Report = self.agent.report(now.as_ns());
                Call::Sync(self.session.sync(report))
            }
        }
    }

    /// Handles the reply to the request, which is no longer outstanding.
    pub(crate) fn reply(&mut self, now: Instant, reply: Reply) -> Followed {
        let (failure, reason) = match reply {
            Reply::Session(session) => match self.session.registered(&session) {
                Ok(()) => {
                    self.agent.registered();
                    return Followed::NextAfter(Duration::ZERO);
                }
                Err(error) => (Failure::Refused, error.to_string()),
            },
            Reply::Orders(orders) => {
                self.agent.answered();
                self.orders = orders.into();
                self.answers.clear();
                self.is_executing = true;
                return Followed::Execute;
            }
            Reply::Unreachable => (Failure::Unreachable, "no response".to_owned()),
            Reply::Refused(ProblemType::UnknownSession, reason) => (Failure::UnknownSession, reason),
            Reply::Refused(ProblemType::InvalidRequest, reason) => (Failure::NotUnderstood, reason),
            Reply::Refused(_, reason) => (Failure::Refused, reason),
            Reply::Synced(_) | Reply::Order(_) | Reply::ReceiverOrder(_) | Reply::Created(_) | Reply::Done => {
                (Failure::Refused, "the response is invalid".to_owned())
            }
        };
        if failure != Failure::UnknownSession {
            self.agent.failed(reason);
        }
        Followed::NextAfter(self.session.failed(failure, since_origin(now)))
    }

    /// All orders are executed; returns the lease of the node (D122).
    pub(crate) fn executed(&mut self) -> Lease {
        self.is_executing = false;
        self.session.synced(std::mem::take(&mut self.answers));
        self.answered_at = Some(self.sent_at);
        self.session.lease_end().map_or(Lease::Off, |end| Lease::Until(Instant::ZERO + end))
    }

    /// Takes the events of the node.
    pub(crate) fn observe(&mut self, events: impl Iterator<Item = Event>) {
        for Event::EvictionRequested { group, receiver, cause } in events {
            let cause = match cause {
                EvictionCause::Stalled => "stalled",
                EvictionCause::Failed(_) => "failed",
            };
            self.evictions.insert((group.0, receiver), cause);
        }
    }
}

/// Whether a receiver holds its group back.
fn lags(workers: &[Node], group: u32, receiver: Ipv6Addr) -> bool {
    let id = adapter::group_id(group);
    let Some(node) = adapter::owner(workers, id) else { return false };
    let Some(entry) = node.group_entry(id) else { return false };
    let branch = entry.branches.iter().position(|branch| branch.responder == receiver);
    let Some(branch) = branch.and_then(|branch| u16::try_from(branch).ok()) else { return false };
    let lag = node.acknowledgements(id).and_then(|state| state.lag(BranchIndex(branch)));
    lag != Some(0)
}

fn since_origin(now: Instant) -> Duration {
    now.since(Instant::ZERO)
}
