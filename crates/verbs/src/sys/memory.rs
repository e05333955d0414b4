//! Memory that a device can be given.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Memory to be registered: a value that keeps a range of octets allocated.
///
/// # Safety
///
/// * `address` and `octets` return the same at each call, also after the value has moved.
/// * The range stays allocated, and mapped at that address, until the value is dropped.
/// * The device may write to the range at any time while a region of it exists with
///   [`Access::LocalWrite`](crate::Access) or [`Access::RemoteWrite`](crate::Access). So the value accesses octets by
///   raw pointers, or only when the peers cannot write, and holds no reference to them otherwise.
///
/// A device's write is complete, and its octets may be read, when its work completion has been polled: of a receive, or
/// of a later message of the same queue pair.
pub unsafe trait Memory: Send + 'static {
    /// The first octet.
    fn address(&self) -> NonNull<u8>;

    /// Length in octets, more than 0.
    fn octets(&self) -> usize;
}

/// A range of memory that its caller answers for.
#[derive(Debug)]
pub struct RawMemory {
    address: NonNull<u8>,
    octets: usize,
}

impl RawMemory {
    /// Memory of the application.
    ///
    /// # Safety
    ///
    /// The range stays allocated and mapped until the value is dropped: for registered memory, until
    /// [`MemoryRegion::deregister`](crate::MemoryRegion::deregister) has returned it. A region that cannot be
    /// deregistered keeps it for ever. While the device may write to the range, no reference to its octets exists.
    pub unsafe fn new(address: NonNull<u8>, octets: usize) -> Self {
        RawMemory { address, octets }
    }
}

// SAFETY: the caller of `RawMemory::new` has promised it.
unsafe impl Memory for RawMemory {
    fn address(&self) -> NonNull<u8> {
        self.address
    }

    fn octets(&self) -> usize {
        self.octets
    }
}

// SAFETY: it has no access to the octets; allocated memory may be used by any thread.
unsafe impl Send for RawMemory {}
// SAFETY: as above.
unsafe impl Sync for RawMemory {}

/// Memory of its own: whole pages, of zeros at first. Octets are copied in and out, so that no reference covers what a
/// device writes to.
#[derive(Debug)]
pub struct Buffer {
    address: NonNull<u8>,
    octets: usize,
}

impl Buffer {
    const ALIGNMENT: usize = 4096;

    /// Allocates a buffer.
    ///
    /// # Panics
    ///
    /// If `octets` is 0, or more than memory can have.
    pub fn new(octets: usize) -> Self {
        assert!(octets > 0, "a buffer has octets");
        Self::try_new(octets).unwrap_or_else(|| handle_alloc_error(Self::layout(octets)))
    }

    /// Allocates a buffer; `None` if there is not so much memory, or `octets` is 0.
    pub fn try_new(octets: usize) -> Option<Self> {
        let layout = Layout::from_size_align(octets, Self::ALIGNMENT).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout's size is not 0.
        let address = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Buffer { address, octets })
    }

    fn layout(octets: usize) -> Layout {
        Layout::from_size_align(octets, Self::ALIGNMENT).expect("a size that memory can have")
    }

    /// Copies octets out.
    ///
    /// # Panics
    ///
    /// If the buffer ends before.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let from = self.at(offset, to.len());
        // SAFETY: the octets are in the buffer, which `to` is not part of: no reference to the buffer's octets exists.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
    }

    /// Copies octets in.
    ///
    /// # Panics
    ///
    /// If the buffer ends before.
    pub fn write(&mut self, offset: usize, octets: &[u8]) {
        let to = self.at(offset, octets.len());
        // SAFETY: as in `read`; `&mut self` excludes other accesses of this process.
        unsafe { to.copy_from_nonoverlapping(octets.as_ptr(), octets.len()) };
    }

    fn at(&self, offset: usize, octets: usize) -> *mut u8 {
        let is_inside = offset.checked_add(octets).is_some_and(|end| end <= self.octets);
        assert!(is_inside, "octets {offset} to {offset} + {octets} of a buffer of {}", self.octets);
        // SAFETY: the offset is not beyond the end of the allocation.
        unsafe { self.address.as_ptr().add(offset) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by this layout, and freed once.
        unsafe { dealloc(self.address.as_ptr(), Self::layout(self.octets)) };
    }
}

// SAFETY: it owns the allocation, which does not move with it, and accesses it by raw pointers.
unsafe impl Memory for Buffer {
    fn address(&self) -> NonNull<u8> {
        self.address
    }

    fn octets(&self) -> usize {
        self.octets
    }
}

// SAFETY: it owns its memory; writes need `&mut self`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_copied_in_and_out() {
        let mut buffer = Buffer::new(10_000);
        assert_eq!(buffer.address().as_ptr() as usize % 4096, 0);
        buffer.write(9_997, b"abc");
        let mut read = [0; 4];
        buffer.read(9_996, &mut read);
        assert_eq!(&read, b"\0abc");
        buffer.read(10_000, &mut []);
    }

    #[test]
    fn a_length_that_memory_cannot_have_is_refused() {
        assert!(Buffer::try_new(usize::MAX).is_none() && Buffer::try_new(0).is_none());
        let mut read = [1; 3];
        Buffer::try_new(5).expect("memory").read(2, &mut read);
        assert_eq!(read, [0; 3]);
    }

    #[test]
    #[should_panic(expected = "octets 9998 to 9998 + 3 of a buffer of 10000")]
    fn octets_beyond_the_end_are_refused() {
        Buffer::new(10_000).write(9_998, b"abc");
    }

    #[test]
    #[should_panic(expected = "of a buffer of 16")]
    fn an_offset_that_overflows_is_refused() {
        Buffer::new(16).read(usize::MAX, &mut [0; 2]);
    }
}
