//! The latest frames of one direction of a link, for replay.

use std::collections::VecDeque;

/// The latest frames, oldest first, up to a limit.
#[derive(Debug)]
pub(crate) struct ReplayBuffer {
    frames: VecDeque<Vec<u8>>,
    limit: usize,
}

impl ReplayBuffer {
    pub(crate) fn with_limit(limit: usize) -> Self {
        ReplayBuffer { frames: VecDeque::with_capacity(limit), limit }
    }

    /// Adds a frame, in place of the oldest if the buffer is full.
    pub(crate) fn push<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        let mut octets =
            if self.frames.len() < self.limit { Vec::new() } else { self.frames.pop_front().unwrap_or_default() };
        octets.clear();
        pieces.for_each(|piece| octets.extend_from_slice(piece));
        if self.limit > 0 {
            self.frames.push_back(octets);
        }
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().rev().map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_frame_is_replaced_first() {
        let mut buffer = ReplayBuffer::with_limit(2);
        for octets in [&b"one"[..], b"two", b"three"] {
            buffer.push(octets.chunks(2));
        }
        assert_eq!(buffer.newest_first().collect::<Vec<_>>(), [&b"three"[..], b"two"]);
        let mut empty = ReplayBuffer::with_limit(0);
        empty.push([&b"one"[..]].into_iter());
        assert_eq!(empty.newest_first().count(), 0);
    }
}
