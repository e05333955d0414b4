//! Iterations of tasks: beginnings and ends, and the conditions under which they are possible.

use super::parallel::locked;
use super::programs;
use super::run::{Run, RunError};
use super::scenario::FabricScenario;
use super::server::Server;
use super::tasks::{Channel, First, SharedTask, tasks};
use srdma_fabric::HostId;
use srdma_placement::job_file::Repetition;
use srdma_random::Stream;
use srdma_wire::units::NS_PER_US;
use srdma_wire::{Instant, Qpn};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Maximum queue pairs: numbers have 24 bits, and the first one is random.
const MOST_QUEUE_PAIRS: usize = 1 << 23;

/// The jobs of a run.
pub(super) struct Jobs {
    /// Channels between their NICs.
    pub(super) channels: Vec<Channel>,
    /// Queue pairs of each channel.
    lanes: usize,
    states: Vec<State>,
}

/// An iteration: its start and end, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Iteration {
    pub(super) started_ns: u64,
    pub(super) finished_ns: Option<u64>,
}

/// A task and its iterations.
pub(super) struct State {
    pub(super) task: SharedTask,
    pub(super) iterations: Vec<Iteration>,
    repetition: Repetition,
    next_start_ns: Option<u64>,
}

impl Jobs {
    /// The jobs of a scenario, with this number of queue pairs per channel.
    ///
    /// # Errors
    ///
    /// Too many queue pairs.
    pub(super) fn new(scenario: &FabricScenario, lanes: usize) -> Result<Self, RunError> {
        let (tasks, channels) = tasks(scenario);
        if channels.len() * lanes > MOST_QUEUE_PAIRS {
            return Err(RunError::QueuePairs { found: channels.len() * lanes, most: MOST_QUEUE_PAIRS });
        }
        let states = tasks.into_iter().map(|mut task| {
            if scenario.skip_steady {
                task.record_arrivals();
            }
            let repetition = scenario.jobs[task.job].1;
            let next_start_ns = Some(repetition.start_us * NS_PER_US);
            State { task: Arc::new(Mutex::new(task)), iterations: Vec::new(), repetition, next_start_ns }
        });
        Ok(Jobs { channels, lanes, states: states.collect() })
    }

    /// The task that begins an iteration next, and when.
    pub(super) fn next_start(&self) -> Option<(u64, usize)> {
        let starts = self.states.iter().enumerate();
        starts.filter_map(|(task, state)| Some((state.next_start_ns?, task))).min()
    }

    /// Whether all iterations of all tasks have ended.
    pub(super) fn are_done(&self) -> bool {
        self.states.iter().all(State::is_done)
    }

    /// Completed iterations, and all.
    pub(super) fn progress(&self) -> (usize, usize) {
        let ended = |state: &State| state.iterations.iter().filter(|it| it.finished_ns.is_some()).count();
        let all = |state: &State| state.repetition.iterations as usize;
        (self.states.iter().map(ended).sum(), self.states.iter().map(all).sum())
    }

    /// Starts the next iteration of a task; in the fabric it is `fabric_now`.
    pub(super) fn start(&mut self, task: usize, now_ns: u64, fabric_now: Instant) {
        let state = &mut self.states[task];
        state.next_start_ns = None;
        state.iterations.push(Iteration { started_ns: now_ns, finished_ns: None });
        locked(&state.task).begin(fabric_now);
    }

    /// Ends a task's iteration.
    pub(super) fn end(&mut self, task: usize, at_ns: u64, now_ns: u64) {
        self.states[task].end(at_ns, now_ns);
    }

    /// Every task.
    pub(super) fn states(&self) -> &[State] {
        &self.states
    }
}

impl State {
    fn is_done(&self) -> bool {
        self.next_start_ns.is_none() && self.iterations.iter().all(|iteration| iteration.finished_ns.is_some())
    }

    /// Ends the iteration. The next one starts after the pause or at its time, but not before `now`.
    fn end(&mut self, at_ns: u64, now_ns: u64) {
        let Some(last) = self.iterations.last_mut() else { return };
        last.finished_ns = Some(at_ns);
        let start_ns = match locked(&self.task).period_us() {
            Some(period_us) => last.started_ns + period_us * NS_PER_US,
            None => at_ns + self.repetition.pause_us * NS_PER_US,
        };
        let goes_on = (self.iterations.len() as u64) < self.repetition.iterations;
        self.next_start_ns = goes_on.then_some(start_ns.max(now_ns));
    }
}

impl Run<'_> {
    /// Connects the NICs of all jobs, with their programs.
    pub(super) fn set_up_jobs(&mut self) -> Result<(), RunError> {
        let channels = std::mem::take(&mut self.jobs.channels);
        if self.variant.steering {
            let interval_ns = self.variant.probe_interval_us.get() * NS_PER_US;
            for host in self.scenario.topology.host_ids() {
                let seed = Stream::new(self.seed, &format!("steering {}", host.0)).below(u64::MAX);
                self.fabric.with_server(host, |server| server.steer(interval_ns, seed));
            }
        }
        let paths = programs::paths(self.scenario, self.variant, &self.next_hops, self.seed, &channels)?;
        for (number, channel) in channels.iter().enumerate() {
            let lanes: Vec<Qpn> = self.lanes(number).collect();
            let task = Arc::clone(&self.jobs.states[channel.task].task);
            let tenant = self.scenario.jobs[locked(&task).job].0.tenant;
            let headers = self.sids.as_ref().zip(paths.get(number)).map(|(plan, paths)| {
                programs::headers(&self.scenario.topology, plan, paths, tenant, self.variant.steering)
            });
            let headers = headers.transpose()?;
            for qpn in &lanes {
                let ends = [(channel.from, channel.to), (channel.to, channel.from)];
                for (end, (own, peer)) in ends.into_iter().enumerate() {
                    let config = self.queue_pair(*qpn, own, peer);
                    let outer = headers.as_ref().map(|headers| [&headers.forth, &headers.back][end].clone());
                    self.connect(own, config, outer)?;
                }
            }
            let other = Arc::clone(&task);
            let receive = |server: &mut Server| server.receive_channel(number, task, &lanes);
            self.fabric.with_server(channel.to, receive).transpose()?;
            self.fabric.with_server(channel.from, |server| server.send_channel(number, other, &lanes));
        }
        self.jobs.channels = channels;
        Ok(())
    }

    /// The queue pairs of a channel, after those of the other flows.
    pub(super) fn lanes(&self, channel: usize) -> impl Iterator<Item = Qpn> + use<'_> {
        let first = self.flows.len() + channel * self.jobs.lanes;
        (first..first + self.jobs.lanes).map(|number| self.qpn(number))
    }

    /// Begins the next iteration of a task.
    pub(super) fn begin_iteration(&mut self, number: usize, now_ns: u64) -> Result<(), RunError> {
        self.jobs.start(number, now_ns, self.fabric_time(now_ns));
        let task = Arc::clone(&self.jobs.states[number].task);
        self.send_first(&task, now_ns)
    }

    /// Starts following collectives, and records completed iterations.
    pub(super) fn collect_iterations(&mut self, now_ns: u64) -> Result<(), RunError> {
        for number in 0..self.jobs.states.len() {
            let task = Arc::clone(&self.jobs.states[number].task);
            self.send_first(&task, now_ns)?;
            let end = locked(&task).take_end();
            if let Some(at) = end {
                let at_ns = at.as_ns() + self.skipped.ns;
                self.jobs.states[number].end(at_ns.min(now_ns), now_ns);
                self.last_end = self.last_end.max(Instant::from_ns(at_ns));
            }
        }
        Ok(())
    }

    fn send_first(&mut self, task: &SharedTask, now_ns: u64) -> Result<(), RunError> {
        let first: BTreeMap<HostId, First> = locked(task).take_first();
        for (nic, first) in first {
            let now = self.fabric_time(now_ns);
            let send = |server: &mut Server| server.begin_iteration(task, &first, now);
            self.fabric.with_server(nic, send).transpose()?;
        }
        Ok(())
    }
}
