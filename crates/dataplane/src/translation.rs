//! Packets of groups of IPv4 hosts: as hosts send and receive them, and in IPv6 between nodes (D272).

use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6};
use srdma_frame::{Frame, Pool, Segment};
use srdma_wire::translation::{self, LONGER, NotTranslated, Translated};
use srdma_wire::{EtherType, Icrc, Ipv4View, View};
use zerocopy::{Immutable, IntoBytes};

const UDP_CHECKSUM: usize = 6;

/// Translates the IPv4 packet in a frame, which ends with it.
pub(crate) fn to_ipv6(frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let (icrc, octets) = end_of(frame, pool)?;
    let head = frame.head(pool).get(IPV6..).ok_or(DropReason::Truncated)?;
    let translated = translation::to_ipv6(head, octets, icrc).map_err(reason)?;
    if !frame.push(LONGER) {
        return Err(DropReason::NoHeadroom);
    }
    let head = frame.head_mut(pool);
    head.copy_within(LONGER..LONGER + IPV6, 0);
    head[IPV6 - 2..IPV6].copy_from_slice(&EtherType::IPV6.0.to_be_bytes());
    write(&translated, AFTER_IPV6, frame, pool);
    into_segments(frame, pool)
}

/// Translates the IPv6 packet in a frame, which ends with it. The Ethernet header is left open.
pub(crate) fn to_ipv4(frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let (icrc, octets) = end_of(frame, pool)?;
    let head = frame.head(pool).get(IPV6..).ok_or(DropReason::Truncated)?;
    let translated = translation::to_ipv4(head, octets, icrc).map_err(reason)?;
    frame.pull(LONGER);
    write(&translated, IPV6 + Ipv4View::LEN, frame, pool);
    Ok(())
}

/// The ICRC of the packet in a frame, and its octets.
fn end_of(frame: &Frame, pool: &Pool) -> Result<(Icrc, usize), DropReason> {
    let icrc = frame.last_four(pool).ok_or(DropReason::Truncated)?;
    Ok((Icrc(icrc), frame.len().saturating_sub(IPV6)))
}

/// Writes the network header up to `udp`, the UDP checksum, and the ICRC.
fn write<H: IntoBytes + Immutable>(translated: &Translated<H>, udp: usize, frame: &mut Frame, pool: &mut Pool) {
    let head = frame.head_mut(pool);
    head[IPV6..udp].copy_from_slice(translated.header.as_bytes());
    head[udp + UDP_CHECKSUM..][..2].copy_from_slice(&translated.udp_checksum.to_be_bytes());
    frame.cut(Icrc::LEN, pool);
    if !frame.put_last_four(translated.icrc.0, pool) {
        frame.set_tail(translated.icrc.0);
    }
}

/// Moves a tail into a segment: the copies of a frame share its segments, and each has a tail of its own.
fn into_segments(frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let Some(tail) = frame.tail().first_chunk::<{ Icrc::LEN }>().copied() else { return Ok(()) };
    let chunk = pool.allocate_small().ok_or(DropReason::NoBuffer)?;
    pool.octets_mut(chunk)[..tail.len()].copy_from_slice(&tail);
    frame.cut(tail.len(), pool);
    if frame.append(Segment::new(chunk, 0, tail.len())) {
        return Ok(());
    }
    pool.release(chunk);
    Err(DropReason::NoBuffer)
}

fn reason(refusal: NotTranslated) -> DropReason {
    match refusal {
        NotTranslated::Options => DropReason::ExtensionHeaders,
        NotTranslated::NotRocev2 | NotTranslated::Address(_) => DropReason::NotRocev2,
    }
}
