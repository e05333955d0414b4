//! IPv4 packets, with their header where an IPv6 packet has its own: behind the Ethernet header (RFC 791, RFC 1812).

use crate::drop::DropReason;
use crate::headers::{IPV6, ipv6};
use crate::scope::is_mapped;
use srdma_frame::{Frame, Pool};
use srdma_wire::ipv4::header_checksum;
use srdma_wire::ipv6::Ecn;
use srdma_wire::{EtherType, Ipv4View, View};
use std::net::Ipv4Addr;

/// Whether a packet in the node is an IPv4 packet, by its version.
#[cold]
pub(crate) fn is_ipv4(head: &[u8]) -> bool {
    head.get(IPV6).is_some_and(|first| first >> 4 == 4)
}

/// Whether a frame is an IPv4 packet by its EtherType.
#[cold]
pub(crate) fn is_ipv4_frame(head: &[u8]) -> bool {
    head.get(12..14) == Some(&EtherType::IPV4.0.to_be_bytes())
}

/// Whether the source of an IPv6 packet is an IPv4-mapped address.
#[inline]
pub(crate) fn is_from_mapped(head: &[u8]) -> bool {
    ipv6(head).is_ok_and(|view| is_mapped(view.source_octets()))
}

/// The header at `at`.
pub(crate) fn header(head: &[u8], at: usize) -> Result<&Ipv4View, DropReason> {
    let octets = head.get(at..).ok_or(DropReason::Truncated)?;
    Ok(Ipv4View::split(octets).map_err(|_| DropReason::Truncated)?.0)
}

/// The header of a packet, for editing.
pub(crate) fn header_mut(head: &mut [u8]) -> Result<&mut Ipv4View, DropReason> {
    let octets = head.get_mut(IPV6..).ok_or(DropReason::Truncated)?;
    Ok(Ipv4View::split_mut(octets).map_err(|_| DropReason::Truncated)?.0)
}

/// Checks the packet at `at` of a frame of `len` octets as RFC 1812 section 5.2.2 wants it, and its source (section
/// 5.3.7); returns where it ends (D260).
pub(crate) fn check(head: &[u8], len: usize, at: usize) -> Result<usize, DropReason> {
    // The header may lie beyond the first segment, if it is an inner one.
    let cut = if head.len() < len { DropReason::HeaderTooLong } else { DropReason::Truncated };
    let view = header(head, at).map_err(|_| cut)?;
    if view.version() != 4 {
        return Err(DropReason::BadVersion);
    }
    let (header_len, total) = (view.header_len(), usize::from(view.total_length()));
    if header_len < Ipv4View::LEN || total < header_len {
        return Err(DropReason::BadIpv4Header);
    }
    let octets = head.get(at..at + header_len).ok_or(cut)?;
    if header_checksum(octets) != 0 {
        return Err(DropReason::BadIpv4Header);
    }
    if at + total > len {
        return Err(DropReason::Truncated);
    }
    refused_source(view.source()).map_or(Ok(at + total), Err)
}

/// Why no packet from an address may be forwarded.
fn refused_source(source: Ipv4Addr) -> Option<DropReason> {
    match source {
        _ if source.octets()[0] == 0 || source.is_multicast() || source.is_broadcast() => Some(DropReason::BadSource),
        _ => is_bound(source).then_some(DropReason::Scope),
    }
}

/// Whether packets from or to an address do not leave its link or host (RFC 1122 section 3.2.1.3, RFC 3927 section 7).
fn is_bound(address: Ipv4Addr) -> bool {
    address.is_loopback() || address.is_link_local()
}

/// Why no packet to an address is forwarded (RFC 1812 sections 5.3.4, 5.3.5 and 5.3.7).
pub(crate) fn refused_destination(destination: Ipv4Addr) -> Option<DropReason> {
    match destination {
        _ if destination.is_multicast() || destination.is_broadcast() => Some(DropReason::Ipv4Multicast),
        _ => (destination.octets()[0] == 0 || is_bound(destination)).then_some(DropReason::Scope),
    }
}

/// Decrements the time to live of a packet; an exhausted one is left as it is (RFC 1812 section 5.3.1).
pub(crate) fn decrement(frame: &mut Frame, pool: &mut Pool) -> Result<(), DropReason> {
    let view = header_mut(frame.head_mut(pool))?;
    if view.ttl() <= 1 {
        return Err(DropReason::HopLimitExceeded);
    }
    view.decrement_ttl();
    Ok(())
}

/// Marks a packet CE, if it is ECN-capable; returns whether it did.
pub(crate) fn mark(frame: &mut Frame, pool: &mut Pool) -> bool {
    match header_mut(frame.head_mut(pool)) {
        Ok(view) if matches!(view.ecn(), Ecn::Ect0 | Ecn::Ect1) => {
            view.set_ecn(Ecn::Ce);
            true
        }
        _ => false,
    }
}

/// A datagram that becomes several, because it is longer than the next link's MTU and may be fragmented (RFC 791
/// section 3.2; D261).
#[derive(Debug)]
pub(crate) struct Fragments {
    /// The header of the first fragment, and of those behind it: without the options that are not copied.
    first: Header,
    others: Header,
    /// Octets of data of the datagram, and of those how many are in fragments so far.
    data: usize,
    done: usize,
    /// Octets of a fragment at most.
    mtu: usize,
    /// Where the datagram's own data begin in the one that was fragmented before, and whether others follow it.
    offset: usize,
    more: bool,
}

/// A header with its options.
#[derive(Debug)]
struct Header {
    octets: [u8; MAX_HEADER],
    len: usize,
}

/// The longest header.
const MAX_HEADER: usize = 60;

/// Octets of a fragment that are copied at most; no frame is longer.
const MOST_OCTETS: usize = 16 << 10;

impl Fragments {
    /// The fragments of a packet that was [checked](check) and is longer than the MTU; `None`: it is not, or the MTU
    /// has no room for data.
    pub(crate) fn of(packet: &Frame, pool: &Pool, mtu: usize) -> Option<Self> {
        let head = packet.head(pool);
        let view = header(head, IPV6).ok()?;
        let (offset, more) = (view.fragment_offset(), view.more_fragments());
        let octets = head.get(IPV6..IPV6 + view.header_len())?;
        let first = Header::of(octets);
        let others = first.copied();
        let data = packet.len().checked_sub(IPV6 + first.len)?;
        let mtu = mtu.min(MOST_OCTETS - IPV6);
        let is_possible = mtu >= first.len + 8 && first.len + data > mtu;
        is_possible.then_some(Fragments { first, others, data, done: 0, mtu, offset, more })
    }

    /// The next fragment of the packet; `None` after the last.
    pub(crate) fn next(&mut self, packet: &Frame, pool: &mut Pool) -> Option<Result<Frame, DropReason>> {
        let header = if self.done == 0 { &self.first } else { &self.others };
        let left = self.data - self.done;
        if left == 0 {
            return None;
        }
        // All but the last have a multiple of eight octets.
        let room = self.mtu - header.len;
        let take = if left <= room { left } else { room & !7 };
        let mut octets = [0; MOST_OCTETS];
        let data_at = IPV6 + header.len;
        octets[IPV6..data_at].copy_from_slice(&header.octets[..header.len]);
        packet.copy_range(IPV6 + self.first.len + self.done, &mut octets[data_at..data_at + take], pool);
        let fragment = &mut octets[..data_at + take];
        if let Ok(view) = header_mut(fragment) {
            view.set_total_length((header.len + take) as u16);
            view.set_fragment(self.offset + self.done, self.more || take < left);
            view.set_checksum(0);
        }
        let checksum = header_checksum(&fragment[IPV6..data_at]);
        if let Ok(view) = header_mut(fragment) {
            view.set_checksum(checksum);
        }
        self.done += take;
        Some(Frame::from_octets(fragment, pool).ok_or(DropReason::NoBuffer))
    }
}

impl Header {
    fn of(header: &[u8]) -> Self {
        let mut octets = [0; MAX_HEADER];
        let len = header.len().min(MAX_HEADER);
        octets[..len].copy_from_slice(&header[..len]);
        Header { octets, len }
    }

    /// The header of the fragments behind the first one: options whose Copied flag is set stay (RFC 791 section 3.1).
    fn copied(&self) -> Self {
        const END: u8 = 0;
        const NOTHING: u8 = 1;
        const COPIED: u8 = 0x80;
        let mut copied = Header { octets: self.octets, len: Ipv4View::LEN };
        let mut rest = &self.octets[Ipv4View::LEN..self.len];
        loop {
            let len = match rest {
                [] | [END, ..] => break,
                [NOTHING, ..] => 1,
                [_, len, ..] if usize::from(*len) >= 2 && usize::from(*len) <= rest.len() => usize::from(*len),
                // What cannot be read is not copied.
                _ => break,
            };
            let (option, behind) = rest.split_at(len);
            if option[0] & COPIED != 0 {
                copied.octets[copied.len..copied.len + len].copy_from_slice(option);
                copied.len += len;
            }
            rest = behind;
        }
        while !copied.len.is_multiple_of(4) {
            copied.octets[copied.len] = END;
            copied.len += 1;
        }
        if let Ok((view, _)) = Ipv4View::split_mut(&mut copied.octets) {
            view.set_header_len(copied.len);
        }
        copied
    }
}
