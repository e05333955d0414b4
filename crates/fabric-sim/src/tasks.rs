//! Messages between the NICs of a job, iteration by iteration.
//!
//! A task is a running schedule, shared by the servers of its ranks: a server reports what has arrived or was
//! acknowledged there, and sends what that permits its own rank. The next message of a rank depends on the rank alone,
//! so that servers may be processed one after the other; only where a collective follows another one all of them are
//! notified again, at the next step of the run.

use super::scenario::FabricScenario;
use srdma_fabric::{HostId, NodeId, Topology};
use srdma_placement::{Collective, Job, Message, Pace, Schedule};
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Messages from one NIC to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    /// The task, by its position.
    pub(super) task: usize,
    /// The sending host.
    pub(super) from: HostId,
    /// The receiving host.
    pub(super) to: HostId,
    /// The rate that the scheduler assumes, in bits per second.
    pub(super) rate_bits_per_s: u64,
}

/// A task, shared by its servers.
pub(super) type SharedTask = Arc<Mutex<Task>>;

/// A schedule with its messages in flight.
pub(super) struct Task {
    /// The position of its job.
    pub(super) job: usize,
    schedule: Schedule,
    nics: Vec<HostId>,
    /// For each rank its peers with their channels, in order.
    channels: Vec<Vec<(u32, usize)>>,
    /// Its first channel; the others follow.
    first_channel: usize,
    /// Messages in flight, by channel.
    in_flight: Vec<VecDeque<Message>>,
    /// First messages of the next collective.
    to_begin: Vec<Message>,
    /// Arrival of the last message, and whether it ended the iteration.
    last_arrival: Instant,
    has_ended: bool,
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
        for collectives in sequences.filter(|sequence| !sequence.is_empty()) {
            let task = Task::new(&scenario.topology, number, job, &collectives, tasks.len(), &mut channels);
            tasks.push(task);
        }
    }
    (tasks, channels)
}

impl Task {
    fn new(
        topology: &Topology,
        job_number: usize,
        job: &Job,
        collectives: &[&Collective],
        number: usize,
        channels: &mut Vec<Channel>,
    ) -> Self {
        let ranks: BTreeMap<HostId, u32> = job.nics.iter().copied().zip(0..).collect();
        let mut rates: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for flow in collectives.iter().flat_map(|own| job.flows(own, rate_of(topology, job.nics[0]))) {
            let rate = rates.entry((ranks[&flow.from], ranks[&flow.to])).or_default();
            *rate = (*rate).max(flow.rate_bits_per_s);
        }
        let (first_channel, count) = (channels.len(), rates.len());
        let mut of_ranks = vec![Vec::new(); job.nics.len()];
        for ((from, to), rate_bits_per_s) in rates {
            of_ranks[from as usize].push((to, channels.len()));
            let [from, to] = [from, to].map(|rank| job.nics[rank as usize]);
            channels.push(Channel { task: number, from, to, rate_bits_per_s });
        }
        Task {
            job: job_number,
            schedule: Schedule::new(job, collectives, Pace::DEFAULT),
            nics: job.nics.clone(),
            channels: of_ranks,
            first_channel,
            in_flight: vec![VecDeque::new(); count],
            to_begin: Vec::new(),
            last_arrival: Instant::ZERO,
            has_ended: false,
            octets: vec![[0; 2]; job.nics.len()],
            sends: Vec::new(),
        }
    }

    /// Interval of iterations in microseconds; `None`: each starts at the end of the previous one.
    pub(super) fn period_us(&self) -> Option<u64> {
        self.schedule.period_us()
    }

    /// Starts an iteration; its first messages are returned by [`Task::take_first`].
    pub(super) fn begin(&mut self) {
        self.schedule.begin(&mut self.to_begin);
        self.has_ended = !self.schedule.is_running();
    }

    /// The first messages of a collective by sender; empty during a collective.
    pub(super) fn take_first(&mut self) -> BTreeMap<HostId, Vec<Message>> {
        let mut of_nics: BTreeMap<HostId, Vec<Message>> = BTreeMap::new();
        for message in self.to_begin.drain(..) {
            of_nics.entry(self.nics[message.from as usize]).or_default().push(message);
        }
        of_nics
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
        self.has_ended |= self.schedule.arrived(&message, &mut self.sends);
        let goes_on = |next: &Message| next.collective == message.collective;
        more.extend(self.sends.iter().filter(|next| goes_on(next)));
        self.to_begin.extend(self.sends.drain(..).filter(|next| !goes_on(next)));
    }

    /// A message was acknowledged: adds the messages that its sender may now send.
    pub(super) fn acknowledged(&mut self, message: &Message, more: &mut Vec<Message>) {
        self.schedule.acknowledged(message, more);
    }

    /// Maximum octets that a NIC sends or receives in all started iterations.
    pub(super) fn busiest_octets(&self) -> u64 {
        self.octets.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Number of started iterations.
    pub(super) fn begun(&self) -> u32 {
        self.schedule.iterations()
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
