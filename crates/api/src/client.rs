//! The client of a controller: blocking, with failover between several controllers.

mod requests;

use crate::problem::{Problem, ProblemType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, AsSendBody, Body};

/// A controller, or several for high availability, with a bearer token. Clones share connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    urls: Arc<[String]>,
    /// Index of the controller that answered last.
    current: Arc<AtomicUsize>,
    token: Option<String>,
    timeout: Duration,
}

/// A response with its version.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<T> {
    pub value: T,
    /// The version in `ETag`.
    pub version: Option<u64>,
}

/// Why a request has failed.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not the URL of a controller.
    #[error("{url}: expected the URL of a controller, such as http://[::1]:8470 or https://controller.example:8470")]
    Url {
        /// The invalid URL.
        url: String,
    },
    /// The token would be sent without encryption, beyond this machine.
    #[error("{url}: a token is sent by https:// only, or to a loopback address")]
    Unencrypted {
        /// The URL.
        url: String,
    },
    /// A CA bundle or token file cannot be read.
    #[error("{file}: {reason}")]
    Authority { file: String, reason: String },
    /// The controller was not reached, or the connection broke: the request may have taken effect. It may be repeated
    /// with the same idempotency key.
    #[error("controller {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// The controller refused.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The response is not one of a controller of this version.
    #[error("{url}: unexpected response for a controller: {reason}")]
    NoController { url: String, reason: String },
}

impl ClientError {
    /// The controller's refusal, if it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            ClientError::Refused(problem) => Some(problem),
            ClientError::Url { .. }
            | ClientError::Unencrypted { .. }
            | ClientError::Authority { .. }
            | ClientError::Unreachable { .. }
            | ClientError::NoController { .. } => None,
        }
    }

    /// Whether the controller has reported a problem of this type.
    pub fn is(&self, problem_type: ProblemType) -> bool {
        self.problem().and_then(Problem::problem_type) == Some(problem_type)
    }
}

fn is_encrypted(url: &str) -> bool {
    url.starts_with("https://")
}

/// Whether a host, as in a URL, is `localhost` or a loopback address.
pub fn is_loopback_host(host: &str) -> bool {
    let v6 = || host.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || v6().is_some_and(|address| address.is_loopback())
}

fn is_of_this_machine(url: &str) -> bool {
    url.parse::<ureq::http::Uri>().is_ok_and(|uri| uri.host().is_some_and(is_loopback_host))
}

/// Timeout of a response, longer than the longest wait of a request.
const TIMEOUT: Duration = Duration::from_secs(70);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl Client {
    /// A client of the controllers at these URLs, separated by commas; requests go to the leader. `authority`: a CA
    /// bundle (PEM) that verifies the controller's certificate [default: the system's].
    ///
    /// # Errors
    ///
    /// A URL is not one of a controller, there is a token for one without encryption that is not of this machine, or
    /// the file has no certificate.
    pub fn new(url: &str, token: Option<String>, authority: Option<&Path>) -> Result<Self, ClientError> {
        let urls: Arc<[String]> = url.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        let is_wrong = |url: &&String| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_none_or(|rest| rest.is_empty() || rest.contains(['/', '?', '#', ' ']))
        };
        if let Some(url) = urls.iter().find(is_wrong) {
            return Err(ClientError::Url { url: url.clone() });
        }
        if token.is_some()
            && let Some(url) = urls.iter().find(|url| !is_encrypted(url) && !is_of_this_machine(url))
        {
            return Err(ClientError::Unencrypted { url: url.clone() });
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0);
        if let Some(file) = authority {
            let roots = RootCerts::from(certificates(file)?);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Client { agent: config.build().into(), urls, current: Arc::default(), token, timeout: TIMEOUT })
    }

    /// The same client with another timeout for each response.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Client { timeout, ..self }
    }

    /// The URL of the controller that answered last.
    pub fn url(&self) -> &str {
        &self.urls[self.current.load(Ordering::Relaxed) % self.urls.len()]
    }

    /// GET of a path.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Reply<T>, ClientError> {
        self.send("GET", path, &[], None)
    }

    /// POST to a path. The same idempotency key, sent again, receives the same response and changes nothing more.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> Result<Reply<T>, ClientError> {
        let key = idempotency_key.map(|key| ("idempotency-key", key));
        self.send("POST", path, key.as_slice(), Some(self.written(body)?))
    }

    /// PUT to a path; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<Reply<T>, ClientError> {
        self.send("PUT", path, &[], Some(self.written(body)?))
    }

    /// DELETE of a path; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<Reply<T>, ClientError> {
        self.send("DELETE", path, &[], None)
    }

    /// A response body as it arrives; the timeout is for its beginning.
    fn open(&self, path: &str, headers: &[(&str, &str)]) -> Result<impl std::io::Read + use<>, ClientError> {
        let request = self.request("GET", path, headers);
        let request = request.body(()).map_err(|error| self.unreachable(error))?;
        let request = self.agent.configure_request(request).timeout_global(None);
        let request = request.timeout_recv_response(Some(self.timeout)).build();
        let mut response = self.agent.run(request).map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            return Ok(response.into_body().into_reader());
        }
        let text = response.body_mut().read_to_string().map_err(|error| self.unreachable(error))?;
        Err(self.refusal(response.status().as_u16(), &text))
    }

    fn written(&self, body: &impl Serialize) -> Result<String, ClientError> {
        serde_json::to_string(body).map_err(|error| self.unreachable(error))
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> ureq::http::request::Builder {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Sends a request to one controller after the other until the leader responds.
    fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Reply<T>, ClientError> {
        // A request that may have taken effect and is not idempotent is repeated by the caller alone.
        let is_idempotent = method != "POST" || !headers.is_empty();
        for _ in 1..self.urls.len() {
            let current = self.current.load(Ordering::Relaxed);
            let sent = self.send_once(method, path, headers, body.clone());
            let fails_over = match &sent {
                Err(Failed { error: ClientError::Refused(problem), .. }) => {
                    problem.problem_type() == Some(ProblemType::NotLeader)
                }
                Err(Failed { error: ClientError::Unreachable { .. }, is_sent }) => is_idempotent || !is_sent,
                Ok(_) | Err(_) => false,
            };
            if sent.as_ref().is_err_and(|failed| fails_over || failed.is_unreachable()) {
                self.fail_over(current);
            }
            if !fails_over {
                return sent.map_err(|failed| failed.error);
            }
        }
        self.send_once(method, path, headers, body).map_err(|failed| failed.error)
    }

    /// Fails over to the next controller, unless another call has done so.
    fn fail_over(&self, from: usize) {
        let _ = self.current.compare_exchange(from, from.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    fn send_once<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Reply<T>, Failed> {
        let request = self.request(method, path, headers);
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body);
                request.map_err(ureq::Error::from).and_then(|request| self.run(request))
            }
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| self.run(request)),
        };
        let mut response = sent.map_err(|error| Failed { is_sent: is_sent(&error), error: self.unreachable(error) })?;
        let answered = |error| Failed { error, is_sent: true };
        let status = response.status();
        let version = response.headers().get("etag").and_then(|tag| tag.to_str().ok()?.trim_matches('"').parse().ok());
        let text = response.body_mut().with_config().limit(MAX_OCTETS).read_to_string();
        let text = text.map_err(|error| answered(self.unreachable(error)))?;
        if !status.is_success() {
            return Err(answered(self.refusal(status.as_u16(), &text)));
        }
        let text = if text.is_empty() { "null" } else { &text };
        match serde_json::from_str(text) {
            Ok(value) => Ok(Reply { value, version }),
            Err(error) => {
                Err(answered(ClientError::NoController { url: self.url().to_owned(), reason: error.to_string() }))
            }
        }
    }

    fn run(&self, request: Request<impl AsSendBody>) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request).timeout_global(Some(self.timeout)).build();
        self.agent.run(request)
    }

    fn refusal(&self, status: u16, text: &str) -> ClientError {
        match serde_json::from_str(text) {
            Ok(problem) => ClientError::Refused(Box::new(problem)),
            Err(_) => ClientError::NoController { url: self.url().to_owned(), reason: format!("status {status}") },
        }
    }

    fn unreachable(&self, error: impl fmt::Display) -> ClientError {
        ClientError::Unreachable { url: self.url().to_owned(), reason: error.to_string() }
    }
}

/// A failed request, and whether the controller may have received it.
struct Failed {
    error: ClientError,
    is_sent: bool,
}

impl Failed {
    fn is_unreachable(&self) -> bool {
        matches!(self.error, ClientError::Unreachable { .. })
    }
}

/// Whether the controller may have received the request.
fn is_sent(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => false,
        ureq::Error::Timeout(timeout) => !matches!(timeout, ureq::Timeout::Resolve | ureq::Timeout::Connect),
        ureq::Error::Io(error) => error.kind() != std::io::ErrorKind::ConnectionRefused,
        _ => true,
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("urls", &self.urls).finish_non_exhaustive()
    }
}

/// The longest response, octets.
const MAX_OCTETS: u64 = 256 << 20;

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let refused = |reason: String| ClientError::Authority { file: file.display().to_string(), reason };
    let text = std::fs::read(file).map_err(|error| refused(error.to_string()))?;
    let certificates: Vec<_> = ureq::tls::parse_pem(&text)
        .filter_map(|item| match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(error) => Some(Err(refused(error.to_string()))),
        })
        .collect::<Result<_, _>>()?;
    if certificates.is_empty() { Err(refused("has no certificate in PEM".to_owned())) } else { Ok(certificates) }
}
