//! A frame as slices, the form that an endpoint receives.

use srdma_frame::{Frame, Pool};
use srdma_wire::rocev2::Extended;
use srdma_wire::{BthView, EthernetView, Ipv6View, NextHeader, UdpView, View};

/// Maximum number of slices of a frame.
const MAX_SLICES: usize = 8;

/// The slices of a frame, and their number.
pub fn slices_of<'a>(frame: &'a Frame, pool: &'a Pool) -> ([&'a [u8]; MAX_SLICES], usize) {
    let mut slices: [&[u8]; MAX_SLICES] = [&[]; MAX_SLICES];
    let mut count = 0;
    for (slot, piece) in slices.iter_mut().zip(frame.pieces(pool)) {
        *slot = piece;
        count += 1;
    }
    (slices, count)
}

/// Octets of all headers of a packet, at most, where no extension header is long.
const HEADERS: usize = 128;

/// The frame with all headers in its first piece, as a NIC sees each packet. A copy in a multicast tree may have its
/// RETH in the piece that it shares with others. `None` if the pool has no free chunk.
#[inline]
pub fn with_headers_in_front(frame: Frame, pool: &mut Pool) -> Option<Frame> {
    if frame.body().is_empty() || frame.head_len() >= HEADERS || has_headers_in_front(frame.head(pool)) {
        return Some(frame);
    }
    let whole = frame.duplicate(pool);
    frame.release(pool);
    whole
}

fn has_headers_in_front(head: &[u8]) -> bool {
    let Ok((_, packet)) = EthernetView::split(head) else { return false };
    let Ok((ipv6, rest)) = Ipv6View::split(packet) else { return false };
    let Ok((_, rest)) = UdpView::split(rest) else { return false };
    let Ok((bth, rest)) = BthView::split(rest) else { return false };
    ipv6.next_header() == NextHeader::UDP && Extended::split(bth.opcode(), rest).is_ok()
}
