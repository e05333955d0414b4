//! Ethernet, IPv4, IPv6 and its extension headers, ICMPv6, priority flow control.

use super::{Walk, rdma};
use crate::octets::{ICMPV6, IPV4, IPV6, ROUTING, UDP};

const HOP_BY_HOP: u8 = 0;
const DESTINATION_OPTIONS: u8 = 60;
const END_MT: u8 = 124;
const MR: u8 = 125;
const HMAC: u8 = 5;

pub(super) fn ethernet(walk: &mut Walk<'_>) {
    if !walk.begin("Ethernet", 14) {
        return;
    }
    let ethertype = walk.peek_u16(12);
    walk.bits(&[("Destination Address", 48), ("Source Address", 48), ("EtherType", 16)]);
    match ethertype {
        Some(0x0800) => ipv4(walk),
        Some(0x86DD) => ipv6(walk),
        Some(0x8808) => mac_control(walk),
        _ => {}
    }
}

fn mac_control(walk: &mut Walk<'_>) {
    const PRIORITY_FLOW_CONTROL: u16 = 0x0101;
    if walk.peek_u16(0) != Some(PRIORITY_FLOW_CONTROL) || !walk.begin("PFC", 20) {
        return;
    }
    walk.bits(&[("Opcode", 16), ("Class Enable", 16)]);
    for class in 0..8 {
        walk.bits(&[(&format!("Time [{class}]"), 16)]);
    }
}

/// An IPv4 header; its options and what follows have no names.
fn ipv4(walk: &mut Walk<'_>) {
    if !walk.begin("IPv4", 20) {
        return;
    }
    walk.bits(&[
        ("Version", 4),
        ("IHL", 4),
        ("DSCP", 6),
        ("ECN", 2),
        ("Total Length", 16),
        ("Identification", 16),
        ("Flags", 3),
        ("Fragment Offset", 13),
        ("Time to Live", 8),
        ("Protocol", 8),
        ("Header Checksum", 16),
        ("Source Address", 32),
        ("Destination Address", 32),
    ]);
}

/// An IPv6 header and all that it announces.
fn ipv6(walk: &mut Walk<'_>) {
    if !walk.begin("IPv6", 40) {
        return;
    }
    let mut next = walk.peek(6);
    walk.bits(&[
        ("Version", 4),
        ("DSCP", 6),
        ("ECN", 2),
        ("Flow Label", 20),
        ("Payload Length", 16),
        ("Next Header", 8),
        ("Hop Limit", 8),
        ("Source Address", 128),
        ("Destination Address", 128),
    ]);
    while let Some(header) = next {
        next = match header {
            HOP_BY_HOP => options(walk, "Hop-by-Hop Options"),
            DESTINATION_OPTIONS => options(walk, "Destination Options"),
            ROUTING => routing(walk),
            _ => return upper_layer(walk, header),
        };
    }
}

fn upper_layer(walk: &mut Walk<'_>, header: u8) {
    match header {
        IPV4 => ipv4(walk),
        IPV6 => ipv6(walk),
        UDP => rdma::udp(walk),
        ICMPV6 if walk.begin("ICMPv6", 8) => {
            walk.bits(&[("Type", 8), ("Code", 8), ("Checksum", 16), ("Parameter", 32)]);
            let rest = walk.rest().len();
            walk.octets("body", rest);
        }
        _ => {}
    }
}

fn options(walk: &mut Walk<'_>, name: &'static str) -> Option<u8> {
    let len = 8 + 8 * usize::from(walk.peek(1)?);
    if !walk.begin(name, len) {
        return None;
    }
    let (next, end) = (walk.peek(0), walk.at + len);
    walk.bits(&[("Next Header", 8), ("Hdr Ext Len", 8)]);
    let mut number = 0;
    while walk.at < end {
        number += 1;
        let room = end - walk.at;
        match walk.peek(1) {
            Some(data) if walk.peek(0) != Some(0) && 2 + usize::from(data) <= room => {
                walk.bits(&[(&format!("option {number} Type"), 8), (&format!("option {number} Opt Data Len"), 8)]);
                walk.octets(&format!("option {number} Data"), usize::from(data));
            }
            _ if walk.peek(0) == Some(0) => walk.octets(&format!("option {number} (Pad1)"), 1),
            _ => walk.octets("rest", room),
        }
    }
    next
}

fn routing(walk: &mut Walk<'_>) -> Option<u8> {
    let len = 8 + 8 * usize::from(walk.peek(1)?);
    if walk.peek(2) != Some(4) || !walk.begin("SRH", len) {
        return None;
    }
    let (next, end) = (walk.peek(0), walk.at + len);
    let listed = (usize::from(walk.peek(4)?) + 1).min((len - 8) / 16);
    walk.bits(&[
        ("Next Header", 8),
        ("Hdr Ext Len", 8),
        ("Routing Type", 8),
        ("Segments Left", 8),
        ("Last Entry", 8),
        ("Flags", 8),
        ("Tag", 16),
    ]);
    for segment in 0..listed {
        walk.bits(&[(&format!("Segment List[{segment}]"), 128)]);
    }
    while walk.at < end {
        tlv(walk, end - walk.at);
    }
    next
}

/// A TLV of an SRH (RFC 8754 section 2.1) that has so much room.
fn tlv(walk: &mut Walk<'_>, room: usize) {
    let value = walk.peek(1).map(usize::from).filter(|value| 2 + value <= room);
    match (walk.peek(0), value) {
        (Some(0), _) => {
            walk.begin("Pad1", 1);
            walk.octets("", 1);
        }
        (Some(END_MT), Some(value @ 22..)) => {
            let receivers = (value - 22) / 20;
            tlv_of_receivers(walk, "End.MT TLV", value, receivers, &[("Address", 128), ("QPN", 24), ("Reserved", 8)]);
        }
        (Some(MR), Some(value @ 22..)) => {
            let receivers = (value - 22) / 12;
            tlv_of_receivers(walk, "MR TLV", value, receivers, &[("Base", 64), ("RKey", 32)]);
        }
        (Some(HMAC), Some(value @ 6..)) if walk.begin("HMAC TLV", 2 + value) => {
            walk.bits(&[("Type", 8), ("Length", 8), ("D", 1), ("Reserved", 15), ("HMAC Key ID", 32)]);
            walk.octets("HMAC", value - 6);
        }
        (_, Some(value)) if walk.begin("TLV", 2 + value) => {
            walk.bits(&[("Type", 8), ("Length", 8)]);
            walk.octets("Value", value);
        }
        _ => {
            walk.begin("TLV", 0);
            walk.octets("rest", room);
        }
    }
}

fn tlv_of_receivers(
    walk: &mut Walk<'_>,
    name: &'static str,
    value: usize,
    receivers: usize,
    fields: &[(&'static str, usize)],
) {
    if !walk.begin(name, 2 + value) {
        return;
    }
    let end = walk.at + 2 + value;
    walk.bits(&[
        ("Type", 8),
        ("Length", 8),
        ("Reserved", 16),
        ("Edge Node Address", 128),
        ("Num Receivers", 8),
        ("Reserved (2)", 24),
    ]);
    for receiver in 1..=receivers {
        for (name, bits) in fields {
            walk.bits(&[(&format!("receiver {receiver} {name}"), *bits)]);
        }
    }
    walk.octets("rest", end - walk.at);
}
