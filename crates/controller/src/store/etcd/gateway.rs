//! etcd's own gateway: its API of version 3 as JSON over HTTP, keys and values in base64, numbers as text.

use crate::config::EtcdTrust;
use crate::store::StoreError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// Time limit for an answer of a server. A majority that elects needs about a second.
const PATIENCE: Duration = Duration::from_secs(2);
const CONNECT_PATIENCE: Duration = Duration::from_millis(700);

/// The longest answer that is read, octets.
const MOST_OCTETS: u64 = 256 << 20;

/// Servers of one etcd.
#[derive(Debug)]
pub(super) struct Gateway {
    agent: Agent,
    servers: Vec<String>,
    /// The one that answered last.
    current: AtomicUsize,
}

/// Reason for a failed request to etcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// No server answered: whether it was done is not known.
    #[error("no server of etcd answers: {0}")]
    Unanswered(String),
    /// It was refused, and not done.
    #[error("etcd refuses: {0}")]
    Refused(String),
}

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        StoreError::System(error.to_string())
    }
}

/// Header of every answer.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    /// The store's revision.
    #[serde(deserialize_with = "number")]
    pub(super) revision: i64,
}

/// A key with its value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "octets")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "octets")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: i64,
    /// The lease that it goes with.
    #[serde(deserialize_with = "number")]
    pub(super) lease: i64,
}

/// Keys of a range.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Range {
    pub(super) kvs: Vec<KeyValue>,
    /// There are more behind the limit.
    pub(super) more: bool,
}

/// Result of a transaction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    pub(super) header: Header,
    pub(super) succeeded: bool,
    responses: Vec<Response>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    response_range: Range,
}

impl Outcome {
    /// The first key that the transaction's question at this place has found.
    pub(super) fn found(&self, place: usize) -> Option<&KeyValue> {
        self.responses.get(place)?.response_range.kvs.first()
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

/// CA bundle of the controller for etcd, and its client certificate.
fn tls(trust: &EtcdTrust) -> Result<TlsConfig, StoreError> {
    let mut config = TlsConfig::builder();
    if let Some(file) = &trust.ca {
        config = config.root_certs(RootCerts::from(certificates(file)?));
    }
    if let Some(own) = &trust.own {
        let key = PrivateKey::from_pem(&read(&own.key)?).map_err(|error| unusable(&own.key, error))?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&certificates(&own.certificate)?, key)));
    }
    Ok(config.build())
}

/// The certificates in a PEM file; at least one.
fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, StoreError> {
    let mut found = Vec::new();
    for item in parse_pem(&read(file)?) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| unusable(file, error))? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(unusable(file, "has no certificate in PEM")) } else { Ok(found) }
}

fn read(file: &Path) -> Result<Vec<u8>, StoreError> {
    std::fs::read(file).map_err(|error| unusable(file, error))
}

fn unusable(file: &Path, reason: impl Display) -> StoreError {
    StoreError::System(format!("{}: {reason}", file.display()))
}

impl Gateway {
    /// Servers by their URLs, with commas between them.
    pub(super) fn new(servers: &str, trust: &EtcdTrust) -> Result<Self, StoreError> {
        let servers: Vec<String> = servers.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        let is_url = |url: &String| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', ' ']))
        };
        if let Some(wrong) = servers.iter().find(|url| !is_url(url)) {
            let problem = format!("{wrong:?} is no URL of an etcd: expected such as http://[::1]:2379");
            return Err(StoreError::System(problem));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_PATIENCE))
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .tls_config(tls(trust)?)
            .build();
        Ok(Gateway { agent: config.into(), servers, current: AtomicUsize::new(0) })
    }

    /// Keys from one to before another, or the one alone.
    pub(super) fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Range, CallError> {
        let end = end.map(|end| STANDARD.encode(end)).unwrap_or_default();
        self.call("kv/range", &json!({"key": STANDARD.encode(key), "range_end": end, "limit": limit.to_string()}))
    }

    /// Does all, or if a comparison fails, answers questions instead.
    pub(super) fn transact(&self, compare: &[Value], all: &[Value], otherwise: &[Value]) -> Result<Outcome, CallError> {
        self.call("kv/txn", &json!({"compare": compare, "success": all, "failure": otherwise}))
    }

    /// A lease for so long, seconds.
    pub(super) fn grant(&self, ttl_s: u64) -> Result<i64, CallError> {
        self.call("lease/grant", &json!({"TTL": ttl_s.to_string()})).map(|granted: Granted| granted.id)
    }

    /// Renews a lease; `false` when it is over.
    pub(super) fn keep_alive(&self, lease: i64) -> Result<bool, CallError> {
        let answer: Result<KeptAlive, _> = self.call("lease/keepalive", &json!({"ID": lease.to_string()}));
        answer.map(|answer| answer.result.ttl > 0)
    }

    /// Ends a lease, and with it what goes with it.
    pub(super) fn revoke(&self, lease: i64) -> Result<(), CallError> {
        self.call("lease/revoke", &json!({"ID": lease.to_string()})).map(|_: Value| ())
    }

    /// Sends the request to one server after the other, from the last one that answered, until one answers.
    fn call<T: serde::de::DeserializeOwned>(&self, path: &str, question: &Value) -> Result<T, CallError> {
        let first = self.current.load(Ordering::Relaxed);
        let mut reasons = Vec::new();
        for place in (0..self.servers.len()).map(|more| (first + more) % self.servers.len()) {
            match self.ask(&self.servers[place], path, question) {
                Err(CallError::Unanswered(reason)) => reasons.push(reason),
                answer => {
                    self.current.store(place, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(CallError::Unanswered(reasons.join("; ")))
    }

    fn ask<T: serde::de::DeserializeOwned>(&self, server: &str, path: &str, question: &Value) -> Result<T, CallError> {
        let unanswered = |reason: String| CallError::Unanswered(format!("{server}: {reason}"));
        let request = self.agent.post(format!("{server}/v3/{path}")).header("content-type", "application/json");
        let mut response = request.send(question.to_string()).map_err(|error| unanswered(error.to_string()))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(MOST_OCTETS).read_to_string();
        let text = text.map_err(|error| unanswered(error.to_string()))?;
        if status.is_server_error() {
            return Err(unanswered(format!("status {}: {}", status.as_u16(), said(&text))));
        }
        if !status.is_success() {
            return Err(CallError::Refused(format!("{server}: status {}: {}", status.as_u16(), said(&text))));
        }
        serde_json::from_str(&text).map_err(|error| unanswered(format!("no answer of an etcd: {error}")))
    }
}

/// Message of an error response.
fn said(text: &str) -> String {
    let value: Option<Value> = serde_json::Deserializer::from_str(text).into_iter().next().and_then(Result::ok);
    let error = value.as_ref().and_then(|value| value.get("error")).and_then(Value::as_str);
    error.unwrap_or("no reason").to_owned()
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn octets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    of_base64(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Octets as text.
pub(super) fn to_base64(octets: &Vec<u8>) -> String {
    STANDARD.encode(octets)
}

/// Octets that were written as text.
pub(super) fn of_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    STANDARD.decode(text)
}

/// Parts of transactions.
pub(super) mod part {
    use super::{Engine, STANDARD, Value, json};

    /// That a key was made at this revision; 0: that it is not there.
    pub(in super::super) fn is_made_at(key: &[u8], revision: i64) -> Value {
        let (key, revision) = (STANDARD.encode(key), revision.to_string());
        json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": revision})
    }

    /// That a key was changed last at this revision; 0: that it is not there.
    pub(in super::super) fn is_changed_at(key: &[u8], revision: i64) -> Value {
        let (key, revision) = (STANDARD.encode(key), revision.to_string());
        json!({"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision})
    }

    pub(in super::super) fn put(key: &[u8], value: &[u8]) -> Value {
        json!({"request_put": {"key": STANDARD.encode(key), "value": STANDARD.encode(value)}})
    }

    /// Puts a key that goes with a lease.
    pub(in super::super) fn put_with(key: &[u8], value: &[u8], lease: i64) -> Value {
        let (key, value) = (STANDARD.encode(key), STANDARD.encode(value));
        json!({"request_put": {"key": key, "value": value, "lease": lease.to_string()}})
    }

    pub(in super::super) fn get(key: &[u8]) -> Value {
        json!({"request_range": {"key": STANDARD.encode(key)}})
    }

    pub(in super::super) fn delete(key: &[u8]) -> Value {
        json!({"request_delete_range": {"key": STANDARD.encode(key)}})
    }

    /// Takes away all keys that begin so.
    pub(in super::super) fn delete_all(beginning: &[u8]) -> Value {
        let end = STANDARD.encode(super::end_of(beginning));
        json!({"request_delete_range": {"key": STANDARD.encode(beginning), "range_end": end}})
    }
}

/// The first key behind all that begin so; what they begin with ends in an octet below 255.
pub(super) fn end_of(beginning: &[u8]) -> Vec<u8> {
    let mut end = beginning.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}
