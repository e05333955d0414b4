//! What is wrong with a TOML file, and in which line.

use toml::de;

/// Something wrong at an offset of the text that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The octet at which it stands.
    pub at: usize,
    /// What is wrong, and what was expected.
    pub text: String,
}

/// Why a file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub problem: String,
}

impl Problem {
    /// Something wrong at an offset.
    pub fn new(at: usize, text: impl Into<String>) -> Self {
        Problem { at, text: text.into() }
    }

    /// What the TOML parser or a key's type has to say of a text.
    pub fn of_toml(error: &de::Error, text: &str) -> Self {
        // A key that is missing altogether is missing at the end of the file.
        let at = error.span().map_or(text.len(), |span| span.start);
        Problem::new(at, in_words_of_toml(error.message()))
    }

    /// With the line of the text that was read.
    pub fn in_text(self, text: &str) -> FileError {
        let line = text.bytes().take(self.at).filter(|octet| *octet == b'\n').count() + 1;
        FileError { line, problem: self.text }
    }
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
