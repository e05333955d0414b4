//! Captures as input: how options name them, and how far through them a command is.

use indicatif::{ProgressBar, ProgressStyle};
use srdma_node::Progress;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time after which a run shows its progress.
const QUIET: Duration = Duration::from_secs(1);

/// An input as `--in` takes it: `PORT=FILE`.
pub(crate) fn parse_input(argument: &str) -> Result<(String, PathBuf), String> {
    match argument.split_once('=') {
        Some((port, file)) if !port.is_empty() && !file.is_empty() => Ok((port.to_owned(), file.into())),
        Some(_) => Err("expected PORT=FILE, found nothing beside '='".to_owned()),
        None => Err("expected PORT=FILE, found no '='".to_owned()),
    }
}

/// Runs a reader of captures, with a bar that appears when it takes long, and is removed afterwards.
pub(crate) fn with_bar<R>(run: impl FnOnce(&mut dyn FnMut(Progress)) -> R) -> R {
    let begin = Instant::now();
    let mut bar = None;
    let result = run(&mut |progress: Progress| {
        if begin.elapsed() > QUIET {
            bar.get_or_insert_with(|| progress_bar(progress.total_octets)).set_position(progress.read_octets);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    result
}

fn progress_bar(total_octets: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total_octets).with_style(style)
}
