//! Failures of files during a transfer.

use std::io;
use std::path::Path;

/// A file that failed: which, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file could not be opened.
    #[error("cannot read {path}: {reason}")]
    Open {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// Reading failed.
    #[error("cannot read {path} at octet {offset}: {reason}; what was sent is incomplete, send it again")]
    Read {
        /// The file.
        path: String,
        /// Where.
        offset: u64,
        /// What the system says.
        reason: String,
    },
    /// The file has become shorter since the transfer began.
    #[error(
        "{path} ends at octet {end} and had {octets} when the transfer began: another program has cut it; what was \
         sent is incomplete, send it again when nothing writes to it"
    )]
    Shrunk {
        /// The file.
        path: String,
        /// Its present end.
        end: u64,
        /// Its length when it was opened.
        octets: u64,
    },
    /// The file that is written could not be created, or not be given its name.
    #[error("cannot write {path}: {reason}")]
    Create {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// Writing failed.
    #[error("cannot write {path} at octet {offset}: {reason}; what was received of it is removed{}", advice(*.is_full))]
    Write {
        /// The file.
        path: String,
        /// Where.
        offset: u64,
        /// What the system says.
        reason: String,
        /// Whether there was no room.
        is_full: bool,
    },
    /// Not even the least memory is there.
    #[error("there is no memory for the octets that come in")]
    NoMemory,
    /// A pipe or a device was to be written out of order.
    #[error(
        "cannot write octet {offset} to {path} after octet {end}: it is no regular file; give --out a regular file"
    )]
    OutOfOrder {
        /// The file.
        path: String,
        /// The octet that came.
        offset: u64,
        /// The octet that was expected.
        end: u64,
    },
}

fn advice(is_full: bool) -> &'static str {
    if is_full { "; make room there, or give --out a file on another disk" } else { "" }
}

impl FileError {
    pub(super) fn open(path: &Path, error: &io::Error) -> Self {
        FileError::Open { path: path.display().to_string(), reason: error.to_string() }
    }

    pub(super) fn read(path: &Path, offset: u64, error: &io::Error) -> Self {
        FileError::Read { path: path.display().to_string(), offset, reason: error.to_string() }
    }

    pub(super) fn create(path: &Path, error: &io::Error) -> Self {
        FileError::Create { path: path.display().to_string(), reason: error.to_string() }
    }

    pub(super) fn write(path: &Path, offset: u64, error: &io::Error) -> Self {
        let is_full = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        FileError::Write { path: path.display().to_string(), offset, reason: error.to_string(), is_full }
    }
}
