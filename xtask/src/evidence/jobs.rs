//! The results that can be made.

use super::figures;
use super::fuzz;
use super::instructions;
use super::job::{Job, Program, Step};
use super::methods;
use super::networks;
use super::paths;
use super::repair_sweep;
use super::times;
use super::transfers;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
pub(super) use srdma_figures::grouped;
use std::fmt::Write;

/// All of them, the quick ones first.
pub(super) fn all() -> Vec<Job> {
    let mut all = vec![
        repair_loss(),
        repair_compare(),
        selective_repeat(),
        repair_sweep::job(),
        model_checking("model-checking-small", true),
        chaos("chaos-quick", true),
        instructions::job(),
        model_checking("model-checking", false),
        chaos("chaos", false),
    ];
    all.extend(fuzz::jobs());
    all.extend(paths::jobs());
    all.extend(times::jobs());
    all.extend(transfers::jobs());
    all.extend(figures::jobs());
    all.extend(networks::jobs());
    all.extend(methods::fronts_of_sweeps());
    all.extend(methods::evaluations());
    all
}

const SEEDS: std::ops::RangeInclusive<u32> = 1..=5;

/// A number of a result.
pub(super) fn number(value: &Value, pointer: &str) -> Result<f64> {
    value.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("a result has no number {pointer}"))
}

pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> Result<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).with_context(|| format!("a result has no text {pointer}"))
}

/// The result of a job of one step.
pub(super) fn only(results: &[Value]) -> Result<&Value> {
    let [result] = results else { anyhow::bail!("one result makes this table") };
    Ok(result)
}

/// The results of those parts of a job that have run.
pub(super) fn run_parts(results: &[Value]) -> Result<Vec<&Value>> {
    let run: Vec<&Value> = results.iter().filter(|result| !result.is_null()).collect();
    ensure!(!run.is_empty(), "no command has run");
    Ok(run)
}

/// The trees of crates/ on which parts of a job ran, shortened.
pub(super) fn short_trees(results: &[&Value]) -> Result<String> {
    let mut trees = Vec::<String>::new();
    for result in results {
        let tree = text(result, "/tree")?.chars().take(8).collect();
        if !trees.contains(&tree) {
            trees.push(tree);
        }
    }
    Ok(trees.join(", "))
}

/// The elements of an array that is not empty; without a pointer, of the value itself.
pub(super) fn array<'v>(value: &'v Value, pointer: &str) -> Result<&'v [Value]> {
    let elements = value.pointer(pointer).and_then(Value::as_array);
    let elements = elements.with_context(|| format!("a result has no array {pointer}"))?;
    ensure!(!elements.is_empty(), "a result has an empty array {pointer}");
    Ok(elements)
}

/// The median, with the least and the greatest value where they differ as printed.
pub(super) fn spread([least, median, greatest]: [f64; 3], decimals: usize) -> String {
    let print = |value: f64| if decimals == 0 { grouped(value) } else { format!("{value:.decimals$}") };
    let [least, median, greatest] = [least, median, greatest].map(print);
    if least == greatest { median } else { format!("{median} ({least}–{greatest})") }
}

/// Header and alignment of a table, the first column to the left.
pub(super) fn head(columns: &[&str]) -> String {
    let rule: Vec<&str> = columns.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" }).collect();
    format!("| {} |\n|{}|\n", columns.join(" | "), rule.join("|"))
}

/// Rows of the table of losses: the label, the loss, and the other options.
const LOSSES: [(&str, &str, &str); 7] = [
    ("0.1 %, `--repair off --receivers-in provisioned`", "0.001", "--repair off --receivers-in provisioned"),
    ("0.1 %", "0.001", ""),
    ("0.1 %, `--receivers-in provisioned`", "0.001", "--receivers-in provisioned"),
    ("0.1 %, `--headend host`", "0.001", "--headend host"),
    ("1 %", "0.01", ""),
    ("1 %, `--receivers-in provisioned`", "0.01", "--receivers-in provisioned"),
    ("1 %, `--headend host`", "0.01", "--headend host"),
];

const LOSS_MEASURES: [(&str, &str); 3] =
    [("source egress", "/egress_octets"), ("completion", "/completion_ns"), ("octets on all links", "/link_octets")];

fn repair_loss() -> Job {
    let demo = |loss: &str, options: &str, seed: u32| {
        let options = if options.is_empty() { String::new() } else { format!("{options} ") };
        let arguments = format!("demo --size 64MiB --window 64 {options}--loss {loss} --seed {seed} --json");
        Step::srdma(arguments, &["/source/egress_octets", "/completion_ns", "/link_octets"])
    };
    let mut steps = Vec::new();
    for (_, loss, options) in LOSSES {
        for seed in SEEDS {
            steps.push(demo(loss, options, seed));
        }
    }
    for options in variants() {
        steps.extend(SEEDS.map(|seed| demo("0", options, seed)));
    }
    Job {
        name: "repair-loss",
        about: "repair under loss, each run over the same without loss, means of five seeds",
        is_quick: true,
        steps,
        table: |results| {
            let seeds = SEEDS.count();
            ensure!(results.len() == (LOSSES.len() + variants().len()) * seeds, "results are missing");
            let runs = |at: usize| &results[at * seeds..][..seeds];
            let measures: Vec<&str> = LOSS_MEASURES.iter().map(|(name, _)| *name).collect();
            let mut table = head(&[&["`srdma demo`, 64 MiB, Figure 1"], &measures[..]].concat());
            for (at, (label, _, options)) in LOSSES.iter().enumerate() {
                let without = variants().iter().position(|variant| variant == options).context("a variant")?;
                let without = runs(LOSSES.len() + without);
                let mut cells = Vec::new();
                for (_, pointer) in LOSS_MEASURES {
                    let mut sum = 0.0;
                    for (lossy, lossless) in runs(at).iter().zip(without) {
                        sum += number(lossy, pointer)? / number(lossless, pointer)?;
                    }
                    cells.push(format!("{:.3}", sum / seeds as f64));
                }
                let _ = writeln!(table, "| {label} | {} |", cells.join(" | "));
            }
            Ok(table)
        },
    }
}

/// The options of the rows, each once.
fn variants() -> Vec<&'static str> {
    let mut variants: Vec<&str> = LOSSES.iter().map(|(_, _, options)| *options).collect();
    variants.sort_unstable();
    variants.dedup();
    variants
}

const HEADENDS: [(&str, &str); 2] = [("first hop", ""), ("`--headend host`", " --headend host")];

fn repair_compare() -> Job {
    let demo = |options: &str, seed: u32| {
        let group = format!("demo --size 64MiB --window 64 --receivers-in provisioned{options}");
        let arguments = format!("{group} --loss 0.001 --compare --seed {seed} --json");
        Step::srdma(arguments, &["/completion_ns", "/compare"])
    };
    Job {
        name: "repair-compare",
        about: "a group under loss beside unicast algorithms over the same links, five seeds",
        is_quick: true,
        steps: HEADENDS.iter().flat_map(|(_, options)| SEEDS.map(|seed| demo(options, seed))).collect(),
        table: |results| {
            let algorithms = ["chain", "binomial", "unicast"];
            let mut table = head(&[&["headend"], &algorithms[..]].concat());
            let seeds = SEEDS.count();
            for (at, (label, _)) in HEADENDS.iter().enumerate() {
                let runs = results.get(at * seeds..(at + 1) * seeds).context("results are missing")?;
                let mut cells = Vec::new();
                for algorithm in algorithms {
                    let mut times = Vec::new();
                    for run in runs {
                        let all = array(run, "/compare")?;
                        let other = all.iter().find(|row| row["algorithm"] == algorithm).context(algorithm)?;
                        times.push(number(other, "/completion_ns")? / number(run, "/completion_ns")?);
                    }
                    let mean = times.iter().sum::<f64>() / times.len() as f64;
                    let (least, most) =
                        (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
                    cells.push(format!("{mean:.2} ({least:.2} to {most:.2})"));
                }
                let _ = writeln!(table, "| {label} | {} |", cells.join(" | "));
            }
            Ok(table)
        },
    }
}

const SOURCES: [&str; 3] = ["go-back-n", "selective", "mixed"];

fn selective_repeat() -> Job {
    let demo = |source: &str, repair: &str| {
        let arguments = format!("demo --size 8MiB --loss 0.001 --seed 1 --source {source} --repair {repair} --json");
        Step::srdma(arguments, &["/source/egress_ratio", "/completion_ns"])
    };
    Job {
        name: "selective-repeat",
        about: "hosts with selective repeat, without and with repair",
        is_quick: true,
        steps: SOURCES.iter().flat_map(|source| ["off", "tree"].map(|repair| demo(source, repair))).collect(),
        table: |results| {
            let mut table = head(&["`--source`", "`--repair off`", "`--repair tree`"]);
            for (source, runs) in SOURCES.iter().zip(results.chunks(2)) {
                let _ = write!(table, "| `{source}` |");
                for run in runs {
                    let (ratio, ms) = (number(run, "/egress_ratio")?, number(run, "/completion_ns")? / 1e6);
                    let _ = write!(table, " {ratio:.3}, {ms:.2} ms |");
                }
                table.push('\n');
            }
            Ok(table)
        },
    }
}

fn model_checking(name: &'static str, is_quick: bool) -> Job {
    let suite =
        if is_quick { ["--small", "--repair --small", "--commit --small"] } else { ["--all", "--repair", "--commit"] };
    let step = |suite: &str| {
        let arguments = format!("{suite} --deepest --json");
        Step { program: Program::ModelCheck, reaches: &["model-check"], ..Step::srdma(arguments, &[]) }
    };
    Job {
        name,
        about: "model checking: the configurations of the tests, or of the documentation",
        is_quick,
        steps: suite.map(step).to_vec(),
        table: |results| {
            let columns = ["trees, packets, or configuration; bounds", "states", "longest path", "result", "tree"];
            let mut table = head(&columns);
            for suite in run_parts(results)? {
                let tree = short_trees(&[suite])?;
                for row in array(suite, "/rows")? {
                    let what = match row["shape"].as_str() {
                        Some(shape) => format!("`{shape}`, {}", number(row, "/packets")?),
                        None => format!("commit, {}", text(row, "/configuration")?),
                    };
                    let (states, depth) = (grouped(number(row, "/states")?), number(row, "/depth")?);
                    let (bounds, result) = (text(row, "/bounds")?, text(row, "/result")?);
                    let _ = writeln!(table, "| {what}; {bounds} | {states} | {depth} | {result} | {tree} |");
                }
            }
            Ok(table)
        },
    }
}

/// A kind of chaos test.
struct Chaos {
    label: &'static str,
    options: &'static str,
    /// Seeds of the quick result, and of the full one.
    seeds: [u32; 2],
    keep: &'static [&'static str],
}

const NETWORKS: &[&str] = &["/schedules", "/hops", "/failures"];

/// In the order of their commands: a violation among few schedules is known before the million.
const CHAOS: [Chaos; 5] = [
    Chaos { label: "three workers a node", options: " --workers 3", seeds: [4_000, 100_000], keep: NETWORKS },
    Chaos {
        label: "under attack",
        options: " --attack",
        seeds: [4_000, 100_000],
        keep: &["/schedules", "/forged", "/accepted", "/failures"],
    },
    Chaos { label: "with insiders", options: " --insiders", seeds: [4_000, 100_000], keep: NETWORKS },
    Chaos {
        label: "clusters",
        options: " --cluster",
        seeds: [1_000, 100_000],
        keep: &["/schedules", "/hops", "/failures", "/findings"],
    },
    Chaos { label: "networks", options: "", seeds: [20_000, 1_000_000], keep: NETWORKS },
];

/// No step of the full result runs more, so that each ends within half an hour on one processor.
const SEEDS_OF_STEP: u32 = 200_000;

impl Chaos {
    /// Its commands.
    fn steps(&self, is_quick: bool) -> impl Iterator<Item = Step> {
        let Chaos { options, seeds, keep, .. } = self;
        let seeds = seeds[usize::from(!is_quick)];
        (0..seeds).step_by(SEEDS_OF_STEP as usize).map(move |from| {
            // None of these seeds is run by the tests.
            let (first, count) = (60_000_000 + from, SEEDS_OF_STEP.min(seeds - from));
            let command = format!("chaos{options} --first-seed {first} --seeds {count} --json");
            let all: &[&str] = &["cli/src/chaos.rs", "cli/src/chaos", "chaos", "cluster"];
            let reaches = if options.contains("--cluster") { all } else { &all[..3] };
            Step { reaches, ..Step::srdma(command, keep) }
        })
    }

    /// A row, of the results that its commands have.
    fn row(&self, results: &[&Value]) -> Result<String> {
        let sum = |of: &dyn Fn(&Value) -> Result<f64>| results.iter().map(|result| of(result)).sum::<Result<f64>>();
        let label = match self.options.trim() {
            "" => self.label.to_owned(),
            options => format!("{}, `{options}`", self.label),
        };
        let is_attack = self.keep.contains(&"/forged");
        let packets = if is_attack {
            let sent = sum(&|result| {
                let forged = result["forged"].as_object().context("a result has no forged packets")?;
                forged.values().map(|kind| number(kind, "/sent")).sum()
            })?;
            format!("{} forged, {:.0} accepted", grouped(sent), sum(&|result| number(result, "/accepted"))?)
        } else {
            format!("{} packet-hops", grouped(sum(&|result| number(result, "/hops"))?))
        };
        let violations = sum(&|result| {
            let failures = result["failures"].as_array().context("a result has no failures")?.len();
            Ok((failures + result["findings"].as_array().map_or(0, Vec::len)) as f64)
        })?;
        let violations = if violations == 0.0 { "none".to_owned() } else { grouped(violations) };
        let schedules = grouped(sum(&|result| number(result, "/schedules"))?);
        let trees = short_trees(results)?;
        Ok(format!("| {label} | {schedules} | {packets} | {violations} | {trees} |\n"))
    }
}

fn chaos(name: &'static str, is_quick: bool) -> Job {
    Job {
        name,
        about: "chaos tests from seeds that the tests do not run",
        is_quick,
        steps: CHAOS.iter().flat_map(|kind| kind.steps(is_quick)).collect(),
        table: if is_quick { |results| chaos_table(results, true) } else { |results| chaos_table(results, false) },
    }
}

fn chaos_table(results: &[Value], is_quick: bool) -> Result<String> {
    run_parts(results)?;
    let mut table = head(&["chaos tests, from seed 60,000,000 on", "schedules", "packets", "violations", "tree"]);
    let mut rest = results;
    for kind in &CHAOS {
        let (own, others) = rest.split_at_checked(kind.steps(is_quick).count()).context("results are missing")?;
        rest = others;
        let own: Vec<&Value> = own.iter().filter(|result| !result.is_null()).collect();
        if !own.is_empty() {
            table.push_str(&kind.row(&own)?);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ratios_are_means_over_the_same_seeds() {
        let job = repair_loss();
        let result = |step: &Step| {
            let loss = if step.arguments.contains("--loss 0 ") { 100.0 } else { 150.0 };
            let seed = if step.arguments.contains("--seed 1 ") { 2.0 } else { 1.0 };
            json!({ "egress_octets": loss * seed, "completion_ns": loss, "link_octets": 100.0 })
        };
        let table = (job.table)(&job.steps.iter().map(result).collect::<Vec<_>>()).unwrap();
        assert!(table.contains("\n| 1 %, `--headend host` | 1.500 | 1.500 | 1.000 |\n"), "{table}");
    }

    #[test]
    fn rows_of_chaos_tests_are_sums_of_what_has_run() {
        let job = chaos("chaos", false);
        assert_eq!(job.steps.len(), 9);
        assert_eq!(job.steps[5].arguments, "chaos --first-seed 60200000 --seeds 200000 --json");
        let mut results = vec![Value::Null; 9];
        for (at, tree) in [(4, "0123456789"), (7, "9876543210")] {
            results[at] = json!({ "schedules": 200_000, "hops": 700, "failures": [], "tree": tree });
        }
        results[1] =
            json!({ "schedules": 5, "forged": { "ack": { "sent": 7 } }, "accepted": 0, "failures": [1], "tree": "0" });
        let table = (job.table)(&results).unwrap();
        let rows = [
            "| under attack, `--attack` | 5 | 7 forged, 0 accepted | 1 | 0 |",
            "| networks | 400,000 | 1,400 packet-hops | none | 01234567, 98765432 |",
        ];
        assert!(table.ends_with(&format!("\n{}\n{}\n", rows[0], rows[1])), "{table}");
        results[1]["accepted"] = Value::Null;
        assert!((job.table)(&results).is_err());
    }
}
