//! Packets of a host whose address is IPv4-mapped: IPv4 on its link, IPv6 for its endpoint (D275).

use srdma_wire::ipv4::header_checksum;
use srdma_wire::translation::{HEADERS, LONGER, to_ipv4, to_ipv6};
use srdma_wire::{EtherType, EthernetView, Icrc, Ipv4View, Ipv6View, View};
use zerocopy::IntoBytes;

const UDP_CHECKSUM: usize = 6;

/// The frame that an endpoint's packet leaves in. `octets` are its Ethernet header, for IPv6, and the packet.
pub fn frame_in_ipv4(octets: &[u8]) -> Option<Vec<u8>> {
    let (ethernet, packet) = octets.split_first_chunk::<{ EthernetView::LEN }>()?;
    let translated = to_ipv4(packet, packet.len(), Icrc(*packet.last_chunk()?)).ok()?;
    let ethernet = [&ethernet[..12], &EtherType::IPV4.0.to_be_bytes()].concat();
    let packet = [translated.header.as_bytes(), &packet[Ipv6View::LEN..]].concat();
    let packet = finished(packet, Ipv4View::LEN, translated.udp_checksum, translated.icrc);
    Some([ethernet, packet].concat())
}

/// The packet for an endpoint, from an IPv4 packet and octets behind its end. `None` for one that a kernel would
/// discard, or of other protocols.
pub(crate) fn packet_in_ipv6(octets: &[u8]) -> Option<Vec<u8>> {
    let (header, _) = Ipv4View::split(octets).ok()?;
    let packet = octets.get(..header.total_length().into())?;
    if header_checksum(packet.get(..Ipv4View::LEN)?) != 0 || packet.len() + LONGER < HEADERS {
        return None;
    }
    let translated = to_ipv6(packet, packet.len(), Icrc(*packet.last_chunk()?)).ok()?;
    let packet = [translated.header.as_bytes(), &packet[Ipv4View::LEN..]].concat();
    Some(finished(packet, Ipv6View::LEN, translated.udp_checksum, translated.icrc))
}

fn finished(mut packet: Vec<u8>, udp: usize, udp_checksum: u16, Icrc(icrc): Icrc) -> Vec<u8> {
    packet[udp + UDP_CHECKSUM..][..2].copy_from_slice(&udp_checksum.to_be_bytes());
    if let Some(place) = packet.last_chunk_mut() {
        *place = icrc;
    }
    packet
}
