//! `srdma plan`: the draft's example, valid JSON, and refusals with their position.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const FABRIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1.toml");
const JOBS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1-jobs.toml");

fn plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("plan").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = plan(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The error text of a refusal, with exit code 2.
fn refusal(arguments: &[&str]) -> String {
    let output = plan(arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    String::from_utf8(output.stderr).unwrap()
}

fn destinations(placed: &Value) -> Vec<&str> {
    let flows = placed["flows"].as_array().unwrap();
    flows.iter().map(|flow| flow["program"]["destination"].as_str().unwrap()).collect()
}

/// PP-4-1, PP-5.2-1, D86: the paths of section 5.2, and those back; without spine 5 that of section 5.3. PP-4-6: the
/// first flow's backup is ready beforehand.
#[test]
fn the_drafts_example_is_placed_as_in_the_draft() {
    let placed = json(&["place", "--fabric", FABRIC, "--jobs", JOBS, "--json"]);
    assert_eq!(destinations(&placed), ["5f00:0:100:500:300::", "5f00:0:200:600:400::"]);
    assert_eq!(placed["flows"][0]["path"], serde_json::json!(["nic1", "leaf1", "spine5", "leaf3", "nic3"]));
    assert_eq!(placed["flows"][0]["reverse"]["destination"], "5f00:0:300:500:100::");
    assert_eq!(placed["flows"][0]["backup"]["destination"], "5f00:0:200:600:400::");
    assert_eq!(placed["most_loaded"]["load"], 1.0);
    let drained = json(&["place", "--fabric", FABRIC, "--jobs", JOBS, "--drain", "spine5", "--json"]);
    assert_eq!(destinations(&drained), ["5f00:0:100:600:300::", "5f00:0:200:600:400::"]);
}

#[test]
fn the_text_output_is_a_table() {
    let output = plan(&["place", "--fabric", FABRIC, "--jobs", JOBS]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("2 flows\nmost loaded   nic1 to leaf1: 1.000 of its rate\n"), "{text}");
    assert!(text.contains("nic2  nic3  100.00  5f00:0:200:600:400::"), "{text}");
}

#[test]
fn programs_are_printed_hop_by_hop() {
    let steps = json(&["decode", "--fabric", FABRIC, "5f00:0:100:e002:300:f007::", "--json"]);
    let behaviors: Vec<&str> =
        steps.as_array().unwrap().iter().map(|step| step["behavior"].as_str().unwrap()).collect();
    assert_eq!(behaviors, ["uN", "uA", "uN", "End.DT6"]);
    assert_eq!((&steps[1]["link"], &steps[3]["tenant"]), (&"leaf1-spine5".into(), &7.into()));
    let output = plan(&["decode", "--fabric", FABRIC, "5f00:0:100:500:300::"]);
    let expected = "uN       leaf1\nuN       spine5\nuN       leaf3\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn refusals_name_the_error_and_its_position() {
    let bad = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bad-jobs.toml");
    std::fs::write(&bad, "[[job]]\nname = \"j\"\nnics = [\"nic1\", \"nic9\"]\n").unwrap();
    let bad = bad.to_str().unwrap();
    let error = refusal(&["place", "--fabric", FABRIC, "--jobs", bad]);
    assert!(error.ends_with("bad-jobs.toml:3: nic9 is no NIC of this fabric\n"), "{error}");
    let place = ["place", "--fabric", FABRIC, "--jobs", JOBS];
    let with = |more: &[&'static str]| refusal(&[&place[..], more].concat());
    assert!(with(&["--drain", "leaf9"]).contains("--drain leaf9: neither a switch nor a link"));
    assert!(with(&["--drain", "nic3"]).contains("cannot drain nic3: nic3 would be cut off"));
    assert!(with(&["--collective", "x"]).contains("has send-recv, send-recv"));
    assert!(refusal(&["place", "--fabric", "nowhere.toml", "--jobs", JOBS]).contains("cannot read nowhere.toml"));
    let decode = |address| refusal(&["decode", "--fabric", FABRIC, address]);
    assert!(decode("2001:db8::1").contains("2001:db8::1 is not in the block 5f00::/32"));
    assert!(decode("5f00:0:100:999::").contains("0x0999 is the id of no switch"));
    assert!(refusal(&["decode", "--fabric", FABRIC, "--from", "leaf1", "5f00:0:100::"]).contains("expected a NIC"));
}

/// D267: a log of NCCL is placed as its trees, and a dump of graphs as its rings, or as its trees if asked.
#[test]
fn trees_of_nccl_are_jobs() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("the file is written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let rail = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/rail.toml");
    let servers = ["--server", "h1.1.", "--server", "h1.2."];
    let flows = |file: &str, more: &[&str]| {
        let placed = json(&[&["place", "--json", "--fabric", rail, "--jobs", file], &servers[..], more].concat());
        let flows = placed["flows"].as_array().expect("flows").iter();
        flows
            .map(|flow| format!("{} {} {}", flow["collective"], flow["from"], flow["to"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    let log = "a:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\nb:1:1 [0] NCCL INFO Trees [0] -1/-1/-1->1->0\n";
    let log = write("nccl.log", log);
    assert_eq!(flows(&log, &[]), ["tree h1.2.1 h1.1.1", "tree h1.1.1 h1.2.1"]);
    let graph = |id: u8, pattern: u8, nic: u8| {
        format!(
            "<graph id=\"{id}\" pattern=\"{pattern}\" speedinter=\"24\"><channel><net dev=\"{nic}\"/></channel></graph>"
        )
    };
    let dump = write("graph.xml", &format!("<graphs version=\"1\">{}{}</graphs>", graph(0, 4, 0), graph(1, 1, 1)));
    assert_eq!(flows(&dump, &[]), ["ring h1.1.1 h1.2.1", "ring h1.2.1 h1.1.1"]);
    let both = ["tree h1.2.2 h1.1.2", "tree h1.1.2 h1.2.2"];
    assert_eq!(flows(&dump, &["--collective", "tree"]), [both[0], both[1], both[1], both[0]]);
    let refused =
        refusal(&[&["place", "--fabric", rail, "--jobs", &dump, "--collective", "star"], &servers[..]].concat());
    assert!(refused.contains("--collective star: of a dump of NCCL, expected ring or tree"), "{refused}");
}
