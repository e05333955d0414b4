//! Signals to the processes of a test.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Sends a signal to a process, which must exist.
#[track_caller]
pub(crate) fn send(signal: Signal, pid: u32) {
    let pid = Pid::from_raw(pid.try_into().expect("a process ID"));
    kill(pid, signal).unwrap_or_else(|error| panic!("{signal} to process {pid}: {error}"));
}
