//! Packets whose path is an entropy value (D254): UDP source port and flow label of the inner packet, and the outer
//! flow label, have it.

use crate::drop::DropReason;
use crate::encaps::{Encaps, InnerFields};
use crate::headers::{AFTER_IPV6, IPV6};
use srdma_frame::{Frame, Pool};
use srdma_wire::checksum::Update;
use srdma_wire::codepoints::ROCEV2_PORT;
use srdma_wire::icrc::{Delta, Shift};
use srdma_wire::{Entropy, Icrc, NextHeader, Udp};

/// Octets from the IPv6 header to the end of the shortest RoCEv2 packet: UDP, BTH and ICRC.
const LEAST: usize = 40 + Udp::LEN + 12 + Icrc::LEN;

/// Writes the value of a path into a RoCEv2 packet and pushes the path's headers. Other packets get the headers alone.
///
/// # Errors
///
/// Those of [`Encaps::push`]; no chunk is left for the packet's last octets.
pub(super) fn push(entropy: Entropy, program: &Encaps, frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let len = frame.len();
    let Some(port) = port_of_rocev2(frame.head(pool), len) else { return program.push(frame, pool) };
    write(entropy, port, frame, pool)?;
    let inner = InnerFields::of(frame.head(pool)).ok_or(DropReason::Truncated)?.with_flow(entropy.flow_label());
    program.push_around(inner, len, frame, pool)
}

/// The UDP source port of a RoCEv2 packet without extension headers in a frame of `len` octets.
fn port_of_rocev2(head: &[u8], len: usize) -> Option<[u8; 2]> {
    let [first, second, third, fourth] = *head.get(AFTER_IPV6..)?.first_chunk()?;
    let payload: [u8; 2] = *head.get(IPV6 + 4..)?.first_chunk()?;
    let is_whole = len >= IPV6 + LEAST && len == AFTER_IPV6 + usize::from(u16::from_be_bytes(payload));
    let is_rocev2 =
        head.get(IPV6 + 6) == Some(&NextHeader::UDP.0) && u16::from_be_bytes([third, fourth]) == ROCEV2_PORT;
    (is_whole && is_rocev2).then_some([first, second])
}

/// The ICRC covers the port: it is updated, so that a damaged packet stays damaged (D10).
fn write(entropy: Entropy, old: [u8; 2], frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let new = entropy.source_port().to_be_bytes();
    if new != old {
        let behind = frame.len() - AFTER_IPV6 - new.len() - Icrc::LEN;
        let behind = Shift::octets(u16::try_from(behind).map_err(|_| DropReason::PacketTooBig)?);
        let icrc = Icrc(frame.last_four(pool).ok_or(DropReason::Truncated)?);
        let icrc = icrc.changed_by(Delta::between(&old, &new).then(behind));
        frame.cut(Icrc::LEN, pool);
        if !frame.put_last_four(icrc.0, pool) {
            frame.set_tail(icrc.0);
        }
    }
    let headers: &mut [u8; AFTER_IPV6 + Udp::LEN] =
        frame.head_mut(pool).first_chunk_mut().ok_or(DropReason::Truncated)?;
    let label = entropy.flow_label().to_be_bytes();
    headers[IPV6 + 1] = headers[IPV6 + 1] & 0xF0 | label[1];
    headers[IPV6 + 2..IPV6 + 4].copy_from_slice(&label[2..]);
    headers[AFTER_IPV6..AFTER_IPV6 + 2].copy_from_slice(&new);
    let checksum = u16::from_be_bytes([headers[AFTER_IPV6 + 6], headers[AFTER_IPV6 + 7]]);
    let mut update = Update::default();
    update.replace(&old, &new);
    headers[AFTER_IPV6 + 6..].copy_from_slice(&update.apply_udp(checksum).to_be_bytes());
    Ok(())
}
