//! Ctrl-C, checked between two steps, so that a lab can be taken down in order.

use crate::error::{LabError, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Receives SIGINT and SIGTERM, or ignores them.
#[derive(Debug)]
pub struct Interrupt {
    signals: Option<Signals>,
}

/// Handlers that write to a socket, rather than a mask of blocked signals: a program that is started gets the default
/// actions again, and no thread has to unblock signals for it, which could end this process.
#[derive(Debug)]
struct Signals {
    received: UnixStream,
    handlers: Vec<SigId>,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let (received, handler) = UnixStream::pair()?;
        received.set_nonblocking(true)?;
        let mut signals = Signals { received, handlers: Vec::new() };
        for signal in [SIGINT, SIGTERM] {
            signals.handlers.push(pipe::register(signal, handler.try_clone()?)?);
        }
        Ok(signals)
    }

    /// Whether one has come since the last call.
    fn take(&self) -> io::Result<bool> {
        match (&self.received).read(&mut [0; 64]) {
            Ok(octets) => Ok(octets > 0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            unregister(handler);
        }
    }
}

impl Interrupt {
    /// From now on the two signals do not end the process, but wake the waiting code here.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn listen() -> Result<Self> {
        let signals = Signals::new().map_err(LabError::system("listen for signals"))?;
        Ok(Interrupt { signals: Some(signals) })
    }

    /// Leaves the signals as they are.
    pub fn ignore() -> Self {
        Interrupt { signals: None }
    }

    /// Waits.
    ///
    /// # Errors
    ///
    /// [`LabError::Interrupted`] as soon as one of the signals has come.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let Some(signals) = &self.signals else {
            std::thread::sleep(time);
            return Ok(());
        };
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let mut descriptors = [PollFd::new(signals.received.as_fd(), PollFlags::POLLIN)];
            // The clock and the descriptor are checked after any wake-up.
            let _ = poll(&mut descriptors, timeout);
            if signals.take().map_err(LabError::system("read a signal"))? {
                return Err(LabError::Interrupted);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{Signal, raise};

    #[test]
    fn a_signal_wakes_and_is_taken_once() {
        let interrupt = Interrupt::listen().unwrap();
        interrupt.sleep(Duration::from_millis(1)).unwrap();
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            raise(signal).unwrap();
            let result = interrupt.sleep(Duration::from_secs(60));
            assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
            interrupt.sleep(Duration::from_millis(1)).unwrap();
        }
    }
}
