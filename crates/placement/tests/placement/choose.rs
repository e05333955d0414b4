//! The ways to choose paths that are compared: all take shortest paths, and differ in how evenly they load links.

use rand::prelude::*;
use rand_pcg::Pcg64Mcg;
use srdma_fabric::{HostId, LeafSpine, LinkId, NextHops, NodeId, Speeds, Topology};
use srdma_placement::{Choosing, Flow, Loads, choose, directions};
use std::collections::BTreeMap;

fn fabric() -> Topology {
    LeafSpine { leaves: 8, spines: 8, hosts_per_leaf: 8, speeds: Speeds::DEFAULT }.topology().unwrap()
}

/// Host n of each leaf sends to host n of the next leaf.
fn rings(topology: &Topology) -> Vec<Flow> {
    let hosts = topology.hosts().len() as u32;
    let flow =
        |from: u32| Flow { from: HostId(from), to: HostId((from + 8) % hosts), rate_bits_per_s: 100_000_000_000 };
    (0..hosts).map(flow).collect()
}

fn most_loaded(topology: &Topology, how: Choosing) -> f64 {
    let (flows, mut loads) = (rings(topology), Loads::none(topology));
    let paths = choose(topology, &NextHops::new(topology), &flows, how).unwrap();
    for (flow, path) in flows.iter().zip(&paths) {
        assert_eq!((path.from, path.to, path.links.len()), (flow.from, flow.to, 4));
        loads.add(topology, &directions(topology, path), flow.rate_bits_per_s);
    }
    loads.most_loaded(topology).1
}

/// By hand: eight flows leave each leaf, which has eight uplinks of their rate.
#[test]
fn placed_and_greedy_paths_fill_no_link_twice_and_random_ones_do() {
    let topology = fabric();
    assert_eq!(most_loaded(&topology, Choosing::Placed), 1.0);
    assert_eq!(most_loaded(&topology, Choosing::Greedy), 1.0);
    let random: Vec<f64> = (1..=20).map(|seed| most_loaded(&topology, Choosing::Random(seed))).collect();
    assert!(random.iter().all(|most| *most >= 2.0), "{random:?}");
    assert!(random.iter().any(|most| *most != random[0]), "the seed decides: {random:?}");
}

/// The text of a small fabric: with two or three tiers, hosts at two leaves, planes, or switches in a ring, and now and
/// then with links that have failed.
fn random_fabric(random: &mut Pcg64Mcg) -> String {
    let mut of = |least: u16, most: u16| random.random_range(least..=most);
    let text = match of(0, 5) {
        0 | 1 => format!(
            "kind = \"leaf-spine\"\nleaves = {}\nspines = {}\nhosts_per_leaf = {}\n",
            of(2, 5),
            of(1, 4),
            of(1, 4)
        ),
        2 => format!("kind = \"fat-tree\"\ntiers = 3\nk = 4\npods = {}\n", of(2, 4)),
        3 => format!("kind = \"dual-homed\"\nleaves = 4\nspines = {}\nhosts_per_leaf = {}\n", of(1, 4), 2 * of(1, 2)),
        4 => format!("kind = \"planes\"\nplanes = 2\nleaves = 3\nspines = 2\nhosts_per_leaf = {}\n", of(1, 3)),
        _ => {
            let switches = of(3, 6);
            let mut text = "kind = \"links\"\n".to_owned();
            for (key, letter) in [("switch", 's'), ("host", 'h')] {
                (1..=switches).for_each(|number| text += &format!("[[{key}]]\nname = \"{letter}{number}\"\n"));
            }
            for number in 1..=switches {
                let (rate, next) = (u64::from(of(1, 3)), number % switches + 1);
                text += &format!("[[link]]\nends = [\"h{number}\", \"s{number}\"]\nrate_bits_per_s = 40_000_000_000\n");
                text +=
                    &format!("[[link]]\nends = [\"s{number}\", \"s{next}\"]\nrate_bits_per_s = {rate}0_000_000_000\n");
            }
            return text;
        }
    };
    match of(0, 3) {
        0 => text + "[[failed]]\nname = \"leaf1-spine1\"\n",
        _ => text,
    }
}

/// Load of the most loaded link, and the squares of the loads of all links, added up by this test itself.
fn measured(topology: &Topology, flows: &[Flow], how: Choosing) -> (f64, f64) {
    let mut loads: BTreeMap<(LinkId, bool), u64> = BTreeMap::new();
    for (flow, path) in flows.iter().zip(choose(topology, &NextHops::new(topology), flows, how).unwrap()) {
        let mut at = NodeId::Host(flow.from);
        for link in path.links {
            assert!(!topology.is_failed(link));
            let [one, other] = topology.links()[link.index()].ends;
            *loads.entry((link, at == one.node)).or_default() += flow.rate_bits_per_s;
            at = if at == one.node { other.node } else { one.node };
        }
        assert_eq!(at, NodeId::Host(flow.to));
    }
    let share = |((link, _), load): (&(LinkId, bool), &u64)| {
        *load as f64 / topology.links()[link.index()].rate_bits_per_s as f64
    };
    let (most, squares) = loads.iter().map(share).fold((0.0, 0.0), |(most, sum), own| (own.max(most), sum + own * own));
    (most, squares)
}

/// The most loaded link of placed flows carries no more than that of greedy ones. Where it carries as much, rates differ,
/// and the fabric is a whole Clos, the squares of all loads are no more, either.
#[test]
fn placed_flows_are_never_worse_than_greedy_ones() {
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let (mut compared, mut better) = (0, 0);
    while compared < 3000 {
        let text = random_fabric(&mut random);
        let Ok(topology) = Topology::from_toml(&text) else { continue };
        let hosts = topology.hosts().len() as u32;
        let rates: &[u64] = [&[40][..], &[10, 20, 40], &[7, 11, 13, 17, 29]].choose(&mut random).unwrap();
        let flows: Vec<Flow> = (0..random.random_range(1..40))
            .map(|_| {
                let from = random.random_range(0..hosts);
                let to = HostId((from + random.random_range(1..hosts)) % hosts);
                Flow { from: HostId(from), to, rate_bits_per_s: 100_000_000 * rates.choose(&mut random).unwrap() }
            })
            .collect();
        let [greedy, placed] = [Choosing::Greedy, Choosing::Placed].map(|how| measured(&topology, &flows, how));
        assert!(placed.0 <= greedy.0 + 1e-9, "{placed:?}, greedy {greedy:?}:\n{text}{flows:?}");
        let is_even = flows.iter().all(|flow| flow.rate_bits_per_s == flows[0].rate_bits_per_s);
        if !is_even && !text.contains("failed") && !text.contains("links") && placed.0 > greedy.0 - 1e-9 {
            assert!(placed.1 <= greedy.1 * (1.0 + 1e-9), "{placed:?}, greedy {greedy:?}:\n{text}{flows:?}");
        }
        compared += 1;
        better += usize::from(placed.0 < greedy.0 - 1e-9);
    }
    assert!(better > 100, "better {better} times");
}
