//! The rows of the leader in etcd.
//!
//! | key | value |
//! |---|---|
//! | `srdma/leader` | URL of the leader; has its lease |
//! | `srdma/batch` | writer and number of the last transaction |
//! | `srdma/row/KEY` | `v` and the value of a row, or `p` and the number of its pieces |
//! | `srdma/piece/KEY`, a zero, and a number | a piece of a value that exceeds one key |
//! | `srdma/journal` | the number of pieces of a batch in progress |
//!
//! **Fencing.** Each transaction compares that the leader's key is the one that this controller made, and that nothing
//! was written since its own last transaction. So a former leader cannot write, and a transaction whose response was
//! lost is sent again safely: `batch` shows whether it was committed, and a late one fails.
//!
//! **Batches.** A batch is one transaction if it fits into one (128 operations, 1.5 MiB, less what the store adds). A
//! longer one is atomic nevertheless: it is written as pieces of a journal, which mean nothing yet; then one
//! transaction puts `journal`, and from then on the batch is durable; then its rows are written, by several
//! transactions, and the journal is deleted. A new leader completes a journal before it reads anything.

use crate::LEADER;
use crate::gateway::{Comparison, EtcdError, Gateway, Operation, Outcome, end_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use srdma_controller_core::{Row, RowError, Write};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const BATCH: &[u8] = b"srdma/batch";
const JOURNAL: &[u8] = b"srdma/journal";
const ROW: &str = "srdma/row/";
const PIECE: &str = "srdma/piece/";
/// Prefix of the journal's pieces; no row's key has it.
const JOURNAL_PIECES: &str = "\u{1}journal";

/// Rows that are read at a time.
const PAGE: usize = 500;
/// Timeout of a transaction, within which it is retransmitted; longer than a lease.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(8);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Limits of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Operations beside that of `batch`. The default limit of etcd is 128.
    pub operations: usize,
    /// Octets of keys and values. The default limit of etcd is 1.5 MiB.
    pub octets: usize,
    /// Octets of a piece, and of a value that is not split.
    pub piece_octets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { operations: 120, octets: 1_000_000, piece_octets: 700_000 }
    }
}

/// Reason for which the store has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdStoreError {
    /// Another controller is the leader now.
    #[error("another controller is the leader: this one has stopped writing")]
    Deposed,
    /// etcd has failed.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// Its rows cannot be used.
    #[error(transparent)]
    Rows(#[from] RowError),
}

/// The store of the leader.
pub struct Etcd<G> {
    gateway: G,
    limits: Limits,
    /// Revision of the creation of the leader's key; identifies this leader.
    created_at: i64,
    writer: Mutex<Writer>,
}

#[derive(Debug, Default)]
struct Writer {
    /// Number of transactions of this leader.
    transactions: u64,
    /// Revision of the last write of `batch`.
    batch_at: i64,
    /// Rows whose values are in pieces.
    in_pieces: BTreeSet<String>,
    /// A journal is durable, but its rows are not written.
    is_incomplete: bool,
}

/// New values of rows; `None`: the row is deleted.
type Changes = BTreeMap<String, Option<Vec<u8>>>;

impl<G: Gateway> Etcd<G> {
    /// Opens the store as the leader that has created its key at a revision, and completes a journal.
    ///
    /// # Errors
    ///
    /// Another controller is the leader, etcd has failed, or what it has is damaged.
    pub fn open(gateway: G, created_at: i64, limits: Limits) -> Result<Self, EtcdStoreError> {
        let etcd = Etcd { gateway, limits, created_at, writer: Mutex::default() };
        etcd.recover(&mut etcd.lock())?;
        Ok(etcd)
    }

    /// What requests go through.
    pub const fn gateway(&self) -> &G {
        &self.gateway
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic leaves at most stale values, which `recover` or the next comparison corrects.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, after the rows of a journal that it may have left are written.
    fn lock_recovered(&self) -> Result<MutexGuard<'_, Writer>, EtcdStoreError> {
        let mut writer = self.lock();
        if writer.is_incomplete {
            self.recover(&mut writer)?;
        }
        Ok(writer)
    }

    /// Reads the last transaction, and completes a journal.
    fn recover(&self, writer: &mut Writer) -> Result<(), EtcdStoreError> {
        let last = self.gateway.range(BATCH, None, 1)?;
        writer.batch_at = last.kvs.first().map_or(0, |last| last.mod_revision);
        // Delayed transactions fail from here on.
        self.transact(writer, &[])?;
        writer.in_pieces = self.keys_in_pieces()?;
        let journal = self.gateway.range(JOURNAL, None, 1)?;
        if let Some(journal) = journal.kvs.first() {
            let changes = self.pieces(JOURNAL_PIECES, &journal.value)?;
            let changes = serde_json::from_slice::<Vec<(String, Option<String>)>>(&changes);
            let changes = changes.map_err(|error| damaged("journal", error))?;
            self.write_rows(writer, &of_journal(changes)?)?;
        }
        self.end_journal(writer)?;
        writer.is_incomplete = false;
        Ok(())
    }

    fn end_journal(&self, writer: &mut Writer) -> Result<(), EtcdStoreError> {
        self.transact(writer, &[Operation::delete(JOURNAL), Operation::delete_all(&pieces_prefix(JOURNAL_PIECES))])
    }

    fn keys_in_pieces(&self) -> Result<BTreeSet<String>, EtcdStoreError> {
        let mut keys = BTreeSet::new();
        let (mut from, end) = (PIECE.as_bytes().to_vec(), end_of(PIECE.as_bytes()));
        // One piece at a time: the next range begins behind all pieces of its row.
        while let Some(piece) = self.gateway.range(&from, Some(&end), 1)?.kvs.first() {
            let key = behind_prefix(PIECE, &piece.key)?.split('\0').next().unwrap_or_default().to_owned();
            from = later(&from, end_of(&pieces_prefix(&key)))?;
            keys.insert(key);
        }
        keys.remove(JOURNAL_PIECES);
        Ok(keys)
    }

    /// Commits the operations if this controller is the leader.
    fn transact(&self, writer: &mut Writer, operations: &[Operation]) -> Result<(), EtcdStoreError> {
        writer.transactions += 1;
        let own = format!("{}/{}", self.created_at, writer.transactions);
        let compare = [Comparison::created(LEADER, self.created_at), Comparison::changed(BATCH, writer.batch_at)];
        let success: Vec<Operation> =
            [Operation::put(BATCH, own.as_bytes())].iter().chain(operations).cloned().collect();
        let failure = [Operation::get(LEADER), Operation::get(BATCH)];
        let since = self.gateway.now();
        let outcome = loop {
            match self.gateway.transact(&compare, &success, &failure) {
                Err(EtcdError::NoResponse(_)) if self.gateway.now() - since < TRANSACTION_TIMEOUT => {
                    self.gateway.wait(RETRY_INTERVAL);
                }
                outcome => break outcome?,
            }
        };
        match self.committed_at(&outcome, own.as_bytes()) {
            Some(revision) => {
                writer.batch_at = revision;
                Ok(())
            }
            None => Err(EtcdStoreError::Deposed),
        }
    }

    /// The revision of a transaction that was committed, now or when it was sent before.
    fn committed_at(&self, outcome: &Outcome, own: &[u8]) -> Option<i64> {
        if outcome.succeeded {
            return Some(outcome.revision);
        }
        outcome.found(1).filter(|batch| batch.value == own).map(|batch| batch.mod_revision)
    }

    /// Writes rows, by several transactions if necessary; may be repeated.
    fn write_rows(&self, writer: &mut Writer, changes: &Changes) -> Result<(), EtcdStoreError> {
        let (mut operations, mut octets) = (Vec::new(), 0);
        for (key, value) in changes {
            let (own, size) = match value {
                Some(value) if value.len() > self.limits.piece_octets => {
                    let count = self.put_pieces(writer, key, value)?;
                    (vec![Operation::put(&row(key), format!("p{count}").as_bytes())], key.len())
                }
                Some(_) | None => (small(writer, key, value.as_deref()), size(key, value.as_ref())),
            };
            if operations.len() + own.len() > self.limits.operations || octets + size > self.limits.octets {
                self.transact(writer, &operations)?;
                (operations, octets) = (Vec::new(), 0);
            }
            operations.extend(own);
            octets += size;
        }
        self.transact(writer, &operations)?;
        for (key, value) in changes {
            match value {
                Some(value) if value.len() > self.limits.piece_octets => drop(writer.in_pieces.insert(key.clone())),
                Some(_) | None => drop(writer.in_pieces.remove(key)),
            }
        }
        Ok(())
    }

    /// Writes the pieces of a long value; returns their number.
    fn put_pieces(&self, writer: &mut Writer, key: &str, value: &[u8]) -> Result<usize, EtcdStoreError> {
        self.transact(writer, &[Operation::delete_all(&pieces_prefix(key))])?;
        let pieces = value.chunks(self.limits.piece_octets);
        let count = pieces.len();
        for (number, piece) in pieces.enumerate() {
            self.transact(writer, &[Operation::put(&piece_key(key, number), piece)])?;
        }
        Ok(count)
    }

    /// A long value. `count`: the number of its pieces, in decimal.
    fn pieces(&self, key: &str, count: &[u8]) -> Result<Vec<u8>, EtcdStoreError> {
        let count: Option<usize> = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
        let count = count.ok_or_else(|| damaged(key, "expected the number of its pieces"))?;
        let mut value = Vec::new();
        for number in 0..count {
            let own = piece_key(key, number);
            let found = self.gateway.range(&own, None, 1)?;
            let piece = found.kvs.first().filter(|piece| piece.key == own);
            let piece = piece.ok_or_else(|| damaged(key, format!("piece {number} of {count} is missing")))?;
            value.extend(&piece.value);
        }
        Ok(value)
    }

    fn value(&self, key: &str, stored: &[u8]) -> Result<Vec<u8>, EtcdStoreError> {
        match stored.split_first() {
            Some((b'v', value)) => Ok(value.to_vec()),
            Some((b'p', count)) => self.pieces(key, count),
            Some(_) | None => Err(damaged(key, "neither a value nor the number of its pieces")),
        }
    }
}

impl<G: Gateway> Etcd<G> {
    /// At most `most` rows whose key has the prefix and is greater than `after`, ordered by key.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, EtcdStoreError> {
        // While the rows of a journal are written, they are neither those before nor those after it.
        let _writer = self.lock_recovered()?;
        let first = row(prefix);
        let end = end_of(&first);
        let behind = |key: &[u8]| [key, &[0]].concat();
        let mut from =
            after.filter(|after| *after >= prefix).map_or_else(|| first.clone(), |after| behind(&row(after)));
        let mut rows = Vec::new();
        while rows.len() < most && from < end {
            let page = self.gateway.range(&from, Some(&end), PAGE.min(most - rows.len()))?;
            for found in &page.kvs {
                from = later(&from, behind(&found.key))?;
                let key = behind_prefix(ROW, &found.key)?.to_owned();
                let value = self.value(&key, &found.value)?;
                rows.push((key, value));
            }
            if !page.more || page.kvs.is_empty() {
                break;
            }
        }
        Ok(rows)
    }

    /// Commits changes: all of them are durable when this returns, or none is made.
    ///
    /// # Errors
    ///
    /// If they are not made, or it is not known whether they are.
    pub fn commit(&self, writes: &[&Write]) -> Result<(), EtcdStoreError> {
        let mut writer = self.lock_recovered()?;
        // etcd accepts a key once in a transaction: the last change of a row counts.
        let changes: Changes = writes
            .iter()
            .map(|write| match write {
                Write::Put { key, value } => (key.clone(), Some(value.clone())),
                Write::Delete { key } => (key.clone(), None),
            })
            .collect();
        let octets: usize = changes.iter().map(|(key, value)| size(key, value.as_ref())).sum();
        let operations: usize = changes.keys().map(|key| 1 + usize::from(writer.in_pieces.contains(key))).sum();
        if operations <= self.limits.operations && octets <= self.limits.piece_octets {
            return self.write_rows(&mut writer, &changes);
        }
        let journal = serde_json::to_vec(&to_journal(&changes)).map_err(|error| damaged("journal", error))?;
        let pieces = self.put_pieces(&mut writer, JOURNAL_PIECES, &journal)?;
        self.transact(&mut writer, &[Operation::put(JOURNAL, pieces.to_string().as_bytes())])?;
        // From here on it is durable, and any leader can complete it.
        writer.is_incomplete = true;
        if self.write_rows(&mut writer, &changes).is_ok() && self.end_journal(&mut writer).is_ok() {
            writer.is_incomplete = false;
        }
        Ok(())
    }

    /// Reopens the store after a failure, with all committed writes.
    ///
    /// # Errors
    ///
    /// If it cannot be used any more.
    pub fn reopen(&self) -> Result<(), EtcdStoreError> {
        self.recover(&mut self.lock())
    }
}

impl<G: fmt::Debug> fmt::Debug for Etcd<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd")
            .field("gateway", &self.gateway)
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}

/// Operations that write a short value, or delete the row.
fn small(writer: &Writer, key: &str, value: Option<&[u8]>) -> Vec<Operation> {
    let own = match value {
        Some(value) => Operation::put(&row(key), &[b"v", value].concat()),
        None => Operation::delete(&row(key)),
    };
    let pieces = writer.in_pieces.contains(key).then(|| Operation::delete_all(&pieces_prefix(key)));
    [own].into_iter().chain(pieces).collect()
}

fn size(key: &str, value: Option<&Vec<u8>>) -> usize {
    // etcd's message has some more octets for each row.
    key.len() + value.map_or(0, Vec::len) + 64
}

fn row(key: &str) -> Vec<u8> {
    [ROW.as_bytes(), key.as_bytes()].concat()
}

fn pieces_prefix(key: &str) -> Vec<u8> {
    [PIECE.as_bytes(), key.as_bytes(), &[0]].concat()
}

fn piece_key(key: &str, number: usize) -> Vec<u8> {
    [&pieces_prefix(key)[..], format!("{number:08}").as_bytes()].concat()
}

fn to_journal(changes: &Changes) -> Vec<(&String, Option<String>)> {
    changes.iter().map(|(key, value)| (key, value.as_ref().map(to_base64))).collect()
}

fn of_journal(changes: Vec<(String, Option<String>)>) -> Result<Changes, EtcdStoreError> {
    let change = |(key, value): (String, Option<String>)| {
        let value = value.map(|value| of_base64(&value)).transpose();
        Ok((key, value.map_err(|error| damaged("journal", error))?))
    };
    changes.into_iter().map(change).collect()
}

fn to_base64(octets: &Vec<u8>) -> String {
    STANDARD.encode(octets)
}

fn of_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    STANDARD.decode(text)
}

/// Where the next range begins, which is behind the first key of this one: if etcd answered with another key, reading
/// would not end.
fn later(from: &[u8], next: Vec<u8>) -> Result<Vec<u8>, EtcdStoreError> {
    if next.as_slice() > from {
        Ok(next)
    } else {
        Err(damaged(&String::from_utf8_lossy(from), "etcd answered with a key before the range"))
    }
}

/// What is behind the prefix of a range in a key of it.
fn behind_prefix<'k>(prefix: &str, key: &'k [u8]) -> Result<&'k str, EtcdStoreError> {
    let text = key.strip_prefix(prefix.as_bytes()).and_then(|behind| std::str::from_utf8(behind).ok());
    text.ok_or_else(|| {
        let reason = format!("etcd answered with it in the range of {prefix}");
        damaged(&String::from_utf8_lossy(key), reason)
    })
}

fn damaged(key: &str, reason: impl fmt::Display) -> EtcdStoreError {
    RowError::Damaged { key: key.to_owned(), reason: reason.to_string() }.into()
}
