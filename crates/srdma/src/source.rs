//! The source of a group: it publishes versions.

mod publication;

use crate::buffer::Buffer;
use crate::current::Server;
use crate::device::{Device, GroupAddress, any_qpn, unpredictable};
use crate::digest::DigestKind;
use crate::engine::{self, Wake};
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared, State};
use crate::manifest::{SlotRegions, Slots};
use crate::provider::{Registrar, SourcePair, SourceProgram, SourceQueue};
use crate::publisher::{Publisher, PublisherConfig, PublisherEvent, slot_octets};
use crate::statistics::Statistics;
use srdma_api::{Client, GroupState, NewGroup, ProblemType, SourceAddress, SourceRegion};
use srdma_group::{MAX_REGIONS, OnFailure, Policy};
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_rc::{MemoryKey, RemoteAddress};
use srdma_session::SourceClient;
use srdma_wire::{Instant, PathMtu};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval for asking the controller whether receivers have joined.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval for looking whether the group was closed, while there is nothing to send.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// First virtual address of the group's region, as its source writes to it.
const REGION_BASE: u64 = 0x1_0000;

/// A group to create.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// A display name.
    pub name: Option<String>,
    /// The versions that a receiver can have at once, the one on its way included, and the octets of each.
    pub slots: Slots,
    /// Octets of each slot in further regions, which have memory of their own at receivers and as many slots:
    /// [`Buffer::in_region`] says in which a buffer lies (D191).
    pub more_slot_octets: Vec<u64>,
    /// The group's Proxy Address [default: one of the tenant's pool].
    pub proxy: Option<Ipv6Addr>,
    /// RDMA path MTU: 256, 512, 1024, 2048 or 4096 octets.
    pub path_mtu: u32,
    /// Settings of the group [default: receivers that stall for ten seconds are evicted].
    pub policy: Policy,
    /// Octets that may be in flight, for which nodes have buffers [default: that of the controller].
    pub window_octets: Option<u32>,
    /// The digest of each buffer.
    pub digest: DigestKind,
    /// A version that the receivers have not accepted for this time is reported by [`Event::Slow`].
    pub slow_after: Duration,
    /// Length of an RDMA WRITE, at most.
    pub message_octets: u32,
    /// Keep the version that was published last, for receivers that join late: they fetch it by TCP from this host
    /// (D190). Its buffers are the application's again when a later version is published, or the source is closed.
    pub keeps_current: bool,
}

impl GroupOptions {
    /// Two slots, each of which has room for buffers of these lengths.
    pub fn for_buffers(lengths: impl IntoIterator<Item = u64>) -> Self {
        GroupOptions {
            name: None,
            slots: Slots { count: 2, octets: slot_octets(lengths).max(1) },
            more_slot_octets: Vec::new(),
            proxy: None,
            path_mtu: 4096,
            policy: Policy { on_failure: OnFailure::Evict, t_stall: Duration::from_secs(10), ..Policy::default() },
            window_octets: None,
            digest: DigestKind::Sha256,
            slow_after: Duration::from_secs(1),
            message_octets: 1 << 20,
            keeps_current: false,
        }
    }
}

/// What the handle waits for.
#[derive(Debug, Default)]
struct Versions {
    outstanding: BTreeSet<u64>,
    published: BTreeSet<u64>,
}

/// Published versions whose numbers are kept.
const KEPT_NUMBERS: usize = 4096;

/// What the handle and its thread share.
struct Core {
    publisher: Mutex<Publisher>,
    session: Mutex<Option<SourceClient>>,
    /// Held by a commit: a second one would report the end of the first one's session.
    committing: Mutex<()>,
    wake: Arc<Wake>,
}

impl Core {
    /// Locks the publisher. A panic of the other thread leaves it valid: its methods do not panic.
    fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, Option<SourceClient>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The source of a group. Dropping it is [`Source::close`].
pub struct Source {
    group: GroupAddress,
    client: Client,
    registrar: Registrar,
    core: Arc<Core>,
    shared: Arc<Shared<Versions>>,
    thread: Option<JoinHandle<()>>,
}

impl Device {
    /// Creates a group at the controller, whose source this host is.
    ///
    /// # Errors
    ///
    /// If an option is out of range, the controller refuses, or the socket cannot be opened.
    pub fn create_group(&self, options: &GroupOptions) -> Result<Source> {
        self.create_group_of(options, None)
    }

    /// Creates a group whose source ends if there is no response for some time.
    pub(crate) fn create_group_of(&self, options: &GroupOptions, gives_up_after: Option<Duration>) -> Result<Source> {
        self.check_process()?;
        let address = self.address_toward(options.proxy)?;
        let slots = SlotRegions::new(options.slots, options.more_slot_octets.clone());
        let range = |name, value: u64, range| Error::OutOfRange { name, value, range };
        let path_mtu = PathMtu::from_octets(options.path_mtu);
        let path_mtu =
            path_mtu.ok_or(range("path_mtu", options.path_mtu.into(), "256, 512, 1024, 2048 or 4096 octets"))?;
        let message_octets = options.message_octets;
        if !(path_mtu.octets()..=1 << 30).contains(&message_octets) {
            return Err(range("message_octets", message_octets.into(), "the path MTU to 2^30"));
        }
        let wake = Wake::new()?;
        let mut pair = self.provider.source_pair(address, &options.policy, Arc::clone(&wake))?;
        let regions = regions_of(&slots)?;
        let new = NewGroup {
            name: options.name.clone(),
            proxy: options.proxy,
            initial_psn: unpredictable() as u32 & 0xFF_FFFF,
            path_mtu: path_mtu.into(),
            region: regions.first().copied(),
            more_regions: regions.iter().skip(1).copied().collect(),
            policy: options.policy,
            window_octets: options.window_octets,
            transport: pair.transport(),
            ..NewGroup::new(SourceAddress { address, qpn: pair.qpn().get() }, any_qpn().get())
        };
        let group = self.client.create_group(&new, None)?;
        let group = GroupAddress::of(&group)?;
        let GroupAddress { id, proxy, window, .. } = group;
        tracing::info!(%address, %proxy, window_packets = window, "source of group {id}: created");
        let limits = pair.limits(&group, message_octets);
        let config = PublisherConfig {
            path_mtu,
            window_packets: limits.window_packets,
            message_octets: limits.message_octets,
            regions: regions.iter().map(remote_address).collect(),
            slots,
            digest: options.digest,
            slow_after: options.slow_after,
            keeps_current: options.keeps_current,
            gives_up_after,
        };
        let connected = pair.connect(&group);
        let server = || if options.keeps_current { self.serve(group.id, address) } else { Ok(None) };
        let started = connected
            .and_then(|()| server())
            .and_then(|server| Source::start(self.client.clone(), group, config, pair, wake, server));
        started.inspect_err(|_| {
            // A group without a source is of no use; if this fails too, the first error is the one to report.
            let _ = self.client.close_group(group.id);
        })
    }
}

/// The regions of a group, as its source writes to them. They have the same address, and keys of their own.
fn regions_of(slots: &SlotRegions) -> Result<Vec<SourceRegion>> {
    if slots.count() > MAX_REGIONS {
        let value = slots.more_octets().len() as u64;
        return Err(Error::OutOfRange { name: "more_slot_octets", value, range: "at most 15 further regions" });
    }
    let key = unpredictable() as u32;
    let region = |(slots, number): (Slots, u32)| {
        let length = slots.region_octets().ok_or(Error::Slots(slots))?;
        Ok(SourceRegion { base: REGION_BASE, length, rkey: key ^ number })
    };
    slots.each().zip(0..).map(region).collect()
}

fn remote_address(region: &SourceRegion) -> RemoteAddress {
    RemoteAddress { virtual_address: region.base, rkey: MemoryKey(region.rkey) }
}

impl Device {
    /// Serves the current version of a group, and says so to the controller; `None` if that does not know of it.
    fn serve(&self, group: u32, address: Ipv6Addr) -> Result<Option<Server>> {
        let server = Server::start(address)?;
        match self.client.state_service(group, server.service()) {
            Ok(()) => Ok(Some(server)),
            Err(error) if error.is(ProblemType::UnknownPath) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Source {
    fn start(
        client: Client,
        group: GroupAddress,
        config: PublisherConfig,
        pair: Box<dyn SourcePair>,
        wake: Arc<Wake>,
        server: Option<Server>,
    ) -> Result<Self> {
        let registrar = pair.registrar();
        let core = Arc::new(Core {
            publisher: Mutex::new(Publisher::new(config, registrar.clone())),
            session: Mutex::new(None),
            committing: Mutex::new(()),
            wake,
        });
        let shared = Arc::new(Shared::new(format!("source of group {}", group.id), Versions::default())?);
        let mut program = Program { core: Arc::clone(&core), shared: Arc::clone(&shared), deadline: None, server };
        let thread = engine::start("srdma source", move || pair.run(&mut program))?;
        Ok(Source { group, client, registrar, core, shared, thread: Some(thread) })
    }

    /// The group's number at the controller.
    pub fn group(&self) -> u32 {
        self.group.id
    }

    /// Waits for so many receivers, and commits the group: from then on versions are sent.
    ///
    /// # Errors
    ///
    /// If the receivers or the nodes are not ready in time, or the controller refuses.
    pub fn commit(&self, receivers: u32, timeout: Duration) -> Result<()> {
        self.shared.check_process()?;
        let _one_at_a_time = self.core.committing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.core.session().is_some() {
            return Err(Error::AlreadyCommitted);
        }
        let begin = std::time::Instant::now();
        let left = || timeout.saturating_sub(begin.elapsed());
        loop {
            if let Some(over) = self.shared.lock().over() {
                return Err(Error::Over(over.clone()));
            }
            let group = self.client.group(self.group.id)?;
            // One that joins in two steps counts when it is ready.
            let found = group.members.iter().filter(|member| !member.awaits_ready).count() as u32;
            if found >= receivers.max(1) {
                break;
            }
            if left().is_zero() {
                return Err(Error::NotReady { found, wanted: receivers.max(1) });
            }
            thread::sleep(POLL_INTERVAL.min(left()));
        }
        let wait_ms = left().as_millis().min(60_000) as u32;
        let group = self.client.commit_group(self.group.id, wait_ms)?;
        match group.summary.state {
            GroupState::Ready | GroupState::Changing | GroupState::Creating | GroupState::Verifying => {}
            GroupState::Open | GroupState::Stopped | GroupState::Closing | GroupState::Closed => {
                return Err(Error::NotCommitted(group.failure.unwrap_or_else(|| "without a reason".to_owned())));
            }
        }
        let session = SourceClient::start(self.client.clone(), self.group.id, self.group.initial_psn);
        *self.core.session() = Some(session.map_err(|error| Error::System { what: "a thread", error })?);
        tracing::info!(receivers = group.members.len(), "source of group {}: committed", self.group.id);
        self.core.wake.wake();
        Ok(())
    }

    /// Publishes a version, whose number is greater than those before. Returns at once: the version is sent after those
    /// before it, and [`Event::Published`] or [`Event::Failed`] says when the buffers are the application's again.
    ///
    /// # Errors
    ///
    /// If the number is not greater, the buffers do not fit the slot, their names are not unique, too many versions
    /// wait, or the group is closed.
    pub fn publish(&self, version: u64, buffers: Vec<Buffer>) -> Result<()> {
        self.shared.check_process()?;
        if let Some(over) = self.shared.lock().over() {
            return Err(Error::Over(over.clone()));
        }
        let buffers = buffers.into_iter().map(|buffer| self.registrar.buffer(buffer));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let mut publisher = self.core.publisher();
        publisher.publish(version, buffers)?;
        // Before the thread can report its end.
        self.shared.lock().own.outstanding.insert(version);
        drop(publisher);
        self.core.wake.wake();
        Ok(())
    }

    /// Gives all events from now on to `observer`, not to the application.
    pub(crate) fn observe(&self, observer: impl FnMut(Event) + Send + 'static) {
        self.shared.observe(observer);
    }

    /// Waits until a version is published: all members have all its octets.
    ///
    /// # Errors
    ///
    /// If it is not published in time or has failed, or there is no such version.
    pub fn wait(&self, version: u64, timeout: Duration) -> Result<()> {
        self.shared.wait(timeout, |state: &mut State<Versions>| {
            if state.own.published.contains(&version) {
                return Some(Ok(()));
            }
            if state.own.outstanding.contains(&version) {
                return None;
            }
            let over = state.over().cloned();
            Some(Err(over.map_or(Error::UnknownVersion(version), Error::Over)))
        })
    }

    /// What it has done since its creation.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn statistics(&self) -> Result<Statistics> {
        self.shared.check_process()?;
        Ok(self.core.publisher().statistics())
    }

    /// The oldest event not yet fetched.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn next_event(&self) -> Result<Option<Event>> {
        self.shared.next_event()
    }

    /// Ends the source and closes the group. Versions that are not published fail; wait for the last one before.
    pub fn close(mut self) -> Result<()> {
        self.shared.check_process()?;
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if !self.shared.is_of_this_process() {
            // The thread is one of the parent's. It has handles of all that is shared, so that nothing of that is
            // dropped here.
            std::mem::forget(thread);
            return;
        }
        self.core.wake.close();
        // A panic there has been printed.
        let _ = thread.join();
        if let Err(error) = self.client.close_group(self.group.id) {
            tracing::warn!("source of group {}: the group stays, without a source: {error}", self.group.id);
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.end();
    }
}

impl AsFd for Source {
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd()
    }
}

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.raw_fd()
    }
}

/// The program of the thread.
struct Program {
    core: Arc<Core>,
    shared: Arc<Shared<Versions>>,
    deadline: Option<Instant>,
    server: Option<Server>,
}

/// The group's source session; before the group is committed, no version may begin.
struct Control<'a>(Option<&'a mut SourceClient>);

impl SourceControl for Control<'_> {
    fn update(&mut self, progress: StreamProgress) -> SessionState {
        match &mut self.0 {
            Some(session) => session.update(progress),
            None => SessionState::Paused,
        }
    }
}

impl SourceProgram for Program {
    fn work(&mut self, now: Instant, queue: &mut dyn SourceQueue) -> ControlFlow<()> {
        self.core.wake.take();
        let core = Arc::clone(&self.core);
        let mut publisher = core.publisher();
        let mut session = self.core.session();
        publisher.work(now, queue, &mut Control(session.as_mut()));
        // Before the commit, which wakes, there is nothing to ask for.
        let look_at = now + LOOK_INTERVAL;
        let deadline = publisher.next_deadline().map_or(look_at, |deadline| deadline.min(look_at));
        self.deadline = session.is_some().then_some(deadline);
        drop(session);
        let failure = publisher.failure();
        self.report(&mut publisher);
        drop(publisher);
        match failure {
            Some(failure) => {
                self.shared.end(failure.into());
                ControlFlow::Break(())
            }
            None if self.core.wake.is_closing() => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What is not published has failed; the controller learns that the source has ended.
    fn finish(&mut self, failure: Option<Over>, queue: &mut dyn SourceQueue) {
        // Nothing reads the buffers any more.
        drop(self.server.take());
        let core = Arc::clone(&self.core);
        let mut publisher = core.publisher();
        publisher.abandon(queue);
        self.report(&mut publisher);
        drop(publisher);
        self.shared.end(failure.unwrap_or(Over::Closed));
        drop(self.core.session().take());
    }
}

impl Program {
    fn report(&mut self, publisher: &mut Publisher) {
        if publisher.failure().is_some() {
            // Nothing reads the buffers any more.
            self.server = None;
        }
        // The buffers of the version before are the application's again from here on.
        if let (Some(server), Some(current)) = (&self.server, publisher.take_current()) {
            server.replace(Some(current));
        }
        let mut events = Vec::new();
        let mut ended = Vec::new();
        while let Some(event) = publisher.poll_event() {
            events.push(match event {
                PublisherEvent::Published { version } => {
                    ended.push((version, true));
                    Event::Published { version }
                }
                PublisherEvent::Slow { version } => Event::Slow { version },
                PublisherEvent::Failed { version, failure } => {
                    ended.push((version, false));
                    Event::Failed { version, failure }
                }
            });
        }
        if events.is_empty() {
            return;
        }
        self.shared.push(events, |versions| {
            for (version, is_published) in ended {
                versions.outstanding.remove(&version);
                if is_published {
                    versions.published.insert(version);
                }
            }
            while versions.published.len() > KEPT_NUMBERS {
                versions.published.pop_first();
            }
        });
    }
}
