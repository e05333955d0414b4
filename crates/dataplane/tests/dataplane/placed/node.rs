//! The same within a node: routes to placed paths, hosts behind it, and probes by its ports.

use crate::common::{Bench, next_hop};
use crate::placed::support::*;
use srdma_dataplane::headend::{HeadendConfig, HeadendPath};
use srdma_dataplane::{Command, Flavors, RouteAction, SidBehavior, TableId};
use srdma_frame::Element;
use srdma_wire::{Entropy, Prefix};

/// The node's own address: NIC 1 is the host behind it.
const NODE: &str = "2001:db8:ff::11";
const HOST_PORT: u16 = 0;
const FABRIC_PORT: u16 = 1;

fn prefix(text: &str, len: u8) -> Prefix {
    Prefix::new(address(text), len).unwrap()
}

fn route(bench: &mut Bench, to: Prefix, action: RouteAction) {
    bench.apply(Command::AddRoute { table: TableId(0), prefix: to, action });
}

fn paths() -> Vec<HeadendPath> {
    vec![path(BY_SPINE5, SPINE5, 0), path(BY_SPINE6, SPINE6, 1)]
}

fn node() -> Bench {
    let mut bench = Bench::new(NODE, 2);
    bench.apply(Command::SetSteering(Box::new(HeadendConfig::new(address("::")))));
    route(&mut bench, prefix("2001:db8:1::", 64), RouteAction::Via(vec![next_hop(HOST_PORT)]));
    route(&mut bench, prefix("5f00::", 32), RouteAction::Via(vec![next_hop(FABRIC_PORT)]));
    route(&mut bench, prefix("2001:db8:3::", 64), RouteAction::Placed(paths()));
    bench
}

/// The packet that leaves by the port to the fabric.
fn sent(bench: &mut Bench, psn: u32) -> Vec<u8> {
    let mut sent = bench.send(HOST_PORT, &data(QPN3, psn));
    assert_eq!((sent.len(), sent[0].0), (1, FABRIC_PORT), "{:?}", bench.drops(HOST_PORT));
    sent.remove(0).1
}

/// PP-4-3, PP-4-6: the outer source is the node's loopback, and a Fast CNP reaches the host one hop on and else as it was.
#[test]
fn a_node_steers_for_unmodified_hosts() {
    let mut bench = node();
    let before = sent(&mut bench, 1);
    assert_eq!((destination_of(&before).as_str(), &before[8..24]), (BY_SPINE5, &address(NODE).octets()[..]));
    assert_eq!(before[40 + 7], 63, "the host's packet has been forwarded");
    let notice = fast_cnp(SPINE5, QPN3);
    let mut forwarded = notice.clone();
    forwarded[7] -= 1;
    assert_eq!(bench.send(FABRIC_PORT, &notice), [(HOST_PORT, forwarded)]);
    assert_eq!(destination_of(&sent(&mut bench, 2)), BY_SPINE6);
}

/// D87: probes leave by the FIB and come back to the node, which takes them; the host never sees one.
#[test]
fn probes_leave_by_the_fib_and_end_at_the_node() {
    let mut bench = node();
    sent(&mut bench, 1);
    bench.now = bench.now.after_ns(1_000);
    assert!(bench.node.next_deadline().is_some_and(|deadline| deadline <= bench.now));
    bench.node.tick(bench.now, &mut bench.pool);
    let probes = bench.drain();
    assert_eq!((probes.len(), probes[0].0), (1, FABRIC_PORT));
    assert_eq!(destination_of(&probes[0].1), "5f00:0:100:500:300:500:100:0");
    bench.now = bench.now.after_ns(9_000);
    assert_eq!(bench.send(FABRIC_PORT, &probes[0].1[40..]), []);
    assert_eq!(bench.node.headend().unwrap().counters().probes_answered, 1);
    assert_eq!(bench.drops(FABRIC_PORT), []);
}

/// In a tunnel that ends at the node, too.
#[test]
fn a_node_reads_signals_of_packets_that_it_decapsulates() {
    let mut bench = node();
    bench.apply(Command::AddSid { prefix: prefix("5f00:0:1100::", 48), behavior: SidBehavior::End(Flavors::MICRO) });
    sent(&mut bench, 1);
    let inner = fast_cnp(SPINE5, QPN3);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((inner.len() as u16).to_be_bytes());
    packet.extend([41, 60]);
    packet.extend(address(SPINE5).octets());
    packet.extend(address("5f00:0:1100::").octets());
    packet.extend(&inner);
    assert_eq!(bench.send(FABRIC_PORT, &packet)[0].0, HOST_PORT);
    assert_eq!(destination_of(&sent(&mut bench, 2)), BY_SPINE6);
}

#[test]
fn routes_come_and_go() {
    let mut bench = node();
    sent(&mut bench, 1);
    bench.send(FABRIC_PORT, &fast_cnp(SPINE5, QPN3));
    assert_eq!(destination_of(&sent(&mut bench, 2)), BY_SPINE6);
    let refused = bench.node.apply(Command::RemoveSteering).unwrap_err();
    assert_eq!(refused.to_string(), "steering is in use: 1 lists of paths have routes");

    // Other paths for the same route: the state of the remaining path is kept.
    let mut changed = paths();
    changed[0] = path("5f00:0:100:700:300::", "2001:db8:ff::7", 0);
    route(&mut bench, prefix("2001:db8:3::", 64), RouteAction::Placed(changed.clone()));
    assert_eq!(destination_of(&sent(&mut bench, 3)), BY_SPINE6);

    // A second route with the same paths shares them.
    route(&mut bench, prefix("2001:db8:4::", 64), RouteAction::Placed(changed));
    assert_eq!(bench.node.headend().unwrap().sets().count(), 1);
    assert_eq!(bench.node.placed().count(), 2);
    for destination in ["2001:db8:3::", "2001:db8:4::"] {
        bench.apply(Command::RemoveRoute { table: TableId(0), prefix: prefix(destination, 64) });
    }
    assert_eq!(bench.node.headend().unwrap().sets().count(), 0);
    assert_eq!(bench.send(HOST_PORT, &data(QPN3, 4)).len(), 1, "an ICMPv6 error to the host");
    assert_eq!(bench.drops(HOST_PORT), [("no_route", 1)]);
    bench.apply(Command::RemoveSteering);
    let action = RouteAction::Placed(paths());
    let add = Command::AddRoute { table: TableId(0), prefix: prefix("2001:db8:3::", 64), action };
    assert_eq!(bench.node.apply(add).unwrap_err().to_string(), "route 2001:db8:3::/64: steering is off");
}

#[test]
fn invalid_paths_change_nothing() {
    let mut bench = node();
    let to = prefix("2001:db8:3::", 64);
    let add = Command::AddRoute { table: TableId(0), prefix: to, action: RouteAction::Placed(Vec::new()) };
    let error = bench.node.apply(add).unwrap_err().to_string();
    assert_eq!(error, "route 2001:db8:3::/64: a destination needs at least one path that is not denied");
    assert_eq!(destination_of(&sent(&mut bench, 1)), BY_SPINE5);
}

/// Other settings reset the state of the same paths; probes then come back elsewhere.
#[test]
fn settings_can_change() {
    let mut bench = node();
    sent(&mut bench, 1);
    let elsewhere = address("2001:db8:ff::99");
    let config = HeadendConfig { probe_address: Some(elsewhere), ..HeadendConfig::new(address("::")) };
    bench.apply(Command::SetSteering(Box::new(config)));
    assert_eq!(destination_of(&sent(&mut bench, 2)), BY_SPINE5);
    bench.now = bench.now.after_ns(10);
    bench.node.tick(bench.now, &mut bench.pool);
    let probe = bench.drain().remove(0).1;
    assert_eq!(probe[40 + 24..40 + 40], elsewhere.octets());
    bench.send(FABRIC_PORT, &probe[40..]);
    assert_eq!(bench.node.headend().unwrap().counters().probes_answered, 1);
}

/// An error of the node's own to a steered destination goes by the best path.
#[test]
fn errors_of_the_node_take_the_best_path() {
    let mut bench = node();
    let mut packet = rocev2(NIC3, "2001:db8:9::1", 0x04, 1, 1, &[0; 4]);
    packet[7] = 9;
    let answer = bench.send(FABRIC_PORT, &packet);
    assert_eq!((answer.len(), answer[0].0), (1, FABRIC_PORT));
    assert_eq!((destination_of(&answer[0].1).as_str(), answer[0].1[40 + 6]), (BY_SPINE5, 58));
}

/// D241: routes to NICs behind the same switch share their paths. When both lose one, flows on it move, and no others.
#[test]
fn flows_stay_when_routes_that_share_their_paths_lose_one() {
    let mut bench = node();
    let by = |values: &[u32], denied: Option<u32>| -> Vec<HeadendPath> {
        let one = |value: &u32| {
            let mut path = path(&format!("5f00:0:100:{:x}:300::", 0x500 + value * 0x100), SPINE5, 0);
            path.entropy = Some(Entropy(*value));
            path.path.is_denied = denied == Some(*value);
            path
        };
        values.iter().map(one).collect()
    };
    let both = |bench: &mut Bench, paths: &[HeadendPath]| {
        for to in ["2001:db8:3::", "2001:db8:4::"] {
            route(bench, prefix(to, 64), RouteAction::Placed(paths.to_vec()));
        }
        assert_eq!(bench.node.headend().unwrap().sets().count(), 1, "they share");
    };
    let mut psn = 0;
    let mut send_all = |bench: &mut Bench| -> Vec<String> {
        psn += 1;
        let flows = (0x300..0x340).flat_map(|qpn| [NIC3, "2001:db8:4::1"].map(|to| (qpn, to)));
        let packets = flows.map(|(qpn, to)| rocev2(NIC1, to, 0x04, qpn, psn, &[0xA5; 64]));
        packets.map(|packet| destination_of(&bench.send(HOST_PORT, &packet)[0].1)).collect()
    };
    both(&mut bench, &by(&[0, 1, 2, 3], None));
    let before = send_all(&mut bench);
    let dead = "5f00:0:100:600:300::";
    let on_dead = before.iter().filter(|path| *path == dead).count();
    assert!((1..100).contains(&on_dead), "{on_dead} of 128 flows");
    both(&mut bench, &by(&[0, 1, 2, 3], Some(1)));
    let after = send_all(&mut bench);
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(after, dead);
        assert!(before == after || before == dead, "a flow has moved from {before} to {after}");
    }
    both(&mut bench, &by(&[0, 1, 2, 3], None));
    assert_eq!(send_all(&mut bench), after, "flows stay when a path is allowed again");
}
