//! Ctrl-C, checked between two steps, so that a lab can be taken down in order.

use crate::error::{LabError, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Receives SIGINT and SIGTERM, or ignores them.
#[derive(Debug)]
pub struct Interrupt {
    signals: Option<SignalFd>,
}

impl Interrupt {
    /// From now on the two signals do not end the process, but wake the waiting code here.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn listen() -> Result<Self> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGINT);
        mask.add(Signal::SIGTERM);
        mask.thread_block().map_err(LabError::system("block signals"))?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = SignalFd::with_flags(&mask, flags).map_err(LabError::system("listen for signals"))?;
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
            let mut descriptors = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            // The clock and the descriptor are checked after any wake-up.
            let _ = poll(&mut descriptors, timeout);
            if signals.read_signal().map_err(LabError::system("read a signal"))?.is_some() {
                return Err(LabError::Interrupted);
            }
        }
        Ok(())
    }
}
