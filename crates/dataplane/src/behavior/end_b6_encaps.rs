//! End.B6.Encaps and End.B6.Encaps.Red (RFC 8986 sections 4.13 and 4.14): the next segment by way of an SR policy.

use super::{Flavors, Outcome, end};
use srdma_frame::{Frame, Pool};

/// S01–S14, which are those of End. [`Outcome::Forward`] means: the policy's headers are pushed (S15–S18), and their
/// destination is looked up (S19).
pub(crate) fn end_b6_encaps(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    end(frame, pool, Flavors::default())
}
