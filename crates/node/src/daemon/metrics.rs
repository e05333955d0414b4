//! Metrics of a running node, in the text format of OpenMetrics over HTTP. `docs/operating.md` lists them.

mod families;

use super::{Latest, Snapshot};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderMap};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Octets that the head of a request may have.
const HEAD_LIMIT_OCTETS: usize = 16 << 10;
/// Time limit of a connection, from its beginning to the last octet.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at a time; the oldest one is closed for a new one.
const CONNECTIONS: usize = 16;
/// Time without accepting connections after the process ran out of descriptors or memory.
const REST: Duration = Duration::from_millis(100);

/// The metrics of a snapshot.
pub fn metrics_text(snapshot: &Arc<Snapshot>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(families::Families(Arc::clone(snapshot))));
    let mut out = String::new();
    text::encode(&mut out, &registry).expect("a string takes any text");
    out
}

/// Serves `/metrics`.
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
}

impl MetricsServer {
    /// Listens at an address of the network namespace that the thread is in.
    ///
    /// # Errors
    ///
    /// If the address is not the machine's, is in use, or must not be used; the error names it.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        match TcpListener::bind(address).await {
            Ok(listener) => Ok(MetricsServer { listener }),
            Err(error) => {
                let text = format!("cannot serve metrics at {address}: {error}; `metrics` in [daemon] says where");
                Err(io::Error::new(error.kind(), text))
            }
        }
    }

    /// Address of the listening socket.
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers each request from the newest snapshot; ends when the future is dropped.
    pub async fn serve(self, latest: watch::Receiver<Latest>) -> Infallible {
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        let is_local = self.listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    open.retain(|connection| !connection.is_finished());
                    // A collector sends its request at once: connections without one do not keep it waiting.
                    if open.len() >= CONNECTIONS
                        && let Some(oldest) = open.pop_front()
                    {
                        oldest.abort();
                    }
                    let latest = latest.clone();
                    let connection = tokio::spawn(async move {
                        // A client that is too slow, or gone, affects only itself.
                        let _ = tokio::time::timeout(PATIENCE, answer(stream, latest, is_local)).await;
                    });
                    open.push_back(connection.abort_handle());
                }
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
    }
}

async fn answer(stream: TcpStream, latest: watch::Receiver<Latest>, is_local: bool) -> Result<(), hyper::Error> {
    let service = service_fn(move |request: Request<Incoming>| {
        let latest = latest.borrow().clone();
        async move { Ok::<_, Infallible>(response(&request, &latest, is_local).await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEAD_LIMIT_OCTETS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn response(request: &Request<Incoming>, latest: &Latest, is_local: bool) -> Response<Full<Bytes>> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let (status, header, body) = match request.uri().path() {
        _ if is_local && !names_loopback(request.headers()) => {
            let text = "at a loopback address only localhost and loopback addresses are accepted as Host\n";
            (StatusCode::MISDIRECTED_REQUEST, (CONTENT_TYPE, "text/plain"), text.to_owned())
        }
        "/metrics" if is_read => {
            let content = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, (CONTENT_TYPE, content), metrics_text(&latest.whole().await))
        }
        "/metrics" => (StatusCode::METHOD_NOT_ALLOWED, (ALLOW, "GET, HEAD"), String::new()),
        _ => (StatusCode::NOT_FOUND, (CONTENT_TYPE, "text/plain"), "only /metrics is here\n".to_owned()),
    };
    let response = Response::builder().status(status).header(header.0, header.1).body(Full::new(Bytes::from(body)));
    response.expect("status and headers are constants")
}

/// Whether `Host` is a name of the loopback: a page in a browser on this machine whose own name resolves to a loopback
/// address would read the metrics otherwise (D100).
fn names_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Some(authority) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
