//! Default seeds (MT-5.3.1-1, MT-5.3.2-1, D25, D30, D31, D115, D116, D121, D122).
//!
//! `SRDMA_TEST_SEEDS` sets the number of seeds.

use srdma_chaos::runner::RunConfig;
use srdma_cluster::phase::Phase;
use srdma_cluster::schedule::Schedule;
use srdma_cluster::summary;
use srdma_cluster::world;
use std::collections::BTreeSet;
use std::thread;

const DEFAULT_SEEDS: u64 = 200;

#[test]
fn default_seeds_have_no_findings() {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let config =
        RunConfig { first_seed: 1, seeds: srdma_testkit::seeds::count(DEFAULT_SEEDS), threads, max_failures: u64::MAX };
    let summary = summary::run(&config, &Schedule::from_seed, &|_| true);
    let findings: Vec<String> = summary
        .findings
        .iter()
        .map(|((finding, kind), (times, seed))| {
            format!("{} ({}) in {times} schedules, the first is cluster-v12:{seed}", kind.name(), finding.name())
        })
        .collect();
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(summary.events >= 200 * summary.schedules, "{} events", summary.events);
    // Most groups come to be and carry data: the checks have something to check.
    assert!(2 * summary.ready > summary.groups, "{} of {} groups are ready", summary.ready, summary.groups);
    assert!(summary.comparisons > 100 * summary.groups, "{} comparisons", summary.comparisons);
    // Fewer seeds do not meet every one.
    if config.seeds < DEFAULT_SEEDS {
        return;
    }
    for phase in Phase::AIMED {
        let is_met = summary.phases.keys().any(|(_, met)| *met == phase);
        assert!(is_met, "no fault met a group that is {}", phase.name());
    }
    let met: BTreeSet<(&str, Phase)> = summary.phases.keys().copied().collect();
    assert!(met.len() > 100, "{} pairs of a fault and a phase", met.len());
    let events = ["controller crash", "node crash", "node partitioned", "join", "leave", "restoring", "committing"];
    let of_etcd = ["etcd cut", "write delayed", "write of a former leader", "leader ends"];
    let of_bfd = ["session broken", "neighbour unreachable"];
    let of_repair = ["packet resent", "repair request"];
    let of_two_steps = ["receiver report", "receiver reserved"];
    let of_resumptions = ["source resumed", "source resumes"];
    let all = events.into_iter().chain(of_etcd).chain(of_bfd).chain(of_repair).chain(of_two_steps);
    for event in all.chain(of_resumptions).chain(["receiver moved"]) {
        assert!(summary.counts.get(event).is_some_and(|times| *times > 0), "no {event}");
    }
}

/// Sources that are attached to two nodes send by either, and one takes the place of the other as headend (D289, D290).
#[test]
fn headends_are_replaced_and_nothing_untrue_is_said() {
    let with_two = |seed| {
        let schedule = Schedule::from_seed(seed);
        let second_headend = schedule.second_headend.or(Some(schedule.nodes() - 1));
        Schedule { second_headend, workers: if seed % 4 == 0 { 3 } else { 1 }, ..schedule }
    };
    // In fewer no headend is replaced.
    let seeds = srdma_testkit::seeds::count(DEFAULT_SEEDS).div_ceil(4).max(50);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let config = RunConfig { first_seed: 3_001, seeds, threads, max_failures: u64::MAX };
    let summary = summary::run(&config, &with_two, &|_| true);
    assert!(summary.findings.is_empty(), "{:#?}", summary.failures);
    assert!(2 * summary.ready > summary.groups, "{} of {} groups are ready", summary.ready, summary.groups);
    for event in ["packet passed on", "headend replaced", "source link cut"] {
        assert!(summary.counts.get(event).is_some_and(|times| *times > 0), "no {event}: {:?}", summary.counts);
    }
}

/// Receivers that are attached to two nodes move from one to the other (D280). The last schedule found that packets which a
/// node had kept without receivers of its own were sent to one of them with four octets more.
#[test]
fn receivers_move_and_nothing_untrue_is_said() {
    let config = RunConfig { first_seed: 1_640, seeds: 7, threads: 2, max_failures: u64::MAX };
    let summary = summary::run(&config, &Schedule::from_seed, &|_| true);
    assert!(summary.findings.is_empty(), "{:?}", summary.findings);
    assert!(summary.counts.get("receiver moved").is_some_and(|times| *times > 0), "{:?}", summary.counts);
}

/// Receivers at two nodes answer by either, at random, whichever serves them: the other one passes it on (D281).
#[test]
fn receivers_answer_by_either_node() {
    let with_peers = |seed| {
        let schedule = Schedule::from_seed(seed);
        let has_peers = !schedule.dual_homed.is_empty();
        Schedule { has_peers, workers: if seed % 4 == 0 { 3 } else { 1 }, ..schedule }
    };
    // In fewer no receiver moves.
    let seeds = srdma_testkit::seeds::count(DEFAULT_SEEDS).div_ceil(4).max(50);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let config = RunConfig { first_seed: 2_001, seeds, threads, max_failures: u64::MAX };
    let summary = summary::run(&config, &with_peers, &|_| true);
    assert!(summary.findings.is_empty(), "{:#?}", summary.failures);
    assert!(2 * summary.ready > summary.groups, "{} of {} groups are ready", summary.ready, summary.groups);
    for event in ["packet passed on", "receiver moved", "host link cut"] {
        assert!(summary.counts.get(event).is_some_and(|times| *times > 0), "no {event}: {:?}", summary.counts);
    }
}

/// Nodes of three workers, all of which have what the API shows (D208).
#[test]
fn nodes_of_several_workers_have_no_findings() {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let seeds = srdma_testkit::seeds::count(DEFAULT_SEEDS).div_ceil(4);
    let config = RunConfig { first_seed: 1001, seeds, threads, max_failures: u64::MAX };
    let summary = summary::run(&config, &|seed| Schedule::from_seed(seed).with_workers(3), &|_| true);
    assert!(summary.findings.is_empty(), "{:#?}", summary.failures);
    assert!(2 * summary.ready > summary.groups, "{} of {} groups are ready", summary.ready, summary.groups);
    assert!(summary.comparisons > 100 * summary.groups, "{} comparisons", summary.comparisons);
}

/// D160: a source that has more in flight than its window; of the first 400 seeds of version 6 this one has.
#[test]
fn a_window_that_is_exceeded_harms_nothing() {
    let outcome = world::run(&Schedule::from_seed_of_version_6(68));
    assert!(outcome.counts["window exceeded"] > 0 && outcome.violations.is_empty(), "{outcome:?}");
}

#[test]
fn one_schedule_has_one_outcome() {
    for seed in 1..8 {
        let schedule = Schedule::from_seed(seed);
        let first = world::run(&schedule);
        assert_eq!(first, world::run(&schedule), "seed {seed}");
        let recorded = world::run_with_timeline(&schedule);
        assert!(!recorded.timeline.is_empty());
        assert_eq!(recorded.digest, first.digest, "seed {seed}: the timeline changes the run");
    }
    let other = world::run(&Schedule::from_seed(9)).digest;
    assert_ne!(other, world::run(&Schedule::from_seed(10)).digest, "the digest says something");
}
