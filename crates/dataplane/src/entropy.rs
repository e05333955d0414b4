//! The hash of a flow, for ECMP and for the outer flow label.

use crate::headers::{AFTER_IPV6, IPV6};
use crate::ipv4;
use srdma_wire::codepoints::ROCEV2_PORT;
use std::net::Ipv6Addr;

/// A hash of the packet's addresses, flow label and, for UDP, source port; for RoCEv2 its queue pair too. An IPv6
/// packet in this one is represented by this one's flow label, which its encapsulator made from it.
#[inline]
pub(crate) fn of_packet(head: &[u8]) -> u32 {
    let Some(octets) = head.first_chunk::<AFTER_IPV6>() else {
        return 0;
    };
    let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|index| octets[IPV6 + at + index]));
    let flow_label = word(0) >> 32 & 0xF_FFFF;
    let source = word(8) ^ word(16).rotate_left(17);
    let destination = word(24) ^ word(32).rotate_left(31);
    let mut hash = mix(source ^ flow_label).wrapping_add(destination);
    const UDP: u8 = 17;
    if octets[IPV6 + 6] == UDP
        && let Some(transport) = head.get(AFTER_IPV6..).and_then(|rest| rest.first_chunk::<16>())
    {
        hash ^= u64::from(u32::from_be_bytes([transport[0], transport[1], transport[2], transport[3]])) << 32;
        if u16::from_be_bytes([transport[2], transport[3]]) == ROCEV2_PORT {
            hash ^= u64::from(u32::from_be_bytes([0, transport[13], transport[14], transport[15]]));
        }
    }
    (mix(hash) >> 32) as u32
}

/// The same of an IPv4 packet: of its addresses and protocol, and, unless it is a fragment, of the ports of TCP and UDP
/// and the queue pair of RoCEv2.
#[cold]
pub(crate) fn of_ipv4_packet(head: &[u8]) -> u32 {
    let Ok(view) = ipv4::header(head, IPV6) else { return 0 };
    let (source, destination) = view.addresses();
    let addresses = u64::from(u32::from_be_bytes(source)) << 32 | u64::from(u32::from_be_bytes(destination));
    let mut hash = mix(addresses).wrapping_add(view.protocol.into());
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let is_whole = view.fragment_offset() == 0 && !view.more_fragments();
    let transport = head.get(IPV6 + view.header_len()..).unwrap_or_default();
    if is_whole
        && matches!(view.protocol, TCP | UDP)
        && let Some(ports) = transport.first_chunk::<4>()
    {
        hash ^= u64::from(u32::from_be_bytes(*ports)) << 32;
        if view.protocol == UDP
            && ports[2..] == ROCEV2_PORT.to_be_bytes()
            && let Some(queue_pair) = transport.get(13..16)
        {
            hash ^= queue_pair.iter().fold(0, |number, octet| number << 8 | u64::from(*octet));
        }
    }
    (mix(hash) >> 32) as u32
}

/// A hash of a frame's MAC addresses.
pub(crate) fn of_frame(head: &[u8]) -> u32 {
    let Some(addresses) = head.first_chunk::<12>() else { return 0 };
    let [a, b, c] = std::array::from_fn(|index| addresses[4 * index..][..4].try_into().map_or(0, u32::from_be_bytes));
    (mix(mix(u64::from(a) << 32 | u64::from(b)).wrapping_add(u64::from(c))) >> 32) as u32
}

/// The index among equal paths that a node selects for a packet with these headers, the Ethernet header first; the hash
/// of [`Node`](crate::Node)s with this loopback address.
pub fn equal_path(head: &[u8], loopback: Ipv6Addr, paths: usize) -> usize {
    choose(of_packet(head), salt(loopback), paths)
}

/// One of so many for a flow's hash. The hash includes the node's `salt`: if all nodes chose alike, those behind one
/// port of the first would get only flows that they all send by one port, too.
#[inline]
pub(crate) fn choose(hash: u32, salt: u32, among: usize) -> usize {
    ((u64::from(spread(hash, salt)) * among as u64) >> 32) as usize
}

/// The same as a part of a total, for a choice by weights.
pub(crate) fn part(hash: u32, salt: u32, total: u64) -> u64 {
    ((u128::from(spread(hash, salt)) * u128::from(total)) >> 32) as u64
}

#[inline(always)]
fn spread(hash: u32, salt: u32) -> u32 {
    (hash ^ salt).wrapping_mul(0x9E37_79B1)
}

/// The salt of hashes at a node with this loopback address.
pub(crate) fn salt(loopback: Ipv6Addr) -> u32 {
    of_addresses(&loopback.octets(), &[0; 16])
}

/// A hash of two addresses.
pub(crate) fn of_addresses(one: &[u8; 16], other: &[u8; 16]) -> u32 {
    let words = |octets: &[u8; 16]| {
        let number = u128::from_be_bytes(*octets);
        (number >> 64) as u64 ^ (number as u64).rotate_left(17)
    };
    (mix(mix(words(one)).wrapping_add(words(other))) >> 32) as u32
}

#[inline]
fn mix(value: u64) -> u64 {
    (value ^ value >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
