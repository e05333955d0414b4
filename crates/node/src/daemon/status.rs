//! The status socket: each connection gets one [`Snapshot`] as a line of JSON.

use super::{Latest, Snapshot};
use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, watch};

/// Time limit of the other side.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections at a time; others wait.
const CONNECTIONS: usize = 16;
/// Time without accepting connections after the process ran out of descriptors.
const REST: Duration = Duration::from_millis(100);
/// Octets that a snapshot may have: some hundred for each of a million branches.
const SNAPSHOT_LIMIT_OCTETS: u64 = 256 << 20;

/// Errors of the status socket.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Another process answers at the socket.
    #[error("{}: another node is running and answers here; stop it, or set `status` in [daemon]", .0.display())]
    InUse(PathBuf),
    /// Something else has the socket's name.
    #[error("{}: exists and is no socket; move it away, or set `status` in [daemon]", .0.display())]
    NoSocket(PathBuf),
    /// The socket cannot be made.
    #[error("{}: cannot make the status socket: {error}; run as root, or set `status` in [daemon]", path.display())]
    Bind {
        /// The socket.
        path: PathBuf,
        error: io::Error,
    },
    /// No process answers.
    #[error("{}: no node answers: {error}{}", path.display(), advice(error))]
    Connect {
        /// The socket.
        path: PathBuf,
        error: io::Error,
    },
    /// The answer cannot be read to its end.
    #[error("{}: the answer broke off: {error}", path.display())]
    Read {
        /// The socket.
        path: PathBuf,
        error: io::Error,
    },
    /// The answer has the format of another version.
    #[error("{}: the answer is no status of this version of srdma: {error}", path.display())]
    Format {
        /// The socket.
        path: PathBuf,
        error: serde_json::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; start one with `srdma node --config FILE`",
        io::ErrorKind::ConnectionRefused => "; the one that made the socket is gone",
        io::ErrorKind::PermissionDenied => "; run this as the node's user or one of its group",
        _ => "",
    }
}

/// Serves the status at a socket, which goes when the server does.
#[derive(Debug)]
pub struct StatusServer {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, so that only this process's own socket is removed.
    identity: (u64, u64),
}

impl StatusServer {
    /// Makes the socket, with its directory, for owner and group. One that a dead process has left is replaced.
    ///
    /// # Errors
    ///
    /// If another process answers there, something else has the name, or the socket cannot be made.
    pub async fn bind(path: &Path) -> Result<Self, StatusError> {
        check_free(path)?;
        let failed = |error| StatusError::Bind { path: path.to_owned(), error };
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        // The socket gets its path only when it has its mode and listens.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = directory.join(format!(".{name}.{}", std::process::id()));
        let listener = Self::listen(&temporary, path).map_err(|error| {
            let _ = fs::remove_file(&temporary);
            failed(error)
        })?;
        let metadata = fs::metadata(path).map_err(failed)?;
        Ok(StatusServer { listener, path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) })
    }

    fn listen(temporary: &Path, path: &Path) -> io::Result<UnixListener> {
        match fs::remove_file(temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(temporary)?;
        fs::set_permissions(temporary, Permissions::from_mode(0o660))?;
        fs::rename(temporary, path)?;
        Ok(listener)
    }

    /// Answers each connection with the newest snapshot; ends when the future is dropped.
    pub async fn serve(self, latest: watch::Receiver<Latest>) -> Infallible {
        let free = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // The semaphore is never closed.
            let place = Arc::clone(&free).acquire_owned().await.ok();
            let Ok((mut stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let latest = latest.borrow().clone();
            tokio::spawn(async move {
                let answer = async {
                    let snapshot = latest.whole().await;
                    let mut text = serde_json::to_vec(&*snapshot).expect("a snapshot has only names as keys");
                    text.push(b'\n');
                    stream.write_all(&text).await
                };
                // A client that is too slow, or gone, affects only itself.
                let _ = tokio::time::timeout(PATIENCE, answer).await;
                drop(place);
            });
        }
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        let is_ours = |metadata: fs::Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Rejects a path with a listening process, or that is no socket.
fn check_free(path: &Path) -> Result<(), StatusError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => Err(StatusError::NoSocket(path.to_owned())),
        Ok(_) if BlockingStream::connect(path).is_ok() => Err(StatusError::InUse(path.to_owned())),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Requests the status of the node at a socket.
///
/// # Errors
///
/// If there is no reply in a few seconds, or another one.
pub fn read_status(path: &Path) -> Result<Snapshot, StatusError> {
    let connected = BlockingStream::connect(path).and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    });
    let stream = connected.map_err(|error| StatusError::Connect { path: path.to_owned(), error })?;
    let mut text = Vec::new();
    let read = stream.take(SNAPSHOT_LIMIT_OCTETS).read_to_end(&mut text);
    read.map_err(|error| StatusError::Read { path: path.to_owned(), error })?;
    serde_json::from_slice(&text).map_err(|error| StatusError::Format { path: path.to_owned(), error })
}
