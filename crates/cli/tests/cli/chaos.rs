//! `srdma chaos` as a process.

use serde_json::Value;
use std::process::{Command, Output};

fn chaos(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("chaos").args(arguments).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

/// What a report says under a name: a member that is missing on both sides is no equality.
#[track_caller]
fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    report.get(name).filter(|value| !value.is_null()).unwrap_or_else(|| panic!("{name} is missing: {report}"))
}

fn json(arguments: &[&str]) -> Value {
    let output = chaos(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_is_reported() {
    let output = chaos(&["--seeds", "12", "--threads", "2"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.starts_with("12 schedules from seed v7:1 in "), "{report}");
    assert!(report.ends_with("failures    none\n"), "{report}");
}

#[test]
fn the_figures_are_the_same_on_any_number_of_threads() {
    let figures = |threads| {
        let mut report = json(&["--seeds", "12", "--first-seed", "v7:40", "--json", "--threads", threads]);
        let object = report.as_object_mut().unwrap();
        for of_this_machine in ["threads", "wall_s", "schedules_per_s_and_core", "hops_per_s_and_core"] {
            object.remove(of_this_machine).unwrap();
        }
        report
    };
    let one = figures("1");
    assert_eq!(one, figures("3"));
    assert_eq!((&one["schedules"], &one["first_seed"]), (&Value::from(12), &Value::from("v7:40")));
    assert!(one["hops"].as_u64().unwrap() > 0);
}

#[test]
fn a_schedule_replays_from_its_token() {
    let seed = json(&["--seed", "7", "--json", "--verbose"]);
    let token = format!("v1:{}", seed["schedule"]);
    let replayed = json(&["--replay", &token, "--json", "--verbose"]);
    for name in ["schedule", "hops", "ended_ns", "faults", "drops", "groups", "timeline"] {
        assert_eq!(figure(&seed, name), figure(&replayed, name), "{name}");
    }
    assert!(!seed["timeline"].as_array().unwrap().is_empty());
}

/// D9, MT-9-3
#[test]
fn an_attack_is_compared_with_the_run_without_it() {
    let report = json(&["--attack", "--seeds", "6", "--json"]);
    assert_eq!((&report["schedules"], &report["accepted"]), (&Value::from(6), &Value::from(0)));
    let sent: u64 =
        report["forged"].as_object().unwrap().values().map(|outcome| outcome["sent"].as_u64().unwrap()).sum();
    assert!(sent > 0);
    assert!(report["groups_compared"].as_u64().unwrap() > 0);
}

#[test]
fn a_token_file_replays_with_its_comments() {
    let kept = include_str!("../../../chaos/tests/failing_seeds/dead_receiver_of_an_evicting_group.txt");
    assert!(kept.starts_with('#'));
    let output = chaos(&["--replay", kept]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(report.contains("1 receiver death"), "{report}");
    assert!(report.ends_with("violations: none\n"), "{report}");
}

#[test]
fn options_without_effect_are_rejected() {
    for (arguments, reason) in [
        (vec!["--seed", "7", "--first-seed", "9"], "cannot be used with"),
        (vec!["--seed", "7", "--max-failures", "9"], "cannot be used with"),
        (vec!["--seed", "7", "--replay", "v1:7"], "cannot be used with"),
        (vec!["--verbose", "--seeds", "2"], "--seed <SEED>"),
        (vec!["--attack", "--shrink", "--seeds", "2"], "needs --seed"),
    ] {
        let output = chaos(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{arguments:?}: {}", text(&output.stderr));
    }
    let output = chaos(&["--seed", "7", "--shrink"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("nothing to shrink"));
}

#[test]
fn an_invalid_token_is_not_repeated() {
    let schedule = json(&["--seed", "7", "--json"])["schedule"].to_string();
    let token = format!("v1:{}", schedule.replace("\"parent\":0", "\"parent\":99"));
    let output = chaos(&["--replay", &token]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("srdma: --replay: invalid schedule: nodes[1]: Some(99)"), "{error}");
    assert!(error.len() < 300, "{error}");
}

#[test]
fn invalid_arguments_are_rejected_with_a_reason() {
    for (arguments, reason) in [
        (["--replay", "v0:1"], "the token has version 0"),
        (["--replay", "4711"], "does not begin with a version"),
        (["--replay", "v1:{}"], "missing field"),
        (["--seed", "many"], "does not begin with a version"),
        (["--minutes", "-1"], "expected a number of minutes"),
        (["--minutes", "soon"], "expected a number of minutes"),
        (["--threads", "0"], "0 is not in"),
    ] {
        let output = chaos(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn insiders_are_run_and_replayed() {
    let output = chaos(&["--insiders", "--seeds", "20", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names: Vec<&str> =
        report["faults"].as_array().expect("a list").iter().filter_map(|fault| fault["name"].as_str()).collect();
    assert!(names.contains(&"untrue ACK") && names.contains(&"untrue responses with an effect"), "{names:?}");
    let single = chaos(&["--insiders", "--seed", "7", "--json"]);
    let single: Value = serde_json::from_slice(&single.stdout).expect("JSON");
    let replayed = chaos(&["--replay", single["token"].as_str().expect("a token"), "--json"]);
    let replayed: Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
    assert_eq!(single, replayed);
}

/// A cluster's run depends on its seed only, and the exit code on its violations.
#[test]
fn clusters_are_run_and_reported() {
    let run = |arguments: &[&str]| {
        let output = chaos(&[&["--cluster", "--json"], arguments].concat());
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let failed = !report["failures"].as_array().expect("a list").is_empty();
        assert_eq!(output.status.code(), Some(i32::from(failed)), "{}", text(&output.stderr));
        report
    };
    let one = run(&["--seeds", "6", "--threads", "1", "--max-failures", "100"]);
    let three = run(&["--seeds", "6", "--threads", "3", "--max-failures", "100"]);
    assert_eq!((&one["schedules"], &one["first_seed"]), (&Value::from(6), &Value::from("cluster-v12:1")));
    for name in ["digest", "counts"] {
        assert_eq!(figure(&one, name), figure(&three, name), "{name}");
    }
    assert!(one["events"].as_u64().expect("a number") >= 1200, "{}", one["events"]);
    assert!(!one["phases"].as_array().expect("a list").is_empty());
}

#[test]
fn a_cluster_replays_from_its_token() {
    let run = |arguments: &[&str]| -> Value {
        let output = chaos(&[&["--cluster", "--json", "--verbose"], arguments].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let seed = run(&["--seed", "7"]);
    let token = format!("cluster-v12:{}", seed["schedule"]);
    let replayed = run(&["--replay", &token]);
    for name in ["schedule", "digest", "ended_ns", "counts", "timeline"] {
        assert_eq!(figure(&seed, name), figure(&replayed, name), "{name}");
    }
    // As reports name it.
    assert_eq!(run(&["--seed", "cluster-v12:7"])["digest"], seed["digest"].as_str().expect("a digest"));
    let earlier = chaos(&["--cluster", "--seed", "cluster-v5:7"]);
    assert_eq!(earlier.status.code(), Some(2));
    assert!(text(&earlier.stderr).contains("use --replay"), "{}", text(&earlier.stderr));
    let refused = chaos(&["--cluster", "--replay", "v1:7"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("expected a token such as cluster-v12:4711"), "{}", text(&refused.stderr));
}
