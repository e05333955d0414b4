//! What is wrong with a scenario, and where.

use std::io;
use std::path::{Path, PathBuf};
use toml::de;

/// Why a scenario was refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A key or value is wrong.
    #[error("{}:{line}: {problem}", file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was expected and what was found.
        problem: String,
    },
}

/// Something wrong at an offset of the file.
#[derive(Debug)]
pub(super) struct Problem {
    at: usize,
    text: String,
}

impl Problem {
    pub(super) fn new(at: usize, text: impl Into<String>) -> Self {
        Problem { at, text: text.into() }
    }

    /// What the TOML parser or a key's type has to say of the file `text`.
    pub(super) fn of_toml(error: &de::Error, text: &str) -> Self {
        // A key that is missing altogether is missing at the end of the file.
        let at = error.span().map_or(text.len(), |span| span.start);
        Problem::new(at, in_words_of_toml(error.message()))
    }

    /// The error for the file `text`, which was read from `file`.
    pub(super) fn in_file(self, file: &Path, text: &str) -> ScenarioError {
        let line = text.bytes().take(self.at).filter(|octet| *octet == b'\n').count() + 1;
        ScenarioError::Wrong { file: file.to_owned(), line, problem: self.text }
    }
}

/// A scenario has keys, tables and arrays; fields, maps and sequences are Rust's.
fn in_words_of_toml(message: &str) -> String {
    let replacements = [
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        ("unknown variant", "unknown value"),
        ("invalid type: map", "invalid type: table"),
        ("invalid type: sequence", "invalid type: array"),
        ("expected a sequence", "expected an array"),
    ];
    let message = replacements.iter().fold(message.to_owned(), |message, (from, to)| message.replace(from, to));
    match message.split_once("expected struct ") {
        Some((found, _name_of_a_type)) => format!("{found}expected a table"),
        None => message,
    }
}
