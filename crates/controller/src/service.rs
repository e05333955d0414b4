//! The controller as a service: one lock around the [pipeline](srdma_controller_core::Pipeline), one thread that
//! writes, and notifications for requests that wait.
//!
//! ```text
//!   request ──► transaction (locked) ──► writes ──► thread ──► store
//!                  │                                  │
//!                  └─ answer, orders, events ◄────────┘ durable
//! ```

use crate::config::Config;
use crate::placements::Placements;
use crate::store::{Durability, Store, StoreError, Writer, format_of};
use crate::watchers::Watchers;
use srdma_api::NodeOrder;
use srdma_api::ProblemType;
use srdma_controller_core::{
    Answer, Core, EventBatch, EventCursor, EventLog, EventPosition, FORMAT, Jobs, Pipeline, Principal, Refusal,
    Released, Row, SEARCH_INTERVAL, STATE_PREFIXES, Time, Write, migrate,
};
use std::net::Ipv6Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Interval for detecting dead nodes.
const PERIOD: Duration = SEARCH_INTERVAL;
/// Retransmission interval of unanswered orders, in periods.
const RETRANSMISSION_PERIODS: u32 = 5;

/// Ends the process with an error, after what is left to do for it, such as its log. It may be called by any thread.
pub type Exit = fn() -> !;

/// The controller, shared by all connections.
pub(crate) struct Service {
    config: Config,
    /// The fabric without jobs, if there is one.
    fabric: Option<Jobs>,
    store: Arc<dyn Store>,
    /// Reference to itself, for the writing thread.
    own: Own,
    started: Instant,
    /// Ends the process when the state in memory may differ from the store.
    exit: Exit,
    inner: Mutex<Inner>,
    events: Mutex<EventLog>,
    /// The number of the last event, for streams that wait.
    last_event: watch::Sender<u64>,
    /// Requests that wait for a change of a group.
    groups: Watchers<u32>,
    /// Requests that wait for orders to a node.
    nodes: Watchers<Ipv6Addr>,
    placements: Placements,
}

type Own = Arc<OnceLock<Weak<Service>>>;

struct Inner {
    pipeline: Pipeline,
    writer: Writer,
}

/// State of a client's event stream.
pub(crate) struct Events {
    /// Identifies this start of the controller.
    pub(crate) run: u64,
    position: EventPosition,
    /// The number of the last event.
    pub(crate) changes: watch::Receiver<u64>,
}

impl Service {
    /// Restores the controller from its store.
    pub(crate) fn start(
        config: Config,
        fabric: Option<Jobs>,
        store: Arc<dyn Store>,
        rebuilds: Option<u64>,
        exit: Exit,
    ) -> Result<Arc<Self>, StoreError> {
        if let Some(format) = format_of(store.as_ref())?.filter(|format| *format < FORMAT) {
            let writes = migrate(format, &state_rows(store.as_ref())?)?;
            store.commit(&writes.iter().collect::<Vec<&Write>>())?;
            tracing::info!(from = format, to = FORMAT, "migrated the store");
        }
        let started = Instant::now();
        let rows = state_rows(store.as_ref())?;
        let core = Core::restore(config.settings(), fabric.clone(), &rows, identity(), rebuilds, time(started))?;
        let own = Arc::new(OnceLock::new());
        let inner = Inner { pipeline: Pipeline::new(core), writer: writer(&store, &own)? };
        let placements = Placements::new(config.placements, config.placements_per_tenant);
        let service = Arc::new(Service {
            placements,
            config,
            fabric,
            store,
            own,
            started,
            exit,
            inner: Mutex::new(inner),
            events: Mutex::new(EventLog::new(identity())),
            last_event: watch::Sender::new(0),
            groups: Watchers::default(),
            nodes: Watchers::default(),
        });
        // It was not set before.
        let _ = service.own.set(Arc::downgrade(&service));
        service.transaction(|_| ());
        Ok(service)
    }

    /// Restores the core from the store after a batch has failed. Requests that wait for the batch then receive the
    /// error.
    fn recover(&self, error: &StoreError) {
        tracing::error!(%error, "writing to the store failed: unanswered requests are rolled back");
        let mut inner = self.lock();
        let restored = self.store.reopen().and_then(|()| {
            let rows = state_rows(self.store.as_ref())?;
            let (settings, fabric) = (self.config.settings(), self.fabric.clone());
            let core = Core::restore(settings, fabric, &rows, identity(), None, time(self.started))?;
            Ok((core, writer(&self.store, &self.own)?))
        });
        match restored {
            Ok((core, writer)) => {
                inner.pipeline.replace_core(core);
                inner.writer = writer;
                drop(inner);
                self.groups.notify_all();
                self.nodes.notify_all();
            }
            Err(error) => {
                // The state in memory may differ from the store.
                tracing::error!(%error, "reopening the store failed: exiting");
                (self.exit)();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Only reading panics: a change that does ends the process.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a transaction; its answer is to be sent when all writes before it are durable.
    pub(crate) fn transaction<T>(&self, act: impl FnOnce(&mut Core) -> T) -> Pending<T> {
        let mut inner = self.lock();
        let transaction = catch_unwind(AssertUnwindSafe(|| inner.pipeline.transact(time(self.started), act)));
        let Ok(transaction) = transaction else {
            // What it has changed in memory is in no batch, and the next one would have a part of it (D114).
            tracing::error!("a change has failed by a panic: exiting");
            (self.exit)()
        };
        if !transaction.writes.is_empty() {
            inner.writer.submit(transaction.number, transaction.writes);
        }
        let durability = inner.writer.durability();
        let released = inner.pipeline.release();
        self.send(released);
        drop(inner);
        transaction.ended_sessions.into_iter().for_each(|node| self.nodes.notify(node));
        transaction.changed_groups.into_iter().for_each(|group| self.groups.notify(group));
        Pending { answer: transaction.answer, durability }
    }

    /// Releases output whose writes, up to a number, are durable.
    fn durable(&self, number: u64) {
        let mut inner = self.lock();
        let released = inner.pipeline.durable(number);
        self.send(released);
    }

    /// Sends released events, in order since the lock is held, and wakes nodes that wait for orders.
    fn send(&self, released: Released) {
        if !released.events.is_empty() {
            let mut log = self.event_log();
            released.events.iter().for_each(|event| log.push(event));
            self.last_event.send_replace(log.last());
        }
        released.nodes.into_iter().for_each(|node| self.nodes.notify(node));
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Core) -> T) -> T {
        read(self.lock().pipeline.core())
    }

    /// Runs a transaction and waits until it is durable.
    pub(crate) async fn write<T>(&self, act: impl FnOnce(&mut Core) -> Result<T, Refusal>) -> Result<T, RequestError> {
        Ok(self.transaction(act).durable().await??)
    }

    /// Reads the core until the value is a final one, whenever the group changes, or until the deadline.
    pub(crate) async fn read_until<T>(
        &self,
        group: u32,
        deadline: Instant,
        read: impl Fn(&Core) -> T,
        is_final: impl Fn(&T) -> bool,
    ) -> T {
        loop {
            let mut changes = self.groups.subscribe(group);
            let value = self.read(&read);
            // A closed channel means that the core was restored: it is read again.
            if is_final(&value) || tokio::time::timeout_at(deadline.into(), changes.changed()).await.is_err() {
                return value;
            }
        }
    }

    /// The released orders of a node; waits for one.
    pub(crate) async fn orders(&self, node: Ipv6Addr, wait: Duration) -> Vec<NodeOrder> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let mut changes = self.nodes.subscribe(node);
            let orders = self.lock().pipeline.take_orders(node);
            if !orders.is_empty() || tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                return orders;
            }
        }
    }

    /// An event stream behind a cursor, or from now on.
    pub(crate) fn events(&self, cursor: Option<EventCursor>) -> Events {
        let log = self.event_log();
        Events { run: log.run(), position: log.position(cursor), changes: self.last_event.subscribe() }
    }

    /// The next events of a stream. Later ones change `changes`.
    pub(crate) fn next_events(&self, events: &mut Events, principal: &Principal) -> EventBatch {
        let log = self.event_log();
        events.changes.mark_unchanged();
        log.read(&mut events.position, principal, unix_ms())
    }

    fn event_log(&self) -> MutexGuard<'_, EventLog> {
        // An event is appended in full or not at all.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The durable rows.
    pub(crate) fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        self.store.rows(prefix, after, most)
    }

    /// The longest wait of a source's request: below the timeout of silent sources.
    pub(crate) fn longest_source_wait(&self) -> Duration {
        self.config.source_silent_after() / 2
    }

    /// The longest wait of a receiver's report: it keeps its reservation by the next one.
    pub(crate) fn longest_receiver_wait(&self) -> Duration {
        self.config.join_timeout() / 2
    }

    pub(crate) fn placements(&self) -> &Placements {
        &self.placements
    }

    /// Time after which the paths of a placement are no longer improved.
    pub(crate) fn placement_deadline(&self) -> Duration {
        self.config.placement_deadline()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Detects dead nodes and retransmits unanswered orders; does not return.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut period = tokio::time::interval(PERIOD);
        let mut rounds = 0_u32;
        loop {
            period.tick().await;
            rounds = rounds.wrapping_add(1);
            self.transaction(|core| {
                core.expire_nodes();
                if rounds.is_multiple_of(RETRANSMISSION_PERIODS) {
                    core.retransmit();
                }
            });
        }
    }
}

/// An answer that is not durable yet.
pub(crate) struct Pending<T> {
    answer: Answer<T>,
    durability: Durability,
}

impl<T> Pending<T> {
    /// The answer, when all writes before it are durable.
    pub(crate) async fn durable(mut self) -> Result<T, StoreError> {
        let durable = self.durability.reached(self.answer.number()).await?;
        let lost = |_| StoreError::System("the writes are not durable".to_owned());
        self.answer.release(durable).map_err(lost)
    }
}

/// Reason for which a request fails: as an HTTP response, a problem (RFC 9457).
#[derive(Debug)]
pub(crate) struct RequestError(pub(crate) Refusal);

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        RequestError(refusal)
    }
}

impl From<StoreError> for RequestError {
    fn from(error: StoreError) -> Self {
        RequestError(Refusal::new(ProblemType::StoreFailed, error.to_string()))
    }
}

/// Starts the thread that writes and reports to the service.
fn writer(store: &Arc<dyn Store>, own: &Own) -> Result<Writer, StoreError> {
    let (durable, failed) = (Arc::clone(own), Arc::clone(own));
    let service = |own: &Own| own.get().and_then(Weak::upgrade);
    Writer::start(
        Arc::clone(store),
        move |number| {
            if let Some(service) = service(&durable) {
                service.durable(number);
            }
        },
        move |error| {
            if let Some(service) = service(&failed) {
                service.recover(&error);
            }
        },
    )
}

/// All rows but the audit log, which is read in pages on request.
fn state_rows(store: &dyn Store) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for prefix in STATE_PREFIXES {
        rows.extend(store.rows(prefix, None, usize::MAX)?);
    }
    Ok(rows)
}

fn time(started: Instant) -> Time {
    Time { monotonic: started.elapsed(), unix_ms: unix_ms() }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A random number that identifies a store, or a start of the controller.
fn identity() -> u64 {
    let mut octets = [0; 8];
    let provider = rustls::crypto::ring::default_provider();
    // Without randomness, the time.
    match provider.secure_random.fill(&mut octets) {
        Ok(()) => u64::from_le_bytes(octets) >> 1,
        Err(_) => unix_ms(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnDisk;

    /// D114: what a change that has failed by a panic has left in memory does not reach the store.
    #[test]
    fn a_change_that_panics_ends_the_controller() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(OnDisk::open(&folder.path().join("store")).unwrap());
        let service = Service::start(Config::default(), None, store, None, || panic!("exit")).unwrap();
        let change = AssertUnwindSafe(|| drop(service.transaction(|_| panic!("in the core"))));
        let panic = catch_unwind(change).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"exit"));
    }
}
