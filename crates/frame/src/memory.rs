//! Memory of chunks, some of which a kernel may write to: through pointers, so that no reference covers such a chunk.
#![allow(unsafe_code)]

use crate::pool::Page;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

/// Chunks that are allocated together, once.
pub(crate) const BLOCK: usize = 64;

/// Pages that are given up for a pool, for good.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<Page>,
    count: usize,
}

impl Pages {
    /// Pages at an address.
    ///
    /// # Safety
    ///
    /// They are initialised, stay valid, and are not used by others, except that a kernel reads and writes chunks that
    /// are neither free nor accessed through the pool meanwhile.
    pub unsafe fn new(start: NonNull<Page>, count: usize) -> Self {
        Pages { start, count }
    }

    /// Pages of zeros, which are never freed.
    #[cfg(test)]
    pub(crate) fn leak(count: usize) -> Self {
        let pages = Box::leak(vec![[0; size_of::<Page>()]; count].into_boxed_slice());
        Pages { start: NonNull::from(pages).cast(), count }
    }

    /// Address of the first one.
    pub fn start(&self) -> NonNull<Page> {
        self.start
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The first `count` pages, at most all, and the others.
    pub(crate) fn split_at(self, count: usize) -> (Self, Self) {
        let count = count.min(self.count);
        // SAFETY: at most one behind the last page.
        let rest = unsafe { self.start.add(count) };
        (Pages { start: self.start, count }, Pages { start: rest, count: self.count - count })
    }

    /// Blocks that lie one behind the other; what is left at the end belongs to none.
    pub(crate) fn blocks<const STRIDE: usize>(self) -> Vec<Block<STRIDE>> {
        let count = self.count * size_of::<Page>() / (STRIDE * BLOCK);
        // SAFETY: all blocks lie within the pages, and octets have no alignment.
        (0..count).map(|index| Block::Shared(unsafe { self.start.cast().add(index) })).collect()
    }
}

/// Memory for as many chunks. Both kinds are a pointer at the same place, so that reading one or the other costs no
/// branch.
#[derive(Debug)]
pub(crate) enum Block<const STRIDE: usize> {
    Owned(Box<[[u8; STRIDE]; BLOCK]>),
    /// Of [`Pages`].
    Shared(NonNull<[[u8; STRIDE]; BLOCK]>),
}

// SAFETY: pages are given up for the pool, which has each block once.
unsafe impl<const STRIDE: usize> Send for Block<STRIDE> {}
// SAFETY: octets are changed through `&mut` only.
unsafe impl<const STRIDE: usize> Sync for Block<STRIDE> {}

impl<const STRIDE: usize> Block<STRIDE> {
    /// Octets of zero.
    pub(crate) fn owned() -> Option<Self> {
        vec![[0; STRIDE]; BLOCK].into_boxed_slice().try_into().ok().map(Block::Owned)
    }

    #[inline]
    pub(crate) fn octets(&self, range: Range<usize>) -> &[u8] {
        let start: NonNull<u8> = match self {
            Block::Owned(strides) => NonNull::from(&**strides).cast(),
            Block::Shared(strides) => strides.cast(),
        };
        let len = Self::check(&range);
        // SAFETY: the range lies in the block, which does not change while `self` is borrowed: the contract of `Pages`.
        unsafe { slice::from_raw_parts(start.add(range.start).as_ptr(), len) }
    }

    #[inline]
    pub(crate) fn octets_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        let len = Self::check(&range);
        // SAFETY: as in `octets`; `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start_mut().add(range.start).as_ptr(), len) }
    }

    /// Two ranges at once, the second one to be written; `None` unless they are disjoint.
    #[inline]
    pub(crate) fn pair(&mut self, read: Range<usize>, write: Range<usize>) -> Option<(&[u8], &mut [u8])> {
        let (read_len, write_len) = (Self::check(&read), Self::check(&write));
        if read.start < write.end && write.start < read.end {
            return None;
        }
        let start = self.start_mut();
        // SAFETY: as in `octets_mut`; the ranges do not overlap.
        let read = unsafe { slice::from_raw_parts(start.add(read.start).as_ptr(), read_len) };
        // SAFETY: as above.
        let write = unsafe { slice::from_raw_parts_mut(start.add(write.start).as_ptr(), write_len) };
        Some((read, write))
    }

    #[inline]
    fn start_mut(&mut self) -> NonNull<u8> {
        match self {
            Block::Owned(strides) => NonNull::from(&mut **strides).cast(),
            Block::Shared(strides) => strides.cast(),
        }
    }

    /// Length of a range, which lies in a block.
    #[inline]
    fn check(range: &Range<usize>) -> usize {
        assert!(range.start <= range.end && range.end <= STRIDE * BLOCK, "{range:?} is outside of a block");
        range.end - range.start
    }
}
