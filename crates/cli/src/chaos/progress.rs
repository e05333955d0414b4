//! Progress as one line on stderr, if that is a terminal.

use crate::units::grouped;
use srdma_chaos::runner;
use srdma_chaos::runner::RunConfig;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval between updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// Progress of a run, and its time limit.
pub(super) struct Progress {
    begin: Instant,
    limit: Option<Duration>,
    seeds: u64,
    on_terminal: bool,
    written: Mutex<Option<Instant>>,
}

impl Progress {
    pub(super) fn new(config: &RunConfig, limit: Option<Duration>) -> Self {
        let on_terminal = io::stderr().is_terminal();
        Progress { begin: Instant::now(), limit, seeds: config.seeds, on_terminal, written: Mutex::new(None) }
    }

    /// Reports a finished schedule. Returns whether another one may start.
    pub(super) fn report(&self, progress: runner::Progress) -> bool {
        let elapsed = self.begin.elapsed();
        if self.on_terminal {
            self.write(progress, elapsed);
        }
        self.limit.is_none_or(|limit| elapsed < limit)
    }

    fn write(&self, progress: runner::Progress, elapsed: Duration) {
        // Another thread is writing.
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
        // A failed write must not end the run.
        let _ = io::stderr().flush();
    }

    /// Clears the line.
    pub(super) fn finish(&self) {
        if self.on_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
