//! `srdma sim` of broadcasts with a target: the shipped scenarios with less data, and what misses a target.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn shipped(name: &str, replacements: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).with_extension("toml");
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in replacements {
        assert!(text.contains(from), "{name} has no {from:?}");
        text = text.replace(from, to);
    }
    text
}

fn sim(name: &str, text: &str, more: &[&str]) -> Output {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("toml");
    std::fs::write(&file, text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("sim").arg(file).args(more).output().unwrap()
}

fn run_of(output: &Output) -> Value {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    json["runs"][0].clone()
}

/// A thousandth of the 60 GB, to all thirty replicas: at most 1.1 times the size by the rate, every octet as sent.
#[test]
fn sixty_megabytes_reach_thirty_replicas_in_the_time_of_one_copy() {
    let text = shipped("broadcast-60gb", &[("60_000_000_000", "60_000_000")]);
    let output = sim("broadcast-60mb", &text, &["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = run_of(&output);
    let flow = &run["flows"][0];
    assert_eq!((&flow["kind"], &flow["receivers"]), (&"broadcast".into(), &30.into()));
    assert_eq!((&flow["transmission_ns"], &flow["limit_ns"]), (&1_200_000.into(), &1_320_000.into()));
    let finished_ns = flow["finished_ns"].as_u64().expect("finished");
    assert!((1_200_000..=1_320_000).contains(&finished_ns), "{finished_ns}");
    let totals = &run["totals"];
    assert_eq!((&totals["octets_differing"], &totals["lost_by_simulator"]), (&0.into(), &0.into()));
    assert_eq!((&totals["octets_delivered"], &totals["octets_sent"]), (&1_800_000_000.into(), &60_000_000.into()));
    assert_eq!(run["verified_icrc"], true);
}

/// A hundredth of the gigabyte, to all 1,024 receivers.
#[test]
fn ten_megabytes_reach_a_thousand_receivers_in_the_time_of_one_copy() {
    let text = shipped("broadcast-1024", &[("size_octets = 1_000_000_000", "size_octets = 10_000_000")]);
    let output = sim("broadcast-10mb", &text, &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}");
    assert!(table.contains("10,000,000 octets to 1,024 receivers in 2"), "{table}");
    assert!(table.contains("at most 220.000 µs: met"), "{table}");
}

/// Headers alone take more than the octets by the rate.
#[test]
fn a_missed_target_fails_the_run() {
    let text = shipped("broadcast-60gb", &[("60_000_000_000", "6_000_001"), ("at_most = 1.1", "at_most = 1.0")]);
    let output = sim("broadcast-missed", &text, &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("srdma: target of weights, variant multicast, seed 1: 6,000,001 octets"), "{error}");
    assert!(error.contains(": MISSED"), "{error}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("broadcast completion"), "the table is printed as well");
}

/// A receiver that is cut off: the source cannot complete.
#[test]
fn a_broadcast_that_does_not_complete_misses_its_target() {
    let failure = "\n[[failure]]\nname = \"leaf4-h4.10\"\nat_us = 10\n";
    let shorter = [("60_000_000_000", "6_000_000"), ("drain_us = 5_000_000", "drain_us = 2_000")];
    let text = shipped("broadcast-60gb", &shorter) + failure;
    let output = sim("broadcast-cut", &text, &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("in not completed, at most 132.000 µs: MISSED"), "{error}");
}

#[test]
fn wrong_broadcasts_are_refused_with_their_line() {
    let refused = |from: &str, to: &str| {
        let output = sim("broadcast-wrong", &shipped("broadcast-60gb", &[(from, to)]), &[]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let error = refused("at_most = 1.1", "at_most = 0.9");
    assert!(error.contains("at_most 0.9: expected 1 to 1000 of size by rate"), "{error}");
    let error = refused("from = \"h1.1\"", "from = \"h2.1\"");
    assert!(error.contains("\"leaf2\" is the source's own switch"), "{error}");
    let error = refused("60_000_000_000", "0");
    assert!(error.contains("invalid value: integer `0`"), "{error}");
}
