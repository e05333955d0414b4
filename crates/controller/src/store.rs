//! State stores: rows of a key and a value, changed in atomic batches.

mod etcd;
mod on_disk;
mod writer;

pub(crate) use etcd::LEADER_LEASE;
pub use etcd::{Etcd, Leadership, Standby};
pub use on_disk::OnDisk;
pub(crate) use writer::{Durability, Writer};

use srdma_controller_core::{FORMAT_KEY, Row, RowError, Write};
use std::path::PathBuf;

/// A state store. One thread writes; any may read.
pub trait Store: Send + Sync {
    /// At most `most` rows whose key has the prefix and is greater than `after`, ordered by key.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError>;

    /// Commits changes: all of them are durable when this returns, or none is made.
    ///
    /// # Errors
    ///
    /// If they are not made.
    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError>;

    /// Reopens the store after a failure, with all committed writes.
    ///
    /// # Errors
    ///
    /// If it cannot be used any more.
    fn reopen(&self) -> Result<(), StoreError>;
}

/// Reason for which a store has failed.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process has opened it.
    #[error("store {}: another controller has it open; stop that one, or name another file", file.display())]
    InUse { file: PathBuf },
    /// It is not a store, or damaged.
    #[error(
        "store {}: damaged, or not a store of a controller: {reason}; `srdma controller restore` creates one from a \
         backup, `srdma controller run --rebuild` from the nodes", file.display()
    )]
    Damaged { file: PathBuf, reason: String },
    /// Its rows cannot be used.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A controller uses it.
    #[error("the controller at {url} is the leader: use that one by --controller, or stop it")]
    Led {
        /// Where.
        url: String,
    },
    /// Another controller is the leader now.
    #[error("another controller is the leader: this one has stopped writing")]
    Deposed,
    /// A system error, such as a full disk.
    #[error("the store cannot be used: {0}")]
    System(String),
}

/// The format of a store's rows; `None`: it is new.
pub(crate) fn format_of(store: &dyn Store) -> Result<Option<u32>, StoreError> {
    // More keys may begin with these letters.
    let found = store.rows(FORMAT_KEY, None, 1)?.into_iter().find(|(key, _)| key == FORMAT_KEY);
    let is_empty = found.is_none() && store.rows("", None, 1)?.is_empty();
    Ok(srdma_controller_core::format_of(found.as_ref(), is_empty)?)
}
