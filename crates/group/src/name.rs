//! Names of records and of nodes' entries, by which a controller and its nodes agree on what is in effect.
//!
//! A number of an epoch alone does not name a record: a store that was lost or restored may number another record
//! alike. Digests are made by the controller alone; a node returns those that it was given.

use crate::group::Record;
use crate::group_entry::GroupEntry;
use crate::tree::NodeIndex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The first 128 bits of the SHA-256 of a document; 32 hexadecimal digits in text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u128);

impl Digest {
    /// The digest of a record.
    pub fn of_record(record: &Record) -> Self {
        Digest::of(record)
    }

    /// The digest of what an entry means to its node: without its epoch, positions in the record's tree, and the join
    /// marks in the headend's lists. Equal digests need no new entry.
    pub fn of_entry(entry: &GroupEntry) -> Self {
        Digest::of(&essence(entry))
    }

    fn of(document: &impl Serialize) -> Self {
        let mut hash = Hash(Sha256::new());
        // A hash accepts all octets, and the documents have no keys but strings.
        let _ = serde_json::to_writer(&mut hash, document);
        let octets: [u8; 32] = hash.0.finalize().into();
        let [first @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = octets;
        Digest(u128::from_be_bytes(first))
    }
}

/// A hash as a writer.
struct Hash(Sha256);

impl std::io::Write for Hash {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.update(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn essence(entry: &GroupEntry) -> GroupEntry {
    let mut entry = GroupEntry { epoch: 0, ..entry.clone() };
    for receiver in &mut entry.receivers {
        receiver.edge = NodeIndex(0);
    }
    for receiver in entry.headend.iter_mut().flat_map(|headend| &mut headend.lists).flat_map(|list| &mut list.receivers)
    {
        receiver.edge = NodeIndex(0);
        receiver.joined = None;
    }
    entry
}

impl Display for Digest {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 hexadecimal digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let digits = is_hexadecimal.then_some(text).ok_or(DigestError)?;
        u128::from_str_radix(digits, 16).map(Digest).map_err(|_| DigestError)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Name of a node's entry within its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryName {
    /// The epoch of the record.
    pub epoch: u32,
    /// Digest of the record.
    pub record: Digest,
    /// Digest of the entry, by [`Digest::of_entry`].
    pub entry: Digest,
}

impl Display for EntryName {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Digest(record) = self.record;
        write!(f, "epoch {} of record {:08x}", self.epoch, record >> 96)
    }
}

/// The entries of a group that a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// In effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed: Option<EntryName>,
    /// Prepared and not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<EntryName>,
}

impl Held {
    /// Whether the node has neither.
    pub fn is_empty(&self) -> bool {
        self.committed.is_none() && self.prepared.is_none()
    }

    /// The newest epoch; 0 without any.
    pub fn newest_epoch(&self) -> u32 {
        self.names().map(|name| name.epoch).max().unwrap_or(0)
    }

    /// The names of both.
    pub fn names(&self) -> impl Iterator<Item = EntryName> {
        self.committed.into_iter().chain(self.prepared)
    }
}
