//! Errors of changes of jobs. A change with an error has no effect.

use super::MAX_FLOWS;
use srdma_fabric::ProgramError;
use srdma_placement::PlacementError;
use srdma_toml_error::LineError;

/// Reason for which a change of jobs is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The text is no file of jobs.
    #[error("no jobs: {0}")]
    NotJobs(LineError),
    /// There is no job in the text.
    #[error("there is no job in it: give one by [[job]]")]
    NoJobs,
    /// A name that is none.
    #[error("{name:?} is no name of a job: expected 1 to 64 letters, digits, dots, hyphens and underscores")]
    Name {
        /// The name.
        name: String,
    },
    /// A job of this name is there.
    #[error("there is a job {name} already: remove it first, or give the new one another name")]
    Exists {
        /// The job.
        name: String,
    },
    /// No job of this name is there.
    #[error("there is no job {name}")]
    Unknown {
        /// The job.
        name: String,
    },
    /// A job without flows.
    #[error("job {name} sends nothing: give it a collective, and two NICs")]
    SendsNothing {
        /// The job.
        name: String,
    },
    /// More flows than the controller keeps.
    #[error("the jobs have up to {found} flows, and there is room for {room} of {MAX_FLOWS}")]
    TooManyFlows {
        /// Flows that are wanted, at most.
        found: u64,
        /// Flows that there is room for.
        room: u64,
    },
    /// A name of neither a switch nor a link.
    #[error("{name}: no switch and no link of this fabric; links are called as leaf1-spine2")]
    NoSuchLink {
        /// The name.
        name: String,
    },
    /// A link that is to be used again has failed.
    #[error("{link} has failed, says the fabric's file: it cannot be released")]
    Failed {
        /// The link.
        link: String,
    },
    /// A NIC would be cut off.
    #[error("cannot drain {names}: {problem}")]
    CutOff {
        /// Names to drain.
        names: String,
        /// The NIC, and its problem.
        problem: PlacementError,
    },
    /// A flow has no way.
    #[error(transparent)]
    NoWay(PlacementError),
    /// A path has no program.
    #[error(transparent)]
    NoProgram(ProgramError),
    /// The stored jobs do not fit the fabric.
    #[error("the placed jobs do not fit the fabric's file: {0}")]
    Kept(PlacementError),
    /// A stored row is none, or does not fit the fabric.
    #[error("the store's row {key}: {problem}")]
    Row {
        /// Its key.
        key: String,
        /// Problem.
        problem: String,
    },
}
