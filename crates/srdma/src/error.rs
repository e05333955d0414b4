//! Errors, each at the call that caused it.

use crate::manifest::{ManifestError, Slots};
use crate::publisher::{Failure, PublishError};
use crate::ranks::Detach;
use srdma_api::ClientError;
use srdma_host::WireError;
use srdma_rc::{ConfigError, Status};
use srdma_verbs::{VerbsError, WorkError};
use std::io;
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// Why a call has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no provider {0:?}: udp, verbs, and verbs:NAME for the RDMA device of this name are")]
    UnknownProvider(String),
    #[error("the token file: {0}")]
    TokenFile(String),
    #[error("the controller: {0}")]
    Controller(#[from] ClientError),
    #[error(
        "an address is needed: the options have none, the host has several, or none, and without a Proxy Address none \
         can be chosen"
    )]
    NoAddress,
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("{0}")]
    Verbs(#[from] VerbsError),
    #[error("buffer {0:?} is at another place at each look: a device cannot read it")]
    BufferMoves(String),
    #[error("{0} is memory of a GPU, which this version does not read or write: copy it to memory of the host")]
    DeviceMemory(String),
    #[error("the queue pair: {0}")]
    QueuePair(#[from] ConfigError),
    #[error("the controller describes a group that this version cannot use: {0}")]
    InvalidGroup(&'static str),
    #[error("{} slots of {} octets: 1 to 64 slots of at least one octet", .0.count, .0.octets)]
    Slots(Slots),
    #[error("{name} {value} is out of range: {range}")]
    OutOfRange { name: &'static str, value: u64, range: &'static str },
    #[error("group {0} has no region: its source is not one of this library")]
    NoRegion(u32),
    #[error("the region has {found} octets, group {group} needs {needed}")]
    RegionTooSmall { group: u32, found: u64, needed: u64 },
    #[error("group {0} has several regions of memory: a process that shares its receiver with others can have one")]
    SharedRegions(u32),
    #[error("{found} regions, group {group} has {needed}")]
    RegionCount { group: u32, found: usize, needed: usize },
    #[error("there is no memory of {0} octets")]
    NoMemory(u64),
    #[error("ranks of a host share memory of the library: no other region can be given")]
    SharedRegion,
    #[error("the directory of ranks, {}: {error}", .path.display())]
    RuntimeDirectory { path: PathBuf, error: io::Error },
    #[error("another process of this host is to have the receiver, and did not join in time")]
    NoOwner,
    #[error("{what}: {error}")]
    System { what: &'static str, error: io::Error },
    #[error("{} did not leave group {group}, which it had joined before, in time", .address.to_canonical())]
    StillMember { group: u32, address: Ipv6Addr },
    #[error(
        "{} is the last receiver of group {group}, which cannot be without one: let another receiver join before, or \
         its source close the group and create another", .address.to_canonical()
    )]
    LastReceiver { group: u32, address: Ipv6Addr },
    #[error("the group was not ready in time: {found} of {wanted} receivers had joined")]
    NotReady { found: u32, wanted: u32 },
    #[error("the group is not committed: {0}")]
    NotCommitted(String),
    #[error("the group is committed already")]
    AlreadyCommitted,
    #[error("version {version} is not after version {newest}")]
    NotNewer { version: u64, newest: u64 },
    #[error("too many versions wait to be sent: wait for one")]
    QueueFull,
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    #[error("version {0} was not published, or was rejected")]
    UnknownVersion(u64),
    #[error("not in time")]
    Timeout,
    #[error("{0}")]
    Over(Over),
    #[error("{expected} shards or rails, not {found}")]
    Count { expected: usize, found: usize },
    #[error("rail {rail}: {error}")]
    Rail { rail: usize, error: Box<Error> },
    #[error("{0} is not an option of rails")]
    NotOnRails(&'static str),
    #[error("shard {shard}: {error}")]
    Shard { shard: usize, error: Box<Error> },
    #[error("the handle belongs to another process: handles do not survive fork()")]
    Forked,
}

/// Why a source or a receiver works no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Over {
    #[error("the group is closed")]
    GroupClosed,
    #[error("the handle is closed")]
    Closed,
    #[error("the receiver is no longer a member of the group: it was evicted, or another process has left for it")]
    Evicted,
    #[error("the controller has refused the receiver: {0}")]
    Refused(String),
    #[error("the queue pair has failed: {0}")]
    QueuePair(String),
    #[error("the socket has failed: {0}")]
    Socket(String),
    #[error("the RDMA device has failed: {0}")]
    Device(String),
    #[error("the owner of the host's receiver has detached this process: {0}")]
    Detached(Detach),
    #[error("the owner of the host's receiver is lost, and there is no other: {0}")]
    NoOwner(String),
}

/// Why a queue pair has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// An endpoint of provider `udp`.
    #[error("{0:?}")]
    Endpoint(Status),
    /// A queue pair of provider `verbs`.
    #[error("{0}")]
    Device(WorkError),
}

impl From<PublishError> for Error {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::NotNewer { version, newest } => Error::NotNewer { version, newest },
            PublishError::QueueFull => Error::QueueFull,
            PublishError::Manifest(error) => Error::Manifest(error),
            PublishError::Memory(error) => Error::Verbs(error),
            PublishError::Failed(failure) => Error::Over(failure.into()),
        }
    }
}

impl From<Failure> for Over {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Closed => Over::GroupClosed,
            Failure::Abandoned => Over::Closed,
            Failure::QueuePair(error) => Over::QueuePair(error.to_string()),
            Failure::Silent => Over::QueuePair(failure.to_string()),
        }
    }
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;
