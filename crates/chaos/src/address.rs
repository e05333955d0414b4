//! Addresses and numbers in the network of a chaos test. All addresses lie in the documentation prefix; positions are
//! written in decimal, counted from 1.
//!
//! | what | address |
//! |---|---|
//! | source 1 | `2001:db8:aa::1` |
//! | receiver 12 at node 7 | `2001:db8:bb:7::12` |
//! | receiver 12 at two nodes | `2001:db8:bc::12` |
//! | a group's Proxy Address | `2001:db8:cc::1` |
//! | an external host at node 7 | `2001:db8:dd:7::1` |
//! | in a schedule with IPv4 hosts: these | `10.170.0.1`, `10.187.0.18`, `10.204.0.1`: decimals as they are written |
//! | node 7: loopback, End.MT SID | `2001:db8:ff:7::1`, `2001:db8:ff:7::e` |
//! | node 7: Replication SID of group 1 | `2001:db8:ff:7:f::1` |
//! | node 7: End.DT6 SID | `2001:db8:ff:7::d6` |

#![allow(missing_docs, reason = "the names and the table say it")]

use srdma_dataplane::Domain;
use srdma_group::PsnOffset;
use srdma_random::Stream;
use srdma_rc::MemoryKey;
use srdma_sim::addressing::{self, NodeAddresses};
use srdma_wire::{Prefix, Qpn};
use std::net::{Ipv4Addr, Ipv6Addr};

fn number(position: usize) -> u16 {
    addressing::decimal(position as u16 + 1)
}

/// Any PSN offset, the same for a number each time.
pub fn psn_offset(number: u64) -> PsnOffset {
    PsnOffset::new(Stream::new(number, "PSN offset").below(1 << 24) as u32).unwrap_or_default()
}

/// The address that a source, receiver or group has where hosts are IPv4: of the kind of its own one, and its number.
pub fn in_ipv4(address: Ipv6Addr) -> Ipv6Addr {
    let [_, _, kind, .., number] = address.segments();
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, kind as u8, high, low).to_ipv6_mapped()
}

pub fn source(source: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xaa, 0, 0, 0, 0, number(source))
}

/// The prefix of sources.
pub fn sources() -> Prefix {
    block(0xaa)
}

pub fn receiver(receiver: usize, edge: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xbb, number(edge), 0, 0, 0, number(receiver))
}

/// The prefix of receivers that are attached to several nodes.
pub fn shared_receivers() -> Prefix {
    block(0xbc)
}

/// A receiver that is attached to several nodes.
pub fn shared_receiver(receiver: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xbc, 0, 0, 0, 0, number(receiver))
}

/// The prefix of an edge's receivers.
pub fn receivers_of(edge: usize) -> Prefix {
    subnet(0xbb, edge)
}

/// A host outside of the domain, at a border port of a node.
pub fn external_host(node: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xdd, number(node), 0, 0, 0, 1)
}

pub fn proxy(group: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, number(group))
}

pub fn node(node: usize) -> NodeAddresses {
    NodeAddresses::of_number(number(node))
}

pub fn node_of(loopback: Ipv6Addr, nodes: usize) -> Option<usize> {
    (0..nodes).find(|position| node(*position).loopback == loopback)
}

pub fn replication(node: usize, group: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number(node), 0xf, 0, 0, number(group))
}

/// The SID of a node that takes packets out of their tunnel.
pub fn decapsulation(node: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0xff, number(node), 0, 0, 0, 0xd6)
}

/// The prefix of the Proxy Addresses of IPv6.
pub fn proxies() -> Prefix {
    block(0xcc)
}

pub fn locator(node: usize) -> Prefix {
    subnet(0xff, node)
}

/// The domain's boundary (RFC 8754 section 5.1).
pub fn domain() -> Domain {
    Domain { sids: vec![block(0xff)], infrastructure: vec![block(0xff)], proxies: vec![proxies(), ipv4_proxies()] }
}

/// The Proxy Addresses of IPv4.
fn ipv4_proxies() -> Prefix {
    Prefix::of_ipv4(Ipv4Addr::new(10, 0xcc, 0, 0), 16).expect("16 bits are a prefix")
}

fn subnet(kind: u16, position: usize) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, kind, number(position), 0, 0, 0, 0), 64).expect("64 bits are a prefix")
}

fn block(kind: u16) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, kind, 0, 0, 0, 0, 0), 48).expect("48 bits are a prefix")
}

pub fn designated_qpn(group: usize) -> Qpn {
    addressing::qpn(0xD0_0000, group)
}

pub fn source_qpn(group: usize) -> Qpn {
    addressing::qpn(0x100, group)
}

/// A receiver's queue pair in a group; `times` counts its earlier memberships.
pub fn receiver_qpn(group: usize, receiver: usize, times: usize) -> Qpn {
    addressing::qpn(0x1000, receiver | group << 8 | times << 12)
}

/// Base address and key of the group's first memory region, as the source uses them (D27).
pub fn group_region(group: usize) -> (u64, MemoryKey) {
    (0x1000_0000_0000 + ((group as u64) << 32), MemoryKey(0x00C0_FF00 + group as u32))
}

/// From one region of a group to the next: virtual addresses, which overlap, and keys (D191).
pub const REGION_STRIDE: (u64, u32) = (64, 0x100);

/// Base address of a receiver's memory for a region: it differs from the group's and from other receivers' (D27).
pub fn receiver_base(group: usize, receiver: usize, region: usize) -> u64 {
    0x7000_0000_0000 + ((group as u64) << 40) + ((receiver as u64) << 28) + ((region as u64) << 25)
}
