//! Octets that an application publishes, which are read where they are.
#![allow(unsafe_code, reason = "memory that two threads use, and memory that C programs own")]

use super::range_of;
use crate::buffer::Buffer;
use srdma_verbs::MemoryRegion;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Octets that an application publishes. They must not change until the version is published or has failed.
pub(crate) enum Octets {
    /// Memory with an owner of its own, and its length when it was given.
    Owned(Arc<dyn AsRef<[u8]> + Send + Sync>, usize),
    /// Memory of the caller of [`Octets::from_raw`], and what keeps it.
    Raw(RawOctets, Arc<dyn Send + Sync>),
    /// Some octets of one of these.
    Part(Arc<Octets>, Range<usize>),
    /// Memory of either kind that a device reads.
    Registered(Arc<MemoryRegion<FixedOctets>>),
}

impl Octets {
    pub(crate) fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let length = owner.as_ref().len();
        Octets::Owned(Arc::new(owner), length)
    }

    /// # Safety
    ///
    /// `length` octets at `base` must be readable until this and all its clones are dropped, and `owner` with them.
    pub(crate) unsafe fn from_raw(base: NonNull<u8>, length: usize, owner: Arc<dyn Send + Sync>) -> Self {
        Octets::Raw(RawOctets { base, length }, owner)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Octets::Owned(_, length) => *length,
            Octets::Raw(raw, _) => raw.length,
            Octets::Part(_, range) => range.len(),
            Octets::Registered(region) => region.octets(),
        }
    }

    /// Some of the octets, as far as they are there.
    pub(crate) fn part(self: &Arc<Self>, range: Range<u64>) -> Self {
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(self.len());
        let start = at(range.start);
        Octets::Part(Arc::clone(self), start..at(range.end).max(start))
    }

    /// Where the octets are now, unless a device reads them.
    fn place(&self) -> Option<RawOctets> {
        match self {
            Octets::Owned(owner, length) => {
                let octets = (**owner).as_ref();
                (octets.len() == *length).then_some(RawOctets { base: NonNull::from(octets).cast(), length: *length })
            }
            Octets::Raw(raw, _) => Some(*raw),
            Octets::Part(whole, range) => whole.place()?.part(range),
            Octets::Registered(_) => None,
        }
    }

    /// Whether they are memory of a GPU, which the processor cannot read.
    pub(crate) fn is_device_memory(&self) -> bool {
        match self {
            Octets::Raw(raw, _) => super::gpu::is_device_memory(raw.base),
            Octets::Part(whole, _) => whole.is_device_memory(),
            Octets::Owned(..) | Octets::Registered(_) => false,
        }
    }

    /// The octets at the place where they are now, to be read there. `None` if there are none, or the owner shows other
    /// ones than before.
    pub(crate) fn fixed(self) -> Option<FixedOctets> {
        let octets = self.place()?;
        (octets.length > 0).then_some(FixedOctets { octets, _owner: self })
    }

    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let Some(range) = range_of(offset, into.len()).filter(|range| range.end <= self.len()) else { return };
        match self {
            Octets::Owned(owner, _) => match (**owner).as_ref().get(range) {
                Some(octets) => into.copy_from_slice(octets),
                // It has become shorter. What is sent in place of its octets is not to be that of other buffers.
                None => into.fill(0),
            },
            Octets::Raw(raw, _) => raw.read(range.start, into),
            Octets::Part(whole, part) => whole.read((part.start + range.start) as u64, into),
            // As the device reads them.
            Octets::Registered(region) => region.memory().read(range.start, into),
        }
    }
}

/// Octets at a place that stays, and what keeps them there.
pub(crate) struct FixedOctets {
    octets: RawOctets,
    /// A reference that the owner has returned is valid as long as the owner is borrowed, which it is: there is no
    /// `&mut` of it while this has a handle.
    _owner: Octets,
}

// SAFETY: address and length are fields that do not change; the owner keeps the memory until it is dropped; nothing is
// registered with it that lets a device write.
unsafe impl srdma_verbs::Memory for FixedOctets {
    fn address(&self) -> NonNull<u8> {
        self.octets.base
    }

    fn octets(&self) -> usize {
        self.octets.length
    }
}

impl FixedOctets {
    fn read(&self, offset: usize, into: &mut [u8]) {
        self.octets.read(offset, into);
    }
}

impl fmt::Debug for FixedOctets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.octets.length)
    }
}

impl Clone for Octets {
    fn clone(&self) -> Self {
        match self {
            Octets::Owned(owner, length) => Octets::Owned(Arc::clone(owner), *length),
            Octets::Raw(raw, owner) => Octets::Raw(*raw, Arc::clone(owner)),
            Octets::Part(whole, range) => Octets::Part(Arc::clone(whole), range.clone()),
            Octets::Registered(region) => Octets::Registered(Arc::clone(region)),
        }
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.len())
    }
}

impl Buffer {
    /// A buffer in memory of the caller.
    ///
    /// # Safety
    ///
    /// `length_octets` at `base` must be readable until the buffer and its clones are dropped: the library drops its
    /// own when the version is published or has failed. If the octets change before, receivers report the version as
    /// damaged.
    pub unsafe fn from_raw(name: impl Into<String>, base: NonNull<u8>, length_octets: usize) -> Self {
        // SAFETY: the contract is the same.
        unsafe { Self::with_owner(name, base, length_octets, ()) }
    }

    /// The same, in memory that something keeps, which is dropped with the buffer and its clones: by any thread.
    ///
    /// # Safety
    ///
    /// `length_octets` at `base` must be readable until `owner` is dropped.
    pub unsafe fn with_owner(
        name: impl Into<String>,
        base: NonNull<u8>,
        length_octets: usize,
        owner: impl Send + Sync + 'static,
    ) -> Self {
        // SAFETY: the contract is the same.
        let octets = unsafe { Octets::from_raw(base, length_octets, Arc::new(owner)) };
        Buffer { name: name.into(), octets, region: 0 }
    }
}

/// Memory that something else keeps: a C program, or the owner of [`FixedOctets`].
#[derive(Clone, Copy)]
pub(crate) struct RawOctets {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is readable from any thread, by the contract of `Octets::from_raw`, or as that of the owner is.
unsafe impl Send for RawOctets {}
// SAFETY: it is only read.
unsafe impl Sync for RawOctets {}

impl RawOctets {
    fn part(self, range: &Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.length {
            return None;
        }
        // SAFETY: the range is inside the octets at `base`.
        let base = unsafe { self.base.add(range.start) };
        Some(RawOctets { base, length: range.len() })
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        if offset.checked_add(into.len()).is_none_or(|end| end > self.length) {
            return;
        }
        // SAFETY: the range is inside memory that is readable, by the contract of `Octets::from_raw`, or that the owner
        // keeps; `into` is not.
        unsafe { self.base.as_ptr().add(offset).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HostMemory;
    use srdma_rc::Memory;

    #[test]
    fn octets_have_a_place_while_something_keeps_them() {
        let owner: Arc<[u8]> = Arc::from([1, 2, 3]);
        let place = owner.as_ptr();
        let fixed = Octets::new(owner).fixed().expect("octets");
        assert_eq!((srdma_verbs::Memory::address(&fixed).as_ptr().cast_const(), fixed.octets.length), (place, 3));
        let mut into = [0; 2];
        fixed.read(1, &mut into);
        fixed.read(2, &mut [0; 2]);
        assert_eq!(into, [2, 3]);
        assert!(Octets::new([0_u8; 0]).fixed().is_none(), "no octets, no place");
    }

    #[test]
    fn a_part_is_read_in_its_place() {
        let owner: Arc<[u8]> = Arc::from([1, 2, 3, 4, 5]);
        let second = owner[1..].as_ptr();
        let whole = Arc::new(Octets::new(owner));
        let part = whole.part(1..4);
        let mut into = [0; 2];
        part.read(1, &mut into);
        part.read(2, &mut into[..0]);
        part.read(2, &mut [0; 2]);
        assert_eq!((part.len(), into), (3, [3, 4]));
        let nested = Arc::new(part.clone()).part(1..9);
        nested.read(0, &mut into);
        assert_eq!((nested.len(), into), (2, [3, 4]));
        assert_eq!((whole.part(9..12).len(), whole.part(4..u64::MAX).len()), (0, 1));
        let fixed = part.fixed().expect("octets");
        assert_eq!((srdma_verbs::Memory::address(&fixed).as_ptr().cast_const(), fixed.octets.length), (second, 3));
    }

    /// A buffer's owner may lie about its octets; its length is that of the first look.
    #[test]
    fn a_buffer_that_becomes_shorter_is_read_as_zeros() {
        struct Shrinking(std::sync::atomic::AtomicBool);
        impl AsRef<[u8]> for Shrinking {
            fn as_ref(&self) -> &[u8] {
                if self.0.swap(true, std::sync::atomic::Ordering::Relaxed) { &[7; 2] } else { &[7; 4] }
            }
        }
        let source = HostMemory::Source(Octets::new(Shrinking(false.into())));
        let mut into = [0xEE; 4];
        source.read(0, &mut into);
        assert_eq!((source.len(), into), (4, [0; 4]));
        source.read(0, &mut into[..2]);
        assert_eq!(into, [7, 7, 0, 0]);
    }

    #[test]
    fn memory_of_the_caller_is_read_in_place() {
        let mut octets = [1_u8, 9, 8, 4];
        let base = NonNull::from(&mut octets).cast();
        // SAFETY: the array lives longer than the source.
        let source = HostMemory::Source(unsafe { Octets::from_raw(base, 4, Arc::new(())) });
        let mut into = [0; 3];
        source.read(1, &mut into);
        assert_eq!((into, source.len()), ([9, 8, 4], 4));
        source.read(2, &mut into);
        assert_eq!(into, [9, 8, 4], "nothing beyond its end");
    }
}
