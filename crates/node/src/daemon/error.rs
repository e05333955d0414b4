//! Errors that prevent the start of a daemon, or end it.

use super::claim::ClaimError;
use super::handle::Died;
use super::status::StatusError;
use srdma_dataplane::ConfigError;
use srdma_io::OpenError;
use srdma_toml_error::FileError;
use std::io;

/// Reason for a daemon that did not start, or ended without an order.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is wrong.
    #[error(transparent)]
    Configuration(#[from] FileError),
    /// The deny list that the configuration names is wrong.
    #[error("{0}")]
    DenyList(String),
    /// A node refuses the configuration.
    #[error(transparent)]
    Node(#[from] ConfigError),
    /// An interface is another process's, or it cannot be found out.
    #[error("port {port}: {reason}")]
    Claim {
        port: String,
        /// Process that uses it.
        reason: String,
        is_in_use: bool,
    },
    /// No driver can be had for an interface that is there.
    #[error("port {port}: {error}")]
    Attach { port: String, error: OpenError },
    /// The status socket cannot be made.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// Something that the process needs of the kernel.
    #[error("{what}: {error}")]
    System {
        what: &'static str,
        /// Reason.
        error: io::Error,
    },
    /// The data thread is gone.
    #[error("{0}")]
    Died(String),
}

impl DaemonError {
    /// Whether the node had begun to run.
    pub fn was_running(&self) -> bool {
        matches!(self, DaemonError::Died(_))
    }

    /// Whether another node has what this one needs: it may start when that one has ended.
    pub fn is_in_use(&self) -> bool {
        matches!(self, DaemonError::Claim { is_in_use: true, .. } | DaemonError::Status(StatusError::InUse(_)))
    }

    pub(super) fn claim(port: &str, error: &ClaimError) -> Self {
        let is_in_use = matches!(error, ClaimError::InUse { .. });
        DaemonError::Claim { port: port.to_owned(), reason: error.to_string(), is_in_use }
    }
}

impl From<Died> for DaemonError {
    fn from(died: Died) -> Self {
        DaemonError::Died(died.to_string())
    }
}
