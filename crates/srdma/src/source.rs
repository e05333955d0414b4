//! The source of a group: it publishes versions.

mod creation;
mod publication;

pub use creation::GroupOptions;

use crate::buffer::Buffer;
use crate::current::Server;
use crate::device::GroupAddress;
use crate::engine::{OwnThread, Wake};
use crate::error::{Error, Over, Result};
use crate::event::{Event, Shared};
use crate::provider::{Registrar, SourcePair, SourceProgram, SourceQueue};
use crate::publisher::{Publisher, PublisherConfig, PublisherEvent};
use crate::statistics::Statistics;
use crate::versions::Sent;
use srdma_api::{Client, GroupState};
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_session::SourceClient;
use srdma_wire::Instant;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval for asking the controller whether receivers have joined.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval for looking whether the group was closed, while there is nothing to send.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
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
    shared: Arc<Shared<Sent>>,
    thread: OwnThread<()>,
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
        let shared = Arc::new(Shared::new(format!("source of group {}", group.id), Sent::default())?);
        let mut program = Program { core: Arc::clone(&core), shared: Arc::clone(&shared), deadline: None, server };
        let thread = OwnThread::start("srdma source", move || pair.run(&mut program))?;
        Ok(Source { group, client, registrar, core, shared, thread })
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
        self.prepare(version, buffers)?.commit();
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
        self.shared.wait(timeout, |state| state.own.result(version, state.over()))
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
        if self.thread.end(|| self.core.wake.close()).is_none() {
            return;
        }
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
    shared: Arc<Shared<Sent>>,
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
        self.shared
            .push(events, |sent| ended.into_iter().for_each(|(version, is_published)| sent.end(version, is_published)));
    }
}
