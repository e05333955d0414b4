//! Errors in TOML and other text files, with the line that they stand in.
//!
//! A parser finds a [`Problem`] at an offset of the text. [`Problem::in_text`] turns the offset into a line;
//! [`Problem::in_file`] adds the name of the file. Errors of the TOML parser are worded in TOML's terms (key, table,
//! array) rather than in serde's (field, map, sequence).

mod private;

pub use private::{check_private, create_private, read_private, write_private};

use std::io;
use std::path::{Path, PathBuf};
use toml::de;

/// An error at an offset of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Offset in octets.
    pub at: usize,
    /// The error, with the expected value.
    pub text: String,
}

/// An error in a line of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// The error, with the expected value.
    pub problem: String,
}

/// Why a file was refused.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    /// It holds a secret.
    #[error("{}: holds a secret, and other users may read or write it (mode {mode:o}): chmod 600", file.display())]
    Exposed { file: PathBuf, mode: u32 },
    /// A key or value is wrong.
    #[error("{}:{line}: {problem}", file.display())]
    Wrong {
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The expected and the found value.
        problem: String,
    },
}

impl Problem {
    /// An error at an offset.
    pub fn new(at: usize, text: impl Into<String>) -> Self {
        Problem { at, text: text.into() }
    }

    /// The error of the TOML parser, or of a value's type, in a text.
    pub fn of_toml(error: &de::Error, text: &str) -> Self {
        // A key that is missing altogether is missing at the end of the file.
        let at = error.span().map_or(text.len(), |span| span.start);
        Problem::new(at, in_words_of_toml(error.message()))
    }

    /// The error with its line in the text.
    pub fn in_text(self, text: &str) -> LineError {
        LineError { line: line_of(text, self.at), problem: self.text }
    }

    /// The error with its line in the text, and the name of the file that the text is from.
    pub fn in_file(self, file: &Path, text: &str) -> FileError {
        self.in_text(text).in_file(file)
    }
}

impl LineError {
    /// The error with the name of its file.
    pub fn in_file(self, file: &Path) -> FileError {
        FileError::Wrong { file: file.to_owned(), line: self.line, problem: self.problem }
    }
}

/// Reads a file.
///
/// # Errors
///
/// [`FileError::Unreadable`].
pub fn read(file: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(file).map_err(|error| FileError::Unreadable { file: file.to_owned(), error })
}

/// Reads a file that another one names, beside which it is unless its path is absolute.
///
/// # Errors
///
/// Names the file and says why it cannot be read.
pub fn read_beside(file: &Path, name: &str) -> Result<String, String> {
    let path = file.parent().unwrap_or(Path::new("")).join(name);
    read(&path).map_err(|error| error.to_string())
}

/// The line of an offset, from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|octet| *octet == b'\n').count() + 1
}

/// A file has keys, tables and arrays; fields, maps and sequences are Rust's.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_parser_is_worded_in_toml_and_has_its_line() {
        let text = "a = 1\nb = []\n";
        let error = toml::from_str::<std::collections::BTreeMap<String, u8>>(text).expect_err("an array is no number");
        let error = Problem::of_toml(&error, text).in_file(Path::new("f.toml"), text);
        assert_eq!(error.to_string(), "f.toml:2: invalid type: array, expected u8");
        assert_eq!(Problem::new(6, "no").in_text(text).to_string(), "line 2: no");
        assert_eq!([0, 5, 6, 99].map(|at| line_of(text, at)), [1, 1, 2, 3]);
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let error = read(Path::new("/nonexistent/f.toml")).expect_err("there is none");
        assert!(error.to_string().starts_with("/nonexistent/f.toml: No such file"), "{error}");
    }

    #[test]
    fn a_file_that_another_one_names_is_beside_it() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(read_beside(&manifest, "src/lib.rs").as_deref(), Ok(include_str!("lib.rs")));
        let absolute = manifest.display().to_string();
        assert!(read_beside(Path::new("other/f.toml"), &absolute).is_ok_and(|text| text.contains("[package]")));
        let error = read_beside(Path::new("/nonexistent/f.toml"), "t.goal").expect_err("there is none");
        assert!(error.starts_with("/nonexistent/t.goal: No such file"), "{error}");
    }
}
