//! Protection domains, and memory that is registered in them.

use crate::completion::CompletionQueue;
use crate::device::Device;
use crate::error::{Result, VerbsError, number};
use crate::queue_pair::{QueuePair, QueuePairOptions};
use crate::sys::layout::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, ibv_sge};
use crate::sys::{self, Buffer, Domain, Memory, Region, locked_memory_limit_octets};
use std::fmt;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What a device may do to memory, or peers by a queue pair. READ and atomic operations are not offered (D26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The device reads it: data to send.
    LocalRead,
    /// The device writes to it: data of SEND that it receives.
    LocalWrite,
    /// Peers write to it, by WRITE.
    RemoteWrite,
}

impl Access {
    pub(crate) fn flags(self) -> u32 {
        match self {
            Access::LocalRead => 0,
            Access::LocalWrite => IBV_ACCESS_LOCAL_WRITE,
            Access::RemoteWrite => IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
        }
    }
}

/// A protection domain: its queue pairs can access its memory regions, and no others.
#[derive(Clone, Debug)]
pub struct ProtectionDomain {
    device: Device,
    domain: Arc<Domain>,
}

/// Memory that could not be registered, or deregistered, with the reason.
pub struct RegistrationError<M> {
    /// The memory, or the region that is still registered.
    pub memory: M,
    /// The reason.
    pub error: VerbsError,
}

impl<M> fmt::Debug for RegistrationError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistrationError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<M> fmt::Display for RegistrationError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<M> std::error::Error for RegistrationError<M> {}

impl<M> From<RegistrationError<M>> for VerbsError {
    fn from(error: RegistrationError<M>) -> Self {
        error.error
    }
}

impl ProtectionDomain {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let domain = Domain::new(device.context());
        let domain = domain.map_err(|error| device.error("create a protection domain", error))?;
        Ok(ProtectionDomain { device: device.clone(), domain: Arc::new(domain) })
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Registers memory, which the kernel locks. Peers address it by its own address.
    ///
    /// # Errors
    ///
    /// With the memory: if the process may not lock so much.
    pub fn register<M: Memory>(&self, memory: M, access: Access) -> Result<MemoryRegion<M>, RegistrationError<M>> {
        self.registered(memory, None, access)
    }

    /// Registers memory whose first octet peers address by `virtual_address`, so that regions of several hosts can
    /// have the same.
    ///
    /// # Errors
    ///
    /// As [`ProtectionDomain::register`].
    pub fn register_at<M: Memory>(
        &self,
        memory: M,
        virtual_address: u64,
        access: Access,
    ) -> Result<MemoryRegion<M>, RegistrationError<M>> {
        self.registered(memory, Some(virtual_address), access)
    }

    fn registered<M: Memory>(
        &self,
        memory: M,
        virtual_address: Option<u64>,
        access: Access,
    ) -> Result<MemoryRegion<M>, RegistrationError<M>> {
        let octets = memory.octets();
        match self.domain.register(memory, virtual_address, access.flags()) {
            Ok(region) => Ok(MemoryRegion { device: self.device.clone(), region, access }),
            Err((memory, error)) => Err(RegistrationError { memory, error: self.registration_error(octets, error) }),
        }
    }

    /// Registers memory of another device, such as a GPU, that a dma-buf descriptor stands for: `octets` from `offset`
    /// on. Peers address its first octet by `virtual_address`.
    ///
    /// # Errors
    ///
    /// If the device, its driver or libibverbs does not support it.
    pub fn register_dma_buf(
        &self,
        descriptor: OwnedFd,
        offset: u64,
        octets: usize,
        virtual_address: u64,
        access: Access,
    ) -> Result<MemoryRegion<OwnedFd>> {
        let region = self.domain.register_dma_buf(descriptor, offset, octets, virtual_address, access.flags());
        let failed = |error| self.device.error(format!("register {octets} octets of a dma-buf"), error);
        Ok(MemoryRegion { device: self.device.clone(), region: region.map_err(failed)?, access })
    }

    /// An RC queue pair in state RESET, with completion queues of the same device.
    ///
    /// # Errors
    ///
    /// If the device's limits do not allow it.
    pub fn queue_pair(
        &self,
        options: &QueuePairOptions,
        send_completions: &CompletionQueue,
        receive_completions: &CompletionQueue,
    ) -> Result<QueuePair> {
        QueuePair::new(&self.device, &self.domain, options, send_completions, receive_completions)
    }

    fn registration_error(&self, octets: usize, error: sys::Error) -> VerbsError {
        match number(&error) {
            Some(libc::ENOMEM) => VerbsError::LockedMemory {
                device: self.device.name().to_owned(),
                octets,
                limit_octets: locked_memory_limit_octets(),
            },
            _ => self.device.error(format!("register {octets} octets"), error),
        }
    }
}

/// A memory region. It owns the memory, and returns it when the device can no longer reach it. A region that is dropped
/// is deregistered; if that fails, its memory is never freed.
#[derive(Debug)]
pub struct MemoryRegion<M> {
    device: Device,
    region: Region<M>,
    access: Access,
}

impl<M> MemoryRegion<M> {
    /// The key by which peers access it. It is a secret of the members of a group.
    pub fn rkey(&self) -> u32 {
        self.region.rkey()
    }

    /// Address of its first octet for peers.
    pub fn virtual_address(&self) -> u64 {
        self.region.base()
    }

    /// Its length.
    pub fn octets(&self) -> usize {
        self.region.octets()
    }

    /// What the device may do to it.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        self.region.memory()
    }

    /// A part of it for a request.
    ///
    /// # Errors
    ///
    /// If the range is not in the region, is empty, or has 2^32 octets or more.
    pub fn element(&self, range: Range<usize>) -> Result<ScatterGatherElement> {
        let outside = || VerbsError::NotInRegion { start: range.start, end: range.end, octets: self.octets() };
        let octets = range.end.checked_sub(range.start).filter(|octets| *octets > 0 && range.end <= self.octets());
        let length = octets.and_then(|octets| u32::try_from(octets).ok()).ok_or_else(outside)?;
        let addr = self.region.base().wrapping_add(range.start as u64);
        Ok(ScatterGatherElement(ibv_sge { addr, length, lkey: self.region.lkey() }))
    }

    /// Deregisters the region and returns its memory. Requests that name the region and are still in a queue fail; so
    /// do WRITEs of peers. A queue pair that is in error, or destroyed, has none.
    ///
    /// # Errors
    ///
    /// With the region, which is still registered.
    pub fn deregister(self) -> Result<M, RegistrationError<Self>> {
        let MemoryRegion { device, region, access } = self;
        region.deregister().map_err(|(region, error)| {
            let error = device.error("deregister memory", error);
            RegistrationError { memory: MemoryRegion { device, region, access }, error }
        })
    }
}

impl MemoryRegion<Buffer> {
    /// Copies octets into the buffer.
    ///
    /// # Panics
    ///
    /// If the buffer ends before.
    pub fn write(&mut self, offset: usize, octets: &[u8]) {
        self.region.write(offset, octets);
    }
}

/// A part of a memory region, of which a request has one or more.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ScatterGatherElement(ibv_sge);

impl ScatterGatherElement {
    /// Its length.
    pub fn octets(self) -> u32 {
        self.0.length
    }

    pub(crate) fn sge(self) -> ibv_sge {
        self.0
    }
}

/// Without the key.
impl fmt::Debug for ScatterGatherElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{}", self.0.addr, self.0.length)
    }
}
