//! Why a response is rejected.

use srdma_wire::Psn;
use thiserror::Error;

/// Why a response has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The branch does not exist or was removed.
    #[error("branch {0} is not part of the tree")]
    NoSuchBranch(u16),
    /// No data have gone down yet, so there is nothing to syndrome (R1).
    #[error("response at PSN {psn} before any data was sent")]
    NothingSent {
        /// First PSN that the response does not confirm.
        psn: Psn,
    },
    /// Further above the newest data than a restart explains: an inflated acknowledgement (R1, D15).
    #[error("response at PSN {psn} is implausibly far above {highest}, the highest sent down")]
    ImplausiblePsn {
        /// First PSN that the response does not confirm.
        psn: Psn,
        /// The highest PSN sent down.
        highest: Psn,
    },
    /// Further behind the newest data than any receiver can be (R1).
    #[error("response at PSN {psn} is more than 2^22 behind {newest}")]
    Stale {
        /// First PSN that the response does not confirm.
        psn: Psn,
        /// The newest PSN known.
        newest: Psn,
    },
    /// Before the PSN that the branch has acknowledged: reordered (R1).
    #[error("response at PSN {psn} is behind the branch's expected PSN {expected_psn}")]
    Behind {
        /// First PSN that the response does not confirm.
        psn: Psn,
        /// The branch's expected PSN.
        expected_psn: Psn,
    },
}
