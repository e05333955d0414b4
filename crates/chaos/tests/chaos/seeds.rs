//! Default seeds, and those that have failed before (MT-5.3.1-1, MT-5.3.2-1, D17, D22, D24, D25, D28, D30).
//!
//! `SRDMA_TEST_SEEDS` sets the number of seeds.

use srdma_chaos::runner::{self, RunConfig};
use srdma_chaos::schedule::Schedule;
use srdma_chaos::token::ReplayToken;
use srdma_chaos::{attack, world};
use srdma_sim::retransmission::Retransmission;
use std::fs;
use std::path::Path;
use std::thread;

const DEFAULT_SEEDS: u64 = 300;

fn config(first_seed: u64, part: u64) -> RunConfig {
    let seeds = srdma_testkit::seeds::count(DEFAULT_SEEDS);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    RunConfig { first_seed, seeds: seeds.div_ceil(part), threads, max_failures: u64::MAX }
}

#[test]
fn default_seeds_have_no_violations() {
    let summary = runner::run(&config(1, 1), Schedule::from_seed, &world::run, &|_| true);
    assert_eq!(summary.failures, [].into());
    assert!(summary.restarts > 0 && summary.evictions > 0 && summary.completed > 0, "no faults took effect");
}

/// Nodes of three workers, which hand packets of groups over to each other (D208).
#[test]
fn nodes_of_several_workers_have_no_violations() {
    let world = |schedule: &Schedule| world::run(&schedule.clone().with_workers(3));
    let summary = runner::run(&config(1, 1), Schedule::from_seed, &world, &|_| true);
    assert_eq!(summary.failures, [].into());
    assert!(summary.restarts > 0 && summary.evictions > 0 && summary.completed > 0, "no faults took effect");
    let summary = runner::run(&config(101, 2), Schedule::with_insiders, &world, &|_| true);
    assert_eq!(summary.failures, [].into());
}

/// A receiver is not ready until after the last group has completed, and an edge sends to it until then.
#[test]
fn frames_to_an_evicted_receiver_are_no_leak() {
    let outcome = world::run(&Schedule::from_seed(60_001_148).with_workers(3));
    assert!(outcome.violations.is_empty() && outcome.evictions == 1, "{:?}", outcome.violations);
}

/// A quarter of the packets is lost, and each worker takes up to two thirds of an ACK timeout to hand one over.
#[test]
fn a_group_of_several_workers_has_time_for_what_they_hand_over() {
    let outcome = world::run(&Schedule::from_seed(60_000_343).with_workers(3));
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
}

/// Packets of an IPv4 flow arrive at one worker: out of their order, each is followed by the NAKs of 181 receivers, which
/// the literal rules forward.
#[test]
fn flows_of_ipv4_stay_in_their_order_with_several_workers() {
    let outcome = world::run(&Schedule::from_seed(60_050_371).with_workers(3));
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert_eq!((outcome.groups[2].naks_received, outcome.drops), (0, [].into()));
}

/// Hosts with selective repeat, all of them or some of the receivers (D228).
#[test]
fn hosts_with_selective_repeat_have_no_violations() {
    for retransmission in [Retransmission::Selective, Retransmission::Mixed] {
        let world = |schedule: &Schedule| world::run(&schedule.clone().with_retransmission(retransmission));
        let summary = runner::run(&config(1, 1), Schedule::from_seed, &world, &|_| true);
        assert_eq!(summary.failures, [].into());
        assert!(summary.restarts > 0 && summary.evictions > 0 && summary.completed > 0, "no faults took effect");
    }
}

/// Forged packets do not change aggregation state (MT-9-3, RFC 8754 section 5.1).
#[test]
fn attacks_have_no_effect() {
    let comparison = attack::run(&config(1, 10), &world::run, &|_| true);
    assert_eq!(comparison.attacked.failures, [].into());
    assert_eq!((comparison.accepted(), comparison.prevented), (0, 0));
    let sent: u64 = comparison.attacked.forged.values().map(|outcome| outcome.sent).sum();
    assert!(sent > 0, "no packets were forged");
}

/// Insiders deceive the source about the receivers behind themselves alone (MT-5.3.1-1, MT-5.3.2-1).
#[test]
fn insiders_harm_no_other_members() {
    // In fewer than these no member is deceived.
    let config = RunConfig { seeds: config(101, 1).seeds.max(100), ..config(101, 1) };
    let summary = runner::run(&config, Schedule::with_insiders, &world::run, &|_| true);
    assert_eq!(summary.failures, [].into());
    let count = |name: &str| summary.faults.get(name).copied().unwrap_or(0);
    for name in ["untrue ACK", "untrue sequence NAK", "untrue RNR NAK", "untrue fatal NAK", "untrue CNP"] {
        assert!(count(name) > 0, "no {name} was sent");
    }
    assert!(count("untrue responses with an effect") > 0, "no untrue response had an effect");
    assert!(count("members deceived") > 0, "no member was deceived");
}

#[test]
fn one_schedule_has_one_outcome() {
    for seed in 1..20 {
        let schedule = Schedule::from_seed(seed);
        assert_eq!(world::run(&schedule), world::run(&schedule), "seed {seed}");
        let recorded = world::run_with_timeline(&schedule);
        assert!(!recorded.timeline.is_empty());
        assert_eq!(recorded.violations, world::run(&schedule).violations, "seed {seed}: the timeline changes the run");
    }
}

/// Each file is a replay token after comments that describe the defect.
#[test]
fn formerly_failing_tokens_pass() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failing_seeds");
    let mut replayed = 0;
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for token in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let schedule =
                token.parse::<ReplayToken>().unwrap_or_else(|error| panic!("{}: {error}", path.display())).schedule();
            let violations = runner::run_catching_panics(&world::run, &schedule).violations;
            assert!(violations.is_empty(), "{}: {}", path.display(), violations[0]);
            replayed += 1;
        }
    }
    assert!(replayed > 0, "no file in {}", directory.display());
}
