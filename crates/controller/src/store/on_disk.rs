//! The store in one file.

use super::{Store, StoreError};
use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError};
use srdma_controller_core::{Row, Write};
use srdma_toml_error::{check_private, create_private};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

const ROWS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("rows");
/// Number of committed batches, under an empty key: a full disk may report an error for a batch that it has written.
const BATCHES: TableDefinition<'static, &str, u64> = TableDefinition::new("batches");

/// Failure of a batch.
enum Failure {
    /// The commit did not begin.
    NotCommitted(StoreError),
    /// The commit failed: the file shows whether it was written.
    Unknown { batch: u64, error: StoreError },
}

/// The store in one file.
#[derive(Debug)]
pub struct OnDisk {
    /// `None` only when it could not be reopened.
    database: RwLock<Option<Database>>,
    file: PathBuf,
}

impl OnDisk {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    ///
    /// If another process has opened it, or it is not a store.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        let database = RwLock::new(Some(open(file)?));
        let store = OnDisk { database, file: file.to_owned() };
        store.check()?;
        Ok(store)
    }

    /// Reads every row once, to detect damage at the start.
    fn check(&self) -> Result<(), StoreError> {
        self.rows("", None, usize::MAX).map(|_| ())
    }

    /// Commits a batch.
    fn attempt(&self, writes: &[&Write]) -> Result<(), Failure> {
        let system = |error: &dyn Display| StoreError::System(format!("{}: {error}", self.file.display()));
        let not_committed = |error: &dyn Display| Failure::NotCommitted(system(error));
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(|| not_committed(&"it could not be reopened"))?;
        let transaction = database.begin_write().map_err(|error| not_committed(&error))?;
        let batch = {
            let mut table = transaction.open_table(ROWS).map_err(|error| not_committed(&error))?;
            for write in writes {
                let changed = match write {
                    Write::Put { key, value } => table.insert(key.as_str(), value.as_slice()).map(|_| ()),
                    Write::Delete { key } => table.remove(key.as_str()).map(|_| ()),
                };
                changed.map_err(|error| not_committed(&error))?;
            }
            let mut batches = transaction.open_table(BATCHES).map_err(|error| not_committed(&error))?;
            let before = batches.get("").map_err(|error| not_committed(&error))?.map_or(0, |before| before.value());
            batches.insert("", before + 1).map_err(|error| not_committed(&error))?;
            before + 1
        };
        transaction.commit().map_err(|error| Failure::Unknown { batch, error: system(&error) })
    }

    /// Number of committed batches.
    fn batches(&self) -> Result<u64, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(|| self.damaged("it could not be reopened"))?;
        let read = database.begin_read().map_err(|error| self.damaged(error))?;
        match read.open_table(BATCHES) {
            Ok(table) => Ok(table.get("").map_err(|error| self.damaged(error))?.map_or(0, |count| count.value())),
            Err(TableError::TableDoesNotExist(_)) => Ok(0),
            Err(error) => Err(self.damaged(error)),
        }
    }

    fn damaged(&self, error: impl Display) -> StoreError {
        StoreError::Damaged { file: self.file.clone(), reason: error.to_string() }
    }
}

fn open(file: &Path) -> Result<Database, StoreError> {
    let damaged = |reason: String| StoreError::Damaged { file: file.to_owned(), reason };
    // An empty file is a truncated store: creating a new one would hide the loss.
    if std::fs::metadata(file).is_ok_and(|found| found.len() == 0) {
        return Err(damaged("the file is empty".to_owned()));
    }
    let opened = match create_private(file) {
        // It holds R_Keys: its owner alone may read it.
        Ok(created) => FileBackend::new(created).and_then(|file| Database::builder().create_with_backend(file)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if let Err(error) = check_private(file) {
                tracing::warn!("{error}");
            }
            Database::create(file)
        }
        Err(error) => return Err(StoreError::System(format!("{}: {error}", file.display()))),
    };
    opened.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { file: file.to_owned() },
        DatabaseError::Storage(StorageError::Io(error))
            if error.kind() != std::io::ErrorKind::UnexpectedEof && error.kind() != std::io::ErrorKind::InvalidData =>
        {
            StoreError::System(format!("{}: {error}", file.display()))
        }
        error => damaged(error.to_string()),
    })
}

impl Store for OnDisk {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(|| self.damaged("it could not be reopened"))?;
        let read = database.begin_read().map_err(|error| self.damaged(error))?;
        let table = match read.open_table(ROWS) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(self.damaged(error)),
        };
        let first = after.filter(|after| *after > prefix).unwrap_or(prefix);
        let mut rows = Vec::new();
        for row in table.range(first..).map_err(|error| self.damaged(error))? {
            let (key, value) = row.map_err(|error| self.damaged(error))?;
            let key = key.value();
            if !key.starts_with(prefix) || rows.len() >= most {
                break;
            }
            if after != Some(key) {
                rows.push((key.to_owned(), value.value().to_vec()));
            }
        }
        Ok(rows)
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        match self.attempt(writes) {
            Ok(()) => Ok(()),
            Err(Failure::NotCommitted(error)) => Err(error),
            Err(Failure::Unknown { batch, error }) => {
                self.reopen()?;
                if self.batches()? == batch { Ok(()) } else { Err(error) }
            }
        }
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // The file is locked until the old database is dropped.
        *database = None;
        *database = Some(open(&self.file)?);
        Ok(())
    }
}
