//! Plain forwarding, and what a node without IPv4 routes does.

use super::*;
use crate::allocation::allocations;
use crate::common::{ipv6, port_mac};
use srdma_frame::Frame;
use std::collections::BTreeSet;

/// RFC 1812 sections 5.2.1, 5.3.1, 4.2.2.5: time to live and checksum, and not another octet.
#[test]
fn a_packet_is_forwarded_with_one_hop_less() {
    let captured = captured();
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", via(1));
    assert_eq!(bench.send(0, &captured[PACKET]), [(1, captured[FORWARDED].clone())]);
    let counters = bench.node.port_counters(PortId(0)).unwrap();
    assert_eq!(counters.received.frames, 1);
}

/// RFC 894: a short packet is padded to the least length of Ethernet.
#[test]
fn padding_is_cut_off() {
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", via(1));
    let short = packet("10.1.0.2", "10.2.0.2", 17, &[1, 2, 3, 4]);
    for octets in [24, 46, 300] {
        let mut padded = short.clone();
        padded.resize(octets, 0xEE);
        let sent = bench.send(0, &padded);
        assert_eq!(sent[0].1, changed(&short, &[(8, 63)]), "{octets}");
    }
}

/// D258: the longest prefix of IPv4; no route of IPv6 leads an IPv4 packet anywhere, and the other way round.
#[test]
fn tables_of_ipv4_and_ipv6_are_apart() {
    let mut bench = node();
    let to = |destination| packet("10.1.0.2", destination, 17, &[0; 8]);
    assert_eq!(bench.send(0, &to("10.9.0.1")).len(), 1, "an error, although ::/0 leads to port 1");
    assert_eq!(only_drop(&bench, 0), "no_route");
    let mut bench = node();
    route(&mut bench, "0.0.0.0/0", via(1));
    route(&mut bench, "10.2.0.0/16", via(2));
    route(&mut bench, "10.2.3.0/24", RouteAction::Blackhole);
    assert_eq!(bench.send(0, &to("10.9.0.1"))[0].0, 1);
    assert_eq!(bench.send(0, &to("10.2.0.1"))[0].0, 2);
    assert_eq!(bench.send(0, &to("10.2.3.1")), []);
    assert_eq!(only_drop(&bench, 0), "blackhole");
    // A neighbour has a route of its own, and the node's addresses lead to it.
    assert_eq!(bench.send(0, &to("192.0.2.3"))[0].0, 2);
    assert_eq!(bench.send(0, &to("10.1.0.1")), []);
    assert_eq!(bench.drops(0), [("blackhole", 1), ("local_delivery", 1)]);
    // To an IPv4-mapped address there is no IPv4.
    let mut alone = Bench::new(LOOPBACK, 2);
    alone.apply(Command::AddNeighbour { next_hop: hop(1), mac: MacAddress([2, 0, 0, 0, 1, 1]) });
    route(&mut alone, "0.0.0.0/0", via(1));
    alone.send(0, &ipv6("2001:db8::5", "::ffff:10.2.0.1", 0, 59, &[]));
    assert_eq!(only_drop(&alone, 0), "no_route");
}

/// As before there were IPv4 routes.
#[test]
fn a_node_without_ipv4_routes_takes_no_ipv4() {
    let mut bench = Bench::new(LOOPBACK, 2);
    bench.route("::/0", 1);
    assert_eq!(bench.send(0, &captured()[PACKET]), []);
    assert_eq!(only_drop(&bench, 0), "not_ipv6");
}

/// Commands that mix the versions are refused, and change nothing.
#[test]
fn next_hops_are_of_the_version_of_their_packets() {
    let mut bench = node();
    let before = bench.node.prefix_count();
    let other = |address: &str| NextHop { port: PortId(1), address: common::address(address) };
    let ipv6_hop = other("fe80::2");
    let refused = [
        Command::AddRoute { table: TENANT, prefix: net("10.3.0.0/16"), action: RouteAction::Via(vec![ipv6_hop]) },
        Command::AddRoute { table: TENANT, prefix: common::prefix("2001:db8:3::/48"), action: via(1) },
        Command::AddRoute { table: TENANT, prefix: net("10.3.0.0/16"), action: RouteAction::Placed(vec![]) },
        Command::AddSid {
            prefix: common::prefix("fd00::1"),
            behavior: SidBehavior::EndDx4 { next_hop: ipv6_hop, table: TENANT },
        },
        Command::AddSid {
            prefix: common::prefix("fd00::1"),
            behavior: SidBehavior::EndDx6 { next_hop: hop(1), table: TENANT },
        },
        Command::AddSid { prefix: common::prefix("fd00::1"), behavior: SidBehavior::EndX(Flavors::default(), hop(1)) },
        Command::AddSid { prefix: net("10.3.0.1/32"), behavior: SidBehavior::EndDt4(TENANT) },
    ];
    for command in refused {
        let text = format!("{command:?}");
        assert!(bench.node.apply(command).is_err(), "{text}");
    }
    assert_eq!(bench.node.prefix_count(), before);
}

/// Routes can be taken back, in every table.
#[test]
fn routes_are_removed() {
    let mut bench = with_sids(node());
    let before = bench.node.prefix_count();
    for table in [TableId(0), TENANT, TableId(9)] {
        route_in(&mut bench, table, "10.7.0.0/16", via(1));
        route_in(&mut bench, table, "10.8.0.0/16", segments(&[VIA], EncapsMode::Encaps));
    }
    assert_eq!(bench.node.prefix_count(), before + 6);
    for table in [TableId(0), TENANT, TableId(9)] {
        for prefix in ["10.7.0.0/16", "10.8.0.0/16"] {
            bench.apply(Command::RemoveRoute { table, prefix: net(prefix) });
            assert!(bench.node.apply(Command::RemoveRoute { table, prefix: net(prefix) }).is_err());
        }
    }
    assert_eq!(bench.node.prefix_count(), before);
    // A neighbour that is forgotten has no route any more.
    bench.apply(Command::RemoveNeighbour(hop(2)));
    assert_eq!(bench.node.prefix_count(), before - 1);
}

/// Equal paths: a flow has one, flows have all; fragments of a datagram stay together.
#[test]
fn flows_take_equal_paths() {
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", RouteAction::Via(vec![hop(1), hop(2)]));
    let flow = |port: u16, at: u16| {
        let mut packet = packet("10.1.0.2", "10.2.0.2", 17, &[0; 16]);
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        packet[6..8].copy_from_slice(&(0x2000 | at).to_be_bytes());
        if at == 0 {
            packet[6] = 0;
        }
        sealed(packet)
    };
    let mut seen = BTreeSet::new();
    for port in 0..64 {
        let first = bench.send(0, &flow(port, 0))[0].0;
        assert_eq!(bench.send(0, &flow(port, 0))[0].0, first);
        seen.insert(first);
    }
    assert_eq!(seen, BTreeSet::from([1, 2]));
    let of_fragments: BTreeSet<u16> = (1..64).map(|at| bench.send(0, &flow(at * 7, at))[0].0).collect();
    assert_eq!(of_fragments.len(), 1, "a fragment's data are no ports");
}

/// No packet needs memory of its own: forwarded, in and out of tunnels, in fragments, or answered by an error.
#[test]
fn ipv4_allocates_nothing() {
    let captured = captured();
    let mut bench = with_sids(node_with(|config| config.ports[1].link_mtu = 1280));
    route(&mut bench, "10.2.0.0/16", via(1));
    route(&mut bench, "10.3.0.0/16", segments(&[VIA, FAR_SID], EncapsMode::Reduced));
    let to = |destination, octets: usize| packet("10.1.0.2", destination, 17, &vec![0; octets]);
    let cases = [
        captured[PACKET].clone(),
        captured[DATAGRAM].clone(),
        to("10.3.0.1", 100),
        changed(&to("10.3.0.1", 2000), &[(6, 0)]),
        to("10.3.0.1", 2000),
        to("10.9.0.1", 100),
        to_sid(&captured[TUNNELLED[1]], END_DT4),
        to_sid(&captured[TUNNELLED[0]], END_DX4),
    ];
    for case in cases {
        // Errors are limited; something else is sent.
        let packets = [(0, case.clone()), (0, captured[PACKET].clone())];
        assert_eq!(allocations(&mut bench, &packets), 0, "{case:02x?}");
    }
}

/// A frame to another station, to all and to a group (RFC 1812 section 5.3.4).
#[test]
fn frames_to_others_are_not_forwarded() {
    for mac in [[2, 0, 0, 0, 0, 9], [0xFF; 6], [1, 0, 0x5E, 0, 0, 1]] {
        for payload in [0, 100] {
            let mut bench = node();
            route(&mut bench, "10.2.0.0/16", via(1));
            let packet = packet("10.1.0.2", "10.2.0.2", 17, &vec![0; payload]);
            let mut frame = [&mac[..], &[2, 0, 0, 0, 1, 0, 0x08, 0x00], &packet].concat();
            let of_frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
            assert_eq!(bench.receive(0, of_frame), []);
            assert_eq!(only_drop(&bench, 0), "not_for_this_port");
            frame[..6].copy_from_slice(&port_mac(0).0);
            let of_frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
            assert_eq!(bench.receive(0, of_frame).len(), 1);
        }
    }
}
