//! RC queue pairs on RDMA devices, through libibverbs.
//!
//! The library is loaded when devices are listed or opened, so that neither building nor starting a program needs
//! rdma-core. Without it, without RDMA in the kernel or without a device, calls fail by an error that says what to do.
//!
//! * [`Device`] is opened by name, or by an address of a port: [`Device::open_by_address`] also chooses the GID index.
//! * [`ProtectionDomain`] registers [`Memory`] of the caller as a [`MemoryRegion`], and makes a [`QueuePair`].
//! * [`CompletionQueue`] has a completion channel, whose descriptor is one for poll(2) and epoll(7).
//! * [`QueuePair`] is connected by its caller: addresses, QPNs, PSNs and keys are exchanged elsewhere, or are those of
//!   a group.
//!
//! All handles may be used by several threads. They belong to the process that opened the device; after fork(2) they
//! fail in the child by [`VerbsError::Forked`].

mod completion;
mod device;
mod error;
mod event;
pub mod gid;
mod queue_pair;
mod region;
mod sys;

pub use completion::{Completed, Completion, CompletionQueue, WorkError, WorkStatus};
pub use device::{Device, DeviceLimits, LocalAddress, Port, devices};
pub use error::{Result, VerbsError};
pub use event::{Ended, Event};
pub use queue_pair::{
    AckTimeout, Operation, QueuePair, QueuePairOptions, ReadyToReceive, ReadyToSend, RemoteMemory, SendRequest,
};
pub use region::{Access, MemoryRegion, ProtectionDomain, RegistrationError, ScatterGatherElement};
pub use sys::{Buffer, Memory, RawMemory};
