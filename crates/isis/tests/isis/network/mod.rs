//! Several speakers together: adjacencies, flooding, ageing, and shortest paths against a slow model.

mod areas;
mod lans;
pub(crate) mod net;
mod protection;
mod repairs;
mod topologies;
mod two_levels;

use net::{Net, config, locator, system};
use srdma_isis::tlv::{AdjacencyState, CapabilityFlags, EndSid, Leak, Reachability};
use srdma_isis::{Behaviors, CircuitConfig, CircuitId, Config, IsisDrop, Key, Level, NodeId, NotificationSids};
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

/// Systems 0 to `count` − 1 in a row.
fn row(count: usize) -> Net {
    let mut net = Net::default();
    (0..count).for_each(|number| assert_eq!(net.add(config(number)), number));
    (1..count).for_each(|number| net.join(number - 1, number, 10));
    net
}

fn assert_agreed(net: &Net) {
    let first = net.has(0);
    assert_eq!(first.len(), net.speakers.len(), "an LSP of each system");
    for at in 1..net.speakers.len() {
        assert_eq!(net.has(at), first, "system {at}");
    }
}

#[test]
fn a_chain_of_systems_converges_within_a_second() {
    let mut net = row(6);
    net.run_ms(1000);
    assert!((0..6).all(|at| net.is_adjacent(at)));
    assert_agreed(&net);
    let paths = net.speakers[0].shortest_paths(net.now);
    let reached = &paths.prefixes[&locator(5)];
    assert_eq!(reached.distance, 50);
    assert_eq!(reached.first_hops.iter().copied().collect::<Vec<_>>(), [NodeId::of(system(1))]);
}

#[test]
fn frames_may_be_lost() {
    let mut net = row(8);
    net.lost_one_in = 5;
    net.run_ms(60_000);
    net.lost_one_in = 0;
    net.run_ms(40_000);
    assert_agreed(&net);
}

#[test]
fn a_broken_link_is_detected_by_the_holding_time_and_recovers() {
    let mut net = row(3);
    net.join(0, 2, 100);
    net.run_ms(1000);
    assert_eq!(net.speakers[0].shortest_paths(net.now).prefixes[&locator(2)].distance, 20);
    net.cut.push((0, 1));
    net.run_ms(31_000);
    assert_eq!(net.speakers[0].shortest_paths(net.now).prefixes[&locator(2)].distance, 100);
    net.cut.clear();
    net.run_ms(5000);
    assert_eq!(net.speakers[0].shortest_paths(net.now).prefixes[&locator(2)].distance, 20);
    assert_agreed(&net);
}

#[test]
fn a_restarted_system_learns_its_last_sequence_number() {
    let mut net = row(3);
    net.run_ms(1000);
    let before = net.has(0);
    net.restart(1, config(1));
    net.run_ms(40_000);
    assert_agreed(&net);
    let number = |all: &[(String, u32, u16)]| all.iter().find(|(id, ..)| id.contains("0001.00")).unwrap().1;
    assert!(number(&net.has(0)) > number(&before));
    assert!(net.speakers[1].counters().own_from_elsewhere > 0);
}

#[test]
fn lsps_of_a_system_that_is_gone_expire() {
    let mut net = row(3);
    net.run_ms(1000);
    net.cut.push((1, 2));
    net.run_ms(1_300_000);
    assert_eq!(net.has(0).len(), 2);
    assert_eq!(net.speakers[0].database(Level::Two).len(), 2, "not even its header is left");
}

#[test]
fn lsps_are_refreshed_before_they_expire() {
    let mut net = row(2);
    net.run_ms(1000);
    let before = net.has(1);
    net.run_ms(3_600_000);
    assert_agreed(&net);
    assert!(net.has(1).iter().zip(&before).all(|(after, before)| after.1 > before.1));
}

#[test]
fn too_much_for_one_lsp_continues_in_fragments() {
    let mut net = row(2);
    let many = |count: u16| {
        let address = |number| Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0);
        let prefix = move |number| Prefix::new(address(number), 48).unwrap();
        let reachable =
            move |number| Reachability { metric: 5, leak: Leak::None, is_external: false, prefix: prefix(number) };
        (0..count).map(reachable).collect::<Vec<_>>()
    };
    net.speakers[0].reconfigure(|config| config.prefixes = many(500));
    net.run_ms(1000);
    // 500 prefixes of 12 octets, 1,492 octets an LSP.
    assert_eq!(net.has(1).len(), 1 + 5);
    let paths = net.speakers[1].shortest_paths(net.now);
    assert!(many(500).iter().all(|reachable| paths.prefixes[&reachable.prefix].distance == 15));
    net.speakers[0].reconfigure(|config| config.prefixes = many(3));
    net.run_ms(1000);
    assert_eq!(net.has(1).len(), 1 + 1, "empty fragments are purged");
    assert_eq!(net.speakers[1].shortest_paths(net.now).prefixes.len(), 1 + 3);
    // 256 fragments have an end; the earlier advertisements stay.
    net.speakers[0].reconfigure(|config| config.prefixes = many(40_000));
    net.run_ms(1000);
    assert!(net.speakers[0].counters().lsp_overflows > 0);
    assert_eq!(net.has(1).len(), 1 + 1);
}

#[test]
fn no_path_leads_through_an_overloaded_system() {
    let mut net = Net::default();
    net.add(config(0));
    net.add(Config { is_overloaded: true, ..config(1) });
    net.add(config(2));
    net.join(0, 1, 10);
    net.join(1, 2, 10);
    net.run_ms(1000);
    let paths = net.speakers[0].shortest_paths(net.now);
    assert!(paths.prefixes.contains_key(&locator(1)), "it is reached itself");
    assert!(!paths.prefixes.contains_key(&locator(2)));
    net.speakers[1].reconfigure(|config| config.is_overloaded = false);
    net.run_ms(1000);
    assert!(net.speakers[0].shortest_paths(net.now).prefixes.contains_key(&locator(2)));
}

#[test]
fn two_systems_with_one_id_are_counted_and_do_not_hang() {
    let mut net = row(4);
    net.restart(3, config(0));
    net.run_ms(20_000);
    let counted: u64 = [0, 3].iter().map(|at| net.speakers[*at].counters().own_from_elsewhere).sum();
    assert!(counted > 0);
    assert!(net.speakers[1].database(Level::Two).len() <= 4);
}

#[test]
fn only_systems_with_the_key_are_accepted() {
    for key in [Key::Md5 { secret: b"wan".to_vec().into() }, Key::Sha256 { key_id: 7, secret: b"wan".to_vec().into() }]
    {
        let mut net = Net::default();
        for number in 0..3 {
            net.add(Config { key: Some(key.clone()), ..config(number) });
        }
        net.add(Config { key: Some(Key::Md5 { secret: b"other".to_vec().into() }), ..config(3) });
        (1..4).for_each(|number| net.join(number - 1, number, 10));
        net.run_ms(5000);
        assert_eq!(net.has(0), net.has(1));
        assert_eq!(net.has(0).len(), 3, "{key:?}");
        assert!(net.speakers[2].drops()[&IsisDrop::NotAuthentic] > 0);
        assert!(!net.is_adjacent(3));
        // Its purge is signed, too.
        net.cut.push((1, 2));
        net.run_ms(1_300_000);
        assert_eq!(net.speakers[0].database(Level::Two).len(), 2);
    }
}

#[test]
fn sids_of_a_node_without_the_c_flag_do_not_count() {
    const BEHAVIORS: Behaviors = Behaviors { end_c: 32769, end_e: 32770 };
    const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 1);
    const ELSEWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 2);
    let mut net = row(3);
    let sid = |function: u16| Ipv6Addr::new(0x5f00, 0, 0, function, 0, 0, 0, 0);
    net.speakers[0].reconfigure(|config| {
        config.capability.srv6 = Some(CapabilityFlags::CONGESTION_NOTIFICATION);
        let sids = [(32769, sid(0xC000)), (32770, sid(0xD000))];
        config.locators[0].sids.extend(sids.map(|(behavior, sid)| EndSid { behavior, sid, structure: None }));
        let of = |prefix, is_external| Reachability { metric: 0, leak: Leak::None, is_external, prefix };
        let own = [of(Prefix::host(LOOPBACK), false), of(Prefix::host(ELSEWHERE), true), of(locator(0), false)];
        config.prefixes = own.to_vec();
    });
    net.run_ms(1000);
    let table = |net: &Net| NotificationSids::new(net.speakers[2].learned(net.now).values(), BEHAVIORS);
    let outer_source = Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0x99);
    assert_eq!(table(&net).end_c(outer_source), Some(sid(0xC000)), "D63");
    assert_eq!(table(&net).end_e(outer_source), Some(sid(0xD000)));
    assert_eq!(table(&net).end_c(LOOPBACK), Some(sid(0xC000)), "tunnels begin at the loopback, too");
    assert_eq!(table(&net).end_c(ELSEWHERE), None, "SIDs redistributed from another protocol are not trusted");
    assert_eq!(table(&net).end_c(locator(1).address()), None, "node 1 announces none");
    // The flag disappears, the SIDs stay (D65).
    net.speakers[0].reconfigure(|config| config.capability.srv6 = Some(CapabilityFlags::OAM));
    net.run_ms(1000);
    assert_eq!(table(&net).end_c(outer_source), None);
}

/// Numbers below a limit, by chance.
fn chance(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    }
}

/// A third of all pairs, with metrics up to this one.
fn random_links(count: usize, most: u64, below: &mut impl FnMut(u64) -> u64) -> Vec<(usize, usize, u32)> {
    let mut links = Vec::new();
    for one in 0..count {
        for other in 0..one {
            if below(3) == 0 {
                links.push((one, other, 1 + below(most) as u32));
            }
        }
    }
    links
}

/// The shortest link of every pair.
fn direct_links<const COUNT: usize>(links: &[(usize, usize, u32)]) -> [[u64; COUNT]; COUNT] {
    let mut distance = [[u64::MAX / 4; COUNT]; COUNT];
    (0..COUNT).for_each(|at| distance[at][at] = 0);
    for (one, other, metric) in links {
        for (from, to) in [(*one, *other), (*other, *one)] {
            distance[from][to] = distance[from][to].min(u64::from(*metric));
        }
    }
    distance
}

/// Floyd and Warshall's: the distance of every pair.
fn all_distances<const COUNT: usize>(links: &[(usize, usize, u32)]) -> [[u64; COUNT]; COUNT] {
    let mut distance = direct_links::<COUNT>(links);
    for via in 0..COUNT {
        for one in 0..COUNT {
            for other in 0..COUNT {
                distance[one][other] = distance[one][other].min(distance[one][via] + distance[via][other]);
            }
        }
    }
    distance
}

#[test]
fn shortest_paths_are_those_of_a_slow_model() {
    for seed in 0..20_u64 {
        let mut below = chance(seed);
        const COUNT: usize = 9;
        let mut net = Net::default();
        (0..COUNT).for_each(|number| {
            net.add(config(number));
        });
        let links = random_links(COUNT, 30, &mut below);
        links.iter().for_each(|(one, other, metric)| net.join(*one, *other, *metric));
        let distance = all_distances::<COUNT>(&links);
        net.run_ms(2000);
        for (one, distances) in distance.iter().enumerate() {
            let paths = net.speakers[one].shortest_paths(net.now);
            for (other, expected) in distances.iter().enumerate().filter(|(other, _)| *other != one) {
                let found = paths.prefixes.get(&locator(other));
                let expected = Some(*expected).filter(|distance| *distance < u64::MAX / 4);
                assert_eq!(found.map(|found| found.distance), expected, "seed {seed}, {one} to {other}");
                let hops = found.into_iter().flat_map(|found| &found.first_hops);
                for hop in hops {
                    let hop = usize::from(u16::from_be_bytes([hop.system.0[4], hop.system.0[5]]));
                    let metric = distances[hop];
                    assert_eq!(Some(metric + distance[hop][other]), expected, "seed {seed}, by {hop}");
                }
            }
        }
    }
}

#[test]
fn every_number_has_been_used() {
    let mut net = Net::default();
    net.speakers.push(srdma_isis::Speaker::new(config(0), u32::MAX, 1));
    net.add(config(1));
    net.join(0, 1, 10);
    net.run_ms(1000);
    assert_eq!(net.has(1).len(), 1, "purged: the number cannot go up");
    // LSP lifetime and ZeroAgeLifetime later all systems have removed it.
    net.run_ms(1_262_000);
    assert_eq!(net.has(1).len(), 2);
    assert_eq!(net.has(1)[0].1, 1);
}

#[test]
fn a_neighbour_that_shuts_down_is_removed_at_once() {
    let mut net = row(3);
    net.run_ms(1000);
    let now = net.now;
    net.speakers[1].retire(now);
    net.run_ms(100);
    assert!(
        [0, 2].iter().all(|at| net.speakers[*at].circuits_to(Level::Two, system(1)).count() == 0),
        "30 s before its time"
    );
    assert!(net.speakers[0].shortest_paths(net.now).prefixes.is_empty());
}

#[test]
fn a_circuit_can_change_while_its_adjacency_is_up() {
    let mut net = row(3);
    net.run_ms(1000);
    let now = net.now;
    let mut circuit = CircuitConfig::new(MacAddress([2, 0, 0, 0, 1, 7]));
    circuit.metric = 70;
    circuit.addresses = vec!["fe80::7".parse().unwrap()];
    net.speakers[1].change_circuit(now, CircuitId(0), circuit);
    net.run_ms(1000);
    assert_eq!(net.speakers[2].shortest_paths(net.now).prefixes[&locator(0)].distance, 80);
    assert_eq!(
        net.speakers[0].adjacency(Level::Two, CircuitId(0)).unwrap().addresses,
        ["fe80::7".parse::<Ipv6Addr>().unwrap()]
    );
}

/// D110: another protocol has lost the neighbour. The path is gone at once, the handshake begins anew with the next hello.
#[test]
fn a_lost_neighbour_is_left_at_once_and_comes_back_by_its_hellos() {
    let mut net = row(3);
    net.run_ms(5000);
    let reaches = |net: &Net| net.speakers[0].shortest_paths(net.now).prefixes.contains_key(&locator(2));
    assert!(reaches(&net));
    let circuit = net.speakers[0].circuits_to(Level::Two, system(1)).next().expect("adjacent").0;
    net.speakers[0].lose_neighbour(net.now, circuit, system(1));
    assert!(net.speakers[0].take_changes().adjacencies);
    net.speakers[0].tick(net.now);
    assert!(
        net.speakers[0].adjacency(Level::Two, circuit).is_none_or(|adjacency| adjacency.state != AdjacencyState::Up)
    );
    assert!(!reaches(&net), "the own LSP is new");
    // Without an adjacency there is nothing to lose.
    net.speakers[0].lose_neighbour(net.now, circuit, system(1));
    assert_eq!(net.speakers[0].counters().neighbours_lost, 1);
    net.run_ms(5000);
    assert!(net.is_adjacent(0) && net.is_adjacent(1) && reaches(&net));
}
