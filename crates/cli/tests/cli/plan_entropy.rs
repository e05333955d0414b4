//! `srdma plan entropy`: the draft's example by values, the way back from a packet, a route for a node, and refusals.

use serde_json::{Value, json};
use srdma_node::Configuration;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FABRIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1.toml");
const JOBS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1-jobs.toml");

fn plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("plan").args(arguments).output().expect("the program runs")
}

fn entropy(fabric: &str, arguments: &[&str]) -> Output {
    plan(&[&["entropy", "--fabric", fabric], arguments].concat())
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn refusal(arguments: &[&str]) -> String {
    let output = entropy(FABRIC, arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// D255, PP-5.2-1: the draft's NICs 1 and 3 have eight paths, by two leaves, two spines and two leaves.
#[test]
fn the_drafts_paths_have_values() {
    let printed: Value =
        serde_json::from_str(&text(entropy(FABRIC, &["--from", "nic1", "--to", "nic3", "--json"]))).expect("JSON");
    let destinations: Vec<_> =
        printed["paths"].as_array().expect("paths").iter().map(|path| path["destination"].clone()).collect();
    let expected = ["100:500:300", "100:500:400", "100:600:300", "100:600:400"];
    let expected = expected.into_iter().map(str::to_owned);
    let expected: Vec<_> = expected.clone().chain(expected.map(|path| path.replacen('1', "2", 1))).collect();
    assert_eq!(destinations, expected.iter().map(|ids| json!(format!("5f00:0:{ids}::"))).collect::<Vec<_>>());
    assert_eq!(printed["paths"][5]["entropy"], 5);
    assert_eq!(printed["paths"][5]["source_port"], 49157);
    assert_eq!(printed["paths"][5]["flow_label"], 0x80000);
    assert_eq!(printed["paths"][5]["path"], json!(["nic1", "leaf2", "spine5", "leaf4", "nic3"]));
    assert_eq!(printed["bits"], 3);
    assert_eq!(printed["fields"][1], json!({ "hop": 1, "tier": 1, "choices": 2, "bits": 1, "shift": 1 }));
    assert_eq!(printed["template"]["base"], "5f00:0:100:500:300::");
    assert_eq!(printed["template"]["choices"][2], json!({ "bits": 1, "choices": 2, "step": "::100:0:0:0" }));
}

/// D254: a packet's port and label are its path.
#[test]
fn the_path_of_a_packet_is_read_from_port_and_flow_label() {
    let packet = ["--from", "nic2", "--to", "nic3", "--source-port", "49159", "--flow-label", "0x80000"];
    let found = text(entropy(FABRIC, &packet));
    assert!(found.ends_with("\n0x7      49159  0x80000     leaf2 spine6 leaf4  5f00:0:200:600:400::\n"), "{found}");
    assert!(found.contains("bits 1 to 1: the port out of switch 1 of the path, tier 1, 2 at most\n"), "{found}");
    let by_value = text(entropy(FABRIC, &["--from", "nic2", "--to", "nic3", "0x7"]));
    assert_eq!(by_value, found);
}

/// Flows of a plan have the values of their paths.
#[test]
fn a_placement_has_values() {
    let placed = text(plan(&["place", "--fabric", FABRIC, "--jobs", JOBS, "--json"]));
    let placed: Value = serde_json::from_str(&placed).expect("JSON");
    for (flow, value) in [(0, 0), (1, 7)] {
        let flow = &placed["flows"][flow];
        assert_eq!(flow["entropy"], value);
        let ends = [flow["from"].as_str().expect("a name"), flow["to"].as_str().expect("a name")];
        let found = entropy(FABRIC, &["--from", ends[0], "--to", ends[1], "--json", &value.to_string()]);
        let found: Value = serde_json::from_str(&text(found)).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        assert_eq!(text(&found["paths"][0]["destination"]), text(&flow["program"]["destination"]));
        assert_eq!(found["paths"][0]["path"].as_array().expect("nodes"), flow["path"].as_array().expect("nodes"));
    }
}

/// Routes of a configuration of a node: for each its paths as value, program and whether it is denied.
fn routes(text: &str) -> Vec<Vec<(Option<u32>, String, bool)>> {
    let file = "[node]\nloopback = '2001:db8:ff::1'\n[steering]\nprobes = false\n[[port]]\nname = 'p'\n\
                mac = '02:00:00:00:00:01'\n";
    let text = format!("{file}{text}");
    let parsed = Configuration::parse(Path::new("node.toml"), &text);
    let configuration = parsed.unwrap_or_else(|error| panic!("{error}\n{text}"));
    configuration.node().expect("a node takes it");
    let mut routes = Vec::new();
    for action in configuration.spec.entries.routes.values() {
        let srdma_dataplane::RouteAction::Placed(paths) = action else { panic!("{action:?}") };
        let path = |path: &srdma_dataplane::headend::HeadendPath| {
            let segments: Vec<_> = path.path.segments.iter().map(ToString::to_string).collect();
            (path.entropy.map(|entropy| entropy.0), segments.join(" "), path.path.is_denied)
        };
        routes.push(paths.iter().map(path).collect());
    }
    routes
}

/// D255: what a node expands from the template is what the plan lists; failed paths are denied.
#[test]
fn a_route_for_a_node_has_the_paths_of_the_plan() {
    let shipped = |name: &str| format!("{}/../../fabrics/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    for (name, from, to, is_template) in [
        ("figure1", "nic1", "nic3", true),
        ("failures", "h1.1", "h6.2", true),
        ("dual-plane", "h1.1", "h8.8", true),
        ("torus", "h11.1", "h33.1", false),
    ] {
        let ends = ["--from", from, "--to", to];
        let route = text(entropy(&shipped(name), &[&ends[..], &["--route"]].concat()));
        assert_eq!(route.contains("template"), is_template, "{route}");
        let listed = text(entropy(&shipped(name), &[&ends[..], &["--json"]].concat()));
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let expected: Vec<_> = listed["paths"]
            .as_array()
            .expect("paths")
            .iter()
            .map(|path| {
                let value = path["entropy"].as_u64().map(|value| value as u32);
                (value, path["destination"].as_str().expect("an address").to_owned(), path["is_failed"] == true)
            })
            .collect();
        assert_eq!(routes(&route), std::slice::from_ref(&expected), "{name}");
        // Spine 3, spine 5 beyond leaf 1, and spine 8 before leaf 6.
        let denied: Vec<_> = expected.iter().filter(|(_, _, denied)| *denied).filter_map(|path| path.0).collect();
        assert_eq!(denied, if name == "failures" { vec![2, 4, 7] } else { Vec::new() });
    }
}

/// The deny list of a mapper denies values, of its own NIC and fabric alone.
#[test]
fn values_of_a_deny_list_are_denied() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = |name: &str, list: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, list).expect("the list is written");
        file.to_str().expect("UTF-8").to_owned()
    };
    let list = |nic: &str, value: u32| {
        json!({ "nic": nic, "failed_links": [], "denied": [], "excluded": { "nic3": [2, value], "nic4": [1] } })
            .to_string()
    };
    let file = written("denied.json", &list("nic1", 5));
    let route = text(entropy(FABRIC, &["--from", "nic1", "--to", "nic3", "--route", "--deny-list", &file]));
    let paths = &routes(&route)[0];
    let denied: Vec<_> = paths.iter().filter(|(_, _, denied)| *denied).filter_map(|path| path.0).collect();
    assert_eq!((paths.len(), denied), (8, vec![2, 5]));
    let table = text(entropy(FABRIC, &["--from", "nic1", "--to", "nic3", "--deny-list", &file]));
    assert_eq!(table.matches(" (denied) ").count(), 2, "{table}");
    let with = |file: &str| refusal(&["--from", "nic1", "--to", "nic3", "--deny-list", file]);
    assert!(with(&written("other.json", &list("nic2", 5))).contains("is the deny list of nic2: expected that of nic1"));
    assert!(with(&written("old.json", &list("nic1", 9))).contains("is of another fabric: entropy 0x9 is no path"));
    assert!(with(&written("no.json", "{}")).contains("no.json is no deny list of srdma map"));
    assert!(with("nowhere.json").contains("cannot read nowhere.json"));
}

#[test]
fn refusals_name_the_reason() {
    let ends = ["--from", "nic1", "--to", "nic3"];
    let with = |more: &[&'static str]| refusal(&[&ends[..], more].concat());
    assert!(with(&["8"]).contains("entropy 0x8 is no path: this fabric uses 3 bits"));
    assert!(with(&["zzz"]).contains("expected a number of 32 bits, decimal or 0x"));
    let port = with(&["--source-port", "4791", "--flow-label", "0x80000"]);
    assert!(port.contains("UDP source port 4791 carries no entropy: expected 49152 to 65535"), "{port}");
    let label = with(&["--source-port", "49152", "--flow-label", "7"]);
    assert!(label.contains("flow label 0x7 carries no entropy"), "{label}");
    assert!(refusal(&["--from", "leaf1", "--to", "nic3"]).contains("--from leaf1: a switch; expected a NIC"));
    assert!(refusal(&["--from", "nic1", "--to", "nic1"]).contains("nic1 has no path to itself"));
    let far = PathBuf::from("nowhere.toml");
    let output = entropy(far.to_str().expect("UTF-8"), &ends);
    assert_eq!(output.status.code(), Some(2));
}
