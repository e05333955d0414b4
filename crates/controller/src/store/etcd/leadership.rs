//! Leader election: the leader is the controller whose key is in etcd. The key has a lease that its controller renews,
//! and each write is conditional on the key.

use super::gateway::{EtcdError, Gateway, operation};
use super::{Etcd, LEADER};
use crate::config::EtcdTrust;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// Lifetime of a lease that is not renewed, seconds.
const LEASE_S: u64 = 5;
pub(crate) const LEASE: Duration = Duration::from_secs(LEASE_S);
/// Interval for renewing the lease.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(1000);
/// Interval at which a standby checks for a leader.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The leader, as a controller has last read it.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This controller.
    Own,
    /// Another controller.
    Other { url: String },
    /// Unknown: etcd does not respond, or no leader was elected yet.
    Unknown { reason: String },
}

/// The value of the leader's key.
#[derive(Debug, Serialize, Deserialize)]
struct LeaderValue {
    url: String,
}

/// A controller that waits to become the leader.
#[derive(Debug)]
pub struct Standby {
    gateway: Arc<Gateway>,
    url: String,
}

impl Standby {
    /// A standby of these etcd servers, URLs separated by commas. `url`: its own.
    ///
    /// # Errors
    ///
    /// A URL is wrong, or a certificate or key cannot be used.
    pub fn new(servers: &str, url: &str, trust: &EtcdTrust) -> Result<Self, StoreError> {
        Ok(Standby { gateway: Arc::new(Gateway::new(servers, trust)?), url: url.to_owned() })
    }

    /// Becomes the leader at once, for a backup or restore while no controller runs.
    ///
    /// # Errors
    ///
    /// There is a leader, or etcd cannot be used.
    pub fn lead_now(&self) -> Result<Etcd, StoreError> {
        match self.campaign()? {
            Election::Leads(lease) => {
                let renewal = Renewal::start(Arc::clone(&self.gateway), lease, || ())?;
                Etcd::open(Arc::clone(&self.gateway), &lease, renewal)
            }
            Election::Not(Leadership::Other { url }) => Err(StoreError::Led { url }),
            Election::Not(Leadership::Unknown { reason }) => Err(StoreError::System(reason)),
            Election::Not(Leadership::Own) => Err(StoreError::Deposed),
        }
    }

    /// Waits until this controller is the leader, and opens the store. `changed` is called with each change of the
    /// leader meanwhile, `deposed` when it is no longer the leader: no response may leave it from then on.
    ///
    /// # Errors
    ///
    /// etcd has no store of a controller.
    pub fn lead(
        &self,
        mut changed: impl FnMut(&Leadership),
        deposed: impl FnOnce() + Send + 'static,
    ) -> Result<Etcd, StoreError> {
        let mut last = None;
        let lease = loop {
            let found = self
                .campaign()
                .unwrap_or_else(|error| Election::Not(Leadership::Unknown { reason: error.to_string() }));
            let now = match &found {
                Election::Leads(_) => Leadership::Own,
                Election::Not(leadership) => leadership.clone(),
            };
            if last.as_ref() != Some(&now) {
                changed(&now);
                last = Some(now);
            }
            match found {
                Election::Leads(lease) => break lease,
                Election::Not(_) => sleep(POLL_INTERVAL),
            }
        };
        let renewal = Renewal::start(Arc::clone(&self.gateway), lease, deposed)?;
        Etcd::open(Arc::clone(&self.gateway), &lease, renewal)
    }

    /// Becomes the leader if there is none.
    fn campaign(&self) -> Result<Election, EtcdError> {
        if let Some(other) = self.gateway.range(LEADER, None, 1)?.kvs.first() {
            return Ok(Election::Not(leadership(&other.value)));
        }
        let since = Instant::now();
        let id = self.gateway.grant(LEASE_S)?;
        let value = serde_json::to_vec(&LeaderValue { url: self.url.clone() }).unwrap_or_default();
        let outcome = self.gateway.transact(
            &[operation::created_at(LEADER, 0)],
            &[operation::put_with(LEADER, &value, id)],
            &[operation::get(LEADER)],
        );
        match outcome {
            Ok(outcome) if outcome.succeeded => {
                Ok(Election::Leads(Lease { id, created_at: outcome.header.revision, since }))
            }
            Ok(outcome) => {
                // If this fails, the lease expires.
                let _ = self.gateway.revoke(id);
                let other = outcome.found(0).filter(|found| found.lease != id);
                let unknown = || Leadership::Unknown { reason: "no leader was elected yet".to_owned() };
                Ok(Election::Not(other.map_or_else(unknown, |found| leadership(&found.value))))
            }
            Err(error) => {
                // The transaction may have taken effect: undo it.
                let _ = self.gateway.revoke(id);
                Err(error)
            }
        }
    }
}

enum Election {
    Leads(Lease),
    Not(Leadership),
}

fn leadership(value: &[u8]) -> Leadership {
    match serde_json::from_slice(value) {
        Ok(LeaderValue { url }) => Leadership::Other { url },
        Err(error) => Leadership::Unknown { reason: format!("the leader's key cannot be parsed: {error}") },
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// Revision of the creation of the leader's key.
    pub(super) created_at: i64,
    /// Time at which it was requested: its lifetime counts from then.
    since: Instant,
}

/// Renews a lease until dropped, and revokes it then.
#[derive(Debug)]
pub(super) struct Renewal {
    /// Closed when this is dropped.
    _end: Sender<()>,
}

/// Sent by the renewing thread to the watching one: a server that hangs blocks only the first.
enum LeaseEvent {
    /// No other controller can become leader before this.
    Until(Instant),
    /// The lease has expired.
    Expired,
}

impl Renewal {
    fn start(gateway: Arc<Gateway>, lease: Lease, deposed: impl FnOnce() + Send + 'static) -> Result<Self, StoreError> {
        let (end, ended) = channel();
        let (sender, events) = channel();
        spawn("lease-watch", move || {
            if watch(lease.since + LEASE, &events) {
                deposed();
            }
        })?;
        spawn("lease", move || renew(&gateway, lease.id, &ended, &sender))?;
        Ok(Renewal { _end: end })
    }
}

/// Renews a lease until `ended` is closed or the lease has expired.
fn renew(gateway: &Gateway, lease: i64, ended: &Receiver<()>, sender: &Sender<LeaseEvent>) {
    loop {
        let sent_at = Instant::now();
        let result = match gateway.keep_alive(lease) {
            Ok(true) => sender.send(LeaseEvent::Until(sent_at + LEASE)),
            Ok(false) => {
                // The watching thread has ended only when the lease had expired.
                let _ = sender.send(LeaseEvent::Expired);
                return;
            }
            Err(_) => Ok(()),
        };
        if result.is_err() {
            return;
        }
        if ended.recv_timeout(RENEWAL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
            // If this fails, the lease expires.
            let _ = gateway.revoke(lease);
            return;
        }
    }
}

/// Waits until the lease has expired (`true`) or was revoked (`false`).
fn watch(mut until: Instant, events: &Receiver<LeaseEvent>) -> bool {
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(LeaseEvent::Until(later)) => until = later,
            Ok(LeaseEvent::Expired) | Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let spawned = Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| StoreError::System(error.to_string()))
}
