//! The controller as a process.
//!
//! ```text
//!   calling thread: signals ──► stop, reload ──► thread `server`: the runtime of listeners, requests and timers
//! ```
//!
//! A request that blocks the runtime's threads, such as one that waits for a store that hangs, delays neither signal
//! (D106).

use crate::config::Config;
use crate::http::{ServeError, Server};
use crate::reload::Reloader;
use crate::service::Exit;
use crate::store::{Standby, Store};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Longest time from a signal to the end of the process, with what its log may take.
const STOP_TIME: Duration = Duration::from_millis(1200);

/// The part of it that requests have to end after the listeners are closed.
const REQUESTS_TIME: Duration = Duration::from_millis(700);

/// The state store of a controller.
pub enum StateStore {
    /// A store of its own: it is the leader at once.
    Own(Arc<dyn Store>),
    /// A store that it shares with other controllers, for high availability.
    Shared(Standby),
}

/// Runs a controller until SIGTERM or SIGINT, which end it within two seconds. SIGHUP reloads tokens, certificate and
/// key. `ready` is called with its addresses; `exit` if the store has failed and cannot be opened again.
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
    let of_file = config.clone();
    let max = max_connections().map_err(system)?;
    if config.connections > max {
        tracing::warn!(allowed = max, configured = config.connections, "the system limits the number of connections");
        config.connections = max;
    }
    let signals = runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    signals.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(system)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(system)?;
        let (stop, stopped) = oneshot::channel();
        let (started, starting) = oneshot::channel();
        let (ended, mut end) = oneshot::channel();
        let server = move || drop(ended.send(serve(config, of_file, store, rebuilds, exit, started, stopped)));
        thread::Builder::new().name("server".to_owned()).spawn(server).map_err(system)?;
        // Without them the server has failed, and reports the reason.
        let mut reloader: Option<Reloader> = None;
        let mut starting = Some(starting);
        let signal = loop {
            tokio::select! {
                outcome = &mut end => return outcome.unwrap_or_else(|_| Err(died())),
                _ = terminate.recv() => break "SIGTERM",
                _ = interrupt.recv() => break "SIGINT",
                _ = hangup.recv() => match &mut reloader {
                    Some(reloader) => reloader.reload(),
                    // The file is being applied.
                    None => tracing::info!("the controller is starting: nothing is reloaded"),
                },
                Some(outcome) = started_server(&mut starting) => {
                    let Started { addresses, reloader: started } = outcome;
                    ready(&addresses);
                    reloader = Some(started);
                }
            }
        };
        tracing::info!(signal, "stopping");
        // The server may have ended.
        let _ = stop.send(());
        match tokio::time::timeout(STOP_TIME, end).await {
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(died())),
            Err(_) => {
                tracing::warn!("requests or the store did not end in time: they are abandoned");
                Ok(())
            }
        }
    })
}

/// A server that listens.
struct Started {
    addresses: Vec<SocketAddr>,
    reloader: Reloader,
}

/// The server when it listens; `None` if that was reported, or it has failed.
async fn started_server(starting: &mut Option<oneshot::Receiver<Started>>) -> Option<Started> {
    let started = starting.as_mut()?.await.ok();
    *starting = None;
    started
}

/// Runs the server on the calling thread until it is stopped. `of_file`: the configuration as it was read.
fn serve(
    config: Config,
    of_file: Config,
    store: StateStore,
    rebuilds: Option<u64>,
    exit: Exit,
    started: oneshot::Sender<Started>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), ServeError> {
    let runtime = runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(async {
        let server = match store {
            StateStore::Own(store) => Server::start(config, store, rebuilds, exit).await?,
            StateStore::Shared(standby) => Server::stand_by(config, standby, rebuilds, exit).await?,
        };
        // The receiver is gone only when the process ends.
        let _ = started.send(Started { addresses: server.addresses(), reloader: server.reloader(of_file) });
        server.run(async move { drop(stopped.await) }).await
    });
    runtime.shutdown_timeout(REQUESTS_TIME);
    outcome
}

fn system(error: io::Error) -> ServeError {
    ServeError::Config(format!("cannot start: {error}"))
}

fn died() -> ServeError {
    ServeError::Config("the server's thread has died; its last lines are above".to_owned())
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
