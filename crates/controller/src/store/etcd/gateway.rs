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

/// Timeout of a response. An election of etcd takes about a second.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(700);

/// The longest response, octets.
const MAX_OCTETS: u64 = 256 << 20;

/// Servers of one etcd.
#[derive(Debug)]
pub(super) struct Gateway {
    agent: Agent,
    servers: Vec<String>,
    /// Index of the server that responded last.
    current: AtomicUsize,
}

/// Reason for a failed request to etcd.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EtcdError {
    /// No server responded: the request may have taken effect.
    #[error("etcd does not respond: {0}")]
    NoResponse(String),
    /// The request was rejected and had no effect.
    #[error("etcd has rejected the request: {0}")]
    Rejected(String),
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        StoreError::System(error.to_string())
    }
}

/// Header of every response.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    /// The store's revision.
    #[serde(deserialize_with = "number")]
    pub(super) revision: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "octets")]
    pub(super) key: Vec<u8>,
    #[serde(deserialize_with = "octets")]
    pub(super) value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(super) mod_revision: i64,
    /// The lease that deletes it on expiry.
    #[serde(deserialize_with = "number")]
    pub(super) lease: i64,
}

/// Response to a range request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Range {
    pub(super) kvs: Vec<KeyValue>,
    /// More keys follow behind the limit.
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
    /// The first key that the transaction's range request with this index has found.
    pub(super) fn found(&self, index: usize) -> Option<&KeyValue> {
        self.responses.get(index)?.response_range.kvs.first()
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
    if let Some(client) = &trust.client {
        let key = PrivateKey::from_pem(&read(&client.key)?).map_err(|error| unusable(&client.key, error))?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&certificates(&client.certificate)?, key)));
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
            let problem = format!("{wrong:?}: expected the URL of an etcd server, such as http://[::1]:2379");
            return Err(StoreError::System(problem));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(RESPONSE_TIMEOUT))
            .max_redirects(0)
            .tls_config(tls(trust)?)
            .build();
        Ok(Gateway { agent: config.into(), servers, current: AtomicUsize::new(0) })
    }

    /// Keys from `key` to before `end`, or `key` alone.
    pub(super) fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Range, EtcdError> {
        let end = end.map(|end| STANDARD.encode(end)).unwrap_or_default();
        self.call("kv/range", &json!({"key": STANDARD.encode(key), "range_end": end, "limit": limit.to_string()}))
    }

    /// Runs `success`, or if a comparison fails, `failure`.
    pub(super) fn transact(
        &self,
        compare: &[Value],
        success: &[Value],
        failure: &[Value],
    ) -> Result<Outcome, EtcdError> {
        self.call("kv/txn", &json!({"compare": compare, "success": success, "failure": failure}))
    }

    /// Grants a lease of `ttl_s` seconds.
    pub(super) fn grant(&self, ttl_s: u64) -> Result<i64, EtcdError> {
        self.call("lease/grant", &json!({"TTL": ttl_s.to_string()})).map(|granted: Granted| granted.id)
    }

    /// Renews a lease; `false` when it has expired.
    pub(super) fn keep_alive(&self, lease: i64) -> Result<bool, EtcdError> {
        let response: Result<KeptAlive, _> = self.call("lease/keepalive", &json!({"ID": lease.to_string()}));
        response.map(|response| response.result.ttl > 0)
    }

    /// Revokes a lease and deletes its keys.
    pub(super) fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        self.call("lease/revoke", &json!({"ID": lease.to_string()})).map(|_: Value| ())
    }

    /// Sends the request to one server after the other, prefix with the one that responded last, until one responds.
    fn call<T: serde::de::DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, EtcdError> {
        let first = self.current.load(Ordering::Relaxed);
        let mut reasons = Vec::new();
        for index in (0..self.servers.len()).map(|offset| (first + offset) % self.servers.len()) {
            match self.send(&self.servers[index], path, body) {
                Err(EtcdError::NoResponse(reason)) => reasons.push(reason),
                response => {
                    self.current.store(index, Ordering::Relaxed);
                    return response;
                }
            }
        }
        Err(EtcdError::NoResponse(reasons.join("; ")))
    }

    fn send<T: serde::de::DeserializeOwned>(&self, server: &str, path: &str, body: &Value) -> Result<T, EtcdError> {
        let no_response = |reason: String| EtcdError::NoResponse(format!("{server}: {reason}"));
        let request = self.agent.post(format!("{server}/v3/{path}")).header("content-type", "application/json");
        let mut response = request.send(body.to_string()).map_err(|error| no_response(error.to_string()))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(MAX_OCTETS).read_to_string();
        let text = text.map_err(|error| no_response(error.to_string()))?;
        if status.is_server_error() {
            return Err(no_response(format!("status {}: {}", status.as_u16(), error_message(&text))));
        }
        if !status.is_success() {
            return Err(EtcdError::Rejected(format!("{server}: status {}: {}", status.as_u16(), error_message(&text))));
        }
        serde_json::from_str(&text).map_err(|error| no_response(format!("unexpected response for etcd: {error}")))
    }
}

/// Message of an error response.
fn error_message(text: &str) -> String {
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

pub(super) fn to_base64(octets: &Vec<u8>) -> String {
    STANDARD.encode(octets)
}

pub(super) fn of_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    STANDARD.decode(text)
}

/// Comparisons and operations of transactions.
pub(super) mod operation {
    use super::{Engine, STANDARD, Value, json};

    /// Compares the revision of a key's creation; 0: the key does not exist.
    pub(in super::super) fn created_at(key: &[u8], revision: i64) -> Value {
        let (key, revision) = (STANDARD.encode(key), revision.to_string());
        json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": revision})
    }

    /// Compares the revision of a key's last change; 0: the key does not exist.
    pub(in super::super) fn changed_at(key: &[u8], revision: i64) -> Value {
        let (key, revision) = (STANDARD.encode(key), revision.to_string());
        json!({"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision})
    }

    pub(in super::super) fn put(key: &[u8], value: &[u8]) -> Value {
        json!({"request_put": {"key": STANDARD.encode(key), "value": STANDARD.encode(value)}})
    }

    /// Puts a key that a lease deletes on expiry.
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

    /// Deletes all keys with this prefix.
    pub(in super::super) fn delete_all(prefix: &[u8]) -> Value {
        let end = STANDARD.encode(super::end_of(prefix));
        json!({"request_delete_range": {"key": STANDARD.encode(prefix), "range_end": end}})
    }
}

/// The first key behind all with this prefix, whose last octet must be below 255.
pub(super) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}
