//! The thread of a source or a receiver: it runs the queue pair over its socket.

use crate::error::{Error, Over, Result};
use crate::memory::HostMemory;
use nix::sys::eventfd::EventFd;
use srdma_host::{Clock, Connection, Program, UdpWire, WireError, WireOptions, run};
use srdma_io::udp::Segmentation;
use srdma_rc::Endpoint;
use std::os::fd::AsFd;
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
}

/// Opens the socket of a connection.
pub(crate) fn open_wire(
    connection: &Connection,
    wake: &Wake,
    max_packet_octets: usize,
    buffer_octets: u32,
) -> Result<UdpWire> {
    let options = WireOptions {
        raw: None,
        connection,
        segmentation: Segmentation::Software,
        buffer_octets,
        max_packet_octets,
        probe_address: None,
    };
    let (mut wire, _) = options.open_udp()?;
    let fd = wake.fd.as_fd().try_clone_to_owned();
    wire.set_wake(fd.map_err(|error| Error::System { what: "the eventfd", error })?);
    Ok(wire)
}

/// Runs a program to its end; returns the failure of the socket, if there is one.
pub(crate) fn run_program(
    endpoint: &mut Endpoint<HostMemory>,
    wire: &mut UdpWire,
    connection: &Connection,
    program: &mut dyn Program<HostMemory>,
) -> Option<Over> {
    let error = run(&Clock::start(), endpoint, wire, program).err()?;
    Some(Over::Socket(WireError::during_transfer(error, connection).to_string()))
}

/// Starts a thread.
pub(crate) fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| Error::System { what: "a thread", error })
}
