//! The rows of the store: keys and values.
//!
//! | key | value |
//! |---|---|
//! | `format` | the version of the rows |
//! | `site` | the controller's counters |
//! | `group/ID` | a group |
//! | `member/ID/ADDRESS` | a receiver that has joined or is joining |
//! | `record/ID` | the record that the nodes commit |
//! | `node/LOOPBACK` | a node |
//! | `foreign/STORE/ID` | a group that nodes have from another store, or from this one before it was restored |
//! | `response/LENGTH/TOKEN/KEY` | a response that an idempotency key receives again; LENGTH: octets of TOKEN |
//! | `answer/TOKEN/KEY` | the same, of earlier programs: replaced or deleted at the start (D102) |
//! | `audit/NUMBER` | an entry of the audit log |
//! | `job/...`, `job-chunk/...`, `drained` | placed jobs |

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use srdma_api::{AuditEntry, NewGroup, NewReceiver, NodeIdentity, Registration, SourceService, SourceState};
use srdma_group::Record;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// The version of the rows. A program that changes them increments it and migrates older ones.
pub const FORMAT: u32 = 6;

/// The key of the row that holds the format.
pub const FORMAT_KEY: &str = "format";
pub(crate) const SITE_KEY: &str = "site";

/// A key with its value, JSON.
pub type Row = (String, Vec<u8>);

/// One change of a store.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Inserts or replaces a row.
    Put { key: String, value: Vec<u8> },
    /// Deletes a row.
    Delete { key: String },
}

impl Write {
    /// Key of the row.
    pub fn key(&self) -> &str {
        match self {
            Write::Put { key, .. } | Write::Delete { key } => key,
        }
    }
}

/// Reason for which the rows of a store cannot be used.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The rows have a format that this program does not support.
    #[error("the store has format {found}, this program supports formats up to {known}: use a newer program")]
    Newer {
        /// The store's format.
        found: u32,
        /// The newest format that is supported.
        known: u32,
    },
    /// A row cannot be parsed, or contradicts another one.
    #[error("the store's row {key} is damaged: {reason}")]
    Damaged { key: String, reason: String },
}

/// The controller's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteRow {
    /// The store's identity, a random number of its creation.
    pub(crate) store: u64,
    /// Number of times that a controller has started with it.
    pub(crate) starts: u32,
    /// The number of the last group.
    pub(crate) last_group: u32,
    /// The number of the last entry of the audit log.
    pub(crate) last_audit: u64,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRow {
    pub(crate) id: u32,
    pub(crate) tenant: String,
    /// Incremented with each write.
    pub(crate) version: u64,
    /// The request; name and Proxy Address are always set.
    pub(crate) request: NewGroup,
    /// It is being closed.
    pub(crate) is_closing: bool,
    /// A commit was requested; one that was interrupted is repeated.
    pub(crate) is_committed: bool,
    /// The state of its source.
    pub(crate) source: SourceState,
    /// The last epoch that a node may have.
    pub(crate) last_epoch: u32,
    /// The nodes that are to be renewed (D136).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) unrenewed: BTreeSet<Ipv6Addr>,
    /// Reason for which the last change was aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// Where the source serves the version that it published last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<SourceService>,
    /// The groups that it resumes: the one before it last (D193).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ancestors: Vec<u32>,
}

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberRow {
    pub(crate) receiver: NewReceiver,
    /// It is being removed.
    pub(crate) is_leaving: bool,
    /// It joins when it is ready (D187).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_two_steps: bool,
    /// It is ready to receive from this PSN on, the first one of a group that was not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_at_psn: Option<u32>,
}

/// The record that the nodes commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordRow {
    pub(crate) record: Record,
    /// Whether all nodes have committed it.
    pub(crate) is_settled: bool,
    /// The former record, until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Box<Record>>,
    /// The explanation of the tree.
    #[serde(default)]
    pub(crate) explanation: Vec<String>,
    /// Number of links that unicast would use, when the record was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) links_of_unicast: Option<u32>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeRow {
    /// Its last registration, without groups.
    pub(crate) registration: Registration,
    pub(crate) is_drained: bool,
    /// Its name, if that of its registration is a former one; absent in rows of earlier programs, as are the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// What of its registration may be used [default: all].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<NodeIdentity>,
    #[serde(default)]
    pub(crate) is_removing: bool,
    /// Its connection is lost: it may have the entries of an earlier epoch (D97, D121).
    #[serde(default)]
    pub(crate) is_lost: bool,
}

/// A group that nodes have and the store does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForeignRow {
    /// Identity of the store that it is from.
    pub(crate) store: u64,
    pub(crate) group: u32,
    pub(crate) proxy: Ipv6Addr,
    pub(crate) designated_qpn: u32,
    /// Its removal was requested.
    #[serde(default)]
    pub(crate) is_removing: bool,
    /// The node that has introduced it; absent in rows of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reporter: Option<Ipv6Addr>,
}

/// A response that the same idempotency key receives again.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRow {
    /// Digest of the request, hexadecimal: the same key with another request is refused.
    pub request: String,
    pub status: u16,
    /// JSON.
    pub body: String,
    /// Time at which it was first sent, seconds since 1970.
    pub unix_s: u64,
}

pub(crate) fn group_key(id: u32) -> String {
    format!("group/{id:010}")
}

pub(crate) fn member_key(id: u32, address: Ipv6Addr) -> String {
    format!("member/{id:010}/{address}")
}

pub(crate) fn record_key(id: u32) -> String {
    format!("record/{id:010}")
}

pub(crate) fn foreign_key(store: u64, group: u32) -> String {
    format!("foreign/{store:016x}/{group:010}")
}

pub(crate) fn node_key(loopback: Ipv6Addr) -> String {
    format!("node/{loopback}")
}

/// Both names may contain `/`: the length of the first keeps two pairs apart (D102).
pub(crate) fn answer_key(who: &str, key: &str) -> String {
    format!("response/{}/{who}/{key}", who.len())
}

/// The key that replaces one of an earlier program; `None` if it can be read in two ways.
pub(crate) fn replaced_answer_key(key: &str) -> Option<String> {
    let (who, key) = key.strip_prefix("answer/")?.split_once('/')?;
    (!key.contains('/')).then(|| answer_key(who, key))
}

/// Prefix of the keys of the audit log.
pub const AUDIT_PREFIX: &str = "audit/";

/// Prefixes of the keys of all other rows: those that a controller reads when it starts.
pub const STATE_PREFIXES: [&str; 12] = [
    "answer/",
    "drained",
    "foreign/",
    "format",
    "group/",
    "job-chunk/",
    "job/",
    "member/",
    "node/",
    "record/",
    "response/",
    "site",
];

/// The key of an entry of the audit log.
pub fn audit_key(number: u64) -> String {
    format!("{AUDIT_PREFIX}{number:020}")
}

/// Reads an entry of the audit log.
///
/// # Errors
///
/// The row is damaged.
pub fn audit_entry(row: &Row) -> Result<AuditEntry, RowError> {
    get(row)
}

/// The format of a store: `None` for one without rows. `row`: that of [`FORMAT_KEY`].
///
/// # Errors
///
/// The format is missing, damaged, or newer than this program.
pub fn format_of(row: Option<&Row>, is_empty: bool) -> Result<Option<u32>, RowError> {
    match row {
        Some(row) => match get::<u32>(row)? {
            0 => Err(damaged(FORMAT_KEY, "format 0 does not exist".to_owned())),
            found if found > FORMAT => Err(RowError::Newer { found, known: FORMAT }),
            found => Ok(Some(found)),
        },
        None if is_empty => Ok(None),
        None => Err(damaged(FORMAT_KEY, "it is missing: not a store of a controller".to_owned())),
    }
}

pub(crate) fn put(key: String, value: &impl Serialize) -> Write {
    // Only maps with keys other than strings cannot be written, and no row has one.
    let value = serde_json::to_vec(value).unwrap_or_default();
    Write::Put { key, value }
}

/// The value of a row.
pub(crate) fn get<T: DeserializeOwned>((key, value): &Row) -> Result<T, RowError> {
    serde_json::from_slice(value).map_err(|error| damaged(key, error.to_string()))
}

/// Checks that a counter, whose type ends at `end`, can be incremented for as long as a controller runs (D299); an
/// error as text.
pub(crate) fn check_counter(name: &str, found: u64, end: u64) -> Result<(), String> {
    let most = end / 2;
    if found <= most { Ok(()) } else { Err(format!("{name} {found}: expected {most} at most")) }
}

/// Checks that a row has the key under which it would be written: a row with another one would neither be replaced nor
/// deleted.
pub(crate) fn check_key(key: &str, own: &str) -> Result<(), RowError> {
    if key == own { Ok(()) } else { Err(damaged(key, format!("expected the key {own}"))) }
}

pub(crate) fn damaged(key: &str, reason: String) -> RowError {
    RowError::Damaged { key: key.to_owned(), reason }
}

/// The number after the first `/` of a key.
pub(crate) fn id_of(key: &str) -> Result<u32, RowError> {
    let number = key.split('/').nth(1).and_then(|id| id.parse().ok());
    number.ok_or_else(|| damaged(key, "expected the number of a group".to_owned()))
}

/// The address at the end of a key.
pub(crate) fn address_of(key: &str) -> Result<Ipv6Addr, RowError> {
    let address = key.rsplit('/').next().and_then(|address| address.parse().ok());
    address.ok_or_else(|| damaged(key, "expected an address".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D102
    #[test]
    fn no_two_pairs_of_token_and_key_have_one_row() {
        assert_ne!(answer_key("x", "y/k"), answer_key("x/y", "k"));
        assert_ne!(answer_key("1/x", "k"), answer_key("1", "x/k"));
        assert_eq!(replaced_answer_key("answer/local/k1"), Some(answer_key("local", "k1")));
        assert_eq!(replaced_answer_key("answer/x/y/k"), None, "of token x or of token x/y");
    }
}
