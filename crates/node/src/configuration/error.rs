//! Errors of the TOML parser, without the secrets that they may quote.

use srdma_toml_error::Problem;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, de};

/// Keys of earlier versions, each with its present name.
const RENAMED: [(&str, &str); 2] = [("notifications", "backpressure"), ("notification_sids", "backpressure_sids")];

/// The error of the TOML parser, or of a key's type, in the file `text`. It contains no part of a key.
pub(super) fn of_toml(error: &de::Error, text: &str) -> Problem {
    let mut problem = Problem::of_toml(error, text);
    let is_unknown = |old: &str| problem.text.starts_with(&format!("unknown key `{old}`, "));
    if let Some((old, new)) = RENAMED.into_iter().find(|(old, _)| is_unknown(old)) {
        problem.text = format!("unknown key `{old}`, renamed to `{new}`");
    }
    if is_secret(text, &error.span().unwrap_or(text.len()..text.len())) {
        problem.text = without_what_was_found(&problem.text);
    }
    problem
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
