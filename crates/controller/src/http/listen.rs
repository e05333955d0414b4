//! Listening sockets, and TLS.

use super::connection::Connections;
use super::connection_limiter::ConnectionLimiter;
use super::gate::Gate;
use super::refusal_log::RefusalLog;
use super::{App, router, standby};
use crate::access::Access;
use crate::config::{Config, Tls};
use crate::reload::{Reloader, TlsSender};
use crate::service::{Exit, Service};
use crate::store::{Etcd, LEADER_LEASE, Leadership, Standby, Store, StoreError};
use axum::Router;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use srdma_controller_core::Jobs;
use srdma_toml_error::FileError;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

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
    /// A file, such as the key, that cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{file}: {reason}")]
    Tls { file: String, reason: String },
}

/// A controller that listens.
pub struct Server {
    listeners: Vec<TcpListener>,
    connections: Connections,
    certificate: Option<Fingerprint>,
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
        let (access, refusals) = (Arc::clone(&listening.access), Arc::clone(&listening.refusals));
        let (service, router) = start_service(config, access, fabric, store, rebuilds, exit, refusals)?;
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
        config.check_leader_lease(LEADER_LEASE).map_err(ServeError::Config)?;
        let listening = Listening::open(&config)?;
        let fabric = config.jobs().map_err(ServeError::Config)?;
        let starting = Leadership::Unknown { reason: "this controller has just started".to_owned() };
        let (leader_sender, leader) = watch::channel(starting);
        let (change, router) = watch::channel(standby::router(leader));
        let (access, refusals) = (Arc::clone(&listening.access), Arc::clone(&listening.refusals));
        let work = async move {
            let (depose, deposed) = oneshot::channel();
            let store = match lead(standby, leader_sender, depose).await {
                Ok(store) => Arc::new(store),
                Err(error) => return error.into(),
            };
            let _resignation = Resignation(Arc::clone(&store));
            match start_service(config, access, fabric, store, rebuilds, exit, refusals) {
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

    /// What reloads tokens, certificate and key; `config` is as it was read.
    pub(crate) fn reloader(&self, config: Config) -> Reloader {
        Reloader::new(config, Arc::clone(&self.connections.access), self.connections.tls.clone(), self.certificate)
    }

    /// Serves until `stop`.
    ///
    /// # Errors
    ///
    /// It cannot become the leader, or is no longer.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Server { listeners, connections, work, certificate: _ } = self;
        let mut tasks = tokio::task::JoinSet::new();
        for listener in listeners {
            tasks.spawn(connections.clone().accept(listener));
        }
        // In a task of its own, since it may wait for the core's lock.
        let mut work = tokio::task::JoinSet::from_iter([work]);
        tokio::select! {
            () = stop => Ok(()),
            Some(outcome) = work.join_next() => Err(outcome.unwrap_or_else(|error| failed(&error))),
            _ = tasks.join_next() => Ok(()),
        }
    }
}

/// Open sockets, before requests are served.
struct Listening {
    listeners: Vec<TcpListener>,
    access: Arc<Access>,
    tls: TlsSender,
    certificate: Option<Fingerprint>,
    limiter: Arc<ConnectionLimiter>,
    refusals: Arc<RefusalLog>,
}

impl Listening {
    fn open(config: &Config) -> Result<Self, ServeError> {
        config.check().map_err(ServeError::Config)?;
        let (tls, certificate) = config.tls.as_ref().map(acceptor).transpose()?.unzip();
        let mut listeners = Vec::new();
        for address in config.listen.iter().copied() {
            listeners.push(listen(address).map_err(|error| ServeError::Listen { address, error })?);
        }
        let has_tokens = !config.token.is_empty();
        let limiter = ConnectionLimiter::new(config.connections, config.connections_per_client, has_tokens);
        let (access, tls) = (Arc::new(Access::new(config)), TlsSender::new(tls));
        Ok(Listening { listeners, access, tls, certificate, limiter, refusals: Arc::new(RefusalLog::new()) })
    }

    fn server(self, router: watch::Receiver<Router>, work: Work) -> Server {
        let Listening { listeners, access, tls, certificate, limiter, refusals } = self;
        Server { listeners, connections: Connections { router, access, tls, limiter, refusals }, certificate, work }
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
    access: Arc<Access>,
    fabric: Option<Jobs>,
    store: Arc<dyn Store>,
    rebuilds: Option<u64>,
    exit: Exit,
    refusals: Arc<RefusalLog>,
) -> Result<(Arc<Service>, Router), ServeError> {
    let gate = Arc::new(Gate::new(&config, access, refusals));
    let service = Service::start(config, fabric, store, rebuilds, exit)?;
    let router = router(App { service: Arc::clone(&service), gate });
    Ok((service, router))
}

/// Runs the service's timers, which does not end.
async fn timers(service: Arc<Service>) -> ServeError {
    service.run().await;
    StoreError::System("the controller's timers have stopped".to_owned()).into()
}

fn failed(error: &tokio::task::JoinError) -> ServeError {
    StoreError::System(format!("the controller's timers have stopped: {error}")).into()
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

/// SHA-256 of a certificate chain.
pub(crate) type Fingerprint = [u8; 32];

/// TLS of connections, by the files of a configuration.
pub(crate) fn acceptor(tls: &Tls) -> Result<(TlsAcceptor, Fingerprint), ServeError> {
    let refused = |file: &Path, reason: String| ServeError::Tls { file: file.display().to_string(), reason };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(&tls.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(refused(&tls.certificate, "has no certificate in PEM".to_owned()));
    }
    srdma_toml_error::check_private(&tls.key)?;
    let mut fingerprint = Sha256::new();
    chain.iter().for_each(|certificate| fingerprint.update(certificate));
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| refused(&tls.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&tls.certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| refused(&tls.key, error.to_string()))?;
    Ok((TlsAcceptor::from(Arc::new(config)), fingerprint.finalize().into()))
}
