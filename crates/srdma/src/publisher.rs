//! The source's half of the version protocol, without I/O: versions in, work requests out (D170, D172).
//!
//! ```text
//!   publish ──► queue ──► SEND begin ─► WRITE, … ─► SEND end ──► all complete ──► Published
//!                 ▲            │
//!                 │            └── not accepted for slow_after: Slow, once
//!                 └── begins only while the controller lets the source send: joins happen between versions (D174)
//! ```

mod silence;

use crate::buffer::Buffer;
use crate::current::Current;
use crate::digest::{Digest, DigestKind, Hasher};
use crate::error::PairError;
use crate::manifest::{End, Entry, Manifest, ManifestError, SlotRegions};
use crate::memory::HostMemory;
use crate::provider::{Registrar, SourceQueue};
use crate::statistics::Statistics;
use silence::Silence;
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_rc::{LocalRange, Memory, MemoryKey, Operation, RemoteAddress, WorkRequest};
use srdma_verbs::VerbsError;
use srdma_wire::{Instant, PathMtu};
use std::collections::VecDeque;
use std::time::Duration;

/// Versions that wait or are being sent.
const MAX_QUEUED: usize = 64;
/// Alignment of buffers in their slot, octets: that of a cache line, so that a receiver can use each in place.
const ALIGNMENT_OCTETS: u64 = 64;
/// Interval for asking again while no version may begin.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Parameters of a publisher.
#[derive(Clone, Debug)]
pub(crate) struct PublisherConfig {
    pub(crate) path_mtu: PathMtu,
    /// A message is posted while fewer packets than twice this are outstanding.
    pub(crate) window_packets: u32,
    /// Length of a WRITE, at most.
    pub(crate) message_octets: u32,
    /// The group's regions, as the source writes to them (D27, D191): one for each of those of `slots`.
    pub(crate) regions: Vec<RemoteAddress>,
    pub(crate) slots: SlotRegions,
    pub(crate) digest: DigestKind,
    /// A version that the receivers have not accepted for this time is reported.
    pub(crate) slow_after: Duration,
    /// The queue pair is given up if the group does not respond for this time.
    pub(crate) gives_up_after: Option<Duration>,
    /// The version that was published last is kept, for receivers that join late (D190).
    pub(crate) keeps_current: bool,
}

/// What has become of versions.
#[derive(Clone, Debug)]
pub(crate) enum PublisherEvent {
    /// Every member has all octets. The buffers are the application's again.
    Published { version: u64 },
    /// A receiver has no free slot for the version for `slow_after`.
    Slow { version: u64 },
    /// The version is not published, and will not be. The buffers are the application's again.
    Failed { version: u64, failure: Failure },
}

/// Why versions fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The group was closed.
    #[error("the group is closed")]
    Closed,
    /// The source was closed.
    #[error("the source is closed")]
    Abandoned,
    /// The queue pair has failed.
    #[error("the queue pair has failed: {0}")]
    QueuePair(PairError),
    /// The group has not responded for as long as a rail waits.
    #[error("the group does not respond")]
    Silent,
}

/// Why a version is not published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishError {
    #[error("version {version} is not after version {newest}")]
    NotNewer { version: u64, newest: u64 },
    #[error("{MAX_QUEUED} versions wait already")]
    QueueFull,
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    #[error("{0}")]
    Memory(#[from] VerbsError),
    #[error("{0}")]
    Failed(Failure),
}

/// A version that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    manifest: Manifest,
    memory: Memories<HostMemory>,
}

/// Memory of a version: its begin message, its buffers, and its end message, which is written when all digests are
/// known.
#[derive(Debug)]
struct Memories<M> {
    begin: M,
    buffers: Vec<M>,
    end: M,
}

/// A version that is being sent.
#[derive(Debug)]
struct Sending {
    manifest: Manifest,
    memory: Memories<MemoryKey>,
    stage: Stage,
    digests: Vec<Digest>,
    /// Messages of all versions before its begin message.
    first_message: u64,
    /// The begin message has been the oldest one that is not complete since this time.
    offered_at: Option<Instant>,
    is_slow: bool,
}

/// The next work request of a version.
#[derive(Debug)]
enum Stage {
    Begin,
    /// Octets of a buffer from an offset on, and the digest of those before.
    Data {
        index: usize,
        offset: u64,
        hasher: Hasher,
    },
    End,
    /// All are posted; the number of messages of all versions up to its end message.
    Posted {
        messages: u64,
    },
}

/// The source of a group.
#[derive(Debug)]
pub(crate) struct Publisher {
    config: PublisherConfig,
    registrar: Registrar,
    waiting: VecDeque<Waiting>,
    sending: VecDeque<Sending>,
    newest: Option<u64>,
    sequence: u64,
    begun_messages: u64,
    completed_messages: u64,
    begun_packets: u64,
    poll_at: Option<Instant>,
    silence: Silence,
    failure: Option<Failure>,
    events: VecDeque<PublisherEvent>,
    /// The version that was published last, until it is taken.
    current: Option<Current>,
    statistics: Statistics,
    scratch: Vec<u8>,
}

impl Publisher {
    pub(crate) fn new(config: PublisherConfig, registrar: Registrar) -> Self {
        Publisher {
            config,
            registrar,
            waiting: VecDeque::new(),
            sending: VecDeque::new(),
            newest: None,
            sequence: 0,
            begun_messages: 0,
            completed_messages: 0,
            begun_packets: 0,
            poll_at: None,
            silence: Silence::default(),
            failure: None,
            events: VecDeque::new(),
            current: None,
            statistics: Statistics::default(),
            scratch: vec![0; 64 << 10],
        }
    }

    /// Takes a version, which is sent after those before it, in both steps.
    #[cfg(test)]
    pub(crate) fn publish(&mut self, version: u64, buffers: Vec<Buffer>) -> Result<(), PublishError> {
        let version = self.prepare(version, buffers)?;
        self.enqueue(version);
        Ok(())
    }

    /// The next version, which is sent after those before it; [`Self::enqueue`] takes it, with no other one between.
    /// The registrar has made its buffers ready.
    pub(crate) fn prepare(&self, version: u64, buffers: Vec<Buffer>) -> Result<Waiting, PublishError> {
        if let Some(failure) = self.failure {
            return Err(PublishError::Failed(failure));
        }
        if let Some(newest) = self.newest.filter(|newest| version <= *newest) {
            return Err(PublishError::NotNewer { version, newest });
        }
        if self.waiting.len() + self.sending.len() >= MAX_QUEUED {
            return Err(PublishError::QueueFull);
        }
        let entries = layout(&buffers);
        let manifest = Manifest::new(version, self.sequence, self.config.slots.clone(), self.config.digest, entries)?;
        let memory = Memories {
            begin: self.registrar.message(manifest.emit())?,
            buffers: buffers.into_iter().map(|buffer| HostMemory::Source(buffer.octets)).collect(),
            end: self.registrar.message(vec![0; End::octets(self.config.digest, manifest.buffers().len())])?,
        };
        Ok(Waiting { manifest, memory })
    }

    /// Takes a version that is prepared.
    pub(crate) fn enqueue(&mut self, version: Waiting) {
        self.newest = Some(version.manifest.version());
        self.sequence += 1;
        self.waiting.push_back(version);
    }

    /// The oldest event not yet fetched.
    pub(crate) fn poll_event(&mut self) -> Option<PublisherEvent> {
        self.events.pop_front()
    }

    /// The version that was published last, once, if it is kept.
    pub(crate) fn take_current(&mut self) -> Option<Current> {
        self.current.take()
    }

    /// What it has done.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics { waiting: (self.waiting.len() + self.sending.len()) as u64, ..self.statistics }
    }

    /// Why nothing is sent any more.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Whether nothing waits or is being sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.sending.is_empty()
    }

    /// Handles completions, and posts what can be sent now.
    pub(crate) fn work(&mut self, now: Instant, queue: &mut dyn SourceQueue, control: &mut dyn SourceControl) {
        while let Some(completion) = queue.poll_completion() {
            match completion {
                Ok(()) => self.completed_messages += 1,
                // Work that is flushed follows the failure.
                Err(error) => drop(self.failure.get_or_insert(Failure::QueuePair(error))),
            }
        }
        self.finish_complete(queue);
        if self.failure.is_none() {
            let acknowledged = queue.acknowledged_packets();
            match self.session_state(now, acknowledged, control) {
                SessionState::Sending => self.post(queue, acknowledged, true),
                // The version that has begun is sent to its end (D174).
                SessionState::Draining | SessionState::Paused => self.post(queue, acknowledged, false),
                SessionState::Ended => self.failure = Some(Failure::Closed),
            }
            if let Some(after) = self.config.gives_up_after.filter(|_| self.failure.is_none()) {
                let is_waiting = acknowledged < self.begun_packets;
                self.failure = self.silence.lasts(now, after, is_waiting, queue).then_some(Failure::Silent);
            }
        }
        self.statistics.packets = queue.packets();
        match self.failure {
            Some(failure) => self.fail(queue, failure),
            None => self.watch(now),
        }
    }

    /// Ends the source: all versions that are not published fail.
    pub(crate) fn abandon(&mut self, queue: &mut dyn SourceQueue) {
        let failure = *self.failure.get_or_insert(Failure::Abandoned);
        self.fail(queue, failure);
    }

    /// Time of the next call of [`Self::work`], if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let slow_at = self.sending.front().filter(|front| !front.is_slow).and_then(|front| front.offered_at);
        let slow_at = slow_at.map(|offered_at| offered_at + self.config.slow_after);
        self.poll_at.into_iter().chain(slow_at).chain(self.silence.deadline()).min()
    }

    fn session_state(
        &mut self,
        now: Instant,
        acknowledged_packets: u64,
        control: &mut dyn SourceControl,
    ) -> SessionState {
        let is_drained = self.sending.is_empty();
        let state = control.update(StreamProgress {
            begun_packets: self.begun_packets,
            acknowledged_packets: if is_drained { self.begun_packets } else { acknowledged_packets },
            completed_messages: self.completed_messages,
            is_drained,
        });
        self.poll_at = match state {
            SessionState::Draining | SessionState::Paused => Some(now + POLL_INTERVAL),
            SessionState::Sending | SessionState::Ended => None,
        };
        state
    }

    fn post(&mut self, queue: &mut dyn SourceQueue, acknowledged_packets: u64, may_begin: bool) {
        let most = acknowledged_packets + 2 * u64::from(self.config.window_packets);
        while self.begun_packets < most {
            let is_posted = match self.sending.back().map(|version| &version.stage) {
                None | Some(Stage::Posted { .. }) => may_begin && self.begin(queue),
                Some(Stage::Begin | Stage::Data { .. } | Stage::End) => self.post_next(queue),
            };
            if !is_posted {
                return;
            }
        }
    }

    /// Begins the next version that waits; false if none does.
    fn begin(&mut self, queue: &mut dyn SourceQueue) -> bool {
        let Some(Waiting { manifest, memory }) = self.waiting.pop_front() else { return false };
        let mut register = |memory| queue.register(memory);
        let memory = Memories {
            begin: register(memory.begin),
            buffers: memory.buffers.into_iter().map(&mut register).collect(),
            end: register(memory.end),
        };
        self.sending.push_back(Sending {
            manifest,
            memory,
            stage: Stage::Begin,
            digests: Vec::new(),
            first_message: self.begun_messages,
            offered_at: None,
            is_slow: false,
        });
        self.post_next(queue)
    }

    /// Posts the next work request of the newest version; false if there is none, or the queue is full.
    fn post_next(&mut self, queue: &mut dyn SourceQueue) -> bool {
        let Some(version) = self.sending.back_mut() else { return false };
        let (operation, local) = match &version.stage {
            Stage::Begin => (SEND, whole(queue, version.memory.begin)),
            Stage::Data { index, offset, .. } => {
                let entry = &version.manifest.buffers()[*index];
                let length_octets = (entry.length_octets - offset).min(self.config.message_octets.into()) as u32;
                let place = version.manifest.place(entry.region, entry.offset + offset);
                // The manifest has no other regions.
                let Some(base) = self.config.regions.get(usize::from(entry.region)) else { return false };
                let remote =
                    RemoteAddress { virtual_address: base.virtual_address.wrapping_add(place), rkey: base.rkey };
                let local = LocalRange { key: version.memory.buffers[*index], offset: *offset, length_octets };
                (Operation::Write { remote, immediate: None }, local)
            }
            Stage::End => {
                let digests = version.digests.clone();
                let end = End { version: version.manifest.version(), digest: self.config.digest, digests };
                if let Some(memory) = queue.memory_mut(version.memory.end) {
                    memory.write(0, &end.emit());
                }
                (SEND, whole(queue, version.memory.end))
            }
            Stage::Posted { .. } => return false,
        };
        let request = WorkRequest { wr_id: self.begun_messages, operation, local, signalled: true };
        // A full queue takes it later; a failed queue pair has completed what was posted with an error.
        if !queue.post_send(request) {
            return false;
        }
        self.begun_messages += 1;
        self.begun_packets += u64::from(self.config.path_mtu.packets(local.length_octets));
        version.advance(queue, local, self.begun_messages, &mut self.scratch);
        true
    }

    /// Gives back the buffers of versions whose messages are all complete.
    fn finish_complete(&mut self, queue: &mut dyn SourceQueue) {
        while let Some(front) = self.sending.front() {
            let is_complete = matches!(front.stage, Stage::Posted { messages } if messages <= self.completed_messages);
            if !is_complete {
                return;
            }
            let Some(done) = self.sending.pop_front() else { return };
            if self.config.keeps_current {
                self.current = Some(done.current(queue));
            }
            done.deregister(queue);
            self.statistics.versions += 1;
            self.statistics.octets += done.manifest.buffer_octets();
            self.events.push_back(PublisherEvent::Published { version: done.manifest.version() });
        }
    }

    /// Reports a version that has not been accepted for too long.
    fn watch(&mut self, now: Instant) {
        let Some(front) = self.sending.front_mut() else { return };
        if self.completed_messages != front.first_message {
            front.offered_at = None;
            return;
        }
        let offered_at = *front.offered_at.get_or_insert(now);
        if !front.is_slow && now >= offered_at + self.config.slow_after {
            front.is_slow = true;
            self.statistics.slow += 1;
            self.events.push_back(PublisherEvent::Slow { version: front.manifest.version() });
        }
    }

    /// Memory returns only when nothing can read it any more: the queue pair goes first.
    fn fail(&mut self, queue: &mut dyn SourceQueue, failure: Failure) {
        self.poll_at = None;
        self.silence = Silence::default();
        if self.is_idle() {
            return;
        }
        queue.destroy();
        self.statistics.failed += (self.sending.len() + self.waiting.len()) as u64;
        for version in self.sending.drain(..) {
            version.deregister(queue);
            self.events.push_back(PublisherEvent::Failed { version: version.manifest.version(), failure });
        }
        for Waiting { manifest, .. } in self.waiting.drain(..) {
            self.events.push_back(PublisherEvent::Failed { version: manifest.version(), failure });
        }
    }
}

const SEND: Operation = Operation::Send { immediate: None };

fn whole(queue: &dyn SourceQueue, key: MemoryKey) -> LocalRange {
    let length_octets = queue.memory(key).map_or(0, |memory| memory.len() as u32);
    LocalRange { key, offset: 0, length_octets }
}

impl Sending {
    /// The stage after the one whose work request has been posted.
    fn advance(&mut self, queue: &dyn SourceQueue, posted: LocalRange, messages: u64, scratch: &mut [u8]) {
        let kind = self.manifest.digest();
        let buffers = self.manifest.buffers();
        let stage = std::mem::replace(&mut self.stage, Stage::Posted { messages });
        let (mut index, mut offset, mut hasher) = match stage {
            Stage::Begin => (0, 0, Hasher::new(kind)),
            Stage::Data { index, offset, mut hasher } => {
                update(&mut hasher, queue, posted, scratch);
                (index, offset + u64::from(posted.length_octets), hasher)
            }
            Stage::End | Stage::Posted { .. } => return,
        };
        // Buffers without octets need no message.
        while buffers.get(index).is_some_and(|entry| entry.length_octets == offset) {
            self.digests.push(std::mem::replace(&mut hasher, Hasher::new(kind)).finish());
            (index, offset) = (index + 1, 0);
        }
        self.stage = if index < buffers.len() { Stage::Data { index, offset, hasher } } else { Stage::End };
    }

    /// The version with handles of its buffers.
    fn current(&self, queue: &dyn SourceQueue) -> Current {
        let octets = |key: &MemoryKey| match queue.memory(*key) {
            Some(HostMemory::Source(octets)) => Some(octets.clone()),
            Some(HostMemory::Messages(_) | HostMemory::Registered(_) | HostMemory::Slots(_)) | None => None,
        };
        let buffers = self.memory.buffers.iter().filter_map(octets).collect();
        Current { manifest: self.manifest.clone(), digests: self.digests.clone(), buffers }
    }

    /// Drops the memory. All work that uses it is complete, or its queue pair is gone.
    fn deregister(&self, queue: &mut dyn SourceQueue) {
        let Memories { begin, buffers, end } = &self.memory;
        for key in buffers.iter().chain([begin, end]) {
            queue.deregister(*key);
        }
    }
}

/// Adds what has been posted to the digest. The octets are read as packets read them.
fn update(hasher: &mut Hasher, queue: &dyn SourceQueue, range: LocalRange, scratch: &mut [u8]) {
    let Some(memory) = queue.memory(range.key) else { return };
    let mut offset = range.offset;
    let mut left = range.length_octets as usize;
    while left > 0 {
        let length = left.min(scratch.len());
        memory.read(offset, &mut scratch[..length]);
        hasher.update(&scratch[..length]);
        offset += length as u64;
        left -= length;
    }
}

/// The places of buffers in the slots of their regions, one behind the other. One that is beyond any slot makes no
/// manifest.
pub(crate) fn layout(buffers: &[Buffer]) -> Vec<Entry> {
    let mut ends = [0_u64; 1 + u8::MAX as usize];
    let place = |buffer: &Buffer| {
        let end = &mut ends[usize::from(buffer.region)];
        let offset = end.next_multiple_of(ALIGNMENT_OCTETS);
        let length_octets = buffer.length_octets();
        *end = offset.saturating_add(length_octets).min(u64::MAX - ALIGNMENT_OCTETS);
        Entry { name: buffer.name.clone(), region: buffer.region, offset, length_octets }
    };
    buffers.iter().map(place).collect()
}

/// Octets of a slot that has room for buffers of these lengths.
pub(crate) fn slot_octets(lengths: impl IntoIterator<Item = u64>) -> u64 {
    lengths.into_iter().fold(0_u64, |end, length| {
        end.checked_next_multiple_of(ALIGNMENT_OCTETS).unwrap_or(u64::MAX).saturating_add(length)
    })
}
