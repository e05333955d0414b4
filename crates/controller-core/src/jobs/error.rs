//! Errors of changes of jobs. A change with an error has no effect.

use super::MAX_FLOWS;
use srdma_fabric::ProgramError;
use srdma_placement::PlacementError;
use srdma_toml_error::LineError;

/// Reason for which a change of jobs is refused.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// Not a jobs file.
    #[error("invalid jobs file: {0}")]
    NotJobs(LineError),
    /// There is no job in the text.
    #[error("the jobs file has no [[job]]")]
    NoJobs,
    /// Not a name of a job.
    #[error("invalid job name {name:?}: expected 1 to 64 letters, digits, dots, hyphens and underscores")]
    Name { name: String },
    /// A job of this name exists.
    #[error("job {name} exists already: remove it first, or rename the new one")]
    Exists { name: String },
    /// No job has this name.
    #[error("job {name} does not exist")]
    Unknown { name: String },
    /// A job without flows.
    #[error("job {name} sends nothing: it needs a collective and at least two NICs")]
    NoFlows { name: String },
    /// More flows than the controller stores.
    #[error("the jobs have up to {found} flows, and the controller has no room for them: it stores {MAX_FLOWS}")]
    TooManyFlows {
        /// Flows that are wanted, at most.
        found: u64,
    },
    /// More flows than the tenant may have.
    #[error("the jobs have up to {found} flows; tenant {tenant} has {has} of its {most}")]
    FlowQuota {
        tenant: String,
        /// Flows that are wanted, at most.
        found: u64,
        /// Flows of its other jobs.
        has: u64,
        /// Limit of its flows.
        most: u64,
    },
    /// More jobs than the tenant may have.
    #[error("{found} more jobs; tenant {tenant} has {has} of its {most}")]
    JobQuota { tenant: String, found: usize, has: usize, most: usize },
    /// A NIC that is not the tenant's.
    #[error("job {name}: {nic} is in no `nics` of tenant {tenant}")]
    Nic { name: String, nic: String, tenant: String },
    /// A tenant number that is not the tenant's.
    #[error("job {name}: tenant {number} is not the number of tenant {tenant}")]
    Number { name: String, number: u16, tenant: String },
    /// Flows were not all placed in time.
    #[error("not all flows were placed in time: place fewer together, or raise `placement_deadline_ms`")]
    TimeOver,
    /// A name of neither a switch nor a link.
    #[error("{name}: neither a switch nor a link of the fabric; a link is named like leaf1-spine2")]
    UnknownLink { name: String },
    /// A link that is to be used again has failed.
    #[error("{link} cannot be released: the fabric file marks it as failed")]
    Failed { link: String },
    /// A NIC would be cut off.
    #[error("cannot drain {names}: {problem}")]
    Disconnects {
        /// Names to drain.
        names: String,
        /// The NIC, and its problem.
        problem: PlacementError,
    },
    /// A flow has no path.
    #[error(transparent)]
    NoPath(PlacementError),
    /// A path has no program.
    #[error(transparent)]
    NoProgram(ProgramError),
    /// The stored jobs do not fit the fabric.
    #[error("the stored jobs do not fit the fabric file: {0}")]
    Stored(PlacementError),
    /// A stored row is invalid, or does not fit the fabric.
    #[error("the store's row {key}: {problem}")]
    Row { key: String, problem: String },
}
