//! The controller as a process.

use crate::config::Config;
use crate::http::{ServeError, Server};
use crate::service::Exit;
use crate::store::{Standby, Store};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// The state store of a controller.
pub enum StateStore {
    /// A store of its own: it is the leader at once.
    Own(Arc<dyn Store>),
    /// A store that it shares with other controllers, for high availability.
    Shared(Standby),
}

/// Runs a controller until SIGTERM or SIGINT. `ready` is called with its addresses; `exit` if the store has failed and
/// cannot be opened again.
///
/// # Errors
///
/// It does not start, or is no longer the leader.
pub fn run(
    mut config: Config,
    store: StateStore,
    rebuilds: Option<u64>,
    exit: Exit,
    ready: &mut dyn FnMut(&[SocketAddr]),
) -> Result<(), ServeError> {
    let system = |error: io::Error| ServeError::Config(format!("cannot start: {error}"));
    let max = max_connections().map_err(system)?;
    if config.connections > max {
        tracing::warn!(allowed = max, configured = config.connections, "the system limits the number of connections");
        config.connections = max;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(system)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system)?;
        let server = match store {
            StateStore::Own(store) => Server::start(config, store, rebuilds, exit).await?,
            StateStore::Shared(standby) => Server::stand_by(config, standby, rebuilds, exit).await?,
        };
        ready(&server.addresses());
        server
            .run(async move {
                tokio::select! {
                    _ = terminate.recv() => tracing::info!(signal = "SIGTERM", "stopping"),
                    _ = interrupt.recv() => tracing::info!(signal = "SIGINT", "stopping"),
                }
            })
            .await
    })
}

/// Open files beside connections: the store, listeners, the runtime's, and rejected connections.
const OTHER_FILES: usize = 128;

/// Raises the limit of open files; returns the number of connections that it allows.
fn max_connections() -> io::Result<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(usize::try_from(hard).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES).max(1))
}
