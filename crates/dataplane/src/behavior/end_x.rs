//! End.X (RFC 8986 section 4.2): as End, but the packet leaves by a given adjacency. With NEXT-CSID, PSP and USD: uA.

use super::{Flavors, Outcome, end};
use srdma_frame::{Frame, Pool};

/// The behaviour. Both `Forward` and `Inner` mean: by the SID's adjacency, without a look-up.
#[inline]
pub(crate) fn end_x(frame: &mut Frame, pool: &mut Pool, flavors: Flavors) -> Outcome {
    end(frame, pool, flavors)
}
