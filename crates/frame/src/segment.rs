//! Segments: stretches of octets in chunks of a [`Pool`].

use crate::pool::{Chunk, Pool};
use std::num::NonZeroU64;

/// A stretch of octets in a chunk.
///
/// All of it is one word: chunk, start, length. Headers are pushed and pulled, and bodies made, right before frames are
/// moved; were chunk, start and length written one by one, the processor would have to wait for each before it can move
/// the whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Segment(u64);

impl Segment {
    /// The highest bit of the start, which no chunk is long enough to need, is always set: see [`Frame`](crate::Frame).
    pub(crate) const MARK: NonZeroU64 = NonZeroU64::new(1 << 31).expect("it is one");

    /// `len` octets of a chunk from offset `start`, both of which the chunk has.
    #[inline]
    pub fn new(chunk: Chunk, start: usize, len: usize) -> Self {
        debug_assert!(start + len <= 1 << 15);
        Segment(Self::MARK.get() | u64::from(chunk.number()) << 32 | (start as u64) << 16 | len as u64)
    }

    /// The first segment of a frame, of its word.
    #[inline]
    pub(crate) fn of_word(word: NonZeroU64) -> Self {
        Segment(word.get())
    }

    /// Its chunk.
    #[inline]
    pub fn chunk(self) -> Chunk {
        Chunk::of_number((self.0 >> 32) as u32)
    }

    /// Offset of its first octet in the chunk.
    #[inline]
    pub fn start(self) -> usize {
        (self.0 >> 16 & 0x7FFF) as usize
    }

    /// Its octets.
    #[inline]
    pub fn len(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }

    /// Whether it has no octet.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The frame after its first `octets`, which it must have.
    #[inline]
    pub fn behind(self, octets: usize) -> Self {
        Segment::new(self.chunk(), self.start() + octets, self.len() - octets)
    }

    /// The first `octets` of the segment, which it must have.
    #[inline]
    pub fn before(self, octets: usize) -> Self {
        Segment::new(self.chunk(), self.start(), octets)
    }

    /// Without its last `octets`, which it must have.
    #[inline]
    pub(crate) fn shorter(self, octets: usize) -> Self {
        Segment(self.0 - octets as u64)
    }

    /// With so many octets of the chunk more.
    #[inline]
    pub(crate) fn longer(self, octets: usize) -> Self {
        Segment(self.0 + octets as u64)
    }

    /// As the first segment of a frame.
    #[inline]
    pub(crate) fn word(self) -> NonZeroU64 {
        Self::MARK | self.0
    }

    /// The octets themselves.
    #[inline]
    pub fn octets(self, pool: &Pool) -> &[u8] {
        &pool.octets(self.chunk())[self.start()..][..self.len()]
    }

    /// The same for editing. A frame's first segment may be edited, its others only where it shares them with none.
    #[inline]
    pub fn octets_mut(self, pool: &mut Pool) -> &mut [u8] {
        &mut pool.octets_mut(self.chunk())[self.start()..][..self.len()]
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (chunk, start, len) = (self.chunk(), self.start(), self.len());
        f.debug_struct("Segment").field("chunk", &chunk).field("start", &start).field("len", &len).finish()
    }
}
