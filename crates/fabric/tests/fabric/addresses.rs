//! Addresses are unique, and stay when a fabric grows.

use srdma_fabric::{AddressPlan, FatTree, LeafSpine, NextHops, Speeds, Topology};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

const PLAN: AddressPlan = AddressPlan::DOCUMENTATION;

fn addresses(topology: &Topology) -> BTreeMap<String, Ipv6Addr> {
    let hosts = topology.host_ids().map(|id| (topology.hosts()[id.index()].name.clone(), PLAN.host(topology, id)));
    let switches =
        topology.switch_ids().map(|id| (topology.switches()[id.index()].name.clone(), PLAN.loopback(topology, id)));
    hosts.chain(switches).collect()
}

fn leaf_spine(leaves: u16, spines: u16, hosts_per_leaf: u16) -> Topology {
    LeafSpine { leaves, spines, hosts_per_leaf, speeds: Speeds::DEFAULT }.topology().unwrap()
}

fn fat_tree(k: u16) -> Topology {
    FatTree { tiers: 3, k, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap()
}

#[test]
fn addresses_encode_the_position_of_a_node() {
    let leaf_spine = addresses(&leaf_spine(4, 2, 20));
    let fat_tree = addresses(&fat_tree(4));
    let named = |all: &BTreeMap<String, Ipv6Addr>, name: &str| all[name].to_string();
    assert_eq!(named(&leaf_spine, "h3.17"), "2001:db8:3:11::1");
    assert_eq!(named(&leaf_spine, "leaf3"), "2001:db8:ff01:3::1");
    assert_eq!(named(&leaf_spine, "spine2"), "2001:db8:ff02:2::1");
    assert_eq!(named(&fat_tree, "h4.2.1"), "2001:db8:402:1::1");
    assert_eq!(named(&fat_tree, "core2.1"), "2001:db8:ff03:201::1");
}

#[test]
fn no_two_nodes_share_an_address_and_growth_changes_none() {
    let grown = [(leaf_spine(4, 2, 8), leaf_spine(6, 4, 12)), (fat_tree(4), fat_tree(8))];
    for (small, large) in grown {
        let (before, after) = (addresses(&small), addresses(&large));
        assert!(before.iter().all(|(name, address)| after[name] == *address));
        let mut unique: Vec<Ipv6Addr> = after.values().copied().collect();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), large.hosts().len() + large.switches().len());
    }
}

#[test]
fn destinations_cover_every_host_once() {
    let irregular = Topology::from_toml(
        "kind = \"links\"\nhost = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\", number = 0x70001 }]\n\
         switch = [{ name = \"s\" }, { name = \"t\" }]\n\
         link = [{ ends = [\"a\", \"s\"] }, { ends = [\"b\", \"t\"] }, { ends = [\"c\", \"t\"] }, { ends = [\"s\", \"t\"] }]",
    );
    for (topology, prefixes) in [(leaf_spine(4, 2, 8), 4), (fat_tree(8), 32), (irregular.unwrap(), 3)] {
        let next_hops = NextHops::new(&topology);
        let destinations = PLAN.destinations(&topology, &next_hops);
        assert_eq!(destinations.len(), prefixes);
        for host in topology.host_ids() {
            let address = u128::from(PLAN.host(&topology, host));
            let covers = |prefix: Ipv6Addr, length: u8| (u128::from(prefix) ^ address) >> (128 - length) == 0;
            let covering = destinations.iter().filter(|destination| covers(destination.prefix, destination.length));
            assert_eq!(covering.map(|d| d.class).collect::<Vec<_>>(), [next_hops.class(host)]);
            assert!(covers(PLAN.host_prefix(&topology, host), 64));
        }
    }
}

#[test]
fn a_plan_lies_below_its_base() {
    let topology = leaf_spine(2, 1, 1);
    let plan = AddressPlan::below("fd00:5::7".parse().unwrap());
    assert_eq!(plan.host(&topology, topology.host_ids().next().unwrap()).to_string(), "fd00:5:1:1::1");
    assert_eq!(plan.locator(&topology, topology.switch_ids().next().unwrap()).to_string(), "fd00:5:ff01:1::");
}

#[test]
fn links_are_named_after_their_ends() {
    let topology = leaf_spine(2, 1, 1);
    let names: Vec<String> = topology.link_ids().map(|link| topology.link_name(link)).collect();
    assert_eq!(names, ["h1.1-leaf1", "h2.1-leaf2", "leaf1-spine1", "leaf2-spine1"]);
    let parallel = Topology::from_toml(
        "kind = \"links\"\nhost = [{ name = \"a\" }, { name = \"b\" }]\nswitch = [{ name = \"s\" }]\n\
         link = [{ ends = [\"a\", \"s\"] }, { ends = [\"a\", \"s\"] }, { ends = [\"b\", \"s\"] }]",
    );
    let topology = parallel.unwrap();
    let names: Vec<String> = topology.link_ids().map(|link| topology.link_name(link)).collect();
    assert_eq!(names, ["a:0-s:0", "a:1-s:1", "b-s"]);
}
