//! The one trait for packet I/O.

use crate::{Interest, fast_path};
use srdma_frame::{Frame, Pool};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

/// A port's way to the wire, in batches. One thread owns it, together with the pool that its frames lie in.
///
/// ```text
/// receive(frames) ─→ element.receive … element.dequeue ─→ while room(): push(frame) ─→ flush()
/// ```
pub trait Driver: Send + fmt::Debug {
    /// Takes up to `limit` frames that have come in, and adds them to `frames`; never waits. Each has its first
    /// [`HEADER_SPAN`](srdma_frame::HEADER_SPAN) octets in the first segment, with headroom before it, as
    /// [`Element::receive`](srdma_frame::Element::receive) wants it.
    ///
    /// # Errors
    ///
    /// If the interface can no longer be used: it has vanished or is down for good. Errors of single frames are
    /// counted, not returned.
    fn receive(&mut self, pool: &mut Pool, frames: &mut Vec<Frame>, limit: usize) -> io::Result<()>;

    /// Whether the last [`Driver::receive`] left no frame behind.
    fn is_drained(&self) -> bool;

    /// Number of frames, of any length and number of segments, that [`Driver::push`] accepts now. Frees sent frames,
    /// where the driver passes frames to the kernel without copying.
    fn room(&mut self, pool: &mut Pool) -> usize;

    /// Takes a frame to be sent. The caller has seen [`Driver::room`] for it; a frame without room is dropped and
    /// counted.
    fn push(&mut self, frame: Frame, pool: &mut Pool);

    /// Sends what has been pushed, as far as the kernel takes it now; the rest waits for the next call.
    ///
    /// # Errors
    ///
    /// As [`Driver::receive`].
    fn flush(&mut self, pool: &mut Pool) -> io::Result<()>;

    /// Whether nothing that was pushed waits for another [`Driver::flush`].
    fn is_flushed(&self) -> bool;

    /// A file descriptor that is readable when frames have arrived; `None` for a driver that always has frames, such as
    /// a capture.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// Changes which frames the driver takes from the interface, while it runs.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the change; the old interest, or a part of the new one, is then in use.
    fn set_interest(&mut self, interest: &Interest) -> io::Result<()>;

    /// Has the interface's program forward what it can, for the next frame on, or no longer. Without a call it forwards
    /// nothing.
    ///
    /// # Errors
    ///
    /// If the driver has no such program, or the kernel refuses it; the one before stays.
    fn set_fast_path(&mut self, _fast: Option<(&fast_path::Maps, &fast_path::Port)>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The driver's kind.
    fn kind(&self) -> DriverKind;

    /// The driver's counters.
    fn statistics(&self) -> DriverStatistics;

    /// Gives every chunk back that the driver holds, before it is dropped.
    fn detach(&mut self, pool: &mut Pool);
}

/// Driver of a port's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DriverKind {
    /// AF_XDP, the program run by the interface's own driver.
    XdpNative,
    /// AF_XDP, the program run on socket buffers.
    XdpGeneric,
    /// AF_PACKET.
    Packet,
    /// A capture file.
    Capture,
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriverKind::XdpNative => "AF_XDP native",
            DriverKind::XdpGeneric => "AF_XDP generic",
            DriverKind::Packet => "AF_PACKET",
            DriverKind::Capture => "capture",
        })
    }
}

/// Counters of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverStatistics {
    /// Frames delivered to the node.
    pub received: u64,
    /// Frames that the kernel took.
    pub sent: u64,
    /// Frames that came in and found no free chunk or ring entry.
    pub receive_overruns: u64,
    /// Frames longer than a [`Frame`] can be, or cut off by the kernel.
    pub too_long: u64,
    /// Frames that the kernel refused to send, or that found no room.
    pub send_errors: u64,
}
