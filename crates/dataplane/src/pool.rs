//! Where frames lie: chunks of memory, counted, handed out by number.
//!
//! A pool belongs to one thread: a simulation, or one data thread of a node. It is passed to every call that touches
//! frames, so that elements own none of it and a driver may lay its rings over it. Two sizes: large chunks, of which a
//! received frame takes one or two, and small ones for the heads of copies and for responses.

/// Octets in front of a received frame that are free for pushing headers.
pub const HEADROOM: usize = 256;

/// Octets of a large chunk that a received frame may fill: what AF_XDP leaves of 4,096.
pub const CHUNK_ROOM: usize = LARGE - HEADROOM;

const LARGE: usize = 4096;
const SMALL: usize = 640;

/// Chunks lie one cache line further apart than their size, or the headers of all of them would share a few sets of the
/// first-level cache.
const SPACER: usize = 64;

/// Chunks that are allocated together, once.
const BLOCK: usize = 64;

/// A chunk of a [`Pool`]: a number, no owner. Whoever holds one must give it back with [`Pool::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk(u32);

const SMALL_BIT: u32 = 1 << 31;

/// Counted chunks of two sizes.
#[derive(Debug)]
pub struct Pool {
    large: Arena<{ LARGE + SPACER }>,
    small: Arena<{ SMALL + SPACER }>,
}

/// Chunks of one size, each `STRIDE` octets behind the one before.
#[derive(Debug)]
struct Arena<const STRIDE: usize> {
    blocks: Vec<Box<[[u8; STRIDE]; BLOCK]>>,
    references: Vec<u32>,
    free: Vec<u32>,
    limit: usize,
}

impl Pool {
    /// A pool that grows to at most `limit` chunks of each size.
    pub fn new(limit: usize) -> Self {
        Pool { large: Arena::new(limit), small: Arena::new(limit) }
    }

    /// A large chunk, counted once; `None` when the pool is exhausted.
    pub fn allocate_large(&mut self) -> Option<Chunk> {
        self.large.allocate().map(Chunk)
    }

    /// A small chunk, counted once; `None` when the pool is exhausted.
    pub fn allocate_small(&mut self) -> Option<Chunk> {
        self.small.allocate().map(|index| Chunk(index | SMALL_BIT))
    }

    /// Counts `times` more holders of a chunk.
    #[inline]
    pub fn share(&mut self, chunk: Chunk, times: u32) {
        *self.references_mut(chunk) += times;
    }

    /// One holder less; the last one gives the chunk back.
    #[inline]
    pub fn release(&mut self, chunk: Chunk) {
        let references = self.references_mut(chunk);
        debug_assert!(*references > 0, "{chunk:?} released more often than held");
        *references -= 1;
        if *references == 0 {
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
    #[inline]
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

    /// Chunks that somebody holds.
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

/// Where a chunk is: its index among those of its size.
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
    fn new(limit: usize) -> Self {
        Arena { blocks: Vec::new(), references: Vec::new(), free: Vec::new(), limit: limit.min(SMALL_BIT as usize) }
    }

    #[inline]
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
        let first = self.references.len();
        let added = BLOCK.min(self.limit - first);
        if added == 0 {
            return None;
        }
        self.blocks.push(vec![[0; STRIDE]; BLOCK].into_boxed_slice().try_into().ok()?);
        self.references.resize(first + added, 0);
        self.free.reserve(self.references.len());
        self.free.extend((first..first + added).rev().map(|index| index as u32));
        Some(())
    }

    #[inline]
    fn octets(&self, index: usize) -> &[u8] {
        &self.blocks[index / BLOCK][index % BLOCK][..STRIDE - SPACER]
    }

    #[inline]
    fn octets_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.blocks[index / BLOCK][index % BLOCK][..STRIDE - SPACER]
    }

    fn pair(&mut self, read: usize, write: usize) -> Option<(&[u8], &mut [u8])> {
        if read / BLOCK == write / BLOCK {
            let block = &mut self.blocks[read / BLOCK];
            let [read, write] = block.get_disjoint_mut([read % BLOCK, write % BLOCK]).ok()?;
            return Some((&read[..STRIDE - SPACER], &mut write[..STRIDE - SPACER]));
        }
        let [read_block, write_block] = self.blocks.get_disjoint_mut([read / BLOCK, write / BLOCK]).ok()?;
        Some((&read_block[read % BLOCK][..STRIDE - SPACER], &mut write_block[write % BLOCK][..STRIDE - SPACER]))
    }

    fn in_use(&self) -> usize {
        self.references.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_goes_back_with_its_last_holder() {
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
    fn an_exhausted_pool_says_so() {
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
}
