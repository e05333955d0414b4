//! What the store needs of etcd: its API of version 3, as far as it is used.
#![allow(missing_docs, reason = "names and types explain the other items")]

use std::sync::Arc;
use std::time::Duration;

/// Reason for a failed request to etcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// No server responded: the request may have taken effect, or may do so later.
    #[error("etcd does not respond: {0}")]
    NoResponse(String),
    /// The request was rejected and had no effect.
    #[error("etcd has rejected the request: {0}")]
    Rejected(String),
}

/// A comparison of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub key: Vec<u8>,
    pub property: Property,
    /// What the property has to be; 0: the key does not exist.
    pub revision: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Revision of the key's creation.
    Created,
    /// Revision of the key's last change.
    Changed,
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
        /// The lease that deletes the key on expiry; 0: none.
        lease: i64,
    },
    Get {
        key: Vec<u8>,
    },
    Delete {
        key: Vec<u8>,
    },
    /// Deletes all keys with a prefix.
    DeleteAll {
        prefix: Vec<u8>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub mod_revision: i64,
    pub lease: i64,
}

/// Response to a range request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub kvs: Vec<KeyValue>,
    /// More keys follow behind the limit.
    pub more: bool,
}

/// Result of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The store's revision.
    pub revision: i64,
    pub succeeded: bool,
    /// What the operations found; empty for those other than [`Operation::Get`].
    pub found: Vec<Vec<KeyValue>>,
}

impl Outcome {
    /// The key that the transaction's operation with this index has found.
    pub fn found(&self, index: usize) -> Option<&KeyValue> {
        self.found.get(index)?.first()
    }
}

/// Requests to etcd, and the time in which they are sent again.
pub trait Gateway {
    /// Keys from `key` to before `end`, or `key` alone.
    ///
    /// # Errors
    ///
    /// etcd does not respond, or rejects the request; so for the other requests.
    fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Range, EtcdError>;

    /// Runs `success`, or if a comparison fails, `failure`.
    ///
    /// # Errors
    ///
    /// See [`Gateway::range`].
    fn transact(
        &self,
        compare: &[Comparison],
        success: &[Operation],
        failure: &[Operation],
    ) -> Result<Outcome, EtcdError>;

    /// Grants a lease of `ttl_s` seconds; returns its id.
    ///
    /// # Errors
    ///
    /// See [`Gateway::range`].
    fn grant(&self, ttl_s: u64) -> Result<i64, EtcdError>;

    /// Renews a lease; `false` when it has expired.
    ///
    /// # Errors
    ///
    /// See [`Gateway::range`].
    fn keep_alive(&self, lease: i64) -> Result<bool, EtcdError>;

    /// Revokes a lease and deletes its keys.
    ///
    /// # Errors
    ///
    /// See [`Gateway::range`].
    fn revoke(&self, lease: i64) -> Result<(), EtcdError>;

    /// Time since any fixed moment.
    fn now(&self) -> Duration;

    /// Waits before a request is sent again.
    fn wait(&self, time: Duration);
}

impl<G: Gateway> Gateway for Arc<G> {
    fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Range, EtcdError> {
        G::range(self, key, end, limit)
    }

    fn transact(
        &self,
        compare: &[Comparison],
        success: &[Operation],
        failure: &[Operation],
    ) -> Result<Outcome, EtcdError> {
        G::transact(self, compare, success, failure)
    }

    fn grant(&self, ttl_s: u64) -> Result<i64, EtcdError> {
        G::grant(self, ttl_s)
    }

    fn keep_alive(&self, lease: i64) -> Result<bool, EtcdError> {
        G::keep_alive(self, lease)
    }

    fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        G::revoke(self, lease)
    }

    fn now(&self) -> Duration {
        G::now(self)
    }

    fn wait(&self, time: Duration) {
        G::wait(self, time);
    }
}

impl Comparison {
    /// Compares the revision of a key's creation.
    pub(crate) fn created(key: &[u8], revision: i64) -> Self {
        Comparison { key: key.to_vec(), property: Property::Created, revision }
    }

    /// Compares the revision of a key's last change.
    pub(crate) fn changed(key: &[u8], revision: i64) -> Self {
        Comparison { key: key.to_vec(), property: Property::Changed, revision }
    }
}

impl Operation {
    pub(crate) fn put(key: &[u8], value: &[u8]) -> Self {
        Operation::Put { key: key.to_vec(), value: value.to_vec(), lease: 0 }
    }

    pub(crate) fn get(key: &[u8]) -> Self {
        Operation::Get { key: key.to_vec() }
    }

    pub(crate) fn delete(key: &[u8]) -> Self {
        Operation::Delete { key: key.to_vec() }
    }

    pub(crate) fn delete_all(prefix: &[u8]) -> Self {
        Operation::DeleteAll { prefix: prefix.to_vec() }
    }
}

/// The first key behind all with this prefix, whose last octet must be below 255.
pub fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}
