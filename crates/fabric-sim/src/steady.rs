//! Steady states of collectives in rings, which are skipped on request (D219).
//!
//! In a ring every rank sends a message for each that it receives. When all channels have taken equally long for the
//! last messages, and the first half of these as long as the second, nothing new happens until the collective ends,
//! another iteration begins, or a time limit is reached: so many messages are counted as carried as would arrive
//! meanwhile, and time passes. The fabric stays as it is, with its queues and frames in flight.
//!
//! ```text
//!   packets ──── window ────┐                             ┌──── packets: the last messages
//!                every channel as fast ──▶ messages, time ┘
//! ```

use super::parallel::locked;
use super::run::Run;
use super::scenario::Level;
use super::tasks::SharedTask;
use srdma_placement::{Lockstep, Message};
use srdma_wire::Instant;
use std::sync::Arc;

/// Messages of a channel from one recorded arrival to the next.
const STRIDE: u32 = 8;

/// Recorded arrivals of the shortest window.
const SHORTEST_WINDOW: usize = 4;

/// How far channels, and both halves of the window, may be apart: a share of the window.
const TOLERANCE: f64 = 0.001;

/// Messages of each channel that are simulated after a skip: those under way, and those with which a collective ends.
const LAST_MESSAGES: u32 = 24;

/// Messages below which a skip is not worthwhile.
const FEWEST_MESSAGES: u32 = 32;

/// Checks in a step of the run.
pub(super) const CHECKS_PER_STEP: u64 = 16;

/// Arrivals of each channel of a task in the collective under way.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    collective: u32,
    channels: Vec<Recorded>,
}

#[derive(Clone, Debug, Default)]
struct Recorded {
    messages: u32,
    /// Times of every so many messages, in nanoseconds.
    times: Vec<u64>,
}

/// What was skipped in a run.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    /// Time, in nanoseconds.
    pub(super) ns: u64,
    /// Messages, and their octets and packets.
    pub(super) messages: u64,
    pub(super) octets: u64,
    pub(super) packets: u64,
    /// Octets of links, by their position among the results.
    pub(super) links: Vec<u64>,
    /// Octets of links, and arrived messages, when the collective under way was first seen.
    since: Option<Since>,
}

#[derive(Debug)]
struct Since {
    task: usize,
    collective: u32,
    messages: u64,
    links: Vec<u64>,
}

/// The pace of a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    ns_per_message: f64,
    /// Messages after which it repeats.
    period: u32,
}

impl Arrivals {
    /// No arrivals at so many channels.
    pub(super) fn new(channels: usize) -> Self {
        Arrivals { collective: 0, channels: vec![Recorded::default(); channels] }
    }

    /// A message has arrived at a channel of this position.
    pub(super) fn add(&mut self, channel: usize, message: &Message, now: Instant) {
        if message.collective != self.collective {
            self.clear(message.collective);
        }
        let own = &mut self.channels[channel];
        own.messages += 1;
        if own.messages.is_multiple_of(STRIDE) {
            own.times.push(now.as_ns());
        }
    }

    /// Forgets all, and waits for arrivals of a collective.
    pub(super) fn clear(&mut self, collective: u32) {
        self.collective = collective;
        self.channels.fill_with(Recorded::default);
    }

    /// Arrived messages of a collective.
    fn messages(&self, collective: u32) -> u64 {
        let channels = self.channels.iter().filter(|_| self.collective == collective);
        channels.map(|own| u64::from(own.messages)).sum()
    }

    /// The pace of all channels in a collective, if it is steady: over the last arrivals, as many as a power of two.
    fn pace(&self, collective: u32) -> Option<Pace> {
        let recorded =
            self.channels.iter().map(|own| own.times.len()).min().filter(|_| self.collective == collective)?;
        // The first arrivals are those of messages that nothing had delayed.
        let longest = (recorded.checked_sub(2)? + 1).next_power_of_two() / 2;
        if longest < SHORTEST_WINDOW {
            return None;
        }
        let mean_ns = self.steady_window(recorded, longest)?;
        // Hops that differ return after so many messages, in which each channel takes the same time.
        let period = (0..).map(|power| 1 << power).find(|window| self.steady_window(recorded, *window).is_some())?;
        let messages = longest as u32 * STRIDE;
        Some(Pace { ns_per_message: mean_ns / f64::from(messages), period: period as u32 * STRIDE })
    }

    /// How long all channels have taken for so many recorded arrivals, in nanoseconds; `None` if they are apart.
    fn steady_window(&self, recorded: usize, window: usize) -> Option<f64> {
        let [first, last] = [recorded - 1 - window, recorded - 1];
        let (mut shortest, mut longest, mut sum, mut first_half) = (u64::MAX, 0, 0_u64, 0_u64);
        for Recorded { times, .. } in &self.channels {
            let ns = times[last] - times[first];
            (shortest, longest) = (shortest.min(ns), longest.max(ns));
            sum += ns;
            first_half += times[first + window / 2] - times[first];
        }
        let channels = self.channels.len() as f64;
        let (mean, tolerated) = (sum as f64 / channels, TOLERANCE * sum as f64 / channels);
        let halves_apart = if window > 1 { (2 * first_half).abs_diff(sum) as f64 / channels } else { 0.0 };
        ((longest - shortest) as f64 <= tolerated && halves_apart <= tolerated).then_some(mean)
    }
}

impl Run<'_> {
    /// Skips messages of a collective if its state is steady; `now_ns` is the time of the run, and `end_ns` its limit.
    /// Returns how long it took.
    pub(super) fn skip_steady(&mut self, now_ns: u64, end_ns: u64) -> u64 {
        if !self.scenario.skip_steady || self.scenario.level == Level::Flow {
            return 0;
        }
        let Some((number, task)) = self.only_running_task() else { return 0 };
        let (lockstep, pace, arrived) = {
            let task = locked(&task);
            let (Some(lockstep), Some(arrivals)) = (task.lockstep(), task.arrivals()) else { return 0 };
            (lockstep, arrivals.pace(lockstep.collective), arrivals.messages(lockstep.collective))
        };
        let since =
            self.skipped.since.take().filter(|since| since.task == number && since.collective == lockstep.collective);
        let since = since.unwrap_or_else(|| Since {
            task: number,
            collective: lockstep.collective,
            messages: arrived,
            links: self.link_octets(),
        });
        let skipped_ns = pace.and_then(|pace| {
            // Nothing else may begin, and no limit be reached, within the time that is skipped.
            let next_ns = self.jobs.next_start().map_or(end_ns, |(at_ns, _)| at_ns.min(end_ns));
            let room = (next_ns.saturating_sub(now_ns) as f64 / pace.ns_per_message) as u32;
            let rest = lockstep.messages.saturating_sub(lockstep.sent).saturating_sub(LAST_MESSAGES);
            let messages = rest.min(room.saturating_sub(1)) / pace.period * pace.period;
            (messages >= FEWEST_MESSAGES && arrived > since.messages).then(|| {
                let ns = (f64::from(messages) * pace.ns_per_message).round() as u64;
                self.skip(&task, lockstep, messages, ns, &since, arrived);
                ns
            })
        });
        // The counters of links go on from here.
        self.skipped.since = skipped_ns.is_none().then_some(since);
        skipped_ns.unwrap_or(0)
    }

    /// The task with an iteration under way, if there is one alone.
    fn only_running_task(&self) -> Option<(usize, SharedTask)> {
        let states = self.jobs.states().iter().enumerate();
        let mut running = states.filter(|(_, state)| locked(&state.task).is_running());
        let (number, state) = running.next()?;
        running.next().is_none().then(|| (number, Arc::clone(&state.task)))
    }

    /// Skips so many messages of each channel of a task, and time.
    fn skip(&mut self, task: &SharedTask, lockstep: Lockstep, messages: u32, ns: u64, since: &Since, arrived: u64) {
        let channels = {
            let mut task = locked(task);
            task.skip(messages);
            task.channels()
        };
        let mtu = u64::from(self.scenario.hosts.path_mtu().octets());
        let count = u64::from(messages) * channels.len() as u64;
        for channel in channels {
            let from = self.jobs.channels[channel].from;
            self.fabric.with_server(from, |server| server.skip(channel, u64::from(messages) * lockstep.octets));
        }
        let share = count as f64 / (arrived - since.messages) as f64;
        let now = self.link_octets();
        self.skipped.links.resize(now.len(), 0);
        for (skipped, (now, then)) in self.skipped.links.iter_mut().zip(now.iter().zip(&since.links)) {
            *skipped += ((now - then) as f64 * share).round() as u64;
        }
        self.skipped.ns += ns;
        self.skipped.messages += count;
        self.skipped.octets += count * lockstep.octets;
        self.skipped.packets += count * lockstep.octets.div_ceil(mtu).max(1);
    }

    /// Octets of each link in each direction, as far as they were simulated.
    fn link_octets(&self) -> Vec<u64> {
        self.directions().map(|(_, ends)| self.carried_octets(ends)).collect()
    }
}
