//! Checks of the frames that leave a node, independent of the code that made them.

use super::ipv4;
use super::plan::LOOPBACK;
use super::script::ETHERNET;
use super::world::{neighbour_mac, port_mac};
use srdma_testkit::checksums;
use srdma_wire::Opcode;
use srdma_wire::rocev2::{Packet, UdpChecksum};
use std::net::Ipv6Addr;

/// The RoCEv2 packet that a frame carries, below whatever headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// Whether other IPv6 headers stand before its own.
    tunnelled: bool,
    with_extension_headers: bool,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    opcode: Opcode,
    icrc_is_good: bool,
    /// Its payload was cut off (D88).
    is_trimmed: bool,
    /// `None` without one.
    udp_checksum_is_good: Option<bool>,
}

impl Carried {
    pub(super) fn is_response(&self) -> bool {
        matches!(self.opcode, Opcode::ACKNOWLEDGE | Opcode::CNP)
    }
}

/// Finds the RoCEv2 packet in a frame; `None` when a host would find none.
pub(super) fn carried(frame: &[u8]) -> Option<Carried> {
    if frame.get(12..14)? != [0x86, 0xDD] {
        return None;
    }
    let mut packet = frame.get(ETHERNET..)?;
    let mut tunnelled = false;
    loop {
        if packet.first()? >> 4 != 6 {
            return None;
        }
        let payload_length = usize::from(u16::from_be_bytes([*packet.get(4)?, *packet.get(5)?]));
        packet = packet.get(..40 + payload_length)?;
        match behind_extension_headers(packet)? {
            (41, at) => packet = packet.get(at..)?,
            (17, _) => break,
            _ => return None,
        }
        tunnelled = true;
    }
    let view = Packet::parse(packet, packet.len()).ok()?;
    let icrc = view.icrc([]).ok()?;
    Some(Carried {
        tunnelled,
        with_extension_headers: view.extension_octets() != 0,
        source: view.ipv6.source(),
        destination: view.ipv6.destination(),
        opcode: view.bth.opcode(),
        icrc_is_good: icrc.is_good(),
        is_trimmed: icrc.is_trimmed(),
        udp_checksum_is_good: match view.udp_checksum([]).ok()? {
            UdpChecksum::Absent => None,
            UdpChecksum::Good => Some(true),
            UdpChecksum::Bad => Some(false),
        },
    })
}

/// The protocol and offset of the octets after the extension headers of an IPv6 packet.
fn behind_extension_headers(packet: &[u8]) -> Option<(u8, usize)> {
    let (mut header, mut at) = (*packet.get(6)?, 40);
    while matches!(header, 0 | 43 | 60) {
        let [next, len] = *packet.get(at..)?.first_chunk()?;
        header = next;
        at += 8 + 8 * usize::from(len);
    }
    (at <= packet.len()).then_some((header, at))
}

/// A frame that leaves is whole: it has addresses, its lengths are right, it has hops left, and its ICMPv6 checksum is
/// right when the node made it.
pub(super) fn is_whole(port: u16, frame: &[u8], came: &[u8]) {
    assert!(frame.len() >= ETHERNET + 20, "a frame of {} octets leaves", frame.len());
    assert_eq!(frame[6..12], port_mac(port).0, "the source address of port {port}");
    if frame[12..14] == [0x08, 0x00] {
        assert_eq!(frame[..6], neighbour_mac(port).0, "the destination address");
        return ipv4::is_whole(&frame[ETHERNET..]);
    }
    assert!(frame.len() >= ETHERNET + 40, "a frame of {} octets leaves", frame.len());
    assert_eq!(frame[12..14], [0x86, 0xDD]);
    let packet = &frame[ETHERNET..];
    // End.X forwards a multicast packet to its neighbour alone.
    let is_to_group = packet[24] == 0xFF && frame[..6] == [0x33, 0x33, packet[36], packet[37], packet[38], packet[39]];
    assert!(is_to_group || frame[..6] == neighbour_mac(port).0, "the destination address {:x?}", &frame[..6]);
    assert_eq!(packet[0] >> 4, 6, "the IPv6 version");
    assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len() - 40, "the payload length");
    assert_ne!(packet[7], 0, "the hop limit of {frame:02x?} after {came:02x?}");
    let loopback = LOOPBACK.octets();
    let is_from_here = packet[8..24] == loopback && !came.windows(16).any(|octets| octets == loopback);
    if is_from_here && packet[6] == 58 {
        assert!(packet.len() <= 1280, "an ICMPv6 error of {} octets", packet.len());
        assert_eq!(icmpv6_remainder(packet), 0xFFFF, "the ICMPv6 checksum");
    }
}

/// A frame by which a node pauses its neighbour is a valid PFC frame (IEEE 802.1Q clause 36).
pub(super) fn is_pause(port: u16, frame: &[u8]) {
    assert_eq!(frame.len(), 60, "the least that Ethernet carries");
    assert_eq!(frame[..6], [0x01, 0x80, 0xC2, 0, 0, 1]);
    assert_eq!(frame[6..12], port_mac(port).0, "the source address of port {port}");
    assert_eq!(frame[14..17], [1, 1, 0], "the opcode");
    assert_ne!(frame[17], 0, "it says nothing of any class");
    assert!(frame[34..].iter().all(|octet| *octet == 0), "padding");
}

/// The sum over an ICMPv6 packet and its pseudo-header: all ones when the checksum is right (RFC 4443 section 2.3).
fn icmpv6_remainder(packet: &[u8]) -> u16 {
    let length = (packet.len() - 40) as u32;
    let words = |octets: &[u8]| -> u64 {
        octets.chunks(2).map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0))).sum()
    };
    let mut sum = words(&packet[8..40]) + u64::from(length) + 58 + words(&packet[40..]);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// No ICRC that was good becomes bad on the way through a node, and none that was bad becomes good (D10), unless the
/// node `recomputes`. The ICRC of the node's own packets is right (D33), and that of data packets that a port `trims`
/// the complement (D88).
pub(super) fn is_as_good(came: Option<&Carried>, leaves: &Carried, recomputes: bool, trims: bool) {
    // The frame that came may have been the last fragment of a packet that had been trimmed before.
    let may_be_trimmed = came.is_none_or(|came| trims && !came.is_trimmed);
    if leaves.is_trimmed && !leaves.is_response() && may_be_trimmed {
        return;
    }
    let Some(came) = came else {
        assert!(leaves.icrc_is_good, "the node's own packet has a bad ICRC: {leaves:?}");
        return;
    };
    if leaves.is_response() && !came.is_response() {
        assert!(leaves.icrc_is_good, "the node's own response has a bad ICRC: {leaves:?}, after {came:?}");
        return;
    }
    // A SID that is the destination of the RoCEv2 packet itself is rewritten, and the ICRC covers it: such a packet is
    // whole again only where the last segment is its own destination.
    let rewritten = came.source == leaves.source && came.destination != leaves.destination;
    let routed = !came.tunnelled && came.with_extension_headers;
    if rewritten || routed || came.with_extension_headers != leaves.with_extension_headers {
        return;
    }
    let copied = came.source != leaves.source;
    if !(recomputes && copied) {
        assert_eq!(leaves.icrc_is_good, came.icrc_is_good, "ICRC on departure: {leaves:?}, on arrival: {came:?}");
        // A response that the node has received and sent on is its own, without a UDP checksum.
        let said_again = came.is_response() && copied && leaves.udp_checksum_is_good.is_none();
        let as_good = leaves.udp_checksum_is_good == came.udp_checksum_is_good;
        assert!(said_again || as_good, "UDP checksum on departure: {leaves:?}, on arrival: {came:?}");
    } else {
        assert!(leaves.icrc_is_good, "a recomputed ICRC is good: {leaves:?}");
    }
}

/// Verdict of the slow reference on the ICRC of a packet without outer headers.
pub(super) fn agrees_with_the_reference(frame: &[u8], leaves: &Carried) {
    if !leaves.tunnelled && !leaves.with_extension_headers {
        let packet = &frame[ETHERNET..];
        let (covered, icrc) = packet.split_at(packet.len() - 4);
        let reference = checksums::icrc(covered);
        assert_eq!(reference == icrc, leaves.icrc_is_good, "the reference's ICRC");
        assert_eq!(reference.map(|octet| !octet) == icrc, leaves.is_trimmed, "its complement");
    }
}
