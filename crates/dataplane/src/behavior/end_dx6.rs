//! End.DX6 (RFC 8986 section 4.4): decapsulation, and a given adjacency for the inner packet.

use super::{Outcome, end_dt6};
use crate::drop::DropReason;
use crate::headers::ipv6;
use crate::scope;
use srdma_frame::{Frame, Pool};

/// The behaviour; [`Outcome::Inner`] means: by the SID's adjacency, without a look-up. An inner packet to an address of
/// another link stays there (D233).
pub(crate) fn end_dx6(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    match end_dt6(frame, pool) {
        Outcome::Inner => match ipv6(frame.head(pool)) {
            Ok(inner) if scope::is_bound(inner.destination_octets()) => Outcome::Drop(DropReason::Scope),
            Ok(_) => Outcome::Inner,
            Err(reason) => Outcome::Drop(reason),
        },
        outcome @ (Outcome::Forward
        | Outcome::Ipv4
        | Outcome::Echo(_)
        | Outcome::Fragment(_)
        | Outcome::Drop(_)
        | Outcome::Report(..)) => outcome,
    }
}
