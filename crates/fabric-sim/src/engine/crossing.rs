//! Frames from one partition to another, each of which has a pool of its own: their octets and their layout.

use super::NEVER_NS;
use super::port::ArrivalTime;
use srdma_frame::{CHUNK_ROOM, Chunk, Frame, MAX_PIECES, Pool, Segment};

/// Segments of a frame at most.
const MAX_SEGMENTS: usize = MAX_PIECES - 1;

/// Frames from one partition to another, in the order in which they were sent.
pub(super) struct Parcel {
    /// The octets of all frames, except those of the page.
    octets: Vec<u8>,
    frames: Vec<Crossing>,
    first_ns: u64,
}

/// A frame without its octets.
struct Crossing {
    at: ArrivalTime,
    /// The receiving element, by its position in its partition.
    element: u32,
    segments: [Piece; MAX_SEGMENTS],
    count: u8,
    tail_len: u8,
    tail: [u8; 4],
}

/// A segment without its octets.
#[derive(Clone, Copy)]
struct Piece {
    start: u16,
    len: u16,
    kind: PieceKind,
}

/// Where a segment lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Small,
    Large,
    /// In the chunk that all partitions have.
    Page,
}

impl Default for Parcel {
    fn default() -> Self {
        Parcel { octets: Vec::new(), frames: Vec::new(), first_ns: NEVER_NS }
    }
}

impl Parcel {
    /// Arrival of the first frame.
    pub(super) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Adds a frame. `page` is the chunk of this pool that others have as well.
    pub(super) fn pack(&mut self, element: u32, at: ArrivalTime, frame: &Frame, pool: &Pool, page: Option<Chunk>) {
        self.first_ns = self.first_ns.min(at.time_ns());
        let mut segments = [Piece { start: 0, len: 0, kind: PieceKind::Small }; MAX_SEGMENTS];
        let all = std::iter::once(frame.first()).chain(frame.body().iter().copied());
        for (piece, segment) in segments.iter_mut().zip(all) {
            let kind = if page == Some(segment.chunk()) {
                PieceKind::Page
            } else {
                self.octets.extend_from_slice(segment.octets(pool));
                let is_large = pool.octets(segment.chunk()).len() >= CHUNK_ROOM;
                if is_large { PieceKind::Large } else { PieceKind::Small }
            };
            *piece = Piece { start: segment.start() as u16, len: segment.len() as u16, kind };
        }
        let mut tail = [0; 4];
        tail[..frame.tail().len()].copy_from_slice(frame.tail());
        let (count, tail_len) = (1 + frame.body().len() as u8, frame.tail().len() as u8);
        self.frames.push(Crossing { at, element, segments, count, tail_len, tail });
    }

    /// Removes all frames, and passes them with their elements and times to `take`, in order; `None` for one without
    /// room in the pool.
    pub(super) fn unpack(
        &mut self,
        pool: &mut Pool,
        page: Option<Chunk>,
        mut take: impl FnMut(usize, ArrivalTime, Option<Frame>),
    ) {
        let mut octets = &self.octets[..];
        for crossing in self.frames.drain(..) {
            let frame = crossing.frame(&mut octets, pool, page);
            take(crossing.element as usize, crossing.at, frame);
        }
        self.octets.clear();
        self.first_ns = NEVER_NS;
    }
}

impl Crossing {
    /// The frame in another pool. Takes its octets in any case.
    fn frame(&self, octets: &mut &[u8], pool: &mut Pool, page: Option<Chunk>) -> Option<Frame> {
        let mut frame: Option<Frame> = None;
        let mut is_complete = true;
        for piece in &self.segments[..usize::from(self.count)] {
            let segment = piece.segment(octets, pool, page);
            match (segment, &mut frame) {
                (Some(segment), Some(frame)) => _ = frame.append(segment),
                (Some(segment), None) if is_complete => frame = Some(Frame::of_segment(segment)),
                (Some(segment), None) => pool.release(segment.chunk()),
                (None, _) => is_complete = false,
            }
        }
        let frame = frame?;
        if !is_complete {
            frame.release(pool);
            return None;
        }
        if self.tail_len == 0 {
            return Some(frame);
        }
        let mut frame = frame.with_tail(self.tail);
        frame.truncate(frame.len() + usize::from(self.tail_len) - self.tail.len(), pool);
        Some(frame)
    }
}

impl Piece {
    fn segment(self, octets: &mut &[u8], pool: &mut Pool, page: Option<Chunk>) -> Option<Segment> {
        let (start, len) = (usize::from(self.start), usize::from(self.len));
        if self.kind == PieceKind::Page {
            let page = page?;
            pool.share(page, 1);
            return Some(Segment::new(page, start, len));
        }
        let (own, rest) = octets.split_at(len);
        *octets = rest;
        let chunk = if self.kind == PieceKind::Large { pool.allocate_large() } else { pool.allocate_small() }?;
        pool.octets_mut(chunk)[start..start + len].copy_from_slice(own);
        Some(Segment::new(chunk, start, len))
    }
}
