//! One run of a schedule: controller, store, agents, applications, and the data network, in one virtual time.
//!
//! ```text
//!   schedule ──► tasks ──► faults ──► data network: nodes, hosts, links
//!                  │                       ▲ commands      │ responses
//!   applications ◄─┼─► controller ◄─ management ─► agents  ▼
//!                  └─────────── checks ◄────────── capture, memory, API
//! ```

use crate::adapter;
use crate::adapter::{OrderName, Reply};
use crate::agent_host::AgentHost;
use crate::checks::Checks;
use crate::controller::{Controller, Output, PERIOD_NS, Party};
use crate::data_network::{DataNetwork, Peer};
use crate::flow::{Flow, MESSAGE_INTERVAL_NS};
use crate::management::Message;
use crate::operator::Operator;
use crate::outcome::{Finding, Outcome, Violation, ViolationKind};
use crate::phase::{Aimed, Phase};
use crate::reading::Tap;
use crate::schedule::{EtcdPlan, Schedule};
use crate::store::Store;
use srdma_chaos::address;
use srdma_group::Safeguard;
use srdma_random::Stream;
use srdma_sim::event_queue::EventQueue;
use srdma_sim::network::{ElementId, Network};
use srdma_sim::node_or_host::NodeOrHost;
use srdma_wire::Instant;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of frame pool chunks of each size.
const POOL_CHUNKS: usize = 1 << 14;

/// Interval of the checks, and of the receivers' polls.
pub(crate) const CHECK_INTERVAL_NS: u64 = 100_000_000;

/// After the last fault every group is ready or closed, or its failure names what is missing, within this time. It
/// covers the longest delay of an agent before it retries (5 s), detection (3 s), a silent source (4 s), and the
/// changes that follow.
pub const CONVERGENCE_NS: u64 = 18_000_000_000;

/// A node may differ from what the API shows of a ready group for this time: the controller's detection of a silent
/// node (3 s), the longest delay of an agent before it retries (5 s), and the exchange that follows.
pub const DETECTION_NS: u64 = 9_500_000_000;

/// The end of every run: events end before 25 s, the controllers and applications that follow them long before this.
const LATEST_END: Instant = Instant::from_ns(180_000_000_000);

/// A run ends early when all groups have been as they should be for this time.
const CALM_NS: u64 = 1_500_000_000;

thread_local! {
    /// The last run's network. Its memory is reused.
    static MEMORY: Cell<Option<Network<NodeOrHost>>> = const { Cell::new(None) };
}

/// Runs a schedule.
pub fn run(schedule: &Schedule) -> Outcome {
    run_with(schedule, None, false)
}

/// The same without a safeguard.
pub fn run_without(schedule: &Schedule, safeguard: Safeguard) -> Outcome {
    run_with(schedule, Some(safeguard), false)
}

/// Runs a schedule and records its timeline.
pub fn run_with_timeline(schedule: &Schedule) -> Outcome {
    run_with(schedule, None, true)
}

fn run_with(schedule: &Schedule, without: Option<Safeguard>, keeps_timeline: bool) -> Outcome {
    let mut network = MEMORY.take().unwrap_or_else(|| Network::new(0, POOL_CHUNKS));
    network.reset(schedule.seed);
    match World::new(schedule, network, without, keeps_timeline) {
        Ok(mut world) => {
            world.run();
            let (outcome, network) = world.finish();
            MEMORY.set(Some(network));
            outcome
        }
        Err(error) => {
            let (kind, finding) = (ViolationKind::Setup, Finding::Unknown);
            let violation = Violation { at_ns: 0, kind, finding, text: error.to_string() };
            Outcome { violations: vec![violation], ..Outcome::default() }
        }
    }
}

/// A scheduled action.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Task {
    /// The schedule's event at this position.
    Event(usize),
    /// The application of a group begins.
    Begin(usize),
    /// The next process of a source that has died resumes its group: that of this flow.
    Resume(usize),
    EndRandomFaults,
    /// A message arrives.
    Arrive(usize),
    /// The present write of this start of the controller is durable.
    Written(u32),
    /// Detection and retransmission of this start of the controller.
    Period(u32),
    /// A poll at this start of the controller may end.
    Wake(u32),
    /// A crash that was to come after some writes comes now.
    CrashController,
    RestartController,
    /// A former leader learns that it is none.
    EndFormer(u32),
    /// The next request of an agent, at its incarnation.
    AgentNext(usize, u32),
    /// The next order of an agent.
    AgentExecute(usize, u32),
    /// A paused agent goes on.
    AgentRead(usize, u32),
    /// A request is given up by its sender.
    GiveUp(Party, u64),
    /// The next request of a flow's source.
    SourceNext(usize),
    /// The next request of a flow's application.
    Work(usize),
    Post(usize),
    RestartNode(usize),
    RepairLink(usize, usize),
    /// The sessions of a link are looked at.
    Session(usize, usize),
    /// A session passes again.
    EndBreak(usize, usize),
    RepairReceiver(usize),
    RepairSource(usize),
    Undrain(usize),
    Operate,
    Check,
}

pub(crate) struct World<'s> {
    pub(crate) schedule: &'s Schedule,
    pub(crate) network: Network<NodeOrHost>,
    pub(crate) testbed: DataNetwork,
    pub(crate) tasks: EventQueue<Task>,
    pub(crate) rng: Stream,
    pub(crate) store: Store,
    pub(crate) controller: Option<Controller>,
    /// A controller that is no longer the leader, and does not know.
    pub(crate) former: Option<Controller>,
    pub(crate) starts: u32,
    /// A crash that waits for so many durable writes, and what follows it.
    pub(crate) crash: Option<crate::faults::Crash>,
    pub(crate) rebuilds: Option<u64>,
    pub(crate) clock_ms: i64,
    pub(crate) agents: Vec<AgentHost>,
    pub(crate) flows: Vec<Flow>,
    /// The present flow of each group.
    pub(crate) flow_of: Vec<Option<usize>>,
    pub(crate) messages: Vec<Option<Message>>,
    pub(crate) calls: u64,
    pub(crate) next_qpn: u32,
    pub(crate) faults: crate::faults::Faults,
    pub(crate) operator: Operator,
    /// Of each link of a source: its group, the node at its other end, and what has passed.
    pub(crate) taps: Vec<(usize, usize, Tap)>,
    pub(crate) checks: Checks,
    /// Events that wait for a phase.
    pub(crate) aimed: Vec<Aimed>,
    /// The last known activity of a change of each group.
    pub(crate) activity: BTreeMap<u32, Phase>,
    pub(crate) outcome: Outcome,
    digest: DefaultHasher,
    last_event: Instant,
    /// The last time at which an application's request was accepted or given up.
    pub(crate) last_request: Instant,
    keeps_timeline: bool,
}

impl<'s> World<'s> {
    fn new(
        schedule: &'s Schedule,
        mut network: Network<NodeOrHost>,
        without: Option<Safeguard>,
        keeps_timeline: bool,
    ) -> Result<Self, Box<dyn Error>> {
        schedule.check()?;
        let testbed = DataNetwork::new(schedule, without, &mut network)?;
        let mut taps = Vec::new();
        for (group, links) in testbed.source_links.iter().enumerate() {
            for (link, node) in links.iter().zip(testbed.headends()) {
                let tap = Tap::default();
                network.capture(*link, Box::new(tap.clone()), "down", "up")?;
                taps.push((group, node, tap));
            }
        }
        testbed.set_loss(&mut network, schedule.data_loss_ppm);
        let agents = (0..schedule.nodes()).map(|node| AgentHost::new(testbed.group_table(node), 0));
        let mut world = World {
            agents: agents.collect(),
            schedule,
            network,
            tasks: EventQueue::new(),
            rng: Stream::new(schedule.seed, "cluster world"),
            store: Store::new(schedule),
            controller: None,
            former: None,
            starts: 0,
            crash: None,
            rebuilds: None,
            clock_ms: 0,
            flows: Vec::new(),
            flow_of: vec![None; schedule.groups.len()],
            messages: Vec::new(),
            calls: 0,
            next_qpn: 0x2000,
            faults: crate::faults::Faults::new(schedule),
            operator: Operator::new(schedule.seed),
            taps,
            checks: Checks::default(),
            aimed: Vec::new(),
            activity: BTreeMap::new(),
            outcome: Outcome::default(),
            digest: DefaultHasher::new(),
            last_request: Instant::ZERO,
            last_event: Instant::from_ns(schedule.events.last().map_or(0, |timed| timed.at_ns)),
            keeps_timeline,
            testbed,
        };
        world.schedule_tasks();
        world.start_controller();
        Ok(world)
    }

    fn schedule_tasks(&mut self) {
        for (position, timed) in self.schedule.events.iter().enumerate() {
            self.tasks.push(Instant::from_ns(timed.at_ns), 0, Task::Event(position));
        }
        for (group, plan) in self.schedule.groups.iter().enumerate() {
            self.tasks.push(Instant::from_ns(plan.at_ns), 0, Task::Begin(group));
        }
        for node in 0..self.agents.len() {
            self.tasks.push(Instant::from_ns(1_000_000 * node as u64), 0, Task::AgentNext(node, 0));
        }
        for (upper, lower) in self.schedule.links() {
            self.note_session(upper, lower);
        }
        self.tasks.push(Instant::from_ns(self.schedule.faults_end_ns), 0, Task::EndRandomFaults);
        self.tasks.push(Instant::from_ns(CHECK_INTERVAL_NS), 0, Task::Check);
        self.tasks.push(Instant::from_ns(CHECK_INTERVAL_NS), 0, Task::Operate);
    }

    pub(crate) fn now(&self) -> Instant {
        self.network.now()
    }

    fn run(&mut self) {
        loop {
            // An application repeats what is refused, so that its last request may follow long after the last event.
            let deadline = self.faults_end().max(self.last_request).after_ns(CONVERGENCE_NS);
            if !self.advance(deadline) || self.is_calm() {
                return;
            }
            if self.now() > LATEST_END {
                let text = "applications or controllers go on for ever".to_owned();
                return self.violation(ViolationKind::Convergence, Finding::Unknown, 0, text);
            }
        }
    }

    /// The end of all faults and requests so far.
    pub(crate) fn faults_end(&self) -> Instant {
        let begins = self.schedule.groups.iter().map(|group| group.at_ns).max().unwrap_or(0);
        let random = if self.has_random_faults() { self.schedule.faults_end_ns } else { 0 };
        self.faults.until.max(self.last_event).max(Instant::from_ns(begins.max(random)))
    }

    fn has_random_faults(&self) -> bool {
        let management = &self.schedule.management;
        let data = self.schedule.data_loss_ppm;
        let is_etcd_rough = self.schedule.etcd.as_ref().is_some_and(EtcdPlan::is_rough);
        data + management.loss_ppm + management.duplicate_ppm + management.late_ppm > 0 || is_etcd_rough
    }

    fn is_calm(&self) -> bool {
        let since = self.faults_end();
        self.checks.calm_since.is_some_and(|calm| self.now() >= calm.max(since).after_ns(CALM_NS))
    }

    /// Processes the next event or task until `limit`; returns whether there was one.
    fn advance(&mut self, limit: Instant) -> bool {
        let next = self.tasks.next_time().filter(|next| *next <= limit);
        match self.network.step(next.unwrap_or(limit)) {
            Some(element) => self.observe(element),
            None => {
                self.network.advance_to(next.unwrap_or(limit));
                let Some((_, task)) = next.and_then(|next| self.tasks.pop_until(next)) else { return false };
                self.perform(task);
                self.fire();
            }
        }
        true
    }

    fn observe(&mut self, element: ElementId) {
        match self.testbed.peer(element) {
            Peer::Node(node) => {
                let host = &mut self.agents[node];
                let events = self.network.with_workers(element, |worker| worker.take_events().collect::<Vec<_>>());
                host.observe(events.into_iter().flatten());
            }
            Peer::Receiver(receiver) => {
                self.check_memory(receiver);
                self.check_copies(receiver);
            }
            Peer::Source(_) => {}
        }
        self.check_responses();
    }

    fn perform(&mut self, task: Task) {
        (self.now().as_ns(), task).hash(&mut self.digest);
        match task {
            Task::Event(position) => match self.schedule.events[position].phase {
                Some(phase) => self.aim(position, phase),
                None => self.apply_event(position),
            },
            Task::Begin(group) => self.begin(group),
            Task::Resume(flow) => self.resume(flow),
            Task::EndRandomFaults => self.end_random_faults(),
            Task::Arrive(number) => self.arrive(number),
            Task::Written(run) => self.written(run),
            Task::Period(run) => {
                let now = self.now();
                self.renew_leadership(run);
                self.with_controller(run, |controller, out| controller.period(now, out));
                if self.is_running(run) {
                    self.tasks.push(now.after_ns(PERIOD_NS), 0, Task::Period(run));
                }
            }
            Task::Wake(run) => {
                let now = self.now();
                self.with_controller(run, |controller, out| controller.settle(now, out));
            }
            Task::CrashController => self.crash_controller(),
            Task::EndFormer(run) => self.end_former(run),
            Task::RestartController => self.start_controller(),
            Task::AgentNext(node, incarnation) => self.agent_next(node, incarnation),
            Task::AgentExecute(node, incarnation) => self.agent_execute(node, incarnation),
            Task::AgentRead(node, incarnation) => self.agent_read(node, incarnation),
            Task::GiveUp(party, call) => self.give_up(party, call),
            Task::SourceNext(flow) => self.source_next(flow),
            Task::Work(flow) => self.work(flow),
            Task::Post(flow) => {
                self.flows[flow].post(&mut self.network);
                if !self.flows[flow].is_over {
                    self.tasks.push(self.now().after_ns(MESSAGE_INTERVAL_NS), 0, Task::Post(flow));
                }
            }
            Task::RestartNode(node) => self.restart_node(node),
            Task::RepairLink(upper, lower) => self.update_link(upper, lower),
            Task::Session(upper, lower) => self.session(upper, lower),
            Task::EndBreak(upper, lower) => self.note_session(upper, lower),
            Task::RepairReceiver(receiver) => self.update_receiver(receiver),
            Task::RepairSource(source) => self.update_source(source),
            Task::Undrain(node) => self.drain(node, false),
            Task::Operate => self.operate(),
            Task::Check => {
                self.check_all();
                self.tasks.push(self.now().after_ns(CHECK_INTERVAL_NS), 0, Task::Check);
            }
        }
    }

    /// Lets `act` change the controller, if this start of it still runs, and carries out what it asks.
    pub(crate) fn with_controller(&mut self, run: u32, act: impl FnOnce(&mut Controller, &mut Vec<Output>)) {
        let mut out = Vec::new();
        let running = [&mut self.controller, &mut self.former].into_iter().flatten();
        if let Some(controller) = running.into_iter().find(|controller| controller.run == run) {
            act(controller, &mut out);
        }
        self.carry_out_outputs(run, out);
    }

    pub(crate) fn carry_out_outputs(&mut self, run: u32, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Reply(caller, reply) => {
                    let is_leader = self.controller.as_ref().is_some_and(|controller| controller.run == run);
                    if let (true, Party::Node(node), Reply::Session(_)) = (is_leader, caller.party, &reply) {
                        self.faults.is_registered[node] = true;
                        self.checks.orders.registered(node);
                        self.log(&format_args!("n{node} has registered"));
                    }
                    self.send_reply(caller, reply);
                }
                Output::Write => {
                    let delay_ns = self.schedule.store_delay_ns / 2 + self.rng.below(self.schedule.store_delay_ns);
                    self.tasks.push(self.now().after_ns(delay_ns), 0, Task::Written(run));
                }
                Output::WakeAt(at) => self.tasks.push(at, 0, Task::Wake(run)),
                Output::Orders { node, orders } => {
                    let is_leader = self.controller.as_ref().is_some_and(|controller| controller.run == run);
                    let ordered = address::node_of(node, self.agents.len()).filter(|_| is_leader);
                    for order @ OrderName { group, phase, .. } in orders {
                        self.activity.insert(group, phase);
                        self.count(phase.name());
                        self.log(&format_args!("order to {node}: group {group} {}", phase.name()));
                        if let Some(ordered) = ordered {
                            self.checks.orders.sent(ordered, order, self.network.now());
                        }
                    }
                }
                Output::Stored(id) => {
                    self.activity.insert(id, Phase::Storing);
                }
            }
        }
    }

    fn finish(mut self) -> (Outcome, Network<NodeOrHost>) {
        self.check_end();
        self.check_store();
        let dead: Vec<Option<u32>> = self.flows.iter().filter(|flow| flow.has_died).map(|flow| flow.id).collect();
        self.count_repairs(|id| !dead.contains(&Some(id)));
        self.count_passed_on();
        self.outcome.ended_ns = self.now().as_ns();
        self.outcome.hops = self.network.hops();
        self.outcome.violations.iter().for_each(|violation| violation.text.hash(&mut self.digest));
        self.network.hops().hash(&mut self.digest);
        self.outcome.digest = self.digest.finish();
        (self.outcome, self.network)
    }

    /// Adds what nodes have passed on to each other (D281, D290).
    fn count_passed_on(&mut self) {
        let elements = self.testbed.nodes.iter();
        let workers = elements.flat_map(|element| self.network.workers(*element)).flat_map(|node| node.shared_hosts());
        let times: u64 = workers.map(|(_, passed_on, _)| passed_on.frames).sum();
        if times > 0 {
            *self.outcome.counts.entry("packet passed on").or_default() += times;
        }
    }

    /// Adds what groups that nodes have were repaired: at the end, or at the death of a source.
    pub(crate) fn count_repairs(&mut self, is_meant: impl Fn(u32) -> bool) {
        for element in &self.testbed.nodes {
            let workers = self.network.workers(*element).iter();
            let owned = workers.flat_map(|worker| worker.owned_groups().map(move |id| (worker, id)));
            for counters in owned.filter(|(_, id)| is_meant(id.0)).filter_map(|(worker, id)| worker.repair_counters(id))
            {
                let counts = [
                    ("packet resent", counters.packets_resent),
                    ("repair request", counters.requests_sent),
                    ("gap given up", counters.gaps_given_up),
                    ("window exceeded", counters.windows_exceeded),
                ];
                for (name, times) in counts.into_iter().filter(|(_, times)| *times > 0) {
                    *self.outcome.counts.entry(name).or_default() += times;
                }
            }
        }
    }

    /// Records a violation. Each kind is recorded once for each finding and group.
    pub(crate) fn violation(&mut self, kind: ViolationKind, finding: Finding, subject: usize, text: String) {
        if self.checks.reported.insert((kind, finding, subject)) {
            let at_ns = self.now().as_ns();
            self.log(&format_args!("VIOLATION {} ({}): {text}", kind.name(), finding.name()));
            self.log_state();
            self.outcome.violations.push(Violation { at_ns, kind, finding, text });
        }
    }

    /// Adds the groups as the API shows them, and each node's branches, to the timeline, at a violation.
    fn log_state(&mut self) {
        if !self.keeps_timeline {
            return;
        }
        let views: Vec<_> = (0..self.flows.len()).filter_map(|flow| self.view(flow)).collect();
        for group in views {
            let (id, state) = (group.summary.id, group.summary.state);
            self.log(&format_args!("group {id} is {state:?}, awaits {:?}, failure {:?}", group.awaited, group.failure));
            for member in &group.members {
                self.log(&format_args!("group {id} has {member:?}"));
            }
        }
        for number in 0..self.agents.len() {
            let workers = self.network.workers(self.testbed.nodes[number]);
            for status in adapter::status(&self.agents[number].agent, workers).groups {
                self.log(&format_args!("n{number} has {status:?}"));
            }
        }
    }

    pub(crate) fn log(&mut self, what: &dyn Display) {
        if self.keeps_timeline {
            let line = format!("{:>11.3} ms  {what}", self.network.now().as_ns() as f64 / 1e6);
            self.outcome.timeline.push(line);
        }
    }

    pub(crate) fn count(&mut self, name: &'static str) {
        self.outcome.events += 1;
        *self.outcome.counts.entry(name).or_default() += 1;
    }
}
