//! A receiver of a group: it has versions, whole and in order.

mod membership;

use crate::current::{Fetch, Piece};
use crate::device::{Device, GroupAddress};
use crate::engine::{self, Wake};
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared};
use crate::manifest::Manifest;
use crate::memory::Region;
use crate::provider::{ReceiverPair, ReceiverProgram, ReceiverQueue};
use crate::ranks::{Lease, Rank};
use crate::statistics::Statistics;
use crate::subscriber::{SharedSlot, Subscriber, SubscriberEvent, WholeVersion};
use membership::{Membership, Progress, Steps};
use srdma_api::GroupState;
use srdma_wire::{Instant, Psn};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How to join a group.
#[derive(Debug, Default)]
pub struct JoinOptions {
    /// Memory for the group's slots [default: memory of the library].
    pub region: Option<Region>,
    /// Memory for the slots of the group's further regions, in their order (D191), if there is one for the first.
    pub more_regions: Vec<Region>,
    /// Ranks: all processes of this host that join the group with this option, as the same user, share one receiver and
    /// its memory. Without it the host is a member by one process, and another one that joins takes its place.
    pub shared: bool,
    /// With `shared`: the directory in which the processes find each other, which is created with mode 0700 [default:
    /// `srdma` in `$XDG_RUNTIME_DIR`, or in `/run/user/UID`, or `/tmp/srdma-UID`].
    pub runtime_directory: Option<PathBuf>,
}

/// The memory for a group that needs so many octets in each region: what is given, or memory of the library.
fn regions_for(given: Vec<Region>, group: u32, needed: &[u64]) -> Result<Vec<Region>> {
    if given.is_empty() {
        let new = |octets: &u64| Region::new(usize::try_from(*octets).ok()?).ok();
        return needed.iter().map(|octets| new(octets).ok_or(Error::NoMemory(*octets))).collect();
    }
    if given.len() != needed.len() {
        return Err(Error::RegionCount { group, found: given.len(), needed: needed.len() });
    }
    for (region, needed) in given.iter().zip(needed) {
        let (found, needed) = (region.length_octets() as u64, *needed);
        if found < needed {
            return Err(Error::RegionTooSmall { group, found, needed });
        }
    }
    Ok(given)
}

/// What the handle and its thread share.
pub(crate) struct Core {
    subscriber: Mutex<Subscriber>,
    wake: Arc<Wake>,
}

impl Core {
    /// Locks the subscriber. A panic of the other thread leaves it valid: its methods do not panic.
    fn subscriber(&self) -> MutexGuard<'_, Subscriber> {
        self.subscriber.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.subscriber().statistics()
    }
}

/// Versions that are whole, in order, and not taken.
pub(crate) type Versions = VecDeque<Version>;

/// A receiver of a group. Dropping it is [`Receiver::close`].
pub struct Receiver {
    shared: Arc<Shared<Versions>>,
    role: Role,
}

/// Who is the member of the group.
enum Role {
    /// This handle.
    Alone(Alone),
    /// One of the processes of this host.
    Rank(Rank),
}

/// A member of the group.
struct Alone {
    membership: Arc<Membership>,
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

/// A version that is whole, with its buffers in the receiver's region. Dropping it frees its slot for a later one: a
/// receiver that keeps as many as the group has slots holds its source.
pub struct Version {
    manifest: Arc<Manifest>,
    held: Arc<Held>,
}

/// What keeps a version in its slot.
pub(crate) struct Held {
    // Before the slot, which says that it has been dropped.
    octets: SharedSlot,
    _slot: Slot,
}

/// Frees a slot when it is dropped.
pub(crate) enum Slot {
    /// Of this receiver.
    Own(#[allow(dead_code, reason = "it is dropped")] OwnSlot),
    /// Of the receiver of another process.
    OfOwner(#[allow(dead_code, reason = "it is dropped")] Lease),
}

/// A slot of this receiver.
pub(crate) struct OwnSlot {
    core: Arc<Core>,
    version: u64,
}

impl Drop for OwnSlot {
    fn drop(&mut self) {
        // In a child of fork() the lock may be that of a thread which is not there.
        if self.core.wake.is_of_this_process() {
            self.core.subscriber().release(self.version);
            self.core.wake.wake();
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} with {} buffers", self.number(), self.manifest().buffers().len())
    }
}

impl Version {
    pub(crate) fn new(manifest: Arc<Manifest>, octets: SharedSlot, slot: Slot) -> Self {
        Version { manifest, held: Arc::new(Held { octets, _slot: slot }) }
    }

    /// What keeps it, which others may keep as well.
    pub(crate) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    pub(crate) fn shared_manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.manifest.version()
    }

    /// Names and lengths of its buffers.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The octets of a buffer, in place; `None` if the version has no buffer of this name.
    pub fn buffer(&self, name: &str) -> Option<&[u8]> {
        self.held.octets.buffer(self.manifest.buffers().iter().find(|entry| entry.name == name)?)
    }

    /// The octets of a buffer, in place, by its place in the manifest.
    pub fn buffer_at(&self, index: usize) -> Option<&[u8]> {
        self.held.octets.buffer(self.manifest.buffers().get(index)?)
    }
}

impl Device {
    /// Joins a group. Returns when the controller has the request: [`Event::Joined`] comes when the group has the
    /// receiver, which for an open group is when its source commits it.
    ///
    /// A host that is a member already, by a process that has died, leaves first. With [`JoinOptions::shared`] a
    /// process attaches to one that lives.
    ///
    /// # Errors
    ///
    /// If the controller refuses, the group has no region, the memory is too small, or the socket cannot be opened.
    pub fn join(&self, group: u32, options: JoinOptions) -> Result<Receiver> {
        self.check_process()?;
        if !options.shared {
            return self.join_alone(group, options.region.into_iter().chain(options.more_regions).collect(), None);
        }
        if options.region.is_some() || !options.more_regions.is_empty() {
            return Err(Error::SharedRegion);
        }
        let shared = Arc::new(Shared::new(format!("rank of group {group}"), Versions::new())?);
        let rank = Rank::join(self, group, options.runtime_directory.as_deref(), &shared)?;
        Ok(Receiver { shared, role: Role::Rank(rank) })
    }

    /// Joins a group by this handle alone. `host` is the number of this host in all groups that it receives together.
    pub(crate) fn join_alone(&self, group: u32, regions: Vec<Region>, host: Option<u64>) -> Result<Receiver> {
        if regions.iter().any(Region::is_device_memory) {
            return Err(Error::DeviceMemory("the region".to_owned()));
        }
        let record = self.client.group(group)?;
        let address = self.address_toward(Some(record.summary.proxy))?;
        let first = record.region.ok_or(Error::NoRegion(group))?.length;
        let needed: Vec<u64> = [first].into_iter().chain(record.more_regions.iter().map(|more| more.length)).collect();
        let regions = regions_for(regions, group, &needed)?;
        let found: Vec<u64> = regions.iter().map(|region| region.length_octets() as u64).collect();
        let slots = regions.into_iter().map(Region::into_slots).collect();
        let group = GroupAddress::of(&record)?;
        let wake = Wake::new()?;
        let mut pair = self.provider.receiver_pair(address, &group, slots, Arc::clone(&wake))?;
        // The source has not begun yet: all members get packets from the first one on.
        if record.summary.state == GroupState::Open {
            pair.prepare(group.initial_psn)?;
        }
        let membership = Membership { client: self.client.clone(), group, address, qpn: pair.qpn(), host };
        let steps = membership.join(&pair.regions())?;
        let (qpn, in_two_steps) = (pair.qpn().get(), matches!(steps, Steps::Two(_)));
        tracing::info!(%address, qpn, in_two_steps, "receiver of group {}: has asked to join", group.id);
        let core = Arc::new(Core { subscriber: Mutex::new(Subscriber::new(found)), wake });
        // One that joins later lacks the version that was published last.
        let fetch =
            (record.summary.state != GroupState::Open).then(|| Fetch { client: self.client.clone(), group: group.id });
        Receiver::start(membership, steps, core, pair, fetch)
    }
}

impl Receiver {
    fn start(
        membership: Membership,
        steps: Steps,
        core: Arc<Core>,
        mut pair: Box<dyn ReceiverPair>,
        fetch: Option<Fetch>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(format!("receiver of group {}", membership.group.id), Versions::new())?);
        let membership = Arc::new(membership);
        let (progress, joined) = mpsc::channel();
        let (watch, wake) = (Arc::clone(&membership), Arc::clone(&core.wake));
        // Detached: a request that hangs ends with its own timeout.
        engine::start("srdma membership", move || watch.watch(steps, &progress, || !wake.is_closing()))?;
        let mut program = Program {
            core: Arc::clone(&core),
            shared: Arc::clone(&shared),
            progress: joined,
            fetch: fetch.map(Arc::new),
            pieces: None,
            fetched_at: None,
            deadline: None,
            over: None,
        };
        let thread = engine::start("srdma receiver", move || {
            let over = program.wait_for_join(&mut *pair).and_then(|psn| {
                pair.connect(psn)?;
                program.shared.push([Event::Joined], |_| {});
                program.fetch(psn);
                pair.run(&mut program).map_or(Ok(()), Err)
            });
            program.shared.end(over.err().or(program.over).unwrap_or(Over::Closed));
        })?;
        Ok(Receiver { shared, role: Role::Alone(Alone { membership, core, thread: Some(thread) }) })
    }

    /// Gives all events from now on to `observer`, not to the application.
    pub(crate) fn observe(&self, observer: impl FnMut(Event) + Send + 'static) {
        self.shared.observe(observer);
    }

    /// Takes the oldest whole version that was not taken, when there is one.
    ///
    /// # Errors
    ///
    /// If there is none in time, or there will be none.
    pub fn next_version(&self, timeout: Duration) -> Result<Version> {
        self.shared.wait(timeout, |state| {
            if let Some(version) = state.own.pop_front() {
                return Some(Ok(version));
            }
            state.over().cloned().map(|over| Err(Error::Over(over)))
        })
    }

    /// Takes this version when it is whole. Versions before it that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// If it is not whole in time, or will not be: a later version is there.
    pub fn wait(&self, version: u64, timeout: Duration) -> Result<Version> {
        let begin = std::time::Instant::now();
        loop {
            let newest = self.shared.wait(timeout.saturating_sub(begin.elapsed()), |state| {
                if let Some(front) = state.own.front() {
                    return Some(if front.number() > version {
                        Err(Error::UnknownVersion(version))
                    } else {
                        state.own.pop_front().ok_or(Error::UnknownVersion(version))
                    });
                }
                state.over().cloned().map(|over| Err(Error::Over(over)))
            })?;
            if newest.number() == version {
                return Ok(newest);
            }
            // Dropped here, not while the state is locked.
        }
    }

    /// What keeps the statistics of a handle that is alone.
    pub(crate) fn core(&self) -> Option<Arc<Core>> {
        match &self.role {
            Role::Alone(alone) => Some(Arc::clone(&alone.core)),
            Role::Rank(_) => None,
        }
    }

    /// What it has done since its join. One of several processes of a host that is not the owner of their receiver
    /// knows of versions alone.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn statistics(&self) -> Result<Statistics> {
        self.shared.check_process()?;
        Ok(match &self.role {
            Role::Alone(alone) => alone.core.statistics(),
            Role::Rank(rank) => rank.statistics(),
        })
    }

    /// The oldest event not yet fetched.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn next_event(&self) -> Result<Option<Event>> {
        self.shared.next_event()
    }

    /// Leaves the group: when it returns, nothing more is sent to this receiver, and its end is
    /// [`Over::Evicted`](crate::Over::Evicted). What is whole is still there to take. One of several processes of a
    /// host leaves the others, and its end is [`Over::Closed`](crate::Over::Closed).
    ///
    /// # Errors
    ///
    /// [`Error::Forked`]; and if the controller did not take the leave, as that of the last receiver of a group: the
    /// receiver goes on.
    pub fn leave(&self) -> Result<()> {
        self.shared.check_process()?;
        match &self.role {
            Role::Alone(alone) => alone.membership.leave(),
            Role::Rank(rank) => rank.leave(),
        }
    }

    /// Leaves the group and ends the receiver. Versions that were taken stay readable; memory of the caller is the
    /// caller's again when they are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`]; and if the controller did not take the leave: the memory is returned nevertheless.
    pub fn close(mut self) -> Result<()> {
        self.shared.check_process()?;
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let left = match &mut self.role {
            Role::Alone(alone) => alone.end(&self.shared),
            Role::Rank(rank) => rank.end(),
        };
        if !self.shared.is_of_this_process() {
            return Ok(());
        }
        // Outside of the lock, since each frees its slot.
        let versions = std::mem::take(&mut self.shared.lock().own);
        drop(versions);
        left
    }
}

impl Alone {
    fn end(&mut self, shared: &Shared<Versions>) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        if !shared.is_of_this_process() {
            // The thread is one of the parent's. It has handles of all that is shared, so that nothing of that is
            // dropped here.
            std::mem::forget(thread);
            return Ok(());
        }
        // The receiver acknowledges what comes until the group has it no more, so that it does not hold the source.
        let left = if shared.lock().over().is_none() { self.membership.leave() } else { Ok(()) };
        self.core.wake.close();
        // A panic there has been printed.
        let _ = thread.join();
        left
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!("{}: has not left, and will be evicted: {error}", self.shared.name());
        }
    }
}

impl AsFd for Receiver {
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd()
    }
}

impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.raw_fd()
    }
}

/// The program of the thread.
struct Program {
    core: Arc<Core>,
    shared: Arc<Shared<Versions>>,
    progress: mpsc::Receiver<Progress>,
    /// Where the version before its first one is, unless it has none.
    fetch: Option<Arc<Fetch>>,
    /// That version, by unicast, and the join point for which it is fetched.
    pieces: Option<mpsc::Receiver<Piece>>,
    fetched_at: Option<Psn>,
    deadline: Option<Instant>,
    over: Option<Over>,
}

/// Pieces of a version by unicast that wait.
const MOST_PIECES: usize = 4;
/// Interval for looking at what the membership thread has found.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

impl Program {
    /// Waits until the group has the receiver: the first PSN that it gets.
    fn wait_for_join(&mut self, pair: &mut dyn ReceiverPair) -> std::result::Result<Psn, Over> {
        loop {
            match self.progress.recv_timeout(LOOK_INTERVAL) {
                Ok(Progress::Reserved(psn, ready)) => {
                    pair.prepare(psn).map_err(|error| Over::QueuePair(error.to_string()))?;
                    self.fetch(psn);
                    // A membership thread that has ended says why.
                    let _ = ready.send(());
                }
                Ok(Progress::Joined(psn)) => return Ok(psn),
                Ok(Progress::Over(over)) => return Err(over),
                // It is said of members.
                Ok(Progress::SourceSilent) => {}
                Err(RecvTimeoutError::Timeout) if !self.core.wake.is_closing() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(Over::Closed),
            }
        }
    }

    /// Fetches the version that was published last when the source was quiet at a join point: it is asked for before
    /// the source goes on, so that it comes before the next one wherever possible.
    fn fetch(&mut self, psn: Psn) {
        let Some(fetch) = self.fetch.clone().filter(|_| self.fetched_at != Some(psn)) else { return };
        self.fetched_at = Some(psn);
        let (passed, pieces) = mpsc::sync_channel(MOST_PIECES);
        let wake = Arc::clone(&self.core.wake);
        // Detached: it ends when its pieces are not taken, or with the timeout of its connection.
        let started = engine::start("srdma fetch", move || fetch.run(&passed, || wake.wake()));
        self.pieces = started.is_ok().then_some(pieces);
    }

    /// Passes on what has been fetched; false while there may be more at once.
    fn take_pieces(&mut self, subscriber: &mut Subscriber, queue: &mut dyn ReceiverQueue) -> bool {
        for _ in 0..MOST_PIECES {
            let Some(Ok(piece)) = self.pieces.as_ref().map(mpsc::Receiver::try_recv) else { return true };
            if !subscriber.take_piece(queue, piece) {
                self.pieces = None;
            }
        }
        false
    }

    fn report(&self, subscriber: &mut Subscriber) -> Option<Over> {
        let mut events = Vec::new();
        let mut whole = Vec::new();
        let mut over = None;
        while let Some(event) = subscriber.poll_event() {
            match event {
                SubscriberEvent::Whole(WholeVersion { manifest, octets }) => {
                    let version = manifest.version();
                    let slot = Slot::Own(OwnSlot { core: Arc::clone(&self.core), version });
                    whole.push(Version::new(manifest, octets, slot));
                    events.push(Event::Version { version });
                }
                SubscriberEvent::Rejected { version, why } => events.push(Event::Rejected { version, why }),
                SubscriberEvent::Failed(error) => over = Some(Over::QueuePair(error.to_string())),
            }
        }
        if !events.is_empty() {
            self.shared.push(events, |versions| versions.extend(whole));
        }
        over
    }
}

impl ReceiverProgram for Program {
    fn work(&mut self, now: Instant, queue: &mut dyn ReceiverQueue) -> ControlFlow<()> {
        self.core.wake.take();
        let core = Arc::clone(&self.core);
        let mut subscriber = core.subscriber();
        subscriber.work(queue);
        let is_idle = self.take_pieces(&mut subscriber, queue);
        let failed = self.report(&mut subscriber);
        let look_at = if is_idle { now + LOOK_INTERVAL } else { now };
        self.deadline = subscriber.next_deadline(now).or(Some(look_at));
        let is_verifying = subscriber.is_verifying();
        drop(subscriber);
        self.over = failed.or(self.over.take());
        match self.progress.try_recv() {
            Ok(Progress::Over(over)) => drop(self.over.get_or_insert(over)),
            Ok(Progress::SourceSilent) => self.shared.push([Event::SourceSilent], |_| {}),
            // It is a member.
            Ok(Progress::Reserved(..) | Progress::Joined(_)) | Err(_) => {}
        }
        let is_over = self.over.is_some() && !is_verifying;
        if is_over || self.core.wake.is_closing() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
