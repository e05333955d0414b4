//! Memory for octets that wait to be digested and written: blocks from areas of huge pages.
//!
//! The first access to a page of 4 KiB costs as much as digesting it; with pages of 2 MiB it is a tenth of that. Blocks
//! are used again, the last one first, so that the memory of a receiver that keeps up stays in its caches.

use crate::files::BLOCK_OCTETS;
use memmap2::{Advice, MmapMut};

const HUGE_PAGE: usize = 2 << 20;

/// Octets of an area, at most: not all of the memory is mapped before it is needed.
const AREA_OCTETS: usize = 32 << 20;

/// The blocks of a receiver.
#[derive(Debug)]
pub(crate) struct Blocks {
    areas: Vec<MmapMut>,
    area_octets: usize,
    spare: Vec<Block>,
    made: usize,
    most: usize,
}

/// A block that is in use.
#[derive(Debug)]
pub(crate) struct Block {
    area: usize,
    start: usize,
}

impl Blocks {
    /// Blocks that take `octets` of memory, and two at least.
    pub(crate) fn new(octets: usize) -> Self {
        Blocks {
            areas: Vec::new(),
            area_octets: octets.next_multiple_of(HUGE_PAGE).clamp(HUGE_PAGE, AREA_OCTETS),
            spare: Vec::new(),
            made: 0,
            most: (octets / BLOCK_OCTETS).max(2),
        }
    }

    /// A block, if one is left and there is memory for it.
    pub(crate) fn take(&mut self) -> Option<Block> {
        if self.spare.is_empty() && self.made < self.most {
            self.map_area();
        }
        self.spare.pop()
    }

    /// Maps as many blocks as take `octets`, as far as they are allowed, and has the kernel provide their pages now.
    pub(crate) fn populate(&mut self, octets: u64) {
        let wanted = octets.div_ceil(BLOCK_OCTETS as u64).min(self.most as u64) as usize;
        while self.made < wanted {
            let areas = self.areas.len();
            self.map_area();
            match self.areas.get(areas) {
                // A kernel before Linux 5.14 provides them at the first access.
                Some(area) => drop(area.advise(Advice::PopulateWrite)),
                None => break,
            }
        }
    }

    pub(crate) fn put_back(&mut self, block: Block) {
        self.spare.push(block);
    }

    pub(crate) fn octets(&self, block: &Block, len: usize) -> &[u8] {
        &self.areas[block.area][block.start..block.start + len]
    }

    pub(crate) fn write(&mut self, block: &Block, offset: usize, octets: &[u8]) {
        let start = block.start + offset;
        self.areas[block.area][start..start + octets.len()].copy_from_slice(octets);
    }

    fn map_area(&mut self) {
        let Ok(area) = MmapMut::map_anon(self.area_octets) else {
            // It has to do with what it has.
            self.most = self.made;
            return;
        };
        // Without huge pages it is slower.
        let _ = area.advise(Advice::HugePage);
        let count = (self.area_octets / BLOCK_OCTETS).min(self.most - self.made);
        let number = self.areas.len();
        // The first one is taken first.
        let blocks = (0..count).map(|place| Block { area: number, start: place * BLOCK_OCTETS });
        self.spare.extend(blocks.rev());
        self.made += count;
        self.areas.push(area);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_many_as_the_memory_allows_and_used_again() {
        let mut blocks = Blocks::new(40 << 20);
        let taken: Vec<Block> = std::iter::from_fn(|| blocks.take()).collect();
        assert_eq!((taken.len(), blocks.areas.len()), ((40 << 20) / BLOCK_OCTETS, 2));
        for (number, block) in taken.iter().enumerate() {
            blocks.write(block, 0, &[number as u8; BLOCK_OCTETS]);
        }
        let is_own = |(number, block)| blocks.octets(block, BLOCK_OCTETS).iter().all(|octet| *octet == number as u8);
        assert!(taken.iter().enumerate().all(is_own));
        blocks.write(&taken[3], 5, &[9; 2]);
        assert_eq!(blocks.octets(&taken[3], 8), [3, 3, 3, 3, 3, 9, 9, 3]);
        let last = taken.into_iter().next_back().expect("the last");
        let place = (last.area, last.start);
        blocks.put_back(last);
        assert_eq!(blocks.take().map(|block| (block.area, block.start)), Some(place));
        assert!(blocks.take().is_none());
    }

    #[test]
    fn populated_blocks_are_in_memory_and_no_more_than_allowed() {
        let resident = || -> usize {
            let statm = std::fs::read_to_string("/proc/self/statm").expect("a Linux kernel");
            statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages")
        };
        let mut blocks = Blocks::new(40 << 20);
        let before = resident();
        blocks.populate(33 << 20);
        assert_eq!((blocks.made, blocks.areas.len()), ((40 << 20) / BLOCK_OCTETS, 2));
        assert!(resident() >= before + (32 << 20) / 4096, "{before} to {} pages", resident());
        blocks.populate(1 << 40);
        assert_eq!(blocks.areas.len(), 2);
    }

    #[test]
    fn there_are_two_blocks_at_least() {
        let mut blocks = Blocks::new(0);
        assert_eq!(std::iter::from_fn(|| blocks.take()).count(), 2);
    }
}
