//! Errors of operations on a lab.

use crate::containerlab::ExportError;
use srdma_toml_error::FileError;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// An error of an operation on a lab. Resources that were created before it stay for inspection, and `down` removes
/// them.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Network namespaces need root.
    #[error("a lab makes network namespaces and interfaces, which only root may: run it with sudo")]
    NotRoot,
    /// The system lets no other user make namespaces.
    #[error("a lab without root needs a user namespace: {0}; or run it with sudo")]
    Rootless(String),
    /// Neither a shipped lab nor a file.
    #[error("there is no lab {name} and no such file: shipped labs are {}", shipped.join(", "))]
    Unknown {
        /// The requested lab.
        name: String,
        shipped: Vec<String>,
    },
    /// A topology file that is wrong.
    #[error(transparent)]
    Topology(#[from] FileError),
    /// An instance suffix that cannot be part of a name.
    #[error("instance {0}: expected 1 to 16 lower-case letters, digits and hyphens")]
    Instance(String),
    /// The lab exists.
    #[error("lab {0} is up, or was left behind: take it down first with `srdma lab down {0}`, or use --instance")]
    IsUp(String),
    /// The lab does not exist.
    #[error("lab {0} is not up: `srdma lab up {0}` brings it up")]
    IsDown(String),
    /// No node of this name.
    #[error("lab {lab} has no node {node}: its nodes are {}", nodes.join(", "))]
    UnknownNode {
        lab: String,
        /// The requested node.
        node: String,
        nodes: Vec<String>,
    },
    /// A program cannot be started at all.
    #[error("cannot start `{line}`: {error}")]
    Start {
        /// The whole command.
        line: String,
        error: io::Error,
    },
    /// A command failed.
    #[error("`{line}` failed with {status}: {output}")]
    Command {
        /// The whole command.
        line: String,
        status: ExitStatus,
        /// Text of its error output.
        output: String,
    },
    /// A process did not become ready, or did not do in time what was waited for.
    #[error("{process} did not {what} within {waited_s} s; the last lines of {}:\n{tail}", log.display())]
    Late {
        process: String,
        /// The operation.
        what: String,
        /// Time that it was waited for, in seconds.
        waited_s: u64,
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A process ended that should not have.
    #[error("{process} ended before it could {what}; the last lines of {}:\n{tail}", log.display())]
    Ended {
        process: String,
        /// The operation.
        what: String,
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A file or directory cannot be used.
    #[error("cannot {action} {}: {error}", path.display())]
    File {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A system call failed.
    #[error("cannot {action}: {error}")]
    System {
        /// The operation.
        action: String,
        /// The reason.
        error: io::Error,
    },
    /// Output that the lab cannot parse.
    #[error("{who}: {problem}")]
    Unexpected {
        /// A process or command.
        who: String,
        /// The expected and the found value.
        problem: String,
    },
    /// The group of the lab cannot be.
    #[error("the lab's group: {0}")]
    Group(String),
    /// The lab has nothing to transfer.
    #[error(
        "lab {0} has no [group], no [controller.group] and no source in [run]: there is nothing to run; \
         `srdma lab up {0}` brings it up"
    )]
    NoGroup(String),
    /// The lab's controller refuses, or is not reached.
    #[error("the lab's controller: {0}")]
    Controller(#[from] srdma_api::ClientError),
    /// The lab cannot be written for another program.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// SIGINT or SIGTERM was received.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// For `map_err`: this could not be done to a file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError + use<> {
        let path = path.to_owned();
        move |error| LabError::File { action, path, error }
    }

    /// For `map_err`: a system call failed.
    pub(crate) fn system<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> LabError {
        let action = action.into();
        move |error| LabError::System { action, error: error.into() }
    }
}

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, LabError>;
