//! The memory of AF_XDP sockets, which is a pool's memory.

use super::retired::Retired;
use crate::socket_option;
use srdma_frame::{Page, Pages, Pool};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::time::Instant;

/// Memory that the sockets of a data thread receive into and send from, and that a [`Pool`] lies over. A frame that
/// came in at one socket is sent at any other without being copied.
///
/// Every socket registers the memory itself instead of sharing the first registration (`XDP_SHARED_UMEM`): an interface
/// that vanishes does not affect the others, and zero-copy and copy mode can be mixed. The cost is the kernel's list of
/// pages, once for each socket.
#[derive(Debug)]
pub struct Umem {
    memory: NonNull<Page>,
    pages: usize,
    retired: Retired,
}

// SAFETY: it only refers to the memory; the pool governs access to it.
unsafe impl Send for Umem {}
// SAFETY: as above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Memory of so many pages, and the pool over it. It is never freed: a data thread does this once.
    ///
    /// # Errors
    ///
    /// If there is not so much memory.
    pub fn new(pages: usize) -> io::Result<(Self, Pool)> {
        let octets = pages * size_of::<Page>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let memory = unsafe { libc::mmap(ptr::null_mut(), octets, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory =
            NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("memory was mapped at address zero"))?;
        // SAFETY: the mapping is ours, zeroed, of the given length, and never unmapped. The kernel writes to a chunk
        // only while it is in a fill ring, when it is not read or written elsewhere.
        let pool = Pool::over(unsafe { Pages::new(memory, pages) });
        Ok((Umem { memory, pages, retired: Retired::default() }, pool))
    }

    /// Address of the first page.
    pub(super) fn start(&self) -> NonNull<Page> {
        self.memory
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Returns chunks to the pool that zero-copy sockets held when they were closed, some seconds ago. To be called now
    /// and then.
    pub fn reclaim(&self, now: Instant, pool: &mut Pool) {
        self.retired.reclaim(now, pool);
    }

    pub(super) fn retired(&self) -> &Retired {
        &self.retired
    }

    /// Registers the memory at a socket.
    pub(super) fn register(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let registration = libc::xdp_umem_reg {
            addr: self.memory.as_ptr() as u64,
            len: (self.pages * size_of::<Page>()) as u64,
            chunk_size: size_of::<Page>() as u32,
            // The headroom of XDP in front of a frame equals that of a pool.
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        // SAFETY: the memory that the kernel uses from now on is the pool's, and never unmapped.
        let registered =
            unsafe { socket_option::set_with_pointers(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration) };
        registered.map_err(|error| match error.raw_os_error() {
            Some(libc::ENOBUFS) => {
                io::Error::new(error.kind(), format!("{error}; raise `ulimit -l` or grant CAP_IPC_LOCK"))
            }
            _ => error,
        })
    }
}

/// Headroom that AF_XDP leaves in front of a received frame, `XDP_PACKET_HEADROOM`.
const _: () = assert!(srdma_frame::HEADROOM == 256);
