//! Translation between IPv4 and IPv6 (D272) against scapy's packets, and those of NICs.

use crate::golden::captures::{frames, innermost_of};
use srdma_wire::icrc::Computation;
use srdma_wire::rocev2::Packet;
use srdma_wire::translation::{NotTranslated, Translated, to_ipv4, to_ipv6};
use srdma_wire::{BthView, Icrc, Ipv4View, Ipv6View, UdpView, View};
use zerocopy::IntoBytes;

const GROUPS: &str = "scapy_13_ipv4_groups.pcap";
const ETHERNET: usize = 14;

/// The packet of one frame, without its Ethernet header; frames count from 1.
fn packet(name: &str, frame: usize) -> Vec<u8> {
    frames(name)[frame - 1][ETHERNET..].to_vec()
}

fn icrc(packet: &[u8]) -> Icrc {
    Icrc(*packet.last_chunk().unwrap())
}

/// The packet with another network header, and the fields behind it that this changes.
fn with<H: IntoBytes + zerocopy::Immutable>(translated: &Translated<H>, old: &[u8], header: usize) -> Vec<u8> {
    let mut rest = old[header..].to_vec();
    rest[6..8].copy_from_slice(&translated.udp_checksum.to_be_bytes());
    *rest.last_chunk_mut().unwrap() = translated.icrc.0;
    [translated.header.as_bytes(), &rest].concat()
}

fn in_ipv6(packet: &[u8]) -> Vec<u8> {
    with(&to_ipv6(packet, packet.len(), icrc(packet)).unwrap(), packet, Ipv4View::LEN)
}

fn in_ipv4(packet: &[u8]) -> Vec<u8> {
    with(&to_ipv4(packet, packet.len(), icrc(packet)).unwrap(), packet, Ipv6View::LEN)
}

#[test]
fn a_packet_of_the_source_becomes_scapys() {
    for (ipv4, ipv6) in [(1, 2), (6, 7)] {
        assert_eq!(in_ipv6(&packet(GROUPS, ipv4)), packet(GROUPS, ipv6), "{ipv4}");
    }
}

/// Copies and responses are atomic datagrams, so that they come back from IPv6 as they were.
#[test]
fn atomic_datagrams_return_as_they_were() {
    for frame in [4, 5, 8, 9, 10, 11, 13] {
        let packet = packet(GROUPS, frame);
        assert_eq!(in_ipv4(&in_ipv6(&packet)), packet, "{frame}");
    }
}

/// ICRCs that NICs computed over IPv4 become those of IPv6, over other Identifications and flags than ours.
#[test]
fn packets_of_nics_have_good_icrcs_in_ipv6() {
    for name in ["hw_cx4lx_cnp_ipv4.pcap", "hw_uts_uc_send_ipv4.pcap"] {
        let ipv4 = packet(name, 1);
        let ipv4 = &ipv4[..usize::from(u16::from_be_bytes([ipv4[2], ipv4[3]]))];
        let ipv6 = in_ipv6(ipv4);
        let (header, rest) = Ipv6View::split(&ipv6).unwrap();
        let (udp, rest) = UdpView::split(rest).unwrap();
        // A UC SEND among them, which no group has.
        let (bth, rest) = BthView::split(rest).unwrap();
        let mut computation = Computation::begin(header, 0, udp, bth);
        computation.update(&rest[..rest.len() - Icrc::LEN]);
        assert_eq!(computation.finish(), icrc(&ipv6), "{name}");
    }
}

/// D10: damage stays damage, in either direction.
#[test]
fn a_wrong_icrc_stays_wrong() {
    for bit in 0..8 {
        let mut damaged = packet(GROUPS, 1);
        damaged[80] ^= 1 << bit;
        let ipv6 = in_ipv6(&damaged);
        assert!(!Packet::parse(&ipv6, ipv6.len()).unwrap().icrc([]).unwrap().is_good());
        let again = in_ipv6(&in_ipv4(&ipv6));
        assert_eq!(again, ipv6);
    }
}

#[test]
fn others_are_not_translated() {
    let refusal = |changes: &[(usize, u8)]| {
        let mut packet = packet(GROUPS, 1);
        changes.iter().for_each(|(at, octet)| packet[*at] = *octet);
        to_ipv6(&packet, packet.len(), icrc(&packet)).err()
    };
    assert_eq!(refusal(&[]), None);
    assert_eq!(refusal(&[(0, 0x46)]), Some(NotTranslated::Options));
    let not_rocev2 = Some(NotTranslated::NotRocev2);
    // Version, protocol, the first of several fragments, a later one; destination port and length of UDP.
    for (at, octet) in [(0, 0x65), (9, 6), (6, 0x20), (7, 1), (23, 0xB8), (25, 9), (3, 0x40)] {
        assert_eq!(refusal(&[(at, octet)]), not_rocev2, "{at}");
    }
    let ipv6 = innermost_of(GROUPS, 2);
    for short in 0..ipv6.len() {
        assert!(to_ipv4(&ipv6[..short.min(47)], short, Icrc([0; 4])).is_err());
    }
    let other = innermost_of("scapy_01_rocev2_base.pcap", 1);
    let source = "2001:db8:1::1".parse().unwrap();
    assert_eq!(to_ipv4(&other, other.len(), icrc(&other)).err(), Some(NotTranslated::Address(source)));
}
