//! Rings that are shared with the kernel: one side writes entries and publishes them, the other takes and releases.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Offsets of the parts of a ring in its mapping, from the kernel, and the area to map.
pub(super) struct Layout {
    pub(super) offsets: libc::xdp_ring_offset,
    pub(super) page_offset: i64,
    pub(super) entries: u32,
}

/// A ring that we fill and the kernel empties.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Index after the last written entry; the published index may be smaller.
    written: u32,
    published: u32,
    /// The kernel's side, when we last looked.
    taken: u32,
}

/// A ring that the kernel fills and we empty.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    read: u32,
    /// The kernel's side, when we last looked.
    available: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn map(fd: BorrowedFd<'_>, layout: &Layout) -> io::Result<Self> {
        Ok(Producer { ring: Ring::map(fd, layout)?, written: 0, published: 0, taken: 0 })
    }

    /// Entries that may be written now.
    #[inline]
    pub(super) fn free(&mut self) -> u32 {
        self.taken = self.ring.consumer().load(Ordering::Acquire);
        self.ring.entries() - self.written.wrapping_sub(self.taken)
    }

    /// Writes an entry, for which the caller has ensured room. [`Producer::publish`] shows it to the kernel.
    #[inline]
    pub(super) fn write(&mut self, entry: T) {
        debug_assert!(self.written.wrapping_sub(self.taken) < self.ring.entries());
        // SAFETY: the kernel does not look at an entry before it is published, and has taken the one that was here.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
    }

    /// Shows the kernel all that is written.
    #[inline]
    pub(super) fn publish(&mut self) {
        if self.published != self.written {
            self.published = self.written;
            self.ring.producer().store(self.written, Ordering::Release);
        }
    }

    /// Entries that are written and that the kernel has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.written.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Whether the kernel needs a system call to process the ring.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Copy> Consumer<T> {
    pub(super) fn map(fd: BorrowedFd<'_>, layout: &Layout) -> io::Result<Self> {
        Ok(Consumer { ring: Ring::map(fd, layout)?, read: 0, available: 0 })
    }

    /// The next entry.
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        if self.read == self.available {
            self.available = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.available {
                return None;
            }
        }
        // SAFETY: the kernel has published the entry, and does not touch it before we release it.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Gives the kernel back the places of all that was taken.
    #[inline]
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}

/// The mapping.
#[derive(Debug)]
struct Ring<T> {
    base: NonNull<u8>,
    octets: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
}

// SAFETY: the ring alone owns the mapping, in whichever thread it is; the kernel's side is accessed by atomics.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    fn map(fd: BorrowedFd<'_>, layout: &Layout) -> io::Result<Self> {
        let Layout { offsets, page_offset, entries } = layout;
        let octets = offsets.desc as usize + *entries as usize * size_of::<T>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let base = unsafe { libc::mmap(ptr::null_mut(), octets, protection, flags, fd.as_raw_fd(), *page_offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base =
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("a ring was mapped at address zero"))?;
        // SAFETY: the kernel guarantees that these offsets lie in the mapping and are aligned.
        unsafe {
            Ok(Ring {
                base,
                octets,
                producer: base.add(offsets.producer as usize).cast(),
                consumer: base.add(offsets.consumer as usize).cast(),
                flags: base.add(offsets.flags as usize).cast(),
                entries: base.add(offsets.desc as usize).cast(),
                mask: entries - 1,
            })
        }
    }

    #[inline]
    fn entries(&self) -> u32 {
        self.mask + 1
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it lies in the mapping, which lives as long as the ring.
        unsafe { self.producer.as_ref() }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    #[inline]
    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }
    }

    /// The place of an entry, by its running number.
    #[inline]
    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the mask keeps it among the entries, all of which are mapped.
        unsafe { self.entries.add((number & self.mask) as usize).as_ptr() }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and nothing borrowed from it outlives the ring.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.octets) };
    }
}
