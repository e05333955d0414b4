//! Progress of a run that takes long.

use indicatif::{ProgressBar, ProgressStyle};
use srdma_conform::Progress;
use std::time::{Duration, Instant};

/// Time after which a run shows its progress.
const QUIET: Duration = Duration::from_secs(1);

/// A bar on stderr that appears when it takes long.
pub(super) struct Bar {
    begin: Instant,
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Bar { begin: Instant::now(), bar: None }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        if self.begin.elapsed() < QUIET {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(progress.all as u64);
            match ProgressStyle::with_template("{bar:40} {pos} of {len} cases: {msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        bar.set_message(progress.case);
        bar.set_position(progress.done as u64);
    }

    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
