//! Failures of a transfer.

use crate::files::FileError;
use crate::trailer::TrailerError;
use srdma_rc::Status;
use std::time::Duration;

/// Reason for which a transfer failed.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The peer has never responded.
    #[error(
        "no response from the peer for {after:?}: is it running, and does it expect this address, queue pair and PSN?"
    )]
    NoResponse { after: Duration },
    /// The peer has stopped responding.
    #[error("nothing was acknowledged for {after:?}: the peer or the path to it failed")]
    NoProgress { after: Duration },
    /// Nothing was ever received.
    #[error("nothing was received for {after:?}: does the sender use this address, queue pair and PSN?")]
    NothingReceived { after: Duration },
    /// Nothing is received any more.
    #[error("nothing more was received for {after:?}: the sender or the path from it failed")]
    ReceiveTimeout { after: Duration },
    #[error("the group was closed before everything was sent")]
    GroupClosed,
    /// A work request failed.
    #[error("{}", of_status(*.0))]
    Request(Status),
    /// A request of the peer was rejected.
    #[error("the request of the sender was rejected: it exceeds the memory, or is invalid")]
    RequestRefused,
    /// The file that is sent or received.
    #[error(transparent)]
    File(#[from] FileError),
    /// The last message is no trailer.
    #[error(transparent)]
    Trailer(#[from] TrailerError),
    /// SENDs exceed the limit.
    #[error("the data exceed --size, {limit} octets, by {excess} octets")]
    TooLong {
        /// Octets beyond the limit.
        excess: u64,
        limit: u64,
    },
    /// The trailer has another length.
    #[error("the sender sent {sent} octets, {received} were received")]
    Length {
        /// Octets according to the trailer.
        sent: u64,
        /// Octets received; by WRITE, those of the region.
        received: u64,
    },
}

fn of_status(status: Status) -> &'static str {
    match status {
        Status::Success => "done",
        Status::LocalLengthError => "a message was longer than its receive",
        Status::RemoteInvalidRequest => {
            "the peer rejected a request as invalid (NAK 0x61): do both use the same path MTU, and does the peer \
             accept messages of this length?"
        }
        Status::RemoteAccessError => {
            "the peer denied access to its memory (NAK 0x62): rkey or virtual address is wrong, or the \
             data exceed its region"
        }
        Status::RemoteOperationalError => {
            "the peer can carry out no request any more (NAK 0x63), as when its disk is full: it says why"
        }
        Status::RetryExceeded => "the peer did not respond within --retries retransmissions",
        Status::RnrRetryExceeded => "the peer was not ready to receive within --retries attempts",
        Status::Flushed => "the queue pair has failed",
    }
}
