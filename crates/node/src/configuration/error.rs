//! What is wrong with a configuration, and where.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, de};

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
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
        /// What was expected and what was found. No part of an HMAC key.
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
        let span = error.span().unwrap_or(text.len()..text.len());
        let message = in_words_of_toml(error.message());
        let message = if is_secret(text, &span) { without_what_was_found(&message) } else { message };
        Problem::new(span.start, message)
    }

    /// The error for the file `text`, which was read from `file`.
    pub(super) fn in_file(self, file: &Path, text: &str) -> ConfigurationError {
        ConfigurationError::Wrong { file: file.to_owned(), line: line_of(text, self.at), problem: self.text }
    }
}

/// The line of an offset, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|octet| *octet == b'\n').count() + 1
}

/// A configuration has keys, tables and arrays; fields, maps and sequences are Rust's.
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

/// Whether an error at `span` is about a value in `hmac_key` or in the key of `isis`: it must not be shown.
fn is_secret(text: &str, span: &Range<usize>) -> bool {
    let Ok(document) = DeTable::parse(text) else {
        return false;
    };
    let of_isis = match document.get_ref().get("isis").map(Spanned::get_ref) {
        Some(DeValue::Table(isis)) => isis.get("key"),
        _ => None,
    };
    let of_isis: Vec<&Spanned<DeValue<'_>>> = match of_isis.map(Spanned::get_ref) {
        // Written in one line, it has its own keys within its span, which are no secret.
        Some(DeValue::Table(entries)) => entries.values().collect(),
        _ => of_isis.into_iter().collect(),
    };
    let hmac_keys = document.get_ref().get("hmac_key");
    hmac_keys.into_iter().chain(of_isis).any(|secrets| holds(secrets, span.start))
}

fn holds(value: &Spanned<DeValue<'_>>, at: usize) -> bool {
    let is_inside = match value.get_ref() {
        DeValue::Array(items) => items.iter().any(|item| holds(item, at)),
        DeValue::Table(entries) => entries.values().any(|entry| holds(entry, at)),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            false
        }
    };
    is_inside || value.span().contains(&at)
}

fn without_what_was_found(message: &str) -> String {
    match message.split_once(", expected ") {
        Some((_, expected)) => format!("wrong value, not shown here: expected {expected}"),
        None => message.to_owned(),
    }
}
