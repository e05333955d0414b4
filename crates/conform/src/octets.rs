//! Packets octet by octet, from the figures of the RFCs and drafts. No encoder of the product is used.

pub(crate) mod multicast;

use srdma_testkit::checksums;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Next Header of a Routing header.
pub(crate) const ROUTING: u8 = 43;
/// Next Header of IPv4.
pub(crate) const IPV4: u8 = 4;
/// Next Header of IPv6.
pub(crate) const IPV6: u8 = 41;
/// Next Header of Ethernet (RFC 8986 section 10.1).
pub(crate) const ETHERNET: u8 = 143;
/// Next Header of ICMPv6.
pub(crate) const ICMPV6: u8 = 58;
/// A protocol for experiments (RFC 3692): no SID takes it. A ping may be answered (RFC 9259).
pub(crate) const EXPERIMENTAL: u8 = 253;
/// Next Header of a Fragment header.
pub(crate) const FRAGMENT: u8 = 44;

/// Next Header of UDP.
pub(crate) const UDP: u8 = 17;

/// Opcode of a SEND Only.
pub(crate) const SEND_ONLY: u8 = 0x04;

/// Opcode of an ACK or NAK.
pub(crate) const ACKNOWLEDGE: u8 = 0x11;

/// ECN: congestion experienced.
pub(crate) const CE: u8 = 3;
/// ECN: ECT(0).
pub(crate) const ECT0: u8 = 2;

/// An IPv6 packet (RFC 8200 section 3) with hop limit 64.
pub(crate) fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

/// An IPv4 packet (RFC 791 section 3.1) that must not be fragmented, with time to live 64.
pub(crate) fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    sealed(packet)
}

/// Sets the Type of Service of an IPv4 packet.
pub(crate) fn with_ipv4_tos(mut packet: Vec<u8>, tos: u8) -> Vec<u8> {
    packet[1] = tos;
    sealed(packet)
}

/// Makes the checksum of an IPv4 header without options right.
fn sealed(mut packet: Vec<u8>) -> Vec<u8> {
    packet[10..12].fill(0);
    let sum: u32 = packet[..20].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// A packet in an outer IPv6 header, with an SRH between if there is one.
pub(crate) fn tunnelled(source: Ipv6Addr, destination: Ipv6Addr, srh: &[u8], inner: &[u8]) -> Vec<u8> {
    let next_header = if srh.is_empty() { IPV6 } else { ROUTING };
    ipv6(source, destination, next_header, &[srh, inner].concat())
}

/// An SRH (RFC 8754 section 2) in front of `next_header`. The list in the packet's order: the last segment first. The
/// TLVs are padded to a multiple of eight octets.
pub(crate) fn srh(next_header: u8, segments_left: u8, list: &[Ipv6Addr], tlvs: &[u8]) -> Vec<u8> {
    let hdr_ext_len = (list.len() * 16 + tlvs.len()) / 8;
    let mut header = vec![next_header, hdr_ext_len as u8, 4, segments_left, list.len() as u8 - 1, 0, 0, 0];
    header.extend(list.iter().flat_map(Ipv6Addr::octets));
    header.extend(tlvs);
    header
}

/// An ICMPv6 error (RFC 4443 sections 2.4 and 3) about a packet, from `source` to the packet's source.
pub(crate) fn icmpv6_error(source: Ipv6Addr, kind: u8, code: u8, parameter: u32, invoking: &[u8]) -> Vec<u8> {
    const LEAST_MTU: usize = 1280;
    let quoted = &invoking[..invoking.len().min(LEAST_MTU - 40 - 8)];
    let destination: [u8; 16] = invoking[8..24].try_into().expect("sixteen octets");
    let message = [&[kind, code, 0, 0][..], &parameter.to_be_bytes(), quoted].concat();
    let mut packet = ipv6(source, destination.into(), ICMPV6, &message);
    let checksum = checksums::icmpv6(&packet);
    packet[42..44].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// A priority flow control frame (IEEE 802.1Q clause 36.2) for one class; zero quanta end the pause.
pub(crate) fn pfc(source: [u8; 6], class: u8, quanta: u16) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xC2, 0, 0, 0x01];
    frame.extend(source);
    frame.extend([0x88, 0x08, 0x01, 0x01, 0, 1 << class]);
    for other in 0..8 {
        frame.extend(if other == class { quanta } else { 0 }.to_be_bytes());
    }
    frame.resize(60, 0);
    frame
}

/// Sets the hop limit.
pub(crate) fn with_hop_limit(mut packet: Vec<u8>, hop_limit: u8) -> Vec<u8> {
    packet[7] = hop_limit;
    packet
}

/// Sets the ECN field; the DSCP stays.
pub(crate) fn with_ecn(mut packet: Vec<u8>, ecn: u8) -> Vec<u8> {
    packet[1] = packet[1] & 0xCF | ecn << 4;
    packet
}

/// Sets the DSCP; the ECN field stays.
pub(crate) fn with_dscp(mut packet: Vec<u8>, dscp: u8) -> Vec<u8> {
    packet[0] = packet[0] & 0xF0 | dscp >> 2;
    packet[1] = packet[1] & 0x3F | dscp << 6;
    packet
}

/// Sets the flow label.
pub(crate) fn with_flow_label(mut packet: Vec<u8>, flow_label: u32) -> Vec<u8> {
    let [_, high, middle, low] = flow_label.to_be_bytes();
    packet[1] = packet[1] & 0xF0 | high & 0x0F;
    packet[2..4].copy_from_slice(&[middle, low]);
    packet
}

/// Gives a UDP packet right behind its IPv6 header a checksum in place of zero.
pub(crate) fn with_udp_checksum(mut packet: Vec<u8>) -> Vec<u8> {
    let checksum = checksums::udp(&packet);
    packet[46..48].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// Replaces octets.
pub(crate) fn with_octets(mut packet: Vec<u8>, offset: usize, octets: &[u8]) -> Vec<u8> {
    packet[offset..offset + octets.len()].copy_from_slice(octets);
    packet
}
