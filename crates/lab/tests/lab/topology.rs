//! Topology files: accepted and rejected ones.

use srdma_group::ReceiverRegion;
use srdma_lab::group::{Member, group};
use srdma_lab::node_file::{self, NodeChoices};
use srdma_lab::topology::{Kind, Lists, Operation};
use srdma_lab::{ControllerAccess, Instance, Source, Topology};
use srdma_node::{Configuration, Purpose};
use srdma_node_spec::file::DriverName;
use srdma_wire::Qpn;
use std::collections::BTreeMap;
use std::path::Path;

const GOOD: &str = r#"description = "two hosts and a node"

[[node]]
name = "A"
kind = "endpoint"
addresses = ["2001:db8::a"]

[[node]]
name = "N"
kind = "srdma"
addresses = ["2001:db8::1"]
prefixes = ["2001:db8:1::/48"]
config.route = [{ prefix = "2001:db8:9::/48", blackhole = true }]

[[node]]
name = "X"
kind = "router"
addresses = ["2001:db8::2"]
sysctls = { "net.ipv6.conf.all.seg6_enabled" = 1 }
commands = ["ip -6 route add 2001:db8:8::/48 dev lo"]

[[node]]
name = "B"
kind = "endpoint"
addresses = ["2001:db8::b"]

[[link]]
ends = ["A", "N"]
mtu = 4608

[[link]]
ends = ["N", "X"]
rate_bits_per_s = 200_000_000
loss = 0.01
addresses = [["2001:db8:7::1/64"], []]

[[link]]
ends = ["X", "B"]
interfaces = ["down", "eth0"]

[run]
path_mtu = 1024
operation = "send"
lists = "provisioned"
"#;

fn parse(text: &str) -> Result<Topology, String> {
    Topology::parse(Path::new("dir/pair.toml"), text).map_err(|error| error.to_string())
}

#[test]
fn a_good_file_is_read() {
    let topology = parse(GOOD).unwrap();
    assert_eq!(topology.name, "pair");
    let kinds: Vec<&str> = topology.nodes.iter().map(|node| node.kind.name()).collect();
    assert_eq!(kinds, ["endpoint", "srdma", "router", "endpoint"]);
    let links: Vec<&str> = topology.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["A-N", "N-X", "X-B"]);
    let interfaces: Vec<[&str; 2]> =
        topology.links.iter().map(|link| [0, 1].map(|end| link.ends[end].interface.as_str())).collect();
    assert_eq!(interfaces, [["n", "a"], ["x", "n"], ["down", "eth0"]]);
    let middle = &topology.links[1];
    assert_eq!((middle.mtu, middle.rate_bits_per_s, middle.loss), (9000, Some(200_000_000), 0.01));
    assert_eq!(topology.nodes[2].commands, [["ip", "-6", "route", "add", "2001:db8:8::/48", "dev", "lo"]]);
    assert_eq!(topology.transfer.operation, Operation::Send);
    assert_eq!(topology.transfer.lists, Lists::Provisioned);
    assert!(topology.group.is_none() && topology.pairs.is_empty());
}

/// Pairs with the same destination have an address each; a source has no other role.
#[test]
fn several_pairs_transfer_at_once() {
    let host = |name: &str, addresses: &str| {
        format!("[[node]]\nname = \"{name}\"\nkind = \"endpoint\"\naddresses = [{addresses}]\n\n")
    };
    let text = GOOD.replace("[[link]]\nends = [\"A\"", &(host("C", "\"2001:db8::c\"") + "[[link]]\nends = [\"A\""));
    let text = text.replace("\"2001:db8::b\"", "\"2001:db8::b\", \"2001:db8::b:2\"");
    let with = |pairs: &str| parse(&text.replace("[run]\n", &format!("[run]\npairs = [{pairs}]\n")));
    let pairs = with(r#"["A", "B"], ["C", "B"]"#).unwrap().pairs;
    let of: Vec<_> = pairs.iter().map(|pair| (pair.source, pair.destination, pair.address.to_string())).collect();
    assert_eq!(of, [(0, 3, "2001:db8::b".to_owned()), (4, 3, "2001:db8::b:2".to_owned())]);
    for (pairs, expected) in [
        (r#"["A", "C"], ["B", "C"]"#, "C needs an address for each pair: expected 2"),
        (r#"["A", "B"], ["A", "C"]"#, "A has a part in another pair already"),
        (r#"["A", "B"], ["B", "C"]"#, "B has a part in another pair already"),
        (r#"["A", "B"], ["C", "A"]"#, "A is the source of another pair"),
        (r#"["A", "A"]"#, "A is the source"),
        (r#"["A", "N"]"#, "N must be of kind endpoint"),
    ] {
        let error = with(pairs).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    let both = text.replace("[run]\n", "[run]\nsource = \"A\"\ndestination = \"B\"\npairs = [[\"C\", \"B\"]]\n");
    assert!(parse(&both).unwrap_err().ends_with("expected source and destination, or pairs of them, not both"));
}

#[test]
fn a_transfer_by_unicast_has_two_endpoints() {
    let with = |run: &str| parse(&GOOD.replace("[run]\n", &format!("[run]\n{run}")));
    let pair = with("source = \"A\"\ndestination = \"B\"\n").unwrap().pairs[0];
    assert_eq!((pair.source, pair.destination), (0, 3));
    for (run, expected) in [
        ("source = \"A\"\n", "42: source and destination stand together"),
        ("source = \"A\"\ndestination = \"N\"\n", "43: N must be of kind endpoint"),
        ("source = \"A\"\ndestination = \"A\"\n", "43: A is the source"),
        ("source = \"C\"\ndestination = \"A\"\n", "42: unknown node C: nodes are A, N, X, B"),
    ] {
        assert_eq!(with(run).unwrap_err(), format!("dir/pair.toml:{expected}"));
    }
}

#[test]
fn a_lab_has_one_controller_that_nodes_find() {
    let with = |controller: &str| parse(&GOOD.replace("[run]\n", &format!("{controller}\n[run]\n")));
    let plan = with("[controller]\nnode = \"X\"").unwrap().controller.unwrap();
    assert_eq!((plan.node, plan.url().as_str()), (2, "https://[2001:db8::2]:8470"));
    assert_eq!(with("[controller]\nnode = \"N\"\nport = 99").unwrap().controller.unwrap().port, 99);
    for (controller, expected) in [
        ("[controller]\nnode = \"Z\"", "42: unknown node Z: nodes are A, N, X, B"),
        ("[controller]\nnode = \"A\"", "42: A is a host: expected a node of kind router or srdma for the controller"),
        ("[controller]\nnode = \"X\"\nport = 0", "43: port 0: expected 1 to 65535"),
        ("[controller]\nnode = \"X\"\n[controller]\nnode = \"N\"", "43: duplicate key"),
        (
            "[[controller]]\nnode = \"X\"\n[[controller]]\nnode = \"N\"",
            "41: invalid type: array, expected one [controller]",
        ),
        ("[controller]\nport = 1", "41: missing key `node`"),
        ("[controller]\nnode = \"X\"\nurl = \"\"", "43: unknown key `url`"),
    ] {
        let error = with(controller).unwrap_err();
        assert!(error.starts_with(&format!("dir/pair.toml:{expected}")), "{error}");
    }
    let bare = GOOD.replace("addresses = [\"2001:db8::2\"]", "");
    let bare = parse(&bare.replace("[run]\n", "[controller]\nnode = \"X\"\n[run]\n")).unwrap_err();
    assert!(bare.ends_with("X needs an address at which the controller is found"), "{bare}");

    let config = "config.route = [{ prefix = \"2001:db8:9::/48\", blackhole = true }]";
    let node = |section: &str| GOOD.replace(config, &format!("config.controller = {{ {section} }}"));
    let error = parse(&node("hosts = []")).unwrap_err();
    let expected =
        "dir/pair.toml:13: N has a [controller] without url, and the lab has no [controller] to take it from";
    assert_eq!(error, expected);
    parse(&node("url = \"https://[2001:db8::9]:1\"")).unwrap();
    parse(&node("hosts = []").replace("[run]\n", "[controller]\nnode = \"X\"\n[run]\n")).unwrap();
}

#[test]
fn a_controller_has_one_group_to_create() {
    const SECTION: &str = r#"[controller]
node = "X"
[controller.group]
proxy = "2001:db8:cc::1"
designated_qpn = 0xd00000
initial_psn = 0xfffff0
source = "A"
receivers = ["B"]
"#;
    let with = |section: &str| parse(&GOOD.replace("[run]\n", &format!("{section}[run]\n")));
    let topology = with(SECTION).unwrap();
    let group = topology.controlled_group().unwrap();
    assert_eq!((group.source, group.receivers.as_slice(), group.designated_qpn.get()), (0, &[3][..], 0xd0_0000));
    assert!(topology.has_transfer());
    for (from, to, expected) in [
        ("[\"B\"]", "[\"B\", \"B\"]", "48: B stands here twice"),
        ("[\"B\"]", "[\"A\"]", "48: A is the source"),
        ("[\"B\"]", "[\"N\"]", "48: N must be a host: of kind endpoint or guest"),
        ("[\"B\"]", "[]", "42: [controller.group] needs at least one receiver"),
        ("\"A\"", "\"X\"", "47: X must be a host: of kind endpoint or guest"),
        ("0xd00000", "1", "45: expected a QPN from 2 to 0xffffff"),
        ("0xfffff0", "0x1000000", "46: expected a PSN from 0 to 0xffffff"),
    ] {
        assert!(SECTION.contains(from), "{from}");
        assert_eq!(with(&SECTION.replace(from, to)).unwrap_err(), format!("dir/pair.toml:{expected}"));
    }
    let pairs = parse(&GOOD.replace("[run]\n", &format!("{SECTION}[run]\nsource = \"A\"\ndestination = \"B\"\n")));
    assert!(pairs.unwrap_err().ends_with("has a source, and receivers: expected none in [run]"));
    let figure1 = Source::find("figure1").unwrap().text;
    let group = SECTION.replace("\"X\"", "\"N6\"").replace("\"A\"", "\"S1\"").replace("\"B\"", "\"R1\"");
    let both = parse(&format!("{figure1}{group}")).unwrap_err();
    assert!(both.ends_with("the lab has a [group]: expected no [controller.group] beside it"), "{both}");
}

/// A node's own controller section stays; a node without one gets the lab's.
#[test]
fn nodes_are_configured_with_the_labs_controller() {
    let topology = Source::find("figure1-controller").unwrap().topology().unwrap();
    let instance = Instance::new(&topology.name, Some("a")).unwrap();
    let access = ControllerAccess::of(&topology, &instance).unwrap();
    let choices = NodeChoices { controller: Some(access.clone()), ..NodeChoices::default() };
    let section = |config: &[(&str, &str)]| {
        let mut topology = topology.clone();
        let node = topology.node("N6").unwrap();
        if let Kind::Srdma { config: table } = &mut topology.nodes[node].kind {
            let own = table["controller"].as_table_mut().unwrap();
            own.extend(config.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())));
        }
        let text = node_file::text(&topology, None, node, Path::new("N6.sock"), &choices).unwrap();
        let file: toml::Table = text.parse().unwrap();
        ["url", "token_file", "ca_file"]
            .map(|key| file["controller"].get(key).map(|value| value.as_str().unwrap().to_owned()))
    };
    let directory = "/run/srdma/lab/figure1-controller-a/controller";
    let [url, token, ca] =
        ["https://[2001:db8:ff:c::1]:8470", &format!("{directory}/token"), &format!("{directory}/certificate.pem")]
            .map(|text| Some(text.to_owned()));
    assert_eq!(section(&[]), [url.clone(), token.clone(), ca.clone()]);
    assert_eq!(section(&[("token_file", "mine")]), [url, Some("mine".to_owned()), ca]);
    let other = "https://other.example:8470";
    assert_eq!(section(&[("url", other)]), [Some(other.to_owned()), None, None]);
}

#[test]
fn errors_name_the_line() {
    for (from, to, expected) in [
        ("kind = \"router\"", "kind = \"switch\"", "17: unknown value `switch`"),
        ("description", "descriptoin", "1: unknown key `descriptoin`"),
        ("name = \"B\"", "name = \"A\"", "23: there is a node A already"),
        ("name = \"B\"", "name = \"B/\"", "23: \"B/\" is no name of a node"),
        ("name = \"B\"", "name = \"wires\"", "23: wires is the name of the namespace that the links pass"),
        ("addresses = [\"2001:db8::b\"]", "", "23: host B needs an address"),
        ("ends = [\"X\", \"B\"]", "ends = [\"X\", \"C\"]", "38: unknown node C: nodes are A, N, X, B"),
        ("ends = [\"X\", \"B\"]", "ends = [\"X\", \"X\"]", "38: the link begins and ends at X"),
        ("ends = [\"X\", \"B\"]", "ends = [\"X\", \"A\"]", "37: A is a host and has a link already"),
        ("\"down\"", "\"n\"", "37: X has an interface n already"),
        ("\"down\"", "\"much-too-long-name\"", "39: \"much-too-long-name\" is no name of an interface"),
        ("mtu = 4608", "mtu = 1000", "29: mtu 1000: expected 1280 to 15000"),
        ("loss = 0.01", "loss = 1.5", "34: expected a probability from 0 to 1"),
        ("200_000_000", "20", "33: expected a rate of at least 1000 bits per second"),
        ("2001:db8:7::1/64", "2001:db8:7::1", "35: expected an address with its prefix length"),
        ("2001:db8:1::/48", "2001:db8:1::/148", "12: \"2001:db8:1::/148\": expected a prefix"),
        ("path_mtu = 1024", "path_mtu = 1000", "42: expected a path MTU of 256, 512, 1024, 2048 or 4096"),
        ("[\"2001:db8::2\"]", "[\"2001:db8::1\"]", "18: 2001:db8::1/128 of X is N's already"),
        ("[\"2001:db8::2\"]", "[]\nprefixes = [\"2001:db8:1::/48\"]", "19: 2001:db8:1::/48 of X is N's already"),
        ("kind = \"srdma\"", "kind = \"router\"", "13: only nodes of kind srdma have a config: N"),
        (
            "[\"2001:db8::2\"]",
            "[\"2001:db8::2\"]\noptions = [\"--raw=a\"]",
            "19: only nodes of kind endpoint have options: X",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = parse(&text).unwrap_err();
        let error = error.strip_prefix("dir/pair.toml:").unwrap_or(&error);
        assert!(error.starts_with(expected), "{to}: {error}");
    }
    assert!(Topology::parse(Path::new("a b.toml"), GOOD).is_err());
}

/// Each node accepts the file that the lab writes for it, with its group entry (D34).
#[test]
fn every_node_of_figure_1_accepts_its_file() {
    let topology = Source::find("figure1").unwrap().topology().unwrap();
    let plan = topology.group.clone().unwrap();
    let members: Vec<Member> = (1..=5)
        .map(|rank| Member {
            qpn: Qpn::new(0x1000 + rank).unwrap(),
            region: Some(ReceiverRegion { base: 0x7000_0000_0000 + (u64::from(rank) << 32), rkey: rank << 8 }),
        })
        .collect();
    for operation in [Operation::Write, Operation::Send] {
        for lists in [Lists::Tlv, Lists::Provisioned] {
            let transfer = srdma_lab::topology::Transfer { operation, lists, ..topology.transfer.clone() };
            let group = group(&topology, &plan, &transfer, Qpn::new(0x100).unwrap(), &members).unwrap();
            for (position, node) in topology.nodes.iter().enumerate() {
                let Kind::Srdma { .. } = node.kind else {
                    continue;
                };
                let status = Instance::new("figure1", None).unwrap().socket("N");
                let choices = NodeChoices { driver: DriverName::AfPacket, restarted: true, ..NodeChoices::default() };
                let text = node_file::text(&topology, Some(&group), position, &status, &choices).unwrap();
                let facts = interfaces(&topology, position);
                let file = Path::new("node.toml");
                let configuration = Configuration::parse_for(file, &text, Purpose::Interfaces(&facts));
                let configuration = configuration.unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert!(configuration.spec.node.restarted, "{text}");
                configuration.node().unwrap_or_else(|error| panic!("{error}\n{text}"));
            }
        }
    }
}

fn interfaces(topology: &Topology, node: usize) -> BTreeMap<String, srdma_node::InterfaceFacts> {
    let ends = topology.ends_of(node);
    let facts = ends.map(|(link, end, _)| {
        let mac = srdma_wire::MacAddress([2, 0, 0, 0, node as u8, link as u8]);
        (end.interface.clone(), srdma_node::InterfaceFacts { mac, addresses: Vec::new(), link_mtu: 9000 })
    });
    facts.collect()
}
