//! Output of a command.

use crate::terminal::escaped_lines;
use anyhow::Context;
use std::io::{self, Write};

/// Prints a text.
///
/// # Errors
///
/// As [`written`].
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// Prints a line at once: its reader may be waiting.
///
/// # Errors
///
/// If it cannot be written, to a closed pipe included.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).context("cannot write the output")
}

/// Prints a text of lines, parts of which may be others': see [`terminal`](crate::terminal).
///
/// # Errors
///
/// As [`written`].
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    print(&escaped_lines(text))
}

/// Result of writing output. A closed pipe, as with `head`, is no error.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write the output"),
    }
}
