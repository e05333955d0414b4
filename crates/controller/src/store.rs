//! What outlives the controller: rows of a key and a value, changed in batches that are there in full or not at all.

mod etcd;
mod on_disk;
mod writer;

pub use etcd::{Etcd, Leadership, Standby};
pub use on_disk::OnDisk;
pub(crate) use writer::{Durability, Writer};

use std::path::PathBuf;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Puts a row, in the place of the one that may be there.
    Put {
        /// Its key.
        key: String,
        /// Its value.
        value: Vec<u8>,
    },
    /// Takes a row away.
    Delete {
        /// Its key.
        key: String,
    },
}

/// A row.
pub type Row = (String, Vec<u8>);

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
    /// Its rows are of a version that this program does not know.
    #[error("the store has format {found}, this program knows formats up to {known}: use a newer one")]
    Newer {
        /// Its format.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// A row is not what it should be.
    #[error("the store's row {key} is damaged: {reason}")]
    Row {
        /// Its key.
        key: String,
        /// What is wrong.
        reason: String,
    },
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
