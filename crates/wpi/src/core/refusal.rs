//! Why a request is refused: each reason has one sentence and one status of gRPC.

use super::name::{BufferId, ClaimId, Target};

/// The kind of a refusal, as gRPC has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request makes no sense, whatever the state.
    InvalidArgument,
    /// A range is beyond the end.
    OutOfRange,
    /// What the request names is not there.
    NotFound,
    /// It is there, and is something else.
    AlreadyExists,
    /// The state does not permit it now, and trying again alone does not help.
    FailedPrecondition,
    /// Something else is in progress: try again.
    Aborted,
    /// A limit is reached.
    ResourceExhausted,
    /// The driver may not do that.
    PermissionDenied,
    /// The driver does not have that.
    Unimplemented,
}

/// A request that is refused, without effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Refusal {
    #[error(
        "\"{0}\" is no name of a buffer: 1 to 64 letters, digits, '-', '_' and '.', not first a '.', not last \
         \"_notify\", not \"wpi-grpc\""
    )]
    BufferName(String),
    #[error("\"{0}\" is no name of a claim: 1 to 253 printable characters without spaces")]
    ClaimName(String),
    #[error("\"{0}\" is no target: the address or the host name of a node, and a port if it is not the usual one")]
    TargetName(String),
    #[error("buffer {0} is not staged at this node")]
    UnknownBuffer(BufferId),
    #[error("claim {0} is not staged at this node")]
    UnknownClaim(ClaimId),
    #[error("claim {claim} has buffer {has} already, not {wanted}")]
    OtherBuffer { claim: ClaimId, has: BufferId, wanted: BufferId },
    #[error("buffer {buffer} has {has} octets, not {wanted}")]
    OtherLength { buffer: BufferId, has: u64, wanted: u64 },
    #[error("buffer {0} needs size_bytes: it has no length otherwise")]
    NoLength(BufferId),
    #[error("buffer {buffer} of {wanted} octets needs more memory than the {left} octets that are left of --memory")]
    NoMemory { buffer: BufferId, wanted: u64, left: u64 },
    #[error("this node has {0} already, the most that there may be")]
    TooMany(&'static str),
    #[error("shard {index} of {total}: shards are counted from 0")]
    ShardIndex { index: i32, total: i32 },
    #[error("buffer {0} is being propagated or received: try again later")]
    Busy(BufferId),
    #[error("buffer {0} is being staged: try again later")]
    BeingStaged(BufferId),
    #[error("there is no target")]
    NoTarget,
    #[error("target {0} is this node, which has the buffer")]
    OwnNode(Target),
    #[error("target {0} is there twice")]
    TargetTwice(Target),
    #[error("mode {0} is neither BROADCAST nor SCATTER")]
    Mode(i32),
    #[error("BROADCAST has no shard_assignments: each target gets all octets")]
    AssignmentsOfBroadcast,
    #[error("target {0} has no shard assignment")]
    Unassigned(Target),
    #[error("a shard is assigned to {0}, which is not in target_node_ids")]
    AssignedToOther(Target),
    #[error("the same octets are assigned to target {0} twice")]
    AssignedTwice(Target),
    #[error("octets {offset} to {offset} + {length} are not in buffer {buffer}, which has {has}")]
    Range { buffer: BufferId, offset: u64, length: u64, has: u64 },
    #[error("a shard of no octets for target {0}")]
    EmptyShard(Target),
    #[error("GPU {0}: this driver has memory of the host alone, which is GPU 0 of requests")]
    Gpu(i64),
    #[error("this driver does not change layouts: ROW_MAJOR without tiling_metadata is all that it has")]
    Layout,
    #[error("{0} is not a call of this driver: {1}")]
    Call(&'static str, &'static str),
    #[error("source_path is not permitted: the driver runs without --source-directory")]
    NoSourceDirectory,
}

impl Refusal {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Refusal::BufferName(_)
            | Refusal::ClaimName(_)
            | Refusal::TargetName(_)
            | Refusal::NoLength(_)
            | Refusal::ShardIndex { .. }
            | Refusal::NoTarget
            | Refusal::OwnNode(_)
            | Refusal::TargetTwice(_)
            | Refusal::Mode(_)
            | Refusal::AssignmentsOfBroadcast
            | Refusal::Unassigned(_)
            | Refusal::AssignedToOther(_)
            | Refusal::AssignedTwice(_)
            | Refusal::EmptyShard(_) => Kind::InvalidArgument,
            Refusal::Range { .. } => Kind::OutOfRange,
            Refusal::UnknownBuffer(_) | Refusal::UnknownClaim(_) => Kind::NotFound,
            Refusal::OtherBuffer { .. } => Kind::AlreadyExists,
            Refusal::OtherLength { .. } => Kind::FailedPrecondition,
            Refusal::Busy(_) | Refusal::BeingStaged(_) => Kind::Aborted,
            Refusal::NoMemory { .. } | Refusal::TooMany(_) => Kind::ResourceExhausted,
            Refusal::NoSourceDirectory => Kind::PermissionDenied,
            Refusal::Gpu(_) | Refusal::Layout | Refusal::Call(..) => Kind::Unimplemented,
        }
    }
}
