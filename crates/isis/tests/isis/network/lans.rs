//! LANs (ISO 10589 section 8.4): elections, pseudonodes, flooding by the designated system's CSNPs, and its death.

use super::net::{Net, config, config_of_ipv6, locator, system};
use super::{all_distances, chance, direct_links};
use srdma_isis::tlv::{AdjacencyState, Leak, LspEntry, Neighbour, Reachability, TopologyId};
use srdma_isis::{
    CircuitConfig, CircuitId, CircuitType, Config, HelloRefusal, IsisDrop, Key, Level, Levels, Lsp, LspFlags, LspId,
    NodeId, Pdu, PduKind, frame,
};
use srdma_wire::MacAddress;
use std::collections::{BTreeMap, BTreeSet};

const LAN: CircuitId = CircuitId(0);

/// Systems on one LAN, with these priorities.
fn lan(priorities: &[u8]) -> Net {
    let mut net = Net::default();
    (0..priorities.len()).for_each(|number| assert_eq!(net.add(config(number)), number));
    let members: Vec<_> = priorities.iter().copied().enumerate().collect();
    net.join_lan(&members, 10);
    net
}

/// The pseudonodes that the live systems know by their hellos.
fn designated(net: &Net) -> BTreeSet<Option<NodeId>> {
    let live = (0..net.speakers.len()).filter(|at| !net.dead.contains(at));
    live.map(|at| net.speakers[at].designated(Level::Two, LAN)).collect()
}

fn of(number: usize) -> BTreeSet<Option<NodeId>> {
    BTreeSet::from([Some(NodeId { system: system(number), pseudonode: 1 })])
}

fn members(net: &Net, at: usize, pseudonode: NodeId) -> BTreeSet<NodeId> {
    let stored = net.speakers[at].database(Level::Two).get(LspId { node: pseudonode, fragment: 0 }).expect("its LSP");
    let found = Neighbour::of_topology(stored.lsp().tlvs(), TopologyId::STANDARD);
    found.inspect(|member| assert_eq!(member.metric, 0)).map(|member| member.node).collect()
}

/// That every live system has the same database, and a route to every other one, at this distance.
#[track_caller]
fn assert_full(net: &Net, distance: u64) {
    let live: Vec<usize> = (0..net.speakers.len()).filter(|at| !net.dead.contains(at)).collect();
    for at in &live {
        let paths = net.speakers[*at].shortest_paths(net.now);
        let found: BTreeMap<_, _> = paths
            .prefixes
            .iter()
            .map(|(prefix, reached)| (*prefix, (reached.distance, reached.first_hops.clone())))
            .collect();
        let expected = live
            .iter()
            .filter(|other| *other != at)
            .map(|other| (locator(*other), (distance, BTreeSet::from([NodeId::of(system(*other))]))));
        assert_eq!(found, expected.collect(), "system {at}");
        assert_eq!(net.has(*at), net.has(live[0]), "system {at}");
    }
}

#[test]
fn the_highest_priority_is_designated_and_paths_cross_its_pseudonode() {
    let mut net = lan(&[64, 64, 100, 0]);
    net.run_ms(20_000);
    assert_eq!(designated(&net), of(2));
    assert_full(&net, 10);
    let pseudonode = NodeId { system: system(2), pseudonode: 1 };
    assert_eq!(members(&net, 0, pseudonode), (0..4).map(|number| NodeId::of(system(number))).collect());
    assert_eq!(net.has(0).len(), 4 + 1, "an LSP of each, and one of the LAN");
    assert!(net.speakers.iter().all(|speaker| speaker.drops().is_empty() && speaker.overload().is_none()));
    let nodes = &net.speakers[0].shortest_paths(net.now).nodes;
    assert_eq!(nodes[&pseudonode].distance, 10);
}

#[test]
fn among_equal_priorities_the_highest_mac_address_is_designated() {
    let mut net = lan(&[64, 64, 64]);
    net.run_ms(20_000);
    assert_eq!(designated(&net), of(2));
    assert_full(&net, 10);
}

/// No system is designated, and no pseudonode announced, where there is no other system.
#[test]
fn a_system_alone_has_no_pseudonode() {
    let mut net = lan(&[64]);
    net.run_ms(60_000);
    assert_eq!(designated(&net), BTreeSet::from([None]));
    assert_eq!(net.has(0).len(), 1);
}

/// The designated system dies without a word: after its holding time, a third of that of others, the next one takes over,
/// and paths lead by its pseudonode.
#[test]
fn the_death_of_the_designated_system() {
    let mut net = lan(&[1, 2, 3, 4]);
    net.run_ms(20_000);
    assert_eq!(designated(&net), of(3));
    net.dead.push(3);
    net.run_ms(8_900);
    assert_eq!(designated(&net), of(3), "its hellos hold for 10 s");
    net.run_ms(1_300);
    assert_eq!(designated(&net), of(2));
    net.run_ms(300);
    assert_full(&net, 10);
    assert_eq!(members(&net, 0, NodeId { system: system(2), pseudonode: 1 }).len(), 3);
    // It comes back without memory, and is designated again when it has listened for two hellos.
    net.dead.clear();
    net.restart(3, config(3));
    net.run_ms(5_000);
    assert_eq!(designated(&net), of(2));
    net.run_ms(15_000);
    assert_eq!(designated(&net), of(3));
    assert_full(&net, 10);
    // The LSP of the other pseudonode is purged, and gone after a minute.
    net.run_ms(70_000);
    assert_eq!(net.speakers[0].database(Level::Two).len(), 4 + 1);
}

#[test]
fn a_designated_system_that_stops_is_succeeded_at_once() {
    let mut net = lan(&[1, 2, 3]);
    net.run_ms(20_000);
    let now = net.now;
    net.speakers[2].retire(now);
    net.run_ms(1_500);
    net.dead.push(2);
    assert_eq!(designated(&net), of(1));
    assert_full(&net, 10);
}

/// On a LAN nothing is acknowledged: what was lost comes by CSNPs and requests.
#[test]
fn lost_frames_are_requested() {
    let mut net = lan(&[64, 64, 64, 64, 64]);
    net.lost_one_in = 4;
    net.run_ms(60_000);
    for round in 0..20 {
        net.speakers[round % 5].reconfigure(|config| config.hostname = format!("round{round}"));
        net.run_ms(3_000);
    }
    net.lost_one_in = 0;
    net.run_ms(60_000);
    assert_full(&net, 10);
}

#[test]
fn a_new_member_gets_the_database() {
    let mut net = Net::default();
    (0..12).for_each(|number| assert_eq!(net.add(config(number)), number));
    // A row behind system 0; system 11 is not there yet.
    (1..8).for_each(|number| net.join(number - 1, number, 10));
    net.join_lan(&[(0, 64), (8, 64), (9, 64), (10, 64), (11, 127)], 10);
    net.dead.push(11);
    net.run_ms(30_000);
    net.dead.clear();
    net.restart(11, config(11));
    net.run_ms(2_000);
    let paths = net.speakers[11].shortest_paths(net.now);
    assert_eq!(paths.prefixes.len(), 11, "before it is designated");
    assert_eq!(paths.prefixes[&locator(7)].distance, 80);
    assert_eq!(paths.prefixes[&locator(7)].first_hops, BTreeSet::from([NodeId::of(system(0))]));
    net.run_ms(30_000);
    assert_eq!(net.speakers[11].shortest_paths(net.now).prefixes.len(), 11);
    assert_eq!(net.has(11), net.has(7));
}

/// Two systems do not hear each other, as behind a bridge that fails in part: each has an adjacency with the third alone.
#[test]
fn hearing_is_needed_both_ways() {
    let mut net = lan(&[64, 64, 64]);
    net.cut.push((0, 1));
    net.run_ms(30_000);
    let neighbours = |at: usize| {
        net.speakers[at].adjacencies(Level::Two, LAN).map(|adjacency| adjacency.neighbour).collect::<Vec<_>>()
    };
    assert_eq!((neighbours(0), neighbours(1)), (vec![system(2)], vec![system(2)]));
    assert_eq!(designated(&net), of(2));
}

/// Equal paths by a LAN and by a link, and a LAN beside another.
#[test]
fn paths_by_lans_and_links() {
    let mut net = Net::default();
    (0..4).for_each(|number| assert_eq!(net.add(config(number)), number));
    net.join_lan(&[(0, 64), (1, 64), (2, 64)], 10);
    net.join_lan(&[(1, 64), (2, 64), (3, 64)], 5);
    net.join(0, 3, 15);
    net.run_ms(20_000);
    let paths = net.speakers[0].shortest_paths(net.now);
    assert_eq!(paths.prefixes[&locator(3)].distance, 15);
    let hops = [1, 2, 3].map(|number| NodeId::of(system(number)));
    assert_eq!(paths.prefixes[&locator(3)].first_hops, BTreeSet::from(hops));
    assert_eq!(paths.prefixes[&locator(2)].distance, 10);
    assert_eq!(paths.prefixes[&locator(2)].first_hops, BTreeSet::from([hops[1]]));
}

/// RFC 5120 section 3.2: systems of other topologies are neighbours on a LAN, so that all elect the same one, and no paths
/// lead to them.
#[test]
fn topologies_share_the_pseudonode() {
    let mut net = Net::default();
    (0..4).for_each(|number| {
        assert_eq!(net.add(if number < 2 { config_of_ipv6(number) } else { config(number) }), number);
    });
    net.join_lan(&[(0, 64), (1, 64), (2, 64), (3, 64)], 10);
    net.run_ms(20_000);
    assert_eq!(designated(&net), of(3));
    for (at, other) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        let paths = net.speakers[at].shortest_paths(net.now);
        assert_eq!(paths.prefixes.keys().copied().collect::<Vec<_>>(), [locator(other)], "system {at}");
        assert_eq!(net.speakers[at].adjacencies(Level::Two, LAN).count(), 3);
    }
    assert_eq!(net.speakers[0].circuits_to(Level::Two, system(1)).count(), 1);
    assert_eq!(net.speakers[0].circuits_to(Level::Two, system(2)).count(), 0);
}

/// Hellos, pseudonodes and their purges are signed.
#[test]
fn only_systems_with_the_key_are_on_the_lan() {
    for key in [Key::Md5 { secret: b"lan".to_vec().into() }, Key::Sha256 { key_id: 7, secret: b"lan".to_vec().into() }]
    {
        let mut net = Net::default();
        for number in 0..4 {
            net.add(Config { key: (number < 3).then(|| key.clone()), ..config(number) });
        }
        net.join_lan(&[(0, 3), (1, 2), (2, 1), (3, 127)], 10);
        net.run_ms(20_000);
        assert_eq!(net.speakers[0].designated(Level::Two, LAN), Some(NodeId { system: system(0), pseudonode: 1 }));
        net.dead.push(3);
        assert_full(&net, 10);
        net.dead.push(0);
        net.run_ms(20_000);
        assert_eq!(designated(&net), of(1));
        assert_full(&net, 10);
        let dropped = &net.speakers[1].drops()[&IsisDrop::NotAuthentic];
        assert!(*dropped > 5 && net.speakers[1].drops().len() == 1, "{:?}", net.speakers[1].drops());
    }
}

/// A pseudonode that lists another pseudonode, and one that its owner does not list, lead nowhere.
#[test]
fn links_of_pseudonodes_are_to_systems_that_list_them() {
    let mut net = lan(&[64, 64]);
    net.run_ms(20_000);
    let forged = |number: usize, pseudonode: u8| NodeId { system: system(number), pseudonode };
    let inject = |net: &mut Net, node: NodeId, neighbours: &[NodeId]| {
        let neighbours: Vec<Neighbour> =
            neighbours.iter().map(|node| Neighbour { node: *node, metric: 0, end_x: Vec::new() }).collect();
        let mut tlvs = Vec::new();
        Neighbour::emit_all(&neighbours, TopologyId::STANDARD, &mut tlvs);
        Reachability::emit_all(
            &[Reachability { metric: 0, leak: Leak::None, is_external: false, prefix: locator(99) }],
            TopologyId::STANDARD,
            &mut tlvs,
        );
        let entry = LspEntry { lifetime_s: 1200, id: LspId { node, fragment: 0 }, sequence: u32::MAX / 2, checksum: 0 };
        let lsp = Lsp::new(Level::Two, entry, LspFlags { is_overloaded: true, ..LspFlags::default() }, &tlvs);
        let from = MacAddress([2, 0, 1, 0, 0, 1]);
        net.inject((0, LAN), frame::wrap(from, lsp.octets()).unwrap());
        net.run_ms(100);
    };
    let present = forged(1, 1);
    // System 7 would be behind a pseudonode of system 8, behind the LAN's.
    inject(&mut net, forged(8, 2), &[present, NodeId::of(system(7))]);
    inject(&mut net, NodeId::of(system(7)), &[forged(8, 2)]);
    inject(&mut net, present, &[NodeId::of(system(0)), NodeId::of(system(1)), forged(8, 2)]);
    let paths = net.speakers[0].shortest_paths(net.now);
    assert!(!paths.nodes.contains_key(&NodeId::of(system(7))) && !paths.nodes.contains_key(&forged(8, 2)));
    net.run_ms(2_000);
    let paths = net.speakers[0].shortest_paths(net.now);
    assert_eq!(paths.prefixes.keys().copied().collect::<Vec<_>>(), [locator(1)], "the pseudonode is originated again");
}

/// A circuit changes its type, and both ends follow.
#[test]
fn types_of_circuits_do_not_mix() {
    let mut net = lan(&[64, 64]);
    net.run_ms(20_000);
    assert_full(&net, 10);
    let point_to_point = |number: u8| CircuitConfig::new(MacAddress([2, 0, 1, 0, 0, number]));
    let now = net.now;
    net.speakers[0].change_circuit(now, LAN, point_to_point(0));
    net.run_ms(40_000);
    for at in 0..2 {
        assert!(net.speakers[at].drops()[&IsisDrop::Hello(HelloRefusal::OtherType)] > 5);
        assert!(net.speakers[at].adjacency(Level::Two, LAN).is_none());
    }
    let now = net.now;
    net.speakers[1].change_circuit(now, LAN, point_to_point(1));
    net.run_ms(5_000);
    assert_full(&net, 10);
    assert_eq!(designated(&net), BTreeSet::from([None]));
}

#[test]
fn another_priority_is_another_election() {
    let mut net = lan(&[64, 64, 64]);
    net.run_ms(20_000);
    let mut circuit = CircuitConfig::new(MacAddress([2, 0, 1, 0, 0, 0]));
    circuit.kind = CircuitType::Broadcast { priority: 65 };
    let now = net.now;
    net.speakers[0].change_circuit(now, LAN, circuit);
    net.run_ms(2_000);
    assert_eq!(designated(&net), of(0));
    assert_full(&net, 10);
}

/// D110 on a LAN: one neighbour is lost, the others are not.
#[test]
fn one_neighbour_may_be_lost() {
    let mut net = lan(&[64, 64, 64]);
    net.run_ms(20_000);
    let now = net.now;
    net.speakers[0].lose_neighbour(now, LAN, system(1));
    net.speakers[0].lose_neighbour(now, LAN, system(9));
    let up =
        |net: &Net| net.speakers[0].adjacencies(Level::Two, LAN).filter(|it| it.state == AdjacencyState::Up).count();
    assert_eq!((up(&net), net.speakers[0].counters().neighbours_lost), (1, 1));
    net.run_ms(10_000);
    assert_eq!(up(&net), 2);
    assert_full(&net, 10);
}

/// A row of LANs, compared with Floyd and Warshall's over a model in which a LAN is a clique.
#[test]
fn shortest_paths_over_lans_are_those_of_a_slow_model() {
    const COUNT: usize = 8;
    for seed in 0..10_u64 {
        let mut below = chance(seed);
        let mut net = Net::default();
        (0..COUNT).for_each(|number| assert_eq!(net.add(config(number)), number));
        let mut links = Vec::new();
        for _ in 0..4 {
            let members: Vec<usize> = (0..COUNT).filter(|_| below(3) == 0).collect();
            let metric = 1 + below(30) as u32;
            let with_priorities: Vec<(usize, u8)> = members.iter().map(|at| (*at, below(128) as u8)).collect();
            net.join_lan(&with_priorities, metric);
            for one in &members {
                links.extend(members.iter().filter(|other| *other != one).map(|other| (*one, *other, metric)));
            }
        }
        for _ in 0..3 {
            let (one, other, metric) =
                (below(COUNT as u64) as usize, below(COUNT as u64) as usize, 1 + below(30) as u32);
            if one != other {
                net.join(one, other, metric);
                links.push((one, other, metric));
            }
        }
        let direct = direct_links::<COUNT>(&links);
        let distance = all_distances::<COUNT>(&links);
        // A LAN with one member alone keeps it overloaded for a minute (D94).
        net.run_ms(70_000);
        for (one, distances) in distance.iter().enumerate() {
            let paths = net.speakers[one].shortest_paths(net.now);
            for (other, expected) in distances.iter().enumerate().filter(|(other, _)| *other != one) {
                let found = paths.prefixes.get(&locator(other));
                let expected = Some(*expected).filter(|distance| *distance < u64::MAX / 4);
                assert_eq!(found.map(|found| found.distance), expected, "seed {seed}, {one} to {other}");
                let hops: BTreeSet<usize> = found
                    .into_iter()
                    .flat_map(|found| &found.first_hops)
                    .map(|hop| usize::from(u16::from_be_bytes([hop.system.0[4], hop.system.0[5]])))
                    .collect();
                // All neighbours on shortest paths, no other.
                let is_first =
                    |hop: &usize| expected.is_some_and(|all| direct[one][*hop] + distance[*hop][other] == all);
                let first: BTreeSet<usize> = (0..COUNT).filter(|hop| *hop != one && is_first(hop)).collect();
                assert_eq!(hops, first, "seed {seed}, {one} to {other}");
            }
        }
    }
}

/// A LAN of each level. Its frames are to the group of the level (ISO 10589 section 8.4.8).
#[test]
fn levels_do_not_meet_on_a_lan() {
    let mut net = Net::default();
    for number in 0..6 {
        let levels = if number < 3 { Levels::One } else { Levels::Two };
        let areas = if number == 2 { vec![vec![0x49, 0, 2]] } else { config(number).areas };
        net.add(Config { levels, areas, ..config(number) });
    }
    net.join_lan(&[(0, 64), (1, 64), (2, 64), (3, 64), (4, 64), (5, 64)], 10);
    net.run_ms(20_000);
    let reached = |at: usize| net.speakers[at].shortest_paths(net.now).prefixes.keys().copied().collect::<Vec<_>>();
    assert_eq!((reached(0), reached(1), reached(2)), (vec![locator(1)], vec![locator(0)], Vec::new()));
    assert_eq!(reached(3), [locator(4), locator(5)]);
    let designated = |at: usize| {
        let level = if at < 3 { Level::One } else { Level::Two };
        net.speakers[at].designated(level, LAN).map(|pseudonode| pseudonode.system)
    };
    assert_eq!((designated(0), designated(2), designated(3)), (Some(system(1)), None, Some(system(5))));
    let refused = net.speakers[0].drops().keys().map(|reason| reason.name()).collect::<Vec<_>>();
    assert_eq!(refused, ["hello_other_level", "hello_other_area", "other_level"]);
    for (at, group, level) in [(0, 0x14, Level::One), (5, 0x15, Level::Two)] {
        let mut sent = std::iter::from_fn(|| net.speakers[at].poll_transmit());
        assert!(sent.next().is_none());
        let now = net.now.after_ns(4_000_000_000);
        net.speakers[at].tick(now);
        let (_, octets) = net.speakers[at].poll_transmit().expect("a hello");
        assert_eq!(octets[..6], [0x01, 0x80, 0xC2, 0x00, 0x00, group]);
        let pdu = Pdu::parse(frame::unwrap(&octets).unwrap()).unwrap();
        assert_eq!(pdu.kind, PduKind::LanHello(level));
    }
}
