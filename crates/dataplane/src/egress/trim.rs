//! Packets that are trimmed instead of dropped where a class is full (D88).

use crate::headers::IPV6;
use srdma_frame::{Frame, Pool};
use srdma_wire::extension::ExtensionHeaders;
use srdma_wire::ipv6::NextHeader;
use srdma_wire::rocev2::{self, Packet};
use srdma_wire::{Ipv6View, View};

/// Headers of a packet, from the inner IPv6 header to the ICRC, at most; longer ones are not trimmed.
const MOST_OCTETS: usize = 256;

/// Outer headers, at most.
const MOST_TUNNELS: usize = 2;

/// Trims a data packet, in tunnels or not; lengths and DSCPs of outer headers follow those of the inner one.
pub(super) fn trim(mut frame: Frame, dscp: u8, pool: &mut Pool) -> Result<Frame, Frame> {
    let Some((inner, udp_offset, len)) = find(&frame, pool) else { return Err(frame) };
    let mut buffer = [0; MOST_OCTETS];
    let (Some(octets), Some(headers)) =
        (buffer.get_mut(..len), frame.head(pool).get(inner..).and_then(|head| head.get(..len - TAIL)))
    else {
        return Err(frame);
    };
    octets[..len - TAIL].copy_from_slice(headers);
    if rocev2::trim(octets, udp_offset, dscp).is_err() {
        return Err(frame);
    }
    let (headers, tail) = octets.split_at(len - TAIL);
    frame.truncate(inner + headers.len(), pool);
    frame.head_mut(pool)[inner..].copy_from_slice(headers);
    let mut icrc = [0; TAIL];
    icrc.copy_from_slice(tail);
    let mut frame = frame.with_tail(icrc);
    if inner != IPV6 {
        shorten_outer(&mut frame, inner, dscp, pool);
    }
    Ok(frame)
}

/// Octets of the ICRC.
const TAIL: usize = 4;

/// Where the innermost IPv6 header begins, how far behind it UDP does, and how much of it stays.
fn find(frame: &Frame, pool: &Pool) -> Option<(usize, usize, usize)> {
    let head = frame.head(pool);
    let mut inner = IPV6;
    for _ in 0..=MOST_TUNNELS {
        match inner_header(head, inner) {
            Some(next) => inner = next,
            None => break,
        }
    }
    let packet = Packet::parse(head.get(inner..)?, frame.len() - inner).ok()?;
    Some((inner, packet.udp_offset(), packet.trimmed_len()?))
}

/// Where the IPv6 header within the one at an offset begins.
fn inner_header(head: &[u8], at: usize) -> Option<usize> {
    let (ipv6, after) = Ipv6View::split(head.get(at..)?).ok()?;
    let mut headers = ExtensionHeaders::new(ipv6.next_header(), after);
    if headers.by_ref().any(|header| header.is_err()) || headers.next_header() != NextHeader::IPV6 {
        return None;
    }
    Some(at + headers.offset())
}

/// Gives the outer headers the length of what is left, and the DSCP.
fn shorten_outer(frame: &mut Frame, inner: usize, dscp: u8, pool: &mut Pool) {
    let len = frame.len();
    let head = frame.head_mut(pool);
    let mut at = IPV6;
    while at < inner {
        let next = inner_header(head, at);
        if let Ok((ipv6, _)) = Ipv6View::split_mut(head.get_mut(at..).unwrap_or_default()) {
            ipv6.set_payload_length(len.saturating_sub(at + Ipv6View::LEN) as u16);
            ipv6.set_traffic_class(dscp << 2 | ipv6.traffic_class() & 3);
        }
        at = next.unwrap_or(inner);
    }
}
