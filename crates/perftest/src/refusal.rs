//! What is refused, of whom, and in which step.

use crate::message::Version;
use std::fmt;
use std::net::Ipv6Addr;
use thiserror::Error;

/// A party of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// The client.
    Client,
    /// A server, counted from 0.
    Server(usize),
}

/// A step of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Versions of perftest.
    Version,
    /// Sizes of the buffer in which messages are cycled through.
    BufferSize,
    /// Sizes of cache lines.
    CacheLine,
    /// Path MTUs.
    PathMtu,
    /// Keys: addresses, queue pairs, memory.
    Key,
    /// Keys again: before the run, behind it, and the run itself.
    Barrier,
    /// The result of a WRITE.
    Figures,
    /// The end.
    Done,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Version => "versions",
            Step::BufferSize => "buffer sizes",
            Step::CacheLine => "cache lines",
            Step::PathMtu => "path MTUs",
            Step::Key => "keys",
            Step::Barrier => "barriers and the run",
            Step::Figures => "figures",
            Step::Done => "the end",
        })
    }
}

/// A reason to end the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// Its connection has ended.
    #[error("has closed the connection")]
    Ended,
    /// Its connection has ended in the middle of a message.
    #[error("has closed the connection in the middle of a message")]
    EndedInside,
    /// Octets before it was asked, or more than a message.
    #[error("has sent octets out of turn")]
    OutOfTurn,
    /// A message that does not come in this step.
    #[error("has sent a message that does not come in this step")]
    OutOfOrder,
    /// Octets that are no message of perftest.
    #[error("has sent octets that are no message of perftest")]
    NoMessage,
    /// More barriers than a run over all sizes has.
    #[error("has sent more barriers than a test has")]
    TooManyBarriers,
    /// It begins with its key.
    #[error("sends no version: run it without --dont_xchg_versions")]
    NoVersion,
    /// It has a version whose messages are not known.
    #[error("has version {0}: versions {old} to {new} are known", old = Version::OLDEST, new = Version::NEWEST)]
    UnknownVersion(Version),
    /// A size that is none.
    #[error("has sent a size of {0} octets")]
    Size(u32),
    /// Buffers of different sizes.
    #[error("has a buffer of {0} octets, the first server one of {1}: all need the same page size")]
    OtherBufferSize(u32, u32),
    /// No path MTU.
    #[error("has sent no path MTU")]
    PathMtu,
    /// Different path MTUs.
    #[error("has a path MTU of {0} octets, the first server one of {1}: run all with the same -m")]
    OtherPathMtu(u32, u32),
    /// No GID in its key.
    #[error("sends no GID: run it with -x and the index of an IPv6 GID for RoCE v2")]
    NoGid,
    /// A GID that stands for an IPv4 address.
    #[error("has the GID of an IPv4 address: run it with -x and the index of an IPv6 GID for RoCE v2")]
    Ipv4Gid,
    /// A GID that no queue pair of a group can have.
    #[error("has the GID {0}: run it with -x and the index of a global IPv6 GID for RoCE v2")]
    Gid(Ipv6Addr),
    /// A reserved queue pair number.
    #[error("has the queue pair {0:#x}, which is reserved")]
    ReservedQpn(u32),
    /// The queue pair of READ or ATOMIC.
    #[error("is for READ or ATOMIC, which a group does not carry: ib_write_bw and ib_send_bw are measured")]
    Reads,
    /// Another queue pair.
    #[error("has several queue pairs: run it with -q 1")]
    SeveralQueuePairs,
    /// The same queue pair with another key.
    #[error("has sent another key than before")]
    OtherKey,
    /// Two members with the same GID.
    #[error("has the GID of another member, {0}")]
    SameGid(Ipv6Addr),
}

/// The end of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct Refusal {
    /// Whose octets, or end, it is.
    pub party: Party,
    /// The step.
    pub step: Step,
    /// The reason.
    pub problem: Problem,
}
