//! Start and end of a driver.

use crate::core::{Driver, Limits, Target};
use crate::grpc::server::{Services, builder};
use crate::grpc::{Admission, tcp, unix};
use crate::network::{Network, address_toward, close_former_groups};
use crate::service::{NodeCalls, PeerCalls, State};
use crate::sockets::{Directory, DirectoryError};
use srdma::DeviceOptions;
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Connections of a listener at a time.
const MAX_CONNECTIONS: usize = 256;
/// Longest time for what is in progress when the driver ends.
const LAST_WORK: Duration = Duration::from_secs(5);

/// Options of a driver.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of its sockets.
    pub socket_directory: PathBuf,
    /// The group whose members may use the sockets, by number or name [default: none].
    pub socket_group: Option<String>,
    /// Addresses and host names by which requests name this node.
    pub own_hosts: Vec<String>,
    /// Where operators reach it by TCP [default: not at all].
    pub listen: Option<SocketAddr>,
    /// That address may be one that others reach: callers are not authenticated.
    pub is_open: bool,
    /// Where drivers of other nodes reach it; its port is that of targets that name none.
    pub peer_listen: SocketAddr,
    /// Octets of all buffers together.
    pub memory_octets: u64,
    /// The directory with files that clients may name as `source_path` [default: none].
    pub source_directory: Option<PathBuf>,
    /// Longest time of a propagation.
    pub timeout: Duration,
    /// Provider and controller.
    pub device: DeviceOptions,
    /// Where no address of this node in groups is stated: the one that the kernel chooses toward this address.
    pub toward: Option<Ipv6Addr>,
    /// The Proxy Address of its groups [default: one of the tenant's pool].
    pub proxy: Option<Ipv6Addr>,
}

/// Why a driver does not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error("{0}")]
    Directory(#[from] DirectoryError),
    #[error("{0}")]
    Device(#[from] srdma::Error),
    #[error("{0}")]
    OwnHost(crate::core::Refusal),
    #[error("--node: the addresses or host names of this node are needed: requests name targets by them")]
    NoOwnHost,
    #[error("{address} is reached by others, and callers are not authenticated: a loopback address, or --open")]
    Open { address: SocketAddr },
    #[error("--toward {toward}: there is no route, or not by IPv6")]
    NoRoute { toward: Ipv6Addr },
    #[error("{address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("{what}: {error}")]
    System { what: &'static str, error: io::Error },
}

/// A driver that runs; dropping it ends it.
pub struct Service {
    runtime: Option<Runtime>,
    state: Arc<State>,
    addresses: Addresses,
}

#[derive(Clone, Copy)]
struct Addresses {
    peers: SocketAddr,
    operators: Option<SocketAddr>,
}

impl Service {
    /// Starts a driver.
    ///
    /// # Errors
    ///
    /// If others may write to its directory of sockets, an address is in use, or the library does not open.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        let own_hosts = own_hosts(&options.own_hosts)?;
        if let Some(address) = options.listen.filter(|address| !address.ip().is_loopback() && !options.is_open) {
            return Err(StartError::Open { address });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StartError::System { what: "threads", error })?;
        let entered = runtime.enter();
        let peers = runtime.block_on(listen(options.peer_listen))?;
        let operators = options.listen.map(|address| runtime.block_on(listen(address))).transpose()?;
        let addresses = Addresses {
            peers: address_of(&peers, options.peer_listen)?,
            operators: match (&operators, options.listen) {
                (Some(listener), Some(address)) => Some(address_of(listener, address)?),
                _ => None,
            },
        };
        let device = DeviceOptions { address: own_address(options)?, ..options.device.clone() };
        let network = Network::open(&device, options.proxy, addresses.peers.port())?;
        let directory = Directory::take(&options.socket_directory, options.socket_group.as_deref())?;
        let name = directory.grpc();
        let socket = directory.listen(&name).map_err(|error| StartError::System { what: "wpi-grpc.sock", error })?;
        let driver = Driver::new(Limits { memory_octets: options.memory_octets, own_hosts });
        let source_directory = options.source_directory.clone();
        let state = State::new(driver, directory, network, source_directory, options.timeout);
        runtime.spawn(close_former_groups(Arc::clone(&state.network)));
        let admission = || Admission::of(MAX_CONNECTIONS);
        let node = Services::new(Arc::new(NodeCalls(Arc::clone(&state))));
        let peer = Services::new(Arc::new(PeerCalls(Arc::clone(&state))));
        let incoming = unix(socket, admission(), name);
        runtime.spawn(builder().serve_with_incoming(node.clone(), incoming));
        let incoming = tcp(peers, admission(), "drivers of other nodes".to_owned());
        runtime.spawn(builder().serve_with_incoming(peer, incoming));
        if let Some(operators) = operators {
            let incoming = tcp(operators, admission(), "operators".to_owned());
            runtime.spawn(builder().serve_with_incoming(node, incoming));
        }
        drop(entered);
        Ok(Service { runtime: Some(runtime), state, addresses })
    }

    /// Where drivers of other nodes reach it.
    pub fn peer_address(&self) -> SocketAddr {
        self.addresses.peers
    }

    /// Where operators reach it by TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.addresses.operators
    }

    /// Runs until SIGTERM or SIGINT, whose name is returned.
    ///
    /// # Errors
    ///
    /// If signals cannot be received.
    pub fn wait(&self) -> io::Result<&'static str> {
        let Some(runtime) = &self.runtime else { return Ok("nothing") };
        runtime.block_on(async {
            let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            tokio::select! {
                _ = terminate.recv() => Ok("SIGTERM"),
                _ = interrupt.recv() => Ok("SIGINT"),
            }
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(self.state.network.stop(LAST_WORK));
            runtime.shutdown_timeout(LAST_WORK);
        }
    }
}

fn own_hosts(hosts: &[String]) -> Result<BTreeSet<String>, StartError> {
    if hosts.is_empty() {
        return Err(StartError::NoOwnHost);
    }
    let host = |text: &String| Target::parse(text).map(|target| target.host().to_owned());
    hosts.iter().map(host).collect::<Result<_, _>>().map_err(StartError::OwnHost)
}

/// The address of this node in groups, if it is known before there is one.
fn own_address(options: &Options) -> Result<Option<Ipv6Addr>, StartError> {
    match (options.device.address, options.toward) {
        (Some(address), _) => Ok(Some(address)),
        (None, Some(toward)) => Ok(Some(address_toward(toward).ok_or(StartError::NoRoute { toward })?)),
        (None, None) => Ok(None),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|error| StartError::Listen { address, error })
}

fn address_of(listener: &TcpListener, address: SocketAddr) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|error| StartError::Listen { address, error })
}
