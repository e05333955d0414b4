//! etcd's own gateway: its API of version 3 as JSON over HTTP, keys and values in base64, numbers as text.

use crate::config::EtcdTrust;
use crate::store::StoreError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use srdma_etcd::{Comparison, EtcdError, Gateway, Operation, Outcome, Property, Range, end_of, response};
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// Timeout of a response. An election of etcd takes about a second.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(700);

/// Reads the text of a response.
type Read<T> = fn(&str) -> serde_json::Result<T>;

/// The longest response, octets.
const MAX_OCTETS: u64 = 256 << 20;

/// Servers of one etcd.
#[derive(Debug)]
pub(super) struct HttpGateway {
    agent: Agent,
    servers: Vec<String>,
    /// Index of the server that responded last.
    current: AtomicUsize,
    started: Instant,
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

impl HttpGateway {
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
        Ok(HttpGateway { agent: config.into(), servers, current: AtomicUsize::new(0), started: Instant::now() })
    }

    /// Sends the request to one server after the other, prefix with the one that responded last, until one responds.
    fn call<T>(&self, path: &str, body: &Value, read: Read<T>) -> Result<T, EtcdError> {
        let first = self.current.load(Ordering::Relaxed);
        let mut reasons = Vec::new();
        for index in (0..self.servers.len()).map(|offset| (first + offset) % self.servers.len()) {
            match self.send(&self.servers[index], path, body, read) {
                Err(EtcdError::NoResponse(reason)) => reasons.push(reason),
                response => {
                    self.current.store(index, Ordering::Relaxed);
                    return response;
                }
            }
        }
        Err(EtcdError::NoResponse(reasons.join("; ")))
    }

    fn send<T>(&self, server: &str, path: &str, body: &Value, read: Read<T>) -> Result<T, EtcdError> {
        let no_response = |reason: String| EtcdError::NoResponse(format!("{server}: {reason}"));
        let request = self.agent.post(format!("{server}/v3/{path}")).header("content-type", "application/json");
        let mut response = request.send(body.to_string()).map_err(|error| no_response(error.to_string()))?;
        let status = response.status();
        let text = response.body_mut().with_config().limit(MAX_OCTETS).read_to_string();
        let text = text.map_err(|error| no_response(error.to_string()))?;
        if status.is_server_error() {
            return Err(no_response(format!("status {}: {}", status.as_u16(), response::error(&text))));
        }
        if !status.is_success() {
            return Err(EtcdError::Rejected(format!(
                "{server}: status {}: {}",
                status.as_u16(),
                response::error(&text)
            )));
        }
        read(&text).map_err(|error| no_response(format!("unexpected response for etcd: {error}")))
    }
}

impl Gateway for HttpGateway {
    fn range(&self, key: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Range, EtcdError> {
        let end = end.map(|end| STANDARD.encode(end)).unwrap_or_default();
        let body = json!({"key": STANDARD.encode(key), "range_end": end, "limit": limit.to_string()});
        self.call("kv/range", &body, response::range)
    }

    fn transact(
        &self,
        compare: &[Comparison],
        success: &[Operation],
        failure: &[Operation],
    ) -> Result<Outcome, EtcdError> {
        let compare: Vec<Value> = compare.iter().map(comparison).collect();
        let [success, failure] =
            [success, failure].map(|operations| operations.iter().map(operation).collect::<Vec<_>>());
        let body = json!({"compare": compare, "success": success, "failure": failure});
        self.call("kv/txn", &body, response::outcome)
    }

    fn grant(&self, ttl_s: u64) -> Result<i64, EtcdError> {
        self.call("lease/grant", &json!({"TTL": ttl_s.to_string()}), response::lease)
    }

    fn keep_alive(&self, lease: i64) -> Result<bool, EtcdError> {
        self.call("lease/keepalive", &json!({"ID": lease.to_string()}), response::is_alive)
    }

    fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        self.call("lease/revoke", &json!({"ID": lease.to_string()}), response::empty)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn wait(&self, time: Duration) {
        sleep(time);
    }
}

fn comparison(Comparison { key, property, revision }: &Comparison) -> Value {
    let (key, revision) = (STANDARD.encode(key), revision.to_string());
    match property {
        Property::Created => {
            json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": revision})
        }
        Property::Changed => json!({"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision}),
    }
}

fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Put { key, value, lease } => {
            let (key, value) = (STANDARD.encode(key), STANDARD.encode(value));
            json!({"request_put": {"key": key, "value": value, "lease": lease.to_string()}})
        }
        Operation::Get { key } => json!({"request_range": {"key": STANDARD.encode(key)}}),
        Operation::Delete { key } => json!({"request_delete_range": {"key": STANDARD.encode(key)}}),
        Operation::DeleteAll { prefix } => {
            let end = STANDARD.encode(end_of(prefix));
            json!({"request_delete_range": {"key": STANDARD.encode(prefix), "range_end": end}})
        }
    }
}
