//! One run of a schedule: the network, what happens to it, and what is checked while it does.
//!
//! ```text
//!   schedule ──► agenda ──► faults ──────► network: nodes, hosts, links
//!                   ▲          │               │ responses, completions     │ evictions wanted
//!                   │          ▼               ▼                            ▼
//!                   └──── membership ◄────── flows: checkers ──► outcome
//! ```

use crate::agenda::Agenda;
use crate::agent::Agent;
use crate::channel::Message;
use crate::faults::{NodeState, ReceiverState};
use crate::flow::{Flow, Seen};
use crate::membership::Control;
use crate::outcome::{Complaint, ComplaintKind, Outcome};
use crate::scale::{self, Scale};
use crate::schedule::{Event, LinkPlan, Schedule};
use crate::site::Site;
use srdma_sim::network::{ElementId, Network};
use srdma_sim::random::Stream;
use srdma_sim::station::Member;
use srdma_sim::timing::Timing;
use srdma_wire::Instant;
use std::cell::Cell;
use std::error::Error;
use std::fmt::Display;

/// Chunks of the frames' pool, of each size, at most: far more than any schedule needs.
const POOL_CHUNKS: usize = 1 << 16;

/// After all faults have ended, a group has so many ACK timeouts to complete in, besides what its data take.
const PATIENCE_ACK_TIMEOUTS: u64 = 24;

/// A source that gives up does so within so many ACK timeouts of the first that was in vain.
pub(crate) const RETRY_ACK_TIMEOUTS: u64 = 10;

/// How long frames may be on their way after everything has ended, in ACK timeouts.
const LAST_FRAMES_ACK_TIMEOUTS: u64 = 64;

thread_local! {
    /// The last run's network, for its memory.
    static MEMORY: Cell<Option<Network<Member>>> = const { Cell::new(None) };
}

/// Runs a schedule.
pub fn run(schedule: &Schedule) -> Outcome {
    run_with(schedule, false)
}

/// Runs a schedule, and tells what happens.
pub fn tell(schedule: &Schedule) -> Outcome {
    run_with(schedule, true)
}

fn run_with(schedule: &Schedule, tells: bool) -> Outcome {
    let mut network = MEMORY.take().unwrap_or_else(|| Network::new(0, POOL_CHUNKS));
    network.reset(schedule.seed);
    match World::new(schedule, network, tells) {
        Ok(mut world) => {
            world.run();
            let (outcome, network) = world.finish();
            MEMORY.set(Some(network));
            outcome
        }
        Err(error) => {
            let complaint = Complaint { at_ns: 0, kind: ComplaintKind::SetUp, text: error.to_string() };
            Outcome { complaints: vec![complaint], ..Outcome::default() }
        }
    }
}

/// Something to do at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// The schedule's event at a position.
    Event(usize),
    /// A group's source begins.
    Start(usize),
    /// Links have no faults of chance any more.
    ChancesEnd,
    /// A node that went down may come back.
    NodeBack(usize),
    /// The links above a node may be whole again.
    MendNode(usize),
    /// A receiver may be well again.
    MendReceiver(usize),
    /// A receiver's link may have room again.
    EndCongestion(usize),
    /// A message of the control plane arrives.
    Deliver(usize),
    /// What a group's control plane ordered and has no answer to is ordered again.
    Repeat(usize),
    /// A node that went down in this incarnation is missed.
    Miss { node: usize, incarnation: u32 },
}

/// A schedule that runs.
pub(crate) struct World<'s> {
    pub(crate) schedule: &'s Schedule,
    pub(crate) network: Network<Member>,
    pub(crate) site: Site,
    pub(crate) flows: Vec<Flow<'s>>,
    pub(crate) agenda: Agenda<Task>,
    pub(crate) nodes: Vec<NodeState>,
    pub(crate) receivers: Vec<ReceiverState>,
    pub(crate) chance: Stream,
    pub(crate) outcome: Outcome,
    /// No trouble lasts longer, of those that have begun.
    pub(crate) trouble_until: Instant,
    /// When the last trouble began.
    pub(crate) trouble_began: Instant,
    /// Since when each node's comeback waits for progress, by group.
    pub(crate) comebacks: Vec<Vec<Instant>>,
    /// Receivers that died and were sent nothing since, with the frames that had not reached them before.
    pub(crate) dying: Vec<(usize, u64)>,
    pub(crate) controls: Vec<Control>,
    pub(crate) agents: Vec<Agent>,
    /// Messages of the control plane on their way, with their groups.
    pub(crate) messages: Vec<Option<(usize, Message)>>,
    /// From then on no chance does anything.
    pub(crate) chances_end: Instant,
    pub(crate) scale: Scale,
    /// Whether edges may have wishes.
    evicts: bool,
    /// Each source, and which groups are its.
    sources: Vec<(ElementId, Vec<usize>)>,
    tells: bool,
}

impl<'s> World<'s> {
    pub(crate) fn new(
        schedule: &'s Schedule,
        mut network: Network<Member>,
        tells: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let timing = scale::timing(schedule);
        let site = Site::new(schedule, &mut network)?;
        let sources = site.sources.iter().enumerate().map(|(source, element)| {
            let groups = (0..schedule.groups.len()).filter(|group| schedule.groups[*group].source == source);
            (*element, groups.collect())
        });
        let mut world = World {
            schedule,
            flows: Vec::new(),
            agenda: Agenda::new(),
            nodes: schedule.nodes.iter().map(NodeState::new).collect(),
            receivers: vec![ReceiverState::default(); schedule.receivers.len()],
            chance: Stream::new(schedule.seed, "world"),
            outcome: Outcome::default(),
            trouble_until: Instant::ZERO,
            trouble_began: Instant::ZERO,
            comebacks: vec![Vec::new(); schedule.groups.len()],
            dying: Vec::new(),
            controls: Vec::new(),
            agents: vec![Agent::default(); schedule.nodes.len()],
            messages: Vec::new(),
            chances_end: Instant::ZERO,
            scale: Scale::of(schedule),
            evicts: schedule.groups.iter().any(|group| group.policy.evict),
            sources: sources.collect(),
            tells,
            site,
            network,
        };
        world.note_schedule();
        world.set_up_groups(timing)?;
        Ok(world)
    }

    fn note_schedule(&mut self) {
        for (group, plan) in self.schedule.groups.iter().enumerate() {
            self.agenda.note(Instant::from_ns(plan.start_ns), Task::Start(group));
        }
        for (position, timed) in self.schedule.events.iter().enumerate() {
            self.agenda.note(Instant::from_ns(timed.at_ns), Task::Event(position));
        }
        if self.schedule.link.faults().next().is_some() {
            self.agenda.note(Instant::from_ns(self.schedule.faults_end_ns), Task::ChancesEnd);
            self.chances_end = Instant::from_ns(self.schedule.faults_end_ns);
            self.trouble_until = self.chances_end;
        }
    }

    fn set_up_groups(&mut self, timing: Timing) -> Result<(), Box<dyn Error>> {
        for number in 0..self.schedule.groups.len() {
            let flow = Flow::new(self.schedule, number, timing, &self.site, &mut self.network)?;
            let record = flow.first_record(self.schedule, &self.site)?;
            let control = self.create_group(record)?;
            self.flows.push(flow);
            self.controls.push(control);
            self.commit_at_once(number);
        }
        Ok(())
    }

    /// Runs until all groups are over, or have had time enough.
    pub(crate) fn run(&mut self) {
        while !self.is_over() && self.advance(self.patience_ends()) {}
    }

    /// Runs until a time.
    #[cfg(test)]
    pub(crate) fn run_until(&mut self, time: Instant) {
        while self.advance(time) {}
    }

    /// Lets the next thing happen, unless it lies after `limit`; returns whether there was one.
    fn advance(&mut self, limit: Instant) -> bool {
        let next = self.agenda.next().filter(|next| *next <= limit);
        match self.network.step(next.unwrap_or(limit)) {
            Some(element) => self.look_at(element),
            None => {
                self.network.wait_until(next.unwrap_or(limit));
                let Some(task) = next.and_then(|_| self.agenda.take()) else {
                    return false;
                };
                self.perform(task);
            }
        }
        if !self.dying.is_empty() {
            self.look_at_the_dying();
        }
        true
    }

    /// When every group must be over, unless something entitles it not to.
    fn patience_ends(&self) -> Instant {
        let patience_ns = PATIENCE_ACK_TIMEOUTS * self.scale.ack_timeout_ns + 4 * self.scale.transfer_ns;
        let last_event = self.schedule.events.last().map_or(0, |timed| timed.at_ns);
        self.trouble_until_it_can_end().max(Instant::from_ns(last_event)).after_ns(patience_ns)
    }

    fn trouble_until_it_can_end(&self) -> Instant {
        let starts = self.schedule.groups.iter().map(|group| group.start_ns).max().unwrap_or(0);
        self.trouble_until.max(Instant::from_ns(starts))
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Event(position) => {
                let event: &'s Event = &self.schedule.events[position].event;
                self.happen(event);
            }
            Task::Start(group) => self.start(group),
            Task::ChancesEnd => {
                let link = &self.schedule.link;
                self.site.set_chances(&mut self.network, &LinkPlan::calm(link.rate_bits_per_s, link.delay_ns));
                self.tell(&"links have no faults of chance any more");
            }
            Task::NodeBack(node) => self.bring_back(node),
            Task::MendNode(node) => {
                self.mend_node(node);
                self.node_is_whole(node);
            }
            Task::MendReceiver(receiver) => {
                self.mend_receiver(receiver);
                self.receiver_catches_up(receiver);
            }
            Task::EndCongestion(receiver) => self.mend_receiver(receiver),
            Task::Deliver(message) => self.deliver(message),
            Task::Repeat(group) => self.repeat(group),
            Task::Miss { node, incarnation } => self.miss(node, incarnation),
        }
    }

    /// Something has happened to an element: what has it to tell?
    #[inline]
    pub(crate) fn look_at(&mut self, element: ElementId) {
        if let Some(source) = self.sources.iter().position(|(id, _)| *id == element)
            && self.network.host(element).is_some_and(srdma_sim::host::Host::has_news)
        {
            self.look_at_source(source);
        }
        if self.evicts
            && let Some(node) = self.site.nodes.iter().position(|id| *id == element)
        {
            self.take_wishes(node);
        }
    }

    fn look_at_source(&mut self, source: usize) {
        let (element, groups) = (self.sources[source].0, std::mem::take(&mut self.sources[source].1));
        let news = self.network.with_host(element, |host| {
            (host.take_responses().collect::<Vec<_>>(), host.take_completions().collect::<Vec<_>>())
        });
        let now = self.network.now();
        let (responses, completions) = news.unwrap_or_default();
        for number in &groups {
            let flow = &mut self.flows[*number];
            let qpn = flow.qpn;
            let mut seen = Seen::default();
            for response in responses.iter().filter(|response| response.qpn == qpn) {
                flow.hear(*response, &self.site, &self.network, &mut seen);
            }
            for completion in completions.iter().filter(|completion| completion.qpn == qpn) {
                flow.end(completion, now, &mut seen);
            }
            if seen.progress {
                self.note_progress(*number);
            }
            self.outcome.complaints.append(&mut seen.complaints);
            self.look_for_quiet(*number);
        }
        self.sources[source].1 = groups;
    }

    /// From a comeback to the next progress, when nothing else went wrong meanwhile.
    fn note_progress(&mut self, group: usize) {
        let now = self.network.now();
        let comebacks = std::mem::take(&mut self.comebacks[group]);
        for at in comebacks {
            if self.trouble_until <= at && self.trouble_began < at {
                self.flows[group].recoveries_ns.push(now.since(at).as_nanos() as u64);
            }
        }
    }

    /// Lets frames that are still on their way arrive, and judges.
    pub(crate) fn finish(mut self) -> (Outcome, Network<Member>) {
        let ended = self.network.now();
        self.outcome.ended_ns = ended.as_ns();
        self.judge_progress(ended);
        let last = ended.after_ns(LAST_FRAMES_ACK_TIMEOUTS * self.scale.ack_timeout_ns);
        while let Some(element) = self.network.step(last.max(self.trouble_until)) {
            self.look_at(element);
        }
        let mut seen = Seen::default();
        for flow in &self.flows {
            flow.check_data(&self.site, &self.network, &mut seen);
        }
        self.outcome.complaints.append(&mut seen.complaints);
        if self.is_over() {
            self.check_nothing_is_left();
        }
        self.count_links();
        self.count_drops();
        self.outcome.hops = self.network.hops();
        self.outcome.groups = self.flows.iter().map(|flow| flow.outcome(&self.network)).collect();
        (self.outcome, self.network)
    }

    pub(crate) fn complain(&mut self, kind: ComplaintKind, text: String) {
        let at_ns = self.network.now().as_ns();
        self.outcome.complaints.push(Complaint { at_ns, kind, text });
    }

    pub(crate) fn tell(&mut self, what: &dyn Display) {
        if self.tells {
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
