//! What repair paths protect (D286, D287): neighbours by links and over LANs, in random networks. Packets are followed while
//! all other systems have their old tables, against distances of a slow model that shares nothing with the speakers.

use super::chance;
use super::net::{Net, config, locator, system};
use srdma_isis::tlv::{EndSid, EndXSid};
use srdma_isis::{CircuitConfig, CircuitId, CircuitType, Level, NodeId, Protection, Repair};
use srdma_wire::MacAddress;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

const COUNT: usize = 8;
const FAR: u64 = u64::MAX / 4;

/// End and End.X with PSP and USD (RFC 8986 section 10.2).
const END: u16 = 29;
const END_X: u16 = 33;

/// Links between two systems, and LANs with their members, each with its metric. A vertex from [`COUNT`] on is a LAN.
#[derive(Clone, Default)]
struct Map {
    links: Vec<(usize, usize, u32)>,
    lans: Vec<(Vec<usize>, u32)>,
}

impl Map {
    fn random(seed: u64) -> Self {
        let mut below = chance(seed);
        let most = if seed.is_multiple_of(2) { 4 } else { 30 };
        let mut map = Map::default();
        for one in 0..COUNT {
            for other in 0..one {
                if below(4) == 0 {
                    map.links.push((one, other, 1 + below(most) as u32));
                }
            }
        }
        for _ in 0..2 {
            let members: BTreeSet<usize> = (0..4).map(|_| below(COUNT as u64) as usize).collect();
            if members.len() > 1 {
                map.lans.push((members.into_iter().collect(), 1 + below(most) as u32));
            }
        }
        map
    }

    /// Every edge in its direction, with its cost.
    fn edges(&self) -> Vec<(usize, usize, u64)> {
        let both = self.links.iter().flat_map(|(a, b, metric)| [(*a, *b, *metric), (*b, *a, *metric)]);
        let lans = (COUNT..).zip(&self.lans);
        let of_lans = lans.flat_map(|(lan, (members, metric))| {
            members.iter().flat_map(move |member| [(*member, lan, *metric), (lan, *member, 0)])
        });
        both.chain(of_lans).map(|(from, to, metric)| (from, to, u64::from(metric))).collect()
    }

    /// Floyd and Warshall's distances over the edges that are left.
    fn distances(&self, fails: impl Fn(usize, usize) -> bool) -> Vec<Vec<u64>> {
        let count = COUNT + self.lans.len();
        let mut distance = vec![vec![FAR; count]; count];
        (0..count).for_each(|at| distance[at][at] = 0);
        for (from, to, cost) in self.edges().into_iter().filter(|(from, to, _)| !fails(*from, *to)) {
            distance[from][to] = distance[from][to].min(cost);
        }
        for via in 0..count {
            for one in 0..count {
                for other in 0..count {
                    distance[one][other] = distance[one][other].min(distance[one][via] + distance[via][other]);
                }
            }
        }
        distance
    }

    /// The vertices by which a system reaches a neighbour: itself, or LANs.
    fn ways(&self, from: usize, hop: usize) -> Vec<usize> {
        let least = self.distances(|_, _| false)[from][hop];
        let cheapest = self.edges().into_iter().filter(|(at, _, cost)| (*at, *cost) == (from, least));
        cheapest
            .map(|(_, to, _)| to)
            .filter(|to| *to == hop || *to >= COUNT && self.lans[*to - COUNT].0.contains(&hop))
            .collect()
    }

    /// The speakers, whose SIDs of adjacencies say by which link or LAN they lead to whom.
    fn network(&self) -> Net {
        let mut net = Net::default();
        for at in 0..COUNT {
            let mut config = config(at);
            config.locators[0].sids = vec![EndSid { behavior: END, sid: sid(at, 1, 0), structure: None }];
            assert_eq!(net.add(config), at);
        }
        let mut circuits = [0; COUNT];
        let mut change = |net: &mut Net, at: usize, mut circuit: CircuitConfig, metric: u32, to: &[usize], by: u16| {
            circuit.metric = metric;
            circuit.addresses = vec![link_local(at)];
            circuit.end_x = to.iter().map(|to| (link_local(*to), end_x(at, by, *to))).collect();
            net.speakers[at].change_circuit(net.now, CircuitId(circuits[at]), circuit);
            circuits[at] += 1;
        };
        for (one, other, metric) in &self.links {
            net.join(*one, *other, *metric);
            for (at, to) in [(*one, *other), (*other, *one)] {
                let circuit = CircuitConfig::new(MacAddress([2, 0, 0, 0, at as u8, to as u8]));
                change(&mut net, at, circuit, *metric, &[to], DIRECT);
            }
        }
        for (lan, (members, metric)) in (0..).zip(&self.lans) {
            net.join_lan(&members.iter().map(|member| (*member, 64)).collect::<Vec<_>>(), *metric);
            for at in members {
                let mut circuit = CircuitConfig::new(MacAddress([2, 0, 1, lan as u8, 0, *at as u8]));
                circuit.kind = CircuitType::Broadcast { priority: 64 };
                let others: Vec<usize> = members.iter().copied().filter(|other| other != at).collect();
                change(&mut net, *at, circuit, *metric, &others, COUNT as u16 + lan);
            }
        }
        net.run_ms(30_000);
        net
    }
}

/// In a SID, that an adjacency is by a link and no LAN.
const DIRECT: u16 = 0xFF;

/// A SID of a system: End by its function 1, others with the way and the neighbour.
fn sid(at: usize, function: u16, to: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x5f00, 0, at as u16, function, to, 0, 0, 0)
}

fn end_x(at: usize, by: u16, to: usize) -> EndXSid {
    let sid = sid(at, 0xe000 + by, to as u16);
    EndXSid { neighbour: None, flags: 0, algorithm: 0, weight: 0, behavior: END_X, sid, structure: None }
}

fn link_local(at: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1 + at as u16)
}

fn number(node: NodeId) -> usize {
    usize::from(u16::from_be_bytes([node.system.0[4], node.system.0[5]]))
}

/// Whether an edge fails.
type Fails = Box<dyn Fn(usize, usize) -> bool>;

/// What fails, for each kind of protection that this way has: the best first.
fn failures(ways: &[usize], from: usize, hop: usize) -> Vec<(Protection, Fails)> {
    let lans: Vec<usize> = ways.iter().copied().filter(|way| *way >= COUNT).collect();
    let has_link = ways.contains(&hop);
    let both = |a: usize, b: usize, x: usize, y: usize| (a, b) == (x, y) || (a, b) == (y, x);
    let (of_link, of_node) = (lans.clone(), lans.clone());
    let link =
        move |a: usize, b: usize| of_link.contains(&a) || of_link.contains(&b) || has_link && both(a, b, from, hop);
    let mut all: Vec<(Protection, Fails)> = vec![
        (Protection::LinkAndNode, Box::new(move |a, b| [a, b].iter().any(|end| *end == hop || of_node.contains(end)))),
        (Protection::Link, Box::new(link)),
    ];
    if !lans.is_empty() {
        all.push((Protection::Node, Box::new(move |a, b| a == hop || b == hop)));
        let place =
            move |a: usize, b: usize| lans.iter().any(|lan| both(a, b, *lan, hop)) || has_link && both(a, b, from, hop);
        all.push((Protection::Adjacency, Box::new(place)));
    }
    all
}

/// Sends a packet along a repair path by every choice among equal paths: its costs, all off what fails.
fn follow(
    map: &Map,
    (from, to): (usize, usize),
    fails: &dyn Fn(usize, usize) -> bool,
    repair: &Repair,
    name: &str,
) -> BTreeSet<u64> {
    let old = map.distances(|_, _| false);
    let edges = map.edges();
    let cost = |a: usize, b: usize| {
        assert!(!fails(a, b), "{name}: over what fails, {a}-{b}");
        let found = edges.iter().filter(|(from, to, _)| (*from, *to) == (a, b)).map(|(.., cost)| *cost).min();
        found.unwrap_or_else(|| panic!("{name}: no link {a}-{b}"))
    };
    let by = |at: usize, way: usize, next: usize| {
        if way == next { cost(at, next) } else { cost(at, way) + cost(way, next) }
    };
    let first = number(repair.first);
    // The LAN by which the packet leaves, if it does so by one, is that of the path's pseudonode.
    let begin = repair.path[0];
    let lan_of = |pseudonode: NodeId| {
        let is_it = move |members: &Vec<usize>| [from, first, number(pseudonode)].iter().all(|at| members.contains(at));
        (COUNT..).zip(&map.lans).filter(move |(_, (members, _))| is_it(members)).map(|(lan, _)| lan)
    };
    let ways: Vec<usize> = if begin.pseudonode == 0 { vec![first] } else { lan_of(begin).collect() };
    let is_open = |way: &usize| !fails(from, *way) && !fails(*way, first) && old[from][*way] < FAR;
    let least = ways.iter().filter(|way| is_open(way)).map(|way| by(from, *way, first)).min();
    let least = least.unwrap_or_else(|| panic!("{name}: the first system is not reached"));
    let mut arrived = BTreeSet::new();
    let mut packets = vec![(first, 0, least, 1)];
    while let Some((at, passed, so_far, hops)) = packets.pop() {
        assert!(hops <= 4 * COUNT, "{name}: a loop");
        let toward = |target: usize, passed: usize| {
            let next =
                edges.iter().filter(|(from, next, cost)| *from == at && cost + old[*next][target] == old[at][target]);
            let next: Vec<_> = next.map(|(_, next, _)| (*next, passed, so_far + cost(at, *next), hops + 1)).collect();
            assert!(!next.is_empty(), "{name}: {at} has no way to {target}");
            next
        };
        let Some(segment) = repair.segments.get(passed).map(Ipv6Addr::segments) else {
            if at == to {
                arrived.insert(so_far);
            } else {
                packets.extend(toward(to, passed));
            }
            continue;
        };
        let holder = usize::from(segment[2]);
        if holder != at {
            packets.extend(toward(holder, passed));
        } else if segment[3] == 1 {
            packets.push((at, passed + 1, so_far, hops));
        } else {
            let next = usize::from(segment[4]);
            let way = if segment[3] == 0xe000 + DIRECT { next } else { usize::from(segment[3] - 0xe000) };
            packets.push((next, passed + 1, so_far + by(at, way, next), hops + 1));
        }
    }
    arrived
}

/// All repairs of a network, against the slow model; how many there are of each kind, and over LANs.
fn check(seed: u64, has_node_protection: bool, found: &mut BTreeMap<(Protection, bool), usize>) {
    let map = Map::random(seed);
    let net = map.network();
    for from in 0..COUNT {
        let repairs = net.speakers[from].repairs(Level::Two, has_node_protection, net.now);
        let paths = net.speakers[from].shortest_paths(net.now);
        let old = map.distances(|_, _| false);
        for to in (0..COUNT).filter(|to| *to != from) {
            let Some(route) = paths.prefixes.get(&locator(to)) else {
                assert_eq!(old[from][to], FAR);
                continue;
            };
            assert_eq!(route.distance, old[from][to]);
            let hops: Vec<NodeId> = route.first_hops.iter().copied().collect();
            let [hop] = hops.as_slice() else {
                assert!(repairs.values().all(|of_hop| !of_hop.contains_key(&locator(to))));
                continue;
            };
            let name = format!("seed {seed}: {from} to {to} by {}", number(*hop));
            let ways = map.ways(from, number(*hop));
            let is_wanted = |protection: Protection| {
                has_node_protection || [Protection::Link, Protection::Adjacency].contains(&protection)
            };
            let all = failures(&ways, from, number(*hop)).into_iter().filter(|(protection, _)| is_wanted(*protection));
            let expected = all.map(|(protection, fails)| (protection, map.distances(&fails)[from][to], fails));
            let expected = expected.into_iter().find(|(_, cost, _)| *cost < FAR);
            let repair = repairs.get(hop).and_then(|of_hop| of_hop.get(&locator(to)));
            let Some((protection, cost, fails)) = expected else {
                assert_eq!(repair, None, "{name}");
                continue;
            };
            let repair = repair.unwrap_or_else(|| panic!("{name}: no repair path, of {protection:?}"));
            let name = format!("{name}, by {ways:?}: {repair:?}");
            assert_eq!(repair.protection, protection, "{name}");
            assert_eq!(follow(&map, (from, to), &*fails, repair, &name), [cost].into(), "{name}");
            let is_over_lan = ways.iter().any(|way| *way >= COUNT);
            *found.entry((protection, is_over_lan)).or_default() += 1;
        }
    }
}

#[test]
fn repair_paths_avoid_neighbour_and_lan_where_they_can() {
    let mut found = BTreeMap::new();
    (0..14).for_each(|seed| check(seed, true, &mut found));
    let of_lans = [Protection::LinkAndNode, Protection::Link, Protection::Node, Protection::Adjacency];
    let kinds = of_lans.map(|protection| (protection, true)).into_iter();
    let kinds = kinds.chain([(Protection::LinkAndNode, false), (Protection::Link, false)]);
    assert!(kinds.clone().all(|kind| found.contains_key(&kind)), "{found:?}");
    assert_eq!(found.len(), kinds.count(), "{found:?}");
}

#[test]
fn without_node_protection_they_avoid_the_link() {
    let mut found = BTreeMap::new();
    (0..8).for_each(|seed| check(seed, false, &mut found));
    let kinds = [(Protection::Link, false), (Protection::Link, true), (Protection::Adjacency, true)];
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), kinds, "{found:?}");
}

/// A LAN of three and a link beside it: what 0 has for 1 depends on what else there is.
#[test]
fn a_neighbour_on_a_lan_is_protected_by_what_is_there() {
    let repair = |links: &[(usize, usize, u32)], to: usize| {
        let map = Map { links: links.to_vec(), lans: vec![(vec![0, 1, 2], 10)] };
        let net = map.network();
        let repairs = net.speakers[0].repairs(Level::Two, true, net.now);
        let of_hop = repairs.get(&NodeId::of(system(1)))?;
        let repair = of_hop.get(&locator(to))?.clone();
        Some((repair.protection, number(repair.first), repair.segments))
    };
    // Nothing but the LAN leads to 1.
    assert_eq!(repair(&[], 1), None);
    // 2 has a link to it as well, which is dear: 2 itself would send the packet over the LAN.
    let end_x = |at, to| end_x(at, DIRECT, to).sid;
    assert_eq!(repair(&[(2, 1, 50)], 1), Some((Protection::Adjacency, 2, vec![end_x(2, 1)])));
    // 3 is behind 1, and behind 2 by a longer way: over the LAN, but not by 1.
    assert_eq!(repair(&[(1, 3, 10), (2, 3, 25)], 3), Some((Protection::Node, 2, vec![end_x(2, 3)])));
    // There is a dear link beside the LAN.
    assert_eq!(repair(&[(0, 1, 90)], 1), Some((Protection::Link, 1, vec![])));
    // And one to 3.
    assert_eq!(repair(&[(1, 3, 10), (0, 3, 90)], 3), Some((Protection::LinkAndNode, 3, vec![])));
}
