//! End.DT4 (RFC 8986 section 4.7): decapsulation and IPv4 table look-up.

use super::end_dt6::upper_layer_place;
use super::{Outcome, decapsulate_ipv4, upper_layer};
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv6::NextHeader;

/// The behaviour; [`Outcome::Ipv4`] means: the caller looks the inner destination up in the SID's table of IPv4.
#[cold]
pub(crate) fn end_dt4(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    let place = upper_layer_place(frame.head(pool));
    // Upper-layer S01. If (Upper-Layer header type == 4 (IPv4))
    match place.and_then(|at| upper_layer::inner(frame.head(pool), at, NextHeader::IPV4)) {
        // S02. Remove the outer IPv6 header with all its extension headers
        Ok(inner) => decapsulate_ipv4(frame, pool, inner).map_or_else(Outcome::Drop, |()| Outcome::Ipv4),
        // S06. Else: process as per section 4.1.1
        Err(verdict) => verdict,
    }
}
