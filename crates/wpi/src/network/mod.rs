//! Groups of the host library: a part of a buffer is a version of a group of its own (D213).

mod failure;
mod former;
mod receive;
mod send;

pub(crate) use failure::Failure;
pub(crate) use former::{address_toward, close_former_groups};
pub(crate) use receive::{Received, receive};
pub(crate) use send::send;

use crate::core::Target;
use srdma::{Device, DeviceOptions, Error, ProblemType, WireError};
use srdma_api::Client;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

/// Name of the one buffer of a version.
const BUFFER: &str = "weights";
/// Interval for looking at whether to go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Interval for trying again while an address is another group's.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Groups that this node is in at a time; each has a thread, and memory for a part.
const MAX_GROUPS: u32 = 16;

/// This node in groups.
pub(crate) struct Network {
    device: Device,
    client: Client,
    proxy: Option<Ipv6Addr>,
    /// This node's, if it is stated.
    address: Option<Ipv6Addr>,
    peer_port: u16,
    groups: Arc<Semaphore>,
    is_stopping: AtomicBool,
}

impl Network {
    /// `peer_port`: that of drivers of targets that name none.
    pub(crate) fn open(options: &DeviceOptions, proxy: Option<Ipv6Addr>, peer_port: u16) -> srdma::Result<Self> {
        let device = Device::open(options)?;
        let read = |file| srdma_toml_error::read_private(file).map(|text| text.trim().to_owned());
        let token = options.token_file.as_deref().map(read).transpose();
        let token = token.map_err(|error| Error::TokenFile(error.to_string()))?;
        let client = Client::new(&options.controller, token, options.ca_file.as_deref())?;
        let groups = Arc::new(Semaphore::new(MAX_GROUPS as usize));
        let (address, is_stopping) = (options.address, AtomicBool::new(false));
        Ok(Network { device, client, proxy, address, peer_port, groups, is_stopping })
    }

    /// The driver of a target, `HOST:PORT`.
    fn address_of(&self, target: &Target) -> String {
        let port = target.port().unwrap_or(self.peer_port);
        let host = target.host();
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Waits until this node may be in another group.
    async fn permit(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Failure> {
        match timeout_at(deadline, Arc::clone(&self.groups).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Failure::Stopping),
            Err(_) => Err(Failure::Occupied),
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Begins no more, and waits for a while until this node is in no group.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.is_stopping.store(true, Ordering::Relaxed);
        let all = self.groups.acquire_many(MAX_GROUPS);
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("ended while a buffer was propagated or received");
        }
        self.groups.close();
    }
}

/// Runs what blocks.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::Panicked)
}

/// Tries again while an address still belongs to a group that has just ended.
async fn when_free<T: Send + 'static>(
    deadline: Instant,
    attempt: impl Fn() -> srdma::Result<T> + Clone + Send + 'static,
) -> Result<T, Failure> {
    loop {
        match blocking(attempt.clone()).await? {
            Err(error) if is_taken(&error) && Instant::now() + RETRY_INTERVAL < deadline => sleep(RETRY_INTERVAL).await,
            other => return Ok(other?),
        }
    }
}

fn is_taken(error: &Error) -> bool {
    let taken = [ProblemType::AddressInUse, ProblemType::Busy, ProblemType::QueuePairInUse];
    match error {
        Error::Controller(error) => taken.iter().any(|problem| error.is(*problem)),
        Error::Wire(WireError::InUse(_)) => true,
        _ => false,
    }
}
