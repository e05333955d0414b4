//! `[steering]` and `[[route.path]]`: the resulting configuration, and contradictions.

use super::errors::{TRANSIT, refused_with};
use super::parse;
use srdma_dataplane::headend::{HeadendConfig, HeadendPath, ProbeConfig, Probing};
use srdma_dataplane::{Command, RouteAction};
use srdma_node::{Configuration, Denied, DenyList, InterfaceFacts, Purpose};
use srdma_steering::{Config, Limits, Mode, Path};
use srdma_wire::{MacAddress, Prefix};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// From line 32 on.
const PATHS: &str = "\
[[route]]
prefix = '2001:db8:3::/64'
[[route.path]]
segments = ['5f00:0:100:500:300::']
via = ['2001:db8:ff::5', '2001:db8:ff::3']
[[route.path]]
segments = ['5f00:0:100:e001::', '5f00:0:300::']
rank = 0
probe = false
[[route.path]]
segments = ['5f00:0:100:700:300::']
denied = true
probe_segments = ['5f00:0:100:700:100::']
";

const STEERING: &str = "\
[steering]
mode = 'ordered'
dwell = '20us'
hold = '2ms'
hold_most = '4s'
return_after = '30ms'
idle_gap = '70us'
losses = 5
loss_window = '6ms'
ce_permille = 250
one_way_limit = '11us'
two_way_limit = '22us'
flows = 64
seed = 0xffff_ffff
probe_address = '2001:db8:ff::99'
probe_interval = '3ms'
probe_active = '40ms'
probe_gap = '1us'
probe_dscp = 46
probe_port = 1022
silent_probes = 4
trimmed_dscp = 13
";

fn addresses(texts: &[&str]) -> Vec<Ipv6Addr> {
    texts.iter().map(|text| text.parse().expect("an address")).collect()
}

/// Steering configuration of a transit node.
fn configured(more: &str) -> (Option<HeadendConfig>, Vec<Vec<HeadendPath>>) {
    let configuration = parse(&format!("{TRANSIT}{more}")).expect("right");
    configuration.node().expect("a node takes it");
    let mut config = None;
    let mut paths = Vec::new();
    for command in configuration.spec.commands() {
        match command {
            Command::SetSteering(set) => config = Some(*set),
            Command::AddRoute { action: RouteAction::Placed(placed), .. } => paths.push(placed),
            _ => {}
        }
    }
    (config, paths)
}

/// PP-4-3, D83, D84, D87.
#[test]
fn each_key_reaches_the_headend() {
    let (config, paths) = configured(&format!("{PATHS}{STEERING}"));
    let expected = HeadendConfig {
        steering: Config {
            mode: Mode::Ordered,
            dwell_ns: 20_000,
            hold_ns: 2_000_000,
            hold_most_ns: 4_000_000_000,
            return_ns: 30_000_000,
            idle_gap_ns: 70_000,
            silent_probes: 4,
            limits: Limits {
                losses: 5,
                loss_window_ns: 6_000_000,
                ce_permille: 250,
                one_way_ns: Some(11_000),
                two_way_ns: Some(22_000),
            },
            flows: 64,
            seed: 0xFFFF_FFFF,
        },
        probes: Some(ProbeConfig {
            interval_ns: 3_000_000,
            active_ns: 40_000_000,
            gap_ns: 1_000,
            traffic_class: 46 << 2 | 2,
            port: 1022,
        }),
        probe_address: Some("2001:db8:ff::99".parse().expect("an address")),
        trimmed_dscp: Some(13),
        ..HeadendConfig::new(Ipv6Addr::UNSPECIFIED)
    };
    assert_eq!(config, Some(expected));
    let path = |segments: &[&str], nodes: &[&str], rank, is_denied| Path {
        segments: addresses(segments),
        nodes: addresses(nodes),
        rank,
        is_denied,
    };
    let expected = [
        HeadendPath {
            path: path(&["5f00:0:100:500:300::"], &["2001:db8:ff::5", "2001:db8:ff::3"], 0, false),
            probing: Probing::ThereAndBack,
            entropy: None,
        },
        HeadendPath {
            path: path(&["5f00:0:100:e001::", "5f00:0:300::"], &[], 0, false),
            probing: Probing::Never,
            entropy: None,
        },
        HeadendPath {
            path: path(&["5f00:0:100:700:300::"], &[], 2, true),
            probing: Probing::By(addresses(&["5f00:0:100:700:100::"])),
            entropy: None,
        },
    ];
    assert_eq!(paths, [expected]);
}

/// The template of two planes with three spines each, but without one of them.
const TEMPLATE: &str = "[[route]]\nprefix = '2001:db8:3::/64'\n[[route.path]]\nrank = 7\n\
    template = { base = '5f00:0:101:4901:102::', denied = [5], choice = [\
    { bits = 1, choices = 2, step = '0:0:100:100:100::' }, { bits = 2, choices = 3, step = '0:0:0:1::' }] VALUES }\n";

/// D255: a path for each value, with the addresses that follow.
#[test]
fn a_template_is_expanded_to_its_paths() {
    let (_, paths) = configured(&TEMPLATE.replace("VALUES", ""));
    let found: Vec<_> = paths[0]
        .iter()
        .map(|own| (own.entropy.map(|entropy| entropy.0), own.path.segments[0].to_string(), own.path.is_denied))
        .collect();
    let expected = [
        (0, "5f00:0:101:4901:102::", false),
        (1, "5f00:0:101:4902:102::", false),
        (2, "5f00:0:101:4903:102::", false),
        (4, "5f00:0:201:4a01:202::", false),
        (5, "5f00:0:201:4a02:202::", true),
        (6, "5f00:0:201:4a03:202::", false),
    ];
    let expected = expected.map(|(value, address, denied)| (Some(value), address.to_owned(), denied));
    assert_eq!(found, expected);
    assert!(paths[0].iter().all(|own| own.path.rank == 7));
    let (_, some) = configured(&TEMPLATE.replace("VALUES", ", values = [6, 0]"));
    let values: Vec<_> = some[0].iter().map(|own| own.entropy.map(|entropy| entropy.0)).collect();
    assert_eq!(values, [Some(6), Some(0)]);
}

/// D255.
#[test]
fn impossible_templates_and_values_are_refused() {
    let with = |more: &str| TEMPLATE.replace("VALUES", more);
    refused(&with(", values = [3]"), "36: the entropy is no path: choice 2 is 3, expected 0 to 2");
    refused(&with(", values = [8]"), "36: entropy 0x8 is no path: bits are set above those of the choices");
    let denied = with("").replace("denied = [5]", "denied = [7]");
    refused(&denied, "36: the entropy is no path: choice 2 is 3, expected 0 to 2");
    let outside = with("").replace("0:0:100:100:100::", "0:1::");
    refused(&outside, "36: no template: the last path would have an address outside the base's /32");
    let large = with("").replace("bits = 2, choices = 3", "bits = 6, choices = 33");
    refused(&large, "36: the template has 66 paths, expected 64 at most: choose some of them by values");
    refused(
        &with("").replace("rank = 7", "entropy = 1"),
        "35: entropy beside template, which has the values of its paths",
    );
    let both = with("").replace("rank = 7", "segments = ['5f00:0:1::']");
    refused(&both, "35: segments beside template: give one of them");
}

#[test]
fn without_a_section_the_defaults_hold() {
    assert_eq!(configured("").0, None, "without paths there is no steering");
    let config = configured(PATHS).0.expect("routes have paths");
    assert_eq!((config.steering, config.probes), (Config::default(), Some(ProbeConfig::default())));
    assert_eq!(configured(&format!("{PATHS}[steering]\nprobes = false\n")).0.expect("on").probes, None);
}

#[track_caller]
fn refused(more: &str, error: &str) {
    refused_with(TRANSIT, more, error);
}

#[test]
fn contradictions_are_refused() {
    let route = "[[route]]\nprefix = '2001:db8:3::/64'\n";
    refused(
        &format!("{route}path = []\n"),
        "33: route 2001:db8:3::/64: a destination needs at least one path that is not denied",
    );
    refused(&format!("{route}[[route.path]]\nsegments = []\n"), "34: a path needs at least one segment");
    refused(
        &format!("{route}[[route.path]]\nsegments = ['5f00:0:1::']\ndenied = true\n"),
        "33: route 2001:db8:3::/64: a destination needs at least one path that is not denied",
    );
    refused(
        &format!("{route}[[route.path]]\nsegments = ['5f00:0:1::']\nprobe = false\nprobe_segments = ['5f00:0:1::']\n"),
        "37: probe_segments beside probe: give one of them",
    );
    refused(
        &format!("{route}blackhole = true\n[[route.path]]\nsegments = ['5f00:0:1::']\n"),
        "32: expected exactly one of via, encaps, path and blackhole = true",
    );
    refused("[steering]\nhold = '0ms'\n", "33: hold is 0, expected a time above it");
    refused("[steering]\nhold_most = '1us'\n", "33: hold_most is less than hold");
}

/// On interfaces the kernel would take probes to the loopback for itself.
#[test]
fn probes_on_interfaces_need_an_address_of_their_own() {
    let text = "\
[node]
loopback = '2001:db8:ff::11'
[[port]]
name = 'p'
interface = 'eth0'
[[route]]
prefix = '2001:db8:3::/64'
[[route.path]]
segments = ['5f00:0:100:500:300::']
";
    let facts = InterfaceFacts { mac: MacAddress([2; 6]), addresses: Vec::new(), link_mtu: 4200 };
    let facts = BTreeMap::from([("eth0".to_owned(), facts)]);
    let read = |text: &str| {
        let file = std::path::Path::new("node.toml");
        Configuration::parse_for(file, text, Purpose::Interfaces(&facts)).map_err(|error| error.to_string())
    };
    let error = read(text).expect_err("no address");
    assert!(error.starts_with("node.toml:6: probes need an address of their own"), "{error}");
    read(&format!("{text}[steering]\nprobes = false\n")).expect("nothing comes back");
    read(&format!("{text}[steering]\nprobe_address = '2001:db8:ff::99'\n")).expect("right");
}

/// Two routes by the same template, to NICs behind the same leaf.
const LISTED: &str = "\
[steering]
probes = false
deny_list = { file = 'run/denied.json', nic = 'h1.1' }
[[route]]
prefix = '2001:db8:21::/64'
nic = 'h2.1'
[[route.path]]
template = { base = '5f00:0:1:4801:2::', choice = [{ bits = 2, choices = 4, step = '0:0:0:1::' }], denied = [0] }
[[route]]
prefix = '2001:db8:22::/64'
nic = 'h2.2'
[[route.path]]
template = { base = '5f00:0:1:4801:2::', choice = [{ bits = 2, choices = 4, step = '0:0:0:1::' }], denied = [0] }
";

/// The values that each route denies.
fn denied(configuration: &Configuration) -> Vec<Vec<u32>> {
    let routes = configuration.spec.entries.routes.values();
    let of = |action: &RouteAction| match action {
        RouteAction::Placed(paths) => {
            let denied = paths.iter().filter(|path| path.path.is_denied);
            Some(denied.filter_map(|path| path.entropy.map(|value| value.0)).collect())
        }
        _ => None,
    };
    routes.filter_map(of).collect()
}

fn list(text: &str) -> Result<DenyList, String> {
    DenyList::parse(text, "h1.1")
}

/// D241: beside the values that the file denies, those of the list are denied, of the NIC that a route leads to.
#[test]
fn a_deny_list_denies_paths_of_routes_to_its_nics() {
    let read = || parse(&format!("{TRANSIT}{LISTED}")).expect("right");
    let mut configuration = read();
    let settings = configuration.deny_list.clone().expect("a list");
    assert_eq!((settings.file.to_str(), settings.nic.as_str()), (Some("run/denied.json"), "h1.1"));
    assert_eq!(denied(&configuration), [[0], [0]]);
    let text = r#"{ "nic": "h1.1", "failed_links": [], "denied": [], "excluded": { "h2.2": [0, 3, 77], "h9": [1] } }"#;
    let effect = configuration.deny(&list(text).expect("a list"));
    assert_eq!((denied(&configuration), effect), (vec![vec![0], vec![0, 3]], Denied { paths: 1, spared: vec![] }));
    configuration.node().expect("a node takes it");
    // What is left of a route when its own denied paths and the list's are taken away is nothing.
    let mut configuration = read();
    let effect = configuration.deny(&list(r#"{ "nic": "h1.1", "excluded": { "h2.1": [1, 2, 3] } }"#).expect("a list"));
    let spared = vec![Prefix::new("2001:db8:21::".parse().expect("an address"), 64).expect("a prefix")];
    assert_eq!((denied(&configuration), effect), (vec![vec![0], vec![0]], Denied { paths: 0, spared }));
}

#[test]
fn a_deny_list_that_is_none_is_refused() {
    assert_eq!(
        list(r#"{ "nic": "h2.1", "excluded": {} }"#).unwrap_err(),
        "the deny list of h2.1, expected that of h1.1"
    );
    for text in ["", "{}", r#"{ "nic": "h1.1", "excluded": { "h2.1": [-1] } }"#, r#"{ "nic": "h1.1", "excluded": ["#] {
        assert!(list(text).unwrap_err().starts_with("no deny list of srdma map: "), "{text}");
    }
    refused_with(
        TRANSIT,
        &LISTED.replace("nic = 'h2.1'\n", "").replace("nic = 'h2.2'\n", ""),
        "34: no route follows the deny list: expected nic in a [[route]], the NIC that it leads to",
    );
    let via = "[[route]]\nprefix = '2001:db8:5::/64'\nnic = 'h5.1'\nblackhole = true\n";
    refused_with(TRANSIT, &format!("{LISTED}{via}"), "47: nic without path: a deny list is about paths");
}

/// D244: where a response between nodes of a tree would have an entropy value in place of its epoch.
#[test]
fn entropy_toward_a_node_of_the_tree_is_refused() {
    let route = "[steering]\nprobes = false\n[[route]]\nprefix = '2001:db8:6::1/128'\n[[route.path]]\nentropy = 1\n\
                 segments = ['5f00:0:1:4801:2::']\n";
    let interfaces = ["up", "down"].map(|name| {
        let mac = MacAddress([2, 0, 0, 0, 0, 9]);
        (name.to_owned(), InterfaceFacts { mac, addresses: Vec::new(), link_mtu: 1500 })
    });
    let text = TRANSIT
        .replace("[node]\n", "[node]\nopen = true\n")
        .replace("[[neighbour]]\naddress = '2001:db8:6::1%up'\nmac = '02:00:00:00:00:06'\n", "");
    let read = |route: &str| {
        let purpose = Purpose::Interfaces(&interfaces.clone().into());
        Configuration::parse_for(std::path::Path::new("node.toml"), &format!("{text}{route}"), purpose).map(|_| ())
    };
    read(&route.replace("::1/128", "::/64").replace("entropy = 1\n", ""))
        .expect("the kernel may have a route to the parent");
    let refused = read(&route.replace("::1/128", "::/64")).unwrap_err().to_string();
    assert!(
        refused.contains("route to 2001:db8:6::1, a node of the tree of group 7: its paths have entropy"),
        "{refused}"
    );
}
