//! Work requests, posted receives, and their completions.

use crate::memory::MemoryKey;
use srdma_wire::Qpn;

/// A range of the host's own memory.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalRange {
    /// The region.
    pub key: MemoryKey,
    /// First octet, from the start of the region.
    pub offset: u64,
    pub length_octets: u32,
}

/// A place in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Virtual address of the first octet.
    pub virtual_address: u64,
    /// Key of the region that contains it.
    pub rkey: MemoryKey,
}

/// Operation of a work request.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// SEND: to a receive that the peer posted.
    Send {
        /// 32 bits for the peer's completion.
        immediate: Option<[u8; 4]>,
    },
    /// RDMA WRITE; with immediate data it uses up a receive that the peer posted.
    Write {
        remote: RemoteAddress,
        /// 32 bits for the peer's completion.
        immediate: Option<[u8; 4]>,
    },
    /// RDMA READ. A group's Proxy Address refuses it (D26).
    Read { remote: RemoteAddress },
}

/// A message to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRequest {
    /// The host's identifier of the request, returned by the completion.
    pub wr_id: u64,
    /// Operation of the request.
    pub operation: Operation,
    /// The data; for a READ the place they go to. At most 2^31 octets.
    pub local: LocalRange,
    /// Whether success makes a completion. A failure always does.
    pub signalled: bool,
}

/// A place for one SEND, or a token for one WRITE with immediate data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The host's identifier of the request, returned by the completion.
    pub wr_id: u64,
    /// Local memory of the data.
    pub local: LocalRange,
}

/// Result of a work request or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Success,
    /// The message was longer than the receive.
    LocalLengthError,
    /// The peer called the request invalid (NAK 0x61).
    RemoteInvalidRequest,
    /// The peer's keys, bounds or access rights forbade it (NAK 0x62).
    RemoteAccessError,
    /// The peer could not do it (NAK 0x63).
    RemoteOperationalError,
    /// The peer did not answer, or kept asking for the same packet, more often than the retry count allows.
    RetryExceeded,
    /// The peer was not ready more often than the RNR retry count allows.
    RnrRetryExceeded,
    /// Not done: the queue pair had failed.
    Flushed,
}

/// Operation that was completed.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletedOperation {
    Send,
    Write,
    Read,
    /// A receive that a SEND filled, or that was not used.
    Receive,
    /// A receive that a WRITE with immediate data used up.
    ReceiveWriteImmediate,
}

/// The end of a work request or a receive.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The queue pair it was posted to.
    pub qpn: Qpn,
    /// The host's own name for it.
    pub wr_id: u64,
    pub operation: CompletedOperation,
    pub status: Status,
    /// Octets carried; on failure 0.
    pub length_octets: u32,
    /// Immediate data received.
    pub immediate: Option<[u8; 4]>,
}

/// The reason why a work request or a receive was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The endpoint has no such queue pair.
    #[error("no queue pair {0}")]
    UnknownQueuePair(Qpn),
    /// The queue pair has failed.
    #[error("queue pair {0} is in the error state")]
    InError(Qpn),
    /// As much as the configuration allows is posted.
    #[error("queue pair {qpn}: {depth} posted already, the queue holds no more")]
    QueueFull {
        /// The queue pair.
        qpn: Qpn,
        /// Entries of the queue.
        depth: usize,
    },
    /// Longer than a message can be.
    #[error("queue pair {qpn}: a message has at most 2^31 octets, found {found}")]
    TooLong {
        /// The queue pair.
        qpn: Qpn,
        /// Requested octets.
        found: u32,
    },
    /// The local range is not inside a region.
    #[error(
        "queue pair {qpn}: {length_octets} octets at offset {offset} are not inside region {key:#x}",
        key = local.key.0, offset = local.offset, length_octets = local.length_octets
    )]
    OutsideRegion {
        /// The queue pair.
        qpn: Qpn,
        /// The requested range.
        local: LocalRange,
    },
}

/// The reason why a memory region was not deregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeregisterError {
    /// There is no such region. (The message does not name the key, which a log is not to have.)
    #[error("there is no memory region of this key")]
    Unknown(MemoryKey),
    /// Posted work uses it.
    #[error("queue pair {qpn}: posted work that is not completed uses the memory region")]
    InUse {
        /// The region.
        key: MemoryKey,
        /// The queue pair of the work.
        qpn: Qpn,
    },
}
