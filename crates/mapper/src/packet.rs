//! The octets of a probe: an IPv6 header with the path's program, an SRH if it is longer than one address, and the
//! STAMP test packet of D87.

use srdma_wire::ipv6::{Ipv6, NextHeader};
use srdma_wire::{ProbePacket, SrhValue};
use std::net::Ipv6Addr;
use zerocopy::IntoBytes;

/// Segments of a program, at most.
pub(crate) const MAX_SEGMENTS: usize = 8;

/// Puts the headers of a program around a probe (H.Encaps.Red, RFC 8986 section 5.2). `None` without segments, or with
/// too many.
pub(crate) fn emit(segments: &[Ipv6Addr], flow_label: u32, probe: &ProbePacket) -> Option<Vec<u8>> {
    let (destination, further) = segments.split_first()?;
    if segments.len() > MAX_SEGMENTS {
        return None;
    }
    let srh_octets = if further.is_empty() { 0 } else { 8 + 16 * further.len() };
    let outer = Ipv6 {
        traffic_class: probe.traffic_class,
        flow_label,
        payload_length: (srh_octets + ProbePacket::LEN) as u16,
        next_header: if further.is_empty() { NextHeader::IPV6 } else { NextHeader::ROUTING },
        hop_limit: probe.hop_limit,
        source: probe.address,
        destination: *destination,
    };
    let mut packet = outer.emit().as_bytes().to_vec();
    if !further.is_empty() {
        let reversed: Vec<Ipv6Addr> = further.iter().rev().copied().collect();
        let mut srh = vec![0; srh_octets];
        let segments_left = further.len() as u8;
        SrhValue { next_header: NextHeader::IPV6, segments_left, flags: 0, tag: 0 }.emit(&reversed, &[], &mut srh)?;
        packet.extend(srh);
    }
    packet.extend(probe.emit());
    Some(packet)
}
