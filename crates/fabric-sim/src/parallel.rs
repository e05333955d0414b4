//! All runs of a scenario, on several threads.

use super::results::{FabricResults, VariantResult};
use super::run::{Progress, RunError, run_observed};
use super::scenario::FabricScenario;
use srdma_sim::observer::PeriodicObserver;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Runs every variant with every seed on so many threads: as many runs at a time, and a run on several threads where
/// there are fewer runs. `progress` gets the position of a run, which counts variant by variant with seeds in order,
/// and its progress. The first run is observed. The results depend neither on the observer nor on the number of
/// threads.
///
/// # Errors
///
/// That of the first failed run, in order.
pub fn run_all(
    scenario: &FabricScenario,
    seeds: &[u64],
    threads: usize,
    progress: &(dyn Fn(usize, Progress) + Sync),
    observer: Option<&Mutex<PeriodicObserver<'_>>>,
) -> Result<FabricResults, RunError> {
    let runs = scenario.variants.len() * seeds.len();
    let threads_of_run = (threads / runs.max(1)).max(1);
    let results = in_parallel(runs, threads, &|position| {
        let (variant, seed) = (position / seeds.len(), seeds[position % seeds.len()]);
        let mut observer = if position == 0 { observer.map(locked) } else { None };
        let mut progress = |how_far| progress(position, how_far);
        run_observed(scenario, variant, seed, threads_of_run, &mut progress, observer.as_deref_mut())
    });
    Ok(FabricResults {
        title: scenario.title.clone(),
        description: scenario.description.clone(),
        level: scenario.level,
        baseline: scenario.variants[scenario.baseline()].name.clone(),
        runs: results.into_iter().collect::<Result<Vec<VariantResult>, RunError>>()?,
    })
}

/// Locks, poisoned or not: a run that panics ends all runs.
pub(super) fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The results of `make` for each position below `count`, in order, computed on `threads` threads.
pub(super) fn in_parallel<T: Send>(count: usize, threads: usize, make: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= count {
                return;
            }
            let result = make(position);
            locked(&done).push((position, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, count.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}
