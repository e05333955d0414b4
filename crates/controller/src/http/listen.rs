//! Listening sockets, connections, and TLS.

use super::connection_limiter::ConnectionLimiter;
use super::{App, router, standby};
use crate::access::Access;
use crate::config::{Config, Tls};
use crate::service::{Exit, Service};
use crate::store::{Etcd, Leadership, Standby, Store, StoreError};
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use srdma_controller_core::{Jobs, Refusal};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

/// Timeouts of a TLS handshake and of the head of a request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections that the kernel queues.
const BACKLOG: u32 = 4096;

/// Reason for which a controller does not start.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0}")]
    Config(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("{file}: {reason}")]
    Tls { file: String, reason: String },
}

/// A controller that listens.
pub struct Server {
    listeners: Vec<TcpListener>,
    /// Replaced when this controller becomes the leader.
    router: watch::Receiver<Router>,
    tls: Option<TlsAcceptor>,
    limiter: Arc<ConnectionLimiter>,
    work: Work,
}

/// Work beside requests; it ends only when it fails.
type Work = Pin<Box<dyn Future<Output = ServeError> + Send>>;

impl Server {
    /// Restores the controller from its store and listens. `rebuilds`: recovers groups from nodes. `exit`: see
    /// [`run`](crate::run).
    ///
    /// # Errors
    ///
    /// See [`ServeError`].
    pub async fn start(
        config: Config,
        store: Arc<dyn Store>,
        rebuilds: Option<u64>,
        exit: Exit,
    ) -> Result<Self, ServeError> {
        let listening = Listening::open(&config)?;
        let fabric = config.jobs().map_err(ServeError::Config)?;
        let (service, router) = start_service(config, fabric, store, rebuilds, exit)?;
        let (_, router) = watch::channel(router);
        Ok(listening.server(router, Box::pin(timers(service))))
    }

    /// Listens as a standby, and becomes the leader when there is none. It stops when it is no longer the leader.
    ///
    /// # Errors
    ///
    /// See [`ServeError`].
    pub async fn stand_by(
        config: Config,
        standby: Standby,
        rebuilds: Option<u64>,
        exit: Exit,
    ) -> Result<Self, ServeError> {
        let listening = Listening::open(&config)?;
        let fabric = config.jobs().map_err(ServeError::Config)?;
        let starting = Leadership::Unknown { reason: "this controller has just started".to_owned() };
        let (leader_sender, leader) = watch::channel(starting);
        let (change, router) = watch::channel(standby::router(leader));
        let work = async move {
            let (depose, deposed) = oneshot::channel();
            let store = match lead(standby, leader_sender, depose).await {
                Ok(store) => Arc::new(store),
                Err(error) => return error.into(),
            };
            let _resignation = Resignation(Arc::clone(&store));
            match start_service(config, fabric, store, rebuilds, exit) {
                Ok((service, router)) => {
                    drop(change.send_replace(router));
                    tokio::select! {
                        error = timers(service) => error,
                        _ = deposed => StoreError::Deposed.into(),
                    }
                }
                Err(error) => error,
            }
        };
        Ok(listening.server(router, Box::pin(work)))
    }

    /// The addresses that it listens on, with the ports that were assigned.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves until `stop`.
    ///
    /// # Errors
    ///
    /// It cannot become the leader, or is no longer.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Server { listeners, router, tls, limiter, work } = self;
        let mut tasks = tokio::task::JoinSet::new();
        for listener in listeners {
            tasks.spawn(accept(listener, router.clone(), tls.clone(), Arc::clone(&limiter)));
        }
        tokio::select! {
            () = stop => Ok(()),
            error = work => Err(error),
            _ = tasks.join_next() => Ok(()),
        }
    }
}

/// Open sockets, before requests are served.
struct Listening {
    listeners: Vec<TcpListener>,
    tls: Option<TlsAcceptor>,
    limiter: Arc<ConnectionLimiter>,
}

impl Listening {
    fn open(config: &Config) -> Result<Self, ServeError> {
        config.check().map_err(ServeError::Config)?;
        let tls = config.tls.as_ref().map(acceptor).transpose()?;
        let mut listeners = Vec::new();
        for address in config.listen.iter().copied() {
            listeners.push(listen(address).map_err(|error| ServeError::Listen { address, error })?);
        }
        let limiter = ConnectionLimiter::new(config.connections, config.connections_per_client);
        Ok(Listening { listeners, tls, limiter })
    }

    fn server(self, router: watch::Receiver<Router>, work: Work) -> Server {
        let Listening { listeners, tls, limiter } = self;
        Server { listeners, router, tls, limiter, work }
    }
}

/// Waits until this controller is the leader, on a thread that is not joined.
async fn lead(
    standby: Standby,
    leader: watch::Sender<Leadership>,
    depose: oneshot::Sender<()>,
) -> Result<Etcd, StoreError> {
    let (sender, store) = oneshot::channel();
    let run = move || {
        let changed = |leadership: &Leadership| drop(leader.send_replace(leadership.clone()));
        // The receivers are gone only when the server is.
        let store = standby.lead(changed, move || _ = depose.send(()));
        let _ = sender.send(store);
    };
    let spawned = std::thread::Builder::new().name("standby".to_owned()).spawn(run);
    spawned.map_err(|error| StoreError::System(error.to_string()))?;
    store.await.unwrap_or_else(|error| Err(StoreError::System(error.to_string())))
}

/// Gives up the leadership when the server ends.
struct Resignation(Arc<Etcd>);

impl Drop for Resignation {
    fn drop(&mut self) {
        self.0.resign();
    }
}

/// Restores the controller from its store, and routes requests to it.
fn start_service(
    config: Config,
    fabric: Option<Jobs>,
    store: Arc<dyn Store>,
    rebuilds: Option<u64>,
    exit: Exit,
) -> Result<(Arc<Service>, Router), ServeError> {
    let access = Arc::new(Access::new(&config));
    let service = Service::start(config, fabric, store, rebuilds, exit)?;
    let router = router(App { service: Arc::clone(&service), access });
    Ok((service, router))
}

/// Runs the service's timers, which does not end.
async fn timers(service: Arc<Service>) -> ServeError {
    service.run().await;
    StoreError::System("the controller's timers have stopped".to_owned()).into()
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
        SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(
    listener: TcpListener,
    router: watch::Receiver<Router>,
    tls: Option<TlsAcceptor>,
    limiter: Arc<ConnectionLimiter>,
) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Usually too many open files, until connections end.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let permit = match limiter.acquire(from.ip()) {
            Ok(permit) => permit,
            Err(refusal) => {
                reject(stream, tls.is_some(), &refusal);
                continue;
            }
        };
        let (router, tls) = (router.borrow().clone(), tls.clone());
        tokio::spawn(async move {
            // Responses are short and latency counts.
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve(stream, router).await,
                Some(tls) => {
                    // A client without TLS is disconnected.
                    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
                        serve(stream, router).await;
                    }
                }
            }
            drop(permit);
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(64);
    // A broken connection affects its client only.
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
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

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let refused = |file: &Path, reason: String| ServeError::Tls { file: file.display().to_string(), reason };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(&tls.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(refused(&tls.certificate, "has no certificate in PEM".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| refused(&tls.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&tls.certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| refused(&tls.key, error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
