//! End.DX2 (RFC 8986 section 4.9): decapsulation, and a given port for the Ethernet frame.

use super::end_dt6::upper_layer_place;
use super::{Outcome, upper_layer};
use crate::drop::DropReason;
use crate::headers::IPV6;
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv6::NextHeader;

/// The behaviour; [`Outcome::Inner`] means: what is left is an Ethernet frame, for the SID's port.
pub(crate) fn end_dx2(frame: &mut Frame, pool: &Pool) -> Outcome {
    let place = upper_layer_place(frame.head(pool));
    // Upper-layer S01. If (Upper-Layer header type == 143 (Ethernet))
    match place.and_then(|at| upper_layer::inner(frame.head(pool), at, NextHeader::ETHERNET)) {
        Ok(at) if frame.len() < at + IPV6 => Outcome::Drop(DropReason::Truncated),
        Ok(at) if frame.head_len() < at + IPV6 => Outcome::Drop(DropReason::HeaderTooLong),
        // S02. Remove the outer IPv6 header with all its extension headers
        Ok(at) => {
            frame.pull(at);
            Outcome::Inner
        }
        Err(verdict) => verdict,
    }
}
