//! The choice of arms and seeds by options.

use super::arguments::Arguments;
use clap::Parser;
use srdma_fabric_sim::Scenario;
use std::path::Path;

const FILE: &str = r#"
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

[[arm]]
name = "old"
title = "Receiver CNP, DCQCN"
signal = "receiver-cnp"
control = "dcqcn"
baseline = true

[[arm]]
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
fn arms_and_seeds_can_be_chosen() {
    let mut scenario = scenario();
    let chosen = arguments(&["--arm", "new", "--first", "7", "--seeds", "3"]);
    chosen.choose_arms(&mut scenario).unwrap();
    assert_eq!(scenario.arms.len(), 1);
    assert_eq!(chosen.seeds(scenario.seeds), [7, 8, 9]);
    assert_eq!(arguments(&[]).seeds(scenario.seeds), [1, 2]);
    assert_eq!(chosen.command(3), "srdma sim two.toml --first 7 --seeds 3 --arm new");
    let unknown = arguments(&["--arm", "fast"]).choose_arms(&mut self::scenario()).unwrap_err();
    assert_eq!(unknown.to_string(), "--arm fast: two.toml has the arms old, new");
}
