//! Stderr without the lock of the standard library, which a blocked writer would hold.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// A descriptor of its own for stderr.
pub(super) struct Stderr(File);

impl Stderr {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Stderr(io::stderr().as_fd().try_clone_to_owned()?.into()))
    }

    pub(super) fn device_and_inode(&self) -> Option<(u64, u64)> {
        let metadata = self.0.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }
}

impl Write for Stderr {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(octets) {
                // Another process has made the pipe or terminal non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE)?;
                }
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
