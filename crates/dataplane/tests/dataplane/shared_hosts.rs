//! Hosts that are attached to two leaves (D281, D290): the one that does not serve a receiver or source passes on what it
//! sends to the other.
//!
//! ```text
//!         headend                 port 0 of each leaf
//!        /       \
//!   leaf A ───── leaf B           their ports 2
//!        \       /
//!         host 1                  their ports 1; host 2 is at A, host 3 at B alone
//! ```

use crate::common::group::*;
use crate::common::{Bench, address, next_hop, prefix};
use srdma_dataplane::{Command, ConfigError, Lease, RouteAction, SharedHosts, SharedHostsError, SidBehavior, TableId};
use srdma_group::*;
use srdma_testkit::multicast;
use srdma_wire::{Instant, Prefix};
use std::net::Ipv6Addr;
use std::time::Duration;

const LEAF_A: &str = EDGE;
const LEAF_B: &str = "2001:db8:b::1";
const DT6_A: &str = "5f00:0:1:d6::";
const DT6_B: &str = "5f00:0:2:d6::";
const END_MT_B: &str = "5f00:0:2:e000::";
const SHARED: &str = "2001:db8:d0::/64";
const HOST: &str = "2001:db8:d0::1";
const PROXIES: &str = "2001:db8:ff::/64";
const ACK: [u8; 4] = [0x1F, 0, 0, 1];

fn shared(peer: &str, sid: &str) -> SharedHosts {
    SharedHosts { hosts: prefix(SHARED), proxies: prefix(PROXIES), peer: address(peer), sid: address(sid) }
}

fn at(address: &str) -> multicast::Receiver {
    multicast::Receiver { address: address.parse().unwrap(), qpn: 0x101, region: None, psn_offset: 0 }
}

/// A leaf without groups. The other one is its peer.
fn leaf(loopback: &str) -> Bench {
    leaf_with(loopback, None)
}

fn leaf_with(loopback: &str, cm_host: Option<&str>) -> Bench {
    let (own, other) = if loopback == LEAF_A { ((SID, DT6_A), DT6_B) } else { ((END_MT_B, DT6_B), DT6_A) };
    let peer = if loopback == LEAF_A { LEAF_B } else { LEAF_A };
    let mut bench = Bench::with(loopback, 3, |config| config.cm_host = cm_host.map(address));
    for (sid, behavior) in
        [(own.0, SidBehavior::EndMt { require_hmac: false }), (own.1, SidBehavior::EndDt6(TableId(0)))]
    {
        bench.apply(Command::AddSid { prefix: Prefix::host(address(sid)), behavior });
    }
    for (to, port) in [(HEADEND, 0), (SOURCE, 0), (SHARED, 1), ("2001:db8:2::/64", 1), (other, 2), (peer, 2)] {
        bench.route(to, port);
    }
    bench.apply(Command::SetSharedHosts(vec![shared(peer, other)]));
    let action = RouteAction::ToPeer;
    bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix(PROXIES), action });
    bench
}

/// The entry of A, which is node 1, or of B, node 2, where these receivers are.
fn entry_at(node: usize, at_a: &[&str], at_b: &[&str]) -> GroupEntry {
    let nodes =
        [("N6", HEADEND, "5f00:0:6:e000::", None), ("A", LEAF_A, SID, Some(0)), ("B", LEAF_B, END_MT_B, Some(0))];
    let receivers = at_a.iter().map(|one| member(&at(one), 1)).chain(at_b.iter().map(|one| member(&at(one), 2)));
    let record = record(&nodes, receivers.collect());
    Group::new(record).unwrap().at(NodeIndex(node)).unwrap()
}

const HOST_2: &str = "2001:db8:2::2";
const HOST_3: &str = "2001:db8:2::3";

/// B, which serves the shared host and host 3, and has sent the first packet to both.
fn serving() -> Bench {
    let mut bench = leaf(LEAF_B);
    bench.apply(Command::AddGroup(Box::new(entry_at(2, &[HOST_2], &[HOST, HOST_3]))));
    let receivers = [at(HOST), at(HOST_3)];
    let mut packet = with_tlvs(&inner(0x04, 0, &[7; 64], false), &[&end_mt_tlv(LEAF_B, &receivers)]);
    packet[24..40].copy_from_slice(&address(END_MT_B).octets());
    assert_eq!(bench.send(0, &packet).len(), 2, "{:?}", bench.drops(0));
    bench
}

/// A, which serves host 2 of the same group.
fn in_the_group() -> Bench {
    let mut bench = leaf(LEAF_A);
    bench.apply(Command::AddGroup(Box::new(entry_at(1, &[HOST_2], &[HOST, HOST_3]))));
    bench
}

fn response_of(host: &str) -> Vec<u8> {
    response(0x11, host, 100, &ACK)
}

/// A packet as a node passes it on: an outer IPv6 header around it, and one hop less; the flow label is left out.
fn passed_on(by: &str, to: &str, inner: &[u8]) -> Vec<u8> {
    let mut packet = vec![inner[0], inner[1] & 0xF0, 0, 0];
    packet.extend((inner.len() as u16).to_be_bytes());
    packet.extend([41, 64]);
    packet.extend(address(by).octets());
    packet.extend(address(to).octets());
    packet.extend(inner);
    packet[47] -= 1;
    packet
}

fn without_flow_label(mut packet: Vec<u8>) -> Vec<u8> {
    packet[1] &= 0xF0;
    (packet[2], packet[3]) = (0, 0);
    packet
}

#[track_caller]
fn passes_on(bench: &mut Bench, packet: &[u8]) -> Vec<u8> {
    let sent = bench.send(1, packet);
    let [(2, to_peer)] = sent.as_slice() else { panic!("{sent:?} {:?}", bench.drops(1)) };
    assert_eq!(without_flow_label(to_peer.clone()), passed_on(LEAF_A, DT6_B, packet));
    to_peer.clone()
}

fn drops(bench: &Bench) -> Vec<(u16, &'static str, u64)> {
    let of_port = |port| bench.drops(port).into_iter().map(move |(name, count)| (port, name, count));
    (0..3).flat_map(of_port).collect()
}

/// D281: by the other leaf, whether that has the group or not, a response does what it does by its own.
#[test]
fn a_response_by_either_leaf_counts() {
    let mut direct = serving();
    assert_eq!(direct.send(1, &response_of(HOST)), []);
    let expected = direct.send(1, &response_of(HOST_3));
    assert_eq!(expected.len(), 1, "the minimum of both goes up");
    for mut other in [leaf(LEAF_A), in_the_group()] {
        let to_peer = passes_on(&mut other, &response_of(HOST));
        let mut bench = serving();
        assert_eq!(bench.send(2, &to_peer), []);
        assert_eq!(bench.send(1, &response_of(HOST_3)), expected);
        assert_eq!((drops(&bench), drops(&other)), (vec![], vec![]));
        let counted = |bench: &Bench| bench.node.shared_hosts().map(|(_, to, from)| (to.frames, from.frames)).next();
        assert_eq!((counted(&other), counted(&bench)), (Some((1, 0)), Some((0, 1))));
    }
}

/// CNPs and NAKs too, and what is no response: the other leaf judges.
#[test]
fn everything_to_a_proxy_address_is_passed_on() {
    let mut bench = leaf(LEAF_A);
    let cnp = response(0x81, HOST, 0, &[0; 16]);
    let nak = response(0x11, HOST, 100, &[0x60, 0, 0, 0]);
    for packet in [cnp, nak, response(0x04, HOST, 100, &[1; 4])] {
        passes_on(&mut bench, &packet);
    }
    let mut damaged = response_of(HOST);
    *damaged.last_mut().unwrap() ^= 1;
    let to_peer = passes_on(&mut bench, &damaged);
    let mut other = serving();
    assert_eq!(other.send(2, &to_peer), []);
    assert_eq!(drops(&other), [(2, "bad_icrc", 1)]);
}

/// D281: neither leaf serves the host. What the peer has passed on does not go back to it.
#[test]
fn nothing_is_passed_on_twice() {
    let from_b = passed_on(LEAF_B, DT6_A, &response_of(HOST));
    for mut bench in [leaf(LEAF_A), in_the_group()] {
        assert_eq!(bench.send(2, &from_b), []);
        assert_eq!(drops(&bench), [(2, "not_served_here", 1)]);
    }
}

/// D14, MT-9-2, D281: only the peer speaks for shared hosts, and for no others.
#[test]
fn nobody_else_passes_on() {
    for (by, inner, reason) in [
        (HEADEND, response_of(HOST), "unexpected_responder"),
        (LEAF_B, response_of(HOST), "unexpected_responder"),
        (LEAF_A, response_of(HOST_3), "unexpected_responder"),
    ] {
        let mut bench = serving();
        assert_eq!(bench.send(2, &passed_on(by, DT6_B, &inner)), []);
        assert_eq!(drops(&bench), [(2, reason, 1)], "{by}");
        bench.send(1, &response_of(HOST_3));
        let up = bench.send(1, &response_of(HOST));
        assert_eq!(up.len(), 1, "the one of {by} had no effect");
    }
    // Nor does a node say what its peer's hosts have sent.
    let mut bench = serving();
    bench.apply(Command::SetSharedHosts(Vec::new()));
    assert_eq!(bench.send(2, &passed_on(LEAF_A, DT6_B, &response_of(HOST))), []);
    assert_eq!(drops(&bench), [(2, "unexpected_responder", 1)]);
}

/// BCP 38: a shared host is where the route to it leads. Other hosts are not passed on.
#[test]
fn only_what_comes_from_the_hosts_is_passed_on() {
    for port in [0, 2] {
        let mut bench = in_the_group();
        assert_eq!(bench.send(port, &response_of(HOST)), []);
        assert_eq!(drops(&bench), [(port, "unexpected_responder", 1)]);
        let mut without = leaf(LEAF_A);
        let sent = without.send(port, &response_of(HOST));
        assert!(sent.iter().all(|(_, packet)| packet[6] == 58), "an ICMPv6 error at most: {sent:?}");
        assert_eq!(drops(&without), [(port, "no_route", 1)]);
    }
    let mut bench = in_the_group();
    assert_eq!(bench.send(1, &response_of(HOST_3)), []);
    assert_eq!(drops(&bench), [(1, "unexpected_responder", 1)]);
    let mut without = leaf(LEAF_A);
    without.send(1, &response_of(HOST_3));
    assert_eq!(drops(&without), [(1, "no_route", 1)]);
    let mut last = response_of(HOST);
    last[7] = 1;
    let mut bench = in_the_group();
    assert!(bench.send(1, &last).iter().all(|(port, _)| *port != 2));
    assert_eq!(drops(&bench), [(1, "hop_limit_exceeded", 1)]);
    let mut unreachable = leaf(LEAF_A);
    unreachable.apply(Command::RemoveRoute { table: TableId(0), prefix: prefix(DT6_B) });
    assert_eq!(unreachable.send(1, &response_of(HOST)), []);
    assert_eq!(drops(&unreachable), [(1, "no_route", 1)]);
}

/// D122: a leaf whose lease is over serves no receiver, and the receivers may have moved.
#[test]
fn a_leaf_without_a_lease_passes_on() {
    let mut bench = leaf(LEAF_A);
    bench.apply(Command::PrepareGroup(Box::new(entry_at(1, &[HOST, HOST_2], &[HOST_3]))));
    bench.apply(Command::CommitGroup { id: GroupId(1), epoch: 1, is_first: true });
    bench.node.set_lease(Lease::Until(Instant::ZERO + Duration::from_secs(1)));
    assert_eq!(bench.send(1, &response_of(HOST)), []);
    assert_eq!(drops(&bench), [(1, "nothing_sent", 1)], "it serves the host");
    bench.now += Duration::from_secs(2);
    passes_on(&mut bench, &response_of(HOST));
    assert_eq!(bench.send(1, &response_of(HOST_2)), []);
    assert_eq!(bench.send(2, &passed_on(LEAF_B, DT6_A, &response_of(HOST))), []);
    assert_eq!(drops(&bench)[1..], [(1, "lease_over", 1), (2, "lease_over", 1)]);
}

/// A, the headend of a group whose source is the shared host, with host 3 at the other leaf.
fn headend() -> Bench {
    let mut bench = leaf(LEAF_A);
    bench.route(END_MT_B, 2);
    bench.apply(Command::AddGroup(Box::new(headend_entry())));
    bench
}

fn headend_entry() -> GroupEntry {
    let nodes = [("A", LEAF_A, SID, None), ("B", LEAF_B, END_MT_B, Some(0))];
    let mut record = record(&nodes, vec![member(&at(HOST_3), 1)]);
    record.source.address = address(HOST);
    Group::new(record).unwrap().at(NodeIndex(0)).unwrap()
}

/// A data packet of a host.
fn data_of(host: &str) -> Vec<u8> {
    let mut data = inner(0x04, 0, &[7; 64], false);
    data[8..24].copy_from_slice(&address(host).octets());
    data
}

/// D290: what the source sends to the other leaf, whether that has the group or not, goes down the tree like what it
/// sends to its headend.
#[test]
fn data_by_either_leaf_go_down_the_tree() {
    let data = data_of(HOST);
    let mut direct = headend();
    let expected = direct.send(1, &data);
    let [(2, down)] = expected.as_slice() else { panic!("{:?}", drops(&direct)) };
    assert_eq!(down[24..40], address(END_MT_B).octets());
    let edge = || {
        let mut bench = leaf(LEAF_B);
        bench.apply(Command::AddGroup(Box::new(entry_at(2, &[HOST_2], &[HOST_3]))));
        bench
    };
    for mut other in [leaf(LEAF_B), edge()] {
        let sent = other.send(1, &data);
        let [(2, to_peer)] = sent.as_slice() else { panic!("{sent:?} {:?}", drops(&other)) };
        assert_eq!(without_flow_label(to_peer.clone()), passed_on(LEAF_B, DT6_A, &data));
        let mut bench = headend();
        let [(2, sent)] = &bench.send(2, to_peer)[..] else { panic!("{:?}", drops(&bench)) };
        // Inside it has gone one hop more.
        let inner = sent.len() - data.len();
        assert_eq!((&sent[..inner], sent[inner + 7]), (&down[..inner], down[inner + 7] - 1));
        assert_eq!((&sent[inner + 8..], drops(&bench)), (&down[inner + 8..], vec![]));
        let counted = |bench: &Bench| bench.node.shared_hosts().map(|(_, to, from)| (to.frames, from.frames)).next();
        assert_eq!((counted(&other), counted(&bench)), (Some((1, 0)), Some((0, 1))));
    }
}

/// BCP 38, MT-9-2, D290: only the peer speaks for a source that it shares, and a group has one source.
#[test]
fn nobody_else_passes_on_data() {
    for (by, host, reason) in [
        (HEADEND, HOST, "wrong_incoming_port"),
        (LEAF_A, HOST, "wrong_incoming_port"),
        (LEAF_B, "2001:db8:d0::2", "not_served_here"),
        (LEAF_B, HOST_2, "unexpected_responder"),
    ] {
        let mut bench = headend();
        assert_eq!(bench.send(2, &passed_on(by, DT6_A, &data_of(host))), []);
        assert_eq!(drops(&bench), [(2, reason, 1)], "{by} {host}");
    }
    let mut bench = headend();
    bench.apply(Command::SetSharedHosts(Vec::new()));
    assert_eq!(bench.send(2, &passed_on(LEAF_B, DT6_A, &data_of(HOST))), []);
    assert_eq!(drops(&bench), [(2, "wrong_incoming_port", 1)]);
    // Nor is the source at a port that does not lead to it.
    let mut bench = headend();
    assert_eq!(bench.send(0, &data_of(HOST)), []);
    assert_eq!(drops(&bench), [(0, "wrong_incoming_port", 1)]);
}

/// D122, D290: a headend whose lease is over may have been replaced.
#[test]
fn a_headend_without_a_lease_passes_data_on() {
    let mut bench = leaf(LEAF_A);
    bench.route(END_MT_B, 2);
    bench.apply(Command::PrepareGroup(Box::new(headend_entry())));
    bench.apply(Command::CommitGroup { id: GroupId(1), epoch: 1, is_first: true });
    bench.node.set_lease(Lease::Until(Instant::ZERO + Duration::from_secs(1)));
    let sent = bench.send(1, &data_of(HOST));
    assert_eq!(sent[0].1[24..40], address(END_MT_B).octets(), "it serves the source");
    bench.now += Duration::from_secs(2);
    passes_on(&mut bench, &data_of(HOST));
    assert_eq!(bench.send(2, &passed_on(LEAF_B, DT6_A, &data_of(HOST))), []);
    assert_eq!(drops(&bench), [(2, "lease_over", 1)]);
}

/// D251: connection management goes to its host, with and without a group.
#[test]
fn connection_management_goes_to_its_host() {
    let mut message = response(0x64, HOST, 0, &[0; 264]);
    message[53..56].copy_from_slice(&[0, 0, 1]);
    let group = Command::AddGroup(Box::new(entry_at(1, &[HOST_2], &[HOST])));
    let mut with_group = leaf_with(LEAF_A, Some(HEADEND));
    with_group.apply(group.clone());
    for mut bench in [leaf_with(LEAF_A, Some(HEADEND)), with_group] {
        let [(0, sent)] = &bench.send(1, &message)[..] else { panic!("{:?}", drops(&bench)) };
        assert_eq!((sent[7], &sent[8..]), (message[7] - 1, &message[8..]));
    }
    // Without such a host it is a packet like others.
    passes_on(&mut leaf(LEAF_A), &message);
    let mut without = leaf(LEAF_A);
    without.apply(group);
    passes_on(&mut without, &message);
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let right = shared(LEAF_B, DT6_B);
    let ipv4 = Prefix::of_ipv4([192, 0, 2, 0].into(), 24).unwrap();
    let one = Prefix::host(address(PROXY));
    let inside = SharedHosts { hosts: prefix("2001:db8:d0::/80"), ..right };
    for (all, error) in [
        (vec![SharedHosts { hosts: ipv4, ..right }], SharedHostsError::Ipv4(ipv4)),
        (vec![SharedHosts { proxies: ipv4, ..right }], SharedHostsError::Ipv4(ipv4)),
        (vec![SharedHosts { proxies: one, ..right }], SharedHostsError::OneProxy(one)),
        (vec![SharedHosts { peer: address(LEAF_A), ..right }], SharedHostsError::OwnPeer(address(LEAF_A))),
        (vec![right, inside], SharedHostsError::Overlap(right.hosts, inside.hosts)),
    ] {
        let mut bench = leaf(LEAF_A);
        assert_eq!(bench.node.apply(Command::SetSharedHosts(all)), Err(ConfigError::SharedHosts(error)));
        passes_on(&mut bench, &response_of(HOST));
    }
    let mut bench = leaf(LEAF_A);
    for (table, prefix) in [(TableId(1), prefix(PROXIES)), (TableId(0), ipv4)] {
        let command = Command::AddRoute { table, prefix, action: RouteAction::ToPeer };
        assert_eq!(bench.node.apply(command), Err(ConfigError::ToPeer(prefix)));
    }
    let action = RouteAction::Via(vec![next_hop(0)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix: prefix(PROXIES), action });
    let forwarded: Vec<Ipv6Addr> = bench
        .send(1, &response_of(HOST))
        .iter()
        .map(|(_, packet)| <[u8; 16]>::try_from(&packet[24..40]).unwrap().into())
        .collect();
    assert_eq!(forwarded, [address(PROXY)], "another route takes it");
}
