//! A trace, carried out: what is sent, received and computed when (D218).
//!
//! ```text
//!   waits ──▶ ready ──▶ begun ──▶ ended
//!               │ a processor is free, or it is a recv
//! ```
//!
//! A rank depends on its own messages and its own time alone, so ranks may be advanced one after the other. Operations
//! of a processor begin in the order in which they became ready; sends take no time of it, but wait until it is free.
//! A send ends when its message is acknowledged, a recv when a message with its sender and tag has arrived.

use super::{GoalTrace, Kind, Operation};
use crate::schedule::Message;
use srdma_toml_error::LineError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Messages from one rank to another that may be in flight: a send queue must have room for them.
const MOST_IN_FLIGHT: u32 = 256;

/// A trace that is carried out, iteration by iteration.
#[derive(Clone, Debug)]
pub struct Replay {
    trace: Arc<GoalTrace>,
    /// Iterations that have been begun.
    begun: u32,
    /// Operations of the iteration that have not ended.
    missing: u64,
    ranks: Vec<RankState>,
}

/// Sender and tag that a receive waits for; `None` for any.
type Wanted = (Option<u32>, Option<u32>);

/// The state of a rank in an iteration.
#[derive(Clone, Debug, Default)]
struct RankState {
    /// For each operation how many others it waits for.
    waits_for: Vec<u32>,
    /// Operations that are ready, in the order in which they became so.
    ready: VecDeque<u32>,
    cpus: Vec<Cpu>,
    /// Receives without a message, by sender and tag, with their position among all.
    receives: BTreeMap<Wanted, VecDeque<(u64, u32)>>,
    /// Messages without a receive, likewise.
    messages: BTreeMap<(u32, u32), VecDeque<u64>>,
    /// Receives and messages so far.
    counted: u64,
    outgoing: BTreeMap<u32, Outgoing>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// What it computes, and until when, in nanoseconds.
    computes: Option<(u64, u32)>,
    waiting: VecDeque<u32>,
}

/// Messages to another rank.
#[derive(Clone, Debug, Default)]
struct Outgoing {
    in_flight: u32,
    waiting: VecDeque<u32>,
}

impl Replay {
    /// A trace of which nothing has begun.
    pub fn new(trace: Arc<GoalTrace>) -> Self {
        let ranks = vec![RankState::default(); trace.ranks()];
        Replay { trace, begun: 0, missing: 0, ranks }
    }

    /// Whether an iteration is under way.
    pub fn is_running(&self) -> bool {
        self.missing > 0
    }

    /// Number of iterations that have begun.
    pub fn iterations(&self) -> u32 {
        self.begun
    }

    /// Begins the next iteration: adds what is sent first. Nothing happens while one is under way.
    pub fn begin(&mut self, now_ns: u64, sends: &mut Vec<Message>) {
        if self.is_running() {
            return;
        }
        self.begun = self.begun.wrapping_add(1);
        self.missing = self.trace.operations() as u64;
        for (state, rank) in self.ranks.iter_mut().zip(&self.trace.ranks) {
            *state = RankState {
                waits_for: rank.operations.iter().map(|operation| operation.waits_for).collect(),
                ready: (0..).zip(&rank.operations).filter(|(_, own)| own.waits_for == 0).map(|(at, _)| at).collect(),
                cpus: vec![Cpu::default(); rank.cpus as usize],
                ..RankState::default()
            };
        }
        (0..self.ranks.len() as u32).for_each(|rank| self.proceed(rank, now_ns, sends));
    }

    /// When a rank has computed something next, in nanoseconds.
    pub fn deadline_ns(&self, rank: u32) -> Option<u64> {
        let computes = self.ranks[rank as usize].cpus.iter().filter_map(|cpu| cpu.computes);
        computes.map(|(until_ns, _)| until_ns).min()
    }

    /// Time has passed for a rank: adds what it sends. `true` if the iteration has ended by that.
    pub fn advance(&mut self, rank: u32, now_ns: u64, sends: &mut Vec<Message>) -> bool {
        let was_running = self.is_running();
        for cpu in 0..self.ranks[rank as usize].cpus.len() {
            let own = &mut self.ranks[rank as usize].cpus[cpu];
            let Some((_, operation)) = own.computes.take_if(|(until_ns, _)| *until_ns <= now_ns) else { continue };
            self.ended(rank, operation);
            // What has waited for the processor goes before what has become ready now.
            while let Some(next) = self.ranks[rank as usize].cpus[cpu].next() {
                self.start(rank, next, now_ns, sends);
            }
        }
        self.proceed(rank, now_ns, sends);
        was_running && !self.is_running()
    }

    /// A message has arrived in full: adds what its receiver sends. `true` if the iteration has ended by that.
    pub fn arrived(&mut self, message: &Message, now_ns: u64, sends: &mut Vec<Message>) -> bool {
        if !self.is_of_iteration(message) {
            return false;
        }
        self.deliver(message);
        self.proceed(message.to, now_ns, sends);
        !self.is_running()
    }

    /// A message has been acknowledged: adds what its sender sends. `true` if the iteration has ended by that.
    pub fn acknowledged(&mut self, message: &Message, now_ns: u64, sends: &mut Vec<Message>) -> bool {
        if !self.is_of_iteration(message) {
            return false;
        }
        let outgoing = self.ranks[message.from as usize].outgoing.entry(message.to).or_default();
        outgoing.in_flight -= 1;
        if let Some(next) = outgoing.waiting.pop_front() {
            outgoing.in_flight += 1;
            sends.extend(self.message(message.from, next));
        }
        self.ended(message.from, message.step);
        self.proceed(message.from, now_ns, sends);
        !self.is_running()
    }

    fn is_of_iteration(&self, message: &Message) -> bool {
        self.is_running() && message.collective == self.begun
    }

    /// Gives a message to the receive that has waited longest for it.
    fn deliver(&mut self, message: &Message) {
        let Kind::Send { tag, .. } = self.trace.operation(message.from, message.step).kind else { return };
        let state = &mut self.ranks[message.to as usize];
        let keys = [Some(message.from), None].into_iter().flat_map(|from| [Some(tag), None].map(|tag| (from, tag)));
        let first = keys.filter_map(|key| Some((*state.receives.get(&key)?.front()?, key))).min();
        match first {
            Some(((_, operation), key)) => {
                pop(&mut state.receives, &key);
                self.ended(message.to, operation);
            }
            None => {
                state.counted += 1;
                state.messages.entry((message.from, tag)).or_default().push_back(state.counted);
            }
        }
    }

    /// Begins all that is ready.
    fn proceed(&mut self, rank: u32, now_ns: u64, sends: &mut Vec<Message>) {
        while let Some(operation) = self.ranks[rank as usize].ready.pop_front() {
            let own = self.trace.operation(rank, operation);
            let cpu = &mut self.ranks[rank as usize].cpus[own.cpu as usize];
            match own.kind {
                Kind::Send { .. } | Kind::Compute { .. } if cpu.computes.is_some() => cpu.waiting.push_back(operation),
                Kind::Send { .. } | Kind::Compute { .. } | Kind::Receive { .. } => {
                    self.start(rank, operation, now_ns, sends);
                }
            }
        }
    }

    /// Begins an operation whose processor is free.
    fn start(&mut self, rank: u32, operation: u32, now_ns: u64, sends: &mut Vec<Message>) {
        let own = self.trace.operation(rank, operation);
        let (kind, cpu) = (own.kind, own.cpu as usize);
        self.release(rank, operation, true);
        match kind {
            Kind::Receive { from, tag } => self.receive(rank, operation, from, tag),
            Kind::Send { to, .. } => self.send(rank, operation, to, sends),
            Kind::Compute { ns: 0 } => self.ended(rank, operation),
            Kind::Compute { ns } => {
                self.ranks[rank as usize].cpus[cpu].computes = Some((now_ns.saturating_add(ns), operation));
            }
        }
    }

    /// Takes the message that has waited longest for a receive, or waits for one.
    fn receive(&mut self, rank: u32, operation: u32, from: Option<u32>, tag: Option<u32>) {
        let state = &mut self.ranks[rank as usize];
        let first = match (from, tag) {
            (Some(from), Some(tag)) => state.messages.contains_key(&(from, tag)).then_some((from, tag)),
            _ => {
                let fits = |wanted: Option<u32>, found: u32| wanted.is_none_or(|wanted| wanted == found);
                let fitting = state.messages.iter().filter(|(key, _)| fits(from, key.0) && fits(tag, key.1));
                fitting.min_by_key(|(_, positions)| positions.front().copied()).map(|(key, _)| *key)
            }
        };
        match first {
            Some(key) => {
                pop(&mut state.messages, &key);
                self.ended(rank, operation);
            }
            None => {
                state.counted += 1;
                state.receives.entry((from, tag)).or_default().push_back((state.counted, operation));
            }
        }
    }

    /// Sends a message, if there is room in flight. One to the rank itself arrives at once.
    fn send(&mut self, rank: u32, operation: u32, to: u32, sends: &mut Vec<Message>) {
        if to == rank {
            let message = self.message(rank, operation);
            message.iter().for_each(|message| self.deliver(message));
            return self.ended(rank, operation);
        }
        let outgoing = self.ranks[rank as usize].outgoing.entry(to).or_default();
        if outgoing.in_flight < MOST_IN_FLIGHT {
            outgoing.in_flight += 1;
            sends.extend(self.message(rank, operation));
        } else {
            outgoing.waiting.push_back(operation);
        }
    }

    /// The message of a send.
    fn message(&self, from: u32, step: u32) -> Option<Message> {
        match self.trace.operation(from, step).kind {
            Kind::Send { to, octets, .. } => Some(Message { collective: self.begun, from, to, lane: 0, step, octets }),
            Kind::Receive { .. } | Kind::Compute { .. } => None,
        }
    }

    fn ended(&mut self, rank: u32, operation: u32) {
        self.missing -= 1;
        self.release(rank, operation, false);
    }

    /// Makes ready what has waited for an operation alone.
    fn release(&mut self, rank: u32, operation: u32, for_begin: bool) {
        let state = &mut self.ranks[rank as usize];
        let dependents = self.trace.dependents(rank, operation).iter();
        for dependent in dependents.filter(|dependent| dependent.for_begin == for_begin) {
            let waits_for = &mut state.waits_for[dependent.operation as usize];
            *waits_for -= 1;
            if *waits_for == 0 {
                state.ready.push_back(dependent.operation);
            }
        }
    }
}

impl Cpu {
    /// What has waited longest for it, while it computes nothing.
    fn next(&mut self) -> Option<u32> {
        if self.computes.is_some() { None } else { self.waiting.pop_front() }
    }
}

/// Removes the first of a queue, and the queue with its last one.
fn pop<K: Ord, V>(queues: &mut BTreeMap<K, VecDeque<V>>, key: &K) {
    if let Some(queue) = queues.get_mut(key) {
        queue.pop_front();
        if queue.is_empty() {
            queues.remove(key);
        }
    }
}

/// Checks that a trace ends, and that all messages are received, by carrying it out in a network without delay.
///
/// # Errors
///
/// The first operation that waits in vain, or the first message without a receive.
pub(super) fn check(trace: &GoalTrace) -> Result<(), LineError> {
    let mut replay = Replay::new(Arc::new(trace.clone()));
    let mut sends = Vec::new();
    replay.begin(0, &mut sends);
    let mut all = 0..trace.ranks() as u32;
    let computing = |replay: &Replay, rank| Some((replay.deadline_ns(rank)?, rank));
    let mut computes: BTreeSet<(u64, u32)> = all.clone().filter_map(|rank| computing(&replay, rank)).collect();
    let mut arriving: VecDeque<Message> = sends.drain(..).collect();
    let mut now_ns = 0;
    while replay.is_running() {
        let ranks = if let Some(message) = arriving.pop_front() {
            replay.arrived(&message, now_ns, &mut sends);
            replay.acknowledged(&message, now_ns, &mut sends);
            [message.to, message.from]
        } else if let Some((next_ns, rank)) = computes.pop_first() {
            now_ns = next_ns;
            replay.advance(rank, now_ns, &mut sends);
            [rank; 2]
        } else {
            return Err(stuck(&replay));
        };
        arriving.extend(sends.drain(..));
        computes.extend(ranks.into_iter().filter_map(|rank| computing(&replay, rank)));
    }
    all.try_for_each(|rank| not_received(&replay, rank))
}

/// The first operation that has not ended: a receive that has begun, if there is one.
fn stuck(replay: &Replay) -> LineError {
    let mut waiting: Vec<(u32, u32)> = Vec::new();
    for (rank, state) in (0..).zip(&replay.ranks) {
        waiting.extend(state.receives.values().flatten().map(|(_, operation)| (rank, *operation)));
    }
    if let Some((rank, operation)) = waiting.into_iter().min() {
        let line = replay.trace.operation(rank, operation).line as usize;
        return LineError { line, problem: format!("rank {rank} waits here for a message that no rank sends before") };
    }
    let blocked = (0..).zip(&replay.ranks).find_map(|(rank, state)| {
        let operation = state.waits_for.iter().position(|waits_for| *waits_for > 0)?;
        Some((rank, operation as u32))
    });
    let (rank, operation) = blocked.unwrap_or_default();
    let line = replay.trace.operation(rank, operation).line as usize;
    LineError { line, problem: format!("rank {rank} never begins this: what it requires waits for it in turn") }
}

fn not_received(replay: &Replay, rank: u32) -> Result<(), LineError> {
    let Some((from, tag)) = replay.ranks[rank as usize].messages.keys().next().copied() else { return Ok(()) };
    let operations = &replay.trace.ranks[from as usize].operations;
    let is_last =
        |operation: &&Operation| matches!(operation.kind, Kind::Send { to, tag: own, .. } if to == rank && own == tag);
    let line = operations.iter().rfind(is_last).map_or(1, |operation| operation.line as usize);
    let problem = format!("rank {rank} has no recv for each message from rank {from} with tag {tag}");
    Err(LineError { line, problem })
}
