//! Which rank holds which version, as the owner of a host's receiver knows it, without I/O (D199).
//!
//! ```text
//!              attach            leave                       closed
//!   Greeting ─────────► Attached ───────► Leaving ───────────────────► (gone)
//!      │                   │                 │                            ▲
//!      │ no answer         │ no answer, its queue is full,                │
//!      ▼                   ▼ messages that do not follow the form         │
//!   Detaching ── all that it had sent is read ──► Detached ───────────────┘
//! ```
//!
//! A version is *offered* to each rank; one that answers has *taken* it, and keeps it until it says otherwise or its
//! connection is closed, whatever its state: it may be reading it. An offer ends with an answer, or when the rank is
//! detached and its answer is not among what it had sent before: then it cannot send one any more.

use super::message::{Detach, End, ToOwner, ToRank};
use crate::manifest::Manifest;
use srdma_wire::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The most ranks beside the owner.
pub(super) const MAX_RANKS: usize = 128;
/// Time in which a rank has to answer: the first message, or that it has taken a version.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Messages that wait for a rank, at most.
const MAX_QUEUE: usize = 256;
/// A rank that holds the slot of the next version for so long is named.
const HOLD_TIME: Duration = Duration::from_secs(1);

/// A connection.
pub(super) type RankId = u64;

/// Why a rank is no longer attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankEnd {
    /// It has closed its handle. Versions that it has are still its own.
    #[error("it has closed its handle")]
    Left,
    /// Its process has ended.
    #[error("its process has ended")]
    Ended,
    /// The owner has detached it. Versions that it has are still its own, until its process ends.
    #[error("{0}")]
    Detached(#[from] Detach),
}

/// What the owner does, or reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Attached(RankId),
    Ended(RankId, RankEnd),
    /// The rank has the version in the slot of the next one, and has had it for long.
    Holds(RankId, u64),
    /// Nothing more is to be received from the rank. What it has sent before is to be passed on, and then
    /// [`Table::drained`] to be called.
    StopReading(RankId),
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutOfPlace;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Attached,
    Leaving,
    Detaching,
    Detached,
}

/// A version at a rank.
struct Holding<T> {
    /// The slot is not free while this exists.
    token: Arc<T>,
    sequence: u64,
    offered_at: Instant,
    is_taken: bool,
    is_named: bool,
}

struct Rank<T> {
    state: State,
    connected_at: Instant,
    versions: BTreeMap<u64, Holding<T>>,
    queue: VecDeque<ToRank>,
}

struct Newest<T> {
    manifest: Arc<Manifest>,
    token: Weak<T>,
    at: Instant,
}

/// The ranks of a host, and what they hold: tokens, of which each keeps a slot.
pub(super) struct Table<T> {
    region_octets: u64,
    is_member: bool,
    newest: Option<Newest<T>>,
    ranks: BTreeMap<RankId, Rank<T>>,
    effects: VecDeque<Effect>,
}

impl<T> Table<T> {
    pub(super) fn new(region_octets: u64) -> Self {
        Table { region_octets, is_member: false, newest: None, ranks: BTreeMap::new(), effects: VecDeque::new() }
    }

    /// Adds a connection; false if there are too many.
    pub(super) fn connect(&mut self, now: Instant, id: RankId) -> bool {
        let has_room = self.ranks.len() < MAX_RANKS;
        if has_room {
            let rank =
                Rank { state: State::Greeting, connected_at: now, versions: BTreeMap::new(), queue: VecDeque::new() };
            self.ranks.insert(id, rank);
        }
        has_room
    }

    /// Its connection is closed: it has dropped everything.
    pub(super) fn disconnect(&mut self, id: RankId) {
        match self.ranks.remove(&id).map(|rank| rank.state) {
            Some(State::Attached) => self.effects.push_back(Effect::Ended(id, RankEnd::Ended)),
            // It has been reported, or never was.
            Some(State::Greeting | State::Leaving | State::Detaching | State::Detached) | None => {}
        }
    }

    /// A rank has sent a message.
    pub(super) fn receive(&mut self, now: Instant, id: RankId, message: ToOwner) {
        let Some(rank) = self.ranks.get_mut(&id) else { return };
        let handled = match (rank.state, message) {
            (State::Greeting, ToOwner::Attach) => {
                rank.state = State::Attached;
                self.attach(now, id);
                Ok(())
            }
            (State::Greeting, ToOwner::Taken(_) | ToOwner::Released(_) | ToOwner::Leave) => Err(OutOfPlace),
            (State::Attached | State::Detaching, ToOwner::Taken(version)) => rank.take(version),
            (State::Attached | State::Leaving | State::Detaching, ToOwner::Released(version)) => rank.release(version),
            (State::Attached, ToOwner::Leave) => {
                rank.state = State::Leaving;
                rank.drop_offers();
                rank.queue.clear();
                self.effects.push_back(Effect::Ended(id, RankEnd::Left));
                Ok(())
            }
            (State::Attached, ToOwner::Attach)
            | (State::Leaving, ToOwner::Attach | ToOwner::Taken(_) | ToOwner::Leave) => Err(OutOfPlace),
            (State::Detaching, ToOwner::Attach | ToOwner::Leave) => Ok(()),
            (State::Detached, ToOwner::Attach | ToOwner::Taken(_) | ToOwner::Released(_) | ToOwner::Leave) => Ok(()),
        };
        if handled == Err(OutOfPlace) {
            self.detach(id, Detach::Protocol);
        }
    }

    /// A rank has sent what is no message.
    pub(super) fn refuse(&mut self, id: RankId) {
        self.detach(id, Detach::Protocol);
    }

    fn attach(&mut self, now: Instant, id: RankId) {
        self.effects.push_back(Effect::Attached(id));
        self.send(id, ToRank::Region { octets: self.region_octets });
        if self.is_member {
            self.send(id, ToRank::Joined);
        }
        // One that attaches late gets the newest version, if it is still held.
        let newest = self.newest.as_ref();
        if let Some((token, manifest)) = newest.and_then(|it| Some((it.token.upgrade()?, Arc::clone(&it.manifest)))) {
            self.offer(now, id, &manifest, token);
        }
    }

    /// The group has the receiver.
    pub(super) fn joined(&mut self) {
        self.is_member = true;
        self.send_to_all(&ToRank::Joined);
    }

    /// A version is whole: its slot is free when the last token is dropped.
    pub(super) fn version(&mut self, now: Instant, manifest: &Arc<Manifest>, token: &Arc<T>) {
        self.newest = Some(Newest { manifest: Arc::clone(manifest), token: Arc::downgrade(token), at: now });
        for id in self.attached() {
            self.offer(now, id, manifest, Arc::clone(token));
        }
    }

    /// A version will never be visible.
    pub(super) fn rejected(&mut self, version: Option<u64>, why: &str) {
        self.send_to_all(&ToRank::Rejected { version, why: why.to_owned() });
    }

    /// The controller does not hear of the source any more.
    pub(super) fn source_is_silent(&mut self) {
        self.send_to_all(&ToRank::SourceSilent);
    }

    /// The receiver has ended.
    pub(super) fn over(&mut self, end: &End) {
        self.send_to_all(&ToRank::Over(end.clone()));
    }

    /// The receiver is closed: nothing writes to the region any more.
    pub(super) fn ended(&mut self) {
        self.send_to_all(&ToRank::Ended);
    }

    fn attached(&self) -> Vec<RankId> {
        let attached = self.ranks.iter().filter(|(_, rank)| rank.state == State::Attached);
        attached.map(|(id, _)| *id).collect()
    }

    fn send_to_all(&mut self, message: &ToRank) {
        for id in self.attached() {
            self.send(id, message.clone());
        }
    }

    fn send(&mut self, id: RankId, message: ToRank) {
        let Some(rank) = self.ranks.get_mut(&id).filter(|rank| rank.state == State::Attached) else { return };
        if rank.queue.len() < MAX_QUEUE {
            rank.queue.push_back(message);
        } else {
            self.detach(id, Detach::QueueFull);
        }
    }

    fn offer(&mut self, now: Instant, id: RankId, manifest: &Arc<Manifest>, token: Arc<T>) {
        self.send(id, ToRank::Version(Arc::clone(manifest)));
        let Some(rank) = self.ranks.get_mut(&id).filter(|rank| rank.state == State::Attached) else { return };
        let sequence = manifest.sequence();
        let holding = Holding { token, sequence, offered_at: now, is_taken: false, is_named: false };
        rank.versions.insert(manifest.version(), holding);
    }

    fn detach(&mut self, id: RankId, why: Detach) {
        let Some(rank) = self.ranks.get_mut(&id) else { return };
        let is_reported = match rank.state {
            State::Attached => false,
            // It was not attached, or it has left.
            State::Greeting | State::Leaving => true,
            State::Detaching | State::Detached => return,
        };
        rank.state = State::Detaching;
        // The last message.
        rank.queue.clear();
        rank.queue.push_back(ToRank::Detached(why));
        self.effects.push_back(Effect::StopReading(id));
        if !is_reported {
            self.effects.push_back(Effect::Ended(id, why.into()));
        }
    }

    /// All that a rank had sent before it was detached is passed on.
    pub(super) fn drained(&mut self, id: RankId) {
        if let Some(rank) = self.ranks.get_mut(&id).filter(|rank| rank.state == State::Detaching) {
            rank.state = State::Detached;
            rank.drop_offers();
        }
    }

    /// The oldest message for a rank.
    pub(super) fn next_message(&mut self, id: RankId) -> Option<ToRank> {
        self.ranks.get_mut(&id)?.queue.pop_front()
    }

    /// Whether messages wait for a rank.
    pub(super) fn has_message(&self, id: RankId) -> bool {
        self.ranks.get(&id).is_some_and(|rank| !rank.queue.is_empty())
    }

    /// Whether there still is such a connection.
    pub(super) fn contains(&self, id: RankId) -> bool {
        self.ranks.contains_key(&id)
    }

    /// Whether a connection has served its purpose: the rank is detached, has no version, and has been sent why.
    pub(super) fn is_done(&self, id: RankId) -> bool {
        let is_done =
            |rank: &Rank<T>| rank.state == State::Detached && rank.versions.is_empty() && rank.queue.is_empty();
        self.ranks.get(&id).is_some_and(is_done)
    }

    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Timers up to `now` are due.
    pub(super) fn tick(&mut self, now: Instant) {
        let late = self.ranks.iter().filter(|(_, rank)| rank.answers_until().is_some_and(|until| until <= now));
        let late: Vec<RankId> = late.map(|(id, _)| *id).collect();
        for id in late {
            self.detach(id, Detach::Unanswered);
        }
        let Some((until, blocking)) = self.blocking() else { return };
        if until <= now {
            for (id, rank) in &mut self.ranks {
                let blocking = rank.versions.iter_mut().filter(|(_, holding)| holding.blocks(blocking));
                for (version, holding) in blocking {
                    holding.is_named = true;
                    self.effects.push_back(Effect::Holds(*id, *version));
                }
            }
        }
    }

    /// Time of the next timer.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let answers = self.ranks.values().filter_map(Rank::answers_until).min();
        let holds = self.blocking().filter(|(_, blocking)| {
            self.ranks.values().flat_map(|rank| rank.versions.values()).any(|holding| holding.blocks(*blocking))
        });
        answers.into_iter().chain(holds.map(|(until, _)| until)).min()
    }

    /// The sequence number up to which versions hold up the next one, and the time from which their ranks are named.
    fn blocking(&self) -> Option<(Instant, u64)> {
        let newest = self.newest.as_ref()?;
        let slots = u64::from(newest.manifest.slots().count);
        let blocking = newest.manifest.sequence().checked_add(1)?.checked_sub(slots)?;
        Some((newest.at + HOLD_TIME, blocking))
    }
}

impl<T> Holding<T> {
    fn blocks(&self, blocking: u64) -> bool {
        self.is_taken && !self.is_named && self.sequence <= blocking
    }
}

impl<T> Rank<T> {
    fn take(&mut self, version: u64) -> Result<(), OutOfPlace> {
        let holding = self.versions.get_mut(&version).filter(|holding| !holding.is_taken).ok_or(OutOfPlace)?;
        holding.is_taken = true;
        Ok(())
    }

    fn release(&mut self, version: u64) -> Result<(), OutOfPlace> {
        let Holding { token, .. } = self.versions.remove(&version).ok_or(OutOfPlace)?;
        drop(token);
        Ok(())
    }

    fn drop_offers(&mut self) {
        self.versions.retain(|_, holding| holding.is_taken);
    }

    /// When it is late.
    fn answers_until(&self) -> Option<Instant> {
        match self.state {
            State::Greeting => Some(self.connected_at + ANSWER_TIMEOUT),
            State::Attached => {
                let offers = self.versions.values().filter(|holding| !holding.is_taken);
                offers.map(|holding| holding.offered_at + ANSWER_TIMEOUT).min()
            }
            State::Leaving | State::Detaching | State::Detached => None,
        }
    }
}

#[cfg(test)]
mod tests;
