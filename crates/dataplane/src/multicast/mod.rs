//! The data path of a group: receiver lists, rewritten copies, and the headend's outer headers.

mod headend;
mod list;
mod rewrite;

pub(crate) use headend::headers;
pub(crate) use list::{ListedReceiver, receivers_of};
pub(crate) use rewrite::{RethRewrite, RethRule, Rewrite, Rewritten, behind_qpn};

use crate::drop::DropReason;
use srdma_frame::{Frame, Pool};
use srdma_wire::Opcode;
use srdma_wire::rocev2::Packet;

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

/// Whether the ICRC of the packet in a frame is good.
pub(crate) fn check_icrc(packet: &Packet<'_>, frame: &Frame, pool: &Pool) -> Result<(), DropReason> {
    let further = frame.body().iter().map(|segment| segment.octets(pool)).chain([frame.tail()]);
    let check = packet.icrc(further).map_err(|_| DropReason::Truncated)?;
    if check.is_good() { Ok(()) } else { Err(DropReason::BadIcrc) }
}
