//! The thread of a source or a receiver, and how its handle wakes it.

use crate::error::{Error, Result};
use nix::sys::eventfd::EventFd;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Wakes the thread of a handle, and ends it.
#[derive(Debug)]
pub(crate) struct Wake {
    fd: EventFd,
    is_closing: AtomicBool,
    process: u32,
}

impl Wake {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Wake {
            fd: crate::event::event_fd()?,
            is_closing: AtomicBool::new(false),
            process: std::process::id(),
        }))
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        std::process::id() == self.process
    }

    /// The thread looks at what has changed.
    pub(crate) fn wake(&self) {
        // A counter that is full wakes as well.
        let _ = self.fd.write(1);
    }

    /// The thread ends.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// The thread has been woken.
    pub(crate) fn take(&self) {
        // Without a wake-up there is nothing to read.
        let _ = self.fd.read();
    }

    /// A descriptor that is readable when the thread is to be woken.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd> {
        self.fd.as_fd().try_clone_to_owned().map_err(|error| Error::System { what: "the eventfd", error })
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Starts a thread.
pub(crate) fn start<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| Error::System { what: "a thread", error })
}

/// The thread of a handle, which ends with it.
#[derive(Debug)]
pub(crate) struct OwnThread<T> {
    thread: Option<JoinHandle<T>>,
    process: u32,
}

impl<T: Send + 'static> OwnThread<T> {
    pub(crate) fn start(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<Self> {
        Ok(OwnThread { thread: Some(start(name, body)?), process: std::process::id() })
    }

    /// Waits for its end, which `order` orders. `None`, without an order, if it was waited for before or is one of the
    /// parent process; an error if it has panicked, which has been printed.
    pub(crate) fn end(&mut self, order: impl FnOnce()) -> Option<thread::Result<T>> {
        let thread = self.thread.take()?;
        if std::process::id() != self.process {
            // It has handles of all that is shared, so that nothing of that is dropped here.
            std::mem::forget(thread);
            return None;
        }
        order();
        Some(thread.join())
    }
}
