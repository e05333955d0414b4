//! Ranks of one host: processes that share an address share one receiver, through shared memory (D199).
//!
//! ```text
//!    group ──► receiver ──► region, a sealed file in memory ◄── mapped to be read ──┐
//!                 │                                                                  │
//!              owner ◄── Unix socket: versions that were taken, and dropped ──── other ranks
//!                     ──── whole versions, events ──────────────────────────────►
//! ```
//!
//! The first rank becomes the *owner*: it joins the group. The others *attach* to it. When it ends, one of them joins
//! anew, and the rest attaches to that one; handles go on. [`table::Table`] decides which slots are free and
//! [`election::Election`] who becomes the owner, without I/O.

mod attached;
mod election;
mod link;
mod message;
mod owner;
mod place;
mod server;
mod table;

pub(crate) use link::Lease;
pub use message::{Detach, RankMessageError, rank_messages};
pub use table::RankEnd;

use crate::device::{Device, GroupAddress};
use crate::engine::{OwnThread, Wake};
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared};
use crate::memory::Region;
use crate::receiver::{Core, Member, Versions};
use crate::statistics::Statistics;
use attached::Attached;
use election::{ENTER_TIMEOUT, Election, Found, Step};
use owner::Owner;
use place::{Lock, Place};
use server::Server;
use srdma_api::ProblemType;
use srdma_host::Clock;
use srdma_wire::Instant;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The owner. Other ranks read slots where the manifests say that they are, so that they do not change places. Ranks
/// end with their group.
const MEMBER: Member = Member { host: None, follows: false, exchanges_slots: false };

/// Interval for requests to a controller that cannot be reached.
const REQUEST_INTERVAL: Duration = Duration::from_millis(500);

/// The handle of a rank, without what all handles have.
pub(crate) struct Rank {
    context: Arc<Context>,
    outcome: Arc<Mutex<Result<()>>>,
    thread: OwnThread<()>,
}

/// What the thread of a rank needs in any role.
struct Context {
    device: Device,
    group: u32,
    region_octets: u64,
    place: Place,
    shared: Arc<Shared<Versions>>,
    wake: Arc<Wake>,
    counts: Mutex<Counts>,
}

/// Statistics of a rank.
#[derive(Default)]
struct Counts {
    /// As long as it was attached.
    attached: Statistics,
    /// As the owner.
    owner: Option<Arc<Core>>,
}

/// What a rank is.
enum Role {
    Owner(Box<Owner>),
    Attached(Attached),
}

/// Why a role has ended.
enum Outcome {
    /// The handle is closed; the owner has left the group.
    Closed(Result<()>),
    /// The receiver has ended.
    Over(Over),
    /// The owner has: there is to be another one.
    OwnerLost,
}

impl Rank {
    /// Joins a group as one of the ranks of this host.
    pub(crate) fn join(
        device: &Device,
        group: u32,
        directory: Option<&Path>,
        shared: &Arc<Shared<Versions>>,
    ) -> Result<Self> {
        let record = device.client.group(group)?;
        let address = device.address_toward(Some(record.summary.proxy))?;
        let region_octets = record.region.ok_or(Error::NoRegion(group))?.length;
        if !record.more_regions.is_empty() {
            return Err(Error::SharedRegions(group));
        }
        let place = Place::of(directory, &GroupAddress::of(&record)?, address)?;
        let (device, shared, wake) = (device.clone(), Arc::clone(shared), Wake::new()?);
        let counts = Mutex::default();
        let context = Arc::new(Context { device, group, region_octets, place, shared, wake, counts });
        let role = context.enter(&Clock::start())?;
        let outcome = Arc::new(Mutex::new(Ok(())));
        let (of_thread, result) = (Arc::clone(&context), Arc::clone(&outcome));
        let thread = OwnThread::start("srdma rank", move || {
            let (over, closed) = of_thread.run(role);
            *result.lock().unwrap_or_else(PoisonError::into_inner) = closed;
            of_thread.shared.end(over);
        })?;
        Ok(Rank { context, outcome, thread })
    }

    /// Leaves the other ranks. What is whole is still there to take.
    pub(crate) fn leave(&self) -> Result<()> {
        self.context.wake.close();
        self.context.shared.wait(Duration::MAX, |state| state.over().map(|_| Ok(())))?;
        self.take_outcome()
    }

    /// The group's number at the controller.
    pub(crate) fn group(&self) -> u32 {
        self.context.group
    }

    /// What it has done since it has joined.
    pub(crate) fn statistics(&self) -> Statistics {
        let counts = self.context.counts();
        let Statistics { versions, octets, failed, .. } = counts.attached;
        let Some(owner) = &counts.owner else { return counts.attached };
        let own = owner.statistics();
        Statistics {
            versions: own.versions + versions,
            octets: own.octets + octets,
            failed: own.failed + failed,
            ..own
        }
    }

    fn take_outcome(&self) -> Result<()> {
        std::mem::replace(&mut *self.outcome.lock().unwrap_or_else(PoisonError::into_inner), Ok(()))
    }

    /// Ends the rank. The owner leaves the group.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self.thread.end(|| self.context.wake.close()) {
            Some(_) => self.take_outcome(),
            None => Ok(()),
        }
    }
}

impl Context {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a role, and those that follow it, to the end of the handle.
    fn run(&self, mut role: Role) -> (Over, Result<()>) {
        // The newest version that the application has got, from whichever owner.
        let mut newest = None;
        loop {
            let outcome = match role {
                Role::Owner(owner) => owner.run(self, &mut newest),
                Role::Attached(mut attached) => attached.run(self, &mut newest),
            };
            match outcome {
                Outcome::Closed(result) => return (Over::Closed, result),
                Outcome::Over(over) => return (over, Ok(())),
                Outcome::OwnerLost => self.shared.push([Event::OwnerLost], |_| {}),
            }
            match self.enter_again() {
                Ok(next) => role = next,
                Err(over) => return (over, Ok(())),
            }
        }
    }

    /// Becomes the owner, or attaches to the one that there is.
    fn enter(&self, clock: &Clock) -> Result<Role> {
        let mut election = Election::new(clock.now());
        while !self.wake.is_closing() {
            let found = match election.step() {
                Step::TryLock => match self.place.try_lock()? {
                    Some(lock) => return self.own(lock).map(|owner| Role::Owner(Box::new(owner))),
                    None => Found::Locked,
                },
                Step::Connect => match self.attach()? {
                    Some(attached) => return Ok(Role::Attached(attached)),
                    None => Found::NoOwner,
                },
                Step::Wait(time) => {
                    thread::sleep(time);
                    Found::Waited
                }
                Step::GiveUp => return Err(Error::NoOwner),
            };
            election.found(clock.now(), found);
        }
        Err(Error::Over(Over::Closed))
    }

    /// Attaches to the owner; `None` if none listens, since it is joining or has ended.
    fn attach(&self) -> Result<Option<Attached>> {
        match self.place.connect()? {
            Some(socket) => Attached::attach(socket),
            None => Ok(None),
        }
    }

    fn own(&self, lock: Lock) -> Result<Owner> {
        let octets = usize::try_from(self.region_octets).map_err(|_| Error::NoMemory(self.region_octets))?;
        let what = "memory that processes share";
        let (region, file) = Region::in_file(octets).map_err(|error| Error::System { what, error })?;
        let receiver = self.device.join_alone(self.group, vec![region], MEMBER)?;
        let listener = self.place.listen(lock)?;
        self.counts().owner = receiver.core();
        Ok(Owner::new(receiver, Server::new(self.region_octets, file, listener)))
    }

    /// The same after the end of an owner. A controller that cannot be reached may come back.
    fn enter_again(&self) -> std::result::Result<Role, Over> {
        let clock = Clock::start();
        loop {
            match self.enter(&clock) {
                Ok(role) => return Ok(role),
                Err(_) if self.wake.is_closing() => return Err(Over::Closed),
                Err(Error::Over(over)) => return Err(over),
                Err(Error::Controller(error))
                    if error.problem().is_none() && clock.now().since(Instant::ZERO) < ENTER_TIMEOUT =>
                {
                    thread::sleep(REQUEST_INTERVAL);
                }
                Err(Error::Controller(error))
                    if error.is(ProblemType::UnknownGroup) || error.is(ProblemType::GroupClosing) =>
                {
                    return Err(Over::GroupClosed);
                }
                Err(error) => return Err(Over::NoOwner(error.to_string())),
            }
        }
    }
}
