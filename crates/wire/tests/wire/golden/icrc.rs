//! Every ICRC and UDP checksum in the captures.

use crate::golden::captures::{frames, innermost, innermost_of, ipv6, names};
use srdma_wire::Ethernet;
use srdma_wire::rocev2::{NotRocev2, Packet, UdpChecksum};

/// The frames of each capture: `g` RoCEv2 with a valid ICRC, `b` with a wrong one, `x` UDP port 4791 without RoCEv2 in
/// it, `.` others. Made with another program, a CRC-32 by a table of its own in Python.
///
/// Wrong are: an ICRC that covers extension headers (kernel_t17 frame 6, scapy_04 frames 3–5; D43 has them absent) or
/// that scapy left zero (scapy_04 frame 2, scapy_05), a destination that is not yet the final one (kernel_t8), and
/// octets that were flipped on purpose. The length of frame 12 of neg_icrc_mutations exceeds the frame, kernel_t20 has
/// no BTH.
const EXPECTED: [(&str, &str); 25] = [
    ("kernel_t1_usid_red", "g.g.."),
    ("kernel_t2_usid_encap", "g..."),
    ("kernel_t3_red3", "g..."),
    ("kernel_t4_encap3", "g..."),
    ("kernel_t5_psp", "g..."),
    ("kernel_t6_b6", "g..."),
    ("kernel_t7_usid2", "g..."),
    ("kernel_t8_inline_1", "b..."),
    ("kernel_t8_inline_2", "b..."),
    ("kernel_t8_inline_3", "g..."),
    ("kernel_t8_inline_4", "g..."),
    ("kernel_t9_hmac", "g..."),
    ("kernel_t10_hmac_red", "g..."),
    ("kernel_t16_mcast", "gg"),
    ("kernel_t17_ioam", "gggggb"),
    ("kernel_t20_transit_encap", "x.x.x..."),
    ("neg_icrc_mutations", "gggggbbbbbbx"),
    ("scapy_01", "gggggg"),
    ("scapy_02", "gggggggg"),
    ("scapy_03", "gg"),
    ("scapy_04", "gbbbbggg"),
    ("scapy_05", "bbb"),
    ("scapy_07", "gggggg"),
    ("scapy_11", "ggggg"),
    ("scapy_13", ".gg...g......"),
];

/// D43 among them: extension headers count as absent.
#[test]
fn every_icrc_verdict_equals_that_of_the_reference() {
    for name in names() {
        let found: String = frames(&name).iter().map(|frame| judge(frame)).collect();
        let listed = EXPECTED.iter().find(|(beginning, _)| name.starts_with(beginning));
        let expected = match listed {
            Some((_, expected)) => (*expected).to_owned(),
            // Soft-RoCE computes every ICRC right; the rest has no RoCEv2 in IPv6.
            None if name.starts_with("rxe/") => "g".repeat(found.len()),
            None => ".".repeat(found.len()),
        };
        assert_eq!(found, expected, "{name}");
    }
}

fn judge(frame: &[u8]) -> char {
    let Some(packet) = ipv6(frame).map(innermost) else { return '.' };
    match Packet::parse(packet, packet.len()) {
        Ok(rocev2) if rocev2.icrc([]).unwrap().is_good() => 'g',
        Ok(_) => 'b',
        Err(NotRocev2::UpperLayer(_) | NotRocev2::DestinationPort(_)) => '.',
        Err(_) => 'x',
    }
}

#[test]
fn other_packets_are_refused_with_the_reason() {
    let refusal = |name, frame| {
        let packet = innermost_of(name, frame);
        Packet::parse(&packet, packet.len()).unwrap_err().to_string()
    };
    assert_eq!(refusal("neg_icrc_mutations.pcap", 12), "IPv6 packet needs 117 octets, 116 left");
    assert_eq!(refusal("kernel_t20_transit_encap_1h1-r1.pcap", 1), "BTH transport version must be 0, found 8");
    assert_eq!(refusal("kernel_t2_usid_encap_1h1-r1.pcap", 3), "upper layer must be 17 (UDP), found 58");
}

/// The kernel computed those of kernel_*, soft-RoCE sends none, scapy made that of the SEND in scapy_01. Wrong are one
/// of the mutations, those with an SRH with segments left before UDP, and those of kernel_t17, which were made before
/// the ICRC was put in. The counts are those of a separate program in Python.
#[test]
fn udp_checksums() {
    let (mut absent, mut good, mut bad) = (0, 0, Vec::new());
    for name in names() {
        for frame in frames(&name) {
            let Some(packet) = ipv6(&frame).map(innermost) else { continue };
            let Ok(rocev2) = Packet::parse(packet, packet.len()) else { continue };
            match rocev2.udp_checksum([]).unwrap() {
                UdpChecksum::Absent => absent += 1,
                UdpChecksum::Good => good += 1,
                UdpChecksum::Bad => bad.push(name.clone()),
            }
        }
    }
    assert_eq!((absent, good, bad.len()), (161, 46, 27));
    let expected = ["kernel_t17_", "kernel_t8_inline_1", "kernel_t8_inline_2", "neg_icrc_mutations"];
    assert!(bad.iter().all(|name| expected.iter().any(|beginning| name.starts_with(beginning))), "{bad:?}");
}

/// Wherever a packet is cut into segments, through the ICRC too, nothing changes.
#[test]
fn segments_may_end_anywhere() {
    let whole = innermost_of("scapy_01_rocev2_base.pcap", 6);
    let packet = Packet::parse(&whole, whole.len()).unwrap();
    let (icrc, udp) = (packet.icrc([]).unwrap(), packet.udp_checksum([]).unwrap());
    assert!(icrc.is_good() && udp == UdpChecksum::Good);
    for first_len in 60..=whole.len() {
        for second_len in 0..=whole.len() - first_len {
            let (first, rest) = whole.split_at(first_len);
            let (second, third) = rest.split_at(second_len);
            let packet = Packet::parse(first, whole.len()).unwrap();
            assert_eq!(packet.icrc([second, third]), Ok(icrc));
            assert_eq!(packet.udp_checksum([second, third]), Ok(udp));
            assert_eq!(packet.icrc([second]).is_ok(), third.is_empty());
            assert_eq!(packet.udp_checksum([second]).is_ok(), third.is_empty());
        }
    }
}

/// Octets behind the end that the IPv6 header states are Ethernet's.
#[test]
fn ethernet_padding_is_left_out() {
    let mut whole = innermost_of("scapy_01_rocev2_base.pcap", 6);
    let end = whole.len();
    whole.extend([0xEE; 9]);
    let packet = Packet::parse(&whole[..end + 2], whole.len()).unwrap();
    assert_eq!(packet.total_len(), end);
    assert!(packet.icrc([&whole[end + 2..]]).unwrap().is_good());
    assert_eq!(packet.udp_checksum([&whole[end + 2..]]), Ok(UdpChecksum::Good));
}

/// Two packets that are published in scapy's tests, the first as captured on a ConnectX-4 Lx, are IPv4: their ICRC is
/// computed here, over the IPv4 header as IBTA annex A17.3.3 masks it, by a CRC-32 bit by bit. It must be the published
/// one. No NIC was asked by this project.
#[test]
fn icrcs_of_published_packets() {
    for name in ["hw_cx4lx_cnp_ipv4.pcap", "hw_uts_uc_send_ipv4.pcap"] {
        let frame = &frames(name)[0];
        let (_, packet) = Ethernet::parse(frame).unwrap();
        let total_len = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let mut masked = packet[..total_len - 4].to_vec();
        for place in [1, 8, 10, 11, 26, 27, 32] {
            masked[place] = 0xFF;
        }
        let covered: Vec<u8> = [0xFF; 8].into_iter().chain(masked).collect();
        assert_eq!(crc32_bit_by_bit(&covered).to_le_bytes(), packet[total_len - 4..total_len], "{name}");
    }
}

/// The same reference agrees with the crate where both apply.
#[test]
fn the_bitwise_reference_agrees() {
    for frame in frames("rxe/send_imm_t1.pcap") {
        let packet = ipv6(&frame).unwrap();
        let mut masked = packet[..packet.len() - 4].to_vec();
        masked[0] |= 0x0F;
        for place in [1, 2, 3, 7, 46, 47, 52] {
            masked[place] = 0xFF;
        }
        let covered: Vec<u8> = [0xFF; 8].into_iter().chain(masked).collect();
        let check = Packet::parse(packet, packet.len()).unwrap().icrc([]).unwrap();
        assert_eq!(crc32_bit_by_bit(&covered).to_le_bytes(), check.computed.0);
        assert!(check.is_good());
    }
}

fn crc32_bit_by_bit(octets: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for octet in octets {
        for bit in 0..8 {
            let feedback = (register ^ u32::from(octet >> bit)) & 1;
            register = (register >> 1) ^ (0xEDB8_8320 * feedback);
        }
    }
    !register
}
