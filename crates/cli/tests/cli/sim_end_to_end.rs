//! `srdma sim` of an end-to-end run: text, JSON, report, and refusals, on a small stream.

use crate::recordings::Recording;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const FILE: &str = r#"
kind = "end-to-end"
title = "A <small> stream"

[end_to_end]
congested = "R1"
total_km = 10
first_hop_km = 1
octets = 1_048_576
message_octets = 65_536
edges = 2
receivers_per_edge = 2
loss = 0.0005
senders = 8
hold_us = 500

[end_to_end.restart]
nodes = ["dc2.spine1", "dc2.leaf1"]
at_us = 1000
down_us = 100

[hosts]
outstanding_packets = 512
ack_every = 8
ack_timeout = 9
"#;

fn file(name: &str, text: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).unwrap();
    file
}

fn sim(file: &PathBuf, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("sim").arg(file).args(more).output().unwrap()
}

/// PP-4-3, CN-3-1, MT-5.2-4: from the file to the page.
#[test]
fn a_stream_is_run_and_reported() {
    let report = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("end-to-end.html");
    let output = sim(&file("end-to-end.toml", FILE), &["--seeds", "2", "--json", "--report", report.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let claims = json["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 2 * 10);
    let failed: Vec<&Value> = claims.iter().filter(|claim| !claim["holds"].as_bool().expect("a verdict")).collect();
    assert!(failed.is_empty(), "{failed:?}");
    for run in json["runs"].as_array().unwrap() {
        let receivers = run["receivers"].as_array().unwrap();
        let digest = run["sha256"].as_str().expect("a digest");
        assert!(receivers.len() == 4 && receivers.iter().all(|receiver| receiver["sha256"] == digest));
        assert_eq!(run["source_frames"], run["packets_sent"].as_u64().expect("a counter"));
        assert_eq!(run["lost_by_simulator"], 0);
    }
    let page = std::fs::read_to_string(report).unwrap();
    for text in ["A &lt;small&gt; stream", ">Checks</h2>", ">Over time</h2>", ">Memory of every host</h2>"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf "));
}

/// MT-5.2-4, CN-3-1: end to end, past a restart.
#[test]
fn an_end_to_end_run_is_recorded() {
    let file = file("end-to-end-recorded.toml", FILE);
    let (json, recording) =
        Recording::of_run("end-to-end", &[], |record| sim(&file, &[&["--seeds", "1"], record].concat()));
    let run = &json["runs"][0];
    assert_eq!(recording.head["title"], "A <small> stream, seed 1");
    let happened: Vec<[&str; 2]> =
        recording.events.iter().map(|event| ["kind", "node"].map(|key| event[key].as_str().unwrap())).collect();
    assert_eq!(happened, [["node-down", "dc2.spine1"], ["node-up", "dc2.spine1"]]);
    let group = &recording.head["groups"][0];
    assert_eq!(group["tree"]["nodes"][0]["name"], "dc2.gateway");
    let end = (group["initial_psn"].as_u64().unwrap() + run["packets"].as_u64().unwrap()) % (1 << 24);
    let at_headend: Vec<[Option<u64>; 2]> =
        recording.points.iter().filter(|(key, _)| key[1] == 0).map(|(_, point)| *point).collect();
    assert_eq!(at_headend, [[Some(end), Some(0)]]);
    assert!(*recording.times.last().unwrap() >= run["completion_ns"].as_u64().unwrap());
    // Drops of full queues, switch by switch, including the lives before a restart.
    for node in recording.places() {
        let reasons = ["queue_full", "headroom_exceeded", "pause_storm"];
        let of_reason = |reason: &str| recording.drops.get(&(node.to_owned(), reason.to_owned())).copied();
        let recorded: u64 = reasons.iter().filter_map(|reason| of_reason(reason)).sum();
        assert_eq!(recorded, run["dropped"].get(node).map_or(0, |dropped| dropped.as_u64().unwrap()), "{node}");
    }
    let of_host = |name: &str| name.starts_with('h') || name.contains("-h");
    recording.assert_rates(|name| if of_host(name) { 25e9 / 8.0 } else { 400e9 / 8.0 });
    let source = recording.links().iter().position(|link| link.starts_with("h1.1.1-")).unwrap();
    assert!(recording.octets[source][0] > run["octets"].as_f64().unwrap());
}

#[test]
fn the_text_output_has_the_selected_metrics() {
    let output = sim(&file("end-to-end-text.toml", FILE), &["--seeds", "1", "--first", "2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("A <small> stream\n1,048,576 octets to 4 receivers; congestion at R1 by 8 other senders; ")
    );
    assert!(text.contains("\nseed 2, dc2.leaf1 restarts\n"), "{text}");
    assert!(text.contains("\n✓ the memory of 4 receivers has the source's SHA-256: 4 have "), "{text}");
    assert!(text.contains("--first 2 --seeds 1\n"), "{text}");
}

#[test]
fn contradictory_arguments_are_refused() {
    let good = file("end-to-end-refused.toml", FILE);
    let refused = |file: &PathBuf, more: &[&str], expected: &str| {
        let output = sim(file, more);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    refused(&good, &["--level", "flow"], "a scenario of kind end-to-end has no levels");
    refused(&good, &["--variant", "both"], "a scenario of kind end-to-end has no variants");
    let wrong = file("end-to-end-wrong.toml", &FILE.replace("edges = 2\n", "edges = 12\n"));
    refused(&wrong, &[], "end-to-end-wrong.toml:11: 12 edges and 8 senders: expected 16 of both together at most");
}
