//! Why a response is not believed.

use srdma_wire::Psn;
use thiserror::Error;

/// Why a response changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The branch does not exist or was removed.
    #[error("branch {0} is not part of the tree")]
    NoSuchBranch(u16),
    /// No data have gone down yet, so there is nothing to answer (R1).
    #[error("response at PSN {next} before any data went down")]
    NothingSent {
        /// The point of the response.
        next: Psn,
    },
    /// Further above the newest data than a restart explains: an inflated acknowledgement (R1, D15).
    #[error("response at PSN {next} is implausibly far above {highest}, the highest sent down")]
    ImplausiblePsn {
        /// The point of the response.
        next: Psn,
        /// The highest PSN sent down.
        highest: Psn,
    },
    /// Further behind the newest data than any receiver can be (R1).
    #[error("response at PSN {next} is more than 2^22 behind {newest}")]
    Stale {
        /// The point of the response.
        next: Psn,
        /// The newest PSN known.
        newest: Psn,
    },
    /// Behind what the branch has confirmed before: overtaken on its way (R1).
    #[error("response at PSN {next} is behind the branch's point {point}")]
    Behind {
        /// The point of the response.
        next: Psn,
        /// The branch's point.
        point: Psn,
    },
}
