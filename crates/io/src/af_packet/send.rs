//! Transmission of frames: the kernel gathers their segments in place.

use super::socket::Socket;
use srdma_frame::{Frame, MAX_PIECES, Pool};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Frames that may wait.
pub(super) const ROOM: usize = 256;

/// Frames in one system call.
const BATCH: usize = 64;

/// Time for which a queueing discipline may be full. One that never accepts a frame, as `tbf` one longer than its
/// burst, returns the same error.
const PATIENCE: Duration = Duration::from_millis(100);

/// The queue, and the arrays that the kernel reads.
#[derive(Debug)]
pub(super) struct Sender {
    waiting: VecDeque<Frame>,
    /// Since when the queueing discipline has taken none.
    full_since: Option<Instant>,
    pieces: Box<[[libc::iovec; MAX_PIECES]; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the pointers in the arrays are rewritten before each system call, and not read elsewhere.
unsafe impl Send for Sender {}

/// Result of [`Sender::flush`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flushed {
    pub(super) sent: u64,
    pub(super) refused: u64,
}

impl Sender {
    pub(super) fn new() -> Self {
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: all zeros is a valid message without address, pieces and control data.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        Sender {
            waiting: VecDeque::with_capacity(ROOM),
            full_since: None,
            pieces: Box::new([[nothing; MAX_PIECES]; BATCH]),
            messages: Box::new([message; BATCH]),
        }
    }

    pub(super) fn room(&self) -> usize {
        ROOM - self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a frame, for which there is room.
    pub(super) fn push(&mut self, frame: Frame) {
        self.waiting.push_back(frame);
    }

    /// Sends the queued frames. Frames that the kernel has no room for stay queued for a while; a frame that it refuses
    /// for its length is dropped alone, and all are while the link is down.
    pub(super) fn flush(&mut self, socket: &Socket, pool: &mut Pool) -> (Flushed, io::Result<()>) {
        let mut flushed = Flushed::default();
        while !self.waiting.is_empty() {
            let count = self.prepare(pool);
            // SAFETY: the first `count` messages point to pieces of this value, and those to octets of the pool and of
            // waiting frames; none of them moves or changes before the call returns.
            let sent = unsafe { libc::sendmmsg(socket.raw(), self.messages.as_mut_ptr(), count as u32, 0) };
            if sent > 0 {
                flushed.sent += sent as u64;
                self.full_since = None;
                self.release(sent as usize, pool);
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => break,
                Some(libc::ENOBUFS) if self.full_since.get_or_insert_with(Instant::now).elapsed() < PATIENCE => break,
                Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                    flushed.refused += self.waiting.len() as u64;
                    self.release(self.waiting.len(), pool);
                    self.full_since = None;
                    return (flushed, Err(error));
                }
                _ => {
                    flushed.refused += 1;
                    self.release(1, pool);
                }
            }
        }
        (flushed, Ok(()))
    }

    /// Gives back the frames that have waited longest.
    pub(super) fn release(&mut self, count: usize, pool: &mut Pool) {
        for frame in self.waiting.drain(..count) {
            frame.release(pool);
        }
    }

    /// Number of queued frames.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Describes the first frames to the kernel; returns how many.
    fn prepare(&mut self, pool: &Pool) -> usize {
        let messages = self.messages.iter_mut().zip(self.pieces.iter_mut());
        let mut count = 0;
        for (frame, (message, pieces)) in self.waiting.iter().zip(messages) {
            let mut used = 0;
            for (place, octets) in pieces.iter_mut().zip(frame.pieces(pool)) {
                *place = libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
                used += 1;
            }
            message.msg_hdr.msg_iov = pieces.as_mut_ptr();
            message.msg_hdr.msg_iovlen = used;
            count += 1;
        }
        count
    }
}
