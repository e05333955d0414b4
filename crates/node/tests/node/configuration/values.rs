//! Values of the example and of the defaults.

use super::documentation::example;
use super::parse;
use srdma_dataplane::{
    Command, CrossConnect, EncapsMode, Flavors, IcrcMode, NextCsid, NextHop, PolicyId, RouteAction, SegmentList,
    SharedHosts, SidBehavior, SrPolicy, TableId,
};
use srdma_frame::PortId;
use srdma_group::{
    Branch, CnpMode, Downstream, Dscp, GroupEntry, GroupId, Join, ListMode, NodeRole, OnFailure, Parent, Policy,
    ReceiverRegion, RepairEntry, RepairMode, RepairPolicy, Rules, Source, SourceRegion,
};
use srdma_wire::{MacAddress, Prefix, Psn, Qpn};
use std::net::Ipv6Addr;
use std::time::Duration;

fn address(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

fn prefix(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').expect("a length");
    Prefix::new(address.parse().expect("an address"), len.parse().expect("a length")).expect("at most 128 bits")
}

fn commands() -> Vec<Command> {
    parse(example()).expect("the example is right").spec.commands()
}

/// The group entry of a group.
fn entry(id: u32) -> GroupEntry {
    let entries = commands().into_iter().filter_map(|command| match command {
        Command::AddGroup(entry) => Some(*entry),
        _ => None,
    });
    entries.into_iter().find(|entry| entry.id == GroupId(id)).expect("the example has the group")
}

#[test]
fn defaults_are_those_of_the_document() {
    let text = "[node]\nloopback = '2001:db8::1'\n[[port]]\nname = 'p'\nmac = '02:00:00:00:00:0a'";
    let configuration = parse(text).expect("right");
    let node = &configuration.spec.node;
    assert_eq!((node.restarted, node.icrc, node.verify_icrc), (false, IcrcMode::Incremental, false));
    assert_eq!((node.cm_host, node.cm_host_ipv4), (None, None));
    assert_eq!((node.icmp_errors_per_second, node.tlv_types.end_mt, node.tlv_types.mr), (100, 124, 125));
    let port = &node.ports[0];
    assert_eq!((port.link_mtu, port.queue_limit_octets, port.addresses.len()), (1500, 1 << 20, 0));
    assert_eq!(port.mac, MacAddress([2, 0, 0, 0, 0, 10]));
    assert_eq!((configuration.port("p"), configuration.port("q")), (Some(PortId(0)), None));
    assert!(configuration.spec.commands().is_empty());
}

#[test]
fn node_and_ports() {
    let node = parse(example()).expect("the example is right").spec.node;
    assert_eq!(node.loopback, address("2001:db8:ff:6::1"));
    assert_eq!((node.verify_icrc, node.icmp_errors_per_second, node.replication_hop_limit), (true, 50, 8));
    assert_eq!(node.cm_host, Some(address("2001:db8:ff:c::1")));
    assert_eq!(node.cm_host_ipv4, Some(address("::ffff:10.0.0.1")));
    let names: Vec<_> = node.ports.iter().map(|port| (port.name.as_str(), port.link_mtu)).collect();
    assert_eq!(names, [("s1", 4608), ("n4", 4608), ("n5", 4608), ("core", 1500), ("circuit", 1500), ("storage", 1500)]);
    assert_eq!(node.ports[0].addresses, [address("2001:db8:aa::6")]);
    assert_eq!(node.ports[1].queue_limit_octets, 4 << 20);
}

#[test]
fn routes_and_sids() {
    let commands = commands();
    let route = |table, text: &str| {
        let mut actions = commands.iter().filter_map(|command| match command {
            Command::AddRoute { table: of, prefix: found, action } => {
                (*of == TableId(table) && *found == prefix(text)).then_some(action)
            }
            _ => None,
        });
        actions.next().expect("the example has the route")
    };
    let n4 = NextHop { port: PortId(1), address: address("fe80::4") };
    let n5 = NextHop { port: PortId(2), address: address("fe80::5") };
    let core = NextHop { port: PortId(3), address: address("fe80::1") };
    let ipv4_core = NextHop { port: PortId(3), address: address("::ffff:192.0.2.9") };
    assert_eq!(*route(100, "::ffff:0.0.0.0/96"), RouteAction::Via(vec![ipv4_core]));
    let segments = vec![address("5f00:0:500:300::")];
    assert_eq!(
        *route(0, "::ffff:198.51.100.0/120"),
        RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None }
    );
    assert_eq!(*route(0, "2001:db8:ff::/48"), RouteAction::Via(vec![n4, n5]));
    assert_eq!(*route(100, "::/0"), RouteAction::Via(vec![core]));
    assert_eq!(*route(0, "2001:db8::/32"), RouteAction::Blackhole);
    let segments = vec![address("5f00:0:500:300::"), address("2001:db8:dd::d6")];
    assert_eq!(
        *route(0, "2001:db8:dd::/48"),
        RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: Some(42) }
    );
    let policy = PolicyId(1);
    assert_eq!(*route(0, "2001:db8:de::/48"), RouteAction::Policy { policy, mode: EncapsMode::Encaps });
    let lists = [(vec!["5f00:0:500:300::"], 3), (vec!["5f00:0:400::", "5f00:0:300::"], 1)];
    let lists =
        lists.map(|(segments, weight)| SegmentList { segments: segments.into_iter().map(address).collect(), weight });
    let policies = commands.iter().filter_map(|command| match command {
        Command::AddPolicy { id, policy } => Some((*id, (**policy).clone())),
        _ => None,
    });
    let cross_connects = commands.iter().filter_map(|command| match command {
        Command::SetCrossConnect { port, cross_connect } => Some((*port, *cross_connect)),
        _ => None,
    });
    let expected = [(PortId(4), CrossConnect { policy, mode: EncapsMode::Reduced })];
    assert_eq!(cross_connects.collect::<Vec<_>>(), expected);
    let expected = SrPolicy { lists: lists.to_vec(), hmac_key_id: Some(42) };
    assert_eq!(policies.collect::<Vec<_>>(), [(policy, expected)]);

    let shared = commands.iter().find_map(|command| match command {
        Command::SetSharedHosts(all) => Some(all.as_slice()),
        _ => None,
    });
    let expected = SharedHosts {
        hosts: prefix("2001:db8:d0::/64"),
        proxies: prefix("2001:db8:cc::/48"),
        peer: address("2001:db8:ff:5::1"),
        sid: address("2001:db8:ff:5::d6"),
    };
    assert_eq!(shared, Some(&[expected][..]));
    assert_eq!(*route(0, "2001:db8:cc::/48"), RouteAction::ToPeer);

    let sids: Vec<_> = commands
        .iter()
        .filter_map(|command| match command {
            Command::AddSid { prefix, behavior } => Some((prefix.to_string(), *behavior)),
            _ => None,
        })
        .collect();
    let end = Flavors { psp: true, usp: false, usd: true, next_csid: None };
    let expected = [
        ("2001:db8:ff:6::a/128", SidBehavior::EndX(Flavors::default(), n5)),
        ("2001:db8:ff:6::c/128", SidBehavior::EndC),
        ("2001:db8:ff:6::d/128", SidBehavior::EndE(TableId(100))),
        ("2001:db8:ff:6::e/128", SidBehavior::End(end)),
        ("2001:db8:ff:6::b6/128", SidBehavior::EndB6Encaps { policy, mode: EncapsMode::Encaps }),
        ("2001:db8:ff:6::d2/128", SidBehavior::EndDx2(PortId(4))),
        ("2001:db8:ff:6::d4/128", SidBehavior::EndDt4(TableId(100))),
        ("2001:db8:ff:6::d6/128", SidBehavior::EndDt6(TableId(100))),
        ("2001:db8:ff:6::d8/128", SidBehavior::EndDx6 { next_hop: core, table: TableId(100) }),
        ("2001:db8:ff:6::d9/128", SidBehavior::EndDx4 { next_hop: ipv4_core, table: TableId(100) }),
        ("2001:db8:ff:6::e2/128", SidBehavior::EndMt { require_hmac: true }),
        ("2001:db8:ff:6::f1/128", SidBehavior::EndReplicate(GroupId(1))),
        ("2001:db8:ff:6::d46/128", SidBehavior::EndDt46(TableId(0))),
        ("5f00:0:600::/48", SidBehavior::End(Flavors::MICRO)),
        ("5f00:0:e004::/48", SidBehavior::EndX(Flavors::MICRO, n4)),
    ];
    assert_eq!(sids, expected.map(|(sid, behavior)| (sid.to_owned(), behavior)));
}

/// Locator-node and function of 16 bits each: `block:node:function::/64` (RFC 9800).
#[test]
fn next_csid_with_other_lengths() {
    let text = "[node]\nloopback = '2001:db8::1'\n[[sid]]\nsid = 'fcbb:bb00:a:b::/64'\n\
                behavior = 'End'\nflavors = ['NEXT-CSID', 'USP']\nblock_bits = 32\ncsid_bits = 32";
    let commands = parse(text).expect("right").spec.commands();
    let next_csid = Some(NextCsid { block_bits: 32, csid_bits: 32 });
    let flavors = Flavors { psp: false, usp: true, usd: false, next_csid };
    let [Command::AddSid { behavior, .. }] = &commands[..] else {
        panic!("one SID");
    };
    assert_eq!(*behavior, SidBehavior::End(flavors));
}

/// The headend's entry (D1, D7, D13, D27).
#[test]
fn a_headend() {
    let entry = entry(1);
    let source = Source { address: address("2001:db8:aa::1"), qpn: Qpn::new(0x100).expect("24 bits") };
    assert_eq!((entry.epoch, entry.role, entry.parent), (3, NodeRole::Transit, Parent::Source(source)));
    assert_eq!((entry.proxy, entry.sid), (address("2001:db8:cc::1"), address("2001:db8:ff:6::f1")));
    assert_eq!((entry.designated_qpn.get(), entry.initial_psn), (0xD0_0000, Psn::new(0xFF_FFF0)));
    assert_eq!(entry.branches.len(), 3);
    let joined = Some(Join { psn: Psn::new(0x1000), msn: 16 });
    assert_eq!(entry.renewed, 0);
    assert_eq!(entry.branches[1], Branch { renewed: 2, ..Branch::new(address("2001:db8:ff:5::1")) });
    assert_eq!(entry.branches[2], Branch { joined, ..Branch::new(address("2001:db8:ff:7::1")) });
    let multicast = Downstream::Multicast(address("ff3e:20:2001:db8::6"));
    assert_eq!(entry.downstream, [Downstream::Sid(address("2001:db8:ff:4::f")), multicast]);
    assert_eq!(entry.region, Some(SourceRegion { base: 0x7F00_0000_0000, length: 64 << 20, rkey: 0x1234 }));
    let headend = entry.headend.expect("a headend");
    assert_eq!((headend.source, headend.with_regions, headend.link_mtu), (source, true, 4608));
    assert_eq!(headend.lists.iter().map(|list| list.receivers.len()).collect::<Vec<_>>(), [2, 1]);
    let receiver = &headend.lists[1].receivers[0];
    assert_eq!((headend.lists[1].edge, receiver.address), (address("2001:db8:ff:7::1"), address("2001:db8:bb::3")));
    assert_eq!(receiver.region, Some(ReceiverRegion { base: 0x7F13_0000_0000, rkey: 0xA3 }));
    assert_eq!(receiver.joined, joined);
    let policy = Policy {
        lists: ListMode::Tlv,
        hmac_key_id: Some(42),
        cnp_window_most: Duration::from_millis(1),
        cnp_limit: 32,
        ack_dscp: Dscp::try_from(26).ok(),
        cnp_dscp: Dscp::try_from(40).expect("a codepoint"),
        on_failure: OnFailure::Evict,
        t_stall: Duration::from_millis(200),
        t_not_ready: Some(Duration::from_secs(30)),
        stall_sends: 4,
        min_receivers: 2,
        ..Policy::default()
    };
    assert_eq!(entry.policy, policy);
}

#[test]
fn an_edge_and_a_transit_node() {
    let edge = entry(2);
    assert_eq!(edge.role, NodeRole::Edge);
    assert_eq!(edge.parent, Parent::Node { loopback: address("2001:db8:ff:5::1"), sid: None });
    assert_eq!(edge.branches, [Branch::new(address("2001:db8:aa::1"))]);
    assert_eq!((edge.receivers.len(), edge.downstream.len(), edge.headend), (1, 0, None));
    let region = SourceRegion { base: 0x7F00_0000_0000, length: 64 << 20, rkey: 0x1235 };
    assert_eq!(edge.region, Some(region));
    assert_eq!(edge.more_regions, [SourceRegion { base: 0x7F20_0000_0000, length: 4096, rkey: 0x1236 }]);
    let regions =
        [(0x7F14_0000_0000, 0xA4), (0x7F15_0000_0000, 0xA5)].map(|(base, rkey)| ReceiverRegion { base, rkey });
    let receiver = &edge.receivers[0];
    assert_eq!((receiver.region, &receiver.more_regions[..]), (Some(regions[0]), &regions[1..]));
    let transit = entry(3);
    let sid = Some(address("5f00:0:900::"));
    assert_eq!(transit.parent, Parent::Node { loopback: address("2001:db8:ff:9::1"), sid });
    assert_eq!(transit.sid, address("ff3e:20:2001:db8::9"));
    let repair = RepairPolicy {
        mode: RepairMode::Tree,
        window_octets: 1 << 20,
        ack_timeout: Duration::from_millis(16),
        round_trip: Duration::from_micros(50),
    };
    assert_eq!(transit.policy, Policy { repair, ..Policy::default() });
    let repair = RepairEntry { window_packets: 512, parent_repairs: true, children: vec![true], levels: 3 };
    assert_eq!((transit.repair, edge.repair), (Some(repair), None));
}

/// D150: who repairs follows from role and policy; the defaults are for packets of 4,096 octets and two levels.
#[test]
fn nodes_repair_by_role_and_policy() {
    let repairs = |mode: &str| {
        let text = example().replace("repair = { window_packets = 512, levels = 3 }", "");
        let text = text.replace("repair = \"tree\"", &format!("repair = \"{mode}\""));
        let edge = format!("parent = {{ loopback = \"2001:db8:ff:5::1\" }}\npolicy = {{ repair = \"{mode}\" }}\n");
        let text = text.replacen("parent = { loopback = \"2001:db8:ff:5::1\" }\n", &edge, 1);
        let groups = parse(&text).expect("right").spec.entries.groups;
        [2, 3].map(|id| groups[&id].repair.clone())
    };
    let edge = RepairEntry { window_packets: 128, parent_repairs: false, children: Vec::new(), levels: 1 };
    let transit = RepairEntry { window_packets: 256, parent_repairs: true, children: vec![true], levels: 2 };
    assert_eq!(repairs("off"), [None, None]);
    assert_eq!(repairs("edge"), [Some(edge.clone()), None]);
    assert_eq!(repairs("tree"), [Some(edge), Some(transit)]);
}

#[test]
fn a_policy_without_defaults() {
    let text = example().replace("rules = \"default\"", "rules = \"literal\"").replace("\"20us\"", "\"1.5ms\"");
    let text = text
        .replace("\"trailing\"", "\"leading\"")
        .replace("\"50us\"", "\"2s\"")
        .replace("\"1ms\"", "\"3s\"")
        .replace("retransmit = false", "retransmit = true");
    let commands = parse(&text).expect("right").spec.commands();
    let policies: Vec<Policy> = commands
        .into_iter()
        .filter_map(|command| match command {
            Command::AddGroup(entry) => Some(entry.policy),
            _ => None,
        })
        .collect();
    let expected = Policy {
        rules: Rules::Literal,
        lists: ListMode::Tlv,
        prune_retransmit: true,
        t_hold: Duration::from_micros(1500),
        cnp_mode: CnpMode::Leading,
        cnp_window: Duration::from_secs(2),
        cnp_window_most: Duration::from_secs(3),
        cnp_limit: 32,
        ack_dscp: Dscp::try_from(26).ok(),
        cnp_dscp: Dscp::try_from(40).expect("a codepoint"),
        on_failure: OnFailure::Evict,
        t_stall: Duration::from_millis(200),
        t_not_ready: Some(Duration::from_secs(30)),
        stall_sends: 4,
        min_receivers: 2,
        hmac_key_id: Some(42),
        repair: RepairPolicy::default(),
    };
    assert_eq!(policies[0], expected);
}
