//! The core in its shell: one lock around what is known, one thread that writes, and nothing leaves before what was
//! written before it is durable.
//!
//! ```text
//!   request ──► core (locked) ──► writes ──► thread ──► store
//!                  │                            │
//!                  └─ answer, orders, events ◄──┘ durable: they leave
//! ```

use crate::config::Config;
use crate::core::{Core, Out, unix_ms};
use crate::jobs::Jobs;
use crate::migration::migrate;
use crate::refusal::Refusal;
use crate::rows::FORMAT;
use crate::say::say;
use crate::seen::Seen;
use crate::store::{Durability, Row, Store, StoreError, Writer};
use srdma_api::{Event, NodeOrder};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast};

/// How often what is not answered is said again, and who is silent is looked for.
const PERIOD: Duration = Duration::from_millis(100);
const REPEAT_EVERY: u32 = 5;

/// Events that are kept for those who come back.
const MOST_EVENTS: usize = 10_000;

/// The controller, shared by all that speak to it.
pub(crate) struct Shell {
    config: Config,
    /// The fabric without jobs, if there is one.
    fabric: Option<Jobs>,
    store: Arc<dyn Store>,
    /// Itself, for the thread that writes.
    own: Own,
    /// Which start of a controller this is: events are counted from it.
    run: u64,
    inner: Mutex<Inner>,
    events: broadcast::Sender<Event>,
    /// Something may be ready to leave.
    changed: Notify,
}

type Own = Arc<OnceLock<Weak<Shell>>>;

struct Inner {
    core: Core,
    writer: Writer,
    outboxes: BTreeMap<Ipv6Addr, Outbox>,
    /// Events that wait for their writes.
    waiting: VecDeque<(u64, Event)>,
    kept: VecDeque<Event>,
    last_event: u64,
}

/// What is told of events: those that are kept, and those to come.
pub(crate) struct Events {
    /// Which start of a controller they are counted from.
    pub(crate) run: u64,
    pub(crate) kept: Vec<Event>,
    pub(crate) coming: broadcast::Receiver<Event>,
}

/// What a node is to be told.
#[derive(Default)]
struct Outbox {
    orders: VecDeque<(u64, NodeOrder)>,
    wake: Arc<Notify>,
}

/// Orders that wait for a node: beyond this it is cut off, and begins anew.
const MOST_ORDERS: usize = 1 << 17;

impl Shell {
    /// Restores the controller from its store.
    pub(crate) fn start(
        config: Config,
        fabric: Option<Jobs>,
        store: Arc<dyn Store>,
        rebuilds: bool,
    ) -> Result<Arc<Self>, StoreError> {
        if let Some(format) = migrate(store.as_ref())? {
            say(format_args!("the store's rows were of format {format}, and are of format {FORMAT} now"));
        }
        let rows = known_rows(store.as_ref())?;
        let core = Core::restore(&config, fabric.clone(), &rows, identity(), rebuilds)?;
        let (events, _) = broadcast::channel(4096);
        let own = Arc::new(OnceLock::new());
        let inner = Inner {
            core,
            writer: writer(&store, &own)?,
            outboxes: BTreeMap::new(),
            waiting: VecDeque::new(),
            kept: VecDeque::new(),
            last_event: 0,
        };
        let shell = Arc::new(Shell {
            config,
            fabric,
            store,
            own,
            run: identity(),
            inner: Mutex::new(inner),
            events,
            changed: Notify::new(),
        });
        // It is empty until now.
        let _ = shell.own.set(Arc::downgrade(&shell));
        shell.with(|_| ());
        Ok(shell)
    }

    /// The store has refused a batch: what is known is what it has. Those who wait are told by the old writer
    /// then.
    fn recover(&self, error: &StoreError) {
        say(format_args!("{error}: what was not answered is undone"));
        let mut inner = self.lock();
        let restored = self.store.reopen().and_then(|()| {
            let rows = known_rows(self.store.as_ref())?;
            let core = Core::restore(&self.config, self.fabric.clone(), &rows, identity(), false)?;
            Ok((core, writer(&self.store, &self.own)?))
        });
        match restored {
            Ok((core, writer)) => {
                inner.core = core;
                inner.writer = writer;
                inner.waiting.clear();
                for (_, outbox) in std::mem::take(&mut inner.outboxes) {
                    outbox.wake.notify_waiters();
                }
            }
            Err(error) => {
                // Nothing that it says could be trusted any more.
                say(format_args!("cannot go on: {error}"));
                std::process::exit(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // What panicked has not left the core half changed in a way that matters more than going on.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the core; returns what came of it, to be told when the number is durable.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Core) -> T) -> Pending<T> {
        let mut inner = self.lock();
        let value = act(&mut inner.core);
        let Out { writes, orders, news, ended } = inner.core.take_out();
        let number = inner.writer.submit(writes);
        for node in ended {
            let outbox = inner.outboxes.entry(node).or_default();
            outbox.orders.clear();
            outbox.wake.notify_waiters();
        }
        let has_news = !news.is_empty();
        for (node, order) in orders {
            let outbox = inner.outboxes.entry(node).or_default();
            if outbox.orders.len() < MOST_ORDERS {
                outbox.orders.push_back((number, order));
                outbox.wake.notify_one();
            }
        }
        for (tenant, news) in news {
            inner.last_event += 1;
            let event = Event { number: inner.last_event, unix_ms: unix_ms(), tenant, news };
            inner.waiting.push_back((number, event));
        }
        let durability = inner.writer.durability();
        drop(inner);
        if has_news {
            self.changed.notify_one();
        }
        Pending { value, number, durability }
    }

    /// Looks at the core.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Core) -> T) -> T {
        look(&self.lock().core)
    }

    /// Does something, and waits until it is durable.
    pub(crate) async fn durably<T>(&self, act: impl FnOnce(&mut Core) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.with(act).durable().await?
    }

    /// The orders of a node that may leave now; waits for one.
    pub(crate) async fn orders(&self, node: Ipv6Addr, wait: Duration) -> Result<Vec<NodeOrder>, StoreError> {
        let deadline = Instant::now() + wait;
        loop {
            let (first, mut durability, wake) = {
                let mut inner = self.lock();
                let durability = inner.writer.durability();
                let done = durability.done();
                let outbox = inner.outboxes.entry(node).or_default();
                let ready = outbox.orders.iter().take_while(|(number, _)| *number <= done).count();
                if ready > 0 {
                    return Ok(outbox.orders.drain(..ready).map(|(_, order)| order).collect());
                }
                (outbox.orders.front().map(|(number, _)| *number), durability, Arc::clone(&outbox.wake))
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            match first {
                Some(number) => durability.reached(number).await?,
                // Whether it was woken or the time is over, it looks again.
                None => {
                    let _ = tokio::time::timeout(left, wake.notified()).await;
                }
            }
        }
    }

    /// What is told somebody who has seen events, or who wants those to come alone.
    pub(crate) fn events(&self, seen: Option<Seen>) -> Events {
        let inner = self.lock();
        let kept = seen.map(|seen| seen.behind(self.run, &inner.kept)).unwrap_or_default();
        Events { run: self.run, kept, coming: self.events.subscribe() }
    }

    /// The rows of the store, as they are durable now.
    pub(crate) fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        self.store.rows(prefix, after, most)
    }

    /// How long a source may be kept waiting, so that it is not taken for silent.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.config.source_silent_after() / 2
    }

    /// The store itself.
    pub(crate) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Lets events out when they may, looks for the dead, and says again what was not answered; for ever.
    pub(crate) async fn keep(self: Arc<Self>) {
        let mut period = tokio::time::interval(PERIOD);
        let mut rounds = 0_u32;
        loop {
            let mut durability = self.lock().writer.durability();
            tokio::select! {
                _ = period.tick() => {
                    rounds = rounds.wrapping_add(1);
                    let now = Instant::now();
                    self.with(|core| {
                        core.miss(now);
                        if rounds.is_multiple_of(REPEAT_EVERY) {
                            core.repeat(now);
                        }
                    });
                }
                () = durability.changed() => {}
                () = self.changed.notified() => {}
            }
            self.let_events_out();
        }
    }

    fn let_events_out(&self) {
        let mut inner = self.lock();
        let done = inner.writer.durability().done();
        while let Some((_, event)) = inner.waiting.pop_front_if(|(number, _)| *number <= done) {
            if inner.kept.len() >= MOST_EVENTS {
                inner.kept.pop_front();
            }
            inner.kept.push_back(event.clone());
            // Nobody may be listening.
            let _ = self.events.send(event);
        }
    }
}

/// What came of something that is not durable yet.
pub(crate) struct Pending<T> {
    value: T,
    number: u64,
    durability: Durability,
}

impl<T> Pending<T> {
    /// What came of it, when all is durable that was written before.
    pub(crate) async fn durable(mut self) -> Result<T, StoreError> {
        self.durability.reached(self.number).await?;
        Ok(self.value)
    }
}

/// The thread that writes; a failure it tells the shell.
fn writer(store: &Arc<dyn Store>, own: &Own) -> Result<Writer, StoreError> {
    let own = Arc::clone(own);
    Writer::start(Arc::clone(store), move |error| {
        if let Some(shell) = own.get().and_then(Weak::upgrade) {
            shell.recover(&error);
        }
    })
}

/// All rows but the audit log, which is only ever read in pages.
fn known_rows(store: &dyn Store) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for prefix in ["answer/", "drained", "format", "group/", "job/", "member/", "node/", "record/", "site"] {
        rows.extend(store.rows(prefix, None, usize::MAX)?);
    }
    Ok(rows)
}

/// A number that no other store has.
fn identity() -> u64 {
    let mut octets = [0; 8];
    let provider = rustls::crypto::ring::default_provider();
    // Without randomness the time is what differs.
    match provider.secure_random.fill(&mut octets) {
        Ok(()) => u64::from_le_bytes(octets) >> 1,
        Err(_) => unix_ms(),
    }
}
