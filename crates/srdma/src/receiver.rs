//! A receiver of a group: it has versions, whole and in order.

mod follow;
mod membership;
mod program;
mod regions;

use crate::device::{Device, GroupAddress};
use crate::engine::{OwnThread, Wake};
use crate::error::{Error, Result};
use crate::event::{Event, Shared};
use crate::manifest::Manifest;
use crate::memory::Region;
use crate::provider::{Provider, ReceiverPair};
use crate::ranks::{Lease, Rank};
use crate::statistics::Statistics;
use crate::subscriber::{SharedSlot, Subscriber};
use crate::versions::Numbered;
use membership::{Membership, Steps};
use program::Program;
use srdma_api::GroupState;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// The receiver ends with the group, also if another one resumes it [default: it follows to that, with the same
    /// handle, by [`Event::Resumed`] (D193)].
    pub ends_with_group: bool,
}

/// How a handle alone is a member of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The number of this host in all groups that it receives together.
    pub(crate) host: Option<u64>,
    /// It follows to a group that resumes this one.
    pub(crate) follows: bool,
    /// Slots may change places (D194): nothing but this process has versions in them.
    pub(crate) exchanges_slots: bool,
}

/// What the handle and its thread share.
pub(crate) struct Core {
    subscriber: Mutex<Subscriber>,
    place: Mutex<Place>,
    wake: Arc<Wake>,
}

/// The receiver's place in its group, or in the one that resumes it.
struct Place {
    membership: Arc<Membership>,
    /// It follows to no other group.
    is_leaving: bool,
}

impl Core {
    /// Locks the subscriber. A panic of the other thread leaves it valid: its methods do not panic.
    fn subscriber(&self) -> MutexGuard<'_, Subscriber> {
        self.subscriber.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.subscriber().statistics()
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the group, and follows to no other. A receiver whose leave is refused goes on.
    fn leave(&self) -> Result<()> {
        let membership = {
            let mut place = self.place();
            place.is_leaving = true;
            Arc::clone(&place.membership)
        };
        membership.leave().inspect_err(|_| self.place().is_leaving = false)
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
    core: Arc<Core>,
    thread: OwnThread<()>,
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

impl Numbered for Version {
    fn number(&self) -> u64 {
        self.number()
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
            let regions = options.region.into_iter().chain(options.more_regions).collect();
            let member = Member { host: None, follows: !options.ends_with_group, exchanges_slots: true };
            return self.join_alone(group, regions, member);
        }
        if options.region.is_some() || !options.more_regions.is_empty() {
            return Err(Error::SharedRegion);
        }
        let shared = Arc::new(Shared::new(format!("rank of group {group}"), Versions::new())?);
        let rank = Rank::join(self, group, options.runtime_directory.as_deref(), &shared)?;
        Ok(Receiver { shared, role: Role::Rank(rank) })
    }

    /// Joins a group by this handle alone.
    pub(crate) fn join_alone(&self, group: u32, regions: Vec<Region>, member: Member) -> Result<Receiver> {
        if regions.iter().any(Region::is_device_memory) {
            return Err(Error::DeviceMemory("the region".to_owned()));
        }
        let record = match member.follows {
            true => self.group_or_successor(group)?,
            false => self.client.group(group)?,
        };
        let address = self.address_toward(Some(record.summary.proxy))?;
        let regions = regions::given_or_new(regions, &record)?;
        let found: Vec<u64> = regions.iter().map(|region| region.length_octets() as u64).collect();
        let slots = regions.into_iter().map(Region::into_slots).collect();
        let group = GroupAddress::of(&record)?;
        let wake = Wake::new()?;
        let mut pair = self.provider.receiver_pair(address, &group, slots, Arc::clone(&wake))?;
        // The source has not begun yet: all members get packets from the first one on.
        let is_open = record.summary.state == GroupState::Open;
        if is_open {
            pair.prepare(group.initial_psn)?;
        }
        let Member { host, follows, exchanges_slots } = member;
        let membership = Membership { client: self.client.clone(), group, address, qpn: pair.qpn(), host, follows };
        let steps = membership.join(&pair.regions())?;
        let (qpn, in_two_steps) = (pair.qpn().get(), matches!(steps, Steps::Two(_)));
        tracing::info!(%address, qpn, in_two_steps, "receiver of group {}: has asked to join", group.id);
        let place = Place { membership: Arc::new(membership), is_leaving: false };
        let subscriber = Mutex::new(Subscriber::new(found, exchanges_slots));
        let core = Core { subscriber, place: Mutex::new(place), wake };
        Receiver::start(Arc::new(core), self.provider.clone(), steps, pair, is_open)
    }
}

impl Receiver {
    fn start(
        core: Arc<Core>,
        provider: Provider,
        steps: Steps,
        pair: Box<dyn ReceiverPair>,
        is_first: bool,
    ) -> Result<Self> {
        let name = format!("receiver of group {}", core.place().membership.group.id);
        let shared = Arc::new(Shared::new(name, Versions::new())?);
        let mut program = Program::new(Arc::clone(&core), Arc::clone(&shared), provider, steps, is_first)?;
        let thread = OwnThread::start("srdma receiver", move || {
            let over = program.run(pair);
            program.shared.end(over);
        })?;
        Ok(Receiver { shared, role: Role::Alone(Alone { core, thread }) })
    }

    /// Gives all events from now on to `observer`, not to the application.
    pub(crate) fn observe(&self, observer: impl FnMut(Event) + Send + 'static) {
        self.shared.observe(observer);
    }

    /// The group's number at the controller: that of the one that it has followed to last.
    pub fn group(&self) -> u32 {
        match &self.role {
            Role::Alone(alone) => alone.core.place().membership.group.id,
            Role::Rank(rank) => rank.group(),
        }
    }

    /// Takes the oldest whole version that was not taken, when there is one.
    ///
    /// # Errors
    ///
    /// If there is none in time, or there will be none.
    pub fn next_version(&self, timeout: Duration) -> Result<Version> {
        self.shared.next_version(timeout)
    }

    /// Takes this version when it is whole. Versions before it that were not taken are dropped.
    ///
    /// # Errors
    ///
    /// If it is not whole in time, or will not be: a later version is there.
    pub fn wait(&self, version: u64, timeout: Duration) -> Result<Version> {
        self.shared.take_version(version, timeout)
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
            Role::Alone(alone) => alone.core.leave(),
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
        let mut left = Ok(());
        self.thread.end(|| {
            // The receiver acknowledges what comes until the group has it no more, so that it does not hold the source.
            if shared.lock().over().is_none() {
                left = self.core.leave();
            }
            self.core.wake.close();
        });
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
