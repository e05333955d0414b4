//! Protection domains and memory regions.

use super::context::returned;
use super::layout::{ibv_mr, ibv_pd};
use super::{Buffer, Context, Error, Memory, Result, check};
use std::ffi::c_int;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// A protection domain.
#[derive(Debug)]
pub(crate) struct Domain {
    context: Arc<Context>,
    pointer: NonNull<ibv_pd>,
}

// SAFETY: libibverbs locks inside; a domain may be used and freed by any thread.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        context.check_process()?;
        // SAFETY: the context is open.
        let pointer = returned(unsafe { (context.library().alloc_pd)(context.pointer()) })?;
        Ok(Domain { context: Arc::clone(context), pointer })
    }

    /// One that cannot be used.
    #[cfg(test)]
    pub(super) fn dangling(context: &Arc<Context>) -> Self {
        Domain { context: Arc::clone(context), pointer: NonNull::dangling() }
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn pointer(&self) -> *mut ibv_pd {
        self.pointer.as_ptr()
    }

    /// Registers memory. Peers address its first octet by `virtual_address`, or by its own address without that.
    pub(crate) fn register<M: Memory>(
        self: &Arc<Self>,
        memory: M,
        virtual_address: Option<u64>,
        access: u32,
    ) -> std::result::Result<Region<M>, (M, Error)> {
        if let Err(error) = self.context.check_process() {
            return Err((memory, error));
        }
        let (address, octets) = (memory.address(), memory.octets());
        let library = self.context.library();
        let start = address.as_ptr().cast();
        let pointer = match virtual_address {
            // SAFETY: the domain exists; the memory is allocated as long as `memory` is, which the region owns and
            // returns or drops only when it is deregistered. What the device may do to it is the contract of `Memory`.
            None => unsafe { (library.reg_mr)(self.pointer(), start, octets, access as c_int) },
            // SAFETY: as above.
            Some(virtual_address) => unsafe {
                (library.reg_mr_iova2)(self.pointer(), start, octets, virtual_address, access)
            },
        };
        match returned(pointer) {
            Ok(pointer) => {
                let base = virtual_address.unwrap_or(address.as_ptr() as u64);
                Ok(Region { domain: Arc::clone(self), pointer, base, octets, memory: ManuallyDrop::new(memory) })
            }
            Err(error) => Err((memory, error)),
        }
    }

    /// Registers memory of another device. The kernel keeps it as long as the region exists.
    pub(crate) fn register_dma_buf(
        self: &Arc<Self>,
        descriptor: OwnedFd,
        offset: u64,
        octets: usize,
        virtual_address: u64,
        access: u32,
    ) -> Result<Region<OwnedFd>> {
        self.context.check_process()?;
        let unsupported = || Error::System(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        let register = self.context.library().reg_dmabuf_mr.ok_or_else(unsupported)?;
        let (fd, access) = (descriptor.as_raw_fd(), access as c_int);
        // SAFETY: the domain and the descriptor exist; the memory is not of this process.
        let pointer = returned(unsafe { register(self.pointer(), offset, octets, virtual_address, fd, access) })?;
        let (domain, memory) = (Arc::clone(self), ManuallyDrop::new(descriptor));
        Ok(Region { domain, pointer, base: virtual_address, octets, memory })
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if self.context.is_of_this_process() {
            // SAFETY: allocated by ibv_alloc_pd, freed once, after the handles that were made from it.
            unsafe { (self.context.library().dealloc_pd)(self.pointer()) };
        }
    }
}

/// A registered memory region, with the memory.
#[derive(Debug)]
pub(crate) struct Region<M> {
    domain: Arc<Domain>,
    pointer: NonNull<ibv_mr>,
    base: u64,
    octets: usize,
    memory: ManuallyDrop<M>,
}

// SAFETY: libibverbs locks inside; a region may be used and deregistered by any thread, if its memory may.
unsafe impl<M: Send> Send for Region<M> {}
// SAFETY: as above.
unsafe impl<M: Sync> Sync for Region<M> {}

impl<M> Region<M> {
    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: the region is registered; the field never changes.
        unsafe { (*self.pointer.as_ptr()).lkey }
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.pointer.as_ptr()).rkey }
    }

    /// Address of the first octet in requests.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Deregisters; the memory is then out of the device's reach. If that fails, it is still registered.
    pub(crate) fn deregister(self) -> std::result::Result<M, (Self, Error)> {
        if let Err(error) = self.release() {
            return Err((self, error));
        }
        let mut region = ManuallyDrop::new(self);
        // SAFETY: the region is not dropped, so that each field is taken once.
        let memory = unsafe { ManuallyDrop::take(&mut region.memory) };
        // SAFETY: as above.
        drop(unsafe { std::ptr::read(&raw const region.domain) });
        Ok(memory)
    }

    /// Called once with success.
    fn release(&self) -> Result<()> {
        let context = &self.domain.context;
        context.check_process()?;
        // SAFETY: returned by ibv_reg_mr; the callers do not use the pointer after success.
        check(unsafe { (context.library().dereg_mr)(self.pointer.as_ptr()) })
    }
}

impl Region<Buffer> {
    /// Copies octets into the buffer. No caller gets a reference by which the buffer could be exchanged for another.
    pub(crate) fn write(&mut self, offset: usize, octets: &[u8]) {
        self.memory.write(offset, octets);
    }
}

impl<M> Drop for Region<M> {
    fn drop(&mut self) {
        // Memory that the device may still reach is never freed.
        if self.release().is_ok() {
            // SAFETY: dropped once; the region is deregistered.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
