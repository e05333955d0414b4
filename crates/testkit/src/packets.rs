//! RoCEv2 packets built octet by octet, with ICRCs of the reference model.

use crate::checksums;
use std::net::Ipv6Addr;

/// Opcode of CNPs.
pub const CNP: u8 = 0x81;

/// An IPv6 packet with UDP 4791, a BTH and the payload, under a valid ICRC. All but CNPs request an acknowledgement.
pub fn rocev2(source: Ipv6Addr, destination: Ipv6Addr, opcode: u8, qpn: u32, psn: u32, rest: &[u8]) -> Vec<u8> {
    let udp_len = (8 + 12 + rest.len() + 4) as u16;
    let (becn, ack_request) = if opcode == CNP { (0x40, 0) } else { (0, 0x80) };
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(udp_len.to_be_bytes());
    packet.extend([17, 64]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend([0xD0, 1, 0x12, 0xB7]);
    packet.extend(udp_len.to_be_bytes());
    packet.extend([0, 0, opcode, 0, 0xFF, 0xFF, becn]);
    packet.extend(&qpn.to_be_bytes()[1..]);
    packet.push(ack_request);
    packet.extend(&psn.to_be_bytes()[1..]);
    packet.extend(rest);
    packet.extend(checksums::icrc(&packet));
    packet
}

/// A CNP.
pub fn cnp(source: Ipv6Addr, destination: Ipv6Addr, qpn: u32) -> Vec<u8> {
    rocev2(source, destination, CNP, qpn, 0, &[0; 16])
}

/// A Fast CNP with option 1, about a packet to `original`.
pub fn fast_cnp(source: Ipv6Addr, destination: Ipv6Addr, original: Ipv6Addr, qpn: u32) -> Vec<u8> {
    let option = [&[0x9E, 16][..], &original.octets(), &[1, 2, 0, 0]].concat();
    with_options(cnp(source, destination, qpn), &option)
}

/// A packet with a Destination Options header of these options, which come to six octets more than a multiple of eight.
pub fn with_options(mut packet: Vec<u8>, options: &[u8]) -> Vec<u8> {
    let header = [&[packet[6], ((options.len() + 2) / 8 - 1) as u8][..], options].concat();
    let length = u16::from_be_bytes([packet[4], packet[5]]) + header.len() as u16;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet[6] = 60;
    packet.splice(40..40, header);
    packet
}
