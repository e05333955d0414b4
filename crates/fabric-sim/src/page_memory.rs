//! The memory of all hosts: one page of octets, repeated.
//!
//! All flows carry the same octets, so frames do not need copies of them: a frame has a head of its own and a
//! share of the page. Hosts still compute ICRCs over the octets and compare what they receive.

use srdma_frame::{Chunk, Frame, HEADROOM, Pool, Segment};
use srdma_random::Stream;
use srdma_rc::Memory;
use std::sync::Arc;

/// Size of the page in octets: the maximum payload of a packet.
pub(super) const PAGE_OCTETS: usize = 4096;

/// The octets of the page: random, so that no two parts are equal, and the same in every run.
pub(super) fn octets_of_page() -> Arc<[u8; PAGE_OCTETS]> {
    let mut octets = [0; PAGE_OCTETS];
    Stream::new(0, "page").fill(&mut octets);
    Arc::new(octets)
}

/// A memory region of any length that repeats the page: octet n is the octet of the page at
/// n mod `period`.
#[derive(Debug)]
pub(super) struct PageMemory {
    page: Arc<[u8; PAGE_OCTETS]>,
    /// Payload of a full packet: every packet's payload is a prefix of the page.
    period: usize,
    len: u64,
    written_octets: u64,
    differing_octets: u64,
}

impl PageMemory {
    /// A region of `len` octets. Packets begin at multiples of `period`, which is [`PAGE_OCTETS`] at most.
    pub(super) fn new(page: Arc<[u8; PAGE_OCTETS]>, period: usize, len: u64) -> Self {
        PageMemory { page, period, len, written_octets: 0, differing_octets: 0 }
    }

    /// Payload of a full packet.
    pub(super) fn period_octets(&self) -> u64 {
        self.period as u64
    }

    /// Octets written by peers.
    pub(super) fn written_octets(&self) -> u64 {
        self.written_octets
    }

    /// Octets of writes that differ from the page.
    pub(super) fn differing_octets(&self) -> u64 {
        self.differing_octets
    }

    /// The octets from `offset` up to the end of the page.
    fn slice_from(&self, offset: u64) -> &[u8] {
        &self.page[(offset % self.period as u64) as usize..self.period]
    }
}

impl Memory for PageMemory {
    fn len(&self) -> u64 {
        self.len
    }

    fn write(&mut self, offset: u64, octets: &[u8]) {
        let (mut offset, mut left) = (offset, octets);
        while !left.is_empty() {
            let slice_from = self.slice_from(offset);
            let (piece, rest) = left.split_at(left.len().min(slice_from.len()));
            if *piece != slice_from[..piece.len()] {
                self.differing_octets += piece.len() as u64;
            }
            offset += piece.len() as u64;
            left = rest;
        }
        self.written_octets += octets.len() as u64;
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let (mut offset, mut left) = (offset, into);
        while !left.is_empty() {
            let slice_from = self.slice_from(offset);
            let len = left.len().min(slice_from.len());
            let (piece, rest) = left.split_at_mut(len);
            piece.copy_from_slice(&slice_from[..len]);
            offset += len as u64;
            left = rest;
        }
    }
}

/// The page in a chunk of the pool, to be shared by frames.
#[derive(Debug)]
pub(super) struct SharedPage {
    octets: Arc<[u8; PAGE_OCTETS]>,
    chunk: Option<Chunk>,
}

impl SharedPage {
    /// The page; `chunk`: where a pool has it already.
    pub(super) fn new(octets: Arc<[u8; PAGE_OCTETS]>, chunk: Option<Chunk>) -> Self {
        SharedPage { octets, chunk }
    }

    /// A frame of these octets, whose payload is at `payload` and followed by four octets of ICRC: a share of the page,
    /// if the payload is the beginning of the page. `None` when the pool is exhausted.
    pub(super) fn frame(&mut self, octets: &[u8], payload: std::ops::Range<usize>, pool: &mut Pool) -> Option<Frame> {
        let (head, rest) = octets.split_at(payload.start);
        let [.., a, b, c, d] = *rest else {
            return Frame::from_octets(octets, pool);
        };
        let is_page = payload.end + 4 == octets.len()
            && self.octets.get(..payload.len()).is_some_and(|page| rest[..payload.len()] == *page);
        if payload.is_empty() || !is_page {
            return Frame::from_octets(octets, pool);
        }
        let page = self.chunk(pool)?;
        let chunk = pool.allocate_small()?;
        pool.octets_mut(chunk)[HEADROOM..HEADROOM + head.len()].copy_from_slice(head);
        pool.share(page, 1);
        let mut frame = Frame::of_segment(Segment::new(chunk, HEADROOM, head.len()));
        frame.append(Segment::new(page, 0, payload.len()));
        Some(frame.with_tail([a, b, c, d]))
    }

    /// The chunk of the page: allocated with the first frame unless the pool has it, and never freed.
    fn chunk(&mut self, pool: &mut Pool) -> Option<Chunk> {
        if self.chunk.is_none() {
            let chunk = pool.allocate_large()?;
            pool.octets_mut(chunk)[..PAGE_OCTETS].copy_from_slice(&self.octets[..]);
            self.chunk = Some(chunk);
        }
        self.chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_with_the_page_shares_it_and_has_all_octets() {
        let (page, mut pool) = (octets_of_page(), Pool::new(64));
        let mut shared = SharedPage::new(Arc::clone(&page), None);
        let octets: Vec<u8> = [&[7; 80][..], &page[..1024], &[1, 2, 3, 4]].concat();
        let frames: Vec<Frame> = (0..3).map(|_| shared.frame(&octets, 80..1104, &mut pool).unwrap()).collect();
        assert_eq!(pool.in_use(), 3 + 1);
        for frame in frames {
            assert_eq!(frame.to_vec(&pool), octets);
            frame.release(&mut pool);
        }
        let mut other = octets.clone();
        other[500] ^= 1;
        let frame = shared.frame(&other, 80..1104, &mut pool).unwrap();
        assert_eq!(frame.to_vec(&pool), other, "what is not the page is not taken for it");
        frame.release(&mut pool);
        assert_eq!(pool.in_use(), 1);
    }

    #[test]
    fn memory_repeats_the_page_and_counts_differences() {
        let page = octets_of_page();
        let mut memory = PageMemory::new(Arc::clone(&page), 1024, 1 << 30);
        let mut octets = vec![0; 3000];
        memory.read(500, &mut octets);
        assert_eq!(octets[..524], page[500..1024]);
        assert_eq!(octets[524..1548], page[..1024]);
        memory.write(500 + (1 << 20), &octets);
        assert_eq!((memory.written_octets(), memory.differing_octets()), (3000, 0));
        octets[600] ^= 0x80;
        memory.write(500, &octets);
        assert_eq!((memory.written_octets(), memory.differing_octets()), (6000, 1024));
    }
}
