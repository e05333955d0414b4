//! The store in etcd, for high availability: the leader writes, standbys wait.
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

mod gateway;
mod leadership;

pub use leadership::{Leadership, Standby};

use super::{Store, StoreError};
use gateway::{CallError, Gateway, Outcome, end_of, part};
use leadership::{Lease, Renewal};
use serde_json::Value;
use srdma_controller_core::{Row, RowError, Write};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LEADER: &[u8] = b"srdma/leader";
const BATCH: &[u8] = b"srdma/batch";
const JOURNAL: &[u8] = b"srdma/journal";
const ROW: &str = "srdma/row/";
const PIECE: &str = "srdma/piece/";
/// Prefix of the journal's pieces: no row has a key that begins so.
const JOURNAL_PIECES: &str = "\u{1}journal";

/// Most operations of a transaction beside that of `batch`. The default limit of etcd is 128.
const MOST_OPERATIONS: usize = 120;
/// Most octets of keys and values in a transaction. The default limit of etcd is 1.5 MiB.
const MOST_OCTETS: usize = 1_000_000;
/// Octets of a piece, and of a value that is not in pieces, at most.
const PIECE_OCTETS: usize = 700_000;
/// Rows that are read at a time.
const PAGE: usize = 500;
/// Time for which an unanswered transaction is sent again; longer than a lease, which is over then.
const PATIENCE: Duration = Duration::from_secs(8);
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The store of the controller that leads.
pub struct Etcd {
    gateway: Arc<Gateway>,
    /// The revision at which the leader's key was made, by which this leader is known.
    made_at: i64,
    lease: i64,
    writer: Mutex<Writer>,
    /// Ends the lease when this goes.
    _renewal: Renewal,
}

#[derive(Debug, Default)]
struct Writer {
    /// Number of transactions that this leader has made.
    transactions: u64,
    /// The revision at which `batch` was written last.
    batch_at: i64,
    /// Rows whose values are in pieces.
    in_pieces: BTreeSet<String>,
    /// A journal is durable, but not carried out.
    is_unfinished: bool,
}

/// New values of rows; `None`: the row is deleted.
type Changes = BTreeMap<String, Option<Vec<u8>>>;

impl Etcd {
    fn open(gateway: Arc<Gateway>, lease: &Lease, renewal: Renewal) -> Result<Self, StoreError> {
        let Lease { id, made_at, .. } = *lease;
        let etcd = Etcd { gateway, made_at, lease: id, writer: Mutex::default(), _renewal: renewal };
        etcd.take_up(&mut etcd.lock())?;
        Ok(etcd)
    }

    /// Lets another one lead at once. This one writes nothing from then on.
    pub fn leave(&self) {
        // Without it the lease would end by itself, only later.
        let _ = self.gateway.revoke(self.lease);
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic meanwhile has at most left out a note that `take_up` or the next comparison makes up for.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, once the journal that it may have left is carried out.
    fn finished(&self) -> Result<MutexGuard<'_, Writer>, StoreError> {
        let mut writer = self.lock();
        if writer.is_unfinished {
            self.take_up(&mut writer)?;
        }
        Ok(writer)
    }

    /// Finds what was written last, and ends what was begun.
    fn take_up(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let last = self.gateway.range(BATCH, None, 1)?;
        writer.batch_at = last.kvs.first().map_or(0, |last| last.mod_revision);
        // Later data would be too late.
        self.transact(writer, &[])?;
        writer.in_pieces = self.keys_in_pieces()?;
        let journal = self.gateway.range(JOURNAL, None, 1)?;
        if let Some(journal) = journal.kvs.first() {
            let changes = self.pieces(JOURNAL_PIECES, &journal.value)?;
            let changes = serde_json::from_slice::<Vec<(String, Option<String>)>>(&changes);
            let changes = changes.map_err(|error| damaged("journal", error))?;
            self.carry_out(writer, &of_journal(changes)?)?;
        }
        self.end_journal(writer)?;
        writer.is_unfinished = false;
        Ok(())
    }

    fn end_journal(&self, writer: &mut Writer) -> Result<(), StoreError> {
        self.transact(writer, &[part::delete(JOURNAL), part::delete_all(&piece_beginning(JOURNAL_PIECES))])
    }

    fn keys_in_pieces(&self) -> Result<BTreeSet<String>, StoreError> {
        let mut keys = BTreeSet::new();
        let (mut from, end) = (PIECE.as_bytes().to_vec(), end_of(PIECE.as_bytes()));
        // One piece at a time: the next question is for what lies behind all pieces of its row.
        while let Some(piece) = self.gateway.range(&from, Some(&end), 1)?.kvs.first() {
            let key = piece.key.strip_prefix(PIECE.as_bytes()).unwrap_or_default();
            let key = key.split(|octet| *octet == 0).next().unwrap_or_default();
            let key = String::from_utf8_lossy(key).into_owned();
            from = end_of(&piece_beginning(&key));
            keys.insert(key);
        }
        keys.remove(JOURNAL_PIECES);
        Ok(keys)
    }

    /// Commits all of this while this controller is the leader.
    fn transact(&self, writer: &mut Writer, operations: &[Value]) -> Result<(), StoreError> {
        writer.transactions += 1;
        let own = format!("{}/{}", self.made_at, writer.transactions);
        let compare = [part::is_made_at(LEADER, self.made_at), part::is_changed_at(BATCH, writer.batch_at)];
        let all: Vec<Value> = [part::put(BATCH, own.as_bytes())].iter().chain(operations).cloned().collect();
        let otherwise = [part::get(LEADER), part::get(BATCH)];
        let since = Instant::now();
        let outcome = loop {
            match self.gateway.transact(&compare, &all, &otherwise) {
                Err(CallError::Unanswered(_)) if since.elapsed() < PATIENCE => sleep(AGAIN_AFTER),
                outcome => break outcome?,
            }
        };
        match self.done_at(&outcome, own.as_bytes()) {
            Some(revision) => {
                writer.batch_at = revision;
                Ok(())
            }
            None => Err(StoreError::Deposed),
        }
    }

    /// The revision at which a transaction was made, now or when it was sent before.
    fn done_at(&self, outcome: &Outcome, own: &[u8]) -> Option<i64> {
        if outcome.succeeded {
            return Some(outcome.header.revision);
        }
        outcome.found(1).filter(|batch| batch.value == own).map(|batch| batch.mod_revision)
    }

    /// Writes rows by as many transactions as it takes; may be repeated.
    fn carry_out(&self, writer: &mut Writer, changes: &Changes) -> Result<(), StoreError> {
        let (mut operations, mut octets) = (Vec::new(), 0);
        for (key, value) in changes {
            let (own, size) = match value {
                Some(value) if value.len() > PIECE_OCTETS => {
                    let count = self.put_pieces(writer, key, value)?;
                    (vec![part::put(&row(key), format!("p{count}").as_bytes())], key.len())
                }
                Some(_) | None => (small(writer, key, value.as_deref()), size(key, value.as_ref())),
            };
            if operations.len() + own.len() > MOST_OPERATIONS || octets + size > MOST_OCTETS {
                self.transact(writer, &operations)?;
                (operations, octets) = (Vec::new(), 0);
            }
            operations.extend(own);
            octets += size;
        }
        self.transact(writer, &operations)?;
        for (key, value) in changes {
            match value {
                Some(value) if value.len() > PIECE_OCTETS => drop(writer.in_pieces.insert(key.clone())),
                Some(_) | None => drop(writer.in_pieces.remove(key)),
            }
        }
        Ok(())
    }

    /// Writes a long value beside the rows; returns how many pieces it has.
    fn put_pieces(&self, writer: &mut Writer, key: &str, value: &[u8]) -> Result<usize, StoreError> {
        self.transact(writer, &[part::delete_all(&piece_beginning(key))])?;
        let pieces = value.chunks(PIECE_OCTETS);
        let count = pieces.len();
        for (number, piece) in pieces.enumerate() {
            self.transact(writer, &[part::put(&piece_key(key, number), piece)])?;
        }
        Ok(count)
    }

    /// A long value. `count`: how many pieces it has, as digits.
    fn pieces(&self, key: &str, count: &[u8]) -> Result<Vec<u8>, StoreError> {
        let count: Option<usize> = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
        let count = count.ok_or_else(|| damaged(key, "expected the number of its pieces"))?;
        let mut value = Vec::new();
        for number in 0..count {
            let found = self.gateway.range(&piece_key(key, number), None, 1)?;
            let piece =
                found.kvs.first().ok_or_else(|| damaged(key, format!("piece {number} of {count} is missing")))?;
            value.extend(&piece.value);
        }
        Ok(value)
    }

    fn value(&self, key: &str, stored: &[u8]) -> Result<Vec<u8>, StoreError> {
        match stored.split_first() {
            Some((b'v', value)) => Ok(value.to_vec()),
            Some((b'p', count)) => self.pieces(key, count),
            Some(_) | None => Err(damaged(key, "neither a value nor the number of its pieces")),
        }
    }
}

impl Store for Etcd {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        // While a journal is carried out, rows are neither as before nor as after it.
        let _writer = self.finished()?;
        let beginning = row(prefix);
        let end = end_of(&beginning);
        let behind = |key: &[u8]| [key, &[0]].concat();
        let mut from =
            after.filter(|after| *after >= prefix).map_or_else(|| beginning.clone(), |after| behind(&row(after)));
        let mut rows = Vec::new();
        while rows.len() < most && from < end {
            let page = self.gateway.range(&from, Some(&end), PAGE.min(most - rows.len()))?;
            for found in &page.kvs {
                let key = found.key.strip_prefix(ROW.as_bytes()).unwrap_or_default();
                let key = String::from_utf8_lossy(key).into_owned();
                let value = self.value(&key, &found.value)?;
                rows.push((key, value));
            }
            match page.kvs.last().filter(|_| page.more) {
                Some(last) => from = behind(&last.key),
                None => break,
            }
        }
        Ok(rows)
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        let mut writer = self.finished()?;
        // etcd takes a key once in a transaction: the last change of a row is what becomes of it.
        let changes: Changes = writes
            .iter()
            .map(|write| match write {
                Write::Put { key, value } => (key.clone(), Some(value.clone())),
                Write::Delete { key } => (key.clone(), None),
            })
            .collect();
        let octets: usize = changes.iter().map(|(key, value)| size(key, value.as_ref())).sum();
        let operations: usize = changes.keys().map(|key| 1 + usize::from(writer.in_pieces.contains(key))).sum();
        if operations <= MOST_OPERATIONS && octets <= PIECE_OCTETS {
            return self.carry_out(&mut writer, &changes);
        }
        let journal = serde_json::to_vec(&to_journal(&changes)).map_err(|error| damaged("journal", error))?;
        let pieces = self.put_pieces(&mut writer, JOURNAL_PIECES, &journal)?;
        self.transact(&mut writer, &[part::put(JOURNAL, pieces.to_string().as_bytes())])?;
        // From here on it is durable, and any leader can complete it.
        writer.is_unfinished = true;
        if self.carry_out(&mut writer, &changes).is_ok() && self.end_journal(&mut writer).is_ok() {
            writer.is_unfinished = false;
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.take_up(&mut self.lock())
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("gateway", &self.gateway).field("made_at", &self.made_at).finish_non_exhaustive()
    }
}

/// Operations that write a short value, or delete the row.
fn small(writer: &Writer, key: &str, value: Option<&[u8]>) -> Vec<Value> {
    let own = match value {
        Some(value) => part::put(&row(key), &[b"v", value].concat()),
        None => part::delete(&row(key)),
    };
    let pieces = writer.in_pieces.contains(key).then(|| part::delete_all(&piece_beginning(key)));
    [own].into_iter().chain(pieces).collect()
}

fn size(key: &str, value: Option<&Vec<u8>>) -> usize {
    // etcd's own message has some octets more for each.
    key.len() + value.map_or(0, Vec::len) + 64
}

fn row(key: &str) -> Vec<u8> {
    [ROW.as_bytes(), key.as_bytes()].concat()
}

fn piece_beginning(key: &str) -> Vec<u8> {
    [PIECE.as_bytes(), key.as_bytes(), &[0]].concat()
}

fn piece_key(key: &str, number: usize) -> Vec<u8> {
    [&piece_beginning(key)[..], format!("{number:08}").as_bytes()].concat()
}

fn to_journal(changes: &Changes) -> Vec<(&String, Option<String>)> {
    changes.iter().map(|(key, value)| (key, value.as_ref().map(gateway::to_base64))).collect()
}

fn of_journal(changes: Vec<(String, Option<String>)>) -> Result<Changes, StoreError> {
    let change = |(key, value): (String, Option<String>)| {
        let value = value.map(|value| gateway::of_base64(&value)).transpose();
        Ok((key, value.map_err(|error| damaged("journal", error))?))
    };
    changes.into_iter().map(change).collect()
}

fn damaged(key: &str, reason: impl fmt::Display) -> StoreError {
    RowError::Damaged { key: key.to_owned(), reason: reason.to_string() }.into()
}
