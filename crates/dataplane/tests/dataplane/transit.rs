//! Transit nodes: replication by Replication SID and by IPv6 multicast, and packets that pass unprocessed (MT-3-2,
//! MT-5.2-2, D3).

use crate::common::group::{self, HEADEND, address, encapsulated, inner, member, receiver, request, response};
use crate::common::{Bench, next_hop};
use srdma_dataplane::{Command, MulticastRoute, NodeConfig, RouteAction, SidBehavior, TableId};
use srdma_frame::{Element, PortId};
use srdma_group::*;
use srdma_wire::{Prefix, Psn};

const TRANSIT: &str = "2001:db8:4::1";
const TRANSIT_SID: &str = "5f00:0:4:e000::";
const MULTICAST: &str = "ff3e::100";

/// N6 above N4, which has two edges at its ports 1 and 2; the upper node is at port 0.
fn record() -> Record {
    let nodes = [
        ("N6", HEADEND, "5f00:0:6:e000::", None),
        ("N4", TRANSIT, TRANSIT_SID, Some(0)),
        ("N1", "2001:db8:a::1", "5f00:0:1:e000::", Some(1)),
        ("N2", "2001:db8:b::1", "5f00:0:2:e000::", Some(1)),
    ];
    let receivers = vec![member(&receiver(1, 0x101, None), 2), member(&receiver(2, 0x102, None), 3)];
    group::record(&nodes, receivers)
}

fn entry(change: impl FnOnce(&mut Record)) -> Command {
    let mut record = record();
    change(&mut record);
    Command::AddGroup(Box::new(Group::new(record).unwrap().at(NodeIndex(1)).unwrap()))
}

fn transit() -> Bench {
    transit_with(|_| ())
}

fn transit_with(change: impl FnOnce(&mut NodeConfig)) -> Bench {
    let mut bench = Bench::with(TRANSIT, 3, change);
    let routes = [("2001:db8:6::", 0), ("5f00:0:1::", 1), ("2001:db8:a::", 1), ("5f00:0:2::", 2), ("2001:db8:b::", 2)];
    for (prefix, port) in routes {
        let prefix = Prefix::new(address(prefix), 48).unwrap();
        let action = RouteAction::Via(vec![next_hop(port)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    }
    let prefix = Prefix::host(address(TRANSIT_SID));
    bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndReplicate(GroupId(1)) });
    bench.apply(entry(|_| ()));
    bench
}

fn multicast_route(outgoing: &[u16]) -> Command {
    Command::AddMulticastRoute(MulticastRoute {
        source: address(HEADEND),
        group: address(MULTICAST),
        incoming: Some(PortId(0)),
        outgoing: outgoing.iter().map(|port| PortId(*port)).collect(),
        end_mt: false,
        require_hmac: false,
    })
}

/// A group's data packet of this PSN.
fn data(psn: u8) -> Vec<u8> {
    let mut packet = inner(0x04, 0, &[9; 200], false);
    packet[59] = psn;
    encapsulated(&packet)
}

fn to(mut packet: Vec<u8>, destination: &str) -> Vec<u8> {
    packet[24..40].copy_from_slice(&address(destination).octets());
    packet
}

fn one_hop_on(mut packet: Vec<u8>) -> Vec<u8> {
    packet[7] -= 1;
    packet
}

fn ack(edge: &str, psn: u8) -> Vec<u8> {
    response(0x11, edge, psn, &[0x1F, 0, 0, 1])
}

fn highest(bench: &Bench) -> Option<u32> {
    bench.node.acknowledgements(GroupId(1)).unwrap().highest_psn().map(Psn::get)
}

/// RFC 9524 section 2.2, MT-3-2, D3: one hop less, the child's SID as destination, and not another octet changed.
#[test]
fn replication_changes_the_destination_alone() {
    let mut bench = transit();
    let sent = bench.send(0, &to(data(100), TRANSIT_SID));
    let expected = [(1, "5f00:0:1:e000::"), (2, "5f00:0:2:e000::")];
    assert_eq!(sent, expected.map(|(port, sid)| (port, to(one_hop_on(data(100)), sid))));
    assert_eq!(highest(&bench), Some(100));
}

/// MT-5.2-2, D3: by the multicast forwarding table the destination stays as well.
#[test]
fn multicast_changes_nothing_but_the_hop_limit() {
    let mut bench = transit();
    bench.apply(multicast_route(&[1, 2]));
    let packet = to(data(100), MULTICAST);
    let sent = bench.send(0, &packet);
    assert_eq!(sent, [1, 2].map(|port| (port, one_hop_on(packet.clone()))));
    assert_eq!(highest(&bench), Some(100), "the group's data pass this node");
    // From below, from another source, to another group.
    assert_eq!(bench.send(1, &packet), []);
    assert_eq!(bench.drops(1), [("wrong_incoming_port", 1)]);
    assert_eq!(bench.send(0, &to(data(100), "ff3e::101")), []);
    // A route without branches drops with its own reason.
    bench.apply(multicast_route(&[]));
    assert_eq!(bench.send(0, &packet), []);
    assert_eq!(bench.drops(0), [("blackhole", 1), ("no_multicast_route", 1)]);
}

/// D3: a node that replicates hands its branches over to a multicast group, which it finds by its own loopback; the copy
/// keeps the headend's.
#[test]
fn replication_hands_over_to_multicast() {
    let mut bench = transit();
    bench.apply(Command::AddMulticastRoute(MulticastRoute {
        source: address(TRANSIT),
        group: address(MULTICAST),
        incoming: None,
        outgoing: vec![PortId(1), PortId(2)],
        end_mt: false,
        require_hmac: false,
    }));
    let mut entry = Group::new(record()).unwrap().at(NodeIndex(1)).unwrap();
    entry.downstream = vec![Downstream::Multicast(address(MULTICAST))];
    bench.apply(Command::AddGroup(Box::new(entry.clone())));
    let sent = bench.send(0, &to(data(100), TRANSIT_SID));
    assert_eq!(sent, [1, 2].map(|port| (port, to(one_hop_on(data(100)), MULTICAST))));
    // Without its route, and without branches at all, there is nowhere to go.
    entry.downstream = vec![Downstream::Multicast(address("ff3e::101"))];
    bench.apply(Command::AddGroup(Box::new(entry.clone())));
    assert_eq!(bench.send(0, &to(data(101), TRANSIT_SID)), []);
    entry.downstream.clear();
    bench.apply(Command::AddGroup(Box::new(entry)));
    assert_eq!(bench.send(0, &to(data(101), TRANSIT_SID)), []);
    assert_eq!(bench.drops(0), [("no_route", 2)]);
}

/// RFC 9524 section 2.2: a hop limit that is exhausted, or below the threshold, ends replication, unreported; so does a
/// SID without Replication state.
#[test]
fn replication_ends_quietly() {
    let mut bench = transit();
    for hop_limit in [0, 1] {
        let mut packet = to(data(100), TRANSIT_SID);
        packet[7] = hop_limit;
        assert_eq!(bench.send(0, &packet), []);
    }
    assert_eq!(highest(&bench), None, "what was dropped has not gone down");
    let with_hop_limit = |hop_limit| {
        let mut packet = to(data(100), TRANSIT_SID);
        packet[7] = hop_limit;
        packet
    };
    let mut far = transit_with(|config| config.replication_hop_limit = 30);
    assert_eq!(far.send(0, &with_hop_limit(29)), []);
    assert_eq!(far.send(0, &with_hop_limit(30)).len(), 2);
    bench.apply(Command::RemoveGroup(GroupId(1)));
    assert_eq!(bench.send(0, &to(data(100), TRANSIT_SID)), []);
    assert_eq!(bench.drops(0), [("hop_limit_exceeded", 2), ("unknown_group", 1)]);
    // The group is added again, and its SID finds it; an edge does not replicate.
    bench.apply(entry(|_| ()));
    assert_eq!(bench.send(0, &to(data(100), TRANSIT_SID)).len(), 2);
    let as_edge = Group::new(record()).unwrap().at(NodeIndex(2)).unwrap();
    bench.apply(Command::AddGroup(Box::new(as_edge)));
    assert_eq!(bench.send(0, &to(data(100), TRANSIT_SID)), []);
}

/// Rule R2 is about the group's data: packets of other kinds, queue pairs and groups are replicated as well, but unseen.
#[test]
fn other_packets_are_replicated_unchanged() {
    let mut bench = transit();
    let other_group = {
        let mut packet = data(200);
        packet[64 + 24..64 + 40].copy_from_slice(&address("2001:db8:ff::200").octets());
        packet
    };
    let other_qpn = {
        let mut packet = data(200);
        packet[64 + 55] ^= 1;
        packet
    };
    let read = encapsulated(&request(0x0C, 0, &[0; 16], false));
    let probe = encapsulated(&[&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[1; 32]].concat());
    let no_ipv6 = {
        let mut packet = data(200);
        packet[40] = 59;
        packet
    };
    for packet in [other_group, other_qpn, read, probe, no_ipv6] {
        assert_eq!(bench.send(0, &to(packet, TRANSIT_SID)).len(), 2);
    }
    assert_eq!(highest(&bench), None);
    assert_eq!(bench.drops(0), []);
}

/// D14: a child is known by its ports, all those of an ECMP set.
#[test]
fn responses_are_accepted_by_any_path_to_the_child() {
    for port in [1, 2] {
        let mut bench = transit();
        let prefix = Prefix::new(address("2001:db8:a::"), 48).unwrap();
        let action = RouteAction::Via(vec![next_hop(1), next_hop(2)]);
        bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
        bench.send(0, &to(data(100), TRANSIT_SID));
        assert_eq!(bench.send(2, &ack("2001:db8:b::1", 100)), []);
        assert_eq!(bench.send(port, &ack("2001:db8:a::1", 100)).len(), 1);
        assert_eq!(bench.send(0, &ack("2001:db8:a::1", 100)), []);
        assert_eq!(bench.drops(0), [("unexpected_responder", 1)]);
    }
}

/// Copies of many groups share the paths of an ECMP set, and those of one group keep theirs.
#[test]
fn groups_are_spread_over_equal_paths() {
    let mut bench = transit();
    let prefix = Prefix::new(address("5f00:0:1::"), 48).unwrap();
    let action = RouteAction::Via(vec![next_hop(1), next_hop(2)]);
    bench.apply(Command::AddRoute { table: TableId(0), prefix, action });
    let mut shares = [0; 3];
    for number in 0..64u16 {
        let proxy = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 1, number);
        bench.apply(entry(|record| record.proxy = proxy));
        let path = |bench: &mut Bench| bench.send(0, &to(data(100), TRANSIT_SID))[0].0;
        let port = path(&mut bench);
        assert_eq!(path(&mut bench), port);
        shares[usize::from(port)] += 1;
    }
    assert!(shares[1] > 16 && shares[2] > 16, "{shares:?}");
}

/// The branches' expected PSNs outlive a new record (D17); another initial PSN resets them (D28).
#[test]
fn state_outlives_a_record_while_it_is_true() {
    let acknowledged = || {
        let mut bench = transit();
        bench.send(0, &to(data(100), TRANSIT_SID));
        bench.send(1, &ack("2001:db8:a::1", 100));
        bench
    };
    let minimum = |bench: &Bench| {
        let acks = bench.node.acknowledgements(GroupId(1)).unwrap();
        (acks.minimum_psn().map(Psn::get), acks.unknown_branches())
    };
    let sent = |bench: &mut Bench| -> Vec<u8> {
        let sent = bench.send(2, &ack("2001:db8:b::1", 100));
        sent.iter().map(|(_, packet)| packet[59]).collect()
    };
    let mut same = acknowledged();
    same.apply(entry(|record| record.epoch = 2));
    assert_eq!(sent(&mut same), [100]);
    assert_eq!(same.node.group_counters(GroupId(1)).unwrap().acks_received, 2);

    // Branches that stay keep their expected PSNs, and one that is removed holds no other back: the pending response is
    // sent (R7).
    let mut without_n2 = acknowledged();
    without_n2.apply(entry(|record| {
        record.epoch = 2;
        record.receivers.truncate(1);
        record.tree = Tree::new(record.tree.nodes()[..3].to_vec()).unwrap();
    }));
    assert_eq!(minimum(&without_n2), (Some(101), 0));
    let now = without_n2.node.next_deadline().unwrap();
    without_n2.node.tick(now, &mut without_n2.pool);
    let sent = without_n2.drain();
    assert_eq!(sent.iter().map(|(_, packet)| packet[59]).collect::<Vec<_>>(), [100]);

    let mut anew = acknowledged();
    anew.apply(entry(|record| record.initial_psn = Psn::new(7000)));
    assert_eq!(minimum(&anew), (Some(7000), 0));
}

/// D2: a Proxy Address is the group's while the group has it.
#[test]
fn a_proxy_address_leaves_with_its_record() {
    let mut bench = transit();
    bench.apply(entry(|record| record.proxy = address("2001:db8:ff::200")));
    bench.send(1, &ack("2001:db8:a::1", 100));
    assert_eq!(bench.drops(1), [("no_route", 1)]);
    let mut own = Group::new(record()).unwrap().at(NodeIndex(1)).unwrap();
    own.proxy = address(TRANSIT);
    let error = bench.node.apply(Command::AddGroup(Box::new(own))).unwrap_err();
    assert_eq!(error.to_string(), "Proxy Address 2001:db8:4::1 of group 1 is an address of this node");
}
