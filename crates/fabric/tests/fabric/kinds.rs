//! Rails, planes, dual-homed hosts and data centres are linked as their kinds define, and failed elements are not used.

use srdma_fabric::{AddressPlan, NextHops, NodeId, SidPlan, Topology};

fn topology(text: &str) -> Topology {
    Topology::from_toml(text).unwrap()
}

fn refused(text: &str) -> String {
    Topology::from_toml(text).expect_err(text).to_string()
}

/// The other ends of a node's ports, in their order.
fn neighbours(topology: &Topology, name: &str) -> Vec<String> {
    let ports = topology.ports(topology.node(name).unwrap()).iter();
    ports.map(|port| topology.name(port.peer.node).to_owned()).collect()
}

fn sizes(topology: &Topology) -> [usize; 3] {
    [topology.hosts().len(), topology.switches().len(), topology.links().len()]
}

/// Ids and addresses are unique, and stay when a fabric grows.
fn grows(small: &str, large: &str) {
    let [small, large] = [small, large].map(topology);
    let [before, after] = [&small, &large].map(|topology| SidPlan::new(topology, SidPlan::BLOCK).unwrap());
    for switch in small.switch_ids() {
        let name = small.name(NodeId::Switch(switch));
        let Some(NodeId::Switch(grown)) = large.node(name) else { panic!("{name} is gone") };
        assert_eq!(before.id(switch), after.id(grown), "{name}");
    }
    for host in small.host_ids() {
        let name = small.name(NodeId::Host(host));
        let Some(NodeId::Host(grown)) = large.node(name) else { panic!("{name} is gone") };
        let address = AddressPlan::DOCUMENTATION;
        assert_eq!(address.host(&small, host), address.host(&large, grown), "{name}");
    }
}

#[test]
fn a_nic_is_at_the_leaf_of_its_rail() {
    let topology = topology(include_str!("../../../../fabrics/rail.toml"));
    assert_eq!(sizes(&topology), [2 * 4 * 8, 2 * 8 + 4, 64 + 16 * 4]);
    assert_eq!(neighbours(&topology, "h2.3.5"), ["leaf2.5"]);
    let rail = ["h1.1.5", "h1.2.5", "h1.3.5", "h1.4.5", "spine1", "spine2", "spine3", "spine4"];
    assert_eq!(neighbours(&topology, "leaf1.5"), rail);
    // NICs of a server follow one another, as the ranks of a job do.
    assert_eq!(topology.hosts()[8].name, "h1.2.1");
    // A rail is one prefix of 48 bits.
    let next_hops = NextHops::new(&topology);
    assert_eq!(AddressPlan::DOCUMENTATION.destinations(&topology, &next_hops).len(), 16);
    let rails = |blocks, servers| {
        format!("kind = \"rails\"\nblocks = {blocks}\nservers = {servers}\nrails = 4\nspines = {servers}\n")
    };
    grows(&rails(1, 2), &rails(3, 5));
}

#[test]
fn planes_have_nothing_in_common_but_the_hosts() {
    let topology = topology(include_str!("../../../../fabrics/dual-plane.toml"));
    assert_eq!(sizes(&topology), [64, 2 * 16, 2 * (64 + 64)]);
    assert_eq!(neighbours(&topology, "h3.7"), ["p1.leaf3", "p2.leaf3"]);
    for switch in topology.switches() {
        let plane = &switch.name[..3];
        let others = neighbours(&topology, &switch.name);
        assert!(others.iter().all(|other| other.starts_with('h') || other.starts_with(plane)), "{others:?}");
    }
    let planes = |leaves, spines| {
        format!("kind = \"planes\"\nplanes = 3\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = 2\n")
    };
    grows(&planes(2, 1), &planes(4, 3));
}

#[test]
fn a_dual_homed_host_is_at_both_leaves_of_its_pair() {
    let topology = topology(include_str!("../../../../fabrics/dual-homed.toml"));
    assert_eq!(sizes(&topology), [32, 16, 64 + 64]);
    assert_eq!(neighbours(&topology, "h3.2"), ["leaf5", "leaf6"]);
    assert_eq!(neighbours(&topology, "leaf6")[..9].join(" "), "h3.1 h3.2 h3.3 h3.4 h3.5 h3.6 h3.7 h3.8 spine1");
    let homes = |leaves| format!("kind = \"dual-homed\"\nleaves = {leaves}\nspines = 2\nhosts_per_leaf = 2\n");
    grows(&homes(2), &homes(6));
}

/// PP-7-1: the way between data centres names six switches, and six ids fit an address.
#[test]
fn data_centres_are_joined_by_their_borders() {
    let text = include_str!("../../../../fabrics/data-centres.toml");
    let topology = topology(text);
    assert_eq!(sizes(&topology), [32, 2 * (4 + 4 + 2), 32 + 2 * (16 + 8) + 2]);
    assert_eq!(neighbours(&topology, "dc1.border2").last().unwrap(), "dc2.border2");
    let wan = topology.links().last().unwrap();
    assert_eq!((wan.rate_bits_per_s, wan.delay_ns), (400_000_000_000, 500_000));
    let next_hops = NextHops::new(&topology);
    let path = next_hops.path(&topology, srdma_fabric::HostId(0), srdma_fabric::HostId(31));
    assert_eq!(path.len(), 7, "six switches");
    let three = text.replace("data_centres = 2", "data_centres = 3");
    assert_eq!(neighbours(&Topology::from_toml(&three).unwrap(), "dc2.border1")[4..], ["dc1.border1", "dc3.border1"]);
    grows(text, &three.replace("leaves = 4", "leaves = 6"));
}

const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";

#[test]
fn failed_links_keep_their_ids_and_get_no_traffic() {
    let whole = topology(LEAF_SPINE);
    let failed = topology(&format!("{LEAF_SPINE}[[failed]]\nname = \"spine1\"\n"));
    let ids = |topology: &Topology| SidPlan::new(topology, SidPlan::BLOCK).unwrap();
    assert_eq!(ids(&whole), ids(&failed));
    let names: Vec<String> =
        failed.link_ids().filter(|link| failed.is_failed(*link)).map(|link| failed.link_name(link)).collect();
    assert_eq!(names, ["leaf1-spine1", "leaf2-spine1"]);
    let (first, last) = (srdma_fabric::SwitchId(0), srdma_fabric::HostId(3));
    assert_eq!(NextHops::new(&whole).toward(first, last), [2, 3]);
    assert_eq!(NextHops::new(&failed).toward(first, last), [3]);
    // Either end may stand first.
    let one = topology(&format!("{LEAF_SPINE}[[failed]]\nname = \"spine2-leaf1\"\n"));
    assert_eq!(NextHops::new(&one).toward(first, last), [2]);
}

#[test]
fn failures_that_cut_a_host_off_are_refused() {
    let fails = |names: &[&str]| {
        let failed: String = names.iter().map(|name| format!("[[failed]]\nname = \"{name}\"\n")).collect();
        refused(&format!("{LEAF_SPINE}{failed}"))
    };
    assert_eq!(fails(&["spine7"]), "line 6: spine7 is neither a switch nor a link; a link is named like leaf1-spine2");
    assert_eq!(fails(&["h1.2-leaf1"]), "line 5: host h1.2 would be cut off: all its links have failed");
    let apart = "no path leads from host h1.1 to host h2.1 on links that have not failed: join their switches";
    assert_eq!(fails(&["spine1", "leaf1-spine2"]), format!("line 5: {apart}"));
}

#[test]
fn numbers_out_of_range_and_links_that_differ_both_ways_are_refused() {
    let rails = "kind = \"rails\"\nservers = 2\nrails = 65\nspines = 1\n";
    assert_eq!(refused(rails), "line 3: rails = 65: expected 1 to 64");
    let planes = "kind = \"planes\"\nplanes = 5\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n";
    assert_eq!(refused(planes), "line 2: planes = 5: expected 2 to 4");
    let homes = "kind = \"dual-homed\"\nleaves = 3\nspines = 1\nhosts_per_leaf = 1\n";
    assert_eq!(refused(homes), "line 2: leaves = 3: expected an even number, 2 to 512");
    let sites = "kind = \"data-centres\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\ndata_centres = 1\n";
    assert_eq!(refused(sites), "line 5: data_centres = 1: expected 2 to 16");
    let keys = "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\nborders = 1\n";
    assert_eq!(refused(keys), "line 5: a topology of kind leaf-spine has no key borders");
    let nodes = "kind = \"links\"\nhost = [{ name = \"a\" }, { name = \"b\" }]\nswitch = [{ name = \"s\" }]\n";
    let link = |more: &str| {
        format!("{nodes}[[link]]\nends = [\"a\", \"s\"]\n{more}\n[[link]]\nends = [\"b\", \"s\"]\ndelay_ns = [7, 7]\n")
    };
    assert_eq!(topology(&link("rate_bits_per_s = [5, 5]")).links()[0].rate_bits_per_s, 5);
    let differ = "the link from a to s has rate_bits_per_s 5, and 4 back: expected the same both ways";
    assert_eq!(refused(&link("rate_bits_per_s = [5, 4]")), format!("line 6: {differ}"));
    assert_eq!(refused(&link("delay_ns = \"x\"")), "line 6: expected a number, or two for the two directions");
}

/// Ids have 16 bits.
#[test]
fn more_switches_than_ids_are_refused() {
    let switches: String = (0..70_000).map(|number| format!("[[switch]]\nname = \"s{number}\"\n")).collect();
    let text = format!("kind = \"links\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{switches}");
    let expected = "switch s16384 is one too many of 70000: 16384 at most have ids of 16 bits";
    assert_eq!(refused(&text), format!("line {}: {expected}", 3 + 2 * 16384));
}
