//! Progress on stderr: a bar on a terminal, plain lines otherwise.

use crate::units::octets;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// Number of lines without a terminal.
const LINES: u64 = 4;

/// Progress of one run.
pub(super) struct Progress {
    what: String,
    total_octets: u64,
    bar: Option<ProgressBar>,
    lines_written: u64,
}

impl Progress {
    pub(super) fn new(what: &str, total_octets: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{msg:<10} [{bar:40}] {bytes} of {total_bytes} acknowledged, {eta} left");
            let bar = ProgressBar::new(total_octets).with_message(what.to_owned());
            // The template is a constant and valid.
            if let Ok(style) = style { bar.with_style(style.progress_chars("=> ")) } else { bar }
        });
        Progress { what: what.to_owned(), total_octets, bar, lines_written: 0 }
    }

    /// Reports the number of acknowledged octets.
    pub(super) fn report(&mut self, octets_done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(octets_done);
            return;
        }
        let quarters = (octets_done as f64 / self.total_octets as f64 * LINES as f64) as u64;
        if quarters > self.lines_written {
            self.lines_written = quarters;
            eprintln!("{}: {} of {} acknowledged", self.what, octets(octets_done), octets(self.total_octets));
        }
    }

    /// Ends the display.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
