//! The host library: an application publishes versions of its buffers to the receivers of a multicast group.
//!
//! ```text
//!   Source, Receiver          handles of the application; a thread for each
//!        │
//!   Publisher, Subscriber     the version protocol, without I/O
//!        │
//!   srdma_rc::Endpoint        the queue pair, without I/O
//! ```
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod buffer;
mod device;
mod digest;
mod engine;
mod error;
mod event;
mod manifest;
mod memory;
mod publisher;
mod receiver;
mod source;
mod subscriber;

#[cfg(test)]
mod simulated;

pub use buffer::Buffer;
pub use device::{Device, DeviceOptions};
pub use digest::{Digest, DigestKind};
pub use error::{Error, Over, Result};
pub use event::Event;
pub use manifest::{
    End, Entry, MAX_BUFFERS, MAX_MANIFEST_OCTETS, MAX_NAME_OCTETS, MAX_SLOTS, Manifest, ManifestError, Message, Slots,
};
pub use memory::Region;
pub use publisher::Failure;
pub use receiver::{JoinOptions, Receiver, Version};
pub use source::{GroupOptions, Source};
pub use srdma_api::{ClientError, ProblemType};
pub use srdma_group::{OnFailure, Policy, RepairMode, RepairPolicy};
pub use srdma_host::WireError;
pub use subscriber::Rejection;
