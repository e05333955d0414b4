//! Instructions per frame of the dataplane, by callgrind: neither the load nor the clock of the machine changes them.

use super::job::{Job, Program, Step};
use super::jobs::{head, number};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// Growth of a case over its reference at which the result is refused.
const LIMIT: f64 = 1.02;

/// Cases of `srdma bench dataplane`, with their instructions per frame at commit 728d828b, counted in the same way:
/// before IPv4 in groups, backup routes, reassembly and PSN offsets existed. None of these is configured here.
const CASES: [(&str, f64); 12] = [
    ("IPv6", 449.32),
    ("End", 665.97),
    ("End.X", 591.86),
    ("uN", 610.49),
    ("uA", 537.94),
    ("End.DT6", 664.97),
    ("H.Encaps", 691.89),
    ("H.Encaps.Red", 689.89),
    ("End.Replicate x8", 3609.22),
    ("End.MT x1 gathered", 1553.16),
    ("End.MT x8 gathered", 3160.99),
    ("End.MT x11 gathered", 3849.01),
];

/// The functions under measurement, as the symbols of a release build call them, and the one that makes a frame.
const RECEIVE: &str = "<srdma_dataplane::node::Node as srdma_frame::element::Element>::receive";
const DEQUEUE: &str = "<srdma_dataplane::node::Node as srdma_frame::element::Element>::dequeue";
const FRAME: &str = "srdma_bench::fixture::Fixture::frame";

pub(super) fn job() -> Job {
    let step = |case: &str| {
        let arguments = format!("bench dataplane --quick --repetitions 1 --case \"{case}\"");
        Step { program: Program::Callgrind, ..Step::srdma(arguments, &[]) }
    };
    Job {
        name: "instructions",
        about: "instructions per frame of the dataplane, by callgrind",
        is_quick: true,
        steps: CASES.iter().map(|(case, _)| step(case)).collect(),
        table,
    }
}

fn table(results: &[Value]) -> Result<String> {
    ensure!(results.len() == CASES.len(), "results are missing");
    let mut table = head(&["case", "received", "dequeued", "together", "commit 728d828b", "ratio"]);
    for ((case, reference), result) in CASES.iter().zip(results) {
        let frames = number(result, "/frames")?;
        let [receive, dequeue] = [number(result, "/receive")? / frames, number(result, "/dequeue")? / frames];
        let (all, ratio) = (receive + dequeue, (receive + dequeue) / reference);
        ensure!(ratio <= LIMIT, "{case}: {all:.1} instructions per frame are {ratio:.3} of {reference:.1}");
        let _ = writeln!(table, "| {case} | {receive:.1} | {dequeue:.1} | {all:.1} | {reference:.1} | {ratio:.3} |");
    }
    Ok(table)
}

/// The counts in a file of callgrind.
pub(super) fn counts(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    let called = calls(&text);
    let of = |name: &str| called.get(name).with_context(|| format!("callgrind counted no call of {name}"));
    Ok(json!({ "frames": of(FRAME)?.0, "receive": of(RECEIVE)?.1, "dequeue": of(DEQUEUE)?.1 }))
}

/// Number of calls of each function, and the instructions in them and in what they call.
fn calls(text: &str) -> HashMap<&str, (u64, u64)> {
    // A name stands beside its number where it is first used, and is left out later.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut called: HashMap<&str, (u64, u64)> = HashMap::new();
    let (mut callee, mut count) = ("", None);
    for line in text.lines() {
        if let Some(cost) = count.take() {
            let entry = called.entry(callee).or_default();
            entry.0 += cost;
            entry.1 += line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok()).unwrap_or(0);
        } else if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            if line.starts_with('c') {
                callee = names.get(number).copied().unwrap_or(number);
            }
        } else if let Some(calls) = line.strip_prefix("calls=") {
            count = calls.split(' ').next().and_then(|count| count.parse::<u64>().ok());
        }
    }
    called
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_added_by_the_name_of_the_called_function() {
        let text = "fn=(1) main\n0 5\ncfn=(2) receive\ncalls=3 0\n0 300\n0 7\ncfn=(3) frame\ncalls=2 0\n0 20\n\
                    fn=(2)\n0 100\ncfn=(3)\ncalls=1 0\n0 9\nfn=(4) other\ncfn=(2)\ncalls=1 0\n* 50\n";
        let called = calls(text);
        assert_eq!(called["receive"], (4, 350));
        assert_eq!(called["frame"], (3, 29));
    }

    #[test]
    fn a_case_above_its_reference_is_refused() {
        let at = |factor: f64| {
            let result = |&(_, reference): &(&str, f64)| json!({ "frames": 10, "receive": 10.0 * reference * factor, "dequeue": 0 });
            table(&CASES.iter().map(result).collect::<Vec<_>>())
        };
        assert_eq!(at(1.019).unwrap().lines().count(), 2 + CASES.len());
        let error = at(1.021).unwrap_err().to_string();
        assert!(error.starts_with("IPv6: ") && error.contains(" are 1.021 of "), "{error}");
    }
}
