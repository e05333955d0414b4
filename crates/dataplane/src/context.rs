//! The context of a packet in the node.

use crate::config::TableId;
use srdma_frame::PortId;
use srdma_wire::Instant;

/// Where a packet came from and what this node has done to its headers, for counters, ICMPv6 errors and checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketContext {
    pub(crate) now: Instant,
    /// The ingress port; `None` for packets of this node.
    pub(crate) port: Option<PortId>,
    /// Copies of it were or will be made: hardly any ICMPv6 error may answer it (RFC 9524 section 2.2.3).
    pub(crate) replicated: bool,
    /// Octets of outer headers that this node has pushed, and that no SID of its own has processed since.
    pub(crate) encapsulated_octets: usize,
    /// Outer source address of the tunnel that the packet left: the ingress port then does not identify its sender.
    pub(crate) outer_source: Option<[u8; 16]>,
    /// It was taken out of a tunnel by END.E: it may be a Fast CNP for a host outside (D64).
    pub(crate) by_end_e: bool,
    /// Its traffic class, where the tag of its frame decided on that (D257).
    pub(crate) class: Option<u8>,
    /// The table of the packet: that of the SID by which it left its tunnel.
    pub(crate) table: TableId,
    /// It came in fragments, which this node has put together.
    pub(crate) is_reassembled: bool,
}

impl PacketContext {
    /// Of a packet received at a port.
    #[inline]
    pub(crate) fn received(now: Instant, port: PortId) -> Self {
        PacketContext { port: Some(port), ..PacketContext::own(now) }
    }

    /// Of the copies of the packet.
    pub(crate) fn of_copies(&self) -> Self {
        PacketContext { replicated: true, ..*self }
    }

    /// Of a packet of this node.
    #[inline]
    pub(crate) fn own(now: Instant) -> Self {
        PacketContext {
            now,
            port: None,
            replicated: false,
            encapsulated_octets: 0,
            outer_source: None,
            by_end_e: false,
            class: None,
            table: TableId(0),
            is_reassembled: false,
        }
    }
}
