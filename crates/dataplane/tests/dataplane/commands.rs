//! Commands to a running node: removed entries, entries that stay, and no state left behind.

use crate::common::group::{self, HEADEND, address, edge_with, encapsulated, entry, inner, receiver};
use crate::common::{Bench, neighbour, next_hop, port_mac};
use srdma_dataplane::headend::{HeadendConfig, HeadendPath};
use srdma_dataplane::*;
use srdma_frame::{Element, Frame, PortId};
use srdma_group::*;
use srdma_steering::Path;
use srdma_wire::{Entropy, MacAddress, Prefix};
use std::net::Ipv6Addr;

const LOOPBACK: &str = "2001:db8:ffff::1";
const TARGET: &str = "2001:db8:1::1";
const HOST: &str = "2001:db8:bb::1";

/// A node with two ports, a neighbour at each.
fn node() -> Bench {
    Bench::new(LOOPBACK, 2)
}

fn prefix(text: &str, len: u8) -> Prefix {
    Prefix::new(address(text), len).unwrap()
}

fn route(text: &str, len: u8, action: RouteAction) -> Command {
    Command::AddRoute { table: TableId(0), prefix: prefix(text, len), action }
}

fn via(ports: &[u16]) -> RouteAction {
    RouteAction::Via(ports.iter().map(|port| next_hop(*port)).collect())
}

fn remove_route(text: &str, len: u8) -> Command {
    Command::RemoveRoute { table: TableId(0), prefix: prefix(text, len) }
}

/// A host at a port, with the MAC address that the bench expects there.
fn add_host(port: u16, host: &str) -> Command {
    let next_hop = NextHop { port: PortId(port), address: address(host) };
    Command::AddNeighbour { next_hop, mac: MacAddress([2, 0, 0, 0, 1, port as u8]) }
}

fn remove_host(port: u16, host: &str) -> Command {
    Command::RemoveNeighbour(NextHop { port: PortId(port), address: address(host) })
}

fn end(text: &str) -> Command {
    Command::AddSid { prefix: prefix(text, 128), behavior: SidBehavior::End(Flavors::default()) }
}

fn refused(bench: &mut Bench, command: Command) -> String {
    bench.node.apply(command).unwrap_err().to_string()
}

/// The port by which a packet without payload leaves, or why it does not.
fn sent(bench: &mut Bench, destination: &str) -> Result<u16, &'static str> {
    let dropped = |bench: &Bench| bench.drops(0).iter().map(|(_, count)| count).sum::<u64>();
    let (before, reasons) = (dropped(bench), bench.drops(0));
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    packet.extend(address("::9").octets());
    packet.extend(address(destination).octets());
    match bench.send(0, &packet).first() {
        Some((port, _)) => Ok(*port),
        None => {
            assert_eq!(dropped(bench), before + 1);
            let reason = bench.drops(0).into_iter().find(|counted| !reasons.contains(counted));
            Err(reason.unwrap().0)
        }
    }
}

/// D226: what a policy's first segment leads to changes with the routes, and with the policy.
#[test]
fn an_encapsulated_packet_follows_the_route_of_its_first_segment() {
    let encaps = |segments: &[&str]| {
        let segments = segments.iter().map(|segment| address(segment)).collect();
        RouteAction::Encaps { segments, mode: EncapsMode::Encaps, hmac_key_id: None }
    };
    let mut bench = Bench::new(LOOPBACK, 3);
    bench.apply(route("fd00::", 16, encaps(&["5f00:1::", TARGET])));
    assert_eq!(sent(&mut bench, "fd00::1"), Err("no_route"));
    bench.apply(route("5f00::", 16, via(&[1])));
    assert_eq!([sent(&mut bench, "fd00::1"), sent(&mut bench, "fd00::2")], [Ok(1); 2]);
    bench.apply(route("5f00:1::", 32, via(&[2])));
    assert_eq!([sent(&mut bench, "fd00::1"), sent(&mut bench, "fd00::2")], [Ok(2); 2]);
    bench.apply(route("fd00::", 16, encaps(&["5f00:2::", TARGET])));
    assert_eq!(sent(&mut bench, "fd00::1"), Ok(1));
    bench.apply(route("5f00:2::", 128, encaps(&["5f00:1::"])));
    assert_eq!([sent(&mut bench, "fd00::1"), sent(&mut bench, "5f00:2::")], [Ok(2); 2]);
    bench.apply(remove_route("5f00:2::", 128));
    bench.apply(remove_route("5f00::", 16));
    assert_eq!(sent(&mut bench, "fd00::1"), Err("no_route"));
}

/// Routes by way of a neighbour stay when it goes, and drop until it is back.
#[test]
fn a_neighbour_is_removed_and_added_again() {
    let mut bench = node();
    bench.apply(route(TARGET, 48, via(&[1])));
    bench.apply(add_host(1, HOST));
    assert_eq!((sent(&mut bench, TARGET), sent(&mut bench, HOST)), (Ok(1), Ok(1)));
    bench.apply(Command::RemoveNeighbour(next_hop(1)));
    bench.apply(remove_host(1, HOST));
    assert_eq!(sent(&mut bench, TARGET), Err("no_neighbour"));
    assert_eq!(sent(&mut bench, HOST), Err("no_route"));
    bench.apply(Command::AddNeighbour { next_hop: next_hop(1), mac: MacAddress([2, 0, 0, 0, 1, 1]) });
    assert_eq!((sent(&mut bench, TARGET), sent(&mut bench, HOST)), (Ok(1), Err("no_route")));
    assert_eq!(refused(&mut bench, remove_host(1, HOST)), "there is no neighbour 2001:db8:bb::1 at port 1");
    assert_eq!(refused(&mut bench, remove_host(7, HOST)), "there is no neighbour 2001:db8:bb::1 at port 7");
}

/// A host that moves is where it was seen last; when it is gone from there, where it was before.
#[test]
fn a_neighbour_moves() {
    let mut bench = node();
    bench.apply(add_host(0, HOST));
    bench.apply(add_host(1, HOST));
    assert_eq!(sent(&mut bench, HOST), Ok(1));
    bench.apply(remove_host(1, HOST));
    assert_eq!(sent(&mut bench, HOST), Ok(0));
    bench.apply(remove_host(0, HOST));
    assert_eq!(sent(&mut bench, HOST), Err("no_route"));
}

/// Of the meanings of an address, routes and SIDs come first, then the node's own addresses, then neighbours; each comes
/// back when what stood before it goes.
#[test]
fn an_address_has_one_meaning_at_a_time() {
    let mut bench = node();
    let set_port = |addresses: &[&str]| Command::SetPort {
        port: PortId(1),
        mac: port_mac(1),
        addresses: addresses.iter().map(|text| address(text)).collect(),
        link_mtu: 4608,
    };
    bench.apply(route(HOST, 128, RouteAction::Blackhole));
    bench.apply(add_host(1, HOST));
    assert_eq!(sent(&mut bench, HOST), Err("blackhole"));
    bench.apply(remove_route(HOST, 128));
    assert_eq!(sent(&mut bench, HOST), Ok(1));
    assert_eq!(refused(&mut bench, remove_route(HOST, 128)), "there is no route 2001:db8:bb::1/128");
    bench.apply(set_port(&[HOST]));
    assert_eq!(sent(&mut bench, HOST), Err("local_delivery"));
    bench.apply(end(HOST));
    assert_eq!(sent(&mut bench, HOST), Err("upper_layer"));
    assert_eq!(refused(&mut bench, remove_route(HOST, 128)), "there is no route 2001:db8:bb::1/128");
    bench.apply(Command::RemoveSid(prefix(HOST, 128)));
    assert_eq!(sent(&mut bench, HOST), Err("local_delivery"));
    bench.apply(set_port(&[]));
    assert_eq!(sent(&mut bench, HOST), Ok(1));
    // The same next hop as a route outlives the neighbour's own.
    let to_host = RouteAction::Via(vec![NextHop { port: PortId(1), address: address(HOST) }]);
    bench.apply(route(HOST, 128, to_host));
    bench.apply(remove_host(1, HOST));
    assert_eq!(sent(&mut bench, HOST), Err("no_neighbour"));
}

/// The node's loopback cannot be assigned otherwise, and is not removed with a port.
#[test]
fn the_loopback_stays() {
    let mut bench = node();
    let set_port = |addresses| Command::SetPort { port: PortId(1), mac: port_mac(1), addresses, link_mtu: 4608 };
    bench.apply(set_port(vec![address(LOOPBACK)]));
    bench.apply(set_port(Vec::new()));
    bench.apply(add_host(1, LOOPBACK));
    assert_eq!(sent(&mut bench, LOOPBACK), Err("local_delivery"));
    assert_eq!(refused(&mut bench, remove_route(LOOPBACK, 128)), "there is no route 2001:db8:ffff::1/128");
}

/// SIDs keep their counters and their routes when one before them goes, also one that a route stands before.
#[test]
fn sids_are_removed_one_by_one() {
    let mut bench = node();
    let sids = ["5f00:1::", "5f00:2::", "5f00:3::", "5f00:4::"];
    sids.iter().for_each(|sid| bench.apply(end(sid)));
    bench.apply(route(sids[1], 128, RouteAction::Blackhole));
    for sid in &sids[2..] {
        assert_eq!(sent(&mut bench, sid), Err("upper_layer"));
    }
    bench.apply(Command::RemoveSid(prefix(sids[0], 128)));
    assert_eq!(sent(&mut bench, sids[0]), Err("no_route"));
    assert_eq!(sent(&mut bench, sids[1]), Err("blackhole"));
    assert_eq!(sent(&mut bench, sids[3]), Err("upper_layer"));
    bench.apply(Command::RemoveSid(prefix(sids[1], 128)));
    assert_eq!(sent(&mut bench, sids[1]), Err("blackhole"), "the route is still there");
    let counted: Vec<(String, u64)> =
        bench.node.sid_counters().map(|(sid, traffic)| (sid.address().to_string(), traffic.frames)).collect();
    assert_eq!(counted, [("5f00:3::".to_owned(), 1), ("5f00:4::".to_owned(), 2)]);
    assert_eq!(refused(&mut bench, Command::RemoveSid(prefix(sids[0], 128))), "there is no SID 5f00:1::/128");
}

#[test]
fn a_multicast_route_is_removed() {
    let mut bench = node();
    let group = address("ff3e::100");
    let source = address("2001:db8::9");
    let route =
        MulticastRoute { source, group, incoming: None, outgoing: vec![PortId(1)], end_mt: false, require_hmac: false };
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    packet.extend(source.octets());
    packet.extend(group.octets());
    bench.apply(Command::AddMulticastRoute(route));
    assert_eq!(bench.send(0, &packet).len(), 1);
    bench.apply(Command::RemoveMulticastRoute { source, group });
    assert_eq!(bench.send(0, &packet), []);
    assert_eq!(bench.drops(0), [("no_multicast_route", 1)]);
    let again = refused(&mut bench, Command::RemoveMulticastRoute { source, group });
    assert_eq!(again, "there is no multicast route (2001:db8::9, ff3e::100)");
}

/// MT-9-1: a key that a headend signs with stays; at other nodes, and for other groups, keys come and go.
#[test]
fn a_key_in_use_stays() {
    let entry = |key_id| {
        let receivers = vec![group::member(&receiver(1, 0x101, None), 1)];
        let nodes = [("N6", HEADEND, "5f00:0:6:e000::", None), ("N1", group::EDGE, group::SID, Some(0))];
        let mut record = group::record(&nodes, receivers);
        record.policy.hmac_key_id = Some(key_id);
        Command::AddGroup(Box::new(Group::new(record).unwrap().at(NodeIndex(0)).unwrap()))
    };
    let mut bench = Bench::new(HEADEND, 1);
    for key_id in [7, 8] {
        bench.apply(Command::AddHmacKey { key_id, key: HmacKey::new(b"secret", Cover::Tlvs) });
    }
    bench.apply(entry(7));
    let message = "HMAC key 7 cannot be removed: group 1 signs with it";
    assert_eq!(refused(&mut bench, Command::RemoveHmacKey(7)), message);
    bench.apply(Command::RemoveHmacKey(8));
    assert_eq!(refused(&mut bench, Command::RemoveHmacKey(8)), "there is no HMAC key 8");
    bench.apply(Command::RemoveGroup(GroupId(1)));
    bench.apply(Command::RemoveHmacKey(7));
    assert_eq!(refused(&mut bench, entry(7)), "group 1: HMAC key 7 is not known to this node");
}

/// Frames carry the port's new MAC address, the new link MTU holds, and frames to the old address are not for the port.
#[test]
fn a_port_changes() {
    let mut bench = node();
    bench.apply(route(TARGET, 48, via(&[1])));
    let frame = |bench: &mut Bench, to: MacAddress, payload: u16| {
        let mut octets = [&to.0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD, 0x60, 0, 0, 0]].concat();
        octets.extend(payload.to_be_bytes());
        octets.extend([59, 64]);
        octets.extend(address("2001:db8::9").octets());
        octets.extend(address(TARGET).octets());
        octets.extend(vec![0; payload.into()]);
        let frame = Frame::from_octets(&octets, &mut bench.pool).unwrap();
        bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
        let frame = bench.node.dequeue(bench.now, PortId(1), &mut bench.pool)?;
        let octets = frame.to_vec(&bench.pool);
        frame.release(&mut bench.pool);
        Some(octets[6..12].to_vec())
    };
    let new = MacAddress([2, 0, 0, 9, 9, 9]);
    let set_port =
        |port| Command::SetPort { port: PortId(port), mac: new, addresses: vec![address(HOST)], link_mtu: 1280 };
    assert_eq!(frame(&mut bench, port_mac(0), 1400), Some(port_mac(1).0.to_vec()));
    bench.apply(set_port(1));
    assert_eq!(frame(&mut bench, port_mac(0), 100), Some(new.0.to_vec()));
    assert_eq!(frame(&mut bench, port_mac(0), 1400), None);
    bench.apply(set_port(0));
    assert_eq!(frame(&mut bench, port_mac(0), 100), None);
    assert_eq!(frame(&mut bench, new, 100), Some(new.0.to_vec()));
    assert_eq!(sent_to_self(&mut bench, new), "local_delivery");
    assert_eq!(refused(&mut bench, set_port(9)), "port 9 does not exist, the node has 2");
}

fn sent_to_self(bench: &mut Bench, mac: MacAddress) -> &'static str {
    let before = bench.drops(0);
    let mut octets = [&mac.0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD, 0x60, 0, 0, 0, 0, 0, 59, 64]].concat();
    octets.extend(address("2001:db8::9").octets());
    octets.extend(address(HOST).octets());
    let frame = Frame::from_octets(&octets, &mut bench.pool).unwrap();
    assert_eq!(bench.receive(0, frame), []);
    bench.drops(0).into_iter().find(|counted| !before.contains(counted)).unwrap().0
}

/// D2: no port takes a group's Proxy Address; and copies that are resolved already follow a change.
#[test]
fn groups_follow_changes_of_ports_and_neighbours() {
    let mut bench = edge_with(false, |_| ());
    bench.apply(Command::AddGroup(Box::new(entry(&[receiver(1, 0x101, None)], None))));
    let data = encapsulated(&inner(0x04, 0, &[1; 64], false));
    let port = bench.send(0, &data)[0].0;
    bench.apply(Command::RemoveNeighbour(next_hop(port)));
    assert_eq!(bench.send(0, &data), []);
    assert_eq!(bench.drops(0), [("no_neighbour", 1)]);
    let mac = MacAddress([2, 0, 0, 0, 1, port as u8]);
    bench.apply(Command::AddNeighbour { next_hop: next_hop(port), mac });
    assert_eq!(bench.send(0, &data).len(), 1);
    let proxy = address(group::PROXY);
    let set_port = Command::SetPort { port: PortId(0), mac: port_mac(0), addresses: vec![proxy], link_mtu: 1500 };
    let message = format!("Proxy Address {proxy} of group 1 is an address of this node");
    assert_eq!(refused(&mut bench, set_port), message);
}

#[test]
fn a_port_is_added() {
    let mut bench = node();
    let port = PortConfig {
        name: "late".to_owned(),
        mac: port_mac(2),
        addresses: vec![address(HOST)],
        link_mtu: 1500,
        queue_limit_octets: 1 << 16,
        ..PortConfig::default()
    };
    assert_eq!(refused(&mut bench, route(TARGET, 48, via(&[2]))), "port 2 does not exist, the node has 2");
    bench.apply(Command::AddPort(port));
    bench.apply(add_host(2, "2001:db8:bb::2"));
    bench.apply(Command::AddNeighbour { next_hop: next_hop(2), mac: MacAddress([2, 0, 0, 0, 1, 2]) });
    bench.apply(route(TARGET, 48, via(&[2])));
    assert_eq!(sent(&mut bench, HOST), Err("local_delivery"));
    let mut frame = [&port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x86, 0xDD, 0x60, 0, 0, 0, 0, 0, 59, 64]].concat();
    frame.extend(address("::9").octets());
    frame.extend(address(TARGET).octets());
    let frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
    bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
    let frame = bench.node.dequeue(bench.now, PortId(2), &mut bench.pool).unwrap();
    assert_eq!(frame.to_vec(&bench.pool)[..14], [2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 2, 0x86, 0xDD]);
    frame.release(&mut bench.pool);
}

/// A million routes, ECMP sets, policies, SIDs and neighbours that come and go take no more memory than the first.
#[test]
fn flapping_leaves_nothing_behind() {
    let mut bench = node();
    let hop = |number: u64| {
        let address = Ipv6Addr::from(u128::from(neighbour(0)) + 0x1_0000 + u128::from(number));
        NextHop { port: PortId(number as u16 % 2), address }
    };
    let flap = |bench: &mut Bench, number: u64| {
        let prefix = Prefix::new(Ipv6Addr::from(0x2002 << 112 | u128::from(number) << 64), 64).unwrap();
        let table = TableId((number % 3) as u16);
        let segments = vec![Ipv6Addr::from(0x5f00 << 112 | u128::from(number)); 2];
        let action = match number % 4 {
            0 => RouteAction::Via(vec![hop(number)]),
            1 => RouteAction::Via(vec![hop(number), hop(number + 2)]),
            2 => RouteAction::Encaps { segments, mode: EncapsMode::Reduced, hmac_key_id: None },
            _ => RouteAction::Blackhole,
        };
        bench.apply(Command::AddRoute { table, prefix, action });
        if number.is_multiple_of(8) {
            bench.apply(Command::AddNeighbour { next_hop: hop(number), mac: port_mac(1) });
            bench.apply(Command::AddSid { prefix, behavior: SidBehavior::EndX(Flavors::default(), hop(number)) });
            bench.apply(Command::RemoveSid(prefix));
            bench.apply(Command::RemoveNeighbour(hop(number)));
            if table != TableId(0) {
                bench.apply(Command::RemoveRoute { table, prefix });
            }
        } else {
            bench.apply(Command::RemoveRoute { table, prefix });
        }
    };
    (0..1_000).for_each(|number| flap(&mut bench, number));
    let info = allocation_counter::measure(|| (1_000..1_001_000).for_each(|number| flap(&mut bench, number)));
    assert!(info.bytes_current <= 1_024, "{info:?}");
    assert!(info.bytes_max <= 4_096, "{info:?}");
}

/// D244: no path with an entropy value leads to a node of a tree, whichever comes first, unless a longer prefix does.
#[test]
fn entropy_toward_nodes_of_a_tree_is_refused() {
    const SID_OF_ROOT: &str = "5f00:0:6:e000::";
    let receivers = || vec![group::member(&receiver(1, 0x101, None), 1)];
    let nodes = [("N6", HEADEND, SID_OF_ROOT, None), ("N1", group::EDGE, group::SID, Some(0))];
    let entry = |at| Box::new(Group::new(group::record(&nodes, receivers())).unwrap().at(NodeIndex(at)).unwrap());
    let to = |node: &str, entropy: Option<u32>| {
        let path = Path { segments: vec![address("5f00:0:100:500:300::")], ..Path::default() };
        let path = HeadendPath { path, entropy: entropy.map(Entropy), ..HeadendPath::default() };
        route(node, 40, RouteAction::Placed(vec![path]))
    };
    // An edge answers its parent, and a transit node copies to the nodes below it.
    for (own, at, node) in [(group::EDGE, 1, HEADEND), (HEADEND, 0, group::SID)] {
        let bench = || {
            let mut bench = Bench::new(own, 1);
            bench.apply(Command::SetSteering(Box::new(HeadendConfig::new(address("::")))));
            bench
        };
        let text = format!(
            "route to {node}, a node of the tree of group 1: its paths have entropy values, and responses between nodes \
             of a tree have their epoch in the UDP source port"
        );
        for add in [Command::AddGroup(entry(at)), Command::PrepareGroup(entry(at)), Command::RestoreGroup(entry(at))] {
            let mut before = bench();
            before.apply(to(node, Some(1)));
            assert_eq!(refused(&mut before, add.clone()), text);
            let mut after = bench();
            after.apply(add);
            assert_eq!(refused(&mut after, to(node, Some(1))), text);
            after.apply(to(node, None));
            after.apply(route(node, 128, via(&[0])));
            after.apply(to(node, Some(1)));
        }
    }
}
