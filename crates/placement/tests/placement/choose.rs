//! The ways to choose paths that are compared: all take shortest paths, and differ in how evenly they load links.

use srdma_fabric::{HostId, LeafSpine, NextHops, Speeds, Topology};
use srdma_placement::{Choosing, Flow, Loads, choose, directions};

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
