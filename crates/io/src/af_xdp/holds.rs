//! Kernel-owned chunks, with the number of entries of each.

use super::retired::{Held, release};
use super::umem::Umem;
use srdma_frame::{Chunk, Page, Pool};
use std::ptr::NonNull;

/// A count for each chunk of the memory: so that every chunk is freed when the sockets are closed, regardless of its
/// state in the kernel.
#[derive(Debug)]
pub(super) struct Holds {
    /// Address of the memory.
    start: NonNull<Page>,
    counts: Vec<u16>,
}

// SAFETY: the address is compared only.
unsafe impl Send for Holds {}

/// Chunks begin at multiples of it.
const GRAIN: usize = 64;

impl Holds {
    /// For the chunks of a memory.
    pub(super) fn new(umem: &Umem) -> Self {
        Holds { start: umem.start(), counts: vec![0; umem.pages() * size_of::<Page>() / GRAIN] }
    }

    /// Counts an entry in a chunk, whose offset it returns; `None` for a pool that lies elsewhere.
    #[inline]
    pub(super) fn give(&mut self, chunk: Chunk, pool: &Pool) -> Option<u64> {
        let offset = pool.offset_of(chunk).filter(|_| pool.is_over(self.start))?;
        debug_assert_eq!(offset as usize % GRAIN, 0);
        *self.counts.get_mut(offset as usize / GRAIN)? += 1;
        Some(offset)
    }

    /// The chunk of a returned entry; `None` when it was not kernel-owned.
    #[inline]
    pub(super) fn take_back(&mut self, address: u64, pool: &Pool) -> Option<Chunk> {
        let chunk = pool.chunk_at(address).filter(|_| pool.is_over(self.start))?;
        let count = self.counts.get_mut(pool.offset_of(chunk)? as usize / GRAIN)?;
        *count = count.checked_sub(1)?;
        Some(chunk)
    }

    /// All entries, which are no longer counted here.
    pub(super) fn take_all(&mut self) -> Vec<Held> {
        let held = |(index, count): (usize, &mut u16)| {
            let count = std::mem::take(count);
            (count > 0).then_some(((index * GRAIN) as u64, count))
        };
        self.counts.iter_mut().enumerate().filter_map(held).collect()
    }

    /// Gives all of it back to the pool.
    pub(super) fn release_all(&mut self, pool: &mut Pool) {
        let held = self.take_all();
        if pool.is_over(self.start) {
            release(held, pool);
        }
    }
}
