//! The host library: an application publishes versions of its buffers to the receivers of a multicast group.
//!
//! ```text
//!   Source, Receiver          handles of the application; a thread for each
//!        │
//!   Publisher, Subscriber     the version protocol, without I/O
//!        │
//!   provider                  the queue pair: an endpoint of srdma-rc on a socket, or one of an RDMA device
//! ```
//!
//! `docs/applications.md` describes the calls, the events and the messages.
//!
//! # Example
//!
//! ```no_run
//! use srdma::{Buffer, Device, DeviceOptions, GroupOptions, JoinOptions};
//! use std::time::Duration;
//!
//! const MINUTE: Duration = Duration::from_secs(60);
//!
//! fn source(weights: Vec<u8>) -> srdma::Result<()> {
//!     let device = Device::open(&DeviceOptions::from_environment())?;
//!     let source = device.create_group(&GroupOptions::for_buffers([weights.len() as u64]))?;
//!     println!("group {}", source.group());
//!     source.commit(3, MINUTE)?;
//!     source.publish(1, vec![Buffer::new("weights", weights)])?;
//!     source.wait(1, MINUTE)
//! }
//!
//! fn receiver(group: u32) -> srdma::Result<()> {
//!     let device = Device::open(&DeviceOptions::from_environment())?;
//!     let receiver = device.join(group, JoinOptions::default())?;
//!     let version = receiver.next_version(MINUTE)?;
//!     println!("{} octets", version.buffer("weights").map_or(0, <[u8]>::len));
//!     Ok(())
//! }
//! ```
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod buffer;
mod current;
mod device;
mod digest;
mod engine;
mod error;
mod event;
mod manifest;
mod memory;
mod provider;
mod publisher;
mod rails;
mod ranks;
mod receiver;
mod scatter;
mod source;
mod statistics;
mod subscriber;
mod versions;

#[cfg(test)]
mod simulated;

pub use buffer::Buffer;
pub use current::FetchError;
pub use device::{Device, DeviceOptions};
pub use digest::{Digest, DigestKind};
pub use error::{Error, Over, PairError, Result};
pub use event::Event;
pub use manifest::{
    End, Entry, MAX_BUFFERS, MAX_MANIFEST_OCTETS, MAX_NAME_OCTETS, MAX_SLOTS, Manifest, ManifestError, Message,
    SlotRegions, Slots,
};
pub use memory::Region;
pub use publisher::Failure;
pub use rails::{
    RailEvent, RailHeader, RailMessageError, RailOptions, RailPart, RailReceiver, RailRejection, RailSource,
    RailVersion,
};
#[doc(hidden)]
pub use ranks::rank_messages;
pub use ranks::{Detach, RankEnd, RankMessageError};
pub use receiver::{JoinOptions, Receiver, Version};
pub use scatter::{Scatter, ScatterEvent, ScatterOptions};
pub use source::{GroupOptions, Source};
pub use srdma_api::{ClientError, ProblemType};
pub use srdma_group::{MAX_REGIONS, OnFailure, Policy, RepairMode, RepairPolicy};
pub use srdma_host::WireError;
pub use srdma_verbs::{VerbsError, WorkError, WorkStatus};
pub use srdma_wire::host_address;
pub use statistics::{PacketStatistics, Statistics};
pub use subscriber::Rejection;

/// Handles are used by several threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Device>();
    is_shared::<Source>();
    is_shared::<Scatter>();
    is_shared::<Receiver>();
    is_shared::<RailSource>();
    is_shared::<RailReceiver>();
    is_shared::<RailVersion>();
    is_shared::<Version>();
    is_shared::<Buffer>();
};
