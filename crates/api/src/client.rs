//! Speaks to a controller: one request after the other, each waited for.

use crate::problem::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, AsSendBody, Body};

/// A controller's address, or those of several that stand in for one another, and the right to speak to it. Clones
/// share connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    urls: Arc<[String]>,
    /// The one that answered last.
    current: Arc<AtomicUsize>,
    token: Option<String>,
    patience: Duration,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<T> {
    /// The answer.
    pub value: T,
    /// The version that `ETag` names.
    pub version: Option<u64>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is none of a controller.
    #[error("{url}: expected the URL of a controller, such as http://[::1]:8470 or https://controller.example:8470")]
    Url {
        /// What was given.
        url: String,
    },
    /// Certificates cannot be read.
    #[error("{file}: {reason}")]
    Authority {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// The controller was not reached, or the connection broke. Whether a write was made is not known: the same
    /// idempotency key may be sent again.
    #[error("controller {url}: {reason}")]
    Unreachable {
        /// Its URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// The controller refused.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// Something answered that is no controller, or another version of one.
    #[error("{url} does not answer as a controller does: {reason}")]
    NoController {
        /// The URL.
        url: String,
        /// Why.
        reason: String,
    },
}

impl ClientError {
    /// The controller's refusal, if it is one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            ClientError::Refused(problem) => Some(problem),
            ClientError::Url { .. }
            | ClientError::Authority { .. }
            | ClientError::Unreachable { .. }
            | ClientError::NoController { .. } => None,
        }
    }
}

/// How long an answer may take beyond what a request asks the controller to wait.
const PATIENCE: Duration = Duration::from_secs(70);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

impl Client {
    /// A client of the controller at this URL, or at one of several with commas between them: whichever leads is asked.
    /// `authority`: a file of certificates in PEM that the controller's is
    /// held against; without it those that the system trusts.
    ///
    /// # Errors
    ///
    /// When the URL is none, or the file has no certificate.
    pub fn new(url: &str, token: Option<String>, authority: Option<&Path>) -> Result<Self, ClientError> {
        let urls: Arc<[String]> = url.split(',').map(|url| url.trim().trim_end_matches('/').to_owned()).collect();
        let is_wrong = |url: &&String| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_none_or(|rest| rest.is_empty() || rest.contains(['/', '?', '#', ' ']))
        };
        if let Some(url) = urls.iter().find(is_wrong) {
            return Err(ClientError::Url { url: url.clone() });
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_PATIENCE))
            .timeout_global(Some(PATIENCE))
            .max_redirects(0);
        if let Some(file) = authority {
            let roots = RootCerts::from(certificates(file)?);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Client { agent: config.build().into(), urls, current: Arc::default(), token, patience: PATIENCE })
    }

    /// The same client, which waits so long for each answer.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Client { patience, ..self }
    }

    /// Where the controller is that answered last.
    pub fn url(&self) -> &str {
        &self.urls[self.current.load(Ordering::Relaxed) % self.urls.len()]
    }

    /// Asks for something.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Reply<T>, ClientError> {
        self.send("GET", path, &[], None)
    }

    /// Asks for a change. The same key, sent again, gets the same answer and changes nothing more.
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

    /// Puts something where the path says; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<Reply<T>, ClientError> {
        self.send("PUT", path, &[], Some(self.written(body)?))
    }

    /// Takes something away; may be repeated.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<Reply<T>, ClientError> {
        self.send("DELETE", path, &[], None)
    }

    /// The octets of an answer, as they come.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn stream(&self, path: &str) -> Result<impl std::io::Read + use<>, ClientError> {
        self.open(path, &[])
    }

    /// The stream of events: those behind the one with the id `last`, or those to come. Where it is not had, the next
    /// call asks the next controller.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn events(&self, last: Option<&str>) -> Result<impl std::io::Read + use<>, ClientError> {
        let current = self.current.load(Ordering::Relaxed);
        let opened = self.open("/v1/events", last.map(|last| ("last-event-id", last)).as_slice());
        let goes_on = match &opened {
            Err(ClientError::Refused(problem)) => problem.name() == "not-the-leader",
            Err(ClientError::Unreachable { .. }) => true,
            Ok(_) | Err(_) => false,
        };
        if goes_on {
            self.go_on(current);
        }
        opened
    }

    /// The octets of an answer that begins in time, however long it lasts.
    fn open(&self, path: &str, headers: &[(&str, &str)]) -> Result<impl std::io::Read + use<>, ClientError> {
        let request = self.request("GET", path, headers);
        let request = request.body(()).map_err(|error| self.unreachable(error))?;
        let request = self.agent.configure_request(request).timeout_global(None);
        let request = request.timeout_recv_response(Some(self.patience)).build();
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

    /// Asks one controller after the other until one answers that leads.
    fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Reply<T>, ClientError> {
        // What may have been done and is no harmless repetition is for the caller to send again.
        let is_harmless = method != "POST" || !headers.is_empty();
        for _ in 1..self.urls.len() {
            let current = self.current.load(Ordering::Relaxed);
            let asked = self.send_once(method, path, headers, body.clone());
            let goes_on = match &asked {
                Err(Unanswered { error: ClientError::Refused(problem), .. }) => problem.name() == "not-the-leader",
                Err(Unanswered { error: ClientError::Unreachable { .. }, is_sent }) => is_harmless || !is_sent,
                Ok(_) | Err(_) => false,
            };
            if asked.as_ref().is_err_and(|unanswered| goes_on || unanswered.is_unreachable()) {
                self.go_on(current);
            }
            if !goes_on {
                return asked.map_err(|unanswered| unanswered.error);
            }
        }
        self.send_once(method, path, headers, body).map_err(|unanswered| unanswered.error)
    }

    /// Asks the next controller from now on. Another call may have gone on to it already.
    fn go_on(&self, from: usize) {
        let _ = self.current.compare_exchange(from, from.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    fn send_once<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Reply<T>, Unanswered> {
        let request = self.request(method, path, headers);
        let sent = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body);
                request.map_err(ureq::Error::from).and_then(|request| self.run(request))
            }
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| self.run(request)),
        };
        let mut response =
            sent.map_err(|error| Unanswered { is_sent: is_sent(&error), error: self.unreachable(error) })?;
        let answered = |error| Unanswered { error, is_sent: true };
        let status = response.status();
        let version = response.headers().get("etag").and_then(|tag| tag.to_str().ok()?.trim_matches('"').parse().ok());
        let text = response.body_mut().with_config().limit(MOST_OCTETS).read_to_string();
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
        let request = self.agent.configure_request(request).timeout_global(Some(self.patience)).build();
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

/// Why a request has no answer, and whether it may have been read.
struct Unanswered {
    error: ClientError,
    is_sent: bool,
}

impl Unanswered {
    fn is_unreachable(&self) -> bool {
        matches!(self.error, ClientError::Unreachable { .. })
    }
}

/// Whether somebody may have read what was to be sent.
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

/// The longest answer that is read, octets.
const MOST_OCTETS: u64 = 256 << 20;

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
