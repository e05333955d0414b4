//! Entries of a receive ring as frames, and free chunks for those to come.

use super::holds::Holds;
use super::socket::Socket;
use srdma_frame::{Frame, Pool, Segment};

/// Puts entries together to frames.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    state: State,
    /// Kernel-owned chunks for received frames.
    kernel_owned: u32,
}

/// State of a frame's previous fragments.
#[derive(Debug, Default)]
enum State {
    /// The end of a frame.
    #[default]
    Between,
    /// The beginning of a frame.
    Within(Frame),
    /// Part of a frame that is longer than frames can be.
    TooLong,
}

impl Receiver {
    /// Takes up to `limit` frames off a ring, and returns how many others were too long.
    pub(super) fn receive(
        &mut self,
        socket: &mut Socket,
        holds: &mut Holds,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        limit: usize,
    ) -> u64 {
        let mut too_long = 0;
        let mut room = limit;
        while room > 0
            && let Some(entry) = socket.receive.take()
        {
            let Some(chunk) = holds.take_back(entry.addr, pool) else {
                continue;
            };
            self.kernel_owned -= 1;
            let segment = Segment::new(chunk, entry.addr as usize % CHUNK, entry.len as usize);
            let state = std::mem::take(&mut self.state).next(segment, pool);
            let is_last = entry.options & libc::XDP_PKT_CONTD == 0;
            match (state, is_last) {
                (State::Within(frame), true) => {
                    frames.push(frame);
                    room -= 1;
                }
                (State::TooLong, true) => too_long += 1,
                (State::Between, _) => {}
                (state @ (State::Within(_) | State::TooLong), false) => self.state = state,
            }
        }
        socket.receive.release();
        too_long
    }

    /// Gives the kernel chunks to receive into, as long as it has fewer than `share`.
    pub(super) fn fill(&mut self, socket: &mut Socket, holds: &mut Holds, pool: &mut Pool, share: u32) {
        for _ in 0..share.saturating_sub(self.kernel_owned).min(socket.fill.free()) {
            let Some(chunk) = pool.allocate_large() else {
                break;
            };
            let Some(offset) = holds.give(chunk, pool) else {
                pool.release(chunk);
                break;
            };
            socket.fill.write(offset);
            self.kernel_owned += 1;
        }
        socket.fill.publish();
        if socket.fill.needs_wakeup() {
            socket.kick_fill();
        }
    }

    /// Gives the beginning of a frame back.
    pub(super) fn release(self, pool: &mut Pool) {
        if let State::Within(frame) = self.state {
            frame.release(pool);
        }
    }
}

/// Octets of a large chunk, which begins at a multiple of them.
const CHUNK: usize = size_of::<srdma_frame::Page>();

impl State {
    /// With one more segment.
    fn next(self, segment: Segment, pool: &mut Pool) -> Self {
        match self {
            State::Between => State::Within(Frame::of_segment(segment)),
            State::Within(mut frame) => {
                if frame.append(segment) {
                    return State::Within(frame);
                }
                frame.release(pool);
                pool.release(segment.chunk());
                State::TooLong
            }
            State::TooLong => {
                pool.release(segment.chunk());
                State::TooLong
            }
        }
    }
}
