//! The management network: requests and replies that are lost, delayed and duplicated, and the parties at both ends.
//!
//! A reply that comes after its request was given up is ignored; a request that comes late is executed, by the process
//! of the controller that its connection leads to: like TCP, no message outlives that process. A connection that is
//! begun while no controller listens leads to the one that does when its first message arrives.

use crate::adapter::{self, OrderName, Reply, Request};
use crate::agent_host::{Call, Followed};
use crate::controller::{Caller, Output, Party};
use crate::data_network::name_of;
use crate::store::Written;
use crate::world::{Task, World};
use std::time::Duration;

/// Maximum delay of a message that is late.
const LATE_NS: u64 = 3_000_000_000;

/// A sender gives a request up after the longest wait of the controller and this time. The product's client waits for
/// 70 s; the shorter time keeps runs short and adds late requests.
const GIVE_UP_NS: u64 = 2_000_000_000;

/// Time of a node for an order.
const ORDER_NS: u64 = 2_000_000;

/// Interval at which a source repeats an unreachable request, and looks again whether it is drained.
const SOURCE_RETRY_NS: u64 = 300_000_000;
const DRAIN_NS: u64 = 20_000_000;

pub(crate) struct Message {
    caller: Caller,
    body: Body,
    /// The start of the controller that its connection leads to, once that is known.
    to: Option<u32>,
}

#[derive(Clone)]
enum Body {
    Request(Request),
    Reply(Reply),
}

impl World<'_> {
    /// Sends a request to the controller, and gives it up later.
    pub(crate) fn send_request(&mut self, party: Party, request: Request) -> u64 {
        self.calls += 1;
        let caller = Caller { party, call: self.calls };
        self.send(caller, Body::Request(request));
        self.tasks.push(self.now().after_ns(GIVE_UP_NS), 0, Task::GiveUp(party, caller.call));
        caller.call
    }

    pub(crate) fn send_reply(&mut self, caller: Caller, reply: Reply) {
        match caller.party {
            // They run beside the controller.
            Party::Application(_) | Party::Operator | Party::Receiver(..) => self.deliver(caller, reply),
            Party::Node(_) | Party::Source(_) => self.send(caller, Body::Reply(reply)),
        }
    }

    fn send(&mut self, caller: Caller, body: Body) {
        let plan = &self.schedule.management;
        let is_rough = self.now().as_ns() < self.schedule.faults_end_ns;
        let mut happens = |ppm: u32| is_rough && self.rng.below(1_000_000) < u64::from(ppm);
        let (is_lost, is_duplicate) = (happens(plan.loss_ppm), happens(plan.duplicate_ppm));
        let is_late = happens(plan.late_ppm);
        if is_lost || self.faults.is_cut(caller.party, self.now()) {
            return self.count("message lost");
        }
        let to = match &body {
            Body::Request(_) => self.controller_of(caller.party),
            Body::Reply(_) => None,
        };
        // Without a connection there is nothing to be duplicated.
        let has_connection = to.is_some() || matches!(body, Body::Reply(_));
        for copy in 0..1 + u32::from(is_duplicate && has_connection) {
            let mut delay_ns = plan.delay_ns + self.rng.below(2 * plan.delay_ns);
            if is_late || copy > 0 {
                self.count(if copy > 0 { "message duplicated" } else { "message late" });
                delay_ns += self.rng.below(LATE_NS);
            }
            self.messages.push(Some(Message { caller, body: body.clone(), to }));
            let number = self.messages.len() - 1;
            self.tasks.push(self.now().after_ns(delay_ns), 0, Task::Arrive(number));
        }
    }

    pub(crate) fn arrive(&mut self, number: usize) {
        let Some(Message { caller, body, to }) = self.messages[number].take() else { return };
        if self.faults.is_cut(caller.party, self.now()) {
            return self.count("message lost");
        }
        self.count("message");
        let run = match to {
            Some(run) => self.is_running(run).then_some(run),
            None => self.controller_of(caller.party),
        };
        match (body, run) {
            (Body::Request(request), Some(run)) => {
                let now = self.now();
                if let Party::Node(node) = caller.party
                    && self.controller.as_ref().is_some_and(|controller| controller.run == run)
                {
                    self.checks.orders.answered(node, &request);
                }
                self.with_controller(run, |controller, out| controller.request(now, caller, request, out));
            }
            // The connection is refused or reset.
            (Body::Request(_), None) => self.send(caller, Body::Reply(Reply::Unreachable)),
            (Body::Reply(reply), _) => self.deliver(caller, reply),
        }
    }

    pub(crate) fn give_up(&mut self, party: Party, call: u64) {
        self.deliver(Caller { party, call }, Reply::Unreachable);
    }

    fn deliver(&mut self, caller: Caller, reply: Reply) {
        match caller.party {
            Party::Node(node) if self.agents[node].call == Some(caller.call) => self.agent_reply(node, reply),
            Party::Source(flow) if self.flows[flow].source_call == Some(caller.call) => self.source_reply(flow, reply),
            Party::Application(flow) if self.flows[flow].application_call == Some(caller.call) => {
                self.flows[flow].application_call = None;
                self.application_reply(flow, reply);
            }
            Party::Operator => self.operator_reply(&reply),
            Party::Receiver(flow, receiver) => self.receiver_reply(flow, receiver, &reply),
            Party::Node(_) | Party::Source(_) | Party::Application(_) => {}
        }
    }

    /// Sends the next request of an agent.
    pub(crate) fn agent_next(&mut self, node: usize, incarnation: u32) {
        let now = self.now();
        let host = &mut self.agents[node];
        if host.incarnation != incarnation || host.is_down || host.call.is_some() || host.is_executing {
            return;
        }
        if now < host.paused_until {
            return self.tasks.push(host.paused_until, 0, Task::AgentNext(node, incarnation));
        }
        let registration = self.testbed.registration(node);
        let workers = self.network.workers(self.testbed.nodes[node]);
        if workers.is_empty() {
            return;
        }
        let request = match host.next(now, registration, workers) {
            Call::Register(registration) => Request::Register(registration),
            Call::Sync(sync) => Request::Sync { name: name_of(node), sync },
        };
        self.agents[node].requests += 1;
        let call = self.send_request(Party::Node(node), request);
        self.agents[node].call = Some(call);
    }

    fn agent_reply(&mut self, node: usize, reply: Reply) {
        let now = self.now();
        let host = &mut self.agents[node];
        if now < host.paused_until {
            // It reads the reply when it goes on.
            let (until, incarnation) = (host.paused_until, host.incarnation);
            host.unread = Some(reply);
            return self.tasks.push(until, 0, Task::AgentRead(node, incarnation));
        }
        host.call = None;
        let incarnation = host.incarnation;
        match host.reply(now, reply) {
            Followed::NextAfter(delay) => {
                self.tasks.push(now + delay, 0, Task::AgentNext(node, incarnation));
            }
            Followed::Execute => self.tasks.push(now, 0, Task::AgentExecute(node, incarnation)),
        }
    }

    /// An agent that was paused reads the reply that came meanwhile.
    pub(crate) fn agent_read(&mut self, node: usize, incarnation: u32) {
        let host = &mut self.agents[node];
        if host.incarnation == incarnation
            && host.call.is_some()
            && let Some(reply) = host.unread.take()
        {
            self.agent_reply(node, reply);
        }
    }

    /// Executes the next order at a node, or sends the answers.
    pub(crate) fn agent_execute(&mut self, node: usize, incarnation: u32) {
        let now = self.now();
        let host = &mut self.agents[node];
        if host.incarnation != incarnation || host.is_down {
            return;
        }
        if now < host.paused_until {
            return self.tasks.push(host.paused_until, 0, Task::AgentExecute(node, incarnation));
        }
        let Some(order) = host.orders.pop_front() else {
            let lease = host.executed();
            self.network.with_workers(self.testbed.nodes[node], |worker| worker.set_lease(lease));
            return self.tasks.push(now, 0, Task::AgentNext(node, incarnation));
        };
        let OrderName { group, phase, .. } = adapter::order_name(&order);
        let (moves, replaces) = (adapter::moves_receivers(&order), adapter::replaces_headend(&order));
        let agent = &mut host.agent;
        let answer = self.network.with(self.testbed.nodes[node], |element, _, _| match element.workers_mut() {
            [] => None,
            workers => adapter::carry_out(agent, workers, order),
        });
        self.log(&format_args!("n{node}: group {group} {}: {answer:?}", phase.name()));
        self.agents[node].answers.extend(answer);
        self.checks.copies.executed(node, now);
        self.count("order executed");
        if moves {
            self.count("receiver moved");
        }
        if replaces {
            self.count("headend replaced");
        }
        self.tasks.push(now.after_ns(ORDER_NS), 0, Task::AgentExecute(node, incarnation));
    }

    /// Sends the next report of a source.
    pub(crate) fn source_next(&mut self, flow: usize) {
        let now = self.now();
        let state = &mut self.flows[flow];
        if state.is_over || state.session.is_over || state.source_call.is_some() {
            return;
        }
        let Some(id) = state.id else { return };
        let Some(report) = state.report(now, &self.network) else {
            return self.tasks.push(now.after_ns(DRAIN_NS), 0, Task::SourceNext(flow));
        };
        let request = Request::Source { id, qpn: state.qpn.get(), report };
        self.flows[flow].requests += 1;
        let call = self.send_request(Party::Source(flow), request);
        self.flows[flow].source_call = Some(call);
    }

    fn source_reply(&mut self, flow: usize, reply: Reply) {
        let state = &mut self.flows[flow];
        state.source_call = None;
        let delay_ns = match reply {
            Reply::Order(order) => {
                let before = state.session;
                state.session.apply(order);
                let is_new = before.may_send != state.session.may_send || before.is_over != state.session.is_over;
                if is_new {
                    self.log(&format_args!("source of flow {flow}: {order:?}"));
                }
                1_000_000
            }
            Reply::Refused(kind, _) if is_end(kind) => {
                state.session.is_over = true;
                self.log(&format_args!("source of flow {flow}: the group is gone"));
                0
            }
            Reply::Refused(..)
            | Reply::Session(_)
            | Reply::Orders(_)
            | Reply::Synced(_)
            | Reply::Created(_)
            | Reply::ReceiverOrder(_)
            | Reply::Done
            | Reply::Unreachable => {
                self.log(&format_args!("source of flow {flow}: {reply:?}"));
                SOURCE_RETRY_NS
            }
        };
        if self.flows[flow].session.is_over {
            self.lost(flow);
        } else {
            self.tasks.push(self.now().after_ns(delay_ns), 0, Task::SourceNext(flow));
        }
    }

    /// Ends the connections of these callers.
    pub(crate) fn reset(&mut self, callers: Vec<Caller>) {
        for caller in callers {
            // The others learn it when they give up.
            if matches!(caller.party, Party::Application(_)) || self.rng.below(2) == 0 {
                self.send_reply(caller, Reply::Unreachable);
            }
        }
    }

    /// The present write is durable, or fails.
    pub(crate) fn written(&mut self, run: u32) {
        let now = self.now();
        let Some(mut controller) = self.controller.take_if(|controller| controller.run == run) else {
            return self.former_writes(run);
        };
        if let Some(later) = self.faults.etcd_cut_until(run).filter(|until| now < *until) {
            self.controller = Some(controller);
            return self.tasks.push(later, 0, Task::Written(run));
        }
        let outcome = match controller.outcome {
            Some(outcome) => outcome,
            None => {
                let (outcome, waited) = self.commit(&controller);
                controller.outcome = Some(outcome);
                if waited > Duration::ZERO {
                    self.controller = Some(controller);
                    self.faults.note(now + waited);
                    return self.tasks.push(now + waited, 0, Task::Written(run));
                }
                outcome
            }
        };
        let mut out = Vec::new();
        match outcome {
            Written::Durable => {
                controller.written(now, &mut out);
                self.count("write durable");
            }
            Written::Unknown => {
                if !self.reopen(&mut controller, &mut out) {
                    return self.end_leader(controller);
                }
            }
            Written::Deposed => return self.end_leader(controller),
        }
        self.controller = Some(controller);
        // A crash comes before any output leaves, or after it.
        let crashes = self.crash_is_due();
        if crashes && self.rng.below(2) == 0 {
            self.crash_controller();
            let callers = out.into_iter().filter_map(|output| match output {
                Output::Reply(caller, _) => Some(caller),
                Output::Write | Output::WakeAt(_) | Output::Orders { .. } | Output::Stored(_) => None,
            });
            return self.reset(callers.collect());
        }
        self.carry_out_outputs(run, out);
        if crashes {
            self.crash_controller();
        }
    }
}

fn is_end(kind: srdma_api::ProblemType) -> bool {
    matches!(kind, srdma_api::ProblemType::UnknownGroup | srdma_api::ProblemType::SourceEnded)
}
