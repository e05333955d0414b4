//! All runs of a scenario, as many at once as there are threads.

use super::progress::Progress;
use anyhow::{Context, Result, anyhow};
use srdma_sim::experiment::{ArmResult, Results, Scenario, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Runs every arm with every seed; what comes back is in the order of arms, then of seeds, whichever ended first.
///
/// # Errors
///
/// The first run, in that order, that failed. No further run begins after one has.
pub(super) fn run_all(
    scenario: &Scenario,
    seeds: &[u64],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<ArmResult>> {
    let arms = scenario.arms.len();
    let jobs: Vec<(usize, u64)> = (0..arms).flat_map(|arm| seeds.iter().map(move |seed| (arm, *seed))).collect();
    let slots: Vec<Mutex<Option<Result<ArmResult>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let (Some((arm, seed)), Some(slot)) = (jobs.get(job), slots.get(job)) else { break };
            let mut report = |now: srdma_sim::experiment::Progress| progress.report(job, &now);
            let name = scenario.arms.get(*arm).map_or("", |arm| arm.name.as_str());
            let result = run(scenario, *arm, *seed, &mut report).with_context(|| format!("arm {name}, seed {seed}"));
            progress.end(job);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(result);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut results = Vec::new();
    for slot in slots {
        match slot.into_inner() {
            Ok(Some(Ok(result))) => results.push(result),
            Ok(Some(Err(error))) => return Err(error),
            // A run behind one that failed.
            Ok(None) => {}
            Err(_) => return Err(anyhow!("a run broke off")),
        }
    }
    Ok(results)
}

/// What was run, with the names that reports need.
pub(super) fn results(scenario: &Scenario, runs: Vec<ArmResult>) -> Results {
    Results {
        title: scenario.title.clone(),
        description: scenario.description.clone(),
        baseline: scenario.arms.get(scenario.baseline()).map(|arm| arm.name.clone()).unwrap_or_default(),
        runs,
    }
}
