//! End.DX4 (RFC 8986 section 4.5): decapsulation, and a given adjacency for the inner packet.

use super::{Outcome, end_dt4};
use srdma_frame::{Frame, Pool};

/// The behaviour; [`Outcome::Ipv4`] means: by the SID's adjacency, without a look-up.
#[cold]
pub(crate) fn end_dx4(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    end_dt4(frame, pool)
}
