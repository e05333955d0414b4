//! Repair paths around links (D265): packets that take them while all other systems have their old tables, link by link
//! in random networks, against distances of a slow model.

use super::net::{Net, config, locator, system};
use super::{all_distances, chance, random_links};
use srdma_isis::tlv::{EndSid, EndXSid, Neighbour, TopologyId};
use srdma_isis::{CircuitConfig, CircuitId, CircuitType, Config, Level, LspId, NodeId, Repair};
use srdma_wire::MacAddress;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const COUNT: usize = 9;
const FAR: u64 = u64::MAX / 4;

/// End with PSP and USD, and End.X with the same (RFC 8986 section 10.2).
const END: u16 = 29;
const END_X: u16 = 33;

type Links = Vec<(usize, usize, u32)>;

fn end(at: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x5f00, 0, at as u16, 1, 0, 0, 0, 0)
}

fn end_x(at: usize, to: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x5f00, 0, at as u16, 0xe000 + to as u16, 0, 0, 0, 0)
}

fn of(at: usize) -> Config {
    let mut config = config(at);
    config.locators[0].sids = vec![EndSid { behavior: END, sid: end(at), structure: None }];
    config
}

/// These links, each with a SID at both ends.
fn network(count: usize, links: &Links) -> Net {
    let mut net = Net::default();
    (0..count).for_each(|at| assert_eq!(net.add(of(at)), at));
    let mut circuits = vec![0; count];
    for (one, other, metric) in links {
        net.join(*one, *other, *metric);
        for (at, to) in [(*one, *other), (*other, *one)] {
            let mut circuit = CircuitConfig::new(MacAddress([2, 0, 0, 0, at as u8, to as u8]));
            circuit.metric = *metric;
            let (behavior, sid) = (END_X, end_x(at, to));
            let sid = EndXSid { neighbour: None, flags: 0, algorithm: 0, weight: 0, behavior, sid, structure: None };
            circuit.end_x = vec![("fe80::1".parse().unwrap(), sid)];
            net.speakers[at].change_circuit(net.now, CircuitId(circuits[at]), circuit);
            circuits[at] += 1;
        }
    }
    net.run_ms(2000);
    net
}

fn number(node: NodeId) -> usize {
    usize::from(u16::from_be_bytes([node.system.0[4], node.system.0[5]]))
}

/// Old tables: the neighbours by which a system reaches another one.
fn next_hops(links: &Links, distance: &[[u64; COUNT]; COUNT], at: usize, to: usize) -> Vec<(usize, u64)> {
    let both = links.iter().flat_map(|(a, b, metric)| [(*a, *b, *metric), (*b, *a, *metric)]);
    let of_at = both.filter(|(from, ..)| *from == at).map(|(_, next, metric)| (next, u64::from(metric)));
    of_at.filter(|(next, metric)| metric + distance[*next][to] == distance[at][to]).collect()
}

/// Sends a packet along a repair path by every choice among equal paths; each has to arrive at this cost, off the link.
fn follow(links: &Links, (from, failed, to): (usize, usize, usize), repair: &Repair, cost: u64, name: &str) {
    let old = all_distances::<COUNT>(links);
    let metric = |a: usize, b: usize| {
        let found = links.iter().find(|(one, other, _)| (*one, *other) == (a, b) || (*one, *other) == (b, a));
        u64::from(found.unwrap_or_else(|| panic!("{name}: no link {a}-{b}")).2)
    };
    let first = number(repair.first);
    let mut packets = vec![(first, 0, metric(from, first), 1)];
    assert_ne!(first, failed, "{name}");
    while let Some((at, passed, so_far, hops)) = packets.pop() {
        assert!(hops <= 2 * COUNT, "{name}: a loop");
        let forward = |next: usize, passed: usize, metric: u64| {
            assert!((at, next) != (from, failed) && (at, next) != (failed, from), "{name}: over the failed link");
            (next, passed, so_far + metric, hops + 1)
        };
        let Some(segment) = repair.segments.get(passed) else {
            if at == to {
                assert_eq!(so_far, cost, "{name}: not the path after convergence");
                continue;
            }
            packets
                .extend(next_hops(links, &old, at, to).into_iter().map(|(next, metric)| forward(next, passed, metric)));
            continue;
        };
        let holder = usize::from(segment.segments()[2]);
        match segment.segments()[3] {
            _ if holder != at => {
                let hops = next_hops(links, &old, at, holder);
                assert!(!hops.is_empty(), "{name}: {at} has no way to {segment}");
                packets.extend(hops.into_iter().map(|(next, metric)| forward(next, passed, metric)));
            }
            1 => packets.push((at, passed + 1, so_far, hops)),
            adjacency => {
                let next = usize::from(adjacency - 0xe000);
                packets.push(forward(next, passed + 1, metric(at, next)));
            }
        }
    }
}

#[test]
fn packets_reach_their_destination_around_every_failed_link() {
    let mut by_length: BTreeMap<usize, usize> = BTreeMap::new();
    for seed in 0..25 {
        let mut below = chance(seed);
        // Small metrics have equal paths, large ones far detours.
        let links: Links = random_links(COUNT, if seed % 2 == 0 { 4 } else { 60 }, &mut below);
        let net = network(COUNT, &links);
        for from in 0..COUNT {
            let repairs = net.speakers[from].repairs(Level::Two, false, net.now);
            let paths = net.speakers[from].shortest_paths(net.now);
            for to in (0..COUNT).filter(|to| *to != from) {
                let Some(route) = paths.prefixes.get(&locator(to)) else { continue };
                let hops: Vec<NodeId> = route.first_hops.iter().copied().collect();
                let [hop] = hops.as_slice() else {
                    assert!(repairs.values().all(|of_link| !of_link.contains_key(&locator(to))));
                    continue;
                };
                let failed = number(*hop);
                let left =
                    links.iter().copied().filter(|(a, b, _)| (*a, *b) != (from, failed) && (*a, *b) != (failed, from));
                let cost = all_distances::<COUNT>(&left.collect::<Links>())[from][to];
                let name = format!("seed {seed}: {from} to {to} without {from}-{failed}");
                let repair = repairs.get(hop).and_then(|of_link| of_link.get(&locator(to)));
                assert_eq!(repair.is_some(), cost < FAR, "{name}");
                if let Some(repair) = repair {
                    follow(&links, (from, failed, to), repair, cost, &format!("{name}: {repair:?}"));
                    *by_length.entry(repair.segments.len()).or_default() += 1;
                }
            }
        }
    }
    assert!((0..=2).all(|length| by_length.contains_key(&length)), "{by_length:?}");
}

/// D265. A ring of equal metrics: from 0 to its neighbour 1 by the other way round. Of five systems the opposite one is
/// in both spaces; of four one more SID is needed, that of an adjacency.
#[test]
fn in_a_ring_it_takes_one_sid_and_a_link_more_takes_that_of_an_adjacency() {
    let ring = |metric: u32| -> Links { vec![(0, 1, 10), (1, 2, 10), (2, 3, metric), (3, 4, 10), (4, 0, 10)] };
    let repair =
        |net: &Net| net.speakers[0].repairs(Level::Two, false, net.now)[&NodeId::of(system(1))][&locator(1)].clone();
    let path = |found: &Repair| found.path.iter().map(|node| number(*node)).collect::<Vec<_>>();
    let found = repair(&network(5, &ring(10)));
    assert_eq!((number(found.first), path(&found)), (4, vec![4, 3, 2, 1]));
    assert_eq!(found.segments, [end(2)]);
    // 3 reaches 2 by 4, 0 and 1: the link between them is forced.
    let found = repair(&network(5, &ring(60)));
    assert_eq!((number(found.first), path(&found)), (4, vec![4, 3, 2, 1]));
    assert_eq!(found.segments, [end_x(3, 2)]);
}

/// RFC 9352 section 8.2: SIDs of a LAN's neighbours, in as many entries as they need, come and go with them. One leads
/// across the LAN where old routes do not.
#[test]
fn sids_on_a_lan_are_those_of_its_neighbours() {
    let mut net = Net::default();
    (0..10).for_each(|at| assert_eq!(net.add(of(at)), at));
    let members: Vec<(usize, u8)> = (0..9).map(|at| (at, 64)).collect();
    net.join_lan(&members, 10);
    let lan = |at: usize, metric: u32, neighbours: &[usize]| {
        let mut circuit = CircuitConfig::new(MacAddress([2, 0, 1, 0, 0, at as u8]));
        circuit.kind = CircuitType::Broadcast { priority: 64 };
        circuit.metric = metric;
        circuit.addresses = vec![Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, at as u16)];
        let sid = |to: &usize| {
            let (behavior, sid) = (END_X, end_x(at, *to));
            let sid = EndXSid { neighbour: None, flags: 0, algorithm: 0, weight: 0, behavior, sid, structure: None };
            (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, *to as u16), sid)
        };
        circuit.end_x = neighbours.iter().map(sid).collect();
        circuit
    };
    (0..9).for_each(|at| net.speakers[at].change_circuit(net.now, CircuitId(0), lan(at, 10, &[])));
    net.speakers[0].change_circuit(net.now, CircuitId(0), lan(0, 10, &(1..10).collect::<Vec<_>>()));
    net.run_ms(20_000);
    let announced = |net: &Net, at: usize| {
        let id = LspId { node: NodeId::of(system(at)), fragment: 0 };
        let lsp = net.speakers[1].database(Level::Two).get(id).expect("its LSP").lsp();
        let links: Vec<Neighbour> = Neighbour::of_topology(lsp.tlvs(), TopologyId::STANDARD).collect();
        let sids = links.iter().flat_map(|link| &link.end_x);
        (links.len(), sids.map(|sid| (number(NodeId::of(sid.neighbour.unwrap())), sid.sid)).collect::<Vec<_>>())
    };
    let all = |to: std::ops::Range<usize>| to.map(|to| (to, end_x(0, to))).collect::<Vec<_>>();
    assert_eq!(announced(&net, 0), (2, all(1..9)), "9 is no member");
    assert_eq!(net.speakers[1].shortest_paths(net.now).prefixes[&locator(0)].distance, 10);
    net.dead = vec![7, 8];
    net.run_ms(40_000);
    assert_eq!(announced(&net, 0), (1, all(1..7)));
    net.dead.clear();
    // 9 is beside 1 and 0. Without the link to 1 the path leads by 0 over the LAN, whose metric there is large: 0 itself
    // would go by 9.
    net.join(9, 1, 1);
    net.join(9, 0, 1);
    net.speakers[0].change_circuit(net.now, CircuitId(0), lan(0, 40, &[1]));
    net.run_ms(60_000);
    let repairs = net.speakers[9].repairs(Level::Two, false, net.now);
    let repair = &repairs[&NodeId::of(system(1))][&locator(1)];
    assert_eq!((number(repair.first), &repair.segments[..]), (0, &[end_x(0, 1)][..]));
    assert_eq!(repair.path.len(), 3, "with the pseudonode: {repair:?}");
}

/// D265: without a SID that decapsulates there is no repair path that needs one; with a loop-free neighbour none is
/// needed.
#[test]
fn what_cannot_be_encapsulated_is_not_repaired() {
    let links = vec![(0, 1, 10), (1, 2, 10), (2, 3, 10), (3, 4, 10), (4, 0, 10)];
    let mut net = network(5, &links);
    for speaker in &mut net.speakers {
        // End with PSP.
        speaker.reconfigure(|config| config.locators[0].sids[0].behavior = 2);
    }
    net.run_ms(1000);
    let repairs = net.speakers[0].repairs(Level::Two, false, net.now);
    let of = |link: usize, to: usize| repairs.get(&NodeId::of(system(link))).and_then(|all| all.get(&locator(to)));
    assert_eq!(of(1, 1), None);
    // What 4 has for 2 does not come back.
    assert_eq!(of(1, 2).map(|repair| (number(repair.first), repair.segments.len())), Some((4, 0)));
    let triangle = network(3, &vec![(0, 1, 10), (1, 2, 10), (0, 2, 10)]);
    let repairs = triangle.speakers[0].repairs(Level::Two, false, triangle.now);
    let repair = &repairs[&NodeId::of(system(1))][&locator(1)];
    assert_eq!((number(repair.first), repair.segments.len()), (2, 0));
}
