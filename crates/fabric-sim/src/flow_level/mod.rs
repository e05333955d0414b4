//! A run of jobs at flow level: the same messages on the same links, with max-min fair rates.
//!
//! ```text
//!   Task ──▶ message ──▶ a piece for each queue pair ──▶ Flows ──▶ completed ──▶ arrived ──▶ Task
//!                                                                             └──▶ acknowledged ──▶ Task
//! ```
//!
//! A piece has arrived when all its packets were sent and the last one has passed all links; the
//! message when all its pieces have. Queueing is not modelled.

mod failures;
mod outcome;
mod paths;
mod wire;

use crate::engine::NEVER_NS;
use crate::failure_schedule::FailureSchedule;
use crate::iterations::Jobs;
use crate::max_min::{FlowId, Flows};
use crate::parallel::locked;
use crate::results::VariantResult;
use crate::route::Leg;
use crate::run::{Progress, RunError};
use crate::scenario::{FabricScenario, Variant};
use crate::tasks::First;
use srdma_fabric::NextHops;
use srdma_placement::Message;
use srdma_wire::Instant;
use srdma_wire::units::{NS_PER_US, PS_PER_NS};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use wire::{Delay, Wire};

/// Events between two progress reports.
const EVENTS_PER_REPORT: u64 = 1 << 18;

/// Runs a variant with a seed at flow level. `progress` is called periodically.
///
/// # Errors
///
/// Those of [`RunError`] that jobs and paths have.
pub(super) fn run(
    scenario: &FabricScenario,
    variant: &Variant,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<VariantResult, RunError> {
    let mut run = FlowLevelRun::new(scenario, variant, seed)?;
    run.proceed(progress)?;
    Ok(run.result())
}

struct FlowLevelRun<'a> {
    scenario: &'a FabricScenario,
    variant: &'a Variant,
    seed: u64,
    /// Failures and repairs.
    failure_schedule: FailureSchedule,
    wire: Wire,
    jobs: Jobs,
    flows: Flows<u32>,
    states: Vec<FlowState>,
    /// For each channel.
    sent: Vec<Sent>,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Number of events so far: events of one time are processed in the order of scheduling.
    events: u64,
    in_flight: Vec<InFlight>,
    /// Free slots of them.
    unused: Vec<u32>,
    /// Octets carried by each link.
    carried: Vec<u64>,
    now_ps: u64,
    /// Planned ends of what ranks of tasks compute.
    timers: BTreeMap<(usize, u32), Instant>,
}

struct FlowState {
    /// The links of each possible path, and the current one.
    paths: Vec<Vec<Leg>>,
    path: usize,
    delay: Delay,
    /// Octets sent on the current path.
    octets: u64,
    /// Arrival of the last completed piece: none overtakes it.
    arrives_ps: u64,
}

/// Counters of a channel's sender.
#[derive(Clone, Copy, Default)]
struct Sent {
    octets: u64,
    /// Unacknowledged messages, the start of the current busy time, and earlier busy time.
    messages: u32,
    since_ps: u64,
    busy_ps: u64,
}

/// The positions of links in both directions.
fn positions(legs: &[Leg]) -> Vec<u32> {
    legs.iter().map(|leg| leg.index() as u32).collect()
}

/// A message in flight.
struct InFlight {
    message: Message,
    task: usize,
    channel: usize,
    /// Pieces that are not completed.
    pieces: u32,
    /// Arrival of the last completed piece.
    arrives_ps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The message in this slot has arrived.
    Arrived(u32),
    /// Its sender has received the acknowledgement.
    Acknowledged(u32),
    /// NICs with steering have detected failures.
    FailureDetected,
    /// A rank of a task has computed something.
    Computed { task: u32, rank: u32 },
}

impl<'a> FlowLevelRun<'a> {
    fn new(scenario: &'a FabricScenario, variant: &'a Variant, seed: u64) -> Result<Self, RunError> {
        let topology = &scenario.topology;
        let next_hops = NextHops::new(topology);
        let jobs = Jobs::new(scenario, variant.queue_pairs.get() as usize)?;
        let rates = topology.links().iter().flat_map(|link| [link.rate_bits_per_s; 2]);
        let mut flows = Flows::new(rates).with_min_interval(scenario.rate_interval);
        let mut states = Vec::new();
        for paths in paths::paths(scenario, variant, &next_hops, seed, &jobs.channels)? {
            let first = paths.first().map_or(&[][..], Vec::as_slice);
            flows.add(&positions(first));
            let delay = Delay::along(topology, &paths::longest(topology, first));
            states.push(FlowState { delay, paths, path: 0, octets: 0, arrives_ps: 0 });
        }
        Ok(FlowLevelRun {
            scenario,
            variant,
            seed,
            failure_schedule: FailureSchedule::new(scenario, variant, seed),
            wire: Wire::new(scenario, variant),
            sent: vec![Sent::default(); jobs.channels.len()],
            jobs,
            flows,
            states,
            queue: BinaryHeap::new(),
            events: 0,
            in_flight: Vec::new(),
            unused: Vec::new(),
            carried: vec![0; 2 * topology.links().len()],
            now_ps: 0,
            timers: BTreeMap::new(),
        })
    }

    /// Runs until all iterations have ended or the time limit is reached.
    fn proceed(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<(), RunError> {
        let measures = &self.scenario.measures;
        let end_ns = (measures.duration_us.get() + measures.drain_us.get()) * NS_PER_US;
        let mut completed = Vec::new();
        let mut reported = 0;
        while let Some(next_ps) = self.next_ps().filter(|next_ps| *next_ps < end_ns * PS_PER_NS) {
            self.now_ps = next_ps;
            self.flows.take_completed(next_ps, &mut completed);
            completed.drain(..).for_each(|(flow, place)| self.piece_sent(flow, place));
            while let Some(Reverse((_, _, event))) = self.queue.peek().filter(|Reverse((at, ..))| *at == next_ps) {
                let event = *event;
                self.queue.pop();
                match event {
                    Event::Arrived(place) => self.arrived(place),
                    Event::Acknowledged(place) => self.acknowledged(place),
                    Event::FailureDetected => self.failure_detected(),
                    Event::Computed { task, rank } => self.computed(task as usize, rank),
                }
            }
            while let Some((at_ns, task)) = self.jobs.next_start().filter(|(at, _)| at * PS_PER_NS <= next_ps) {
                self.jobs.start(task, at_ns, Instant::from_ns(at_ns));
                self.follow_up(task);
            }
            while self.failure_schedule.next_ns().saturating_mul(PS_PER_NS) <= next_ps {
                self.turn();
            }
            self.flows.settle(next_ps);
            if self.events - reported >= EVENTS_PER_REPORT {
                reported = self.events;
                self.report(end_ns, progress);
            }
        }
        self.report(end_ns, progress);
        Ok(())
    }

    fn next_ps(&mut self) -> Option<u64> {
        let start = self.jobs.next_start().map(|(at_ns, _)| at_ns * PS_PER_NS);
        let event = self.queue.peek().map(|Reverse((at_ps, ..))| *at_ps);
        let busy = [start, event, self.flows.next_ps()].into_iter().flatten().min();
        // Failures are relevant only while there are messages to send.
        let turn = Some(self.failure_schedule.next_ns()).filter(|at_ns| *at_ns < NEVER_NS && !self.jobs.are_done());
        busy.into_iter().chain(turn.map(|at_ns| at_ns.saturating_mul(PS_PER_NS))).min()
    }

    fn report(&self, end_ns: u64, progress: &mut dyn FnMut(Progress)) {
        let (ended, flows) = self.jobs.progress();
        let now_ns = self.now_ps / PS_PER_NS;
        progress(Progress { now_ns, end_ns, ended, flows, packet_hops: 0, queue_pairs: 2 * self.states.len() });
    }

    fn plan(&mut self, at_ps: u64, event: Event) {
        self.events += 1;
        self.queue.push(Reverse((at_ps, self.events, event)));
    }

    /// A rank sends a message, a piece on each flow of the channel.
    fn send(&mut self, task: usize, message: Message) {
        let Some(channel) = locked(&self.jobs.states()[task].task).sent(&message) else { return };
        let lanes = self.variant.queue_pairs.get();
        let pieces = lanes as u32;
        let in_flight = InFlight { message, task, channel, pieces, arrives_ps: 0 };
        let place = match self.unused.pop() {
            Some(place) => {
                self.in_flight[place as usize] = in_flight;
                place
            }
            None => {
                self.in_flight.push(in_flight);
                self.in_flight.len() as u32 - 1
            }
        };
        let sent = &mut self.sent[channel];
        if sent.messages == 0 {
            sent.since_ps = self.now_ps;
        }
        sent.messages += 1;
        for lane in 0..lanes {
            let octets = self.wire.wire_octets(self.wire.piece_octets(message.octets, lane, lanes));
            let flow = FlowId((channel as u64 * lanes + lane) as u32);
            self.flows.send(self.now_ps, flow, octets as f64, place);
        }
    }

    /// A piece was sent.
    fn piece_sent(&mut self, flow: FlowId, place: u32) {
        let lanes = self.variant.queue_pairs.get();
        let own = &mut self.in_flight[place as usize];
        let octets = self.wire.piece_octets(own.message.octets, u64::from(flow.0) % lanes, lanes);
        let state = &mut self.states[flow.0 as usize];
        state.octets += self.wire.wire_octets(octets);
        let arrives_ps = self.now_ps + state.delay.ps(self.wire.last_frame_octets(octets));
        state.arrives_ps = state.arrives_ps.max(arrives_ps);
        own.arrives_ps = own.arrives_ps.max(state.arrives_ps);
        own.pieces -= 1;
        if own.pieces == 0 {
            let arrives_ps = own.arrives_ps;
            self.plan(arrives_ps, Event::Arrived(place));
        }
    }

    fn arrived(&mut self, place: u32) {
        let InFlight { task, channel, .. } = self.in_flight[place as usize];
        let flow = channel * self.variant.queue_pairs.get() as usize;
        let back_ps = self.states[flow].delay.ps(self.wire.ack_octets());
        self.plan(self.now_ps + back_ps, Event::Acknowledged(place));
        let mut more = Vec::new();
        let (now, to) = (self.now(), self.in_flight[place as usize].message.to);
        let deadline = {
            let mut task = locked(&self.jobs.states()[task].task);
            task.arrived(now, channel, &mut more);
            task.deadline(to)
        };
        more.into_iter().for_each(|message| self.send(task, message));
        self.set_timer(task, to, deadline);
        self.follow_up(task);
    }

    fn acknowledged(&mut self, place: u32) {
        let InFlight { message, task, channel, .. } = self.in_flight[place as usize];
        self.unused.push(place);
        let sent = &mut self.sent[channel];
        sent.octets += message.octets;
        sent.messages -= 1;
        if sent.messages == 0 {
            sent.busy_ps += self.now_ps - sent.since_ps;
        }
        let mut more = Vec::new();
        let (deadline, has_ended) = {
            let mut task = locked(&self.jobs.states()[task].task);
            task.acknowledged(self.now(), &message, &mut more);
            (task.deadline(message.from), task.has_ended())
        };
        more.into_iter().for_each(|message| self.send(task, message));
        self.set_timer(task, message.from, deadline);
        if has_ended {
            self.follow_up(task);
        }
    }

    /// A rank has computed something.
    fn computed(&mut self, task: usize, rank: u32) {
        self.timers.remove(&(task, rank));
        let mut more = Vec::new();
        let deadline = {
            let mut task = locked(&self.jobs.states()[task].task);
            task.advance(self.now(), rank, &mut more);
            task.deadline(rank)
        };
        more.into_iter().for_each(|message| self.send(task, message));
        self.set_timer(task, rank, deadline);
        self.follow_up(task);
    }

    /// Plans the end of what a rank computes, once.
    fn set_timer(&mut self, task: usize, rank: u32, deadline: Option<Instant>) {
        if let Some(at) = deadline
            && self.timers.get(&(task, rank)) != Some(&at)
        {
            self.timers.insert((task, rank), at);
            self.plan(at.as_ns().saturating_mul(PS_PER_NS), Event::Computed { task: task as u32, rank });
        }
    }

    /// The time, in whole nanoseconds.
    fn now(&self) -> Instant {
        Instant::from_ns(self.now_ps.div_ceil(PS_PER_NS))
    }

    /// Sends the first messages of a following collective, and records the end of an iteration.
    fn follow_up(&mut self, task: usize) {
        let shared = Arc::clone(&self.jobs.states()[task].task);
        let first = locked(&shared).take_first();
        for First { rank, messages } in first.into_values() {
            messages.into_iter().for_each(|message| self.send(task, message));
            let deadline = locked(&shared).deadline(rank);
            self.set_timer(task, rank, deadline);
        }
        let end = locked(&shared).take_end();
        if let Some(at) = end {
            self.jobs.end(task, at.as_ns(), self.now_ps.div_ceil(PS_PER_NS));
        }
    }
}
