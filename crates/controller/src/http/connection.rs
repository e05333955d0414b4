//! Connections: accepted within the limits, served, and ended when the client does not read.

use super::connection_limiter::{Admission, ConnectionLimiter, Permit};
use super::refusal_log::{RefusalLog, Refused};
use crate::access::Access;
use crate::reload::TlsSender;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use srdma_api::ProblemType;
use srdma_controller_core::Refusal;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

/// Timeouts of a TLS handshake and of the head of a request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time of a response, such as a stream of events, after a token was withdrawn.
const LAST_RESPONSE_TIME: Duration = Duration::from_secs(5);

/// Timeout of a client that does not read: no octet can be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits of the head of a request, and of what is buffered of a response, octets: the least that hyper supports.
const BUFFER_OCTETS: usize = 8 << 10;
const MAX_HEADERS: usize = 64;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Connections {
    /// Replaced when this controller becomes the leader.
    pub(super) router: watch::Receiver<Router>,
    pub(super) access: Arc<Access>,
    /// For new connections; replaced by a reload.
    pub(super) tls: TlsSender,
    pub(super) limiter: Arc<ConnectionLimiter>,
    pub(super) refusals: Arc<RefusalLog>,
}

impl Connections {
    /// Accepts connections; does not return.
    pub(super) async fn accept(self, listener: TcpListener) {
        loop {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                // Usually too many open files, until connections end.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            match self.limiter.acquire(from.ip()) {
                Ok(Admission { permit, closed }) => {
                    if let Some(place) = closed {
                        self.note(place);
                    }
                    let (router, tls) = (self.router.borrow().clone(), self.tls.borrow().clone());
                    tokio::spawn(serve(stream, router, tls, Arc::new(permit), self.access.withdrawals()));
                }
                Err(refusal) => {
                    self.note(from.ip());
                    reject(stream, self.tls.borrow().is_some(), &refusal);
                }
            }
        }
    }

    fn note(&self, from: IpAddr) {
        let kind = ProblemType::TooManyConnections;
        self.refusals.note(Refused { kind, from: Some(from), token: None, method: "", path: "" });
    }
}

/// Serves a connection until it ends, or is to be closed for another one.
async fn serve(
    stream: TcpStream,
    router: Router,
    tls: Option<TlsAcceptor>,
    permit: Arc<Permit>,
    withdrawals: watch::Receiver<()>,
) {
    // Responses are short and latency counts.
    let _ = stream.set_nodelay(true);
    let stream = Timed { stream, stalled: None };
    let served = async {
        match tls {
            None => serve_http(stream, router, &permit, withdrawals).await,
            Some(tls) => {
                let limit =
                    |connection: &mut rustls::ServerConnection| connection.set_buffer_limit(Some(BUFFER_OCTETS));
                // A client without TLS is disconnected.
                if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept_with(stream, limit)).await {
                    serve_http(stream, router, &permit, withdrawals).await;
                }
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = permit.closed() => {}
    }
}

/// When a token is withdrawn, a connection that has shown one ends after the current response. One that has shown none
/// goes on: its request may be on the way, and is authenticated by the new tokens.
async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    permit: &Arc<Permit>,
    mut withdrawals: watch::Receiver<()>,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Arc::clone(permit));
        router.call(request)
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(BUFFER_OCTETS);
    // A broken connection affects its client only.
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let is_withdrawn = async { while withdrawals.changed().await.is_ok() && permit.token().is_none() {} };
    tokio::select! {
        _ = connection.as_mut() => return,
        () = is_withdrawn => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(LAST_RESPONSE_TIME, connection).await;
}

/// Reports that the limit is reached, without waiting for the client.
fn reject(stream: TcpStream, is_tls: bool, refusal: &Refusal) {
    if is_tls {
        return;
    }
    let body = serde_json::to_string(&refusal.problem()).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         connection: close\r\nretry-after: 1\r\n\r\n{body}",
        body.len()
    );
    // It fits into the empty buffer of a new connection.
    let _ = stream.try_write(text.as_bytes());
    tokio::spawn(async move {
        let mut stream = stream;
        let _ = stream.shutdown().await;
    });
}

/// A stream whose writes fail when none has made progress for [`WRITE_TIMEOUT`].
struct Timed<S> {
    stream: S,
    /// Set while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Timed<S> {
    fn timed(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIMEOUT)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, octets);
        self.timed(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, octets);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// D101: progress begins the time anew; its lack ends the connection.
    #[test]
    fn writes_without_progress_fail() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut timed = Timed { stream: (), stalled: None };
            let mut context = Context::from_waker(Waker::noop());
            assert!(timed.timed(&mut context, Poll::Pending).is_pending() && timed.stalled.is_some());
            assert!(matches!(timed.timed(&mut context, Poll::Ready(Ok(1))), Poll::Ready(Ok(1))));
            assert!(timed.stalled.is_none());
            timed.stalled = Some(Box::pin(tokio::time::sleep(Duration::ZERO)));
            let failed = std::future::poll_fn(|context| timed.timed(context, Poll::Pending)).await.unwrap_err();
            assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        });
    }
}
