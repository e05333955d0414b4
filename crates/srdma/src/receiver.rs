//! A receiver of a group: it has versions, whole and in order.

mod follow;
mod membership;
mod program;

use crate::device::{Device, GroupAddress};
use crate::engine::{self, Wake};
use crate::error::{Error, Result};
use crate::event::{Event, Shared};
use crate::manifest::Manifest;
use crate::memory::{Region, SharedRange};
use crate::provider::{Provider, ReceiverPair};
use crate::statistics::Statistics;
use crate::subscriber::Subscriber;
use membership::{Membership, Steps};
use program::Program;
use srdma_api::GroupState;
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How to join a group.
#[derive(Debug, Default)]
pub struct JoinOptions {
    /// Memory for the group's slots [default: memory of the library].
    pub region: Option<Region>,
    /// The receiver ends with the group, also if another one resumes it [default: it follows to that, with the same
    /// handle, by [`Event::Resumed`] (D193)].
    pub ends_with_group: bool,
}

/// What the handle and its thread share.
struct Core {
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
type Versions = VecDeque<Version>;

/// A receiver of a group. Dropping it is [`Receiver::close`].
pub struct Receiver {
    core: Arc<Core>,
    shared: Arc<Shared<Versions>>,
    thread: Option<JoinHandle<()>>,
}

/// A version that is whole, with its buffers in the receiver's region. Dropping it frees its slot for a later one: a
/// receiver that keeps as many as the group has slots holds its source.
pub struct Version {
    manifest: Arc<Manifest>,
    // Before `slot`, which says that it has been dropped.
    octets: SharedRange,
    _slot: Slot,
}

/// Frees a slot when it is dropped.
struct Slot {
    core: Arc<Core>,
    version: u64,
}

impl Drop for Slot {
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
        write!(f, "version {} with {} buffers", self.number(), self.manifest.buffers().len())
    }
}

impl Version {
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
        let entry = self.manifest.buffers().iter().find(|entry| entry.name == name)?;
        self.octets.octets(entry.offset, entry.length_octets)
    }

    /// The octets of a buffer, in place, by its place in the manifest.
    pub fn buffer_at(&self, index: usize) -> Option<&[u8]> {
        let entry = self.manifest.buffers().get(index)?;
        self.octets.octets(entry.offset, entry.length_octets)
    }
}

impl Device {
    /// Joins a group. Returns when the controller has the request: [`Event::Joined`] comes when the group has the
    /// receiver, which for an open group is when its source commits it.
    ///
    /// A host that is a member already, by a process that has died, leaves first.
    ///
    /// # Errors
    ///
    /// If the controller refuses, the group has no region, the memory is too small, or the socket cannot be opened.
    pub fn join(&self, group: u32, options: JoinOptions) -> Result<Receiver> {
        self.check_process()?;
        if options.region.as_ref().is_some_and(Region::is_device_memory) {
            return Err(Error::DeviceMemory("the region".to_owned()));
        }
        let record = match options.ends_with_group {
            true => self.client.group(group)?,
            false => self.group_or_successor(group)?,
        };
        let group = record.summary.id;
        let address = self.address_toward(Some(record.summary.proxy))?;
        let needed = record.region.ok_or(Error::NoRegion(group))?.length;
        let region = match options.region {
            Some(region) => region,
            None => {
                let octets = usize::try_from(needed).map_err(|_| Error::NoMemory(needed))?;
                Region::new(octets).map_err(|_| Error::NoMemory(needed))?
            }
        };
        let found = region.length_octets() as u64;
        if found < needed {
            return Err(Error::RegionTooSmall { group, found, needed });
        }
        let group = GroupAddress::of(&record)?;
        let wake = Wake::new()?;
        let mut pair = self.provider.receiver_pair(address, &group, region.into_slots(), Arc::clone(&wake))?;
        // The source has not begun yet: all members get packets from the first one on.
        let is_open = record.summary.state == GroupState::Open;
        if is_open {
            pair.prepare(group.initial_psn)?;
        }
        let follows = !options.ends_with_group;
        let membership = Membership { client: self.client.clone(), group, address, qpn: pair.qpn(), follows };
        let steps = membership.join(pair.region())?;
        tracing::info!(%address, qpn = pair.qpn().get(), ?steps, "receiver of group {}: has asked to join", group.id);
        let place = Place { membership: Arc::new(membership), is_leaving: false };
        let core = Core { subscriber: Mutex::new(Subscriber::new(found)), place: Mutex::new(place), wake };
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
        let thread = engine::start("srdma receiver", move || {
            let over = program.run(pair);
            program.shared.end(over);
        })?;
        Ok(Receiver { core, shared, thread: Some(thread) })
    }

    /// The group's number at the controller: that of the one that it has followed to last.
    pub fn group(&self) -> u32 {
        self.core.place().membership.group.id
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

    /// What it has done since its join.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn statistics(&self) -> Result<Statistics> {
        self.shared.check_process()?;
        Ok(self.core.subscriber().statistics())
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
    /// [`Over::Evicted`](crate::Over::Evicted). What is whole is still there to take.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`]; and if the controller did not take the leave, as that of the last receiver of a group: the
    /// receiver goes on.
    pub fn leave(&self) -> Result<()> {
        self.shared.check_process()?;
        self.core.leave()
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
        let Some(thread) = self.thread.take() else { return Ok(()) };
        if !self.shared.is_of_this_process() {
            // The thread is one of the parent's. It has handles of all that is shared, so that nothing of that is
            // dropped here.
            std::mem::forget(thread);
            return Ok(());
        }
        // The receiver acknowledges what comes until the group has it no more, so that it does not hold the source.
        let left = if self.shared.lock().over().is_none() { self.core.leave() } else { Ok(()) };
        self.core.wake.close();
        // A panic there has been printed.
        let _ = thread.join();
        // Outside of the lock, since each frees its slot.
        let versions = std::mem::take(&mut self.shared.lock().own);
        drop(versions);
        left
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!("receiver of group {}: has not left, and will be evicted: {error}", self.group());
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
