//! Many seeds on many threads. The result does not depend on the number of threads.

use crate::outcome::{Outcome, Violation, ViolationKind};
use crate::schedule::Schedule;
use crate::summary::Summary;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunConfig {
    /// The first seed.
    pub first_seed: u64,
    /// Number of consecutive seeds.
    pub seeds: u64,
    /// At least 1.
    pub threads: usize,
    /// No further seed starts after this many failures.
    pub max_failures: u64,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Finished schedules.
    pub done: u64,
    /// Finished schedules with violations.
    pub failed: u64,
}

/// A function that runs one schedule.
pub type RunSchedule<'a> = &'a (dyn Fn(&Schedule) -> Outcome + Sync);

/// A function that draws the schedule of a seed.
pub type DrawSchedule = fn(u64) -> Schedule;

/// Runs seeds in config. `go_on` is called after each, on any thread; once it returns false no further seed starts.
/// Seeds that have started are finished.
pub fn run(
    config: &RunConfig,
    draw: DrawSchedule,
    world: RunSchedule<'_>,
    go_on: &(dyn Fn(Progress) -> bool + Sync),
) -> Summary {
    run_each(config, go_on, &|seed, summary| {
        let schedule = draw(seed);
        let outcome = run_catching_panics(world, &schedule);
        let fails = !outcome.violations.is_empty();
        summary.merge(Summary::of(seed, &schedule, outcome));
        fails
    })
}

/// A result that threads accumulate.
pub trait Merge: Default + Send {
    /// Adds another thread's result. The order must not matter.
    fn merge(&mut self, other: Self);
}

impl Merge for Summary {
    fn merge(&mut self, other: Self) {
        Summary::merge(self, other);
    }
}

/// Calls `work` for each seed; it returns whether the seed failed.
pub fn run_each<G: Merge>(
    config: &RunConfig,
    go_on: &(dyn Fn(Progress) -> bool + Sync),
    work: &(dyn Fn(u64, &mut G) -> bool + Sync),
) -> G {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let failed = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let worker = || {
        let mut result = G::default();
        while !stop.load(Ordering::Relaxed) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= config.seeds {
                break;
            }
            let fails = work(config.first_seed.wrapping_add(position), &mut result);
            let failed = failed.fetch_add(u64::from(fails), Ordering::Relaxed) + u64::from(fails);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if !go_on(Progress { done, failed }) || failed >= config.max_failures {
                stop.store(true, Ordering::Relaxed);
            }
        }
        result
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..config.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let mut all = G::default();
        for worker in workers {
            // Panics of schedules are caught: this one is a defect of this module.
            all.merge(worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        }
        all
    })
}

thread_local! {
    /// Set while a schedule runs on this thread; then the location of its panic.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs one schedule. A panic becomes a violation with its message.
pub fn run_catching_panics(world: RunSchedule<'_>, schedule: &Schedule) -> Outcome {
    catch_panic(|| world(schedule)).unwrap_or_else(|text| {
        let violation = Violation { at_ns: 0, kind: ViolationKind::Panic, text };
        Outcome { violations: vec![violation], ..Outcome::default() }
    })
}

/// Runs a schedule.
///
/// # Errors
///
/// The message of its panic, with its location.
pub fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    keep_panics_quiet();
    LAST_PANIC.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    let place = LAST_PANIC.take().unwrap_or_default();
    result.map_err(|panic| format!("{}{place}", message(panic.as_ref())))
}

/// Panics within schedules are reported with their seeds; others go to the default hook.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let in_schedule = LAST_PANIC.with_borrow_mut(|last| match last {
                Some(location) => {
                    *location =
                        info.location().map(|at| format!(", at {}:{}", at.file(), at.line())).unwrap_or_default();
                    true
                }
                None => false,
            });
            if !in_schedule {
                usual(info);
            }
        }));
    });
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::GroupOutcome;

    /// A fake run: every tenth seed has a violation, every hundredth panics.
    fn fake(schedule: &Schedule) -> Outcome {
        assert!(!schedule.seed.is_multiple_of(100), "seed {} is round", schedule.seed);
        let fails = schedule.seed.is_multiple_of(10);
        let violation =
            Violation { at_ns: schedule.seed, kind: ViolationKind::Liveness, text: "every tenth".to_owned() };
        let group = GroupOutcome {
            recoveries_ns: vec![schedule.seed],
            ack_timeout_ns: 100,
            packets_sent: 7,
            ..GroupOutcome::default()
        };
        Outcome {
            violations: if fails { vec![violation] } else { Vec::new() },
            hops: schedule.seed,
            groups: vec![group],
            ..Outcome::default()
        }
    }

    fn run_fake(threads: usize, max_failures: u64) -> Summary {
        let config = RunConfig { first_seed: 1, seeds: 300, threads, max_failures };
        run(&config, Schedule::from_seed, &fake, &|_| true)
    }

    #[test]
    fn the_summary_does_not_depend_on_the_threads() {
        let one = run_fake(1, u64::MAX);
        assert_eq!(one, run_fake(3, u64::MAX));
        assert_eq!((one.schedules, one.failures.len(), one.packets_sent), (300, 30, 297 * 7));
        assert_eq!(one.hops, (1..=300).filter(|seed| seed % 100 != 0).sum::<u64>());
        assert_eq!((one.recoveries.quantile(0), one.recoveries.quantile(1000)), (Some(0.01), Some(2.99)));
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let summary = run_fake(2, u64::MAX);
        let violation = &summary.failures[&200].violation;
        assert_eq!(violation.kind, ViolationKind::Panic);
        assert!(violation.text.starts_with("seed 200 is round, at "), "{}", violation.text);
    }

    #[test]
    fn a_run_stops_after_max_failures() {
        let summary = run_fake(1, 2);
        assert_eq!((summary.schedules, summary.failures.len()), (20, 2));
    }

    #[test]
    fn a_run_stops_when_the_callback_returns_false() {
        let config = RunConfig { first_seed: 1, seeds: 300, threads: 1, max_failures: u64::MAX };
        assert_eq!(run(&config, Schedule::from_seed, &fake, &|progress| progress.done < 17).schedules, 17);
    }
}
