//! A frame as entries of a transmit ring: all its octets in the pool, in as few pieces as pays.

use srdma_frame::{Chunk, Frame, MAX_PIECES, Page, Pool, Segment};

/// How the kernel handles the octets of sent frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// It copies them into a socket buffer: the first piece beside its head, every other one into a page that it
    /// allocates. That costs more than to copy a frame into fewer pieces here. On veth, copies of head, shared body and
    /// tail go out at 370 thousand a second gathered and 900 in one piece (1,024 octets), or 300 and 510 (4,200 octets,
    /// two pieces); frames that lie ready at 940 and 460.
    Copying,
    /// It has the interface read them where they are.
    InPlace,
}

/// The pieces of a frame, each with its own hold on its chunk.
pub(super) struct Gathered {
    pieces: [Segment; MAX_PIECES],
    count: usize,
}

const CHUNK: usize = size_of::<Page>();

impl Gathered {
    /// Takes a frame over; `None` when there is no free chunk for its tail, and the frame is dropped.
    #[inline]
    pub(super) fn of(frame: Frame, sending: Sending, pool: &mut Pool) -> Option<Self> {
        let pieces = 1 + frame.body().len() + usize::from(!frame.tail().is_empty());
        if sending == Sending::Copying
            && pieces > frame.len().div_ceil(CHUNK)
            && let Some(packed) = Gathered::behind_head(&frame, pool).or_else(|| Gathered::in_new_chunks(&frame, pool))
        {
            return Some(packed);
        }
        Gathered::in_place(&frame, pool)
    }

    /// The pieces, none of them empty.
    #[inline]
    pub(super) fn pieces(&self) -> &[Segment] {
        &self.pieces[..self.count]
    }

    /// All in one piece, in the chunk of the head; `None` when it has no room or is shared.
    fn behind_head(frame: &Frame, pool: &mut Pool) -> Option<Self> {
        let head = frame.first();
        let len = frame.len();
        if !pool.is_exclusive(head.chunk()) || head.start() + len > pool.octets(head.chunk()).len() {
            return None;
        }
        let mut end = head.start() + head.len();
        for segment in frame.body() {
            copy(*segment, head.chunk(), end, pool);
            end += segment.len();
            pool.release(segment.chunk());
        }
        pool.octets_mut(head.chunk())[end..end + frame.tail().len()].copy_from_slice(frame.tail());
        Some(Gathered { pieces: [Segment::new(head.chunk(), head.start(), len); MAX_PIECES], count: 1 })
    }

    /// All in new chunks, each filled; `None` when there are not enough.
    fn in_new_chunks(frame: &Frame, pool: &mut Pool) -> Option<Self> {
        let mut packed = Gathered { pieces: [frame.first(); MAX_PIECES], count: 0 };
        let mut left = frame.len();
        while left > 0 {
            let Some(chunk) = pool.allocate_large() else {
                packed.release(pool);
                return None;
            };
            let len = left.min(CHUNK);
            packed.add(Segment::new(chunk, 0, len));
            left -= len;
        }
        let mut written = 0;
        for segment in segments(frame) {
            let mut done = 0;
            while done < segment.len() {
                let (chunk, start) = packed.place(written);
                let len = (segment.len() - done).min(CHUNK - start);
                copy(Segment::new(segment.chunk(), segment.start() + done, len), chunk, start, pool);
                done += len;
                written += len;
            }
            pool.release(segment.chunk());
        }
        for octet in frame.tail() {
            let (chunk, start) = packed.place(written);
            pool.octets_mut(chunk)[start] = *octet;
            written += 1;
        }
        Some(packed)
    }

    /// The segments as they are, the tail where there is room for it.
    fn in_place(frame: &Frame, pool: &mut Pool) -> Option<Self> {
        let mut gathered = Gathered { pieces: [frame.first(); MAX_PIECES], count: 0 };
        for segment in segments(frame) {
            // The kernel takes no empty entry.
            if segment.is_empty() {
                pool.release(segment.chunk());
            } else {
                gathered.add(segment);
            }
        }
        if !frame.tail().is_empty() {
            let Some(piece) = tail_piece(frame, pool) else {
                gathered.release(pool);
                return None;
            };
            gathered.add(piece);
        }
        Some(gathered)
    }

    fn add(&mut self, piece: Segment) {
        self.pieces[self.count] = piece;
        self.count += 1;
    }

    /// Chunk and offset in it of an octet, when all pieces but the last are full.
    fn place(&self, octet: usize) -> (Chunk, usize) {
        (self.pieces[octet / CHUNK].chunk(), octet % CHUNK)
    }

    fn release(self, pool: &mut Pool) {
        for piece in self.pieces() {
            pool.release(piece.chunk());
        }
    }
}

fn segments(frame: &Frame) -> impl Iterator<Item = Segment> {
    std::iter::once(frame.first()).chain(frame.body().iter().copied())
}

/// Copies a segment into another chunk.
fn copy(from: Segment, to: Chunk, start: usize, pool: &mut Pool) {
    if let Some((read, write)) = pool.octets_pair(from.chunk(), to) {
        write[start..start + from.len()].copy_from_slice(&read[from.start()..][..from.len()]);
    }
}

/// The tail as a piece: behind the head, or in a chunk of its own.
fn tail_piece(frame: &Frame, pool: &mut Pool) -> Option<Segment> {
    let (head, tail) = (frame.first(), frame.tail());
    let end = head.start() + head.len();
    if !head.is_empty() && pool.is_exclusive(head.chunk()) && end + tail.len() <= pool.octets(head.chunk()).len() {
        pool.octets_mut(head.chunk())[end..end + tail.len()].copy_from_slice(tail);
        pool.share(head.chunk(), 1);
        return Some(Segment::new(head.chunk(), end, tail.len()));
    }
    let chunk = pool.allocate_small()?;
    pool.octets_mut(chunk)[..tail.len()].copy_from_slice(tail);
    Some(Segment::new(chunk, 0, tail.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
    }

    /// A head and a tail around a body that others share.
    fn copy_of(body: &Frame, pool: &mut Pool) -> Frame {
        let mut copy = Frame::small(&[9; 70], pool).unwrap();
        for segment in segments(body) {
            pool.share(segment.chunk(), 1);
            assert!(copy.append(segment));
        }
        copy.with_tail([1, 2, 3, 4])
    }

    #[test]
    fn copies_are_sent_in_pieces_above_a_threshold() {
        let mut pool = Pool::new(64);
        for (len, in_place, copying) in [(1, 3, 1), (300, 3, 1), (4022, 4, 1), (4023, 4, 2), (4200, 4, 2), (8900, 5, 3)]
        {
            let body = Frame::from_octets(&octets(len), &mut pool).unwrap();
            let held = pool.in_use();
            for (sending, pieces) in [(Sending::InPlace, in_place), (Sending::Copying, copying)] {
                let frame = copy_of(&body, &mut pool);
                let expected = frame.to_vec(&pool);
                let gathered = Gathered::of(frame, sending, &mut pool).unwrap();
                let found: Vec<u8> = gathered.pieces().iter().flat_map(|piece| piece.octets(&pool).to_vec()).collect();
                assert!(found == expected, "{len} octets, {sending:?}");
                assert_eq!(gathered.pieces().len(), pieces, "{len} octets, {sending:?}");
                gathered.release(&mut pool);
                assert_eq!(pool.in_use(), held);
            }
            assert!(body.to_vec(&pool) == octets(len));
            body.release(&mut pool);
        }
    }

    #[test]
    fn a_received_frame_is_sent_from_where_it_lies() {
        let mut pool = Pool::new(64);
        for len in [64, 3840, 4200, 8900] {
            let frame = Frame::from_octets(&octets(len), &mut pool).unwrap();
            let expected: Vec<Segment> = segments(&frame).collect();
            let gathered = Gathered::of(frame, Sending::Copying, &mut pool).unwrap();
            assert_eq!(gathered.pieces(), expected);
            gathered.release(&mut pool);
        }
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn without_free_chunks_a_copy_is_gathered() {
        let mut pool = Pool::new(1);
        let body = Frame::from_octets(&octets(1000), &mut pool).unwrap();
        let copy = copy_of(&body, &mut pool);
        let gathered = Gathered::of(copy, Sending::Copying, &mut pool).unwrap();
        assert_eq!(gathered.pieces().len(), 3);
        gathered.release(&mut pool);
        body.release(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }
}
