//! The store in etcd: [`srdma_etcd`] over HTTP, and a thread that renews the leader's lease.

mod gateway;
mod leadership;

pub use leadership::Standby;
pub(crate) use srdma_etcd::LEASE as LEADER_LEASE;
pub use srdma_etcd::Leadership;

use super::{Store, StoreError};
use gateway::HttpGateway;
use leadership::{Lease, Renewal};
use srdma_controller_core::{Row, Write};
use srdma_etcd::{EtcdError, EtcdStoreError, Gateway, Limits};
use std::sync::Arc;

/// The store of the leader.
#[derive(Debug)]
pub struct Etcd {
    store: srdma_etcd::Etcd<Arc<HttpGateway>>,
    lease: i64,
    /// Revokes the lease when dropped.
    _renewal: Renewal,
}

impl Etcd {
    fn open(gateway: Arc<HttpGateway>, lease: &Lease, renewal: Renewal) -> Result<Self, StoreError> {
        let store = srdma_etcd::Etcd::open(gateway, lease.created_at, Limits::default())?;
        Ok(Etcd { store, lease: lease.id, _renewal: renewal })
    }

    /// Revokes the lease, so that a standby becomes leader at once. Later writes of this controller fail.
    pub fn resign(&self) {
        // If this fails, the lease expires.
        let _ = self.store.gateway().revoke(self.lease);
    }
}

impl Store for Etcd {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        Ok(self.store.rows(prefix, after, most)?)
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        Ok(self.store.commit(writes)?)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(self.store.reopen()?)
    }
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        StoreError::System(error.to_string())
    }
}

impl From<EtcdStoreError> for StoreError {
    fn from(error: EtcdStoreError) -> Self {
        match error {
            EtcdStoreError::Deposed => StoreError::Deposed,
            EtcdStoreError::Etcd(error) => error.into(),
            EtcdStoreError::Rows(error) => error.into(),
        }
    }
}
