//! A simulated etcd: a server with revisions and leases, and a gateway to it that loses requests and responses, and
//! lets requests arrive late.
//!
//! ```text
//!   store ──► gateway ──► server
//!                │ late      ▲ before a later request of any controller
//!                └───────────┘
//! ```
//!
//! A request takes effect at once. The time that a store would have waited for responses is counted, and the caller
//! lets it pass.

use crate::schedule::EtcdPlan;
use srdma_etcd::{Comparison, EtcdError, Gateway, KeyValue, Operation, Outcome, Property, Range};
use srdma_random::Stream;
use srdma_wire::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limit of operations of a transaction: etcd's default.
const MAX_OPERATIONS: usize = 128;

/// A response is waited for at most so long: the product's timeout.
const TIMEOUT_NS: u64 = 2_000_000_000;

/// Delayed requests that are kept.
const MAX_DELAYED: usize = 64;

/// The server's state.
#[derive(Debug, Default)]
pub(crate) struct Server {
    now: Instant,
    revision: i64,
    keys: BTreeMap<Vec<u8>, Stored>,
    /// When they expire.
    leases: BTreeMap<i64, Instant>,
    leases_granted: i64,
    delayed: Vec<Transaction>,
}

#[derive(Clone, Debug)]
struct Stored {
    value: Vec<u8>,
    created: i64,
    changed: i64,
    lease: i64,
}

#[derive(Clone, Debug)]
struct Transaction {
    compare: Vec<Comparison>,
    success: Vec<Operation>,
    failure: Vec<Operation>,
}

impl Server {
    /// Lets time pass: leases expire.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let expired = self.leases.iter().filter(|(_, end)| self.now >= **end).map(|(lease, _)| *lease);
        for lease in expired.collect::<Vec<_>>() {
            self.revoke(lease);
        }
    }

    fn revoke(&mut self, lease: i64) {
        if self.leases.remove(&lease).is_some() {
            let before = self.keys.len();
            self.keys.retain(|_, stored| stored.lease != lease);
            self.revision += i64::from(self.keys.len() < before);
        }
    }

    /// Deletes all keys, as when the servers are set up anew. Revisions go on, which hides no stale comparison.
    fn clear(&mut self) {
        self.keys.clear();
        self.leases.clear();
        self.delayed.clear();
        self.revision += 1;
    }

    fn holds(&self, Comparison { key, property, revision }: &Comparison) -> bool {
        let stored = self.keys.get(key);
        let found = stored.map_or(0, |stored| match property {
            Property::Created => stored.created,
            Property::Changed => stored.changed,
        });
        found == *revision
    }

    fn transact(&mut self, Transaction { compare, success, failure }: &Transaction) -> Result<Outcome, EtcdError> {
        for operations in [success, failure] {
            check(operations)?;
        }
        let succeeded = compare.iter().all(|comparison| self.holds(comparison));
        let operations = if succeeded { success } else { failure };
        let is_unknown = |lease: i64| lease != 0 && !self.leases.contains_key(&lease);
        if operations.iter().any(|one| matches!(one, Operation::Put { lease, .. } if is_unknown(*lease))) {
            return Err(EtcdError::Rejected("requested lease not found".to_owned()));
        }
        let writes = operations.iter().any(|operation| !matches!(operation, Operation::Get { .. }));
        self.revision += i64::from(writes);
        let found = operations.iter().map(|operation| self.perform(operation)).collect();
        Ok(Outcome { revision: self.revision, succeeded, found })
    }

    fn perform(&mut self, operation: &Operation) -> Vec<KeyValue> {
        match operation {
            Operation::Put { key, value, lease } => {
                let created = self.keys.get(key).map_or(self.revision, |stored| stored.created);
                let stored = Stored { value: value.clone(), created, changed: self.revision, lease: *lease };
                self.keys.insert(key.clone(), stored);
            }
            Operation::Get { key } => return self.range(key, None, 1).kvs,
            Operation::Delete { key } => drop(self.keys.remove(key)),
            Operation::DeleteAll { prefix } => self.keys.retain(|key, _| !key.starts_with(prefix)),
        }
        Vec::new()
    }

    fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Range {
        let one;
        let end = match end {
            Some(end) => end,
            None => {
                one = [key, &[0]].concat();
                &one
            }
        };
        let mut found = self.keys.range(key.to_vec()..end.to_vec());
        let kvs = found.by_ref().take(limit).map(|(key, stored)| KeyValue {
            key: key.clone(),
            value: stored.value.clone(),
            mod_revision: stored.changed,
            lease: stored.lease,
        });
        Range { kvs: kvs.collect(), more: found.next().is_some() }
    }
}

/// What etcd rejects: too many operations, and another change of a key that is put.
fn check(operations: &[Operation]) -> Result<(), EtcdError> {
    if operations.len() > MAX_OPERATIONS {
        return Err(EtcdError::Rejected("too many operations in txn request".to_owned()));
    }
    let mut put = BTreeSet::new();
    for operation in operations {
        let Operation::Put { key, .. } = operation else { continue };
        let deletes = |other: &Operation| match other {
            Operation::Delete { key: deleted } => deleted == key,
            Operation::DeleteAll { prefix } => key.starts_with(prefix),
            Operation::Put { .. } | Operation::Get { .. } => false,
        };
        if !put.insert(key) || operations.iter().any(deletes) {
            return Err(EtcdError::Rejected("duplicate key given in txn request".to_owned()));
        }
    }
    Ok(())
}

/// What happens to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// All arrive, and are responded to.
    Fine,
    /// With the faults of the schedule.
    Rough,
    /// So many more arrive. Their responses do not, nor does any other request in time.
    Ends(u32),
}

/// The way of one controller to the server.
#[derive(Debug)]
pub(crate) struct SimulatedGateway {
    server: Arc<Mutex<Server>>,
    client: Mutex<Client>,
}

#[derive(Debug)]
struct Client {
    plan: EtcdPlan,
    rng: Stream,
    weather: Weather,
    waited: Duration,
}

/// The fate of a request.
enum Fate {
    Passes,
    RequestLost,
    ResponseLost,
    Late,
}

impl SimulatedGateway {
    pub(crate) fn new(server: &Arc<Mutex<Server>>, plan: &EtcdPlan, rng: Stream) -> Self {
        let client = Client { plan: plan.clone(), rng, weather: Weather::Fine, waited: Duration::ZERO };
        SimulatedGateway { server: Arc::clone(server), client: Mutex::new(client) }
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        self.client().weather = weather;
    }

    /// The time that requests have been waited for since the last call.
    pub(crate) fn take_waited(&self) -> Duration {
        std::mem::take(&mut self.client().waited)
    }

    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        lock(&self.server)
    }

    /// Lets requests that were delayed arrive, or not yet.
    fn deliver_delayed(&self) {
        let mut server = self.server();
        while !server.delayed.is_empty() && self.client().rng.below(4) == 0 {
            let transaction = server.delayed.remove(0);
            // Its sender has given it up.
            let _ = server.transact(&transaction);
        }
    }

    fn pass<T>(
        &self,
        transaction: Option<&Transaction>,
        act: impl FnOnce(&mut Server) -> Result<T, EtcdError>,
    ) -> Result<T, EtcdError> {
        self.deliver_delayed();
        match self.client().fate() {
            Fate::Passes => return act(&mut self.server()),
            Fate::RequestLost => {}
            Fate::ResponseLost => drop(act(&mut self.server())),
            Fate::Late => {
                let mut server = self.server();
                if server.delayed.len() < MAX_DELAYED {
                    server.delayed.extend(transaction.cloned());
                }
            }
        }
        self.client().wait_in_vain();
        Err(EtcdError::NoResponse("simulated".to_owned()))
    }
}

impl Client {
    fn fate(&mut self) -> Fate {
        let mut happens = |ppm: u32| self.rng.below(1_000_000) < u64::from(ppm);
        match self.weather {
            Weather::Fine => Fate::Passes,
            Weather::Rough if happens(self.plan.lost_request_ppm) => Fate::RequestLost,
            Weather::Rough if happens(self.plan.lost_response_ppm) => Fate::ResponseLost,
            Weather::Rough if happens(self.plan.late_ppm) => Fate::Late,
            Weather::Rough => Fate::Passes,
            Weather::Ends(0) if happens(500_000) => Fate::Late,
            Weather::Ends(0) => Fate::RequestLost,
            Weather::Ends(1) => {
                self.weather = Weather::Ends(0);
                Fate::ResponseLost
            }
            Weather::Ends(more) => {
                self.weather = Weather::Ends(more - 1);
                Fate::Passes
            }
        }
    }

    /// A connection is reset at once, or a response is waited for in vain.
    fn wait_in_vain(&mut self) {
        let share = 1 << self.rng.below(10);
        self.waited += Duration::from_nanos(TIMEOUT_NS / share);
    }
}

impl Gateway for SimulatedGateway {
    fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Range, EtcdError> {
        self.pass(None, |server| Ok(server.range(key, end, limit)))
    }

    fn transact(
        &self,
        compare: &[Comparison],
        success: &[Operation],
        failure: &[Operation],
    ) -> Result<Outcome, EtcdError> {
        let (compare, success, failure) = (compare.to_vec(), success.to_vec(), failure.to_vec());
        let transaction = Transaction { compare, success, failure };
        self.pass(Some(&transaction), |server| server.transact(&transaction))
    }

    fn grant(&self, ttl_s: u64) -> Result<i64, EtcdError> {
        self.pass(None, |server| {
            server.leases_granted += 1;
            let (lease, end) = (server.leases_granted, server.now.after_ns(ttl_s * 1_000_000_000));
            server.leases.insert(lease, end);
            Ok(lease)
        })
    }

    fn keep_alive(&self, lease: i64) -> Result<bool, EtcdError> {
        self.pass(None, |server| {
            let end = server.now + srdma_etcd::LEASE;
            Ok(server.leases.get_mut(&lease).map(|known| *known = end).is_some())
        })
    }

    fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        self.pass(None, |server| {
            server.revoke(lease);
            Ok(())
        })
    }

    fn now(&self) -> Duration {
        self.client().waited
    }

    fn wait(&self, time: Duration) {
        self.client().waited += time;
    }
}

fn lock(server: &Mutex<Server>) -> MutexGuard<'_, Server> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The servers, as the world sees them.
#[derive(Debug)]
pub(crate) struct Servers(Arc<Mutex<Server>>);

impl Servers {
    pub(crate) fn new() -> Self {
        Servers(Arc::new(Mutex::new(Server::default())))
    }

    pub(crate) fn gateway(&self, plan: &EtcdPlan, rng: Stream) -> SimulatedGateway {
        SimulatedGateway::new(&self.0, plan, rng)
    }

    pub(crate) fn advance(&self, now: Instant) {
        lock(&self.0).advance(now);
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the texts of etcd 3.4.23.
    #[test]
    fn requests_that_etcd_rejects_are_rejected() {
        let put = |key: &[u8], lease| Operation::Put { key: key.to_vec(), value: b"v".to_vec(), lease };
        let delete = |key: &[u8]| Operation::Delete { key: key.to_vec() };
        let delete_all = |prefix: &[u8]| Operation::DeleteAll { prefix: prefix.to_vec() };
        let mut server = Server::default();
        server.leases.insert(7, Instant::from_ns(5));
        for (operations, reason) in [
            (vec![put(b"a", 7)], None),
            (vec![put(b"a", 8)], Some("requested lease not found")),
            (vec![put(b"a", 0), put(b"a", 0)], Some("duplicate key given in txn request")),
            (vec![put(b"a", 0), delete(b"a")], Some("duplicate key given in txn request")),
            (vec![delete(b"a"), delete(b"a")], None),
            (vec![put(b"ab", 0), delete_all(b"a")], Some("duplicate key given in txn request")),
            (vec![put(b"b", 0), delete_all(b"a")], None),
            (vec![put(b"a", 0); 129], Some("too many operations in txn request")),
        ] {
            let transaction = Transaction { compare: Vec::new(), success: operations, failure: Vec::new() };
            let expected = reason.map(|reason| EtcdError::Rejected(reason.to_owned()));
            assert_eq!(server.transact(&transaction).err(), expected, "{transaction:?}");
        }
        server
            .transact(&Transaction { compare: Vec::new(), success: vec![put(b"c", 7)], failure: Vec::new() })
            .unwrap();
        server.advance(Instant::from_ns(5));
        assert!(server.range(b"c", None, 1).kvs.is_empty(), "it had the lease");
    }
}
