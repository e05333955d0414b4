//! What outlives the controller: rows of a key and a value, changed in batches that are there in full or not at all.

mod etcd;
mod on_disk;
mod writer;

pub use etcd::{Etcd, Leadership, Standby};
pub use on_disk::OnDisk;
pub(crate) use writer::{Durability, Writer};

use srdma_controller_core::{FORMAT_KEY, Row, RowError, Write};
use std::path::PathBuf;

/// Keeps rows. One thread writes; any may read.
pub trait Store: Send + Sync {
    /// The rows whose key begins so and lies behind `after`, in the order of their keys, so many at most.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError>;

    /// Makes changes: all of them are durable when this returns, or none is made.
    ///
    /// # Errors
    ///
    /// When they are not made.
    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError>;

    /// Makes the store usable again after it has failed. What was committed is there.
    ///
    /// # Errors
    ///
    /// When it cannot be used any more.
    fn reopen(&self) -> Result<(), StoreError>;
}

/// Why a store does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error("store {}: another controller has it open; stop that one, or name another file", file.display())]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// It is no store, or was damaged.
    #[error(
        "store {}: damaged, or no store of a controller: {reason}; `srdma controller restore` makes a new one from a \
         backup, and `srdma controller run --rebuild` one from what the nodes hold", file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Its rows cannot be used.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A controller has it, and is to be asked itself.
    #[error("a controller leads at {url}: ask that one with --controller, or stop it")]
    Led {
        /// Where.
        url: String,
    },
    /// Another controller leads now.
    #[error("another controller leads: this one may write nothing more")]
    Deposed,
    /// The system refuses: a full disk, or no right.
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
