//! Memory of frames: chunks, reference-counted, allocated by number.
//!
//! A pool belongs to one thread: a simulation, or one data thread of a node. It is passed to every call that touches
//! frames, so that elements own none of it and a driver may lay its rings over it. Two sizes: large chunks, of which a
//! received frame takes one or two, and small ones for the heads of copies and for responses.

use crate::memory::{BLOCK, Block, Pages};
use std::ops::Range;
use std::ptr::NonNull;

/// Octets in front of a received frame that are free for pushing headers.
pub const HEADROOM: usize = 256;

/// Octets of a large chunk that a received frame may fill: the part of 4,096 that AF_XDP leaves.
pub const CHUNK_ROOM: usize = LARGE - HEADROOM;

/// A page of memory, all of which a large chunk of a [`Pool::over`] pages is.
pub type Page = [u8; LARGE];

const LARGE: usize = 4096;
const SMALL: usize = 640;

/// Chunks lie one cache line further apart than their size, or the headers of all of them would share a few sets of the
/// first-level cache. Large chunks over pages cannot: AF_XDP wants each to be a page.
const SPACER: usize = 64;

/// Mask of the bits that offsets of a block's chunks may have.
const ANYWHERE: usize = !0;
const AT_PAGES: usize = !(LARGE - 1);

/// Of the pages that a pool is made over, small chunks get one in so many.
const SMALL_SHARE: usize = 4;

/// A chunk of a [`Pool`], by number. It is not freed on drop: its holder calls [`Pool::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk(u32);

const SMALL_BIT: u32 = 1 << 31;

/// Counted chunks of two sizes.
#[derive(Debug)]
pub struct Pool {
    large: Arena<{ LARGE + SPACER }>,
    small: Arena<{ SMALL + SPACER }>,
    /// Address of the pages that the pool was made over.
    pages: Option<usize>,
}

/// Chunks of one size.
#[derive(Debug)]
struct Arena<const STRIDE: usize> {
    blocks: Vec<Block<STRIDE>>,
    references: Vec<u32>,
    free: Vec<u32>,
    /// Number of chunks, free or not.
    chunks: usize,
    limit: usize,
    /// Bits of an offset in a block at which chunks begin: all, or those of pages.
    start_mask: usize,
    /// Offset of the blocks in the memory that the pool was made over.
    first_offset: Option<usize>,
}

impl Pool {
    /// A pool that grows to at most `limit` chunks of each size.
    pub fn new(limit: usize) -> Self {
        Pool { large: Arena::new(limit, ANYWHERE), small: Arena::new(limit, ANYWHERE), pages: None }
    }

    /// A pool whose chunks lie in these pages, so that a driver can name them to the kernel by their
    /// [offset](Pool::offset_of). A large chunk is a page, and no small one crosses into the next.
    /// About one page in four holds small chunks; of the rest one in 65 is left over.
    pub fn over(pages: Pages) -> Self {
        let address = pages.start().addr().get();
        let small_pages = (pages.count() / SMALL_SHARE).next_multiple_of(BLOCK * (SMALL + SPACER) / LARGE);
        let (small, large) = pages.split_at(small_pages);
        let large_offset = small.count() * LARGE;
        Pool {
            large: Arena::over(large, large_offset, AT_PAGES),
            small: Arena::over(small, 0, ANYWHERE),
            pages: Some(address),
        }
    }

    /// Whether the pool was made over the pages at an address.
    #[inline]
    pub fn is_over(&self, start: NonNull<Page>) -> bool {
        self.pages == Some(start.addr().get())
    }

    /// Offset of a chunk in the memory that the pool was made over.
    #[inline]
    pub fn offset_of(&self, chunk: Chunk) -> Option<u64> {
        match chunk.place() {
            Place::Large(index) => self.large.offset_of(index),
            Place::Small(index) => self.small.offset_of(index),
        }
    }

    /// The chunk that contains an offset; `None` if there is none.
    #[inline]
    pub fn chunk_at(&self, offset: u64) -> Option<Chunk> {
        let offset = usize::try_from(offset).ok()?;
        match self.large.number_at(offset) {
            Some(number) => Some(Chunk(number)),
            None => self.small.number_at(offset).map(|number| Chunk(number | SMALL_BIT)),
        }
    }

    /// A large chunk, counted once; `None` when the pool is exhausted.
    pub fn allocate_large(&mut self) -> Option<Chunk> {
        self.large.allocate().map(Chunk)
    }

    /// A small chunk, counted once; `None` when the pool is exhausted.
    #[inline(always)]
    pub fn allocate_small(&mut self) -> Option<Chunk> {
        self.small.allocate().map(|index| Chunk(index | SMALL_BIT))
    }

    /// Counts `times` more holders of a chunk.
    #[inline]
    pub fn share(&mut self, chunk: Chunk, times: u32) {
        *self.references_mut(chunk) += times;
    }

    /// One holder less; the last one gives the chunk back. A chunk that is free stays so.
    #[inline]
    pub fn release(&mut self, chunk: Chunk) {
        let references = self.references_mut(chunk);
        debug_assert!(*references > 0, "{chunk:?} released more often than held");
        if *references > 1 {
            *references -= 1;
        } else if *references == 1 {
            *references = 0;
            match chunk.place() {
                Place::Large(index) => self.large.free.push(index as u32),
                Place::Small(index) => self.small.free.push(index as u32),
            }
        }
    }

    /// Whether the caller's is the only hold on a chunk, so that it may be edited.
    #[inline]
    pub fn is_exclusive(&self, chunk: Chunk) -> bool {
        match chunk.place() {
            Place::Large(index) => self.large.references[index] == 1,
            Place::Small(index) => self.small.references[index] == 1,
        }
    }

    /// All octets of a chunk.
    #[inline]
    pub fn octets(&self, chunk: Chunk) -> &[u8] {
        match chunk.place() {
            Place::Large(index) => self.large.octets(index),
            Place::Small(index) => self.small.octets(index),
        }
    }

    /// All octets of a chunk, for editing.
    #[inline(always)]
    pub fn octets_mut(&mut self, chunk: Chunk) -> &mut [u8] {
        match chunk.place() {
            Place::Large(index) => self.large.octets_mut(index),
            Place::Small(index) => self.small.octets_mut(index),
        }
    }

    /// Two different chunks at once: one to read, one to write. `None` when they are the same.
    #[inline]
    pub fn octets_pair(&mut self, read: Chunk, write: Chunk) -> Option<(&[u8], &mut [u8])> {
        match (read.place(), write.place()) {
            (Place::Large(read), Place::Small(write)) => Some((self.large.octets(read), self.small.octets_mut(write))),
            (Place::Small(read), Place::Large(write)) => Some((self.small.octets(read), self.large.octets_mut(write))),
            (Place::Large(read), Place::Large(write)) => self.large.pair(read, write),
            (Place::Small(read), Place::Small(write)) => self.small.pair(read, write),
        }
    }

    /// Chunks that are allocated.
    pub fn in_use(&self) -> usize {
        self.large.in_use() + self.small.in_use()
    }

    #[inline]
    fn references_mut(&mut self, chunk: Chunk) -> &mut u32 {
        match chunk.place() {
            Place::Large(index) => &mut self.large.references[index],
            Place::Small(index) => &mut self.small.references[index],
        }
    }
}

/// Place of a chunk: its index among those of its size.
enum Place {
    Large(usize),
    Small(usize),
}

impl Chunk {
    /// The number, whose meaning is the pool's own.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The chunk whose [`Chunk::number`] this is.
    #[inline]
    pub(crate) fn of_number(number: u32) -> Self {
        Chunk(number)
    }

    #[inline]
    fn place(self) -> Place {
        if self.0 & SMALL_BIT == 0 {
            Place::Large(self.0 as usize)
        } else {
            Place::Small((self.0 ^ SMALL_BIT) as usize)
        }
    }
}

impl<const STRIDE: usize> Arena<STRIDE> {
    const SIZE: usize = STRIDE - SPACER;

    fn new(limit: usize, start_mask: usize) -> Self {
        let limit = limit.min(SMALL_BIT as usize);
        let (blocks, references, free) = (Vec::new(), Vec::new(), Vec::new());
        Arena { blocks, references, free, chunks: 0, limit, start_mask, first_offset: None }
    }

    fn over(pages: Pages, first_offset: usize, start_mask: usize) -> Self {
        let mut arena = Arena::new(0, start_mask);
        arena.first_offset = Some(first_offset);
        arena.blocks = pages.blocks();
        let places = arena.blocks.len() * BLOCK;
        arena.references = vec![0; places];
        let mut free: Vec<u32> =
            (0..places).filter(|index| arena.is_in_page(*index)).map(|index| index as u32).collect();
        free.reverse();
        arena.chunks = free.len();
        arena.limit = free.len();
        arena.free = free;
        arena
    }

    #[inline(always)]
    fn allocate(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow()?;
        }
        let index = self.free.pop()?;
        self.references[index as usize] = 1;
        Some(index)
    }

    #[cold]
    fn grow(&mut self) -> Option<()> {
        let first = self.chunks;
        let added = BLOCK.min(self.limit - first);
        if added == 0 {
            return None;
        }
        self.blocks.push(Block::owned()?);
        self.chunks += added;
        self.references.resize(self.chunks, 0);
        self.free.reserve(self.chunks);
        self.free.extend((first..first + added).rev().map(|index| index as u32));
        Some(())
    }

    /// Octets of a chunk in its block. A page is found by rounding down: the spacers before it are less than a page.
    #[inline]
    fn range(&self, index: usize) -> Range<usize> {
        let start = (index % BLOCK * STRIDE) & self.start_mask;
        start..start + Self::SIZE
    }

    #[inline]
    fn octets(&self, index: usize) -> &[u8] {
        self.blocks[index / BLOCK].octets(self.range(index))
    }

    #[inline]
    fn octets_mut(&mut self, index: usize) -> &mut [u8] {
        let range = self.range(index);
        self.blocks[index / BLOCK].octets_mut(range)
    }

    fn pair(&mut self, read: usize, write: usize) -> Option<(&[u8], &mut [u8])> {
        let (read_range, write_range) = (self.range(read), self.range(write));
        if read / BLOCK == write / BLOCK {
            return self.blocks[read / BLOCK].pair(read_range, write_range);
        }
        let [read_block, write_block] = self.blocks.get_disjoint_mut([read / BLOCK, write / BLOCK]).ok()?;
        Some((read_block.octets(read_range), write_block.octets_mut(write_range)))
    }

    #[inline]
    fn offset_of(&self, index: usize) -> Option<u64> {
        let in_blocks = index / BLOCK * (BLOCK * STRIDE) + self.range(index).start;
        Some((self.first_offset? + in_blocks) as u64)
    }

    /// The number of the chunk at an offset of the memory.
    #[inline]
    fn number_at(&self, offset: usize) -> Option<u32> {
        let offset = offset.checked_sub(self.first_offset?)?;
        let block = offset / (BLOCK * STRIDE);
        let place = offset % (BLOCK * STRIDE) / if self.start_mask == AT_PAGES { LARGE } else { STRIDE };
        let index = block * BLOCK + place;
        (block < self.blocks.len() && place < BLOCK && self.is_in_page(index)).then_some(index as u32)
    }

    /// Whether a chunk does not cross into another page.
    #[inline]
    fn is_in_page(&self, index: usize) -> bool {
        self.range(index).start % LARGE + Self::SIZE <= LARGE
    }

    fn in_use(&self) -> usize {
        self.chunks - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_freed_with_its_last_reference() {
        let mut pool = Pool::new(64);
        let chunk = pool.allocate_large().unwrap();
        assert!(pool.is_exclusive(chunk));
        pool.share(chunk, 2);
        assert!(!pool.is_exclusive(chunk));
        pool.release(chunk);
        pool.release(chunk);
        assert_eq!(pool.in_use(), 1);
        pool.release(chunk);
        assert_eq!(pool.in_use(), 0);
        assert_eq!(pool.allocate_large(), Some(chunk));
    }

    #[test]
    fn an_exhausted_pool_returns_none() {
        let mut pool = Pool::new(3);
        assert_eq!((0..9).filter_map(|_| pool.allocate_small()).count(), 3);
        assert_eq!((0..9).filter_map(|_| pool.allocate_large()).count(), 3);
    }

    #[test]
    fn chunks_do_not_overlap() {
        let mut pool = Pool::new(200);
        let chunks: Vec<Chunk> = (0..130).map(|_| pool.allocate_small().unwrap()).collect();
        for (number, chunk) in chunks.iter().enumerate() {
            pool.octets_mut(*chunk).fill(number as u8);
        }
        for (number, chunk) in chunks.iter().enumerate() {
            assert!(pool.octets(*chunk).iter().all(|octet| *octet == number as u8));
        }
        let (read, write) = pool.octets_pair(chunks[1], chunks[129]).unwrap();
        write.copy_from_slice(read);
        assert_eq!(pool.octets(chunks[129])[0], 1);
        assert!(pool.octets_pair(chunks[5], chunks[5]).is_none());
    }
    #[test]
    fn chunks_over_pages_are_found_by_their_offsets() {
        let mut pool = Pool::over(Pages::leak(11 + 65));
        let small = std::iter::from_fn(|| pool.allocate_small()).collect::<Vec<Chunk>>();
        let large = std::iter::from_fn(|| pool.allocate_large()).collect::<Vec<Chunk>>();
        assert_eq!((small.len(), large.len()), (2 * 55, 0));
        small.iter().for_each(|chunk| pool.release(*chunk));

        let mut pool = Pool::over(Pages::leak(33 + 65));
        let small = std::iter::from_fn(|| pool.allocate_small()).collect::<Vec<Chunk>>();
        let large = std::iter::from_fn(|| pool.allocate_large()).collect::<Vec<Chunk>>();
        assert_eq!((small.len(), large.len()), (3 * 55, 64));
        assert_eq!(pool.in_use(), 3 * 55 + 64);
        for (number, chunk) in small.iter().chain(&large).enumerate() {
            let start = pool.offset_of(*chunk).unwrap() as usize;
            let len = pool.octets_mut(*chunk).len();
            assert_eq!(start / LARGE, (start + len - 1) / LARGE);
            assert_eq!(pool.chunk_at(start as u64), Some(*chunk));
            assert_eq!(pool.chunk_at((start + len - 1) as u64), Some(*chunk));
            pool.octets_mut(*chunk).fill(number as u8);
        }
        assert!(large.iter().all(|chunk| (pool.offset_of(*chunk).unwrap() as usize).is_multiple_of(LARGE)));
        for offset in [5 * 704, 97 * LARGE, 98 * LARGE] {
            assert_eq!(pool.chunk_at(offset as u64), None);
        }
        for (number, chunk) in small.iter().chain(&large).enumerate() {
            assert!(pool.octets(*chunk).iter().all(|octet| *octet == number as u8));
            pool.release(*chunk);
        }
        assert_eq!(pool.in_use(), 0);
    }

    /// A chunk that is released too often is not given to two holders.
    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "released more often than held"))]
    fn a_free_chunk_stays_free() {
        let mut pool = Pool::new(64);
        let chunk = pool.allocate_large().unwrap();
        pool.release(chunk);
        pool.release(chunk);
        assert_eq!(pool.in_use(), 0);
        assert_ne!(pool.allocate_large(), pool.allocate_large());
    }

    #[test]
    fn chunks_of_one_block_are_read_and_written_at_once() {
        let mut pool = Pool::over(Pages::leak(33 + 65));
        let (first, second) = (pool.allocate_large().unwrap(), pool.allocate_large().unwrap());
        pool.octets_mut(first).fill(7);
        let (read, write) = pool.octets_pair(first, second).unwrap();
        write.copy_from_slice(read);
        assert!(pool.octets(second).iter().all(|octet| *octet == 7));
        assert!(pool.octets_pair(first, first).is_none());
    }

    #[test]
    fn a_pool_that_grows_has_no_offsets() {
        let mut pool = Pool::new(64);
        let chunk = pool.allocate_large().unwrap();
        assert_eq!(pool.offset_of(chunk), None);
        assert_eq!(pool.chunk_at(0), None);
    }
}
