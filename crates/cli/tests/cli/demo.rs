//! `srdma demo` as a user sees it.

use crate::recordings::Recording;
use serde_json::Value;
use sha2::{Digest, Sha256};
use srdma_capture::Reader;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

/// The links of Figure 1 (D34).
const LINKS: [&str; 11] =
    ["S1-N6", "N6-N4", "N6-N5", "N4-N1", "N4-N2", "N5-N3", "N1-R1", "N1-R2", "N2-R3", "N3-R4", "N3-R5"];

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("demo").args(arguments).output().expect("srdma runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = demo(&[&["--json"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the output is one JSON object")
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn sorted<const N: usize>(mut names: [&str; N]) -> [&str; N] {
    names.sort_unstable();
    names
}

#[test]
fn json_has_the_documented_fields_and_true_digests() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let data: Vec<u8> = (0..300_001_u32).map(|index| (index.wrapping_mul(index) >> 7) as u8).collect();
    fs::write(&path, &data).unwrap();
    let report =
        json(&["--file", path.to_str().unwrap(), "--loss", "0.02", "--message", "64KiB", "--compare", "chain"]);
    let top = sorted([
        "seed",
        "size_octets",
        "path_mtu",
        "link_mtu",
        "loss",
        "completion_ns",
        "wall_ms",
        "packet_hops",
        "invariant_violations",
        "source",
        "receivers",
        "links",
        "link_octets",
        "repair",
        "compare",
    ]);
    assert_eq!(keys(&report), top);
    assert_eq!((&report["size_octets"], &report["loss"]), (&300_001.into(), &0.02.into()));
    assert_eq!(report["invariant_violations"], 0);
    // Each packet of data crosses four links, S1 to N6, N4 or N5, N1 to N3, and a receiver.
    let packets_sent = report["source"]["packets_sent"].as_u64().expect("a counter");
    assert!(report["packet_hops"].as_u64().expect("a counter") > 3 * packets_sent);
    let source = &report["source"];
    let source_keys = sorted([
        "sha256",
        "egress_octets",
        "egress_ratio",
        "packets_sent",
        "packets_retransmitted",
        "acks_received",
        "naks_received",
        "cnps_received",
        "timeouts",
    ]);
    assert_eq!(keys(source), source_keys);
    let ratio = source["egress_octets"].as_f64().unwrap() / 300_001.0;
    assert!((source["egress_ratio"].as_f64().unwrap() - ratio).abs() < 1e-9 && ratio > 1.0);
    let sha256 = hex::encode(Sha256::digest(&data));
    assert_eq!(source["sha256"], sha256.as_str());
    let receivers = report["receivers"].as_array().unwrap();
    assert_eq!(receivers.len(), 5);
    for (receiver, name) in receivers.iter().zip(["R1", "R2", "R3", "R4", "R5"]) {
        assert_eq!(keys(receiver), sorted(["name", "qpn", "octets", "sha256", "acks_sent", "naks_sent"]));
        assert_eq!((&receiver["name"], &receiver["octets"]), (&name.into(), &300_001.into()));
        assert_eq!(receiver["sha256"], sha256.as_str());
    }
    let links = report["links"].as_array().unwrap();
    assert_eq!(keys(&links[0]), sorted(["name", "down_octets", "up_octets", "lost_packets"]));
    let names: Vec<&str> = links.iter().filter_map(|link| link["name"].as_str()).collect();
    assert_eq!(names, LINKS);
    let compare = report["compare"].as_array().unwrap();
    assert_eq!(compare.len(), 1);
    assert_eq!(keys(&compare[0]), sorted(["algorithm", "completion_ns", "source_egress_octets"]));
    assert_eq!(compare[0]["algorithm"], "chain");
    assert!(compare[0]["source_egress_octets"].as_u64() >= Some(300_001));
}

#[test]
fn one_seed_makes_one_result() {
    let run = |seed| {
        let mut report = json(&["--size", "1MiB", "--loss", "0.01", "--reorder", "0.01", "--seed", seed]);
        report.as_object_mut().unwrap().remove("wall_ms");
        report
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

/// Without loss the source sends each octet once, and receives one ACK for five of the receivers (MT-5.3-1).
#[test]
fn without_loss_the_source_sends_the_data_once() {
    for arguments in [
        &["--tree", "replicate"][..],
        &["--tree", "multicast"],
        &["--headend", "host"],
        &["--receivers-in", "provisioned"],
        &["--operation", "send"],
        &["--path-mtu", "1024"],
        &["--receivers", "20"],
    ] {
        let report = json(&[&["--size", "1MiB", "--loss", "0"], arguments].concat());
        let source = &report["source"];
        assert_eq!(source["egress_octets"], 1 << 20, "{arguments:?}");
        let acks =
            report["receivers"].as_array().unwrap().iter().map(|receiver| receiver["acks_sent"].as_u64().unwrap());
        let receivers = report["receivers"].as_array().unwrap().len() as u64;
        assert_eq!(acks.sum::<u64>(), receivers * source["acks_received"].as_u64().unwrap(), "{arguments:?}");
        assert_eq!(report["compare"], Value::Array(Vec::new()));
    }
}

#[test]
fn the_screen_ends_with_a_verdict() {
    let output = demo(&["--size", "1MiB", "--compare", "unicast,binomial"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["R5 ", "N3-R5 ", "source egress", "unicast ", "binomial ", "Figure 1"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains("chain "));
    let all = demo(&["--size", "64KiB", "--compare", "--seed", "2"]);
    assert!(String::from_utf8(all.stdout).unwrap().contains("chain "), "no name means all of them");
    let verdict = text.lines().last().unwrap();
    assert!(verdict.starts_with("OK: 5 of 5 receivers"), "{verdict}");
    assert!(text.lines().count() < 50, "more than a screen:\n{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 130), "a line is too long:\n{text}");
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(progress.lines().any(|line| line == "multicast: 1 MiB of 1 MiB acknowledged"), "{progress}");
}

#[test]
fn many_receivers_fit_one_screen() {
    let output = demo(&["--size", "64KiB", "--receivers", "100", "--loss", "0.0001"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().count() < 40 && text.contains("100 links to receivers"), "{text}");
}

#[test]
fn data_that_do_not_arrive_are_exit_code_1() {
    let output = demo(&["--size", "64KiB", "--loss", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("FAILED: the source gave up") && text.contains("0 of 5 receivers"), "{text}");
    let report: Value = serde_json::from_slice(&demo(&["--size", "64KiB", "--loss", "1", "--json"]).stdout).unwrap();
    assert_eq!(report["completion_ns"], Value::Null);
    assert_eq!(report["receivers"][0]["octets"], 0);
}

#[test]
fn bad_input_is_exit_code_2_and_names_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let captures = directory.path().join("captures");
    let empty = directory.path().join("empty");
    fs::write(&empty, []).unwrap();
    let empty = empty.to_str().unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["--file", "no/such/file"], "cannot read no/such/file"),
        (&["--file", empty], "at least one octet"),
        (&["--loss", "2"], "from 0 to 1"),
        (&["--reorder", "-0.5"], "from 0 to 1"),
        (&["--receivers", "2000"], "1..=1024"),
        (&["--receivers", "0"], "1..=1024"),
        (&["--path-mtu", "1500"], "256, 512, 1024, 2048 or 4096"),
        (&["--link-mtu", "4400", "--receivers-in", "tlv"], "the link MTU is 4400"),
        (&["--link-mtu", "4096"], "link MTU 4096 is too small"),
        (&["--message", "3GiB"], "at most 2147483648 octets"),
        (&["--size", "64 parsecs"], "64MiB"),
    ];
    for (arguments, expected) in cases {
        let output = demo(&[arguments, &["--pcap", captures.to_str().unwrap()]].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty() && !captures.exists(), "{arguments:?} left something half-written");
    }
}

/// Captures hold what the result counts, on interfaces named after the link.
#[test]
fn captures_agree_with_the_counters() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--size", "256KiB", "--loss", "0.01", "--pcap", directory.path().to_str().unwrap()];
    let report = json(&arguments);
    for link in report["links"].as_array().unwrap() {
        let name = link["name"].as_str().unwrap();
        let (upper, lower) = name.split_once('-').unwrap();
        let octets = octets_by_interface(&directory.path().join(format!("{name}.pcapng")));
        let captured = |interface: String| octets.get(&interface).copied().unwrap_or(0);
        assert_eq!(link["down_octets"], captured(name.to_owned()), "{name}");
        assert_eq!(link["up_octets"], captured(format!("{lower}-{upper}")), "{name}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), LINKS.len());
}

fn octets_by_interface(path: &Path) -> BTreeMap<String, u64> {
    let mut octets = BTreeMap::new();
    let mut time_ns = 0;
    for packet in Reader::new(File::open(path).unwrap()).unwrap() {
        let packet = packet.unwrap();
        assert!(packet.time_ns >= time_ns, "{}: packets out of order", path.display());
        time_ns = packet.time_ns;
        *octets.entry(packet.interface.name.clone().unwrap()).or_default() += packet.octets.len() as u64;
    }
    octets
}

/// docs/page.md: a recording has every place and link, its times grow, and in the end every receiver has everything.
#[test]
fn a_recording_ends_with_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let arguments = ["--size", "1MiB", "--loss", "0.01", "--record", path.to_str().unwrap(), "--record-every", "10us"];
    let report = json(&arguments);
    let recording = Recording::read(&path);
    assert_eq!((&recording.head["root"], recording.links()), (&"S1".into(), LINKS.map(str::to_owned).to_vec()));
    assert_eq!(recording.places(), ["S1", "N6", "N4", "N5", "N1", "N2", "N3", "R1", "R2", "R3", "R4", "R5"]);
    assert!(*recording.times.last().unwrap() >= report["completion_ns"].as_u64().unwrap());

    // Octets are rates times intervals: their sum is the count of each link in the report.
    for (link, carried) in report["links"].as_array().unwrap().iter().zip(&recording.octets) {
        let said = ["down_octets", "up_octets"].map(|way| link[way].as_f64().unwrap());
        for (said, carried) in said.into_iter().zip(carried) {
            assert!((said - carried).abs() < 100.0, "{}: {said} against {carried}", link["name"]);
        }
    }
    let packets = 256;
    let end = (recording.head["groups"][0]["initial_psn"].as_u64().unwrap() + packets) % (1 << 24);
    assert_eq!(recording.points.len(), 10);
    assert!(recording.points.values().all(|point| *point == [Some(end), Some(0)]), "{:?}", recording.points);
}
