//! Unix sockets by which programs of this node reach the driver and its buffers.

mod descriptor;
mod directory;
mod notify;

pub(crate) use descriptor::pass;
pub(crate) use directory::Directory;
pub use directory::DirectoryError;
pub(crate) use notify::{Notice, Notifier};

use std::io;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// Time in which a peer sends its line, and takes what is sent to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after an error of `accept`, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The next connection of a listener, which outlives errors.
async fn accept(listener: &UnixListener, what: &str) -> UnixStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => pause(what, &error).await,
        }
    }
}

/// Waits after a connection could not be accepted.
pub(crate) async fn pause(what: &str, error: &io::Error) {
    tracing::warn!("{what}: a connection is not accepted: {error}");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
