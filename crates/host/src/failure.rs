//! Why a transfer failed.

use crate::trailer::TrailerError;
use srdma_rc::Status;
use std::time::Duration;

/// Why a transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The peer never answered.
    #[error(
        "the peer has not answered for {after:?}: is it there, and does it expect this address, queue pair and PSN?"
    )]
    NoAnswer {
        /// How long.
        after: Duration,
    },
    /// The peer has stopped answering.
    #[error("nothing was acknowledged for {after:?}: the peer, or the way to it, is gone")]
    NoProgress {
        /// How long.
        after: Duration,
    },
    /// Nothing has ever come.
    #[error("nothing has come for {after:?}: does the sender use this address, queue pair and PSN?")]
    NothingCame {
        /// How long.
        after: Duration,
    },
    /// Nothing comes any more.
    #[error("nothing more has come for {after:?}: the sender, or the way from it, is gone")]
    NothingMore {
        /// How long.
        after: Duration,
    },
    /// The group is closed: nobody takes what is sent.
    #[error("the group was closed before everything was sent")]
    GroupClosed,
    /// A work request failed.
    #[error("{}", of_status(*.0))]
    Request(Status),
    /// The peer's request was refused.
    #[error("the sender's request was refused: it does not fit the memory, or makes no sense here")]
    RequestRefused,
    /// The last message is no trailer.
    #[error(transparent)]
    Trailer(#[from] TrailerError),
    /// SENDs brought more than was agreed upon.
    #[error("{excess} octets more have come than the {limit} that --size allows")]
    TooMuch {
        /// Octets beyond the limit.
        excess: u64,
        /// The limit.
        limit: u64,
    },
    /// The trailer speaks of another length.
    #[error("the sender says that it sent {sent} octets, {received} have come")]
    Length {
        /// Octets by the trailer.
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
            "the peer called a request invalid (NAK 0x61): do both use the same path MTU, and are the messages as \
             long as the peer takes them?"
        }
        Status::RemoteAccessError => {
            "the peer refused access to its memory (NAK 0x62): rkey or virtual address are wrong, or the data are \
             longer than its region"
        }
        Status::RemoteOperationalError => "the peer could not carry out a request (NAK 0x63)",
        Status::RetryExceeded => "the peer did not answer as often as --retries allows",
        Status::RnrRetryExceeded => "the peer was not ready to receive as often as --retries allows",
        Status::Flushed => "the queue pair has failed",
    }
}
