//! How far a storm is: one line on the error output, where that is a terminal.

use crate::units::grouped;
use srdma_chaos::runner;
use srdma_chaos::runner::Order;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The line is written anew after this time.
const INTERVAL: Duration = Duration::from_millis(500);

/// Progress of a storm, and the clock that ends it.
pub(super) struct Progress {
    begin: Instant,
    limit: Option<Duration>,
    seeds: u64,
    on_terminal: bool,
    written: Mutex<Option<Instant>>,
}

impl Progress {
    pub(super) fn new(order: &Order, limit: Option<Duration>) -> Self {
        let on_terminal = io::stderr().is_terminal();
        Progress { begin: Instant::now(), limit, seeds: order.seeds, on_terminal, written: Mutex::new(None) }
    }

    /// A schedule is over. Says whether another one may begin.
    pub(super) fn report(&self, progress: runner::Progress) -> bool {
        let elapsed = self.begin.elapsed();
        if self.on_terminal {
            self.write(progress, elapsed);
        }
        self.limit.is_none_or(|limit| elapsed < limit)
    }

    fn write(&self, progress: runner::Progress, elapsed: Duration) {
        // Whoever finds another thread writing has nothing to add.
        let Ok(mut written) = self.written.try_lock() else { return };
        if written.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        *written = Some(Instant::now());
        let of = match self.limit {
            Some(limit) => format!("{:.0} of {:.0} s", elapsed.as_secs_f64(), limit.as_secs_f64()),
            None => format!("of {}", grouped(self.seeds)),
        };
        let rate = progress.done as f64 / elapsed.as_secs_f64().max(1e-3);
        eprint!("\r{} schedules, {of}, {rate:.0}/s, {} failed  ", grouped(progress.done), progress.failed);
        // A progress line that cannot be written is not worth stopping for.
        let _ = io::stderr().flush();
    }

    /// The storm is over.
    pub(super) fn finish(&self) {
        if self.on_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
