//! A server as a rank of collectives: it sends each message as soon as the message's dependencies have arrived.
//!
//! ```text
//!   WRITE with immediate received ──► task: arrived ──► dependent messages of this rank are sent
//! ```
//!
//! A channel may be divided over several queue pairs, its lanes. Each message is divided likewise, and has arrived when
//! all pieces have.

use super::page_memory::PageMemory;
use super::parallel::locked;
use super::server::write;
use super::tasks::{First, SharedTask};
use srdma_placement::Message;
use srdma_rc::{CompletedOperation, Completion, Endpoint, LocalRange, MemoryKey, PostError, Receive, Status};
use srdma_wire::{Instant, Qpn};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Receives posted in advance on each lane; each is replaced when it is used.
const RECEIVES_AHEAD: usize = 4;

/// The channels of a server in all tasks.
#[derive(Default)]
pub(super) struct Rank {
    incoming: BTreeMap<usize, Incoming>,
    outgoing: BTreeMap<usize, Outgoing>,
    lanes: BTreeMap<Qpn, Lane>,
    /// Tasks whose ranks compute.
    timers: Vec<Timer>,
    /// Reused memory.
    more: Vec<Message>,
}

/// When a rank of a task has computed something.
struct Timer {
    task: SharedTask,
    rank: u32,
    at: Instant,
}

/// Counters of a channel at its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Octets of acknowledged messages.
    pub(super) octets: u64,
    /// Nanoseconds with at least one unacknowledged message.
    pub(super) busy_ns: u64,
}

#[derive(Clone, Copy)]
struct Lane {
    channel: usize,
    lane: usize,
    comes_in: bool,
}

/// Received pieces of each lane, and complete messages.
struct Pieces {
    of_lanes: Vec<u64>,
    messages: u64,
}

struct Incoming {
    task: SharedTask,
    /// The own rank.
    rank: u32,
    arrived: Pieces,
}

struct Outgoing {
    task: SharedTask,
    /// The own rank.
    rank: u32,
    lanes: Vec<Qpn>,
    acknowledged: Pieces,
    /// Unacknowledged messages.
    in_flight: VecDeque<Message>,
    /// Start of the busy time that is not yet counted.
    busy_since: Instant,
    sent: Sent,
}

/// Context of posting.
pub(super) struct RankContext<'a> {
    /// The endpoint of the server.
    pub(super) endpoint: &'a mut Endpoint<PageMemory>,
    /// The region of all its messages; peers have the same key.
    pub(super) region: MemoryKey,
    /// Payload of a full packet.
    pub(super) mtu_octets: u64,
    pub(super) now: Instant,
}

impl Pieces {
    fn none(lanes: usize) -> Self {
        Pieces { of_lanes: vec![0; lanes], messages: 0 }
    }

    /// Adds a piece of a lane; returns the number of messages that it completes.
    fn add(&mut self, lane: usize) -> u64 {
        self.of_lanes[lane] += 1;
        let messages = self.of_lanes.iter().copied().min().unwrap_or(0);
        messages - std::mem::replace(&mut self.messages, messages)
    }
}

impl Rank {
    /// Adds a channel as receiver, with these queue pairs.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn add_incoming(
        &mut self,
        channel: usize,
        task: SharedTask,
        lanes: &[Qpn],
        context: &mut RankContext<'_>,
    ) -> Result<(), PostError> {
        for (lane, qpn) in lanes.iter().enumerate() {
            self.lanes.insert(*qpn, Lane { channel, lane, comes_in: true });
            (0..RECEIVES_AHEAD).try_for_each(|_| context.endpoint.post_receive(*qpn, token(context.region)))?;
        }
        let rank = locked(&task).ranks_of(channel)[1];
        self.incoming.insert(channel, Incoming { task, rank, arrived: Pieces::none(lanes.len()) });
        Ok(())
    }

    /// Adds a channel as sender.
    pub(super) fn add_outgoing(&mut self, channel: usize, task: SharedTask, lanes: &[Qpn]) {
        for (lane, qpn) in lanes.iter().enumerate() {
            self.lanes.insert(*qpn, Lane { channel, lane, comes_in: false });
        }
        let rank = locked(&task).ranks_of(channel)[0];
        let outgoing = Outgoing {
            task,
            rank,
            lanes: lanes.to_vec(),
            acknowledged: Pieces::none(lanes.len()),
            in_flight: VecDeque::new(),
            busy_since: Instant::ZERO,
            sent: Sent::default(),
        };
        self.outgoing.insert(channel, outgoing);
    }

    /// True if the queue pair belongs to a channel.
    pub(super) fn has(&self, qpn: Qpn) -> bool {
        self.lanes.contains_key(&qpn)
    }

    /// Handles a received or acknowledged piece and sends the messages that depend on it.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn on_completion(
        &mut self,
        completion: &Completion,
        context: &mut RankContext<'_>,
    ) -> Result<(), PostError> {
        let Some(Lane { channel, lane, comes_in }) = self.lanes.get(&completion.qpn).copied() else {
            return Ok(());
        };
        if completion.status != Status::Success
            || comes_in != (completion.operation == CompletedOperation::ReceiveWriteImmediate)
        {
            return Ok(());
        }
        let mut more = std::mem::take(&mut self.more);
        let (task, rank, deadline) = if comes_in {
            context.endpoint.post_receive(completion.qpn, token(context.region))?;
            let Some(incoming) = self.incoming.get_mut(&channel) else { return Ok(()) };
            let messages = incoming.arrived.add(lane);
            let mut task = locked(&incoming.task);
            (0..messages).for_each(|_| task.arrived(context.now, channel, &mut more));
            (SharedTask::clone(&incoming.task), incoming.rank, task.deadline(incoming.rank))
        } else {
            let Some(outgoing) = self.outgoing.get_mut(&channel) else { return Ok(()) };
            let deadline = outgoing.on_acknowledged(lane, completion.length_octets, context.now, &mut more);
            (SharedTask::clone(&outgoing.task), outgoing.rank, deadline)
        };
        let posted = self.send(&task, &more, context);
        self.set_timer(&task, rank, deadline);
        more.clear();
        self.more = more;
        posted
    }

    /// Begins an iteration, or a collective of it.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn begin(
        &mut self,
        task: &SharedTask,
        first: &First,
        context: &mut RankContext<'_>,
    ) -> Result<(), PostError> {
        let deadline = locked(task).deadline(first.rank);
        self.set_timer(task, first.rank, deadline);
        self.send(task, &first.messages, context)
    }

    /// When a rank has computed something next.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.timers.iter().map(|timer| timer.at).min()
    }

    /// Sends what ranks have computed by now.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    pub(super) fn tick(&mut self, context: &mut RankContext<'_>) -> Result<(), PostError> {
        let due: Vec<Timer> = self.timers.extract_if(.., |timer| timer.at <= context.now).collect();
        for Timer { task, rank, .. } in due {
            let mut more = Vec::new();
            let deadline = {
                let mut task = locked(&task);
                task.advance(context.now, rank, &mut more);
                task.deadline(rank)
            };
            self.set_timer(&task, rank, deadline);
            self.send(&task, &more, context)?;
        }
        Ok(())
    }

    fn set_timer(&mut self, task: &SharedTask, rank: u32, deadline: Option<Instant>) {
        self.timers.retain(|timer| !Arc::ptr_eq(&timer.task, task));
        self.timers.extend(deadline.map(|at| Timer { task: SharedTask::clone(task), rank, at }));
    }

    /// Sends messages of a task.
    ///
    /// # Errors
    ///
    /// Those of the endpoint.
    fn send(
        &mut self,
        task: &SharedTask,
        messages: &[Message],
        context: &mut RankContext<'_>,
    ) -> Result<(), PostError> {
        for message in messages {
            let channel = locked(task).sent(message);
            if let Some(outgoing) = channel.and_then(|channel| self.outgoing.get_mut(&channel)) {
                outgoing.post(message, context)?;
            }
        }
        Ok(())
    }

    /// Counts octets of messages to a channel that were skipped, and the time for them.
    pub(super) fn skip(&mut self, channel: usize, octets: u64) {
        if let Some(Outgoing { sent, .. }) = self.outgoing.get_mut(&channel) {
            let growth = octets as f64 / sent.octets.max(1) as f64;
            sent.busy_ns += (sent.busy_ns as f64 * growth).round() as u64;
            sent.octets += octets;
        }
    }

    /// Counters of each channel of this sender, by its number.
    pub(super) fn sent(&self) -> impl Iterator<Item = (usize, Sent)> {
        self.outgoing.iter().map(|(channel, outgoing)| (*channel, outgoing.sent))
    }
}

impl Outgoing {
    /// Posts a message, a piece on each lane: whole packets, divided as evenly as possible.
    fn post(&mut self, message: &Message, context: &mut RankContext<'_>) -> Result<(), PostError> {
        if self.in_flight.is_empty() {
            self.busy_since = context.now;
        }
        self.in_flight.push_back(*message);
        let piece = message.octets.div_ceil(context.mtu_octets).div_ceil(self.lanes.len() as u64) * context.mtu_octets;
        for (lane, qpn) in (0..).zip(&self.lanes) {
            let length = message.octets.saturating_sub(lane * piece).min(piece);
            let immediate = Some(message.step.to_be_bytes());
            context.endpoint.post_send(*qpn, write(0, context.region, length as u32, immediate))?;
        }
        Ok(())
    }

    /// Returns when the own rank has computed something next.
    fn on_acknowledged(&mut self, lane: usize, octets: u32, now: Instant, more: &mut Vec<Message>) -> Option<Instant> {
        self.sent.octets += u64::from(octets);
        self.sent.busy_ns += now.as_ns() - self.busy_since.as_ns();
        self.busy_since = now;
        let mut task = locked(&self.task);
        for _ in 0..self.acknowledged.add(lane) {
            if let Some(message) = self.in_flight.pop_front() {
                task.acknowledged(now, &message, more);
            }
        }
        task.deadline(self.rank)
    }
}

/// The receive that a WRITE with immediate data consumes.
fn token(region: MemoryKey) -> Receive {
    Receive { wr_id: 0, local: LocalRange { key: region, offset: 0, length_octets: 0 } }
}
