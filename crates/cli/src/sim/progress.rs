//! Progress of all runs together: a bar on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of the bar for each run.
const PARTS: u64 = 1000;

/// Progress of several runs at once.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// Completed steps of each run.
    done: Vec<AtomicU64>,
}

impl Progress {
    pub(super) fn new(runs: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent} %, {eta} left");
            let bar = ProgressBar::new(runs as u64 * PARTS).with_message(format!("0 of {runs} runs"));
            // The template is a constant, which parses.
            if let Ok(style) = style { bar.with_style(style.progress_chars("=> ")) } else { bar }
        });
        Progress { bar, done: (0..runs).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Sets the share of a run that is done, from 0 to 1.
    pub(super) fn set(&self, run: usize, share: f64) {
        let parts = (share * PARTS as f64) as u64;
        let (Some(bar), Some(done)) = (&self.bar, self.done.get(run)) else { return };
        if done.swap(parts, Ordering::Relaxed) != parts {
            let all = || self.done.iter().map(|done| done.load(Ordering::Relaxed));
            let ended = all().filter(|parts| *parts == PARTS).count();
            bar.set_message(format!("{ended} of {} runs", self.done.len()));
            bar.set_position(all().sum());
        }
    }

    /// Removes the bar.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
