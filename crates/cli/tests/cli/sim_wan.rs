//! `srdma sim` of a study of a WAN: table, JSON, report, and refusals.

use crate::recordings::Recording;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const STUDY: &str = r#"
kind = "wan"
title = "A <short> WAN"

[wan]
congested = "R1"
total_km = [10]
first_hop_km = 1
buffers = [1, 2.2]
buffer = 2.2
senders = 8
min_duration_us = 300
round_trips = 1

[hosts]
outstanding_packets = 1024
verify_icrc = false

[[variant]]
name = "receiver-cnp"
signal = "receiver-cnp"

[[variant]]
name = "both"
title = "END.C and END.E"
signal = "end-e"
end_c = true
"#;

fn file(name: &str, text: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).unwrap();
    file
}

fn sim(study: &PathBuf, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("sim").arg(study).args(more).output().unwrap()
}

/// CN-3-1, CN-4.1-2, CN-4.2-2: both ways of the draft, from the file to the page.
#[test]
fn a_study_is_run_and_reported() {
    let study = file("wan.toml", STUDY);
    let report = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wan.html");
    let output = sim(&study, &["--seeds", "2", "--json", "--report", report.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    // Two variants, two seeds with the queue that is looked at closely, one with the other.
    assert_eq!(runs.len(), 2 * (2 + 1));
    assert!(runs.iter().all(|run| run["delivered_octets"].as_u64().unwrap() > 0));
    assert!(runs.iter().any(|run| run["variant"] == "both" && run["notifications"].as_u64().unwrap() > 0));
    assert_eq!(json["claims"][0]["at"], "END.C and END.E, 10 km");
    let page = std::fs::read_to_string(report).unwrap();
    for text in
        ["A &lt;short&gt; WAN", ">Checks</h2>", ">Notification delay</h2>", ">Required buffer</h2>", ">Terms</h2>"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf "));
}

/// A queue that is too small loses packets: the check does not hold, and the exit code says so beside all results.
#[test]
fn a_check_that_does_not_hold_fails_the_run() {
    let study = file("wan-too-small.toml", &STUDY.replace("buffer = 2.2\n", "buffer = 1\n"));
    let output = sim(&study, &["--seeds", "1", "--json", "--variant", "both"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("srdma: ✗ END.C and END.E, 10 km: no loss, 99 % utilisation with 1 of "), "{stderr}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("the results");
    assert_eq!((&json["claims"][0]["holds"], &json["runs"][0]["variant"]), (&Value::from(false), &Value::from("both")));
}

#[test]
fn a_study_is_recorded_at_its_detailed_links() {
    let study = file("wan-recorded.toml", STUDY);
    let (json, recording) =
        Recording::of_run("wan", &[], |record| sim(&study, &[&["--seeds", "1", "--variant", "both"], record].concat()));
    assert_eq!(recording.head["title"], "A <short> WAN: END.C and END.E, 10 km, seed 1");
    let run = json["runs"].as_array().unwrap().iter().find(|run| run["buffer"] == 2.2).unwrap();
    let bottleneck = recording.links().iter().position(|link| link == "R1-R3").unwrap();
    assert!(recording.octets[bottleneck][0] > 0.0 && recording.times.len() > 250);
    assert!(run["delivered_octets"].as_u64().unwrap() > 0);
}

#[test]
fn the_text_output_has_tables_and_the_selected_metrics() {
    let output = sim(&file("wan-text.toml", STUDY), &["--seeds", "1", "--variant", "both"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("A <short> WAN\ncongestion at R1; 1 variant, 1 length, 2 queues, 1 seed\n"), "{text}");
    assert!(
        text.contains(" END.C and END.E, 10 km: no loss, 99 % utilisation with 2.2 of rate × round trip; "),
        "{text}"
    );
    assert!(text.contains("--first 1 --seeds 1 --variant both\n"), "{text}");
}

#[test]
fn contradictory_arguments_are_refused() {
    let study = file("wan-refused.toml", STUDY);
    let refused = |study: &PathBuf, more: &[&str], expected: &str| {
        let output = sim(study, more);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    refused(&study, &["--level", "flow"], "a scenario of kind wan has no levels");
    refused(&study, &["--variant", "end-e"], "there is no variant \"end-e\": expected one of receiver-cnp, both");
    let wrong = file("wan-wrong.toml", &STUDY.replace("buffer = 2.2\n", "buffer = 3\n"));
    refused(&wrong, &[], "wan-wrong.toml:10: buffer 3: expected one of the buffers");
}
