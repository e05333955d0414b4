//! The controller's process in virtual time: what `srdma_controller` does around the pipeline, without HTTP and
//! threads.
//!
//! ```text
//!   request ──► transaction ──► writes ──► store, durable after a time
//!                  └─ answer, polls ◄──────┘
//! ```

use crate::adapter::{self, Identity, OrderName, Reply, Request};
use crate::store::{Leader, Store, Written};
use srdma_api::{SourceOrder, SourceReport};
use srdma_controller_core::{Answer, Core, Pipeline, Row, RowError, Settings, Write};
use srdma_wire::Instant;
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// Interval for detecting dead nodes.
pub(crate) const PERIOD_NS: u64 = 100_000_000;
/// Retransmission interval of unanswered orders, in periods.
const RETRANSMISSION_PERIODS: u32 = 5;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Party {
    Node(usize),
    /// Of a flow.
    Source(usize),
    /// Of a flow.
    Application(usize),
    Operator,
    /// Of a flow, one that joins in two steps.
    Receiver(usize, usize),
}

/// A request's sender, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) party: Party,
    pub(crate) call: u64,
}

/// What the controller asks of the world.
#[derive(Debug)]
pub(crate) enum Output {
    Reply(Caller, Reply),
    /// A write to the store begins.
    Write,
    /// Call [`Controller::settle`] at this time.
    WakeAt(Instant),
    /// Orders leave for a node.
    Orders {
        node: Ipv6Addr,
        orders: Vec<OrderName>,
    },
    /// The record of a group is in the writes of a transaction.
    Stored(u32),
}

pub(crate) struct Controller {
    pipeline: Pipeline,
    settings: Settings,
    pub(crate) started: Instant,
    /// Number of this start.
    pub(crate) run: u32,
    /// Counts transactions that have changed what the API shows of groups.
    pub(crate) version: u64,
    /// Batches that are not durable, and how many of them the present write has.
    unwritten: VecDeque<(u64, Vec<Write>)>,
    writing: usize,
    waiting: Vec<Waiting>,
    polls: Vec<Poll>,
    rounds: u32,
    /// What the wall clock was set by.
    pub(crate) clock_ms: i64,
    /// In etcd.
    pub(crate) leader: Option<Leader>,
    /// The outcome of the present write, which the controller has not received yet.
    pub(crate) outcome: Option<Written>,
}

/// A request whose writes are not durable.
struct Waiting {
    caller: Caller,
    answer: Answer<Reply>,
    then: Then,
}

/// What follows when the writes of a request are durable.
enum Then {
    Reply,
    PollOrders { name: String, session: u64, wait_ms: u32 },
    PollSource { id: u32, report: SourceReport },
}

/// A request that waits for orders.
struct Poll {
    caller: Caller,
    deadline: Instant,
    kind: PollKind,
}

enum PollKind {
    Orders { node: Ipv6Addr, name: String, session: u64 },
    Source { id: u32, report: SourceReport },
}

impl Controller {
    /// Starts with the rows of a store.
    pub(crate) fn start(
        rows: &[Row],
        identity: Identity,
        settings: Settings,
        run: u32,
        now: Instant,
        clock_ms: i64,
        out: &mut Vec<Output>,
    ) -> Result<Self, RowError> {
        let core = adapter::restore(settings.clone(), rows, identity, adapter::time(now, now, clock_ms))?;
        let mut controller = Controller {
            pipeline: Pipeline::new(core),
            settings,
            started: now,
            run,
            version: 0,
            unwritten: VecDeque::new(),
            writing: 0,
            waiting: Vec::new(),
            polls: Vec::new(),
            rounds: 0,
            clock_ms,
            leader: None,
            outcome: None,
        };
        // The writes of the restoration.
        controller.transact(now, |_| (), out);
        controller.settle(now, out);
        Ok(controller)
    }

    pub(crate) fn core(&self) -> &Core {
        self.pipeline.core()
    }

    pub(crate) fn request(&mut self, now: Instant, caller: Caller, request: Request, out: &mut Vec<Output>) {
        let then = match &request {
            Request::Sync { name, sync } => {
                Then::PollOrders { name: name.clone(), session: sync.session, wait_ms: sync.wait_ms }
            }
            Request::Source { id, report, .. } => Then::PollSource { id: *id, report: *report },
            _ => Then::Reply,
        };
        let answer = self.transact(now, |core| adapter::execute(core, request), out);
        self.waiting.push(Waiting { caller, answer, then });
        self.settle(now, out);
    }

    /// Detects dead nodes and retransmits orders.
    pub(crate) fn period(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.rounds += 1;
        let retransmits = self.rounds.is_multiple_of(RETRANSMISSION_PERIODS);
        let act = |core: &mut Core| {
            core.expire_nodes();
            if retransmits {
                core.retransmit();
            }
        };
        self.transact(now, act, out);
        self.settle(now, out);
    }

    /// The present write is durable.
    pub(crate) fn written(&mut self, now: Instant, out: &mut Vec<Output>) {
        let last = self.unwritten.drain(..self.writing).next_back().map_or(0, |(number, _)| number);
        self.writing = 0;
        self.outcome = None;
        let _ = self.pipeline.durable(last);
        self.settle(now, out);
    }

    /// The present write has failed: the core is restored from the store, and unanswered requests fail.
    pub(crate) fn recover(&mut self, now: Instant, store: &Store, new: u64, out: &mut Vec<Output>) {
        let time = adapter::time(now, self.started, self.clock_ms);
        let identity = Identity { new, rebuilds: None };
        let Ok(core) = adapter::restore(self.settings.clone(), &store.state(), identity, time) else { return };
        self.pipeline.replace_core(core);
        self.version += 1;
        self.unwritten.clear();
        self.writing = 0;
        self.outcome = None;
        let failed = srdma_api::ProblemType::StoreFailed;
        let replies =
            self.waiting.drain(..).map(|one| Output::Reply(one.caller, Reply::Refused(failed, String::new())));
        out.extend(replies);
        self.settle(now, out);
    }

    /// Whether a write is under way.
    pub(crate) const fn is_writing(&self) -> bool {
        self.writing > 0
    }

    /// The present write.
    pub(crate) fn writing(&self) -> Vec<Write> {
        self.unwritten.iter().take(self.writing).flat_map(|(_, writes)| writes).cloned().collect()
    }

    /// The callers that wait, when the process ends.
    pub(crate) fn callers(&self) -> Vec<Caller> {
        let polls = self.polls.iter().map(|poll| poll.caller);
        self.waiting.iter().map(|one| one.caller).chain(polls).collect()
    }

    fn transact<T>(&mut self, now: Instant, act: impl FnOnce(&mut Core) -> T, out: &mut Vec<Output>) -> Answer<T> {
        let time = adapter::time(now, self.started, self.clock_ms);
        let transaction = self.pipeline.transact(time, act);
        if !transaction.changed_groups.is_empty() || !transaction.ended_sessions.is_empty() {
            self.version += 1;
        }
        if !transaction.writes.is_empty() {
            out.extend(transaction.writes.iter().filter_map(adapter::stored_record).map(Output::Stored));
            self.unwritten.push_back((transaction.number, transaction.writes));
        }
        let _ = self.pipeline.release();
        transaction.answer
    }

    /// Replies to all requests whose writes are durable and whose polls have ended, and begins a write.
    pub(crate) fn settle(&mut self, now: Instant, out: &mut Vec<Output>) {
        loop {
            let durable = self.pipeline.durable_number();
            let waiting = std::mem::take(&mut self.waiting);
            for Waiting { caller, answer, then } in waiting {
                match answer.release(durable) {
                    Ok(reply) => self.follow(now, caller, reply, then, out),
                    Err(answer) => self.waiting.push(Waiting { caller, answer, then }),
                }
            }
            let polls = std::mem::take(&mut self.polls);
            let before = polls.len();
            for poll in polls {
                if let Some(poll) = self.poll(now, poll, out) {
                    self.polls.push(poll);
                }
            }
            if self.polls.len() == before {
                break;
            }
        }
        if self.writing == 0 && !self.unwritten.is_empty() {
            self.writing = self.unwritten.len();
            out.push(Output::Write);
        }
    }

    fn follow(&mut self, now: Instant, caller: Caller, reply: Reply, then: Then, out: &mut Vec<Output>) {
        let poll = match (reply, then) {
            (Reply::Synced(node), Then::PollOrders { name, session, wait_ms }) => {
                Poll { caller, deadline: after_ms(now, wait_ms), kind: PollKind::Orders { node, name, session } }
            }
            (Reply::Order(order), Then::PollSource { id, report }) if is_known(order, &report) => {
                let wait_ms = u64::from(report.wait_ms).min(adapter::SOURCE_SILENT_AFTER_NS / 2_000_000);
                Poll { caller, deadline: after_ms(now, wait_ms as u32), kind: PollKind::Source { id, report } }
            }
            (reply, _) => return out.push(Output::Reply(caller, reply)),
        };
        out.push(Output::WakeAt(poll.deadline));
        self.polls.push(poll);
    }

    /// Ends a poll if it may end; returns it otherwise.
    fn poll(&mut self, now: Instant, poll: Poll, out: &mut Vec<Output>) -> Option<Poll> {
        let is_over = poll.deadline <= now;
        match &poll.kind {
            PollKind::Orders { node, name, session } => {
                let orders = self.pipeline.take_orders(*node);
                if orders.is_empty() && !is_over {
                    return Some(poll);
                }
                if !orders.is_empty() {
                    let names = orders.iter().map(adapter::order_name).collect();
                    out.push(Output::Orders { node: *node, orders: names });
                }
                // Another registration meanwhile has replaced the orders.
                let finish = |core: &mut Core| adapter::finish_poll(core, *node, *session, name);
                // Like the product, this does not wait for writes.
                let reply = match self.transact(now, finish, out).release(u64::MAX) {
                    Ok(Ok(())) => Reply::Orders(orders),
                    Ok(Err(refusal)) => refusal,
                    Err(_) => Reply::Unreachable,
                };
                out.push(Output::Reply(poll.caller, reply));
            }
            PollKind::Source { id, report } => {
                let order = self.pipeline.core().source_order(*id);
                if is_known(order, report) && !is_over {
                    return Some(poll);
                }
                // The order may depend on writes that are not durable yet.
                let answer = self.transact(now, |_| Reply::Order(order), out);
                self.waiting.push(Waiting { caller: poll.caller, answer, then: Then::Reply });
            }
        }
        None
    }
}

/// Whether a source has this order already.
fn is_known(order: SourceOrder, report: &SourceReport) -> bool {
    match (order, report.round) {
        (SourceOrder::Wait, _) => true,
        (SourceOrder::Send { round }, Some(known)) => round == known && !report.pausing,
        (SourceOrder::Pause { round }, Some(known)) => round == known && report.pausing,
        (SourceOrder::Send { .. } | SourceOrder::Pause { .. }, None) | (SourceOrder::End, _) => false,
    }
}

fn after_ms(now: Instant, ms: u32) -> Instant {
    now.after_ns(u64::from(ms) * 1_000_000)
}
