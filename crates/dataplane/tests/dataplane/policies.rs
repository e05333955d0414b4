//! SR policies of several segment lists: each flow has one, by weight (D234); End.B6.Encaps and End.DX6 (RFC 8986
//! sections 4.4, 4.13 and 4.14; D233).

use crate::common::{Bench, address, ipv6, next_hop, prefix};
use srdma_dataplane::*;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const LOOPBACK: &str = "2001:db8:ffff::1";
const SOURCE: &str = "2001:db8:5::5";
const BINDING: &str = "fd00:1::b6";
const ID: PolicyId = PolicyId(7);

/// The first segments of the policy's lists, each behind a port of its own, and their weights.
const LISTS: [(&str, u32); 3] = [("fd01::1", 3), ("fd02::1", 1), ("fd03::1", 4)];

fn policy(lists: &[(&str, u32)]) -> Box<SrPolicy> {
    let list = |(segment, weight): &(&str, u32)| SegmentList {
        segments: vec![address(segment), address("fd09::9")],
        weight: *weight,
    };
    Box::new(SrPolicy { lists: lists.iter().map(list).collect(), hmac_key_id: None })
}

fn route(action: RouteAction) -> Command {
    Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:2::/48"), action }
}

/// A node whose route and binding SID apply the policy; its lists lead to ports 1 to 3, the source is at port 0.
fn node() -> Bench {
    let mut bench = Bench::new(LOOPBACK, 4);
    bench.route("2001:db8:5::/48", 0);
    for (port, (segment, _)) in (1..).zip(LISTS) {
        bench.route(&format!("{segment}/128"), port);
    }
    bench.apply(Command::AddPolicy { id: ID, policy: policy(&LISTS) });
    bench.apply(route(RouteAction::Policy { policy: ID, mode: EncapsMode::Reduced }));
    let behavior = SidBehavior::EndB6Encaps { policy: ID, mode: EncapsMode::Encaps };
    bench.apply(Command::AddSid { prefix: prefix(BINDING), behavior });
    bench
}

/// A UDP packet of a flow.
fn packet(flow: u16) -> Vec<u8> {
    let [high, low] = flow.to_be_bytes();
    ipv6(SOURCE, "2001:db8:2::1", 0, 17, &[high, low, 0x12, 0xB8, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
}

/// An SRH with the binding SID's next segment before a packet of a flow.
fn to_binding_sid(flow: u16) -> Vec<u8> {
    let srh = [&[41, 2, 4, 1, 0, 0, 0, 0][..], &address("2001:db8:7::7").octets(), &packet(flow)].concat();
    let mut outer = ipv6(SOURCE, BINDING, 0, 43, &srh);
    let [high, low] = flow.to_be_bytes();
    outer[2..4].copy_from_slice(&[high, low]);
    outer
}

/// The port that a packet leaves by.
fn port_of(bench: &mut Bench, packet: &[u8]) -> u16 {
    let sent = bench.send(0, packet);
    assert_eq!(sent.len(), 1, "{:?}", bench.drops(0));
    sent[0].0
}

/// The ports of some thousand flows.
fn ports(bench: &mut Bench, packet: fn(u16) -> Vec<u8>) -> Vec<u16> {
    (0..4000).map(|flow| port_of(bench, &packet(flow))).collect()
}

fn counts(ports: &[u16]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    ports.iter().for_each(|port| *counts.entry(*port).or_default() += 1);
    counts
}

/// Whether a share of 4,000 flows is about as it should be.
fn is_about(count: usize, expected: usize) -> bool {
    count.abs_diff(expected) < 150
}

#[test]
fn flows_are_shared_by_weight_and_keep_their_list() {
    for packet in [packet, to_binding_sid] {
        let mut bench = node();
        let first = ports(&mut bench, packet);
        let shares = counts(&first);
        for (port, expected) in [(1, 1500), (2, 500), (3, 2000)] {
            assert!(is_about(shares[&port], expected), "{shares:?}");
        }
        assert_eq!(ports(&mut bench, packet), first);
        assert_eq!(ports(&mut node(), packet), first, "another node of this configuration");
    }
}

/// RFC 9256 section 5.1: a list whose first segment cannot be reached is not valid.
#[test]
fn flows_leave_lists_that_are_not_valid() {
    let mut bench = node();
    let before = ports(&mut bench, packet);
    type Change = (Command, Command);
    let withdrawn: Change = (
        Command::RemoveRoute { table: TableId(0), prefix: prefix("fd03::1") },
        Command::AddRoute { table: TableId(0), prefix: prefix("fd03::1"), action: RouteAction::Via(vec![next_hop(3)]) },
    );
    let mac = srdma_wire::MacAddress([2, 0, 0, 0, 1, 3]);
    let unresolved: Change =
        (Command::RemoveNeighbour(next_hop(3)), Command::AddNeighbour { next_hop: next_hop(3), mac });
    for (fails, heals) in [withdrawn, unresolved] {
        bench.apply(fails);
        let after = ports(&mut bench, packet);
        assert!(before.iter().zip(&after).all(|(before, after)| *before == 3 || before == after));
        let shares = counts(&after);
        assert!(is_about(shares[&1], 3000) && is_about(shares[&2], 1000), "{shares:?}");
        bench.apply(heals);
        assert_eq!(ports(&mut bench, packet), before);
    }
    // Without a valid list, packets are dropped for what their lists lead to.
    for (segment, _) in LISTS {
        bench.apply(Command::RemoveRoute { table: TableId(0), prefix: prefix(segment) });
    }
    assert_eq!(bench.send(0, &packet(1)), []);
    assert_eq!(bench.drops(0), [("no_route", 1)]);
}

/// The packet with the SRH leaves in the policy's headers, of which the binding SID has all segments in the SRH; its own
/// destination is its next segment.
#[test]
fn a_binding_sid_pushes_the_policy() {
    let mut bench = node();
    bench.apply(Command::AddPolicy { id: ID, policy: policy(&LISTS[..1]) });
    let received = to_binding_sid(5);
    let sent = bench.send(0, &received);
    let [(1, sent)] = &sent[..] else { panic!("one packet at port 1, not {sent:?}") };
    let mut inner = received;
    inner[7] -= 1;
    inner[24..40].copy_from_slice(&address("2001:db8:7::7").octets());
    inner[43] = 0;
    let srh: Vec<u8> =
        [[41, 4, 4, 1, 1, 0, 0, 0].as_slice(), &address("fd09::9").octets(), &address("fd01::1").octets()].concat();
    assert_eq!(sent[40..40 + 40], srh);
    assert_eq!(sent[80..], inner);
    let expected: [Ipv6Addr; 2] = [LOOPBACK, "fd01::1"].map(address);
    assert_eq!((&sent[8..24], &sent[24..40]), (&expected[0].octets()[..], &expected[1].octets()[..]));
    assert_eq!((sent[6], sent[7], usize::from(sent[5])), (43, 64, sent.len() - 40));
}

/// A change of a policy takes effect for all that use it; one that is in use stays, and one that cannot be changes
/// nothing.
#[test]
fn policies_are_changed_and_removed_by_commands() {
    let mut bench = node();
    bench.apply(Command::AddPolicy { id: ID, policy: policy(&LISTS[1..2]) });
    assert_eq!([packet(1), to_binding_sid(1)].map(|packet| port_of(&mut bench, &packet)), [2, 2]);
    let node = &mut bench.node;
    assert_eq!(node.apply(Command::RemovePolicy(ID)), Err(ConfigError::PolicyInUse(7)));
    let error = ConfigError::Policy { policy: 7, error: PolicyError::NoSegmentLists };
    assert_eq!(node.apply(Command::AddPolicy { id: ID, policy: policy(&[]) }), Err(error));
    let signed = Box::new(SrPolicy { hmac_key_id: Some(9), ..*policy(&LISTS) });
    let unknown = ConfigError::UnknownPolicyKey { policy: 7, key_id: 9 };
    assert_eq!(node.apply(Command::AddPolicy { id: ID, policy: signed.clone() }), Err(unknown));
    let other = RouteAction::Policy { policy: PolicyId(8), mode: EncapsMode::Encaps };
    assert_eq!(node.apply(route(other)), Err(ConfigError::UnknownPolicy(8)));
    assert_eq!(port_of(&mut bench, &packet(1)), 2);
    let node = &mut bench.node;
    node.apply(Command::AddHmacKey { key_id: 9, key: HmacKey::new(&[1; 16], Cover::Rfc8754) }).unwrap();
    node.apply(Command::AddPolicy { id: ID, policy: signed }).unwrap();
    assert_eq!(node.apply(Command::RemoveHmacKey(9)), Err(ConfigError::KeySignsRoutes(9)));
    node.apply(route(RouteAction::Blackhole)).unwrap();
    assert_eq!(node.apply(Command::RemovePolicy(ID)), Err(ConfigError::PolicyInUse(7)));
    node.apply(Command::RemoveSid(prefix(BINDING))).unwrap();
    node.apply(Command::RemovePolicy(ID)).unwrap();
    assert_eq!(node.apply(Command::RemovePolicy(ID)), Err(ConfigError::UnknownPolicy(7)));
    node.apply(Command::RemoveHmacKey(9)).unwrap();
}

/// The next hop, not a route, decides; an error about an inner packet goes by the SID's table (D233).
#[test]
fn end_dx6_forwards_by_its_next_hop() {
    let mut bench = node();
    let behavior = SidBehavior::EndDx6 { next_hop: next_hop(2), table: TableId(5) };
    bench.apply(Command::AddSid { prefix: prefix("fd00:1::d8"), behavior });
    let action = RouteAction::Via(vec![next_hop(3)]);
    bench.apply(Command::AddRoute { table: TableId(5), prefix: prefix("2001:db8:6::/48"), action });
    let outer = |inner: &[u8]| ipv6(SOURCE, "fd00:1::d8", 0, 41, inner);
    for destination in [SOURCE, "2001:db8:8::8", "fd00:1::d8", LOOPBACK, "ff3e::1"] {
        let mut inner = ipv6("2001:db8:6::6", destination, 0, 59, &[]);
        let sent = bench.send(0, &outer(&inner));
        inner[7] -= 1;
        assert_eq!(sent, [(2, inner.clone())], "{:?}", bench.drops(0));
    }
    let mut inner = ipv6("2001:db8:6::6", SOURCE, 0, 59, &[]);
    inner[7] = 1;
    let sent = bench.send(0, &outer(&inner));
    assert_eq!((sent[0].0, &sent[0].1[24..40], sent[0].1[40]), (3, &address("2001:db8:6::6").octets()[..], 3));
    for destination in ["fe80::1", "::1", "::"] {
        assert_eq!(bench.send(0, &outer(&ipv6("2001:db8:6::6", destination, 0, 59, &[]))), []);
    }
    assert_eq!(bench.drops(0), [("scope", 3), ("hop_limit_exceeded", 1)]);
}
