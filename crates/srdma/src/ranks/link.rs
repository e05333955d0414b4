//! The connection of a rank to the owner, which its thread and its versions use.

use super::message::ToOwner;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Sends what a socket takes without blocking.
pub(super) fn send_some(socket: &UnixStream, octets: &[u8]) -> io::Result<usize> {
    loop {
        match send(socket.as_raw_fd(), octets, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
            Ok(sent) => return Ok(sent),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A connection to the owner. It is closed when the handle is closed and all versions are dropped: the owner then knows
/// that this rank has none.
#[derive(Debug)]
pub(super) struct Link {
    socket: UnixStream,
    /// What the socket has not taken yet.
    unsent: Mutex<Vec<u8>>,
    versions: AtomicUsize,
    process: u32,
}

impl Link {
    pub(super) fn new(socket: UnixStream) -> Arc<Self> {
        Arc::new(Link {
            socket,
            unsent: Mutex::new(Vec::new()),
            versions: AtomicUsize::new(0),
            process: std::process::id(),
        })
    }

    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Sends a message, now or when the socket takes it. True if all is sent.
    pub(super) fn send(&self, message: ToOwner) -> io::Result<bool> {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        unsent.extend_from_slice(&message.emit());
        Self::flush_locked(&self.socket, &mut unsent)
    }

    /// Sends what was not sent yet. True if all is sent.
    pub(super) fn flush(&self) -> io::Result<bool> {
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        Self::flush_locked(&self.socket, &mut unsent)
    }

    fn flush_locked(socket: &UnixStream, unsent: &mut Vec<u8>) -> io::Result<bool> {
        while !unsent.is_empty() {
            match send_some(socket, unsent)? {
                0 => return Ok(false),
                sent => drop(unsent.drain(..sent)),
            }
        }
        Ok(true)
    }

    /// Versions of this connection that exist.
    pub(super) fn versions(&self) -> usize {
        self.versions.load(Ordering::Acquire)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Tells the owner when a version is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    link: Arc<Link>,
    version: u64,
}

impl Lease {
    pub(super) fn new(link: &Arc<Link>, version: u64) -> Self {
        link.versions.fetch_add(1, Ordering::AcqRel);
        Lease { link: Arc::clone(link), version }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.link.versions.fetch_sub(1, Ordering::AcqRel);
        // In a child of fork() the version is still the parent's, and the lock may be that of a thread which is not
        // there.
        if std::process::id() == self.link.process {
            // An owner that has ended, or has detached this rank, does not wait for it.
            let _ = self.link.send(ToOwner::Released(self.version));
        }
    }
}
