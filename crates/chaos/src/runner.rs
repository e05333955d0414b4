//! Many seeds on many threads. What comes out does not depend on how many threads there are.

use crate::outcome::{Complaint, ComplaintKind, Outcome};
use crate::schedule::Schedule;
use crate::summary::Summary;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Which seeds are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The first seed.
    pub first: u64,
    /// How many from there.
    pub seeds: u64,
    /// On how many threads, at least one.
    pub threads: usize,
    /// After so many failures no further seed begins.
    pub most_failures: u64,
}

/// How far a storm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Schedules that are over.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// What runs one schedule.
pub type World<'a> = &'a (dyn Fn(&Schedule) -> Outcome + Sync);

/// Runs seeds in their order, each that has begun to its end. `go_on` is asked after each, on whichever thread ran it;
/// once it says no, no further seed begins.
pub fn run(order: &Order, world: World<'_>, go_on: &(dyn Fn(Progress) -> bool + Sync)) -> Summary {
    run_each(order, go_on, &|seed, summary| {
        let schedule = Schedule::from_seed(seed);
        let outcome = guarded(world, &schedule);
        let fails = !outcome.complaints.is_empty();
        summary.merge(Summary::of(seed, &schedule, outcome));
        fails
    })
}

/// What threads gather, and how it becomes one.
pub(crate) trait Gathered: Default + Send {
    /// Adds what another thread has gathered; in whichever order.
    fn merge(&mut self, other: Self);
}

impl Gathered for Summary {
    fn merge(&mut self, other: Self) {
        Summary::merge(self, other);
    }
}

/// Does `work` for each seed; it says whether the seed failed.
pub(crate) fn run_each<G: Gathered>(
    order: &Order,
    go_on: &(dyn Fn(Progress) -> bool + Sync),
    work: &(dyn Fn(u64, &mut G) -> bool + Sync),
) -> G {
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let failed = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let worker = || {
        let mut gathered = G::default();
        while !stop.load(Ordering::Relaxed) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            if position >= order.seeds {
                break;
            }
            let fails = work(order.first.wrapping_add(position), &mut gathered);
            let failed = failed.fetch_add(u64::from(fails), Ordering::Relaxed) + u64::from(fails);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if !go_on(Progress { done, failed }) || failed >= order.most_failures {
                stop.store(true, Ordering::Relaxed);
            }
        }
        gathered
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..order.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let mut all = G::default();
        for worker in workers {
            // Panics of the world are caught; one of a worker is this module's own.
            all.merge(worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        }
        all
    })
}

thread_local! {
    /// Set while a schedule runs on this thread; then what its panic says.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs one schedule. A panic is a complaint with its message, and goes no further.
pub fn guarded(world: World<'_>, schedule: &Schedule) -> Outcome {
    keep_panics_quiet();
    LAST_PANIC.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(|| world(schedule)));
    let place = LAST_PANIC.take().unwrap_or_default();
    result.unwrap_or_else(|panic| {
        let text = format!("{}{place}", message(panic.as_ref()));
        let complaint = Complaint { at_ns: 0, kind: ComplaintKind::Panic, text };
        Outcome { complaints: vec![complaint], ..Outcome::default() }
    })
}

/// Panics of schedules are reported with their seeds; all others as ever.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let in_schedule = LAST_PANIC.with_borrow_mut(|last| match last {
                Some(place) => {
                    *place = info.location().map(|at| format!(", at {}:{}", at.file(), at.line())).unwrap_or_default();
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

    /// A world that takes no time: every tenth seed is stuck, every hundredth panics.
    fn fake(schedule: &Schedule) -> Outcome {
        assert!(!schedule.seed.is_multiple_of(100), "seed {} is round", schedule.seed);
        let stuck = schedule.seed.is_multiple_of(10);
        let complaint = Complaint { at_ns: schedule.seed, kind: ComplaintKind::Stuck, text: "at a ten".to_owned() };
        let group = GroupOutcome {
            recoveries_ns: vec![schedule.seed],
            ack_timeout_ns: 100,
            packets_sent: 7,
            ..GroupOutcome::default()
        };
        Outcome {
            complaints: if stuck { vec![complaint] } else { Vec::new() },
            hops: schedule.seed,
            groups: vec![group],
            ..Outcome::default()
        }
    }

    fn storm(threads: usize, most_failures: u64) -> Summary {
        let order = Order { first: 1, seeds: 300, threads, most_failures };
        run(&order, &fake, &|_| true)
    }

    #[test]
    fn the_summary_does_not_depend_on_the_threads() {
        let one = storm(1, u64::MAX);
        assert_eq!(one, storm(3, u64::MAX));
        assert_eq!((one.schedules, one.failures.len(), one.packets_sent), (300, 30, 297 * 7));
        assert_eq!(one.hops, (1..=300).filter(|seed| seed % 100 != 0).sum::<u64>());
        assert_eq!((one.recoveries.quantile(0), one.recoveries.quantile(1000)), (Some(0.01), Some(2.99)));
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let summary = storm(2, u64::MAX);
        let complaint = &summary.failures[&200].complaint;
        assert_eq!(complaint.kind, ComplaintKind::Panic);
        assert!(complaint.text.starts_with("seed 200 is round, at "), "{}", complaint.text);
    }

    #[test]
    fn a_storm_stops_after_so_many_failures() {
        let summary = storm(1, 2);
        assert_eq!((summary.schedules, summary.failures.len()), (20, 2));
    }

    #[test]
    fn a_storm_stops_when_it_is_told_to() {
        let order = Order { first: 1, seeds: 300, threads: 1, most_failures: u64::MAX };
        assert_eq!(run(&order, &fake, &|progress| progress.done < 17).schedules, 17);
    }
}
