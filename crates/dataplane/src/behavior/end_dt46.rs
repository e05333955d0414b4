//! End.DT46 (RFC 8986 section 4.8): decapsulation, and a look-up in the table of what was inside.

use super::end_dt6::upper_layer_place;
use super::{Outcome, end_dt4, end_dt6};
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv6::NextHeader;

/// The behaviour; [`Outcome::Ipv4`] and [`Outcome::Inner`] mean: by the SID's table of IPv4, or of IPv6.
#[cold]
pub(crate) fn end_dt46(frame: &mut Frame, pool: &mut Pool) -> Outcome {
    match upper_layer_place(frame.head(pool)) {
        // Upper-layer S01. If (Upper-Layer header type == 4 (IPv4))
        Ok(at) if at.header == NextHeader::IPV4 => end_dt4(frame, pool),
        // S06. Else if (Upper-Layer header type == 41 (IPv6)), S11. Else: process as per section 4.1.1
        Ok(_) => end_dt6(frame, pool),
        Err(verdict) => verdict,
    }
}
