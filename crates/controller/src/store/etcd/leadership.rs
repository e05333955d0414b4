//! Which of several controllers leads: the one whose key stands in etcd. The key goes with a lease that its controller
//! renews, and each of its writes is made only while the key is there.

use super::gateway::{CallError, Gateway, part};
use super::{Etcd, LEADER};
use crate::config::EtcdTrust;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// How long a leader that is not heard is waited for, seconds.
const LEASE_S: u64 = 5;
const LEASE: Duration = Duration::from_secs(LEASE_S);
/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_millis(1000);
/// How often one that waits looks whether there is a leader.
const LOOK: Duration = Duration::from_millis(200);

/// Who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This controller.
    Ours,
    /// Another one: requests are for it.
    Anothers {
        /// Where it says that it is.
        url: String,
    },
    /// Nobody that is known: etcd does not answer, or nobody leads yet.
    Unknown {
        /// Why.
        reason: String,
    },
}

/// What stands in the leader's key.
#[derive(Debug, Serialize, Deserialize)]
struct LeaderValue {
    url: String,
}

/// A controller that waits until it may lead.
#[derive(Debug)]
pub struct Standby {
    gateway: Arc<Gateway>,
    url: String,
}

impl Standby {
    /// One that uses these servers of etcd, URLs with commas between them, and is found at a URL.
    ///
    /// # Errors
    ///
    /// What should be URLs of servers is none, or a certificate or key cannot be used.
    pub fn new(servers: &str, url: &str, trust: &EtcdTrust) -> Result<Self, StoreError> {
        Ok(Standby { gateway: Arc::new(Gateway::new(servers, trust)?), url: url.to_owned() })
    }

    /// Leads at once: to save a store, or to fill a new one, while no controller runs.
    ///
    /// # Errors
    ///
    /// A controller leads, or etcd cannot be used.
    pub fn lead_now(&self) -> Result<Etcd, StoreError> {
        match self.stand()? {
            Stood::Leads(lease) => {
                let renewal = Renewal::start(Arc::clone(&self.gateway), lease, || ())?;
                Etcd::open(Arc::clone(&self.gateway), &lease, renewal)
            }
            Stood::Not(Leadership::Anothers { url }) => Err(StoreError::Led { url }),
            Stood::Not(Leadership::Unknown { reason }) => Err(StoreError::System(reason)),
            Stood::Not(Leadership::Ours) => Err(StoreError::Deposed),
        }
    }

    /// Waits until it leads, and opens the store then. `told` is told who leads meanwhile, whenever that changes.
    /// `deposed` is told when it does not lead any more: nothing that it knows may leave it from then on.
    ///
    /// # Errors
    ///
    /// What etcd has is no store of a controller.
    pub fn lead(
        &self,
        mut told: impl FnMut(&Leadership),
        deposed: impl FnOnce() + Send + 'static,
    ) -> Result<Etcd, StoreError> {
        let mut last = None;
        let lease = loop {
            let found =
                self.stand().unwrap_or_else(|error| Stood::Not(Leadership::Unknown { reason: error.to_string() }));
            let now = match &found {
                Stood::Leads(_) => Leadership::Ours,
                Stood::Not(leadership) => leadership.clone(),
            };
            if last.as_ref() != Some(&now) {
                told(&now);
                last = Some(now);
            }
            match found {
                Stood::Leads(lease) => break lease,
                Stood::Not(_) => sleep(LOOK),
            }
        };
        let renewal = Renewal::start(Arc::clone(&self.gateway), lease, deposed)?;
        Etcd::open(Arc::clone(&self.gateway), &lease, renewal)
    }

    /// Leads if nobody does.
    fn stand(&self) -> Result<Stood, CallError> {
        if let Some(other) = self.gateway.range(LEADER, None, 1)?.kvs.first() {
            return Ok(Stood::Not(leadership(&other.value)));
        }
        let since = Instant::now();
        let id = self.gateway.grant(LEASE_S)?;
        let value = serde_json::to_vec(&LeaderValue { url: self.url.clone() }).unwrap_or_default();
        let stood = self.gateway.transact(
            &[part::is_made_at(LEADER, 0)],
            &[part::put_with(LEADER, &value, id)],
            &[part::get(LEADER)],
        );
        match stood {
            Ok(outcome) if outcome.succeeded => Ok(Stood::Leads(Lease { id, made_at: outcome.header.revision, since })),
            Ok(outcome) => {
                // Without it the lease would end by itself, only later.
                let _ = self.gateway.revoke(id);
                let other = outcome.found(0).filter(|found| found.lease != id);
                let nobody = || Leadership::Unknown { reason: "nobody leads yet".to_owned() };
                Ok(Stood::Not(other.map_or_else(nobody, |found| leadership(&found.value))))
            }
            Err(error) => {
                // It may have been done: then it is undone.
                let _ = self.gateway.revoke(id);
                Err(error)
            }
        }
    }
}

enum Stood {
    Leads(Lease),
    Not(Leadership),
}

fn leadership(value: &[u8]) -> Leadership {
    match serde_json::from_slice(value) {
        Ok(LeaderValue { url }) => Leadership::Anothers { url },
        Err(error) => Leadership::Unknown { reason: format!("the leader's key is none of a controller: {error}") },
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// The revision at which the leader's key was made.
    pub(super) made_at: i64,
    /// When it was asked for: it is over so long after that, if it is not renewed.
    since: Instant,
}

/// Renews a lease until it is dropped, and ends it then.
#[derive(Debug)]
pub(super) struct Renewal {
    /// What ends when this goes.
    _end: Sender<()>,
}

/// What the thread that renews tells the one that watches the time: a server that hangs keeps only the first.
enum Told {
    /// Nobody else leads before this.
    Until(Instant),
    /// The lease is over.
    Over,
}

impl Renewal {
    fn start(gateway: Arc<Gateway>, lease: Lease, deposed: impl FnOnce() + Send + 'static) -> Result<Self, StoreError> {
        let (end, ended) = channel();
        let (tell, told) = channel();
        spawn("lease-watch", move || {
            if watch(lease.since + LEASE, &told) {
                deposed();
            }
        })?;
        spawn("lease", move || renew(&gateway, lease.id, &ended, &tell))?;
        Ok(Renewal { _end: end })
    }
}

/// Renews a lease as long as it can be.
fn renew(gateway: &Gateway, lease: i64, ended: &Receiver<()>, tell: &Sender<Told>) {
    loop {
        let asked = Instant::now();
        let told = match gateway.keep_alive(lease) {
            Ok(true) => tell.send(Told::Until(asked + LEASE)),
            Ok(false) => {
                // Whoever watches has gone only when the time was over.
                let _ = tell.send(Told::Over);
                return;
            }
            Err(_) => Ok(()),
        };
        if told.is_err() {
            return;
        }
        if ended.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Disconnected) {
            // Without it the lease would end by itself, only later.
            let _ = gateway.revoke(lease);
            return;
        }
    }
}

/// Whether the time was over, or the lease, before it was given up.
fn watch(mut until: Instant, told: &Receiver<Told>) -> bool {
    loop {
        match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Told::Until(later)) => until = later,
            Ok(Told::Over) | Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| StoreError::System(error.to_string()))
}
