//! `cargo xtask ci`: the checks in order, each with its time; one that fails does not hide those after it.

use crate::external::cargo;
use crate::tree::Tree;
use crate::{conformance, labs, page, tidy, tools};
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// Number of seeds that the tests over many seeds run in the fast tier. In the full tier each runs its own number.
const FAST_TIER_SEEDS: &str = "40";

/// Number of tests of a binary that run at once: many wait for timers and other processes.
const TEST_THREADS: &str = "16";

/// Extent of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tier {
    /// For every commit: some five minutes on two processors once everything is built.
    Fast,
    /// Everything.
    Full,
}

/// One check.
struct Step {
    name: &'static str,
    tier: Tier,
    action: Action,
}

enum Action {
    /// A cargo command line and the environment variables that it needs.
    Cargo(&'static str, &'static [(&'static str, &'static str)]),
    /// A chore of this program on the repository's files.
    Chore(fn(&Tree) -> Result<bool>),
    /// The programs that tests use.
    Tools,
    /// The tests that need root.
    Labs,
    /// The tests of the controller's page, and the comparison of the committed page with its sources.
    Page,
}

/// The result of one check.
struct Outcome {
    passed: bool,
    /// Remark in the summary, beside the time.
    note: String,
}

/// A step that ran.
struct Done {
    name: &'static str,
    time: Duration,
    outcome: Outcome,
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Self {
        Outcome { passed, note: String::new() }
    }
}

/// The checks, cheapest first.
const STEPS: &[Step] = &[
    Step { name: "format", tier: Tier::Fast, action: Action::Cargo("fmt --all --check", &[]) },
    Step { name: "tidy", tier: Tier::Fast, action: Action::Chore(tidy::run) },
    Step { name: "conformance", tier: Tier::Fast, action: Action::Chore(|tree| conformance::run(tree, true)) },
    Step {
        name: "clippy",
        tier: Tier::Fast,
        action: Action::Cargo("clippy --workspace --all-targets -- -D warnings", &[]),
    },
    Step { name: "tools", tier: Tier::Fast, action: Action::Tools },
    Step {
        name: "tests",
        tier: Tier::Fast,
        action: Action::Cargo("test --workspace --no-fail-fast", &[("RUST_TEST_THREADS", TEST_THREADS)]),
    },
    Step {
        name: "fuzz",
        tier: Tier::Full,
        action: Action::Cargo(
            "check --locked --manifest-path fuzz/Cargo.toml --features files --target-dir target/fuzz",
            &[],
        ),
    },
    Step { name: "page", tier: Tier::Full, action: Action::Page },
    Step { name: "labs", tier: Tier::Full, action: Action::Labs },
    Step {
        name: "docs",
        tier: Tier::Full,
        action: Action::Cargo("doc --workspace --no-deps", &[("RUSTDOCFLAGS", "-D warnings")]),
    },
    Step { name: "demo", tier: Tier::Full, action: Action::Cargo("run -- demo", &[]) },
];

/// Runs the checks of `tier`, also after one that failed, and prints a summary; `false` when one failed.
pub(crate) fn run(tier: Tier) -> Result<bool> {
    let mut done = Vec::new();
    for step in STEPS.iter().filter(|step| belongs(step.tier, tier)) {
        println!("\n==> {}: {}", step.name, describe(&step.action));
        let start = Instant::now();
        let outcome = perform(&step.action, tier).unwrap_or_else(|error| {
            eprintln!("error: step `{}`: {error:#}", step.name);
            Outcome { passed: false, note: format!("{error:#}") }
        });
        done.push(Done { name: step.name, time: start.elapsed(), outcome });
    }
    print_summary(&done);
    let failed: Vec<_> = done.iter().filter(|done| !done.outcome.passed).map(|done| done.name).collect();
    if failed.is_empty() {
        println!("ci: all {} steps passed", done.len());
    } else {
        eprintln!("ci: {} of {} steps failed: {}", failed.len(), done.len(), failed.join(", "));
    }
    Ok(failed.is_empty())
}

fn belongs(step: Tier, run: Tier) -> bool {
    step == Tier::Fast || run == Tier::Full
}

fn describe(action: &Action) -> String {
    match action {
        Action::Cargo(arguments, _) => format!("cargo {arguments}"),
        Action::Chore(_) => "the repository's files".to_owned(),
        Action::Tools => "the programs that tests use".to_owned(),
        Action::Labs => "the tests that need root".to_owned(),
        Action::Page => "the controller's page, by npm".to_owned(),
    }
}

fn perform(action: &Action, tier: Tier) -> Result<Outcome> {
    match action {
        Action::Cargo(arguments, environment) => {
            let mut cargo = cargo();
            cargo.args(arguments.split(' ')).envs(environment.iter().copied()).current_dir(Tree::root());
            if tier == Tier::Fast {
                cargo.env("SRDMA_TEST_SEEDS", FAST_TIER_SEEDS);
            }
            Ok(cargo.status().context("cannot start cargo")?.success().into())
        }
        Action::Chore(chore) => Ok(chore(&Tree::of_repository()?)?.into()),
        Action::Tools => {
            let is_full = tier == Tier::Full;
            Ok(tools::provide(is_full, is_full && tools::is_root()?)?.into())
        }
        Action::Page => Ok(page::test()?.into()),
        Action::Labs => {
            let summary = labs::run("")?;
            Ok(Outcome { passed: summary.is_good(), note: summary.to_string() })
        }
    }
}

fn print_summary(done: &[Done]) {
    println!("\n{:<12} {:>9}", "step", "time");
    for Done { name, time, outcome } in done {
        let verdict = if outcome.passed { "" } else { "failed  " };
        println!("{}", format!("{name:<12} {:>7.1} s  {verdict}{}", time.as_secs_f64(), outcome.note).trim_end());
    }
    println!("{:<12} {:>7.1} s", "total", done.iter().map(|done| done.time.as_secs_f64()).sum::<f64>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_tier_contains_the_fast_one() {
        assert!(belongs(Tier::Fast, Tier::Fast));
        assert!(belongs(Tier::Fast, Tier::Full));
        assert!(belongs(Tier::Full, Tier::Full));
        assert!(!belongs(Tier::Full, Tier::Fast));
    }

    #[test]
    fn every_check_named_in_the_contributing_guide_is_a_step() {
        let guide = std::fs::read_to_string(Tree::root().join("CONTRIBUTING.md")).unwrap();
        for step in STEPS {
            assert!(guide.contains(&format!("| {} |", step.name)), "CONTRIBUTING.md does not describe `{}`", step.name);
        }
    }
}
