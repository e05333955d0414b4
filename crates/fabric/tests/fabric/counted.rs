//! Paths, distances and cuts, counted by another implementation (petgraph) and by formulas from the literature.

use petgraph::algo::{all_simple_paths, dijkstra, ford_fulkerson};
use petgraph::graph::{DiGraph, NodeIndex};
use srdma_fabric::{FatTree, HostId, LeafSpine, NextHops, NodeId, Speeds, SwitchId, Topology};
use srdma_wire::units::GBIT_PER_S;
use std::collections::hash_map::RandomState;

/// The topology as petgraph's: hosts first, then switches, an edge for each direction, weighted in Gbit/s. Hosts have
/// edges only where they may: a host between two others would be a path through it, so `ends` alone have them.
fn graph(topology: &Topology, ends: &[HostId]) -> DiGraph<(), u64> {
    let mut graph = DiGraph::new();
    for _ in 0..topology.hosts().len() + topology.switches().len() {
        graph.add_node(());
    }
    for link in topology.links() {
        let may = |node| matches!(node, NodeId::Switch(_)) || ends.iter().any(|host| node == NodeId::Host(*host));
        if link.ends.iter().all(|end| may(end.node)) {
            let [a, b] = link.ends.map(|end| index(topology, end.node));
            graph.add_edge(a, b, link.rate_bits_per_s / GBIT_PER_S);
            graph.add_edge(b, a, link.rate_bits_per_s / GBIT_PER_S);
        }
    }
    graph
}

fn index(topology: &Topology, node: NodeId) -> NodeIndex {
    match node {
        NodeId::Host(host) => NodeIndex::new(host.index()),
        NodeId::Switch(switch) => NodeIndex::new(topology.hosts().len() + switch.index()),
    }
}

/// Number of shortest paths by our sets.
fn paths(topology: &Topology, next_hops: &NextHops, at: NodeId, to: HostId) -> u64 {
    let ports = match at {
        NodeId::Host(host) if host == to => return 1,
        NodeId::Host(host) => next_hops.from_host(topology, host, to),
        NodeId::Switch(switch) => next_hops.toward(switch, to).to_vec(),
    };
    let next = |port: &u16| topology.port(at, *port).unwrap().peer.node;
    ports.iter().map(|port| paths(topology, next_hops, next(port), to)).sum()
}

/// Every set of ports is exactly those whose other end is one link nearer, by petgraph's distances.
fn compare_sets(topology: &Topology) {
    let next_hops = NextHops::new(topology);
    let mut greatest = 0;
    for to in topology.host_ids() {
        let graph = graph(topology, &[to]);
        let distance = dijkstra(&graph, index(topology, NodeId::Host(to)), None, |_| 1u32);
        for switch in topology.switch_ids() {
            let own = distance.get(&index(topology, NodeId::Switch(switch)));
            let is_nearer = |node| own.is_some() && distance.get(&index(topology, node)).map(|d| d + 1) == own.copied();
            let ports = topology.ports(NodeId::Switch(switch)).iter().filter(|port| is_nearer(port.peer.node));
            let expected: Vec<u16> = ports.map(|port| port.port).collect();
            assert_eq!(next_hops.toward(switch, to), expected, "{switch:?} to {to:?}");
        }
        for from in topology.host_ids().filter(|from| *from != to) {
            let first = topology.attached_to(from).filter_map(|s| distance.get(&index(topology, NodeId::Switch(s))));
            let expected = first.min().unwrap() + 1;
            assert_eq!(next_hops.distance(from, to), expected);
            assert_eq!(next_hops.path(topology, from, to).len() as u32, expected);
            greatest = greatest.max(expected);
        }
    }
    assert_eq!(next_hops.diameter(), greatest);
}

fn leaf_spine(leaves: u16, spines: u16, hosts_per_leaf: u16) -> LeafSpine {
    LeafSpine { leaves, spines, hosts_per_leaf, speeds: Speeds::DEFAULT }
}

fn fat_tree(tiers: u8, k: u16) -> Topology {
    FatTree { tiers, k, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap()
}

/// A fabric in two planes: every NIC has a port in both, and the planes are not joined.
const TWO_PLANES: &str = r#"
kind = "links"
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
switch = [{ name = "p1" }, { name = "p2" }, { name = "q1" }]
link = [
    { ends = ["a", "p1"] }, { ends = ["a", "q1"] },
    { ends = ["b", "p2"] }, { ends = ["b", "q1"] }, { ends = ["b", "q1"] },
    { ends = ["c", "p2"] }, { ends = ["c", "q1"] },
    { ends = ["p1", "p2"] }, { ends = ["p1", "p2"] },
]
"#;

#[test]
fn next_hops_equal_those_of_another_implementation() {
    compare_sets(&leaf_spine(4, 3, 5).topology().unwrap());
    compare_sets(&fat_tree(2, 8));
    compare_sets(&fat_tree(3, 4));
    compare_sets(&fat_tree(3, 6));
    compare_sets(&Topology::from_toml(TWO_PLANES).unwrap());
    compare_sets(&Topology::from_toml(include_str!("../../../../fabrics/rail.toml")).unwrap());
    compare_sets(&Topology::from_toml(include_str!("../../../../fabrics/dual-plane.toml")).unwrap());
    compare_sets(&Topology::from_toml(include_str!("../../../../fabrics/dual-homed.toml")).unwrap());
    compare_sets(&Topology::from_toml(include_str!("../../../../fabrics/data-centres.toml")).unwrap());
}

#[test]
fn the_number_of_shortest_paths_equals_that_of_another_implementation() {
    for topology in [fat_tree(3, 4), fat_tree(2, 6), Topology::from_toml(TWO_PLANES).unwrap()] {
        let next_hops = NextHops::new(&topology);
        let from = HostId(0);
        for to in topology.host_ids().skip(1) {
            let graph = graph(&topology, &[from, to]);
            let ends = [from, to].map(|host| index(&topology, NodeId::Host(host)));
            let between = next_hops.distance(from, to) as usize - 1;
            let found = all_simple_paths::<Vec<_>, _, RandomState>(&graph, ends[0], ends[1], between, Some(between));
            assert_eq!(paths(&topology, &next_hops, NodeId::Host(from), to), found.count() as u64, "to {to:?}");
        }
    }
}

/// Al-Fares et al. 2008: k³/4 hosts, 5k²/4 switches, (k/2)² paths between pods.
#[test]
fn a_fat_tree_of_16_ports_has_1024_hosts() {
    let topology = fat_tree(3, 16);
    assert_eq!((topology.hosts().len(), topology.switches().len(), topology.links().len()), (1024, 320, 3072));
    let next_hops = NextHops::new(&topology);
    assert_eq!((next_hops.classes(), next_hops.diameter()), (128, 6));
    assert_eq!(paths(&topology, &next_hops, NodeId::Host(HostId(0)), HostId(1023)), 64);
    let degrees = topology.switch_ids().map(|switch| topology.ports(NodeId::Switch(switch)).len());
    assert!(degrees.into_iter().all(|ports| ports == 16));
}

#[test]
fn more_than_4096_hosts_are_supported() {
    let topology = fat_tree(3, 26);
    let next_hops = NextHops::new(&topology);
    assert_eq!((topology.hosts().len(), next_hops.classes(), next_hops.diameter()), (4394, 338, 6));
    let (edge, core) = (SwitchId(0), SwitchId(topology.switches().len() as u32 - 1));
    assert_eq!(next_hops.toward(edge, HostId(4393)).len(), 13);
    assert_eq!(next_hops.toward(core, HostId(4393)), [25]);
}

/// The least that must be cut to part one half of the hosts from the other, in Gbit/s.
fn bisection(topology: &Topology) -> u64 {
    let hosts: Vec<HostId> = topology.host_ids().collect();
    let mut graph = graph(topology, &hosts);
    let (source, sink) = (graph.add_node(()), graph.add_node(()));
    let (left, right) = hosts.split_at(hosts.len() / 2);
    for host in left {
        graph.add_edge(source, index(topology, NodeId::Host(*host)), u64::from(u32::MAX));
    }
    for host in right {
        graph.add_edge(index(topology, NodeId::Host(*host)), sink, u64::from(u32::MAX));
    }
    ford_fulkerson(&graph, source, sink).0
}

#[test]
fn the_bisection_follows_from_the_parameters() {
    assert_eq!(bisection(&fat_tree(3, 4)), 8 * 100);
    assert_eq!(bisection(&fat_tree(3, 6)), 27 * 100);
    assert_eq!(bisection(&fat_tree(2, 8)), 16 * 100);
    let three_to_one = "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 12\noversubscription = 3\n";
    let topology = Topology::from_toml(three_to_one).unwrap();
    assert_eq!(topology.links().last().unwrap().rate_bits_per_s, 100 * GBIT_PER_S);
    assert_eq!(bisection(&topology), 24 * 100 / 3);
}
