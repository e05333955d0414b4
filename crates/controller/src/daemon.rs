//! The controller as a process.

use crate::config::Config;
use crate::http::{ServeError, Server};
use crate::say::say;
use crate::store::{Standby, Store};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Where a controller keeps what outlives it.
pub enum Keeping {
    /// In a store of its own: it leads at once.
    Own(Arc<dyn Store>),
    /// In one that it may use while it leads.
    Shared(Standby),
}

/// Runs a controller until SIGTERM or SIGINT. `ready` is told where it listens when it does.
///
/// # Errors
///
/// When it does not start, or does not lead any more.
pub fn run(
    mut config: Config,
    keeping: Keeping,
    rebuilds: bool,
    ready: &mut dyn FnMut(&[SocketAddr]),
) -> Result<(), ServeError> {
    let system = |error: io::Error| ServeError::Config(format!("cannot start: {error}"));
    let most = most_connections().map_err(system)?;
    if config.connections > most {
        say(format_args!("the system lets it have {most} connections, not {}", config.connections));
        config.connections = most;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(system)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system)?;
        let server = match keeping {
            Keeping::Own(store) => Server::start(config, store, rebuilds).await?,
            Keeping::Shared(standby) => Server::stand_by(config, standby, rebuilds).await?,
        };
        ready(&server.addresses());
        server
            .run(async move {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            })
            .await
    })
}

/// Files that are open beside connections: the store, listeners, what the runtime has, and those that are turned away.
const OTHER_FILES: usize = 128;

/// How many connections there can be, once this process may open as many files as the system lets it.
fn most_connections() -> io::Result<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(usize::try_from(hard).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES).max(1))
}
