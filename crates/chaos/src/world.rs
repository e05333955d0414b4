//! One run of a schedule: the network, its faults, and the checks.
//!
//! ```text
//!   schedule ──► tasks ───► faults ──────► network: nodes, hosts, links
//!                   ▲          │               │ responses, completions     │ eviction requests
//!                   │          ▼               ▼                            ▼
//!                   └──── membership ◄────── flows: checkers ──► outcome
//! ```

use crate::agent::Agent;
use crate::channel::Message;
use crate::faults::{NodeState, ReceiverState};
use crate::flow::{Flow, Observed};
use crate::membership::Control;
use crate::outcome::{Outcome, Violation, ViolationKind};
use crate::scale::{self, Scale};
use crate::schedule::{Event, LinkPlan, Schedule};
use crate::testbed::Testbed;
use srdma_random::Stream;
use srdma_sim::event_queue::EventQueue;
use srdma_sim::network::{ElementId, Network};
use srdma_sim::node_or_host::NodeOrHost;
use srdma_sim::timing::Timing;
use srdma_wire::Instant;
use std::cell::Cell;
use std::error::Error;
use std::fmt::Display;

/// Maximum number of frame pool chunks of each size: far more than any schedule needs.
const POOL_CHUNKS: usize = 1 << 16;

/// After the end of all faults a group must complete within this many ACK timeouts, plus the time for its data.
const COMPLETION_ACK_TIMEOUTS: u64 = 24;

/// A source that gives up does so within this many ACK timeouts of its first unsuccessful attempt.
pub(crate) const RETRY_ACK_TIMEOUTS: u64 = 10;

/// Time for outstanding frames to arrive at the end, in ACK timeouts.
const LAST_FRAMES_ACK_TIMEOUTS: u64 = 64;

thread_local! {
    /// The last run's network. Its memory is reused.
    static MEMORY: Cell<Option<Network<NodeOrHost>>> = const { Cell::new(None) };
}

/// Runs a schedule.
pub fn run(schedule: &Schedule) -> Outcome {
    run_with(schedule, false)
}

/// Runs a schedule and records its timeline.
pub fn run_with_timeline(schedule: &Schedule) -> Outcome {
    run_with(schedule, true)
}

fn run_with(schedule: &Schedule, keeps_timeline: bool) -> Outcome {
    let mut network = MEMORY.take().unwrap_or_else(|| Network::new(0, POOL_CHUNKS));
    network.reset(schedule.seed);
    match World::new(schedule, network, keeps_timeline) {
        Ok(mut world) => {
            world.run();
            let (outcome, network) = world.finish();
            MEMORY.set(Some(network));
            outcome
        }
        Err(error) => {
            let violation = Violation { at_ns: 0, kind: ViolationKind::Setup, text: error.to_string() };
            Outcome { violations: vec![violation], ..Outcome::default() }
        }
    }
}

/// A scheduled action.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// The schedule's event at this position.
    Event(usize),
    Start(usize),
    /// Random link faults end.
    EndRandomFaults,
    /// Restarts a node unless it is to stay down longer.
    RestartNode(usize),
    /// A link above a node may have recovered.
    RepairNode(usize),
    /// A receiver may have recovered.
    RepairReceiver(usize),
    /// The congestion of a receiver's link may be over.
    EndCongestion(usize),
    /// Delivers a message of the control plane.
    Deliver(usize),
    /// Retransmits a group's orders without reply.
    Retransmit(usize),
    /// Detects the failure of a node that went down in this incarnation.
    DetectFailure {
        node: usize,
        incarnation: u32,
    },
}

/// A running schedule.
pub(crate) struct World<'s> {
    pub(crate) schedule: &'s Schedule,
    pub(crate) network: Network<NodeOrHost>,
    pub(crate) testbed: Testbed,
    pub(crate) flows: Vec<Flow<'s>>,
    pub(crate) tasks: EventQueue<Task>,
    pub(crate) nodes: Vec<NodeState>,
    pub(crate) receivers: Vec<ReceiverState>,
    pub(crate) rng: Stream,
    pub(crate) outcome: Outcome,
    /// Latest end of the faults that have begun.
    pub(crate) faults_until: Instant,
    /// Start of the latest fault.
    pub(crate) last_fault_at: Instant,
    /// For each group, the ends of faults since its last progress.
    pub(crate) recovering_since: Vec<Vec<Instant>>,
    /// Receivers that have been sent nothing since their death, with the frames their links had dropped before.
    pub(crate) dead_unanswered: Vec<(usize, u64)>,
    pub(crate) controls: Vec<Control>,
    pub(crate) agents: Vec<Agent>,
    /// Messages on the channel, with their groups.
    pub(crate) messages: Vec<Option<(usize, Message)>>,
    pub(crate) random_faults_end: Instant,
    pub(crate) scale: Scale,
    /// Whether any group evicts receivers.
    evicts: bool,
    /// Each source with its groups.
    sources: Vec<(ElementId, Vec<usize>)>,
    keeps_timeline: bool,
}

impl<'s> World<'s> {
    pub(crate) fn new(
        schedule: &'s Schedule,
        mut network: Network<NodeOrHost>,
        keeps_timeline: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let timing = scale::timing(schedule);
        let testbed = Testbed::new(schedule, &mut network)?;
        let sources = testbed.sources.iter().enumerate().map(|(source, element)| {
            let groups = (0..schedule.groups.len()).filter(|group| schedule.groups[*group].source == source);
            (*element, groups.collect())
        });
        let mut world = World {
            schedule,
            flows: Vec::new(),
            tasks: EventQueue::new(),
            nodes: schedule.nodes.iter().map(NodeState::new).collect(),
            receivers: vec![ReceiverState::default(); schedule.receivers.len()],
            rng: Stream::new(schedule.seed, "world"),
            outcome: Outcome::default(),
            faults_until: Instant::ZERO,
            last_fault_at: Instant::ZERO,
            recovering_since: vec![Vec::new(); schedule.groups.len()],
            dead_unanswered: Vec::new(),
            controls: Vec::new(),
            agents: vec![Agent::default(); schedule.nodes.len()],
            messages: Vec::new(),
            random_faults_end: Instant::ZERO,
            scale: Scale::of(schedule),
            evicts: schedule.groups.iter().any(|group| group.policy.evict),
            sources: sources.collect(),
            keeps_timeline,
            testbed,
            network,
        };
        world.schedule_tasks();
        world.set_up_groups(timing)?;
        Ok(world)
    }

    fn schedule_tasks(&mut self) {
        for (group, plan) in self.schedule.groups.iter().enumerate() {
            self.tasks.push(Instant::from_ns(plan.start_ns), 0, Task::Start(group));
        }
        for (position, timed) in self.schedule.events.iter().enumerate() {
            self.tasks.push(Instant::from_ns(timed.at_ns), 0, Task::Event(position));
        }
        if self.schedule.link.faults().next().is_some() {
            self.tasks.push(Instant::from_ns(self.schedule.faults_end_ns), 0, Task::EndRandomFaults);
            self.random_faults_end = Instant::from_ns(self.schedule.faults_end_ns);
            self.faults_until = self.random_faults_end;
        }
    }

    fn set_up_groups(&mut self, timing: Timing) -> Result<(), Box<dyn Error>> {
        for number in 0..self.schedule.groups.len() {
            let flow = Flow::new(self.schedule, number, timing, &self.testbed, &mut self.network)?;
            let record = flow.first_record(self.schedule, &self.testbed)?;
            let control = self.create_group(record)?;
            self.flows.push(flow);
            self.controls.push(control);
            self.commit_immediately(number);
        }
        Ok(())
    }

    /// Runs until all groups have finished or the deadline has passed.
    pub(crate) fn run(&mut self) {
        while !self.is_finished() && self.advance(self.deadline()) {}
    }

    #[cfg(test)]
    pub(crate) fn run_until(&mut self, time: Instant) {
        while self.advance(time) {}
    }

    /// Processes the next event or task until `limit`; returns whether there was one.
    fn advance(&mut self, limit: Instant) -> bool {
        let has_advanced = self.advance_by(limit, |_| true);
        if !self.dead_unanswered.is_empty() {
            self.check_dead_receivers();
        }
        has_advanced
    }

    /// The same; only tasks of this kind are performed.
    fn advance_by(&mut self, limit: Instant, is_wanted: impl Fn(&Task) -> bool) -> bool {
        let next = self.tasks.next_time().filter(|next| *next <= limit);
        match self.network.step(next.unwrap_or(limit)) {
            Some(element) => self.observe(element),
            None => {
                self.network.advance_to(next.unwrap_or(limit));
                let Some((_, task)) = next.and_then(|next| self.tasks.pop_until(next)) else {
                    return false;
                };
                if is_wanted(&task) {
                    self.perform(task);
                }
            }
        }
        true
    }

    /// The time by which every group must have finished, unless a fault explains otherwise.
    fn deadline(&self) -> Instant {
        let Scale { ack_timeout_ns, handovers_ns, transfer_ns, .. } = self.scale;
        let allowance_ns = COMPLETION_ACK_TIMEOUTS * (ack_timeout_ns + handovers_ns) + 4 * transfer_ns;
        let last_event = self.schedule.events.last().map_or(0, |timed| timed.at_ns);
        self.faults_and_starts_end().max(Instant::from_ns(last_event)).after_ns(allowance_ns)
    }

    fn faults_and_starts_end(&self) -> Instant {
        let starts = self.schedule.groups.iter().map(|group| group.start_ns).max().unwrap_or(0);
        self.faults_until.max(Instant::from_ns(starts))
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Event(position) => {
                let event: &'s Event = &self.schedule.events[position].event;
                self.apply_event(event);
            }
            Task::Start(group) => self.start(group),
            Task::EndRandomFaults => {
                let link = &self.schedule.link;
                self.testbed
                    .set_link_faults(&mut self.network, &LinkPlan::without_faults(link.rate_bits_per_s, link.delay_ns));
                self.log(&"random link faults end");
            }
            Task::RestartNode(node) => self.restart_node(node),
            Task::RepairNode(node) => {
                self.update_node_links(node);
                self.node_recovered(node);
            }
            Task::RepairReceiver(receiver) => {
                self.update_receiver_faults(receiver);
                self.slow_receiver_recovers(receiver);
            }
            Task::EndCongestion(receiver) => self.update_receiver_faults(receiver),
            Task::Deliver(message) => self.deliver(message),
            Task::Retransmit(group) => self.repeat(group),
            Task::DetectFailure { node, incarnation } => self.detect_failure(node, incarnation),
        }
    }

    /// Processes what an element has produced after an event.
    #[inline]
    pub(crate) fn observe(&mut self, element: ElementId) {
        if let Some(source) = self.sources.iter().position(|(id, _)| *id == element)
            && self.network.host(element).is_some_and(srdma_sim::host::Host::has_responses_or_completions)
        {
            self.observe_source(source);
        }
        if self.evicts
            && let Some(node) = self.testbed.nodes.iter().position(|id| *id == element)
        {
            self.forward_eviction_requests(node);
        }
    }

    fn observe_source(&mut self, source: usize) {
        let (element, groups) = (self.sources[source].0, std::mem::take(&mut self.sources[source].1));
        let received = self.network.with_host(element, |host| {
            (host.take_responses().collect::<Vec<_>>(), host.take_completions().collect::<Vec<_>>())
        });
        let now = self.network.now();
        let (responses, completions) = received.unwrap_or_default();
        for number in &groups {
            self.note_deceived(*number);
            let flow = &mut self.flows[*number];
            let qpn = flow.qpn;
            let mut observed = Observed::default();
            for response in responses.iter().filter(|response| response.qpn == qpn) {
                flow.on_response(*response, &self.testbed, &self.network, &mut observed);
            }
            for completion in completions.iter().filter(|completion| completion.qpn == qpn) {
                flow.on_completion(completion, now, &mut observed);
            }
            if observed.progress {
                self.record_recoveries(*number);
            }
            self.outcome.violations.append(&mut observed.violations);
            self.report_quiescence(*number);
        }
        self.sources[source].1 = groups;
    }

    /// Records the time from the end of a fault to the next progress, if no other fault occurred meanwhile.
    fn record_recoveries(&mut self, group: usize) {
        let now = self.network.now();
        let recovering_since = std::mem::take(&mut self.recovering_since[group]);
        for at in recovering_since {
            if self.faults_until <= at && self.last_fault_at < at {
                self.flows[group].recoveries_ns.push(now.since(at).as_nanos() as u64);
            }
        }
    }

    /// Lets outstanding frames arrive and performs the final checks.
    pub(crate) fn finish(mut self) -> (Outcome, Network<NodeOrHost>) {
        let ended = self.network.now();
        self.outcome.ended_ns = ended.as_ns();
        self.check_progress(ended);
        let last = ended.after_ns(LAST_FRAMES_ACK_TIMEOUTS * self.scale.ack_timeout_ns);
        // Changes come into effect and receivers recover; no other fault begins or ends.
        let is_wanted = |task: &Task| matches!(task, Task::Deliver(_) | Task::RepairReceiver(_));
        while self.advance_by(last.max(self.faults_until), is_wanted) {}
        let mut observed = Observed::default();
        for flow in &self.flows {
            flow.check_data(&self.testbed, &self.network, &mut observed);
        }
        self.outcome.violations.append(&mut observed.violations);
        let deceived = self.flows.iter().map(|flow| flow.members_deceived(&self.testbed, &self.network)).sum();
        self.count("members deceived", deceived);
        if self.is_finished() {
            self.check_for_leaks();
        }
        self.count_links();
        self.count_drops();
        self.outcome.hops = self.network.hops();
        self.outcome.groups = self.flows.iter().map(|flow| flow.outcome(&self.network)).collect();
        (self.outcome, self.network)
    }

    pub(crate) fn violation(&mut self, kind: ViolationKind, text: String) {
        let at_ns = self.network.now().as_ns();
        self.outcome.violations.push(Violation { at_ns, kind, text });
    }

    pub(crate) fn log(&mut self, what: &dyn Display) {
        if self.keeps_timeline {
            let line = format!("{:>12} ns  {what}", self.network.now().as_ns());
            self.outcome.timeline.push(line);
        }
    }

    pub(crate) fn count(&mut self, fault: &'static str, times: u64) {
        if times > 0 {
            *self.outcome.faults.entry(fault).or_default() += times;
        }
    }
}
