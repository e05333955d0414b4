//! Regions of receivers, and versions in them.
//!
//! What makes it sound that the network writes while the application reads is checked here (D175): octets are written
//! to *open* ranges only, a range that the application has as [`SharedRange`] is not open, and it cannot be opened
//! before the application has dropped it. A source that writes elsewhere is a *stray*: it is counted, and nothing is
//! written. A device cannot be kept from writing to what is registered: it writes to other memory, from which octets
//! are *delivered* to ranges that are not shared (D183).
#![allow(unsafe_code, reason = "memory that two threads use, and memory that C programs own")]

use super::range_of;
use nix::sys::mman::munmap;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Memory that a receiver offers to the source: slots for versions.
pub struct Region(Arc<RegionMemory>);

/// The memory of a region.
pub(super) struct RegionMemory {
    base: NonNull<u8>,
    length: usize,
    backing: Backing,
}

/// Where the memory of a region is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// A box of this library.
    Heap,
    /// Memory of the caller.
    Caller,
    /// A map of a file.
    Mapped,
}

impl RegionMemory {
    pub(super) fn new(base: NonNull<u8>, length: usize, backing: Backing) -> Self {
        RegionMemory { base, length, backing }
    }
}

// SAFETY: access to the octets is governed by `SlotMemory`: a range is either open and used by the thread that has the
// `SlotMemory`, or shared and only read.
unsafe impl Send for RegionMemory {}
// SAFETY: see above.
unsafe impl Sync for RegionMemory {}

impl Drop for RegionMemory {
    fn drop(&mut self) {
        match self.backing {
            Backing::Heap => {
                let octets = NonNull::slice_from_raw_parts(self.base, self.length);
                // SAFETY: `Region::new` has made this pointer from a box of this length, and nothing else frees it.
                drop(unsafe { Box::from_raw(octets.as_ptr()) });
            }
            // SAFETY: the map has been made with this length, and nothing else ends it. An error leaves it.
            Backing::Mapped => drop(unsafe { munmap(self.base.cast(), self.length) }),
            Backing::Caller => {}
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region of {} octets", self.0.length)
    }
}

impl Region {
    /// Memory of its own, zeroed; pages are taken when they are written.
    ///
    /// # Errors
    ///
    /// If there is not so much.
    pub fn new(length_octets: usize) -> Result<Self, std::collections::TryReserveError> {
        let mut octets = Vec::<u8>::new();
        octets.try_reserve_exact(length_octets)?;
        drop(octets);
        // Zeroed by the allocator, which does not touch fresh pages.
        let octets = vec![0_u8; length_octets].into_boxed_slice();
        let length = octets.len();
        let base = NonNull::from(Box::leak(octets)).cast();
        Ok(Region::of(RegionMemory::new(base, length, Backing::Heap)))
    }

    pub(super) fn of(memory: RegionMemory) -> Self {
        Region(Arc::new(memory))
    }

    /// Memory of the caller.
    ///
    /// # Safety
    ///
    /// `length_octets` at `base` must be readable and writable until the receiver that has joined with it is closed and
    /// all its versions are dropped. Until then nothing else writes them, and they are read through versions only.
    pub unsafe fn from_raw(base: NonNull<u8>, length_octets: usize) -> Self {
        Region::of(RegionMemory::new(base, length_octets, Backing::Caller))
    }

    /// Its octets.
    pub fn length_octets(&self) -> usize {
        self.0.length
    }

    /// Its memory as a test sees it, in the thread that writes it.
    #[cfg(test)]
    pub(crate) fn watch(&self) -> WatchedMemory {
        WatchedMemory(Arc::clone(&self.0))
    }

    /// Whether it is memory of a GPU, which the processor cannot write.
    pub(crate) fn is_device_memory(&self) -> bool {
        self.0.backing == Backing::Caller && super::gpu::is_device_memory(self.0.base)
    }

    /// Its memory, to be written. A region is no `Clone`: there is one writer.
    pub(crate) fn into_slots(self) -> SlotMemory {
        SlotMemory { octets: self.0, open: Vec::new(), shared: Vec::new(), strays: 0 }
    }
}

/// The memory of a region, of a receiver that may be gone.
#[cfg(test)]
pub(crate) struct WatchedMemory(Arc<RegionMemory>);

#[cfg(test)]
impl WatchedMemory {
    /// Its octets at this time.
    pub(crate) fn octets(&self) -> Vec<u8> {
        // SAFETY: the memory exists as long as the handle, and the thread of the test is the one that writes it.
        unsafe { std::slice::from_raw_parts(self.0.base.as_ptr(), self.0.length) }.to_vec()
    }
}

/// A region as it is written: by one thread, to open ranges.
pub(crate) struct SlotMemory {
    octets: Arc<RegionMemory>,
    open: Vec<Range<usize>>,
    /// Ranges that the application has, with their leases.
    shared: Vec<(Range<usize>, Weak<()>)>,
    strays: u64,
}

impl SlotMemory {
    pub(crate) fn length_octets(&self) -> usize {
        self.octets.length
    }

    /// Opens these ranges, and closes all others. False, and nothing is open, if a range is not inside the region or
    /// the application still has a part of it.
    pub(crate) fn open(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) -> bool {
        self.shared.retain(|(_, owner)| owner.strong_count() > 0);
        self.open = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        let is_free = self
            .open
            .iter()
            .all(|open| open.end <= self.octets.length && !self.shared.iter().any(|(shared, _)| overlap(open, shared)));
        if !is_free {
            self.open.clear();
        }
        is_free
    }

    /// Gives a range to the application; `None` if it is open, or not inside the region.
    pub(crate) fn share(&mut self, range: Range<usize>) -> Option<SharedRange> {
        if self.open.iter().any(|open| overlap(open, &range)) {
            return None;
        }
        let shared = SharedRange::new(&self.octets, range.clone())?;
        self.shared.push((range, Arc::downgrade(&shared.lease)));
        Some(shared)
    }

    /// Writes outside of the open ranges so far: they have had no effect.
    pub(crate) fn strays(&self) -> u64 {
        self.strays
    }

    pub(super) fn write(&mut self, offset: u64, octets: &[u8]) {
        let range = range_of(offset, octets.len());
        let range = range.filter(|range| self.open.iter().any(|open| contains(open, range)));
        let Some(range) = range else {
            self.strays += u64::from(!octets.is_empty());
            return;
        };
        // SAFETY: the range is open, hence inside the region, and no `SharedRange` covers it; this is the only
        // `SlotMemory` of the region, and it is borrowed mutably.
        unsafe {
            self.octets.base.as_ptr().add(range.start).copy_from_nonoverlapping(octets.as_ptr(), octets.len());
        }
    }

    /// Writes octets of a version that is complete. Without effect for a range that the application has a part of, or
    /// that is not inside the region.
    pub(crate) fn deliver(&mut self, offset: u64, octets: &[u8]) {
        self.shared.retain(|(_, owner)| owner.strong_count() > 0);
        let range = range_of(offset, octets.len()).filter(|range| range.end <= self.octets.length);
        let range = range.filter(|range| !self.shared.iter().any(|(shared, _)| overlap(range, shared)));
        let Some(range) = range else { return };
        // SAFETY: the range is inside the region, and no `SharedRange` covers it; this is the only `SlotMemory` of the
        // region, and it is borrowed mutably.
        unsafe {
            self.octets.base.as_ptr().add(range.start).copy_from_nonoverlapping(octets.as_ptr(), octets.len());
        }
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let Some(range) = range_of(offset, into.len()).filter(|range| range.end <= self.octets.length) else {
            return;
        };
        // SAFETY: the range is inside the region, which only this `SlotMemory` writes, and it is borrowed.
        unsafe { self.octets.base.as_ptr().add(range.start).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }
}

impl fmt::Debug for SlotMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region of {} octets, open: {:?}", self.octets.length, self.open)
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// A range of a region that the application reads. Nothing writes it while this exists.
pub(crate) struct SharedRange {
    /// Keeps the memory.
    region: Arc<RegionMemory>,
    /// The range is not opened while this exists.
    lease: Arc<()>,
    range: Range<usize>,
}

impl SharedRange {
    /// A range of a region, which is not written while this exists; `None` beyond the region.
    pub(super) fn new(region: &Arc<RegionMemory>, range: Range<usize>) -> Option<Self> {
        let is_inside = range.start <= range.end && range.end <= region.length;
        is_inside.then(|| SharedRange { region: Arc::clone(region), lease: Arc::new(()), range })
    }

    /// Octets of the range; `None` beyond it.
    pub(crate) fn octets(&self, offset: u64, length_octets: u64) -> Option<&[u8]> {
        let length = usize::try_from(length_octets).ok()?;
        let wanted = range_of(offset, length)?;
        if wanted.end > self.range.len() {
            return None;
        }
        // SAFETY: the wanted octets are inside the range, which is not open while the lease exists: nothing writes
        // them. `region` keeps the memory.
        unsafe {
            let first = self.region.base.as_ptr().add(self.range.start + wanted.start);
            Some(std::slice::from_raw_parts(first, length))
        }
    }
}

impl fmt::Debug for SharedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "octets {:?} of a region", self.range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::once;

    fn slots(length: usize) -> SlotMemory {
        Region::new(length).expect("memory").into_slots()
    }

    fn read(slots: &SlotMemory, range: Range<usize>) -> Vec<u8> {
        let mut octets = vec![0xEE; range.len()];
        slots.read(range.start as u64, &mut octets);
        octets
    }

    /// D175.
    #[test]
    fn octets_are_written_to_open_ranges_only() {
        let mut slots = slots(100);
        slots.write(0, &[1]);
        assert_eq!((slots.strays(), read(&slots, 0..1)), (1, vec![0]), "nothing is open yet");
        assert!(slots.open([10..20, 50..60]));
        slots.write(10, &[2; 10]);
        slots.write(59, &[3]);
        assert_eq!((slots.strays(), read(&slots, 10..20)), (1, vec![2; 10]));
        for (offset, octets) in [(9, &[4; 2][..]), (19, &[4; 2]), (59, &[4; 2]), (u64::MAX, &[4; 2]), (99, &[4; 9])] {
            slots.write(offset, octets);
        }
        assert_eq!(
            (slots.strays(), read(&slots, 8..12), read(&slots, 18..22)),
            (6, vec![0, 0, 2, 2], vec![2, 2, 0, 0])
        );
        slots.write(0, &[]);
        assert_eq!(slots.strays(), 6, "no octets, no harm");
    }

    /// D175.
    #[test]
    fn a_shared_range_is_not_opened_before_it_is_dropped() {
        let mut slots = slots(100);
        assert!(slots.open([0..50, 50..100]));
        slots.write(0, &[7; 50]);
        assert!(slots.share(40..60).is_none(), "it is open");
        assert!(slots.open(once(50..100)));
        let first = slots.share(0..50).expect("closed");
        assert_eq!(first.octets(0, 50), Some(&[7; 50][..]));
        assert_eq!((first.octets(49, 2), first.octets(u64::MAX, 1), first.octets(0, u64::MAX)), (None, None, None));
        assert!(!slots.open(once(49..100)), "the application has an octet of it");
        slots.write(60, &[1]);
        assert_eq!(slots.strays(), 1, "and so nothing is open");
        slots.write(0, &[8; 50]);
        assert_eq!(first.octets(0, 1), Some(&[7][..]));
        drop(first);
        assert!(slots.open(once(0..100)));
        assert!(!slots.open(once(0..101)), "beyond the region");
        assert!(slots.share(90..101).is_none());
    }

    /// D183.
    #[test]
    fn octets_are_not_delivered_to_a_range_that_the_application_has() {
        let mut slots = slots(100);
        slots.deliver(0, &[7; 50]);
        slots.deliver(90, &[7; 11]);
        slots.deliver(u64::MAX, &[7; 2]);
        assert_eq!((read(&slots, 0..50), read(&slots, 50..100)), (vec![7; 50], vec![0; 50]), "outside is nothing");
        let shared = slots.share(0..50).expect("closed");
        slots.deliver(49, &[8; 2]);
        assert_eq!((shared.octets(49, 1), read(&slots, 50..51)), (Some(&[7][..]), vec![0]));
        slots.deliver(50, &[9]);
        assert_eq!(read(&slots, 50..51), [9]);
        drop(shared);
        slots.deliver(49, &[8; 2]);
        assert_eq!(read(&slots, 48..52), [7, 8, 8, 0]);
    }

    /// Run under a sanitizer or valgrind, this finds a use after free.
    #[test]
    fn memory_lives_as_long_as_a_shared_range() {
        let mut slots = slots(10);
        assert!(slots.open(once(0..10)));
        slots.write(0, &[5; 10]);
        assert!(slots.open([]));
        let shared = slots.share(0..10).expect("closed");
        drop(slots);
        assert_eq!(shared.octets(0, 10), Some(&[5; 10][..]));
    }

    #[test]
    fn memory_of_the_caller_is_written_in_place() {
        let mut octets = [1_u8, 2, 3, 4];
        let base = NonNull::from(&mut octets).cast();
        // SAFETY: the array lives longer than the region, and nothing else uses it meanwhile.
        let mut slots = unsafe { Region::from_raw(base, 4) }.into_slots();
        assert!(slots.open(once(1..3)));
        slots.write(1, &[9, 8]);
        drop(slots);
        assert_eq!(octets, [1, 9, 8, 4]);
    }
}
