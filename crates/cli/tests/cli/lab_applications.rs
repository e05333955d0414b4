//! `srdma bench applications`, as its user runs it.

use crate::signals;
use nix::sys::signal::Signal;
use serde_json::Value;
use srdma_io::namespace::Namespace;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// A user without privileges.
const UNPRIVILEGED: u32 = 65_534;

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
    command.args(["bench", "applications"]).args(arguments);
    command
}

/// Of each way and with either kind of links: a version crosses the source's link once, or once for each receiver; by
/// scatter each receiver's link has its own part alone.
#[test]
#[ignore = "needs root"]
fn a_version_crosses_the_link_of_its_source_once_or_once_for_each_receiver() {
    let output = bench(&["--octets", "8MiB", "--rounds", "2", "--json"]).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let found: Vec<(&str, Option<u64>)> =
        rows.iter().map(|row| (row["way"].as_str().expect("a name"), row["rate_bits_per_s"].as_u64())).collect();
    let limited = Some(200_000_000);
    let ways = ["unicast", "multicast", "scatter"];
    let expected: Vec<_> = [limited, None].into_iter().flat_map(|rate| ways.map(|way| (way, rate))).collect();
    assert_eq!(found, expected, "{}", String::from_utf8_lossy(&output.stderr));
    for row in &rows {
        assert_eq!((&row["receivers"], &row["octets"], &row["rounds"]), (&8.into(), &(8 * MIB).into(), &2.into()));
        let number = |key: &str| row[key].as_f64().expect("a number");
        assert!(0.0 < number("seconds_min") && number("seconds_min") <= number("seconds_median"), "{row}");
        let is_multicast = row["way"] == "multicast";
        // Headers are 2 %; a machine under load may lose some packets, which come again, and so does a window of them to
        // a receiver that was not ready. By scatter a receiver gets an eighth, which may come again as well; with the
        // octets of all others it would be a whole.
        let (source, receiver) = match row["way"].as_str() {
            Some("unicast") => (8.0..16.0, 1.0..2.0),
            Some("multicast") => (1.0..2.0, 1.0..2.0),
            _ => (1.0..2.0, 0.125..0.5),
        };
        assert!(source.contains(&number("source_link")) && receiver.contains(&number("receiver_link")), "{row}");
        assert_eq!(row["ratio"].is_null(), !is_multicast, "{row}");
        assert!(["source", "receivers", "nodes"].iter().all(|side| row["processors"][side].as_f64() >= Some(0.0)));
    }
    // No data can be faster than the link: one copy, eight copies.
    let least_seconds = (8 * MIB * 8) as f64 / 200e6;
    assert!(rows[0]["seconds_min"].as_f64().expect("a number") > 8.0 * 0.9 * least_seconds, "{}", rows[0]);
    assert!(rows[1]["seconds_min"].as_f64().expect("a number") > 0.9 * least_seconds, "{}", rows[1]);
    let missed = rows[1]["ratio"].as_f64().expect("a number") < 6.0;
    assert_eq!(output.status.code(), Some(i32::from(missed)));
}

/// SIGTERM, while the network is built and while data go through it: everything is taken down. Building starts a program
/// after the other, each of which has the default action for the signal, and must not take it from the measurement.
#[test]
#[ignore = "needs root"]
fn an_interrupted_measurement_leaves_nothing_behind() {
    let exists = |name: &str| Namespace::existing(name).is_some();
    let has_source = |name: &str| {
        let list = Command::new("ip").args(["netns", "pids", name]).output().expect("ip runs");
        let pids = String::from_utf8_lossy(&list.stdout).into_owned();
        let command = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        pids.split_whitespace().any(|pid| command(pid).contains("application-host"))
    };
    // Three moments of building, and one of a transfer.
    for (node, is_in_transfer) in [("wires", false), ("N1", false), ("R8", false), ("S", true)] {
        let arguments = ["--octets", "1GiB", "--links", "limited"];
        let mut bench = bench(&arguments).stderr(Stdio::null()).spawn().expect("it runs");
        let pid = bench.id();
        let name = format!("srdma-applications-b{pid}-{node}");
        let end = Instant::now() + Duration::from_secs(60);
        while !if is_in_transfer { has_source(&name) } else { exists(&name) } {
            assert!(Instant::now() < end, "in vain: {name}");
            sleep(Duration::from_millis(5));
        }
        signals::send(Signal::SIGTERM, pid);
        assert_eq!(bench.wait().expect("a child").code(), Some(1), "{node}");
        for left in ["wires", "N1", "R8"] {
            assert!(!exists(&format!("srdma-applications-b{pid}-{left}")), "interrupted at {node}: {left} is left");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn others_than_root_are_refused() {
    let program = tempfile::tempdir().expect("a directory");
    let copy = program.path().join("srdma");
    std::fs::copy(env!("CARGO_BIN_EXE_srdma"), &copy).expect("copied");
    std::os::unix::fs::chown(program.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("root may");
    let output = Command::new(&copy)
        .args(["bench", "applications"])
        .uid(UNPRIVILEGED)
        .gid(UNPRIVILEGED)
        .output()
        .expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains("run it as root"), "{error}");
}
