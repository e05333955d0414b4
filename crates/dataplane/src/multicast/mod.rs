//! The data path of a group: receiver lists, rewritten copies, and the headend's outer headers.

mod headend;
mod list;
mod regions;
mod rewrite;

pub(crate) use headend::headers;
pub(crate) use list::{Listed, ListedReceiver, Naming, receivers_of};
pub(crate) use regions::{RegionTable, RethRule};
pub(crate) use rewrite::{HEADERS, RethRewrite, Rewrite, Rewritten, behind_qpn, replace_icrc};

use crate::drop::DropReason;
use crate::headers::IPV6;
use srdma_frame::{Body, Frame, Pool, Segment};
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::Computation;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::rocev2::Packet;
use srdma_wire::{BthView, Icrc, Ipv6View, Opcode, UdpView, View};

/// Whether a group can carry a request: SEND and WRITE, with and without immediate (D26). SEND with Invalidate names a
/// key of one receiver's, like READ and ATOMIC it means one responder.
pub(crate) fn is_carried(opcode: Opcode) -> bool {
    let invalidates = matches!(opcode, Opcode::SEND_LAST_INVALIDATE | Opcode::SEND_ONLY_INVALIDATE);
    (opcode.is_send() || opcode.is_write()) && !invalidates
}

/// The RoCEv2 packet that the source sends to its group: BTH and ICRC lie where receivers' hosts expect them, without
/// extension headers before UDP.
#[inline]
pub(crate) fn data_packet(first: &[u8], total_len: usize) -> Result<Packet<'_>, DropReason> {
    let packet = Packet::parse(first, total_len).map_err(|_| DropReason::NotRocev2)?;
    if packet.extension_octets() == 0 { Ok(packet) } else { Err(DropReason::ExtensionHeaders) }
}

/// Octets, from IPv6 to ICRC, of a packet that is what most data packets are: SEND or WRITE without extended transport
/// headers, and fit to be copied. `None`: it has to be [parsed](data_packet) and [checked](check_data).
#[inline]
pub(crate) fn plain_data(headers: &[u8; HEADERS], total_len: usize) -> Option<usize> {
    const BTH: usize = 40 + 8;
    /// First, middle and last packets of a SEND, a SEND of one packet, middle and last packets of a WRITE.
    const OPCODES: u32 = 1 << 0x00 | 1 << 0x01 | 1 << 0x02 | 1 << 0x04 | 1 << 0x07 | 1 << 0x08;
    let word = |at: usize| usize::from(u16::from_be_bytes([headers[at], headers[at + 1]]));
    let (opcode, flags, hop_limit) = (headers[BTH], headers[BTH + 1], headers[7]);
    let end = 40 + word(4);
    let is_plain = headers[0] >> 4 == 6
        && headers[6] == NextHeader::UDP.0
        && word(42) == usize::from(ROCEV2_PORT)
        && 40 + word(44) == end
        && end <= total_len
        && HEADERS + usize::from(flags >> 4 & 3) + Icrc::LEN <= end
        && flags & 0x0F == 0
        && opcode < 32
        && OPCODES >> opcode & 1 == 1
        && hop_limit > 1;
    is_plain.then_some(end)
}

/// Whether the ICRC of the packet in a frame is good.
pub(crate) fn check_icrc(packet: &Packet<'_>, frame: &Frame, pool: &Pool) -> Result<(), DropReason> {
    let further = frame.body().iter().map(|segment| segment.octets(pool)).chain([frame.tail()]);
    let check = packet.icrc(further).map_err(|_| DropReason::Truncated)?;
    if check.is_good() { Ok(()) } else { Err(DropReason::BadIcrc) }
}

/// Whether an edge copies a data packet.
#[inline]
pub(crate) fn check_data(packet: &Packet<'_>, frame: &Frame, pool: &Pool, verify_icrc: bool) -> Result<(), DropReason> {
    if !is_carried(packet.bth.opcode()) {
        return Err(DropReason::NotMulticastable);
    }
    // The inner hop limit counts this node (D5).
    if packet.ipv6.hop_limit <= 1 {
        return Err(DropReason::HopLimitExceeded);
    }
    if verify_icrc { check_icrc(packet, frame, pool) } else { Ok(()) }
}

/// The ICRC of a copy, over all its octets (D10, `recompute`).
#[cold]
pub(crate) fn recompute_icrc(head: Segment, body: Body, pool: &Pool) -> Option<Icrc> {
    let (ipv6, rest) = Ipv6View::split(head.octets(pool).get(IPV6..)?).ok()?;
    let (udp, rest) = UdpView::split(rest).ok()?;
    let (bth, rest) = BthView::split(rest).ok()?;
    let mut computation = Computation::begin(ipv6, 0, udp, bth);
    computation.update(rest);
    for segment in body.segments() {
        computation.update(segment.octets(pool));
    }
    Some(computation.finish())
}
