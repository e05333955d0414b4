//! Storms: default seeds, and those that failed once (MT-5.3.1-1, MT-5.3.2-1, D17, D22, D24, D25, D28, D30).
//!
//! `SRDMA_TEST_SEEDS` says how many seeds are run.

use srdma_chaos::line::Line;
use srdma_chaos::runner::{self, Order};
use srdma_chaos::schedule::Schedule;
use srdma_chaos::{attack, world};
use std::fs;
use std::path::Path;
use std::thread;

const DEFAULT_SEEDS: u64 = 300;

fn order(first: u64, part: u64) -> Order {
    let seeds = match std::env::var("SRDMA_TEST_SEEDS") {
        Ok(text) => text.parse().expect("SRDMA_TEST_SEEDS must be a number"),
        Err(_) => DEFAULT_SEEDS,
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Order { first, seeds: seeds.div_ceil(part), threads, most_failures: u64::MAX }
}

#[test]
fn default_seeds_give_no_complaint() {
    let summary = runner::run(&order(1, 1), &world::run, &|_| true);
    assert_eq!(summary.failures, [].into());
    assert!(summary.restarts > 0 && summary.evictions > 0 && summary.completed > 0, "nothing has happened");
}

/// Forged packets change nothing that a node aggregates (MT-9-3, RFC 8754 section 5.1).
#[test]
fn attacks_achieve_nothing() {
    let comparison = attack::run(&order(1, 10), &world::run, &|_| true);
    assert_eq!(comparison.attacked.failures, [].into());
    assert_eq!(comparison.believed(), 0);
    let sent: u64 = comparison.attacked.forged.values().map(|fates| fates.sent).sum();
    assert!(sent > 0, "nobody has lied");
}

#[test]
fn one_schedule_has_one_outcome() {
    for seed in 1..20 {
        let schedule = Schedule::from_seed(seed);
        assert_eq!(world::run(&schedule), world::run(&schedule), "seed {seed}");
        let told = world::tell(&schedule);
        assert!(!told.timeline.is_empty());
        assert_eq!(told.complaints, world::run(&schedule).complaints, "seed {seed}: telling changes the run");
    }
}

/// Each file is one line that replays, behind comments that say what it found.
#[test]
fn what_failed_once_fails_no_more() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failing_seeds");
    let mut replayed = 0;
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let schedule =
                line.parse::<Line>().unwrap_or_else(|error| panic!("{}: {error}", path.display())).schedule();
            let complaints = runner::guarded(&world::run, &schedule).complaints;
            assert!(complaints.is_empty(), "{}: {}", path.display(), complaints[0]);
            replayed += 1;
        }
    }
    assert!(replayed > 0, "no file in {}", directory.display());
}
