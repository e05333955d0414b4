//! The newest frames of one direction of a link, so that they can be sent once more.

use std::collections::VecDeque;

/// Frames, oldest first, at most so many.
#[derive(Debug)]
pub(crate) struct Record {
    frames: VecDeque<Vec<u8>>,
    limit: usize,
}

impl Record {
    pub(crate) fn of_newest(limit: usize) -> Self {
        Record { frames: VecDeque::with_capacity(limit), limit }
    }

    /// Keeps a frame, in place of the oldest when there are enough.
    pub(crate) fn keep<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
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
    fn the_oldest_entries_are_discarded_first() {
        let mut record = Record::of_newest(2);
        for octets in [&b"one"[..], b"two", b"three"] {
            record.keep(octets.chunks(2));
        }
        assert_eq!(record.newest_first().collect::<Vec<_>>(), [&b"three"[..], b"two"]);
        let mut nothing = Record::of_newest(0);
        nothing.keep([&b"one"[..]].into_iter());
        assert_eq!(nothing.newest_first().count(), 0);
    }
}
