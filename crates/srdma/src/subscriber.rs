//! A receiver's half of the version protocol, without I/O: messages in, whole versions out (D170, D172, D173).
//!
//! ```text
//!             begin                       end                     digests are right
//!   (none) ───────────► Receiving ─────────────────► Verifying ─────────────────────► Whole ── release ──► slot free
//!      │                    │                            │
//!      │ end: it joined     │ another begin, a stray,    │ a digest is wrong
//!      ▼ in the middle      ▼ a malformed message        ▼
//!   Skipped              Refused                      Damaged: never visible, slot free
//! ```
//!
//! A receive for the begin message of a version is posted only if its slot is free. Otherwise the source gets receiver
//! not ready, and waits.

mod unicast;
mod verification;

use crate::current::FetchError;
use crate::error::PairError;
use crate::manifest::{End, Entry, Manifest, ManifestError, Message, SlotRegions, Slots};
use crate::memory::SharedRange;
use crate::provider::{AHEAD, Received, ReceiverQueue};
use crate::statistics::Statistics;
use srdma_wire::Instant;
use std::collections::VecDeque;
use std::sync::Arc;
use verification::{Outcome, Verification};

/// What has become of versions.
#[derive(Debug)]
pub(crate) enum SubscriberEvent {
    /// The version is whole. Its slot is free again after [`Subscriber::release`].
    Whole(WholeVersion),
    /// It will never be visible.
    Rejected { version: Option<u64>, why: Rejection },
    /// The queue pair has failed.
    Failed(PairError),
}

/// A version that is whole.
#[derive(Debug)]
pub(crate) struct WholeVersion {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) octets: SharedSlot,
}

/// The slot of a version in each region, which the application reads.
#[derive(Debug)]
pub(crate) struct SharedSlot(Vec<SharedRange>);

impl SharedSlot {
    /// Of a slot in each region, in their order.
    pub(crate) fn new(ranges: Vec<SharedRange>) -> Self {
        SharedSlot(ranges)
    }

    /// The octets of a buffer of the version's manifest.
    pub(crate) fn buffer(&self, entry: &Entry) -> Option<&[u8]> {
        self.0.get(usize::from(entry.region))?.octets(entry.offset, entry.length_octets)
    }
}

/// Why a version is never visible to a receiver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The receiver has joined in the middle of the version.
    #[error("joined in the middle of it")]
    Skipped,
    /// The digest of this buffer differs from the source's: it was changed while it was sent, or on its way.
    #[error("the digest of buffer {0:?} is wrong")]
    Damaged(String),
    /// A message of the source is malformed, or its values are out of range.
    #[error("{0}")]
    Message(#[from] ManifestError),
    /// The slots do not fit the region, or are not those of the versions before.
    #[error("{slots} slots of {slot_octets} octets, the region has {region_octets} octets")]
    Slots {
        /// Their number.
        slots: u16,
        /// Octets of each.
        slot_octets: u64,
        /// Octets of the receiver's region.
        region_octets: u64,
    },
    /// The version is in another number of regions than the group has.
    #[error("it is in {found} regions, the group has {expected}")]
    Regions {
        /// Those of the message.
        found: usize,
        /// Those of the group.
        expected: usize,
    },
    /// It is not the next version of the source.
    #[error("its sequence number is {found}, expected {expected}")]
    Sequence {
        /// That of the message.
        found: u64,
        /// That of the next version.
        expected: u64,
    },
    /// Its number is not greater than that of the version before.
    #[error("it is not after version {0}")]
    NotNewer(u64),
    /// The receiver has not released the version that was in its slot: the source did not wait.
    #[error("its slot is not free")]
    SlotInUse,
    /// The end message does not fit the begin message, or another begin message came first.
    #[error("its end does not follow its begin")]
    End,
    /// The source wrote to memory outside of the version's slot. Nothing was written.
    #[error("the source wrote outside of its slot")]
    Stray,
    /// It was to come by unicast, and a later version was complete before.
    #[error("a later version was complete before it had come by unicast")]
    Overtaken,
    /// It was to come by unicast.
    #[error("the current version did not come by unicast: {0}")]
    Fetch(#[from] FetchError),
    /// The owner of the host's receiver says so (D199).
    #[error("{0}")]
    Owner(String),
    /// Another operation than a SEND used up a receive.
    #[error("the source sent another message than begin or end")]
    Operation,
}

/// Use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    /// A version is received or verified there.
    Busy,
    /// The application has the version.
    Held {
        version: u64,
    },
}

/// What is known of the group's versions once the first one has begun.
#[derive(Debug)]
struct Known {
    slots: SlotRegions,
    states: Vec<SlotState>,
    /// Sequence number of the next version.
    next_sequence: u64,
    newest: u64,
}

impl Known {
    /// All that is known by a version of the group.
    fn of(manifest: &Manifest) -> Self {
        Known {
            slots: manifest.regions().clone(),
            states: vec![SlotState::Free; manifest.slots().count.into()],
            next_sequence: manifest.sequence() + 1,
            newest: manifest.version(),
        }
    }
}

/// A receiver of a group.
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// Of each region.
    region_octets: Vec<u64>,
    /// Receives posted so far, and those completed.
    posted: u64,
    completed: u64,
    known: Option<Known>,
    receiving: Option<Arc<Manifest>>,
    /// The version that comes by unicast.
    unicast: Option<Arc<Manifest>>,
    /// A version that has come with the group was complete.
    has_ended: bool,
    verifying: VecDeque<Verification>,
    events: VecDeque<SubscriberEvent>,
    /// Strays up to the newest end message. (Writes are executed before messages are handled, so that those of a
    /// version may be counted before its begin message is.)
    strays: u64,
    has_failed: bool,
    statistics: Statistics,
}

impl Subscriber {
    /// A receiver whose regions have so many octets.
    pub(crate) fn new(region_octets: Vec<u64>) -> Self {
        Subscriber {
            region_octets,
            posted: 0,
            completed: 0,
            known: None,
            receiving: None,
            unicast: None,
            has_ended: false,
            verifying: VecDeque::new(),
            events: VecDeque::new(),
            strays: 0,
            has_failed: false,
            statistics: Statistics::default(),
        }
    }

    /// The oldest event not yet fetched.
    pub(crate) fn poll_event(&mut self) -> Option<SubscriberEvent> {
        self.events.pop_front()
    }

    /// What it has done.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics { waiting: self.verifying.len() as u64, ..self.statistics }
    }

    /// The application has dropped a version. Without effect for one that it does not have.
    pub(crate) fn release(&mut self, version: u64) {
        let states = self.known.iter_mut().flat_map(|known| &mut known.states);
        for state in states.filter(|state| **state == SlotState::Held { version }) {
            *state = SlotState::Free;
        }
    }

    /// Handles messages, verifies digests for a bounded time, and posts receives.
    pub(crate) fn work(&mut self, queue: &mut dyn ReceiverQueue) {
        while let Some(completion) = queue.poll_completion() {
            self.complete(queue, completion);
        }
        self.verify(queue);
        if !self.has_failed {
            self.offer(queue);
        }
        self.statistics.strays = queue.strays();
        self.statistics.packets = queue.packets();
    }

    /// Whether versions are complete and not verified yet.
    pub(crate) fn is_verifying(&self) -> bool {
        !self.verifying.is_empty()
    }

    /// Time of the next call of [`Self::work`], if nothing happens before: at once, while a version is verified.
    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        (!self.verifying.is_empty()).then_some(now)
    }

    fn complete(&mut self, queue: &mut dyn ReceiverQueue, completion: Result<Received, PairError>) {
        let received = match completion {
            Ok(received) => received,
            Err(error) => {
                if !self.has_failed {
                    self.has_failed = true;
                    self.events.push_back(SubscriberEvent::Failed(error));
                }
                return;
            }
        };
        self.completed += 1;
        if !received.is_send {
            return self.reject_received(Rejection::Operation);
        }
        match Message::parse(&queue.message(received)) {
            Ok(Message::Begin(manifest)) => self.begin(manifest),
            Ok(Message::End(end)) => self.end(queue, &end),
            Err(error) => self.reject_received(Rejection::Message(error)),
        }
    }

    /// A begin message: its slot was free, or its receive would not have been posted by a source that keeps the rules.
    fn begin(&mut self, manifest: Manifest) {
        self.reject_unfinished();
        let version = manifest.version();
        if let Err(why) = self.check(&manifest) {
            return self.refuse(Some(version), why);
        }
        let known = self.known.get_or_insert_with(|| Known::of(&manifest));
        (known.next_sequence, known.newest) = (manifest.sequence() + 1, version);
        known.states[usize::from(manifest.slot())] = SlotState::Busy;
        self.receiving = Some(Arc::new(manifest));
    }

    fn check(&mut self, manifest: &Manifest) -> Result<(), Rejection> {
        let slots = manifest.regions();
        if !self.fits(slots) || self.known.as_ref().is_some_and(|known| known.slots != *slots) {
            return Err(self.other_slots(slots));
        }
        // It would have no successor.
        if manifest.sequence() == u64::MAX {
            return Err(Rejection::Sequence { found: u64::MAX, expected: 0 });
        }
        let Some(known) = &mut self.known else { return Ok(()) };
        if manifest.sequence() != known.next_sequence {
            let expected = known.next_sequence;
            known.next_sequence = known.next_sequence.max(manifest.sequence() + 1);
            return Err(Rejection::Sequence { found: manifest.sequence(), expected });
        }
        known.next_sequence += 1;
        if manifest.version() <= known.newest {
            return Err(Rejection::NotNewer(known.newest));
        }
        match known.states[usize::from(manifest.slot())] {
            SlotState::Free => Ok(()),
            SlotState::Busy | SlotState::Held { .. } => Err(Rejection::SlotInUse),
        }
    }

    /// Whether the slots are inside the regions.
    fn fits(&self, slots: &SlotRegions) -> bool {
        slots.count() == self.region_octets.len() && self.beyond(slots).is_none()
    }

    /// The first slots that are not inside their region, with the octets of that.
    fn beyond(&self, slots: &SlotRegions) -> Option<(Slots, u64)> {
        let fits = |slots: &Slots, has: u64| slots.region_octets().is_some_and(|octets| octets <= has);
        slots.each().zip(self.region_octets.iter().copied()).find(|(slots, has)| !fits(slots, *has))
    }

    fn other_slots(&self, slots: &SlotRegions) -> Rejection {
        let (found, expected) = (slots.count(), self.region_octets.len());
        if found != expected {
            return Rejection::Regions { found, expected };
        }
        let first = (slots.first(), self.region_octets.first().copied().unwrap_or(0));
        let (slots, region_octets) = self.beyond(slots).unwrap_or(first);
        Rejection::Slots { slots: slots.count, slot_octets: slots.octets, region_octets }
    }

    /// An end message: the slot is closed, and what is in it is verified.
    fn end(&mut self, queue: &mut dyn ReceiverQueue, end: &End) {
        let strays = queue.strays();
        let is_stray = std::mem::replace(&mut self.strays, strays) != strays;
        self.overtake_unicast();
        let Some(manifest) = self.receiving.take() else {
            // The end of a version that was rejected has been reported. The first message of all may be that of a
            // version whose begin came before the join.
            if self.known.is_none() && self.completed == 1 {
                self.refuse(Some(end.version), Rejection::Skipped);
            }
            return;
        };
        let is_of_it = (end.version, end.digest, end.digests.len())
            == (manifest.version(), manifest.digest(), manifest.buffers().len());
        if !is_of_it {
            return self.reject(&manifest, Rejection::End);
        }
        if is_stray {
            return self.reject(&manifest, Rejection::Stray);
        }
        self.verifying.push_back(Verification::new(manifest, end.digests.clone()));
        // Closed before anything of it is verified or read.
        self.open(queue);
    }

    /// Verifies the oldest version that is complete.
    fn verify(&mut self, queue: &mut dyn ReceiverQueue) {
        let Some(front) = self.verifying.front_mut() else { return };
        let damaged = match front.step(queue) {
            Outcome::Pending => return,
            Outcome::Right => None,
            Outcome::Damaged(buffer) => Some(buffer),
        };
        let Some(done) = self.verifying.pop_front() else { return };
        match damaged {
            Some(buffer) => self.reject(&done.manifest, Rejection::Damaged(buffer)),
            None => self.hand_over(queue, done.manifest),
        }
    }

    /// Gives a version that is whole to the application.
    fn hand_over(&mut self, queue: &mut dyn ReceiverQueue, manifest: Arc<Manifest>) {
        let ranges = manifest.regions().ranges(manifest.slot());
        let octets =
            ranges.map(|(region, range)| queue.share(region, range)).collect::<Option<_>>().map(SharedSlot::new);
        let Some(octets) = octets else { return self.reject(&manifest, Rejection::SlotInUse) };
        self.set(&manifest, SlotState::Held { version: manifest.version() });
        self.statistics.versions += 1;
        self.statistics.octets += manifest.buffer_octets();
        self.events.push_back(SubscriberEvent::Whole(WholeVersion { manifest, octets }));
    }

    /// Posts receives for the versions that there is room for.
    fn offer(&mut self, queue: &mut dyn ReceiverQueue) {
        let wanted = u64::from(self.receiving.is_some()) + 2 * u64::from(self.ahead());
        if self.posted >= self.completed + wanted {
            return;
        }
        // A slot that the application has not left yet is offered when it has.
        if !self.open(queue) {
            return;
        }
        while self.posted < self.completed + wanted {
            if !queue.post_receive(self.posted) {
                return;
            }
            self.posted += 1;
        }
    }

    /// The number of next versions whose slots are free.
    fn ahead(&self) -> u16 {
        let Some(known) = &self.known else { return 1 };
        let is_free = |ahead: &u16| {
            let slot = known.slots.first().slot_of(known.next_sequence.wrapping_add(u64::from(*ahead)));
            known.states[usize::from(slot)] == SlotState::Free
        };
        (0..AHEAD.min(known.slots.first().count)).take_while(is_free).count() as u16
    }

    /// Opens the slots of the version that is received and of those ahead, and no other. Before the first version, when
    /// its slot is not known, the whole regions are open.
    fn open(&self, queue: &mut dyn ReceiverQueue) -> bool {
        let Some(known) = &self.known else {
            let whole = self.region_octets.iter().map(|octets| 0..*octets as usize);
            return queue.open(&mut whole.enumerate());
        };
        let first = known.next_sequence - u64::from(self.receiving.is_some());
        let count = u64::from(self.receiving.is_some()) + u64::from(self.ahead());
        let slots = &known.slots;
        let slot = |ahead: u64| slots.first().slot_of(first.wrapping_add(ahead));
        queue.open(&mut (0..count).flat_map(|ahead| slots.ranges(slot(ahead))))
    }

    fn set(&mut self, manifest: &Manifest, state: SlotState) {
        if let Some(known) = &mut self.known {
            known.states[usize::from(manifest.slot())] = state;
        }
    }

    fn reject(&mut self, manifest: &Manifest, why: Rejection) {
        self.set(manifest, SlotState::Free);
        self.refuse(Some(manifest.version()), why);
    }

    /// Rejects a version that has no slot.
    fn refuse(&mut self, version: Option<u64>, why: Rejection) {
        self.statistics.failed += 1;
        self.events.push_back(SubscriberEvent::Rejected { version, why });
    }

    /// A message that is neither: the version that is received cannot become whole.
    fn reject_received(&mut self, why: Rejection) {
        match self.receiving.take() {
            Some(manifest) => self.reject(&manifest, why),
            None => self.refuse(None, why),
        }
    }

    fn reject_unfinished(&mut self) {
        if let Some(manifest) = self.receiving.take() {
            self.reject(&manifest, Rejection::End);
        }
    }
}
