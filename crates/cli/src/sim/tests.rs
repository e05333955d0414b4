//! The choice of variants and seeds by options.

use super::arguments::{Arguments, EXAMPLES};
use clap::Parser;
use srdma_fabric_sim::Scenario;
use std::path::Path;

const FILE: &str = r#"
kind = "fabric"
title = "Two to one"
description = "Two hosts send to a third. <Nothing> else."
seeds = 2

[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 2

[[workload.incast]]
receiver = "h1.1"
senders = 2
min_octets = 20_000
max_octets = 50_000
start_us = 1

[measure]
duration_us = 20

[[variant]]
name = "old"
title = "Receiver CNP, DCQCN"
signal = "receiver-cnp"
control = "dcqcn"
baseline = true

[[variant]]
name = "new"
title = "Fast CNP & DCQCN"
signal = "fast-cnp"
control = "dcqcn"
"#;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

fn arguments(more: &[&str]) -> Arguments {
    CommandLine::parse_from(["sim", "two.toml"].iter().chain(more)).arguments
}

fn scenario() -> Scenario {
    Scenario::parse(Path::new("two.toml"), FILE).unwrap()
}

#[test]
fn variants_and_seeds_can_be_chosen() {
    let mut scenario = scenario();
    let chosen = arguments(&["--variant", "new", "--first", "7", "--seeds", "3"]);
    chosen.select(&mut scenario).unwrap();
    assert_eq!(scenario.runs(1), 1);
    assert_eq!(chosen.seeds(&scenario), [7, 8, 9]);
    assert_eq!(arguments(&[]).seeds(&scenario), [1, 2]);
    assert_eq!(chosen.command(&scenario, 3), "srdma sim two.toml --first 7 --seeds 3 --variant new");
    let skips = arguments(&["--skip-steady"]);
    assert_eq!(skips.command(&scenario, 1), "srdma sim two.toml --first 1 --seeds 1 --skip-steady");
    let error = format!("{:#}", skips.select(&mut self::scenario()).unwrap_err());
    assert!(error.starts_with("--skip-steady: two.toml: steady states are those of collectives"), "{error}");
    let seldom = arguments(&["--rate-interval", "0.1"]);
    assert_eq!(seldom.command(&scenario, 1), "srdma sim two.toml --first 1 --seeds 1 --rate-interval 0.1");
    let error = format!("{:#}", seldom.select(&mut self::scenario()).unwrap_err());
    assert!(error.starts_with("--rate-interval: two.toml: rates are those of flow level"), "{error}");
    let error = format!("{:#}", arguments(&["--compare"]).select(&mut self::scenario()).unwrap_err());
    assert!(error.starts_with("--compare: there is nothing to compare"), "{error}");
    let unknown = arguments(&["--variant", "fast"]).select(&mut self::scenario()).unwrap_err();
    assert_eq!(format!("{unknown:#}"), "--variant: two.toml: there is no variant \"fast\": expected one of old, new");
}

/// Every example of the help is a command line that parses, of a shipped scenario that has what it selects.
#[test]
fn the_examples_of_the_help_work() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let examples: Vec<&str> = EXAMPLES.lines().filter_map(|line| line.trim().strip_prefix("srdma ")).collect();
    assert_eq!(examples.len(), 10);
    for example in examples {
        let command = example.split("  ").next().unwrap();
        let arguments = CommandLine::try_parse_from(command.split(' ')).unwrap().arguments;
        let mut scenario = Scenario::read(&root.join(&arguments.file)).unwrap();
        arguments.select(&mut scenario).unwrap();
        assert!(arguments.record.is_none() || scenario.recording_title(1).is_some(), "{command}");
    }
}
