//! Messages between the NICs of a job, iteration by iteration.
//!
//! A task is a running schedule or trace, shared by the servers of its ranks: a server reports what has arrived or was
//! acknowledged there, and sends what that permits its own rank. The next message of a rank depends on the rank alone,
//! so that servers may be processed one after the other; only where a collective follows another one all of them are
//! notified again, at the next step of the run.

use super::scenario::FabricScenario;
use super::steady::Arrivals;
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_placement::{Collective, Flow, GroupFlow, Job, Lockstep, Message, Pace, Replay, Schedule};
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Messages from one NIC to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    /// The task, by its position.
    pub(super) task: usize,
    /// The sending host.
    pub(super) from: HostId,
    /// The receiving host, the first one of a group.
    pub(super) to: HostId,
    /// The rate that the scheduler assumes, in bits per second.
    pub(super) rate_bits_per_s: u64,
    /// The multicast group that receives, if it is one.
    pub(super) group: Option<GroupFlow>,
}

/// A task, shared by its servers.
pub(super) type SharedTask = Arc<Mutex<Task>>;

/// What its ranks do.
enum Work {
    Collectives(Schedule),
    Trace(Replay),
}

/// What a rank does when an iteration or a collective begins.
#[derive(Debug, Default)]
pub(super) struct First {
    pub(super) rank: u32,
    pub(super) messages: Vec<Message>,
}

/// What its ranks do, with the messages in flight.
pub(super) struct Task {
    /// The position of its job.
    pub(super) job: usize,
    work: Work,
    nics: Vec<HostId>,
    /// For each rank its peers with their channels, in order.
    channels: Vec<Vec<(u32, usize)>>,
    /// Its first channel; the others follow.
    first_channel: usize,
    /// The sending and the receiving rank of each channel.
    ends: Vec<[u32; 2]>,
    /// Messages in flight, by channel.
    in_flight: Vec<VecDeque<Message>>,
    /// First messages of the next collective.
    to_begin: Vec<Message>,
    /// An iteration has begun, and its ranks do not know it.
    is_new: bool,
    /// The last arrival of a message, or end of something else that an iteration may end with, and whether one has.
    last_arrival: Instant,
    has_ended: bool,
    /// Arrivals in the collective under way, if steady states are skipped.
    arrivals: Option<Arrivals>,
    /// Octets that each rank sends and receives in all iterations.
    octets: Vec<[u64; 2]>,
    /// Reused memory.
    sends: Vec<Message>,
}

/// The tasks of all jobs, and the channels between their NICs, those of a task consecutive.
pub(super) fn tasks(scenario: &FabricScenario) -> (Vec<Task>, Vec<Channel>) {
    let (mut tasks, mut channels) = (Vec::new(), Vec::new());
    for (number, (job, _)) in scenario.jobs.iter().enumerate() {
        let one_by_one: Vec<&Collective> = job.collectives.iter().filter(|own| own.period_us.is_none()).collect();
        let periodic = job.collectives.iter().filter(|own| own.period_us.is_some());
        let sequences = std::iter::once(one_by_one).chain(periodic.map(|own| vec![own]));
        let nic_bits_per_s = rate_of(&scenario.topology, job.nics[0]);
        for collectives in sequences.filter(|sequence| !sequence.is_empty()) {
            let flows: Vec<Flow> = collectives.iter().flat_map(|own| job.flows(own, nic_bits_per_s)).collect();
            let groups = collectives.iter().flat_map(|own| job.group_flows(own, nic_bits_per_s)).collect();
            let work = Work::Collectives(Schedule::new(job, &collectives, Pace::DEFAULT));
            tasks.push(Task::new(number, job, work, (&flows, groups), tasks.len(), &mut channels));
        }
        if let Some(trace) = &job.trace {
            let flows = trace.flows(&job.nics, nic_bits_per_s);
            let work = Work::Trace(Replay::new(Arc::clone(trace)));
            tasks.push(Task::new(number, job, work, (&flows, Vec::new()), tasks.len(), &mut channels));
        }
    }
    (tasks, channels)
}

impl Task {
    /// The task of this number, with all its flows and groups.
    fn new(
        job_number: usize,
        job: &Job,
        work: Work,
        (flows, groups): (&[Flow], Vec<GroupFlow>),
        number: usize,
        channels: &mut Vec<Channel>,
    ) -> Self {
        let ranks: BTreeMap<HostId, u32> = job.nics.iter().copied().zip(0..).collect();
        let mut rates: BTreeMap<(u32, u32), (u64, Option<GroupFlow>)> = BTreeMap::new();
        for flow in flows {
            let (rate, _) = rates.entry((ranks[&flow.from], ranks[&flow.to])).or_default();
            *rate = (*rate).max(flow.rate_bits_per_s);
        }
        // Messages to a group are to their sender.
        for group in groups {
            let from = ranks[&group.from];
            rates.insert((from, from), (group.rate_bits_per_s, Some(group)));
        }
        let first_channel = channels.len();
        let ends: Vec<[u32; 2]> = rates.keys().map(|(from, to)| [*from, *to]).collect();
        let mut of_ranks = vec![Vec::new(); job.nics.len()];
        for ((from, to), (rate_bits_per_s, group)) in rates {
            of_ranks[from as usize].push((to, channels.len()));
            let [from, to] = [from, to].map(|rank| job.nics[rank as usize]);
            let to = group.as_ref().and_then(|group| group.to.first()).map_or(to, |first| *first);
            channels.push(Channel { task: number, from, to, rate_bits_per_s, group });
        }
        Task {
            job: job_number,
            work,
            nics: job.nics.clone(),
            channels: of_ranks,
            first_channel,
            in_flight: vec![VecDeque::new(); ends.len()],
            ends,
            to_begin: Vec::new(),
            is_new: false,
            last_arrival: Instant::ZERO,
            has_ended: false,
            arrivals: None,
            octets: vec![[0; 2]; job.nics.len()],
            sends: Vec::new(),
        }
    }

    /// Interval of iterations in microseconds; `None`: each starts at the end of the previous one.
    pub(super) fn period_us(&self) -> Option<u64> {
        match &self.work {
            Work::Collectives(schedule) => schedule.period_us(),
            Work::Trace(_) => None,
        }
    }

    /// Starts an iteration; its first messages are returned by [`Task::take_first`].
    pub(super) fn begin(&mut self, now: Instant) {
        let is_running = match &mut self.work {
            Work::Collectives(schedule) => {
                schedule.begin(&mut self.to_begin);
                schedule.is_running()
            }
            Work::Trace(replay) => {
                replay.begin(now.as_ns(), &mut self.to_begin);
                replay.is_running()
            }
        };
        self.is_new = true;
        self.has_ended = !is_running;
        self.last_arrival = self.last_arrival.max(now);
    }

    /// The first messages of a collective by sender, and the ranks that compute first; empty during a collective.
    pub(super) fn take_first(&mut self) -> BTreeMap<HostId, First> {
        let mut of_nics: BTreeMap<HostId, First> = BTreeMap::new();
        if std::mem::take(&mut self.is_new) {
            for rank in (0..self.nics.len() as u32).filter(|rank| self.deadline(*rank).is_some()) {
                of_nics.insert(self.nics[rank as usize], First { rank, messages: Vec::new() });
            }
        }
        for message in self.to_begin.drain(..) {
            let first = of_nics.entry(self.nics[message.from as usize]).or_default();
            first.rank = message.from;
            first.messages.push(message);
        }
        of_nics
    }

    /// When a rank has computed something next.
    pub(super) fn deadline(&self, rank: u32) -> Option<Instant> {
        match &self.work {
            Work::Collectives(_) => None,
            Work::Trace(replay) => replay.deadline_ns(rank).map(Instant::from_ns),
        }
    }

    /// Time has passed for a rank that computes: adds the messages that it may now send.
    pub(super) fn advance(&mut self, now: Instant, rank: u32, more: &mut Vec<Message>) {
        if let Work::Trace(replay) = &mut self.work {
            self.has_ended |= replay.advance(rank, now.as_ns(), more);
            self.last_arrival = self.last_arrival.max(now);
        }
    }

    /// Records arrivals from now on.
    pub(super) fn record_arrivals(&mut self) {
        self.arrivals = Some(Arrivals::new(self.ends.len()));
    }

    /// Arrivals in the collective under way, if they are recorded.
    pub(super) fn arrivals(&self) -> Option<&Arrivals> {
        self.arrivals.as_ref()
    }

    /// Whether an iteration is under way.
    pub(super) fn is_running(&self) -> bool {
        match &self.work {
            Work::Collectives(schedule) => schedule.is_running(),
            Work::Trace(replay) => replay.is_running(),
        }
    }

    /// The collective under way, if it is one in rings.
    pub(super) fn lockstep(&self) -> Option<Lockstep> {
        match &self.work {
            Work::Collectives(schedule) => schedule.lockstep(),
            Work::Trace(_) => None,
        }
    }

    /// Counts so many more messages of each channel of a collective in rings as carried.
    pub(super) fn skip(&mut self, messages: u32) {
        let (Some(lockstep), Work::Collectives(schedule)) = (self.lockstep(), &mut self.work) else { return };
        schedule.skip(messages);
        for [from, to] in &self.ends {
            self.octets[*from as usize][0] += u64::from(messages) * lockstep.octets;
            self.octets[*to as usize][1] += u64::from(messages) * lockstep.octets;
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.clear(lockstep.collective);
        }
    }

    /// Its channels.
    pub(super) fn channels(&self) -> Range<usize> {
        self.first_channel..self.first_channel + self.ends.len()
    }

    /// The sending and the receiving rank of a channel.
    pub(super) fn ranks_of(&self, channel: usize) -> [u32; 2] {
        self.ends[channel - self.first_channel]
    }

    /// Whether an iteration has ended of which the time was not taken.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Time at which the iteration ended, once.
    pub(super) fn take_end(&mut self) -> Option<Instant> {
        std::mem::take(&mut self.has_ended).then_some(self.last_arrival)
    }

    /// A message is sent; returns its channel.
    pub(super) fn sent(&mut self, message: &Message) -> Option<usize> {
        let peers = self.channels.get(message.from as usize)?;
        let place = peers.binary_search_by_key(&message.to, |(peer, _)| *peer).ok()?;
        let channel = peers[place].1;
        self.in_flight[channel - self.first_channel].push_back(*message);
        self.octets[message.from as usize][0] += message.octets;
        self.octets[message.to as usize][1] += message.octets;
        Some(channel)
    }

    /// The next message of a channel has arrived: adds the messages that its receiver may now send.
    pub(super) fn arrived(&mut self, now: Instant, channel: usize, more: &mut Vec<Message>) {
        let Some(message) = self.in_flight[channel - self.first_channel].pop_front() else {
            return;
        };
        self.last_arrival = self.last_arrival.max(now);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.add(channel - self.first_channel, &message, now);
        }
        self.has_ended |= match &mut self.work {
            Work::Collectives(schedule) => schedule.arrived(&message, &mut self.sends),
            Work::Trace(replay) => replay.arrived(&message, now.as_ns(), &mut self.sends),
        };
        let goes_on = |next: &Message| next.collective == message.collective;
        more.extend(self.sends.iter().filter(|next| goes_on(next)));
        self.to_begin.extend(self.sends.drain(..).filter(|next| !goes_on(next)));
    }

    /// A message was acknowledged: adds the messages that its sender may now send.
    pub(super) fn acknowledged(&mut self, now: Instant, message: &Message, more: &mut Vec<Message>) {
        match &mut self.work {
            Work::Collectives(schedule) => schedule.acknowledged(message, more),
            Work::Trace(replay) => {
                self.has_ended |= replay.acknowledged(message, now.as_ns(), more);
                self.last_arrival = self.last_arrival.max(now);
            }
        }
    }

    /// Maximum octets that a NIC sends or receives in all started iterations.
    pub(super) fn busiest_octets(&self) -> u64 {
        self.octets.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Number of started iterations.
    pub(super) fn begun(&self) -> u32 {
        match &self.work {
            Work::Collectives(schedule) => schedule.iterations(),
            Work::Trace(replay) => replay.iterations(),
        }
    }

    pub(super) fn nics(&self) -> &[HostId] {
        &self.nics
    }
}

/// The rate of a host's link, in bits per second.
pub(super) fn rate_of(topology: &Topology, host: HostId) -> u64 {
    let port = topology.ports(NodeId::Host(host)).first();
    port.map_or(1, |port| topology.links()[port.link.index()].rate_bits_per_s)
}
