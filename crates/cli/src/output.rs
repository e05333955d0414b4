//! Output of a command.

use crate::terminal::escaped_lines;
use anyhow::Context;
use serde::Serialize;
use std::io::{self, Write};
use std::{fs, path::Path};

/// Prints a text.
///
/// # Errors
///
/// As [`written`].
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// Prints a JSON document.
///
/// # Errors
///
/// As [`written`].
pub(crate) fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(document)?))
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

/// Writes a file, whole or not at all: readers see the one before or the one after.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn replace_file(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut name = file.file_name().with_context(|| format!("{} is no file", file.display()))?.to_owned();
    name.push(".new");
    let beside = file.with_file_name(name);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, file));
    written.with_context(|| format!("cannot write {}", file.display()))
}
