//! Executions of the fuzz targets, each on the code that it reaches.

use super::job::{Job, Program, Step};
use super::jobs::{grouped, head, number, run_parts, short_trees, text};
use anyhow::Result;
use serde_json::Value;
use std::fmt::Write;

/// A target of libFuzzer.
struct Target {
    name: &'static str,
    /// Steps, each with a seed of its own: what is stopped costs no more than one.
    steps: u32,
    /// Executions of a step.
    executions: u32,
    /// Octets of an input, at most: so that inputs of the corpus are whole.
    max_len: u32,
    /// Further options: where many inputs are kept, their folder is not read again every second (`-reload=0`).
    options: &'static str,
    /// Paths below crates/: its own code, and the crates that it calls.
    reaches: &'static [&'static str],
}

const fn target(name: &'static str, reaches: &'static [&'static str]) -> Target {
    Target { name, steps: 1, executions: 10_000_000, max_len: 1_100, options: "", reaches }
}

const fn of_text(name: &'static str, reaches: &'static [&'static str]) -> Target {
    Target { max_len: 4_400, ..without_reload(name, reaches) }
}

const fn without_reload(name: &'static str, reaches: &'static [&'static str]) -> Target {
    Target { options: " -reload=0", ..target(name, reaches) }
}

const CHOICES: &str = "fuzz-targets/src/choices.rs";
const CONTROLLER: &[&str] =
    &["fuzz-targets/src/controller", CHOICES, "agent", "api", "controller-core", "fabric", "group", "wire"];
const WIRE: &[&str] = &["fuzz-targets/src/wire.rs", "testkit", "wire"];
/// The targets that read files of users, each by another crate.
const FILES: &str = "fuzz-targets/src/files.rs";

/// What reads octets and keeps no state.
const PARSERS: [Target; 17] = [
    target("capture", &["fuzz-targets/src/capture.rs", "capture"]),
    target("cm", WIRE),
    target("decode", &[FILES, "capture", "dissect"]),
    target("ethernet", WIRE),
    target("fast_cnp", WIRE),
    target("icmpv6", WIRE),
    target("icrc", WIRE),
    target("ioam", &["fuzz-targets/src/ioam.rs", "wire"]),
    target("ipv6", WIRE),
    target("manifest", &["fuzz-targets/src/manifest.rs", "srdma"]),
    target("pfc", WIRE),
    target("probe", WIRE),
    target("ranks", &["fuzz-targets/src/ranks.rs", "srdma"]),
    target("rocev2", WIRE),
    target("srh", WIRE),
    Target { max_len: 4_400, ..target("tlvs", WIRE) },
    target("udp", WIRE),
];

/// What reads the texts of users, and the rows of a store.
const TEXTS: [Target; 13] = [
    of_text("backup", &["fuzz-targets/src/backup.rs", "controller"]),
    of_text("configuration", &[FILES, "node"]),
    of_text("controller_config", &["fuzz-targets/src/controller_config.rs", "controller"]),
    of_text("etcd", &["fuzz-targets/src/etcd.rs", "etcd"]),
    of_text("fabric", &[FILES, "fabric", "placement"]),
    without_reload("file_list", &[FILES, "directory"]),
    of_text("jobs", &["fuzz-targets/src/jobs.rs", "fabric", "placement"]),
    of_text("parameters", &["fuzz-targets/src/parameters.rs", "conform"]),
    target("paths", &[FILES, "node"]),
    Target { max_len: 9_600, ..without_reload("rows", CONTROLLER) },
    of_text("scenario", &[FILES, "fabric-sim"]),
    of_text("topology", &[FILES, "lab"]),
    without_reload("transfer", &[FILES, "host"]),
];

/// What keeps state from octet to octet of an input.
const PROTOCOLS: [Target; 9] = [
    target("bfd", &["fuzz-targets/src/bfd.rs", CHOICES, "bfd", "wire"]),
    target("cm_exchange", &["fuzz-targets/src/cm_exchange.rs", CHOICES, "cm", "wire"]),
    target("headend", &["fuzz-targets/src/headend.rs", CHOICES, "dataplane", "frame", "steering", "testkit", "wire"]),
    target("isis", &["fuzz-targets/src/isis.rs", CHOICES, "isis", "wire"]),
    target("mapper", &["fuzz-targets/src/mapper.rs", CHOICES, "fabric", "mapper", "wire"]),
    target("notification", &["fuzz-targets/src/notification.rs", CHOICES, "dataplane", "frame", "wire"]),
    target("ospf", &["fuzz-targets/src/ospf.rs", CHOICES, "ospf", "wire"]),
    target("perftest", &["fuzz-targets/src/perftest.rs", CHOICES, "perftest", "wire"]),
    target("rc", &["fuzz-targets/src/rc.rs", CHOICES, "rc", "wire"]),
];

const ORDERS: &[&str] = &["fuzz-targets/src/orders.rs", "agent", "api", "dataplane", "group", "wire"];

/// A controller and its nodes, and what a node does with the orders.
const CONTROL_PLANE: [Target; 2] = [
    Target { max_len: 6_100, ..without_reload("orders", ORDERS) },
    // By entropy libFuzzer would take a third of the time: most inputs reach thousands of edges.
    Target { steps: 4, executions: 2_500_000, options: " -reload=0 -entropic=0", ..target("requests", CONTROLLER) },
];

const NODE: &[&str] = &["fuzz-targets/src/node", CHOICES, "dataplane", "testkit"];
const WORKERS: &[&str] = &["fuzz-targets/src/node", CHOICES, "testkit", "workers"];

/// Whole nodes, whose state stays from input to input. Each is a job of its own, so that they may run side by side.
const NODES: [Target; 2] = [
    Target { steps: 10, max_len: 384, ..target("node", NODE) },
    Target { steps: 10, max_len: 384, ..target("workers", WORKERS) },
];

pub(super) fn jobs() -> [Job; 7] {
    let job = |name, about, targets: &[Target]| Job {
        name,
        about,
        is_quick: false,
        steps: targets.iter().flat_map(steps).collect(),
        table,
    };
    [
        job("fuzz-parsers", "executions of the fuzz targets that parse octets; needs cargo-fuzz", &PARSERS),
        recordings(),
        job("fuzz-texts", "executions of the fuzz targets of texts and rows", &TEXTS),
        job("fuzz-protocols", "executions of the fuzz targets with the state of a protocol", &PROTOCOLS),
        job("fuzz-controller", "executions of the fuzz targets of controllers and agents", &CONTROL_PLANE),
        job("fuzz-node", "executions of the fuzz target of whole nodes", &NODES[..1]),
        job("fuzz-workers", "executions of the fuzz target of nodes with several workers", &NODES[1..]),
    ]
}

/// The page's reader of recordings is not of libFuzzer, whose two numbers its script prints.
fn recordings() -> Job {
    Job {
        name: "fuzz-recordings",
        about: "mutated recordings that the page opened; needs npm",
        is_quick: false,
        steps: vec![Step { program: Program::Page, ..Step::srdma("fuzz -- 10000000", &[]) }],
        table: |results| table_of(results, "tree of page/src"),
    }
}

fn steps(Target { name, steps, executions, max_len, options, reaches }: &Target) -> impl Iterator<Item = Step> {
    (1..=*steps).map(move |seed| {
        // The first one begins anywhere.
        let seed = if seed == 1 { String::new() } else { format!("-seed={seed} ") };
        let arguments = format!(
            "run -s none --no-trace-compares --features files {name} -- {seed}-max_len={max_len} -runs={executions} \
             -print_final_stats=1{options}"
        );
        Step { program: Program::CargoFuzz(name), reaches, ..Step::srdma(arguments, &[]) }
    })
}

/// A row for each target: the executions of its steps together, the slowest one's rate, and all trees.
fn table(results: &[Value]) -> Result<String> {
    table_of(results, "tree of crates/")
}

fn table_of(results: &[Value], tree: &str) -> Result<String> {
    let results = run_parts(results)?;
    let mut table = head(&["target", "executions without a failure", "per second", tree]);
    for of_target in results.chunk_by(|one, other| one["target"] == other["target"]) {
        let (mut executions, mut rate) = (0.0, f64::MAX);
        for result in of_target {
            executions += number(result, "/executions")?;
            rate = number(result, "/per_second")?.min(rate);
        }
        let (name, trees) = (text(of_target[0], "/target")?, short_trees(of_target)?);
        let _ = writeln!(table, "| `{name}` | {} | {} | {trees} |", grouped(executions), grouped(rate));
    }
    Ok(table)
}

/// The number of executions in what libFuzzer prints with `-print_final_stats=1`.
pub(super) fn executions(target: &str, stderr: &str) -> Result<Value> {
    let number = |key: &str| -> Option<u64> {
        let line = stderr.lines().find(|line| line.starts_with(key))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let [executions, per_second] = ["stat::number_of_executed_units:", "stat::average_exec_per_sec:"].map(number);
    let (Some(executions), Some(per_second)) = (executions, per_second) else {
        anyhow::bail!("libFuzzer printed no number of executions, or no rate");
    };
    Ok(serde_json::json!({ "target": target, "executions": executions, "per_second": per_second }))
}

#[cfg(test)]
mod tests {
    use super::super::reach::Crates;
    use super::*;
    use crate::tree::Tree;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn all() -> impl Iterator<Item = &'static Target> {
        PARSERS.iter().chain(&TEXTS).chain(&PROTOCOLS).chain(&CONTROL_PLANE).chain(&NODES)
    }

    /// Every target of fuzz/ is among the executions.
    #[test]
    fn targets_are_those_of_the_folder() {
        let tree = Tree::of_repository().unwrap();
        let files =
            tree.files.iter().filter_map(|file| file.path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"));
        let names: BTreeSet<&str> = all().map(|target| target.name).collect();
        assert_eq!(files.collect::<BTreeSet<_>>(), names);
        assert_eq!(names.len(), all().count());
    }

    /// The code of a target names no crate, and no other module, that its list does not reach.
    #[test]
    fn targets_reach_what_their_code_names() {
        let (tree, crates) = (Tree::of_repository().unwrap(), Crates::of_workspace().unwrap());
        for Target { name, reaches, .. } in all() {
            let reached = crates.reached(reaches).unwrap();
            let own: Vec<&str> = reaches.iter().copied().filter(|path| path.contains('/')).collect();
            let is_own = |path: &str| {
                let below = path.strip_prefix("crates/");
                below.is_some_and(|path| reached.has(path) && own.iter().any(|own| Path::new(path).starts_with(own)))
            };
            let mut named = 0;
            for file in tree.files.iter().filter(|file| is_own(&file.path)) {
                for word in file.text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                    let folder = word.strip_prefix("srdma_").map(|name| name.replace('_', "-"));
                    let folder = folder.filter(|folder| tree.paths.contains(&format!("crates/{folder}")));
                    named += usize::from(folder.is_some());
                    // The readers of files are in one module, of which a target calls one.
                    let is_reached = |folder: &String| reached.contains(folder) || file.path.ends_with(FILES);
                    assert!(folder.as_ref().is_none_or(is_reached), "{name}: {} names {word}", file.path);
                }
            }
            assert!(named > 0 || reached.contains("srdma"), "{name}: its code names no crate");
        }
    }

    #[test]
    fn executions_are_those_of_libfuzzer() {
        let text =
            "Done 100 runs in 1 second(s)\nstat::number_of_executed_units: 100\nstat::average_exec_per_sec:     99\n";
        let found = executions("srh", text).unwrap();
        assert_eq!(found, json!({ "target": "srh", "executions": 100, "per_second": 99 }));
        assert!(executions("srh", "INFO: seed corpus").is_err());
    }

    #[test]
    fn rows_name_the_tree_of_their_run() {
        let row = json!({ "target": "srh", "executions": 10_000_000, "per_second": 1234, "tree": "0123456789abcdef" });
        assert!(table(&[row]).unwrap().ends_with("\n| `srh` | 10,000,000 | 1,234 | 01234567 |\n"));
    }

    #[test]
    fn steps_of_a_target_are_one_row() {
        let row = |target: &str, rate: u32, tree: &str| json!({ "target": target, "executions": 10_000_000, "per_second": rate, "tree": tree });
        let rows = [
            row("node", 5, "0123456789"),
            row("node", 4, "abcdef0123"),
            row("node", 6, "0123456789"),
            row("workers", 7, "0"),
        ];
        let text = table(&rows).unwrap();
        assert!(
            text.ends_with("\n| `node` | 30,000,000 | 4 | 01234567, abcdef01 |\n| `workers` | 10,000,000 | 7 | 0 |\n"),
            "{text}"
        );
        let node = NODES.iter().flat_map(steps).filter(|step| step.program == Program::CargoFuzz("node"));
        assert_eq!(node.map(|step| step.command()).collect::<BTreeSet<_>>().len(), 10);
    }
}
