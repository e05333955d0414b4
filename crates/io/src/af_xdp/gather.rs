//! A frame as entries of a transmit ring: all its octets in the pool.

use srdma_dataplane::{Frame, Pool, Segment};

/// Pieces of a frame at most: head, body, tail.
pub(super) const MAX_PIECES: usize = 5;

/// The pieces of a frame, each with its own hold on its chunk.
pub(super) struct Gathered {
    pieces: [Segment; MAX_PIECES],
    count: usize,
}

impl Gathered {
    /// Takes a frame over; `None` when there is no chunk left for its tail, and the frame is gone.
    #[inline]
    pub(super) fn of(frame: Frame, pool: &mut Pool) -> Option<Self> {
        let mut gathered = Gathered { pieces: [frame.first(); MAX_PIECES], count: 0 };
        gathered.add(frame.first(), pool);
        for segment in frame.body() {
            gathered.add(*segment, pool);
        }
        let tail = frame.tail();
        if tail.is_empty() || gathered.extend(gathered.count.wrapping_sub(1), tail, pool) {
            return Some(gathered);
        }
        match tail_piece(frame.first(), tail, pool) {
            Some(piece) => {
                gathered.add(piece, pool);
                Some(gathered)
            }
            None => {
                gathered.release(pool);
                None
            }
        }
    }

    /// The pieces, none of them empty.
    #[inline]
    pub(super) fn pieces(&self) -> &[Segment] {
        &self.pieces[..self.count]
    }

    /// Gives the chunks back.
    pub(super) fn release(self, pool: &mut Pool) {
        for piece in self.pieces() {
            pool.release(piece.chunk());
        }
    }

    #[inline]
    fn add(&mut self, piece: Segment, pool: &mut Pool) {
        // The kernel takes no empty entry.
        if piece.is_empty() {
            pool.release(piece.chunk());
        } else {
            self.pieces[self.count] = piece;
            self.count += 1;
        }
    }

    /// Writes octets behind a piece, if nobody else has a share in its chunk.
    fn extend(&mut self, index: usize, octets: &[u8], pool: &mut Pool) -> bool {
        let Some(piece) = self.pieces[..self.count].get_mut(index) else {
            return false;
        };
        let written = pool.is_exclusive(piece.chunk()) && write_behind(*piece, octets, pool);
        if written {
            *piece = Segment::new(piece.chunk(), piece.start(), piece.len() + octets.len());
        }
        written
    }
}

/// A place for the tail: behind the head, or in a chunk of its own.
fn tail_piece(head: Segment, tail: &[u8], pool: &mut Pool) -> Option<Segment> {
    if !head.is_empty() && pool.is_exclusive(head.chunk()) && write_behind(head, tail, pool) {
        pool.share(head.chunk(), 1);
        return Some(Segment::new(head.chunk(), head.start() + head.len(), tail.len()));
    }
    let chunk = pool.allocate_small()?;
    pool.octets_mut(chunk)[..tail.len()].copy_from_slice(tail);
    Some(Segment::new(chunk, 0, tail.len()))
}

/// Writes octets behind a segment; `false` when its chunk has no room.
fn write_behind(segment: Segment, octets: &[u8], pool: &mut Pool) -> bool {
    let end = segment.start() + segment.len();
    match pool.octets_mut(segment.chunk()).get_mut(end..end + octets.len()) {
        Some(room) => {
            room.copy_from_slice(octets);
            true
        }
        None => false,
    }
}
