//! Configuration of devices: every SID is reached from everywhere, and impossible names are rejected.

use srdma_fabric::provision::{Behavior, Choices, Device};
use srdma_fabric::{AddressPlan, FatTree, HostId, NodeId, SidPlan, Speeds, Topology, provision};
use std::collections::BTreeMap;

fn figure1() -> Topology {
    Topology::from_toml(include_str!("../../../../fabrics/figure1.toml")).unwrap()
}

/// Two switches joined by two links, a NIC at each.
const PARALLEL: &str = r#"
kind = "links"
switch = [{ name = "a" }, { name = "b" }]
host = [{ name = "x" }, { name = "y" }]
link = [{ ends = ["x", "a"] }, { ends = ["y", "b"] }, { ends = ["a", "b"] }, { ends = ["a", "b"] }]
"#;

fn choose<'a>(
    sids: &'a SidPlan,
    interfaces: &'a str,
    [by_nodes, by_links]: [bool; 2],
    tenants: &'a BTreeMap<u16, Vec<HostId>>,
) -> Choices<'a> {
    Choices { sids, addresses: AddressPlan::DOCUMENTATION, by_nodes, by_links, interfaces, tenants }
}

fn all(topology: &Topology, interfaces: &str, encodings: [bool; 2], tenants: &[(u16, &[u32])]) -> Vec<Device> {
    let sids = SidPlan::new(topology, SidPlan::BLOCK).unwrap();
    let tenants = tenants.iter().map(|(tenant, nics)| (*tenant, nics.iter().copied().map(HostId).collect())).collect();
    let nodes: Vec<NodeId> =
        topology.switch_ids().map(NodeId::Switch).chain(topology.host_ids().map(NodeId::Host)).collect();
    provision(topology, &choose(&sids, interfaces, encodings, &tenants), &nodes).unwrap()
}

fn sids(device: &Device) -> Vec<String> {
    device.sids.iter().map(|sid| sid.prefix.to_string()).collect()
}

/// PP-5.1-1, D80: one uN for each node, and none for a NIC; leaf 3 has 5f00:0:300::/48.
#[test]
fn figure_1_has_the_drafts_sids() {
    let devices = all(&figure1(), "{peer}", [true, false], &[]);
    let expected = ["100", "200", "300", "400", "500", "600"].map(|id| format!("5f00:0:{id}::/48"));
    let own: Vec<String> = devices.iter().flat_map(sids).collect();
    assert_eq!(own, expected);
    assert_eq!(devices[6].routes.iter().map(|route| route.prefix.to_string()).collect::<Vec<_>>(), expected[..2]);
}

/// Whichever of the ports a packet takes, it comes to the uN within the fabric's diameter.
#[test]
fn every_node_is_reached_from_every_other() {
    let trees = [(2, 8), (3, 4)].map(|(tiers, k)| FatTree { tiers, k, pods: None, speeds: Speeds::DEFAULT });
    let fabrics = trees.into_iter().map(|tree| tree.topology().unwrap()).chain([figure1()]);
    for topology in fabrics {
        let devices = all(&topology, "eth{port}", [true, true], &[]);
        let switches = topology.switches().len();
        for to in 0..switches {
            let sid = &devices[to].sids[0];
            assert_eq!(sid.behavior, Behavior::Node);
            for from in (0..switches).filter(|from| *from != to) {
                let mut at = vec![from];
                let mut hops = 0;
                while at != [to] {
                    hops += 1;
                    assert!(hops <= 4, "{} does not reach {}", devices[from].name, devices[to].name);
                    at = at.iter().flat_map(|at| next(&topology, &devices, *at, to, sid.prefix)).collect();
                    at.sort_unstable();
                    at.dedup();
                }
            }
        }
    }
}

/// The next switches of a switch's route to a prefix; the switch itself at the prefix's own switch.
fn next(topology: &Topology, devices: &[Device], at: usize, to: usize, prefix: srdma_wire::Prefix) -> Vec<usize> {
    if at == to {
        return vec![to];
    }
    let route = devices[at].routes.iter().find(|route| route.prefix == prefix).expect("a route");
    assert!(!route.ports.is_empty());
    let peer = |port: &u16| match topology.port(devices[at].node, *port).unwrap().peer.node {
        NodeId::Switch(switch) => switch.index(),
        NodeId::Host(_) => panic!("a route to a switch leads to a NIC"),
    };
    route.ports.iter().map(peer).collect()
}

/// D82: by nodes, a uA is needed only where two links join the same switches, and stands behind the uN.
#[test]
fn parallel_links_have_sids_also_for_programs_by_nodes() {
    let topology = Topology::from_toml(PARALLEL).unwrap();
    let by_nodes = all(&topology, "eth{port}", [true, false], &[]);
    assert_eq!(sids(&by_nodes[0]), ["5f00:0:1::/48", "5f00:0:1:e001::/64", "5f00:0:1:e002::/64"]);
    let by_links = all(&topology, "eth{port}", [false, true], &[]);
    assert_eq!(sids(&by_links[0]), ["5f00:0:e000::/48", "5f00:0:e001::/48", "5f00:0:e002::/48"]);
    assert!(by_links[0].routes.iter().all(|route| route.prefix.to_string() == "2001:db8:0:1::/64"));
}

/// PP-7-2: a tenant's NICs are in its table alone, at the switches where it has any.
#[test]
fn tenants_are_kept_apart() {
    let devices = all(&figure1(), "{peer}", [true, true], &[(7, &[0])]);
    let leaf1 = &devices[0];
    assert!(sids(leaf1).ends_with(&["5f00:0:f007::/48".to_owned(), "5f00:0:100:f007::/64".to_owned()]));
    let to_nics: Vec<(String, Option<u16>)> =
        leaf1.routes[..2].iter().map(|route| (route.prefix.to_string(), route.tenant)).collect();
    let expected = [("2001:db8:0:1::/64".to_owned(), Some(7)), ("2001:db8:0:2::/64".to_owned(), None)];
    assert_eq!(to_nics, expected);
    assert_eq!((leaf1.tenants(), devices[2].tenants()), (vec![7], vec![]));
}

#[test]
fn impossible_requests_are_refused() {
    let topology = Topology::from_toml(PARALLEL).unwrap();
    let sids = SidPlan::new(&topology, SidPlan::BLOCK).unwrap();
    let nodes = [topology.node("a").unwrap()];
    let refusal = |interfaces: &str, tenants: &BTreeMap<u16, Vec<HostId>>| {
        provision(&topology, &choose(&sids, interfaces, [true, true], tenants), &nodes).unwrap_err().to_string()
    };
    let none = BTreeMap::new();
    let expected = "ports 1 and 2 of a would both be interface b: name interfaces as eth{port}";
    assert_eq!(refusal("{peer}", &none), expected);
    assert!(refusal("a-very-long-name{port}", &none).contains("of 17 octets, expected 1 to 15"));
    assert!(refusal("", &none).contains("of 0 octets"));
    let tenants = BTreeMap::from([(4096, vec![HostId(0)])]);
    assert_eq!(refusal("eth{port}", &tenants), "tenant 4096 has no id: expected 4095 at most");
}
