//! The applications: each creates a group, joins receivers, commits it, and creates it again when the controller has
//! lost it.

use crate::adapter::{self, Reply};
use crate::controller::{Caller, Party};
use crate::flow::{Flow, MESSAGE_INTERVAL_NS, Step};
use crate::outcome::{Finding, ViolationKind};
use crate::world::{Task, World};
use srdma_api::{GroupState, ProblemType, ReceiverState};

/// Interval between attempts, and their maximum number.
const RETRY_NS: u64 = 300_000_000;
const MAX_ATTEMPTS: u32 = 60;

/// A group that the controller loses is created again so often.
pub(crate) const MAX_FLOWS: usize = 6;

/// Leaves that an application repeats after a restoration.
const MAX_REPEATED_LEAVES: u32 = 8;

/// A run lasts until so many commits of a flow have had their time.
const MAX_COMMITS: u32 = 4;

impl World<'_> {
    /// The application of a group begins, or begins again.
    pub(crate) fn begin(&mut self, group: usize) {
        if self.flows.len() >= MAX_FLOWS * self.schedule.groups.len() {
            return;
        }
        let (number, plan) = (self.flows.len(), &self.schedule.groups[group]);
        match Flow::new(group, number, plan, &self.testbed, &mut self.network) {
            Ok(flow) => {
                self.flows.push(flow);
                self.faults.group_of_flow.push(group);
                self.flow_of[group] = Some(number);
                self.tasks.push(self.now(), 0, Task::Work(number));
                self.tasks.push(self.now().after_ns(MESSAGE_INTERVAL_NS), 0, Task::Post(number));
            }
            Err(error) => self.violation(ViolationKind::Setup, Finding::Unknown, group, error.to_string()),
        }
    }

    /// Adds a step of the application of a group.
    pub(crate) fn add_step(&mut self, group: usize, step: Step) {
        let Some(flow) = self.flow_of[group].filter(|flow| !self.flows[*flow].is_over) else { return };
        if step == Step::Close {
            self.flows[flow].is_closed = true;
        }
        self.flows[flow].steps.push_back(step);
        self.tasks.push(self.now(), 0, Task::Work(flow));
    }

    /// Sends the request of an application's first step.
    pub(crate) fn work(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        if state.is_over || state.application_call.is_some() || state.steps.is_empty() {
            return;
        }
        let Some(controller) = &self.controller else {
            return self.tasks.push(self.now().after_ns(RETRY_NS), 0, Task::Work(flow));
        };
        let run = controller.run;
        // After a restoration the number may be that of no group, or of another one.
        if state.id.is_some_and(|id| adapter::is_gone(controller.core(), id, state.qpn.get())) {
            return self.lost(flow);
        }
        if let (Some(id), Some(Step::Join(receiver))) = (state.id, state.steps.front().copied()) {
            let shown = adapter::shown_receiver(controller.core(), id, self.testbed.receiver_address(receiver));
            state.renew(receiver, shown.map(|shown| shown.qpn));
        }
        let plan = &self.schedule.groups[state.group];
        let Some(request) =
            state.request(plan, &self.testbed, &mut self.network, &mut self.next_qpn, &self.schedule.two_steps)
        else {
            self.flows[flow].steps.pop_front();
            return self.tasks.push(self.now(), 0, Task::Work(flow));
        };
        self.calls += 1;
        self.flows[flow].application_call = Some(self.calls);
        let caller = Caller { party: Party::Application(flow), call: self.calls };
        self.count("request");
        let now = self.now();
        self.with_controller(run, |controller, out| controller.request(now, caller, request, out));
    }

    pub(crate) fn application_reply(&mut self, flow: usize, reply: Reply) {
        let now = self.now();
        let Some(step) = self.flows[flow].steps.front().copied() else { return };
        self.log(&format_args!("application of flow {flow}: {step:?}: {reply:?}"));
        if step == Step::Create && matches!(reply, Reply::Refused(ProblemType::AddressInUse, _)) {
            self.close_former(self.flows[flow].group);
        }
        if let (Step::Join(receiver), Reply::Refused(ProblemType::AlreadyJoined, _)) = (step, &reply)
            && self.leave_first(flow, receiver)
        {
            return self.tasks.push(now, 0, Task::Work(flow));
        }
        let state = &mut self.flows[flow];
        state.attempts += 1;
        state.is_creation_refused = step == Step::Create && matches!(reply, Reply::Refused(..));
        let is_done = match (&reply, step) {
            (Reply::Created(id), _) => {
                state.id = Some(*id);
                true
            }
            (Reply::Done, Step::Commit) => {
                state.is_committed = true;
                state.progress_at = now;
                self.tasks.push(now, 0, Task::SourceNext(flow));
                true
            }
            (Reply::Done, _) => true,
            // An earlier attempt was successful, or the receiver was removed meanwhile.
            (Reply::Refused(ProblemType::AlreadyCommitted, _), Step::Commit) => {
                state.is_committed = true;
                self.tasks.push(now, 0, Task::SourceNext(flow));
                true
            }
            (Reply::Refused(ProblemType::UnknownReceiver | ProblemType::TooFewReceivers, _), _) => true,
            (Reply::Refused(ProblemType::UnknownGroup, _), _) => return self.lost(flow),
            // The group that it was to resume has been closed by the operator.
            (Reply::Refused(ProblemType::GroupClosing, _), Step::Create) => return self.lost(flow),
            (Reply::Refused(ProblemType::GroupClosing | ProblemType::SourceEnded, _), _) => true,
            _ => state.attempts >= MAX_ATTEMPTS,
        };
        let state = &mut self.flows[flow];
        if is_done {
            // A commit whose nodes do not come back may be repeated without end.
            state.commits += u32::from(step == Step::Commit);
            if step != Step::Commit || state.commits <= MAX_COMMITS {
                self.last_request = now;
            }
            let is_gone = matches!(reply, Reply::Done | Reply::Refused(ProblemType::UnknownReceiver, _));
            if let Step::Leave(receiver) = step
                && is_gone
            {
                let left = state.participants.remove(&receiver);
                state.left.extend(left.map(|participant| (receiver, participant)));
            }
            state.steps.pop_front();
            state.attempts = 0;
            if let Step::Join(receiver) = step {
                self.note_reserved(flow, receiver);
            }
            self.tasks.push(now, 0, Task::Work(flow));
        } else {
            self.tasks.push(now.after_ns(RETRY_NS), 0, Task::Work(flow));
        }
    }

    /// The group has a former queue pair of a receiver that is to join: it leaves first, as the refusal says.
    fn leave_first(&mut self, flow: usize, receiver: usize) -> bool {
        let Some(core) = self.controller.as_ref().map(|controller| controller.core()) else { return false };
        let state = &mut self.flows[flow];
        let Some(id) = state.id.filter(|_| state.repeated_leaves < MAX_REPEATED_LEAVES) else { return false };
        let shown = adapter::shown_receiver(core, id, self.testbed.receiver_address(receiver));
        let must_leave = shown.is_some_and(|shown| {
            shown.state != ReceiverState::Leaving && state.left.iter().any(|(_, left)| left.qpn.get() == shown.qpn)
        });
        if must_leave {
            state.repeated_leaves += 1;
            state.steps.push_front(Step::Leave(receiver));
        }
        must_leave
    }

    /// The controller does not know the group any more: unless it was closed, the application creates it again.
    pub(crate) fn lost(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        if std::mem::replace(&mut state.is_over, true) {
            return;
        }
        state.end_source(&mut self.network);
        if state.is_closed {
            return;
        }
        let group = state.group;
        self.log(&format_args!("application of flow {flow}: the group is gone"));
        self.tasks.push(self.now().after_ns(RETRY_NS), 0, Task::Begin(group));
    }

    /// Receivers ask whether they are members; an aborted creation is requested again.
    pub(crate) fn poll_members(&mut self) {
        let Some(core) = self.controller.as_ref().map(|controller| controller.core()) else { return };
        let mut admitted = Vec::new();
        let (mut recommits, mut leaves) = (Vec::new(), Vec::new());
        for (number, flow) in self.flows.iter().enumerate().filter(|(_, flow)| !flow.is_over) {
            let Some(id) = flow.id else { continue };
            for (receiver, participant) in &flow.participants {
                let shown = adapter::shown_receiver(core, id, self.testbed.receiver_address(*receiver));
                let shown = shown.filter(|shown| shown.qpn == participant.qpn.get());
                if participant.connected.is_none()
                    && !participant.is_reporting
                    && let Some(shown) = shown
                    && shown.state == ReceiverState::Member
                {
                    admitted.push((number, *receiver, shown.joined_psn.unwrap_or(flow.first_psn)));
                }
            }
            // A restored store has receivers that left after its backup.
            for (receiver, participant) in &flow.left {
                let shown = adapter::shown_receiver(core, id, self.testbed.receiver_address(*receiver));
                let is_back = |shown: &srdma_api::Receiver| {
                    shown.qpn == participant.qpn.get() && shown.state == ReceiverState::Member
                };
                let may_leave = flow.steps.is_empty() && flow.repeated_leaves < MAX_REPEATED_LEAVES;
                if may_leave && self.faults.store_changed && shown.as_ref().is_some_and(is_back) {
                    leaves.push((number, *receiver));
                }
            }
            let is_open = adapter::shown_state(core, id) == Some(GroupState::Open);
            if is_open && flow.is_committed && flow.steps.is_empty() {
                let failure = adapter::shown_group(core, id).and_then(|group| group.failure);
                recommits.push((number, failure.is_some_and(|failure| !failure.is_empty())));
            }
        }
        for (flow, receiver, psn) in admitted {
            self.log(&format_args!("flow {flow}: receiver {receiver} is a member from PSN {psn} on"));
            if let Err(error) = self.flows[flow].connect(receiver, psn, &self.testbed, &mut self.network) {
                self.violation(ViolationKind::Setup, Finding::Unknown, flow, error.to_string());
            }
        }
        for (flow, receiver) in leaves {
            self.flows[flow].repeated_leaves += 1;
            self.flows[flow].steps.push_back(Step::Leave(receiver));
            self.tasks.push(self.now(), 0, Task::Work(flow));
        }
        for (flow, is_named) in recommits {
            if is_named {
                self.flows[flow].aborted = Some(self.now());
            }
            self.flows[flow].is_committed = false;
            self.flows[flow].steps.push_back(Step::Commit);
            self.tasks.push(self.now(), 0, Task::Work(flow));
        }
    }
}
