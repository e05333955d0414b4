//! Endpoint behaviours: one file each, named after itself, with its RFC's steps as numbered comments.
//!
//! A behaviour edits the packet in place and returns an [`Outcome`]. It has no access to ports, routes and queues.

mod decapsulate;
mod end;
mod end_b6_encaps;
mod end_dt4;
mod end_dt46;
mod end_dt6;
mod end_dx2;
mod end_dx4;
mod end_dx6;
mod end_x;
mod next_csid;
mod options;
mod upper_layer;

pub(crate) use decapsulate::{decapsulate, decapsulate_ipv4, merge_ecn, uncover};
pub(crate) use end::{end, end_in_place};
pub(crate) use end_b6_encaps::end_b6_encaps;
pub(crate) use end_dt4::end_dt4;
pub(crate) use end_dt6::{end_dt6, inner_offset, inner_packet};
pub(crate) use end_dt46::end_dt46;
pub(crate) use end_dx2::end_dx2;
pub(crate) use end_dx4::end_dx4;
pub(crate) use end_dx6::end_dx6;
pub(crate) use end_x::end_x;
pub(crate) use next_csid::shift;
pub(crate) use options::behind_options;

use crate::drop::DropReason;
use crate::headers::{IPV6, Place};
use srdma_wire::icmpv6::Icmpv6Error;

/// Flavors of End and End.X (RFC 8986 section 4.16, RFC 9800 section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flavors {
    /// Penultimate segment pop.
    pub psp: bool,
    /// Ultimate segment pop.
    pub usp: bool,
    /// Ultimate segment decapsulation.
    pub usd: bool,
    /// NEXT-CSID.
    pub next_csid: Option<NextCsid>,
}

/// How a compressed SID divides: locator block, then locator-node and function, then the argument that holds what
/// follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextCsid {
    /// Bits of the locator block.
    pub block_bits: u8,
    /// Bits of the compressed SID: locator-node and function.
    pub csid_bits: u8,
}

impl NextCsid {
    /// F3216: a block of 32 bits and compressed SIDs of 16.
    pub const F3216: NextCsid = NextCsid { block_bits: 32, csid_bits: 16 };
}

impl Flavors {
    /// NEXT-CSID with PSP and USD over F3216: the flavors of uN and uA (PP-5.1-1).
    pub const MICRO: Flavors = Flavors { psp: true, usp: false, usd: true, next_csid: Some(NextCsid::F3216) };
}

/// Result of a behaviour for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Forward by the new destination; the hop limit has been decremented.
    Forward,
    /// The outer headers are gone: forward the inner packet, by a table unless the behaviour says otherwise.
    Inner,
    /// The same, and the inner packet is one of IPv4.
    Ipv4,
    /// An ICMPv6 echo request to the SID, whose ICMPv6 header begins there (RFC 9259 section 3.1).
    Echo(usize),
    /// A fragment to the SID, whose Fragment header is at this place (RFC 8200 section 4.5).
    Fragment(Place),
    Drop(DropReason),
    /// Drop, and send an ICMPv6 error to the source.
    Report(DropReason, Icmpv6Error),
}

impl Outcome {
    /// The reason for which a packet is dropped, if it is.
    pub(crate) fn reason(self) -> DropReason {
        match self {
            Outcome::Drop(reason) | Outcome::Report(reason, _) => reason,
            Outcome::Forward | Outcome::Inner | Outcome::Ipv4 | Outcome::Echo(_) | Outcome::Fragment(_) => {
                DropReason::UpperLayer
            }
        }
    }
}

impl From<DropReason> for Outcome {
    fn from(reason: DropReason) -> Self {
        Outcome::Drop(reason)
    }
}

/// RFC 8200 section 4.4: an unknown routing type with segments left is reported, at its type.
#[cold]
fn bad_routing_type(routing_header_offset: usize) -> Outcome {
    let error = Icmpv6Error::ErroneousField(pointer(routing_header_offset + 2));
    Outcome::Report(DropReason::UnknownRoutingType, error)
}

/// An ICMPv6 pointer: offset from the start of the IPv6 header.
fn pointer(offset_in_frame: usize) -> u32 {
    (offset_in_frame - IPV6) as u32
}
