//! Upper-layer header processing at a SID (RFC 8986 section 4.1.1).

use super::{Outcome, decapsulate, pointer};
use crate::drop::DropReason;
use crate::headers::Place;
use srdma_frame::{Frame, Pool};
use srdma_wire::icmpv6::Icmpv6Error;
use srdma_wire::ipv6::NextHeader;

/// ICMPv6 type of an echo request.
const ECHO_REQUEST: u8 = 128;

/// UDP ports to which traceroute sends, one for each probe.
const TRACEROUTE: std::ops::Range<u16> = 33_434..33_690;

/// Processes the header at `at`. IPv6 is taken out of its outer headers where the SID `takes_ipv6` (USD, End.DT6);
/// pings and traceroutes are answered (RFC 9259); no other upper layer is allowed at this node's SIDs.
#[inline]
pub(super) fn process(frame: &mut Frame, pool: &mut Pool, at: Place, takes_ipv6: bool) -> Outcome {
    if takes_ipv6 && at.header == NextHeader::IPV6 {
        decapsulate(frame, pool, at.offset).map_or_else(Outcome::Drop, |()| Outcome::Inner)
    } else {
        refuse(frame.head(pool), at)
    }
}

/// Where the packet or frame at `at` begins, if it is `taken` by the SID.
pub(super) fn inner(head: &[u8], at: Place, taken: NextHeader) -> Result<usize, Outcome> {
    if at.header == taken { Ok(at.offset) } else { Err(refuse(head, at)) }
}

/// Parameter Problem code 4, pointing at the upper-layer header, but for fragments, pings and traceroutes.
#[cold]
fn refuse(head: &[u8], at: Place) -> Outcome {
    let octets = head.get(at.offset..).unwrap_or(&[]);
    match (at.header, octets) {
        (NextHeader::FRAGMENT, _) => Outcome::Fragment(at),
        (NextHeader::ICMPV6, [ECHO_REQUEST, 0, ..]) => Outcome::Echo(at.offset),
        (NextHeader::UDP, [_, _, high, low, ..]) if TRACEROUTE.contains(&u16::from_be_bytes([*high, *low])) => {
            Outcome::Report(DropReason::UpperLayer, Icmpv6Error::PortUnreachable)
        }
        _ => Outcome::Report(DropReason::UpperLayer, Icmpv6Error::SrUpperLayer(pointer(at.offset))),
    }
}
