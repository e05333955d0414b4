//! Networks of speakers in virtual time, judged by checks that share no code with them.

use crate::net::{Net, chance, config, locator, loopback, router};
use srdma_ospf::lsa::{LsType, RouterBody};
use srdma_ospf::{CircuitConfig, CircuitId, Config, LsaHeader, LsaKey, NeighbourState, OspfDrop, Place};
use std::net::Ipv6Addr;

const FAR: u64 = u64::MAX / 4;

/// A third of all pairs, with their metrics.
fn random_links(count: usize, below: &mut impl FnMut(u64) -> u64) -> Vec<(usize, usize, u16)> {
    let mut links = Vec::new();
    for one in 0..count {
        for other in 0..one {
            if below(3) == 0 {
                links.push((one, other, 1 + below(30) as u16));
            }
        }
    }
    links
}

/// Floyd and Warshall's: the distance of every pair. None of the `dead` counts.
fn all_distances(count: usize, links: &[(usize, usize, u16)], dead: &[usize]) -> Vec<Vec<u64>> {
    let mut distance = vec![vec![FAR; count]; count];
    (0..count).for_each(|at| distance[at][at] = 0);
    for (one, other, metric) in links.iter().filter(|(one, other, _)| !dead.contains(one) && !dead.contains(other)) {
        distance[*one][*other] = (*metric).into();
        distance[*other][*one] = (*metric).into();
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

/// The database of each pair that is connected is the same, paths and their first hops are those of the slow model.
fn check(net: &Net, links: &[(usize, usize, u16)], dead: &[usize], seed: u64) {
    let count = net.speakers.len();
    let distance = all_distances(count, links, dead);
    for one in (0..count).filter(|one| !dead.contains(one)) {
        let paths = net.speakers[one].paths();
        for other in (0..count).filter(|other| *other != one) {
            let expected = Some(distance[one][other]).filter(|distance| *distance < FAR);
            for prefix in [locator(other), loopback(other)] {
                let found = paths.prefixes.get(&prefix);
                assert_eq!(found.map(|found| found.distance), expected, "seed {seed}, {one} to {other}");
                for hop in found.into_iter().flat_map(|found| &found.first_hops) {
                    let hop = (hop.0 & 0xFFFF) as usize - 1;
                    let link = links.iter().find(|(a, b, _)| (*a, *b) == (one, hop) || (*b, *a) == (one, hop));
                    let metric = u64::from(link.expect("a neighbour").2);
                    assert_eq!(Some(metric + distance[hop][other]), expected, "seed {seed}, by {hop}");
                }
            }
            if expected.is_some() {
                assert_eq!(net.has(one), net.has(other), "seed {seed}, {one} and {other}");
            }
        }
    }
}

fn random_net(seed: u64) -> (Net, Vec<(usize, usize, u16)>) {
    let count = 9;
    let mut net = Net::new(seed);
    (0..count).for_each(|number| {
        net.add(config(number));
    });
    let links = random_links(count, &mut chance(seed + 1));
    links.iter().for_each(|(one, other, metric)| net.join(*one, *other, *metric));
    (net, links)
}

#[test]
fn paths_are_those_of_a_slow_model() {
    for seed in 0..20 {
        let (mut net, links) = random_net(seed);
        net.run_s(60);
        check(&net, &links, &[], seed);
        assert!(net.speakers.iter().all(|speaker| speaker.counters().restarted_exchanges == 0), "seed {seed}");
    }
}

/// Links lose a tenth of all packets, and deliver as many twice and late; then they are sound.
#[test]
fn databases_are_equal_after_losses() {
    for seed in 0..20 {
        let (mut net, links) = random_net(seed);
        net.lost_per_mille = 100;
        net.run_s(300);
        // Announcements change meanwhile.
        for at in 0..3 {
            net.speakers[at].reconfigure(|config| config.hostname.push('x'));
            net.run_s(7);
        }
        net.lost_per_mille = 0;
        net.run_s(120);
        check(&net, &links, &[], seed);
        let unacknowledged = |speaker: &srdma_ospf::Speaker| {
            (0..9).filter_map(|circuit| speaker.neighbour(CircuitId(circuit))).any(|other| other.unacknowledged() > 0)
        };
        assert!(!net.speakers.iter().any(unacknowledged), "seed {seed}: all LSAs are acknowledged");
        let retransmitted: u64 = net.speakers.iter().map(|speaker| speaker.counters().retransmitted).sum();
        assert!(retransmitted > 0, "seed {seed}: links have lost packets");
    }
}

/// After RouterDeadInterval no path leads to or through a dead router, and after MaxAge it is forgotten.
#[test]
fn every_router_that_dies_is_forgotten() {
    for seed in 0..10 {
        let (mut net, links) = random_net(seed);
        net.lost_per_mille = 30;
        net.run_s(120);
        let dead = [(seed % 9) as usize, (seed as usize + 4) % 9];
        net.dead.extend(dead);
        net.run_s(200);
        net.lost_per_mille = 0;
        net.run_s(100);
        check(&net, &links, &dead, seed);
        net.run_s(4000);
        check(&net, &links, &dead, seed);
        for at in (0..9).filter(|at| !dead.contains(at)) {
            let known = net.speakers[at].learned();
            assert!(dead.iter().all(|dead| !known.contains_key(&router(*dead))), "seed {seed}, {at}: {known:?}");
        }
        // Those that live are refreshed meanwhile, before others end their time.
        let ended = |at: usize| net.speakers[at].counters().own_from_elsewhere;
        assert!((0..9).all(|at| ended(at) == 0), "seed {seed}");
    }
}

#[test]
fn a_link_that_fails_is_avoided_and_comes_back() {
    let mut net = Net::row(3);
    net.join(0, 2, 50);
    net.run_s(60);
    let distance = |net: &Net| net.speakers[0].paths().prefixes[&locator(2)].distance;
    assert_eq!(distance(&net), 20);
    net.cut.push((0, 1));
    net.run_s(60);
    assert_eq!(distance(&net), 50);
    net.cut.clear();
    net.run_s(60);
    assert_eq!(distance(&net), 20);
}

/// The number of its LSAs goes on where it was, which its neighbours know (RFC 2328 section 13.4); what it announces no
/// more disappears.
#[test]
fn a_router_that_has_lost_its_memory_learns_its_numbers() {
    let mut net = Net::row(3);
    net.run_s(60);
    for at in 0..4 {
        net.speakers[1].reconfigure(|config| config.hostname = format!("name{at}"));
        net.run_s(10);
    }
    let number = |net: &Net| {
        let key = LsaKey { kind: LsType::INFORMATION, id: 0, router: router(1) };
        net.speakers[2].database().get(Place { circuit: None, key }).expect("there").lsa().header().sequence
    };
    assert_eq!(number(&net), LsaHeader::FIRST_SEQUENCE + 4);
    let without = Config { locators: Vec::new(), ..config(1) };
    net.restart(1, without);
    net.run_s(120);
    assert!(number(&net) > LsaHeader::FIRST_SEQUENCE + 4);
    assert!(net.speakers[1].counters().own_from_elsewhere > 0);
    assert_eq!(net.routers(2, LsType::LOCATOR), [router(0), router(2)], "flushed");
    assert_eq!(net.speakers[0].learned()[&router(1)].hostname.as_deref(), Some("node1"));
    assert_eq!(net.speakers[2].paths().prefixes[&locator(0)].distance, 20);
}

#[test]
fn a_router_that_stops_is_left_at_once() {
    let mut net = Net::row(3);
    net.run_s(60);
    let now = net.now;
    net.speakers[1].retire(now);
    net.run_s(1);
    assert!(net.speakers[0].circuits_to(router(1)).next().is_none(), "40 s before its time");
    assert!(net.speakers[0].paths().prefixes.is_empty());
    assert!(!net.speakers[0].learned().contains_key(&router(1)), "its LSAs are flushed");
}

/// R-bit: nothing goes through, the router itself stays in reach.
#[test]
fn an_overloaded_router_is_no_transit() {
    let mut net = Net::row(3);
    net.run_s(60);
    net.speakers[1].reconfigure(|config| config.is_overloaded = true);
    net.run_s(20);
    let paths = net.speakers[0].paths();
    assert!(paths.prefixes.contains_key(&locator(1)) && !paths.prefixes.contains_key(&locator(2)));
}

/// D278: the refused LSAs are counted, others are asked to go around, and after a minute without a refusal no more.
#[test]
fn a_database_that_is_full_refuses_and_says_so() {
    let mut net = Net::new(1);
    net.add(config(0));
    net.add(Config { limit_lsas: 12, ..config(1) });
    net.add(config(2));
    net.add(config(3));
    (1..4).for_each(|number| net.join(number - 1, number, 10));
    net.run_s(300);
    let small = &net.speakers[1];
    assert!(small.drops()[&OspfDrop::DatabaseFull] > 0);
    // Its own LSAs have their places in any case: five of the area, two of links.
    assert!(small.database().len() <= 12 + 7, "{}", small.database().len());
    assert!(small.is_overloaded());
    net.speakers[1].reconfigure(|config| config.limit_lsas = 1000);
    net.run_s(300);
    assert!(!net.speakers[1].is_overloaded());
    assert_eq!(net.speakers[0].paths().prefixes[&locator(3)].distance, 30);
}

#[test]
fn circuits_change_while_neighbours_stay() {
    let mut net = Net::row(3);
    net.run_s(60);
    let now = net.now;
    let address: Ipv6Addr = "fe80::1:1".parse().unwrap();
    net.speakers[1].change_circuit(now, CircuitId(0), CircuitConfig { metric: 70, ..CircuitConfig::new(address) });
    net.run_s(10);
    assert_eq!(net.speakers[2].paths().prefixes[&locator(0)].distance, 80);
    let key = LsaKey { kind: LsType::ROUTER, id: 0, router: router(1) };
    let lsa = net.speakers[0].database().get(Place { circuit: None, key }).unwrap().lsa().clone();
    let body = RouterBody::parse(lsa.body()).unwrap();
    assert_eq!(body.links.iter().map(|link| link.metric).collect::<Vec<_>>(), [70, 10]);
}

/// A packet as long as the other end does not take: no adjacency, and the refusal has a name.
#[test]
fn neighbours_of_other_timers_or_mtus_are_refused_by_name() {
    let mut net = Net::row(2);
    net.speakers[1].reconfigure(|config| config.timers.hello_s = 5);
    net.run_s(100);
    assert!(net.speakers[0].drops()[&OspfDrop::HelloInterval] > 3);
    assert!(net.speakers[0].neighbour(CircuitId(0)).is_none());
    net.speakers[1].reconfigure(|config| (config.timers.hello_s, config.timers.dead_s) = (10, 20));
    net.run_s(100);
    assert!(net.speakers[0].drops()[&OspfDrop::DeadInterval] > 3);
    net.speakers[1].reconfigure(|config| config.timers.dead_s = 40);
    let now = net.now;
    let address: Ipv6Addr = "fe80::1:1".parse().unwrap();
    net.speakers[1].change_circuit(now, CircuitId(0), CircuitConfig { mtu: 9000, ..CircuitConfig::new(address) });
    net.run_s(100);
    assert!(net.speakers[0].drops()[&OspfDrop::Mtu] > 3);
    let state = net.speakers[0].neighbour(CircuitId(0)).expect("hellos arrive").state;
    assert_eq!(state, NeighbourState::ExStart);
    assert!(!net.is_full((1, CircuitId(0))));
}
