//! Paths as uSID programs, and back. The expected addresses are the path placement draft's (D80) or written by hand.

use srdma_fabric::{
    Encoding, FatTree, HostId, LeafSpine, LinkId, NodeId, Path, Program, SidPlan, Speeds, Step, SwitchId, Topology,
};
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

fn figure1() -> Topology {
    Topology::from_toml(include_str!("../../../../fabrics/figure1.toml")).unwrap()
}

fn plan(topology: &Topology) -> SidPlan {
    SidPlan::new(topology, SidPlan::BLOCK).unwrap()
}

/// The path through nodes by name, over the first link between each two.
fn path(topology: &Topology, names: &[&str]) -> Path {
    let nodes: Vec<NodeId> = names.iter().map(|name| topology.node(name).unwrap()).collect();
    let link = |ends: &[NodeId]| -> LinkId {
        topology.ports(ends[0]).iter().find(|port| port.peer.node == ends[1]).unwrap().link
    };
    let NodeId::Host(from) = nodes[0] else { panic!("{} is no host", names[0]) };
    Path::new(topology, from, nodes.windows(2).map(link).collect()).unwrap()
}

fn switch(topology: &Topology, name: &str) -> SwitchId {
    match topology.node(name) {
        Some(NodeId::Switch(switch)) => switch,
        other => panic!("{name} is {other:?}"),
    }
}

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn program(destination: &str) -> Program {
    Program { destination: address(destination), segments: Vec::new() }
}

fn refusal(destination: &str, from: Option<HostId>) -> String {
    let topology = figure1();
    program(destination).decode(&plan(&topology), &topology, from).unwrap_err().to_string()
}

/// PP-5.2-1, PP-4-3: section 5.2's two paths, and section 5.3's way around spine 5.
#[test]
fn the_drafts_paths_have_the_drafts_addresses() {
    let topology = figure1();
    let plan = plan(&topology);
    for (names, expected) in [
        (["nic1", "leaf1", "spine5", "leaf3", "nic3"], "5f00:0:0100:0500:0300::"),
        (["nic2", "leaf2", "spine6", "leaf4", "nic3"], "5f00:0:0200:0600:0400::"),
        (["nic1", "leaf1", "spine6", "leaf3", "nic3"], "5f00:0:0100:0600:0300::"),
    ] {
        let path = path(&topology, &names);
        let made = Program::encode(&plan, &topology, &path, Encoding::Nodes, None).unwrap();
        assert_eq!(made, program(expected));
        let steps: Vec<Step> = names[1..4].iter().map(|name| Step::Node(switch(&topology, name))).collect();
        assert_eq!(made.decode(&plan, &topology, None).unwrap(), steps);
    }
}

/// PP-5.2-3: the same path by uA. Ports of a leaf are its two NICs and then its spines, of a spine its leaves.
#[test]
fn links_are_named_by_their_ports() {
    let topology = figure1();
    let plan = plan(&topology);
    let path = path(&topology, &["nic1", "leaf1", "spine5", "leaf3", "nic3"]);
    let made = Program::encode(&plan, &topology, &path, Encoding::Links, None).unwrap();
    assert_eq!(made, program("5f00:0:e002:e002:e000::"));
    // nic1 is at two leaves: the meaning of the first id depends on the leaf that gets the packet.
    let error = made.decode(&plan, &topology, Some(path.from)).unwrap_err();
    assert!(error.to_string().contains("which switch is first is not known"), "{error}");
    let behind_leaf1 = program("5f00:0:100:e002:e002:e000::");
    let steps = behind_leaf1.decode(&plan, &topology, None).unwrap();
    let hops: Vec<Step> = path.hops(&topology).map(|(switch, link)| Step::Link(switch, link)).collect();
    assert_eq!(steps[0], Step::Node(switch(&topology, "leaf1")));
    assert_eq!(steps[1..], hops);
}

/// PP-7-2: a tenant's service is the last id; by uA it takes the place of the last link.
#[test]
fn a_tenants_service_ends_the_program() {
    let topology = figure1();
    let plan = plan(&topology);
    let path = path(&topology, &["nic1", "leaf1", "spine5", "leaf3", "nic3"]);
    let by_node = Program::encode(&plan, &topology, &path, Encoding::Nodes, Some(7)).unwrap();
    assert_eq!(by_node, program("5f00:0:100:500:300:f007::"));
    let leaf3 = switch(&topology, "leaf3");
    assert_eq!(by_node.decode(&plan, &topology, None).unwrap().last(), Some(&Step::Tenant(leaf3, 7)));
    assert_eq!(plan.tenant_sid(leaf3, 7), Some(address("5f00:0:300:f007::")));
    let by_link = Program::encode(&plan, &topology, &path, Encoding::Links, Some(7)).unwrap();
    assert_eq!(by_link, program("5f00:0:e002:e002:f007::"));
    assert!(Program::encode(&plan, &topology, &path, Encoding::Nodes, Some(4096)).is_err());
    assert!(refusal("5f00:0:300:f007:100::", None).contains("after the tenant's service at leaf3"));
}

/// PP-4-3: leaf, spine, super-spine, spine, leaf and a tenant's service fill an address. PP-4-4: further ids continue
/// in an SRH.
#[test]
fn six_ids_fit_the_address_and_the_seventh_needs_an_srh() {
    let topology = FatTree { tiers: 3, k: 4, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap();
    let sids = plan(&topology);
    let five = path(&topology, &["h1.1.1", "edge1.1", "agg1.1", "core1.2", "agg4.1", "edge4.2", "h4.2.2"]);
    let made = Program::encode(&sids, &topology, &five, Encoding::Nodes, Some(1)).unwrap();
    assert_eq!(made, program("5f00:0:101:4901:9102:4c01:402:f001"));
    assert_eq!(made.decode(&sids, &topology, None).unwrap().len(), 6);

    // A chain of seven switches.
    let mut text = String::from("kind = \"links\"\nhost = [{ name = \"a\" }, { name = \"b\" }]\n");
    let names: Vec<String> = (1..=7).map(|number| format!("s{number}")).collect();
    names.iter().for_each(|name| text.push_str(&format!("[[switch]]\nname = \"{name}\"\n")));
    let chain: Vec<&str> = ["a"].into_iter().chain(names.iter().map(String::as_str)).chain(["b"]).collect();
    chain.windows(2).for_each(|ends| text.push_str(&format!("[[link]]\nends = [{:?}, {:?}]\n", ends[0], ends[1])));
    let topology = Topology::from_toml(&text).unwrap();
    let sids = plan(&topology);
    let made = Program::encode(&sids, &topology, &path(&topology, &chain), Encoding::Nodes, None).unwrap();
    assert_eq!(made.destination, address("5f00:0:1:2:3:4:5:6"));
    assert_eq!(made.segments, [address("5f00:0:7::")]);
    assert_eq!(made.decode(&sids, &topology, None).unwrap().len(), 7);
}

/// Two links may join two switches: the uN of the far one then does not determine the link.
#[test]
fn parallel_links_are_distinguished() {
    let text = r#"
        kind = "links"
        host = [{ name = "a" }, { name = "b" }]
        switch = [{ name = "s" }, { name = "t" }]
        link = [
            { ends = ["a", "s"] }, { ends = ["s", "t"] }, { ends = ["s", "t"] }, { ends = ["t", "b"] },
        ]
    "#;
    let topology = Topology::from_toml(text).unwrap();
    let plan = plan(&topology);
    let second = Path::new(&topology, HostId(0), [0, 2, 3].map(LinkId).to_vec()).unwrap();
    let made = Program::encode(&plan, &topology, &second, Encoding::Nodes, None).unwrap();
    assert_eq!(made, program("5f00:0:1:e002:2::"));
    let (s, t) = (switch(&topology, "s"), switch(&topology, "t"));
    let steps = [Step::Node(s), Step::Link(s, LinkId(2)), Step::Node(t)];
    assert_eq!(made.decode(&plan, &topology, None).unwrap(), steps);
}

#[test]
fn an_address_that_is_not_a_program_is_refused_with_the_reason() {
    assert!(refusal("2001:db8::1", None).contains("2001:db8::1 is not in the block 5f00::/32"));
    assert!(refusal("5f00::", None).contains("a block without an id"));
    assert!(refusal("5f00:0:100:999::", None).contains("0x0999 is the id of no switch"));
    assert!(refusal("5f00:0:100:0:300::", None).contains("0x0000 is the end of a container"));
    assert!(refusal("5f00:0:100:e009::", None).contains("would be port 9 of leaf1, where no link is"));
    assert!(refusal("5f00:0:100:e800::", None).contains("0xe800 is neither a port nor a tenant of leaf1"));
    assert!(refusal("5f00:0:100:e000:100::", None).contains("0x0100 stands behind the last link, to nic1"));
    assert!(refusal("5f00:0:e000::", None).contains("name the sender"));
}

#[test]
fn links_that_form_no_path_are_refused() {
    let topology = figure1();
    let error = |links: &[u32]| {
        let links = links.iter().copied().map(LinkId).collect();
        Path::new(&topology, HostId(0), links).unwrap_err().to_string()
    };
    assert_eq!(error(&[2]), "link nic2-leaf1 does not begin at nic1");
    assert_eq!(error(&[0, 8]), "the path ends at spine5: expected a host");
    assert_eq!(error(&[0, 2, 3]), "the path goes through nic2, which is a host");
    assert_eq!(error(&[]), "the path ends at nic1: expected a host");
}

/// PP-5.1-1: an id depends on the switch alone, and no two have the same.
#[test]
fn ids_stay_when_a_fabric_grows() {
    let leaf_spine = |leaves, spines| LeafSpine { leaves, spines, hosts_per_leaf: 1, speeds: Speeds::DEFAULT };
    let fat_tree = |k| FatTree { tiers: 3, k, pods: None, speeds: Speeds::DEFAULT };
    let pairs = [
        (leaf_spine(4, 2).topology().unwrap(), leaf_spine(512, 500).topology().unwrap()),
        (fat_tree(4).topology().unwrap(), fat_tree(64).topology().unwrap()),
    ];
    for (small, large) in &pairs {
        let (before, after) = (plan(small), plan(large));
        for id in small.switch_ids() {
            let name = &small.switches()[id.index()].name;
            assert_eq!(before.id(id), after.id(switch(large, name)), "{name}");
        }
        let unique: BTreeSet<Ipv6Addr> = large.switch_ids().map(|id| after.node_sid(id)).collect();
        assert_eq!(unique.len(), large.switches().len());
    }
}

#[test]
fn impossible_ids_are_refused() {
    let refused = |switches: &str| {
        let text = format!(
            "kind = \"links\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nswitch = [{switches}]\n\
             link = [{{ ends = [\"a\", \"s\"] }}, {{ ends = [\"s\", \"t\"] }}, {{ ends = [\"t\", \"b\"] }}]"
        );
        let topology = Topology::from_toml(&text).unwrap();
        SidPlan::new(&topology, SidPlan::BLOCK).unwrap_err().to_string()
    };
    assert_eq!(refused(r#"{ name = "s", usid = 2 }, { name = "t" }"#), "switch t has the uSID 0x0002, which is s's");
    assert_eq!(
        refused(r#"{ name = "s", usid = 0xe000 }, { name = "t" }"#),
        "switch s has the uSID 0xe000: expected 0x0001 to 0xdfff"
    );
    assert!(refused(r#"{ name = "s" }, { name = "t", number = 0x4800 }"#).contains("switch t has number 18432"));
    assert!(refused(r#"{ name = "s" }, { name = "t", tier = 5 }"#).contains("numbers up to 0 of tier 5"));
}
