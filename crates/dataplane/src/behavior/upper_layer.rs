//! Upper-layer header processing at a SID (RFC 8986 section 4.1.1).

use super::{Outcome, decapsulate, pointer};
use crate::drop::DropReason;
use crate::headers::Place;
use srdma_frame::{Frame, Pool};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ipv6::NextHeader;

/// Processes what stands at `at`, or behind the options headers there. IPv6 is taken out of its outer headers where the
/// SID `takes_ipv6` (USD, End.DT6); no other upper layer is allowed at this node's SIDs.
#[inline]
pub(super) fn process(frame: &mut Frame, pool: &mut Pool, at: Place, takes_ipv6: bool) -> Outcome {
    match at.behind_options(frame.head(pool)) {
        Ok(at) if takes_ipv6 && at.header == NextHeader::IPV6 => {
            decapsulate(frame, pool, at.offset).map_or_else(Outcome::Drop, |()| Outcome::Inner)
        }
        Ok(at) => refuse(at),
        Err(reason) => Outcome::Drop(reason),
    }
}

/// Where the IPv6 packet begins that stands at `at`, or behind the options headers there.
pub(super) fn inner_packet(head: &[u8], at: Place) -> Result<usize, Outcome> {
    let at = at.behind_options(head)?;
    if at.header == NextHeader::IPV6 { Ok(at.offset) } else { Err(refuse(at)) }
}

/// Parameter Problem code 4, pointing at the upper-layer header.
#[cold]
fn refuse(upper_layer: Place) -> Outcome {
    Outcome::Report(DropReason::UpperLayer, Icmpv6Error::SrUpperLayer(pointer(upper_layer.offset)))
}
