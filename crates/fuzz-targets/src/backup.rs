//! Backups of a controller's store: what is restored is in the next backup.

use serde_json::json;
use sha2::{Digest, Sha256};
use srdma_controller::{Row, Store, StoreError, Write, restore, write_backup};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rows in memory.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        let is_of =
            |(key, _): &(&String, &Vec<u8>)| key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after);
        Ok(self.lock().iter().filter(is_of).take(most).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        for write in writes {
            match write {
                Write::Put { key, value } => drop(self.lock().insert(key.clone(), value.clone())),
                Write::Delete { key } => drop(self.lock().remove(key)),
            }
        }
        Ok(())
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Restores the input; and, as no fuzzer finds a digest, the input with a last line that is right.
pub fn backup(input: &[u8]) {
    restored(input);
    let mut lines = input.split_inclusive(|octet| *octet == b'\n');
    let Some(head) = lines.next() else { return };
    let rows: Vec<&[u8]> = lines.collect();
    let mut digest = Sha256::new();
    rows.iter().for_each(|row| digest.update(row));
    let tail = json!({ "rows": rows.len(), "sha256": hex::encode(digest.finalize()) }).to_string();
    restored(&[&[head], rows.as_slice(), &[tail.as_bytes()]].concat().concat());
}

/// A backup that is accepted is the same after another round.
fn restored(octets: &[u8]) {
    let store = Memory::default();
    if let Err(error) = restore(&store, &mut &octets[..]) {
        assert!(!error.to_string().is_empty() && store.lock().is_empty());
        return;
    }
    let mut text = String::new();
    let mut take = |line: &str| {
        text.push_str(line);
        Ok(())
    };
    // The rows of a store say what their format is; a backup of others cannot be written.
    if write_backup(&store, &mut take).is_err() {
        return;
    }
    let again = Memory::default();
    restore(&again, &mut text.as_bytes()).expect("a backup that was written");
    assert_eq!(*again.lock(), *store.lock());
}
