//! Multicast groups in plans: placed beside flows, saved, explained, and moved by a drained spine.

use serde_json::Value;
use std::process::{Command, Output};
use tempfile::TempDir;

const FABRIC: &str = "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\n";

/// The first host of the first leaf to one below each other leaf by a group, and a copy from the same leaf.
const JOBS: &str = "[[job]]
name = \"weights\"
nics = [\"h1.1\", \"h2.1\", \"h3.1\"]
[[job.collective]]
kind = \"broadcast-multicast\"
[[job]]
name = \"copy\"
nics = [\"h1.2\", \"h2.2\"]
[[job.collective]]
kind = \"send-recv\"
";

fn plan(folder: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("plan").args(arguments).current_dir(folder.path()).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn placed() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [("fabric.toml", FABRIC), ("jobs.toml", JOBS)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const PLACE: [&str; 7] = ["place", "--fabric", "fabric.toml", "--jobs", "jobs.toml", "--save", "plan.json"];

/// By hand: the group's tree has the sender's link, one up, two down and two to receivers; the copy takes the other
/// spine, so that no link carries more than its rate.
#[test]
fn a_group_is_placed_beside_flows() {
    let folder = placed();
    let table = text(&plan(&folder, &PLACE));
    assert!(table.starts_with("1 flows, 1 multicast groups\nmost loaded "), "{table}");
    let group = table.lines().last().unwrap();
    let words: Vec<&str> = group.split_whitespace().collect();
    assert_eq!(words[..5], ["1", "h1.1", "2", "100.00", "6"], "{table}");
    let json: Value = serde_json::from_str(&text(&plan(&folder, &[&PLACE[..5], &["--json"]].concat()))).unwrap();
    assert_eq!((json["most_loaded"]["load"].as_f64(), json["bound"].as_f64()), (Some(1.0), Some(1.0)));
    assert_eq!(json["groups"][0]["to"], serde_json::json!(["h2.1", "h3.1"]));
    assert_eq!(json["groups"][0]["tree"].as_array().unwrap().len(), 6);
    let spine = json["groups"][0]["tree"][1][1].as_str().unwrap();
    assert!(!json["flows"][0]["path"].as_array().unwrap().contains(&spine.into()), "{json}");
    // The chain carries as much between leaves, by two flows, and no groups.
    std::fs::write(folder.path().join("jobs.toml"), JOBS.replace("broadcast-multicast", "broadcast")).unwrap();
    let chain: Value = serde_json::from_str(&text(&plan(&folder, &[&PLACE[..5], &["--json"]].concat()))).unwrap();
    assert!(chain.get("groups").is_none() && chain["flows"].as_array().unwrap().len() == 3);
}

#[test]
fn a_saved_group_is_explained_and_moves() {
    let folder = placed();
    text(&plan(&folder, &PLACE));
    let why = text(&plan(&folder, &["why", "--plan", "plan.json", "1"]));
    assert!(why.starts_with("group 1: h1.1 to 2 NICs, 100.00 Gbit/s, broadcast-multicast of job weights\n"), "{why}");
    assert!(why.contains("\n1 other trees with one way up for all receivers.\n"), "{why}");
    let json: Value =
        serde_json::from_str(&text(&plan(&folder, &["why", "--plan", "plan.json", "1", "--json"]))).unwrap();
    let spine = json["tree"][1][1].as_str().unwrap().to_owned();
    assert_eq!((json["links"][0]["groups"].as_u64(), json["links"][0]["flows"].as_u64()), (Some(1), Some(0)));
    let before = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
    let drain = ["drain", "--plan", "plan.json", &spine];
    let foreseen = text(&plan(&folder, &[&["whatif"][..], &drain].concat()));
    assert!(foreseen.contains("groups that would have another tree:\n"), "{foreseen}");
    assert_eq!(std::fs::read_to_string(folder.path().join("plan.json")).unwrap(), before);
    let drained = text(&plan(&folder, &drain));
    assert!(drained.contains("groups that have another tree:\n"), "{drained}");
    let now: Value =
        serde_json::from_str(&text(&plan(&folder, &["why", "--plan", "plan.json", "1", "--json"]))).unwrap();
    assert_ne!(now["tree"][1][1].as_str().expect("a spine"), spine);
    let added = text(&plan(&folder, &["add", "--plan", "plan.json", "--jobs", "jobs.toml"]));
    assert!(added.contains("groups that are added:\n"), "{added}");
    let removed = text(&plan(&folder, &["remove", "--plan", "plan.json", "1", "3"]));
    assert!(removed.contains("2 removed"), "{removed}");
    let gone = plan(&folder, &["why", "--plan", "plan.json", "1"]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("flow 1: the plan has none of this number"));
}
