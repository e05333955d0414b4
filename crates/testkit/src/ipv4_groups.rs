//! Reference model of groups of IPv4 hosts (D272): packets of hosts and their translations, recomputed as a whole.

use crate::checksums::{crc32, udp};
use crate::multicast::{self, Receiver};

/// Octets of headers.
const IPV4: usize = 20;
const IPV6: usize = 40;

/// The Internet checksum of an IPv4 header, whose own field is ignored.
pub fn header_checksum(packet: &[u8]) -> u16 {
    let mut header = packet[..IPV4].to_vec();
    header[10..12].fill(0);
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// The ICRC of an IPv4 packet without options, which ends where the ICRC begins.
pub fn icrc(packet: &[u8]) -> [u8; 4] {
    let masked = packet.iter().enumerate().map(|(offset, octet)| match offset {
        // Type of Service, Time to Live, Header Checksum, UDP checksum, FECN and BECN.
        1 | 8 | 10 | 11 | 26 | 27 | 32 => 0xFF,
        _ => *octet,
    });
    crc32([0xFF; 8].into_iter().chain(masked)).to_le_bytes()
}

/// The UDP checksum of an IPv4 packet without options; its checksum field is ignored.
fn udp_checksum(packet: &[u8]) -> u16 {
    let mut covered = packet[12..20].to_vec();
    covered.extend([0, 17]);
    covered.extend(&packet[24..26]);
    covered.extend(&packet[20..]);
    covered[12 + 6..12 + 8].fill(0);
    covered.resize(covered.len().next_multiple_of(2), 0);
    let mut sum = 0;
    for word in covered.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(word[1]);
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    if sum == 0xFFFF { 0xFFFF } else { !(sum as u16) }
}

/// An IPv4 packet with its checksums and its ICRC right; one without a UDP checksum stays so.
pub fn sealed(mut packet: Vec<u8>) -> Vec<u8> {
    let checksum = header_checksum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let end = packet.len() - 4;
    let icrc = icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    if packet[26..28] != [0, 0] {
        let checksum = udp_checksum(&packet);
        packet[26..28].copy_from_slice(&checksum.to_be_bytes());
    }
    packet
}

/// The translation of an IPv4 packet whose ICRC is good.
pub fn in_ipv6(packet: &[u8]) -> Vec<u8> {
    let mut translated = vec![0x60 | packet[1] >> 4, packet[1] << 4, 0, 0];
    translated.extend(&packet[24..26]);
    translated.extend([packet[9], packet[8]]);
    for address in [&packet[12..16], &packet[16..20]] {
        translated.extend([&[0; 10][..], &[0xFF; 2], address].concat());
    }
    translated.extend(&packet[IPV4..]);
    let end = translated.len() - 4;
    let icrc = crate::checksums::icrc(&translated[..end]);
    translated[end..].copy_from_slice(&icrc);
    if translated[46..48] != [0, 0] {
        let checksum = udp(&translated);
        translated[46..48].copy_from_slice(&checksum.to_be_bytes());
    }
    translated
}

/// The packet for a host in IPv4: an atomic datagram. The ICRC must have been good.
pub fn in_ipv4(packet: &[u8]) -> Vec<u8> {
    let length = (packet.len() - IPV6 + IPV4) as u16;
    let mut translated = vec![0x45, packet[0] << 4 | packet[1] >> 4];
    translated.extend(length.to_be_bytes());
    translated.extend([0, 0, 0x40, 0, packet[7], packet[6], 0, 0]);
    translated.extend(&packet[20..24]);
    translated.extend(&packet[36..40]);
    translated.extend(&packet[IPV6..]);
    sealed(translated)
}

/// The copy of a source's packet for a receiver, at whose edge it arrives translated.
pub fn copy_for(translated: &[u8], receiver: &Receiver, group_base: u64) -> Vec<u8> {
    in_ipv4(&multicast::copy_for(translated, receiver, group_base))
}
