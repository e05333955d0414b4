//! The ICRC bit by bit, and the UDP checksum octet by octet.

/// CRC-32 (IEEE 802.3), one bit at a time.
pub fn crc32(octets: impl IntoIterator<Item = u8>) -> u32 {
    let mut register = u32::MAX;
    for octet in octets {
        for bit in 0..8 {
            let feedback = (register ^ u32::from(octet >> bit)) & 1;
            register >>= 1;
            if feedback == 1 {
                register ^= 0xEDB8_8320;
            }
        }
    }
    !register
}

/// The ICRC of an IPv6 packet whose UDP header follows the IPv6 header, as it stands on the wire. `packet` ends where
/// the ICRC begins; its lengths count the ICRC already.
pub fn icrc(packet: &[u8]) -> [u8; 4] {
    let masked = packet.iter().enumerate().map(|(offset, octet)| match offset {
        0 => octet | 0x0F,
        // Traffic class, flow label, hop limit, UDP checksum, FECN and BECN.
        1..=3 | 7 | 46 | 47 | 52 => 0xFF,
        _ => *octet,
    });
    crc32([0xFF; 8].into_iter().chain(masked)).to_le_bytes()
}

/// The UDP checksum of an IPv6 packet whose UDP header follows the IPv6 header; its checksum field is ignored.
pub fn udp(packet: &[u8]) -> u16 {
    match upper_layer(packet, 17, 6) {
        0 => 0xFFFF,
        checksum => checksum,
    }
}

/// The checksum of an IPv6 packet whose ICMPv6 header follows the IPv6 header; its checksum field is ignored.
pub fn icmpv6(packet: &[u8]) -> u16 {
    upper_layer(packet, 58, 2)
}

/// The checksum of RFC 8200 section 8.1, whose field is so many octets behind the IPv6 header.
fn upper_layer(packet: &[u8], next_header: u8, checksum_at: usize) -> u16 {
    let length = packet.len() - 40;
    let mut covered: Vec<u8> = packet[8..40].to_vec();
    covered.extend((length as u32).to_be_bytes());
    covered.extend([0, 0, 0, next_header]);
    covered.extend(&packet[40..]);
    covered[40 + checksum_at..][..2].fill(0);
    let mut sum = 0u32;
    for (offset, octet) in covered.iter().enumerate() {
        sum += u32::from(*octet) << (8 * (1 - offset % 2));
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
