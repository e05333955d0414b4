//! Backups: all rows as text, a line each.
//!
//! The first line has the format; the last one the number of rows and their digest, so that a truncated backup is
//! recognized.

use crate::store::{Store, StoreError, format_of};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use srdma_controller_core::{FORMAT, RowError, Write};
use std::io::{self, BufRead};

/// Reason for which a backup cannot be written or restored.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing the text.
    #[error("the backup: {0}")]
    System(#[from] io::Error),
    /// It is not a backup, or truncated.
    #[error("line {line}: {reason}")]
    Damaged {
        /// The line, from 1.
        line: usize,
        reason: String,
    },
    /// The store is not empty.
    #[error("the store is not empty")]
    NotEmpty,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    srdma_controller_backup: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    key: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    rows: u64,
    sha256: String,
}

/// Writes all rows. Changes made meanwhile are included or not, row by row.
///
/// # Errors
///
/// If rows cannot be read or lines cannot be written.
pub fn write_backup(store: &dyn Store, take: &mut dyn FnMut(&str) -> io::Result<()>) -> Result<u64, BackupError> {
    let format = format_of(store)?.unwrap_or(FORMAT);
    take(&line(&Head { srdma_controller_backup: format })?)?;
    let mut digest = Sha256::new();
    let mut count = 0;
    for (key, value) in store.rows("", None, usize::MAX)? {
        let value = std::str::from_utf8(&value).ok().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let reason = "expected JSON".to_owned();
        let value = value.ok_or_else(|| StoreError::from(RowError::Damaged { key: key.clone(), reason }))?;
        let text = line(&Line { key, value })?;
        digest.update(text.as_bytes());
        take(&text)?;
        count += 1;
    }
    take(&line(&Tail { rows: count, sha256: hex::encode(digest.finalize()) })?)?;
    Ok(count)
}

/// Restores a backup into an empty store, after it was read and verified in full.
///
/// # Errors
///
/// It is truncated, or the store has rows.
pub fn restore(store: &dyn Store, backup: &mut dyn BufRead) -> Result<u64, BackupError> {
    if !store.rows("", None, 1)?.is_empty() {
        return Err(BackupError::NotEmpty);
    }
    let mut lines = backup.lines();
    let damaged = |line, reason: &str| BackupError::Damaged { line, reason: reason.to_owned() };
    let head = lines.next().transpose()?.unwrap_or_default();
    let head: Head = serde_json::from_str(&head).map_err(|_| damaged(1, "not a backup of a controller"))?;
    if head.srdma_controller_backup > FORMAT {
        return Err(StoreError::from(RowError::Newer { found: head.srdma_controller_backup, known: FORMAT }).into());
    }
    let mut digest = Sha256::new();
    let mut writes = Vec::new();
    let mut tail: Option<Tail> = None;
    let mut last = 1;
    for (number, text) in (2..).zip(lines) {
        let text = text?;
        last = number;
        if tail.is_some() {
            return Err(damaged(number, "unexpected line after the last one"));
        }
        if let Ok(line) = serde_json::from_str::<Line<'_>>(&text) {
            digest.update(text.as_bytes());
            digest.update(b"\n");
            writes.push(Write::Put { key: line.key, value: line.value.get().as_bytes().to_vec() });
        } else {
            tail = Some(serde_json::from_str(&text).map_err(|error| damaged(number, &error.to_string()))?);
        }
    }
    let tail = tail.ok_or_else(|| damaged(last, "the backup is truncated"))?;
    if tail.rows != writes.len() as u64 || tail.sha256 != hex::encode(digest.finalize()) {
        return Err(damaged(last, "the digest does not match the rows"));
    }
    store.commit(&writes.iter().collect::<Vec<_>>())?;
    Ok(tail.rows)
}

fn line(value: &impl Serialize) -> io::Result<String> {
    Ok(format!("{}\n", serde_json::to_string(value)?))
}
