//! The thread that renews the leader's lease, and controllers that wait to become the leader.

use super::Etcd;
use super::gateway::HttpGateway;
use crate::config::EtcdTrust;
use crate::store::StoreError;
use srdma_etcd::{Election, EtcdError, Gateway, LEASE, Leadership, campaign};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

/// Interval for renewing the lease.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(1000);
/// Interval at which a standby checks for a leader.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A controller that waits to become the leader.
#[derive(Debug)]
pub struct Standby {
    gateway: Arc<HttpGateway>,
    url: String,
}

impl Standby {
    /// A standby of these etcd servers, URLs separated by commas. `url`: its own.
    ///
    /// # Errors
    ///
    /// A URL is wrong, or a certificate or key cannot be used.
    pub fn new(servers: &str, url: &str, trust: &EtcdTrust) -> Result<Self, StoreError> {
        Ok(Standby { gateway: Arc::new(HttpGateway::new(servers, trust)?), url: url.to_owned() })
    }

    /// Becomes the leader at once, for a backup or restore while no controller runs.
    ///
    /// # Errors
    ///
    /// There is a leader, or etcd cannot be used.
    pub fn lead_now(&self) -> Result<Etcd, StoreError> {
        match self.campaign()? {
            (Election::Leads { lease, created_at }, since) => self.open(Lease { id: lease, created_at, since }, || ()),
            (Election::Not(Leadership::Other { url }), _) => Err(StoreError::Led { url }),
            (Election::Not(Leadership::Unknown { reason }), _) => Err(StoreError::System(reason)),
            (Election::Not(Leadership::Own), _) => Err(StoreError::Deposed),
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
        loop {
            let unknown = |error: EtcdError| Election::Not(Leadership::Unknown { reason: error.to_string() });
            let (found, since) = self.campaign().unwrap_or_else(|error| (unknown(error), Instant::now()));
            let now = match &found {
                Election::Leads { .. } => &Leadership::Own,
                Election::Not(leadership) => leadership,
            };
            if last.as_ref() != Some(now) {
                changed(now);
                last = Some(now.clone());
            }
            match found {
                Election::Leads { lease, created_at } => {
                    return self.open(Lease { id: lease, created_at, since }, deposed);
                }
                Election::Not(_) => sleep(POLL_INTERVAL),
            }
        }
    }

    /// Becomes the leader if there is none; the time is from before the lease was requested.
    fn campaign(&self) -> Result<(Election, Instant), EtcdError> {
        let since = Instant::now();
        Ok((campaign(&self.gateway, &self.url)?, since))
    }

    fn open(&self, lease: Lease, deposed: impl FnOnce() + Send + 'static) -> Result<Etcd, StoreError> {
        let renewal = Renewal::start(Arc::clone(&self.gateway), lease, deposed)?;
        Etcd::open(Arc::clone(&self.gateway), &lease, renewal)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) id: i64,
    /// Revision of the creation of the leader's key.
    pub(super) created_at: i64,
    /// Time before it was requested: its lifetime counts from then.
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
    fn start(
        gateway: Arc<HttpGateway>,
        lease: Lease,
        deposed: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StoreError> {
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
fn renew(gateway: &HttpGateway, lease: i64, ended: &Receiver<()>, sender: &Sender<LeaseEvent>) {
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
