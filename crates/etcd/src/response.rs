//! Responses of etcd's own gateway: JSON with numbers as text, and keys and values in base64.

use crate::gateway::{KeyValue, Outcome, Range};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The response to a range request.
///
/// # Errors
///
/// It is none; so for the other responses.
pub fn range(text: &str) -> serde_json::Result<Range> {
    serde_json::from_str::<FoundRange>(text).map(Range::from)
}

/// The response to a transaction.
///
/// # Errors
///
/// See [`range`].
pub fn outcome(text: &str) -> serde_json::Result<Outcome> {
    serde_json::from_str::<Transacted>(text).map(Outcome::from)
}

/// The id of a lease that was granted.
///
/// # Errors
///
/// See [`range`].
pub fn lease(text: &str) -> serde_json::Result<i64> {
    serde_json::from_str::<Granted>(text).map(|granted| granted.id)
}

/// Whether a lease that was to be renewed has not expired.
///
/// # Errors
///
/// See [`range`].
pub fn is_alive(text: &str) -> serde_json::Result<bool> {
    serde_json::from_str::<KeptAlive>(text).map(|kept| kept.result.ttl > 0)
}

/// A response that says no more than that the request was executed.
///
/// # Errors
///
/// See [`range`].
pub fn empty(text: &str) -> serde_json::Result<()> {
    serde_json::from_str::<Value>(text).map(drop)
}

/// Message of an error response.
pub fn error(text: &str) -> String {
    let value: Option<Value> = serde_json::Deserializer::from_str(text).into_iter().next().and_then(Result::ok);
    let error = value.as_ref().and_then(|value| value.get("error")).and_then(Value::as_str);
    error.unwrap_or("no reason").to_owned()
}

/// Header of every response.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    /// The store's revision.
    #[serde(deserialize_with = "number")]
    revision: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FoundKey {
    #[serde(deserialize_with = "octets")]
    key: Vec<u8>,
    #[serde(deserialize_with = "octets")]
    value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    mod_revision: i64,
    /// The lease that deletes it on expiry.
    #[serde(deserialize_with = "number")]
    lease: i64,
}

/// Response to a range request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FoundRange {
    kvs: Vec<FoundKey>,
    /// More keys follow behind the limit.
    more: bool,
}

/// Result of a transaction.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Transacted {
    header: Header,
    succeeded: bool,
    responses: Vec<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    response_range: FoundRange,
}

impl From<FoundKey> for KeyValue {
    fn from(found: FoundKey) -> Self {
        let FoundKey { key, value, mod_revision, lease } = found;
        KeyValue { key, value, mod_revision, lease }
    }
}

impl From<FoundRange> for Range {
    fn from(found: FoundRange) -> Self {
        Range { kvs: found.kvs.into_iter().map(KeyValue::from).collect(), more: found.more }
    }
}

impl From<Transacted> for Outcome {
    fn from(transacted: Transacted) -> Self {
        let Transacted { header: Header { revision }, succeeded, responses } = transacted;
        let found = responses.into_iter().map(|response| Range::from(response.response_range).kvs);
        Outcome { revision, succeeded, found: found.collect() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Granted {
    #[serde(rename = "ID", deserialize_with = "number")]
    id: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeptAlive {
    result: KeptAliveResult,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeptAliveResult {
    #[serde(rename = "TTL", deserialize_with = "number")]
    ttl: i64,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn octets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
