//! `srdma bench dataplane` and `srdma bench wire`, as their user runs them.

use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).args(["bench", "dataplane"]).args(arguments).output().unwrap()
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = bench(&[&["--json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Each case checks what leaves the node before it is measured, and counts it afterwards: a run that ends well has forwarded.
#[test]
fn every_case_has_a_row() {
    let rows = rows(&["--quick", "--repetitions", "1"]);
    let cases: BTreeSet<&str> = rows.iter().map(|row| row["case"].as_str().unwrap()).collect();
    let unicast = ["IPv6", "End", "End.X", "uN", "uA", "End.DT6", "H.Encaps", "H.Encaps.Red", "End.Replicate x8"];
    let multicast =
        ["x1", "x8", "x11"].map(|copies| ["gathered", "copied"].map(|how| format!("End.MT {copies} {how}")));
    let yardsticks = ["yardstick: copy", "yardstick: crc32fast", "yardstick: End.MT x8 recomputed"];
    for case in unicast.into_iter().chain(multicast.iter().flatten().map(String::as_str)).chain(yardsticks) {
        assert!(cases.contains(case), "no row for {case} in {cases:?}");
    }
}

#[test]
fn a_row_has_the_case_and_its_times() {
    let rows = rows(&["--quick", "--case", "End", "--case", "yardstick: copy"]);
    let [end, copy] = rows.as_slice() else { panic!("two rows, not {rows:?}") };
    assert_eq!(end["case"], "End");
    assert_eq!((end["frame_octets"].as_u64(), end["routes"].as_u64()), (Some(192), Some(10)));
    assert_eq!(end["working_set"], "inside L2");
    assert_eq!((copy["frame_octets"].as_u64(), copy["routes"].as_u64()), (Some(4096), None));
    for row in &rows {
        let (least, median) = (row["ns_min"].as_f64().unwrap(), row["ns_median"].as_f64().unwrap());
        assert!(0.0 < least && least <= median, "{row}");
        assert!(row["repetitions"].as_u64().unwrap() >= 11, "{row}");
        // If the kernel reports the frequency of the time stamp counter.
        if let Some(clocks) = row["clocks_min"].as_f64() {
            let clocks_per_ns = clocks / least;
            assert!((0.2..10.0).contains(&clocks_per_ns), "{row}");
        }
    }
}

#[test]
fn the_text_output_is_a_table() {
    let output = bench(&["--quick", "--case", "IPv6"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [_, _, heading, row] = lines.as_slice() else { panic!("{text}") };
    assert!(heading.starts_with("case") && row.starts_with("IPv6"), "{text}");
    assert_eq!(heading.len(), row.len(), "the columns are aligned");
}

#[test]
fn impossible_measurements_are_refused() {
    let unknown = bench(&["--case", "End.Unheard"]);
    assert_eq!(unknown.status.code(), Some(2));
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(error.starts_with("srdma: --case End.Unheard: no case has this in its name; there are:\n"), "{error}");
    assert!(error.contains("\n  aggregation x8\n"), "{error}");
    // One that is known does not hide another that is not.
    assert_eq!(bench(&["--quick", "--case", "IPv6", "--case", "End.Unheard"]).status.code(), Some(2));
    let few = bench(&["--repetitions", "0"]);
    assert_eq!(few.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&few.stderr).contains("1..=10000"));
}

/// Each work checks what comes back, by the kernel and by both programs, and that no frame was lost or went another way.
/// Frames are those of a socket, and those that XDP redirects (D224).
#[test]
#[ignore = "needs root"]
fn the_fast_path_has_rows_beside_a_bare_program_and_the_kernel() {
    let output = Command::new(env!("CARGO_BIN_EXE_srdma"))
        .args(["bench", "wire", "--quick", "--json", "--part", "fast-path"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: BTreeSet<(&str, &str)> =
        rows.iter().map(|row| (row["case"].as_str().unwrap(), row["yardstick"].as_str().unwrap())).collect();
    for work in ["IPv6", "End", "uN", "End.DT6", "H.Encaps.Red"] {
        for case in ["in all", "by XDP"].map(|how| format!("{work} {how}")) {
            for yardstick in ["bare XDP", "kernel"] {
                assert!(found.contains(&(case.as_str(), yardstick)), "{case} beside {yardstick} in {found:?}");
            }
        }
    }
    assert!(rows.iter().all(|row| row["ratio"].as_f64().is_some()), "{rows:?}");
}
