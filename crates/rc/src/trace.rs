//! IOAM traces that data packets carry (RFC 9197, RFC 9486): requested by the sender, returned by the receiver.
//!
//! ```text
//!   sender ── data packet, empty trace ──► switch ── … ──► switch ── filled trace ──► receiver
//!      ▲                                                                                 │
//!      └────────────── Fast CNP with the trace, once in an interval ◄────────────────────┘
//! ```
//!
//! The receiver's Fast CNP is one in form: its source is the original destination, which distinguishes it from a
//! switch's (FC-4-8). It does not indicate congestion; a rate may grow as well as shrink. Extension headers are
//! left out of the ICRC (D43), as routers write to the trace.

use crate::config::ConfigError;
use srdma_wire::fast_cnp::can_carry;
use srdma_wire::ioam::{Trace, TraceHeader, TraceType};
use srdma_wire::{Instant, NextHeader, Qpn};

/// The fields of a trace that HPCC++ needs, 24 octets a hop.
pub const HPCC_FIELDS: TraceType = TraceType::LINK_LOAD;

/// The trace that a sender allocates in its data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// IOAM namespace.
    pub namespace_id: u16,
    /// Data that each node writes.
    pub fields: TraceType,
    /// Nodes that it has room for. A Fast CNP holds 228 octets: nine hops of [`HPCC_FIELDS`].
    pub hops: u8,
}

impl TraceRequest {
    /// The trace of HPCC++ for so many hops.
    pub const fn hpcc(namespace_id: u16, hops: u8) -> Self {
        TraceRequest { namespace_id, fields: HPCC_FIELDS, hops }
    }

    /// The Hop-by-Hop Options header, with UDP behind it.
    pub(crate) fn header(&self, qpn: Qpn) -> Result<Box<[u8]>, ConfigError> {
        let mut octets = [0; 264];
        TraceHeader::for_nodes(self.namespace_id, self.fields, self.hops.into())
            .filter(|header| header.remaining_len_words > 0)
            .and_then(|header| header.emit_hop_by_hop(NextHeader::UDP, &mut octets))
            .and_then(|length| octets.get(..length))
            .map(Box::from)
            .ok_or(ConfigError::Trace { qpn, hops: self.hops, words: self.fields.node_len_words() })
    }
}

/// Longest trace that can be returned.
const MAX_LEN: usize = srdma_wire::fast_cnp::MAX_TRACE_LEN;

#[derive(Debug)]
pub(crate) struct TraceReturn {
    interval_ns: u64,
    next_at: Instant,
    source_port: u16,
    len: usize,
    octets: [u8; MAX_LEN],
}

impl TraceReturn {
    pub(crate) fn new(interval_ns: u64) -> Self {
        TraceReturn { interval_ns, next_at: Instant::ZERO, source_port: 0, len: 0, octets: [0; MAX_LEN] }
    }

    /// Keeps the trace of a data packet to return it, if its time has come. Returns whether it could be kept; one that
    /// is damaged, or too long for an option (D41), is not.
    pub(crate) fn offer(&mut self, now: Instant, trace: &Trace<'_>, source_port: u16) -> bool {
        let octets = trace.octets();
        let is_whole = trace.nodes().all(|node| node.is_ok());
        let Some(place) = self.octets.get_mut(..octets.len()).filter(|_| is_whole && can_carry(octets.len())) else {
            return false;
        };
        if now >= self.next_at {
            place.copy_from_slice(octets);
            self.len = octets.len();
            self.source_port = source_port;
            self.next_at = now.after_ns(self.interval_ns);
        }
        true
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.len > 0
    }

    /// The trace that waits, and the UDP source port of its packet.
    pub(crate) fn take(&mut self) -> Option<(&[u8], u16)> {
        let len = core::mem::take(&mut self.len);
        self.octets.get(..len).filter(|octets| !octets.is_empty()).map(|octets| (octets, self.source_port))
    }
}
