//! Fragmentation of tunnel packets by their headend (RFC 2473 section 7.1; D288).
//!
//! A source that sends no more than 1280 octets need not send less, however long the outer headers are. Its packet
//! leaves in fragments of the outer one, which the end of the tunnel puts together.

use crate::drop::DropReason;
use crate::headers::{AFTER_IPV6, IPV6, MINIMUM_LINK_MTU, Place, ipv6};
use crate::worker::Worker;
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv6::NextHeader;

/// Octets of a Fragment header.
const FRAGMENT_HEADER: usize = 8;

/// Octets of a fragment at most: what is fragmented has 1280 octets in the outer headers of this node.
const MOST_OCTETS: usize = 4096;

/// Identifications of the packets that a node fragments. Those of its workers differ.
#[derive(Debug)]
pub(crate) struct Identifications {
    next: u32,
    step: u32,
}

impl Identifications {
    /// `seed`: the first one is not known to others (RFC 7739).
    pub(crate) fn new(seed: u64, worker: Worker) -> Self {
        let first = ((seed >> 32) ^ seed) as u32;
        Identifications { next: first.wrapping_add(worker.index() as u32), step: worker.count() as u32 }
    }

    fn take(&mut self) -> u32 {
        let taken = self.next;
        self.next = self.next.wrapping_add(self.step);
        taken
    }
}

/// The fragments of a tunnel packet.
#[derive(Debug)]
pub(crate) struct Fragments {
    /// Of the header that the Fragment header goes before: behind those that nodes on the way read.
    place: Place,
    identification: u32,
    /// Octets of data of the packet, and of those how many are in fragments so far.
    data: usize,
    done: usize,
    /// Octets of data of all fragments but the last.
    room: usize,
}

impl Fragments {
    /// The fragments of a packet in `outer` octets of headers of this node, for a link of this MTU; `None` if its
    /// source can be expected to send less, or the MTU has no room for data.
    pub(crate) fn of(
        packet: &Frame,
        pool: &Pool,
        outer: usize,
        mtu: usize,
        identifications: &mut Identifications,
    ) -> Option<Self> {
        let head = packet.head(pool);
        let inner = packet.len().checked_sub(IPV6 + outer)?;
        let is_ipv6 = head.get(IPV6 + outer).is_some_and(|first| first >> 4 == 6);
        if outer < AFTER_IPV6 - IPV6 || !is_ipv6 || inner > MINIMUM_LINK_MTU as usize {
            return None;
        }
        let place = place(head.get(..IPV6 + outer)?).ok()?;
        let room = mtu.min(MOST_OCTETS - IPV6).checked_sub(place.offset - IPV6 + FRAGMENT_HEADER)? & !7;
        let data = packet.len() - place.offset;
        (room > 0 && data > room).then(|| Fragments {
            place,
            identification: identifications.take(),
            data,
            done: 0,
            room,
        })
    }

    /// The next fragment of the packet; `None` after the last.
    pub(crate) fn next(&mut self, packet: &Frame, pool: &mut Pool) -> Option<Result<Frame, DropReason>> {
        let take = self.room.min(self.data - self.done);
        if take == 0 {
            return None;
        }
        let at = self.place.offset;
        let is_last = self.done + take == self.data;
        let mut octets = [0; MOST_OCTETS];
        let data_at = at + FRAGMENT_HEADER;
        let end = data_at + take;
        packet.copy_range(0, &mut octets[..at], pool);
        packet.copy_range(at + self.done, &mut octets[data_at..end], pool);
        let payload = (end - AFTER_IPV6) as u16;
        octets[IPV6 + 4..IPV6 + 6].copy_from_slice(&payload.to_be_bytes());
        octets[self.place.announced_at] = NextHeader::FRAGMENT.0;
        // The offset is a multiple of eight: its last three bits are a reserved field and the M flag.
        let field = self.done as u16 | u16::from(!is_last);
        octets[at] = self.place.header.0;
        octets[at + 2..at + 4].copy_from_slice(&field.to_be_bytes());
        octets[at + 4..data_at].copy_from_slice(&self.identification.to_be_bytes());
        self.done += take;
        Some(Frame::from_octets(&octets[..end], pool).ok_or(DropReason::NoBuffer))
    }
}

/// Where the Fragment header goes: behind the outermost IPv6 header of this node, and its SRH if it has one (RFC 8200
/// section 4.5).
fn place(head: &[u8]) -> Result<Place, DropReason> {
    let first = Place::first(ipv6(head)?);
    if first.header == NextHeader::ROUTING { first.behind_routing_header(head) } else { Ok(first) }
}
