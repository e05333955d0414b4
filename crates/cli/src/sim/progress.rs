//! How far all runs together are: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of a run that the bar can show.
const PARTS: u64 = 1000;

/// Progress of several runs at once.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// For each run how many of its parts are done.
    done: Vec<AtomicU64>,
}

impl Progress {
    pub(super) fn new(runs: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent} %, {eta} left");
            let bar = ProgressBar::new(runs as u64 * PARTS).with_message(format!("0 of {runs} runs"));
            // The template is a constant; a bar in the default style is as good as none.
            if let Ok(style) = style { bar.with_style(style.progress_chars("=> ")) } else { bar }
        });
        Progress { bar, done: (0..runs).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A run is so far: in virtual time, or in flows that have ended, whichever is further.
    pub(super) fn report(&self, run: usize, progress: &srdma_fabric_sim::Progress) {
        let parts = |done: u64, all: u64| (done.min(all) * PARTS).checked_div(all).unwrap_or(0);
        let time = parts(progress.now_ns, progress.end_ns);
        self.set(run, time.max(parts(progress.ended as u64, progress.flows as u64)));
    }

    /// A run is over.
    pub(super) fn done(&self, run: usize) {
        self.set(run, PARTS);
    }

    fn set(&self, run: usize, parts: u64) {
        let (Some(bar), Some(done)) = (&self.bar, self.done.get(run)) else { return };
        if done.swap(parts, Ordering::Relaxed) != parts {
            let all = || self.done.iter().map(|done| done.load(Ordering::Relaxed));
            let ended = all().filter(|parts| *parts == PARTS).count();
            bar.set_message(format!("{ended} of {} runs", self.done.len()));
            bar.set_position(all().sum());
        }
    }

    /// All runs are over.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
