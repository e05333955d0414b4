//! Result of forwarding for a frame, and the state of a packet between two lookups.

use crate::config::TableId;
use crate::context::PacketContext;
use crate::drop::DropReason;
use crate::headers::{Place, decrement};
use srdma_frame::{Frame, Pool, PortId};
use srdma_wire::icmpv6::Icmpv6Error;

/// Whether forwarding still has to decrement the hop limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HopLimit {
    ToDecrement,
    Done,
}

/// Result for a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verdict {
    /// It is rewritten, and goes into the plain queue of a port, which has room for its octets.
    Enqueue(PortId, usize),
    /// It is rewritten, and goes into its class at a port with classes.
    EnterClass(PortId, usize),
    /// The same for an IPv4 packet, whose class the context has.
    EnterClassIpv4(PortId, usize),
    /// It is too long for the link of this adjacency.
    TooLong(u32),
    /// Its fragments have left.
    Fragmented,
    /// It is an Ethernet frame that a port sends as it is.
    Frame(PortId),
    Drop(DropReason),
    /// It is dropped, and an ICMPv6 error sent to its source.
    Report(DropReason, Icmpv6Error),
    /// Its destination is a multicast group.
    Multicast,
    /// Its destination is the End.Replicate SID of a group.
    Replicate(u32),
    /// Its destination is an End.MT SID.
    EndMt {
        require_hmac: bool,
    },
    /// Its destination is an END.C SID.
    EndC,
    /// Its destination is a group's Proxy Address.
    Proxied(u32),
    /// Its destination is a Proxy Address of no group here, to which shared hosts may respond.
    ToPeer,
    /// Its destination is the node itself.
    Local,
    /// It is an echo request to a SID; its ICMPv6 header begins there.
    Echo(usize),
    /// It is a fragment to a SID, whose Fragment header is there.
    Fragment(Place),
}

/// How often one packet may come to SIDs of this node before it is taken for a loop.
const MAX_LOCAL_SEGMENTS: u8 = 16;

/// State of a packet between two lookups.
pub(super) struct Progress {
    pub(super) hop_limit: HopLimit,
    /// The table of the next lookup.
    pub(super) table: TableId,
    /// How many targets may still process it.
    pub(super) left: u8,
}

impl Progress {
    /// Of a packet that no target has processed.
    #[inline(always)]
    pub(super) fn new() -> Self {
        Progress { hop_limit: HopLimit::ToDecrement, table: TableId(0), left: MAX_LOCAL_SEGMENTS }
    }

    /// Decrements the hop limit once for this node, no matter how many of its SIDs processed the packet (RFC 2473
    /// section 3.1).
    #[inline(always)]
    pub(super) fn decrement(&self, frame: &mut Frame, pool: &mut Pool) -> Result<(), Verdict> {
        if self.hop_limit == HopLimit::ToDecrement && decrement(frame, pool).is_err() {
            return Err(Verdict::Report(DropReason::HopLimitExceeded, Icmpv6Error::HopLimitExceeded));
        }
        Ok(())
    }

    /// The packet was encapsulated in so many octets: its new destination is looked up in the main table.
    #[inline(always)]
    pub(super) fn encapsulated(&mut self, context: &mut PacketContext, octets: Result<usize, DropReason>) -> Step {
        match octets {
            Ok(octets) => {
                context.encapsulated_octets += octets;
                (self.hop_limit, self.table) = (HopLimit::Done, TableId(0));
                Step::Next
            }
            Err(reason) => Step::Done(Verdict::Drop(reason)),
        }
    }
}

/// Result of processing a packet by one target.
pub(super) enum Step {
    /// The packet has a new destination, which is looked up.
    Next,
    /// The packet leaves by this adjacency.
    Neighbour(u32),
    Done(Verdict),
}
