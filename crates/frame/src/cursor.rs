//! Copies into the segments of a frame.

use crate::frame::Frame;
use crate::pool::{Chunk, Pool};
use crate::segment::Segment;

/// Writes into the segments of an unwritten frame, one after the other.
pub(crate) struct Cursor<'f> {
    frame: &'f Frame,
    segment: usize,
    offset: usize,
}

impl<'f> Cursor<'f> {
    /// At the first octet of a frame.
    pub(crate) fn of(frame: &'f Frame) -> Self {
        Cursor { frame, segment: 0, offset: 0 }
    }

    pub(crate) fn write(&mut self, mut octets: &[u8], pool: &mut Pool) {
        while !octets.is_empty() {
            let (chunk, start, room) = self.place();
            let take = room.min(octets.len());
            pool.octets_mut(chunk)[start..start + take].copy_from_slice(&octets[..take]);
            self.advance(take);
            octets = &octets[take..];
        }
    }

    pub(crate) fn copy(&mut self, from: Segment, pool: &mut Pool) {
        let mut done = 0;
        let len = from.len();
        while done < len {
            let (chunk, start, room) = self.place();
            let take = room.min(len - done);
            let source = from.start() + done;
            if let Some((read, write)) = pool.octets_pair(from.chunk(), chunk) {
                write[start..start + take].copy_from_slice(&read[source..source + take]);
            }
            self.advance(take);
            done += take;
        }
    }

    /// Chunk, offset in it, and room there.
    fn place(&self) -> (Chunk, usize, usize) {
        let segment = if self.segment == 0 { self.frame.first() } else { self.frame.body()[self.segment - 1] };
        (segment.chunk(), segment.start() + self.offset, segment.len() - self.offset)
    }

    fn advance(&mut self, octets: usize) {
        self.offset += octets;
        let (_, _, room) = self.place();
        if room == 0 && self.segment < self.frame.body().len() {
            self.segment += 1;
            self.offset = 0;
        }
    }
}
