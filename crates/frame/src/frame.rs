//! Frames: octets in segments of a [`Pool`].
//!
//! ```text
//!  first segment: all headers              body: shared by all copies       tail: the new ICRC
//! ┌──────────┬──────────────────────┐   ┌──────────────┐ ┌──────────┐      ┌────┐
//! │ headroom │ Ethernet IPv6 SRH …  │ → │ payload      │→│ …        │   →  │    │
//! └──────────┴──────────────────────┘   └──────────────┘ └──────────┘      └────┘
//! ```
//!
//! A received frame has its headers in the first segment, up to a span of [`HEADER_SPAN`] octets, and what does not fit
//! a chunk in further ones. A copy made by replication has a head of its own, a body that it shares with the other
//! copies, and a tail.

use crate::body::Body;
use crate::cursor::Cursor;
use crate::pool::{CHUNK_ROOM, HEADROOM, Pool};
use crate::segment::Segment;
use std::num::NonZeroU64;

/// Octets of a received frame that lie in its first segment, however long the frame is.
pub const HEADER_SPAN: usize = 2304;

const _: () = assert!(HEADER_SPAN <= CHUNK_ROOM);

/// Segments after the first.
pub(crate) const MAX_BODY: usize = 3;

/// Pieces of a frame at most: head, body, tail.
pub const MAX_PIECES: usize = MAX_BODY + 2;

const _: () = assert!(size_of::<Option<Frame>>() == size_of::<Frame>());

/// A frame. It holds its chunks: it must end in [`Frame::release`], or be sent on.
///
/// The first segment stands last, where a move of the whole takes it as the one word that it was written as. It alone
/// is never zero, so that a place for a frame that may be empty is no longer than a frame: whether it is empty is seen
/// in that word, and the others are moved in pairs, as they were written. A load waits for the stores before it unless
/// one of them has all of its octets.
#[derive(Debug)]
#[must_use]
#[repr(C)]
pub struct Frame {
    body: [Segment; MAX_BODY],
    end: End,
    first: NonZeroU64,
}

/// The octets behind the segments, how many of the segments count, and how many of the octets: one word too, made and
/// changed as a whole.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct End([u8; 8]);

impl End {
    #[inline(always)]
    fn new(body_segments: u8, tail: Option<[u8; 4]>) -> Self {
        let tail = tail.map_or(0, |tail| 4 << 40 | u64::from(u32::from_le_bytes(tail)));
        End((u64::from(body_segments) << 32 | tail).to_le_bytes())
    }

    #[inline(always)]
    fn body_segments(&self) -> usize {
        usize::from(self.0[4])
    }

    #[inline(always)]
    fn tail(&self) -> &[u8] {
        &self.0[..usize::from(self.0[5])]
    }

    #[inline]
    fn set(&mut self, body_segments: usize, tail_len: usize) {
        let tail = u64::from_le_bytes(self.0) & 0xFFFF_FFFF;
        *self = End((tail | (body_segments as u64) << 32 | (tail_len as u64) << 40).to_le_bytes());
    }
}

impl Frame {
    /// A frame of these octets, laid out as a driver delivers it; `None` when the pool is exhausted or the frame longer
    /// than segments can hold.
    pub fn from_octets(octets: &[u8], pool: &mut Pool) -> Option<Self> {
        let frame = Frame::with_layout(octets.len(), pool)?;
        Cursor::of(&frame).write(octets, pool);
        Some(frame)
    }

    /// A frame of a few hundred octets, in a small chunk: a response. `None` when the pool is exhausted.
    pub fn small(octets: &[u8], pool: &mut Pool) -> Option<Self> {
        let chunk = pool.allocate_small()?;
        pool.octets_mut(chunk)[HEADROOM..HEADROOM + octets.len()].copy_from_slice(octets);
        Some(Frame::of_segment(Segment::new(chunk, HEADROOM, octets.len())))
    }

    /// A frame of one segment, whose chunk it takes over.
    pub fn of_segment(first: Segment) -> Self {
        Frame { first: first.word(), body: [first; MAX_BODY], end: End::new(0, None) }
    }

    /// A copy: a head, whose chunk it takes over, a share of a body that the caller has [counted](Body::share), and a
    /// tail.
    #[inline]
    pub fn copy_of(head: Segment, body: Body, tail: Option<[u8; 4]>) -> Self {
        let (body, body_segments) = body.parts();
        Frame { body, end: End::new(body_segments, tail), first: head.word() }
    }

    /// The same octets, laid out as a driver delivers them: the effect of crossing a wire. A frame with that layout is
    /// returned unchanged.
    pub fn across_wire(self, pool: &mut Pool) -> Option<Self> {
        let first = self.first();
        let contiguous = first.len() >= HEADER_SPAN || self.end.body_segments() == 0;
        let roomy = first.start() >= HEADROOM;
        if self.tail().is_empty() && contiguous && roomy && pool.is_exclusive(first.chunk()) {
            return Some(self);
        }
        let copy = self.duplicate(pool);
        self.release(pool);
        copy
    }

    /// A separate frame with the same octets, laid out as a driver delivers it.
    pub fn duplicate(&self, pool: &mut Pool) -> Option<Self> {
        let copy = Frame::with_layout(self.len(), pool)?;
        let mut place = Cursor::of(&copy);
        for segment in self.all_segments() {
            place.copy(segment, pool);
        }
        place.write(self.tail(), pool);
        Some(copy)
    }

    /// Octets of the whole frame, without FCS.
    #[inline]
    pub fn len(&self) -> usize {
        let mut len = self.head_len() + self.tail().len();
        for segment in self.body() {
            len += segment.len();
        }
        len
    }

    /// Whether the frame has no octet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets of the first segment.
    #[inline]
    pub fn head_len(&self) -> usize {
        self.first().len()
    }

    /// The first segment.
    #[inline]
    pub fn head<'p>(&self, pool: &'p Pool) -> &'p [u8] {
        self.first().octets(pool)
    }

    /// The first segment, for editing.
    #[inline]
    pub fn head_mut<'p>(&mut self, pool: &'p mut Pool) -> &'p mut [u8] {
        self.first().octets_mut(pool)
    }

    /// The frame with four octets behind its last segment, as a copy has its new ICRC there.
    pub fn with_tail(mut self, tail: [u8; 4]) -> Self {
        self.set_tail(tail);
        self
    }

    /// Puts four octets behind the last segment, in place of the tail if there is one.
    pub fn set_tail(&mut self, tail: [u8; 4]) {
        self.end = End::new(self.end.body_segments() as u8, Some(tail));
    }

    /// The segment that the frame begins with.
    #[inline]
    pub fn first(&self) -> Segment {
        Segment::of_word(self.first)
    }

    /// The segments after the first.
    #[inline]
    pub fn body(&self) -> &[Segment] {
        &self.body[..self.end.body_segments()]
    }

    /// The segments after the first and how many of them count.
    #[inline(always)]
    pub(crate) fn body_parts(&self) -> ([Segment; MAX_BODY], u8) {
        (self.body, self.end.body_segments() as u8)
    }

    /// The octets that follow the last segment.
    #[inline]
    pub fn tail(&self) -> &[u8] {
        self.end.tail()
    }

    /// All octets, piece by piece.
    pub fn pieces<'p>(&'p self, pool: &'p Pool) -> impl Iterator<Item = &'p [u8]> {
        self.all_segments().map(|segment| segment.octets(pool)).chain([self.tail()])
    }

    /// Copies all octets to the front of `into`; returns how many they are, or `None` when they do not fit. What is
    /// behind them in `into` may be overwritten too: a short head is copied in moves of a fixed length.
    #[inline]
    pub fn copy_to(&self, into: &mut [u8], pool: &Pool) -> Option<usize> {
        const SHORT: usize = 96;
        let first = self.first();
        let from = pool.octets(first.chunk()).get(first.start()..)?;
        match (from.first_chunk::<SHORT>(), into.first_chunk_mut::<SHORT>()) {
            (Some(from), Some(place)) if first.len() <= SHORT => *place = *from,
            _ => into.get_mut(..first.len())?.copy_from_slice(from.get(..first.len())?),
        }
        let mut len = first.len();
        for segment in self.body() {
            into.get_mut(len..)?.get_mut(..segment.len())?.copy_from_slice(segment.octets(pool));
            len += segment.len();
        }
        let tail = self.tail();
        match (<&[u8; 4]>::try_from(tail), into.get_mut(len..).and_then(|rest| rest.first_chunk_mut())) {
            (Ok(tail), Some(place)) => *place = *tail,
            _ => into.get_mut(len..)?.get_mut(..tail.len())?.copy_from_slice(tail),
        }
        Some(len + tail.len())
    }

    /// Copies the octets from `at` on, as many as `into` holds; returns how many they are.
    pub fn copy_range(&self, at: usize, into: &mut [u8], pool: &Pool) -> usize {
        let (mut skip, mut done) = (at, 0);
        for piece in self.pieces(pool) {
            let Some(octets) = piece.get(skip..) else {
                skip -= piece.len();
                continue;
            };
            skip = 0;
            let take = octets.len().min(into.len() - done);
            into[done..done + take].copy_from_slice(&octets[..take]);
            done += take;
        }
        done
    }

    /// All octets in one piece, for tests and captures.
    pub fn to_vec(&self, pool: &Pool) -> Vec<u8> {
        self.pieces(pool).collect::<Vec<_>>().concat()
    }

    /// Removes `octets` from the front of the first segment. The caller guarantees that they are there.
    #[inline]
    pub fn pull(&mut self, octets: usize) {
        self.first = self.first().behind(octets).word();
    }

    /// Adds `octets` to the front of the first segment; `false` when the headroom is less.
    #[inline]
    pub fn push(&mut self, octets: usize) -> bool {
        let first = self.first();
        let Some(start) = first.start().checked_sub(octets) else {
            return false;
        };
        self.first = Segment::new(first.chunk(), start, first.len() + octets).word();
        true
    }

    /// Cuts the frame behind `len` octets, when it is longer.
    pub fn truncate(&mut self, len: usize, pool: &mut Pool) {
        let mut excess = self.len().saturating_sub(len);
        let from_tail = excess.min(self.tail().len());
        self.end.set(self.end.body_segments(), self.tail().len() - from_tail);
        excess -= from_tail;
        while excess > 0 && self.end.body_segments() > 0 {
            let last = &mut self.body[self.end.body_segments() - 1];
            let cut = excess.min(last.len());
            *last = Segment::new(last.chunk(), last.start(), last.len() - cut);
            excess -= cut;
            if last.is_empty() {
                pool.release(last.chunk());
                self.end.set(self.end.body_segments() - 1, self.tail().len());
            }
        }
        let first = self.first();
        self.first = Segment::new(first.chunk(), first.start(), first.len() - excess).word();
    }

    /// The four octets at the end, wherever they lie; `None` when the frame is shorter.
    #[inline]
    pub fn last_four(&self, pool: &Pool) -> Option<[u8; 4]> {
        let last = self.body().last().copied().unwrap_or(self.first());
        match last.octets(pool).last_chunk() {
            Some(octets) if self.tail().is_empty() => Some(*octets),
            _ => self.gather_last_four(pool),
        }
    }

    /// Cuts so many octets off the end; those that there are, when the frame is shorter.
    #[inline(always)]
    pub fn cut(&mut self, octets: usize, pool: &mut Pool) {
        let last = self.body().last().copied().unwrap_or(self.first());
        if !self.tail().is_empty() || last.len() <= octets {
            return self.truncate(self.len().saturating_sub(octets), pool);
        }
        self.set_last(last.shorter(octets));
    }

    #[inline(always)]
    fn set_last(&mut self, segment: Segment) {
        match self.end.body_segments().checked_sub(1) {
            Some(index) => self.body[index] = segment,
            None => self.first = segment.word(),
        }
    }

    /// Adds four octets behind the last segment, if its chunk has room for them and the frame shares it with none;
    /// `false`, and nothing changed, otherwise. The frame must have no tail.
    #[inline(always)]
    pub fn put_last_four(&mut self, octets: [u8; 4], pool: &mut Pool) -> bool {
        let last = self.body().last().copied().unwrap_or(self.first());
        let end = last.start() + last.len();
        if !self.tail().is_empty() || !pool.is_exclusive(last.chunk()) {
            return false;
        }
        let Some(place) = pool.octets_mut(last.chunk()).get_mut(end..).and_then(|behind| behind.first_chunk_mut())
        else {
            return false;
        };
        *place = octets;
        self.set_last(last.longer(octets.len()));
        true
    }

    #[cold]
    fn gather_last_four(&self, pool: &Pool) -> Option<[u8; 4]> {
        let mut octets = [0; 4];
        let mut missing = 4;
        let body = self.body().iter().rev().copied().chain([self.first()]).map(|segment| segment.octets(pool));
        for piece in std::iter::once(self.tail()).chain(body) {
            let take = missing.min(piece.len());
            octets[missing - take..missing].copy_from_slice(&piece[piece.len() - take..]);
            missing -= take;
            if missing == 0 {
                return Some(octets);
            }
        }
        None
    }

    /// Adds a segment behind the others, which must have no tail yet; `false` when there are too many. The segment's
    /// hold on its chunk becomes the frame's.
    #[inline]
    pub fn append(&mut self, segment: Segment) -> bool {
        let Some(place) = self.body.get_mut(self.end.body_segments()) else {
            return false;
        };
        *place = segment;
        self.end.set(self.end.body_segments() + 1, self.tail().len());
        true
    }

    /// Gives back every chunk.
    #[inline(always)]
    pub fn release(self, pool: &mut Pool) {
        pool.release(self.first().chunk());
        for segment in self.body() {
            pool.release(segment.chunk());
        }
    }

    fn all_segments(&self) -> impl Iterator<Item = Segment> {
        std::iter::once(self.first()).chain(self.body().iter().copied())
    }

    /// An unwritten frame of `len` octets: as much as fits the first chunk, then further ones.
    fn with_layout(len: usize, pool: &mut Pool) -> Option<Self> {
        if len > CHUNK_ROOM * (1 + MAX_BODY) {
            return None;
        }
        let mut frame: Option<Frame> = None;
        let mut left = len;
        while left > 0 || frame.is_none() {
            let Some(chunk) = pool.allocate_large() else {
                if let Some(frame) = frame {
                    frame.release(pool);
                }
                return None;
            };
            let take = left.min(CHUNK_ROOM);
            left -= take;
            let segment = Segment::new(chunk, HEADROOM, take);
            match &mut frame {
                None => frame = Some(Frame::of_segment(segment)),
                Some(frame) => {
                    frame.append(segment);
                }
            }
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
    }

    #[test]
    fn frames_of_any_length_keep_their_octets() {
        let mut pool = Pool::new(64);
        for len in [0, 1, 60, 2304, CHUNK_ROOM - 1, CHUNK_ROOM, CHUNK_ROOM + 1, 4200, 9000, 4 * CHUNK_ROOM] {
            let frame = Frame::from_octets(&octets(len), &mut pool).unwrap();
            assert_eq!(frame.len(), len);
            assert_eq!(frame.to_vec(&pool), octets(len));
            let mut into = vec![0; len];
            assert_eq!(frame.copy_to(&mut into, &pool), Some(len));
            assert_eq!(into, octets(len));
            frame.release(&mut pool);
            assert_eq!(pool.in_use(), 0);
        }
        assert!(Frame::from_octets(&octets(4 * CHUNK_ROOM + 1), &mut pool).is_none());
    }

    #[test]
    fn a_copy_crosses_a_wire_as_one_frame() {
        let mut pool = Pool::new(64);
        let received = Frame::from_octets(&octets(4200), &mut pool).unwrap();
        let head = Frame::small(&[9; 54], &mut pool).unwrap().first();
        let body = Body::behind(&received, 0).unwrap();
        body.share(1, &mut pool);
        let copy = Frame::copy_of(head, body, Some([1, 2, 3, 4]));
        let mut expected = vec![9; 54];
        expected.extend(octets(4200));
        expected.extend([1, 2, 3, 4]);
        assert_eq!(copy.to_vec(&pool), expected);
        assert_eq!(copy.last_four(&pool), Some([1, 2, 3, 4]));
        for room in [expected.len(), 5000] {
            let mut into = vec![0; room];
            assert_eq!(copy.copy_to(&mut into, &pool), Some(expected.len()));
            assert_eq!(into[..expected.len()], expected);
        }
        assert!((0..expected.len()).step_by(7).all(|room| copy.copy_to(&mut vec![0; room], &pool).is_none()));
        for (at, room) in [(0, 10), (50, 10), (54 + CHUNK_ROOM - 1, 3), (4000, 5000), (expected.len(), 9), (9000, 9)] {
            let mut into = vec![0; room];
            let len = copy.copy_range(at, &mut into, &pool);
            let rest = expected.get(at..).unwrap_or(&[]);
            assert_eq!((len, &into[..len]), (room.min(rest.len()), &rest[..room.min(rest.len())]), "from {at}");
        }
        let arrived = copy.across_wire(&mut pool).unwrap();
        assert_eq!(arrived.to_vec(&pool), expected);
        assert_eq!(arrived.head_len(), CHUNK_ROOM);
        assert_eq!(received.to_vec(&pool), octets(4200));
        received.release(&mut pool);
        arrived.release(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn a_body_loses_its_end() {
        let mut pool = Pool::new(64);
        for len in [4, 5, 60, CHUNK_ROOM, CHUNK_ROOM + 2, CHUNK_ROOM + 4, CHUNK_ROOM + 9, 3 * CHUNK_ROOM] {
            let frame = Frame::from_octets(&octets(len), &mut pool).unwrap();
            let body = Body::behind(&frame, 0).unwrap();
            assert!(body.without_last(len + 1).is_none());
            let shorter = body.without_last(4).unwrap();
            let found: Vec<u8> = shorter.segments().flat_map(|segment| segment.octets(&pool).to_vec()).collect();
            assert_eq!(found, octets(len - 4), "of {len} octets");
            frame.release(&mut pool);
        }
    }

    #[test]
    fn the_end_is_cut_and_put_back() {
        let mut pool = Pool::new(64);
        for len in [4, 5, 60, CHUNK_ROOM, CHUNK_ROOM + 2, CHUNK_ROOM + 4, CHUNK_ROOM + 9, 9000] {
            let mut frame = Frame::from_octets(&octets(len), &mut pool).unwrap();
            frame.cut(4, &mut pool);
            let mut expected = octets(len - 4);
            assert_eq!(frame.to_vec(&pool), expected);
            // What is left of two of them ends less than four octets before the end of a chunk.
            let has_room = !matches!(len - CHUNK_ROOM.min(len), 2 | 4);
            assert_eq!(frame.put_last_four([1, 2, 3, 4], &mut pool), has_room);
            if has_room {
                expected.extend([1, 2, 3, 4]);
            }
            assert_eq!(frame.to_vec(&pool), expected);
            let last = frame.body().last().copied().unwrap_or(frame.first()).chunk();
            pool.share(last, 1);
            assert!(!frame.put_last_four([0; 4], &mut pool), "others have this chunk too");
            pool.release(last);
            frame.release(&mut pool);
            assert_eq!(pool.in_use(), 0);
        }
    }

    #[test]
    fn cutting_and_reading_the_end_works_across_segments() {
        let mut pool = Pool::new(64);
        for cut in [0, 1, 3, 4, 5, 359, 360, 361, 364, 1000] {
            let mut frame = Frame::from_octets(&octets(4200), &mut pool).unwrap();
            frame.truncate(4200 - cut, &mut pool);
            let expected = octets(4200 - cut);
            assert_eq!(frame.to_vec(&pool), expected);
            assert_eq!(frame.last_four(&pool).unwrap(), expected[expected.len() - 4..]);
            frame.release(&mut pool);
            assert_eq!(pool.in_use(), 0);
        }
    }
}
