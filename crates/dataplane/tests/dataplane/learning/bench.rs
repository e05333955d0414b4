//! An edge with lists only, and packets for it.

use crate::common::group::*;
use crate::common::{Bench, next_hop};
use srdma_dataplane::{Command, Learning, NodeConfig, RouteAction, TableId};
use srdma_testkit::{checksums, multicast::Receiver};
use srdma_wire::Prefix;
use std::net::Ipv6Addr;

pub(crate) const DESIGNATED: u32 = 0xABCD;
pub(crate) const IDLE_NS: u64 = 1_000_000;

/// How the edge of these tests learns groups at 2001:db8:ff::/64.
pub(crate) fn learning() -> Learning {
    Learning {
        proxies: vec![Prefix::new(address("2001:db8:ff::"), 64).unwrap()],
        parent: address(HEADEND),
        parent_sid: None,
        policy: prompt(),
        max_groups: 2,
        max_receivers: 4,
        idle_ns: IDLE_NS,
    }
}

/// The edge, its parent behind port 0 and receivers behind port 1.
pub(crate) fn edge_that_learns(require_hmac: bool, learning: Learning) -> Bench {
    edge_that_learns_with(require_hmac, learning, |_| ())
}

pub(crate) fn edge_that_learns_with(
    require_hmac: bool,
    learning: Learning,
    change: impl FnOnce(&mut NodeConfig),
) -> Bench {
    let mut bench = edge_with(require_hmac, change);
    let (table, prefix) = (TableId(0), Prefix::host(address(HEADEND)));
    bench.apply(Command::AddRoute { table, prefix, action: RouteAction::Via(vec![next_hop(0)]) });
    bench.apply(Command::SetLearning(learning));
    bench
}

/// Receiver 2001:db8:2::`host`, queue pair 0x100 and that number.
pub(crate) fn of_host(host: u16) -> Receiver {
    receiver(host, 0x100 + u32::from(host), None)
}

pub(crate) fn members(hosts: &[u16]) -> Vec<Receiver> {
    hosts.iter().map(|host| of_host(*host)).collect()
}

/// A SEND of the source to a group.
pub(crate) fn send_to(proxy: Ipv6Addr, designated_qpn: u32, psn: u32) -> Vec<u8> {
    let mut packet = inner(0x04, 0, &[7; 64], false);
    packet[24..40].copy_from_slice(&proxy.octets());
    packet[53..56].copy_from_slice(&designated_qpn.to_be_bytes()[1..]);
    packet[57..60].copy_from_slice(&psn.to_be_bytes()[1..]);
    with_icrc(packet)
}

pub(crate) fn send(psn: u32) -> Vec<u8> {
    send_to(address(PROXY), DESIGNATED, psn)
}

fn with_icrc(mut packet: Vec<u8>) -> Vec<u8> {
    let end = packet.len() - 4;
    let icrc = checksums::icrc(&packet[..end]);
    packet[end..].copy_from_slice(&icrc);
    packet
}

/// A packet of the headend with a list for the edge.
pub(crate) fn listed_to(proxy: Ipv6Addr, inner: &[u8], receivers: &[Receiver]) -> Vec<u8> {
    let mut packet = with_tlvs(inner, &[&end_mt_tlv(EDGE, receivers)]);
    packet[48..64].copy_from_slice(&proxy.octets());
    packet
}

/// Data to these hosts; returns the responses sent upstream; checks the packets sent by port 1.
pub(crate) fn data(bench: &mut Bench, psn: u32, hosts: &[u16]) -> Vec<Upstream> {
    let sent = bench.send(0, &listed_to(address(PROXY), &send(psn), &members(hosts)));
    let (up, down): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(port, _)| *port == 0);
    assert_eq!(down, copies(&send(psn), &members(hosts)));
    up.iter().map(|(_, packet)| upstream(packet)).collect()
}

/// Data that is sent to no receiver and causes no response.
pub(crate) fn refused(bench: &mut Bench, psn: u32, hosts: &[u16]) {
    let packet = listed_to(address(PROXY), &send(psn), &members(hosts));
    assert_eq!(bench.send(0, &packet), []);
}

/// The response of a receiver: an ACK has the syndrome 0x1F, a NAK 0x60.
pub(crate) fn response_to(proxy: Ipv6Addr, responder: Ipv6Addr, syndrome: u8, psn: u32) -> Vec<u8> {
    let mut packet = response(0x11, &responder.to_string(), 0, &[syndrome, 0, 0, 1]);
    packet[24..40].copy_from_slice(&proxy.octets());
    packet[57..60].copy_from_slice(&psn.to_be_bytes()[1..]);
    with_icrc(packet)
}

/// A response of a host; returns the responses sent upstream.
pub(crate) fn answer(bench: &mut Bench, host: u16, syndrome: u8, psn: u32) -> Vec<Upstream> {
    let packet = response_to(address(PROXY), of_host(host).address, syndrome, psn);
    bench.send(1, &packet).iter().map(|(port, packet)| (assert_eq!(*port, 0), upstream(packet)).1).collect()
}

pub(crate) fn ack(bench: &mut Bench, host: u16, psn: u32) -> Vec<Upstream> {
    answer(bench, host, 0x1F, psn)
}

/// Syndrome and PSN of a response sent upstream.
pub(crate) type Upstream = (u8, u32);

/// Reads a response of the edge to its parent; it is whole, and in the edge's name (D12, D18).
pub(crate) fn upstream(packet: &[u8]) -> Upstream {
    let (_, upstream) = upstream_of(packet);
    upstream
}

/// The same, and of which group.
pub(crate) fn upstream_of(packet: &[u8]) -> (Ipv6Addr, Upstream) {
    let end = packet.len() - 4;
    assert_eq!(checksums::icrc(&packet[..end])[..], packet[end..]);
    let at = |start: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[start..start + 16]).unwrap());
    let number = |start: usize| u32::from_be_bytes([0, packet[start], packet[start + 1], packet[start + 2]]);
    assert_eq!((at(8), number(53), packet[48]), (address(EDGE), DESIGNATED, 0x11));
    (at(24), (packet[60], number(57)))
}
