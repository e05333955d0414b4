//! `srdma sim --record`: the recording agrees with the report, and recording changes no result.

use crate::recordings::Recording;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Octets around each frame that a report counts and a recording does not: preamble, FCS and gap.
const FRAMING_OCTETS: f64 = 24.0;

const FABRIC: &str = r#"
kind = "fabric"
title = "Four leaves"
seeds = 2

[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
"#;

const VARIANTS: &str = r#"
[[variant]]
name = "pfc"
title = "PFC alone"
signal = "none"
control = "none"

[[variant]]
name = "fast"
title = "Fast CNP, DCQCN"
signal = "fast-cnp"
control = "dcqcn"
"#;

const PERMUTATION: &str = "[[workload.permutation]]\nsize_octets = 200_000\n[measure]\nduration_us = 1\n";

const JOB: &str = r#"
[[workload.job]]
name = "train"
nics = ["h1.*", "h2.*", "h3.*", "h4.*"]
tensor = 4
[[workload.job.collective]]
kind = "all-reduce-ring"
group = "data"
octets = 1_048_576
[measure]
duration_us = 1
"#;

const MULTICAST: &str = r#"
[[workload.multicast]]
name = "weights"
from = "h4.1"
receivers_below = ["leaf1", "leaf2", "leaf3"]
message_octets = 65_536
start_us = 20
[[workload.incast]]
receiver = "h1.1"
senders = 6
min_octets = 65_536
max_octets = 262_144
start_us = 50
[measure]
duration_us = 400
"#;

fn sim(name: &str, text: &str, more: &[&str]) -> Output {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("sim").arg(&file).args(more).output().unwrap()
}

/// Runs a scenario, which is recorded.
fn recorded(name: &str, text: &str, more: &[&str], pace: &[&str]) -> (Value, Recording) {
    Recording::of_run(name, pace, |record| sim(name, text, &[more, record].concat()))
}

#[test]
fn a_permutation_is_recorded_without_a_change() {
    let (json, recording) = recorded("recorded-permutation", &format!("{FABRIC}{PERMUTATION}{VARIANTS}"), &[], &[]);
    assert_eq!(json["runs"].as_array().unwrap().len(), 4);
    assert_eq!(recording.head["title"], "Four leaves: PFC alone, seed 1");
    assert_eq!((recording.places().len(), recording.links().len()), (4 + 2 + 16, 16 + 8));
    assert_eq!(&recording.places()[..6], ["leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"]);
    recording.assert_rates(|_| 12.5e9);
    // All flows are 200,000 octets of payload and arrive once: the hosts send them, headers and responses.
    let sent: f64 = recording.octets[..16].iter().flatten().sum();
    let payload = 2.0 * 16.0 * 200_000.0;
    assert!(sent > payload && sent < 1.05 * payload, "{sent}");
    assert!(recording.drops.is_empty() && recording.points.is_empty());
}

#[test]
fn recorded_links_add_up_to_the_report() {
    let (json, recording) =
        recorded("recorded-job", &format!("{FABRIC}{JOB}{VARIANTS}"), &["--variant", "fast", "--first", "5"], &[]);
    assert_eq!(recording.head["title"], "Four leaves: Fast CNP, DCQCN, seed 5");
    let run = &json["runs"][0];
    assert_eq!((&run["variant"], &run["seed"]), (&"fast".into(), &5.into()));
    let links = run["links"].as_array().unwrap();
    assert_eq!(links.len(), 2 * recording.octets.len());
    for (link, carried) in links.iter().zip(recording.octets.iter().flatten()) {
        let framing = link["octets"].as_f64().unwrap() - carried;
        let frames = framing / FRAMING_OCTETS;
        assert!(framing > 0.0 || *carried == 0.0, "{link}: {carried}");
        assert!((frames - frames.round()).abs() < 0.1, "{link}: {carried}, {frames} frames");
    }
}

/// MT-5.2-2: the group of a multicast flow is there with its tree, and its points move.
#[test]
fn a_group_is_recorded_with_its_branches() {
    let text = format!("{FABRIC}{MULTICAST}{VARIANTS}");
    let (json, recording) = recorded("recorded-group", &text, &["--variant", "fast"], &["--record-every", "30us"]);
    let group = &recording.head["groups"][0];
    assert_eq!((&group["name"], &group["receivers"]), (&"weights".into(), &12.into()));
    assert_eq!(recording.head["root"], "h4.1");
    let nodes = group["tree"]["nodes"].as_array().unwrap();
    let branches: usize = nodes.iter().map(|node| node["branches"].as_array().unwrap().len()).sum();
    assert_eq!((nodes[0]["name"].clone(), branches), ("leaf4".into(), nodes.len() - 1 + 12));
    assert_eq!(recording.points.len(), branches);
    assert!(recording.points.values().all(|[point, lag]| point.is_some_and(|point| point > 100) && lag.is_some()));
    assert!(recording.times[..3] == [30_000, 60_000, 90_000], "{:?}", &recording.times[..3]);
    let marked = |link: &Value| link["groups"] == 1;
    let of_tree = recording.head["topology"]["links"].as_array().unwrap().iter().filter(|link| marked(link)).count();
    assert_eq!(of_tree, 13 + nodes.len() - 1);
    recording.assert_rates(|_| 12.5e9);
    let dropped: u64 = recording.drops.values().sum();
    assert_eq!(dropped, json["runs"][0]["totals"]["dropped"].as_u64().unwrap());
}

#[test]
fn runs_without_recording_are_refused() {
    let job = format!("{FABRIC}{JOB}{VARIANTS}");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("refused.jsonl");
    let refused = |more: &[&str], expected: &str| {
        let output = sim("recorded-refused", &job, more);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    let flow = ["--level", "flow", "--variant", "pfc", "--record", file.to_str().unwrap()];
    refused(&flow, "is simulated at flow level, which has no packets to record");
    assert!(!file.exists());
    refused(&["--record-every", "1us"], "--record <FILE>");
    refused(&["--record", "/nowhere/at/all"], "cannot create /nowhere/at/all");
}
