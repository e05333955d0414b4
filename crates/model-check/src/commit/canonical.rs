//! Fingerprints of states: of all that a value's `Debug` output shows, so that new fields are part of a state without
//! a change here, but for what only grows or only repeats something else.

use std::fmt::{Debug, Write};
use std::hash::{DefaultHasher, Hasher};

/// Fields whose numbers are no part of a state: times (all transactions of a model are at one time), delays, numbers of
/// the audit log and of versions, which no decision depends on, and numbers of sessions, of which the model compares
/// whether they are current.
const IGNORED: [&str; 14] = [
    "now",
    "heard",
    "searched",
    "source_seen",
    "expects_until",
    "begun",
    "retry",
    "last_audit",
    "version",
    "network_version",
    "sessions",
    "session",
    "starts",
    "unix_ms",
];

/// A hash of text without the numbers of ignored fields. It reads both `Debug` output and JSON within it.
struct Fingerprint {
    /// What is left of the text.
    rest: Vec<u8>,
    word: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    /// Behind an ignored word, which may be the name of a field.
    Name,
    /// In the value of an ignored field, within so many brackets.
    Value(u32),
}

/// The fingerprint of a value.
pub(super) fn fingerprint(value: &impl Debug) -> u64 {
    let mut text = Fingerprint { rest: Vec::new(), word: Vec::new(), state: State::Reading };
    // It accepts all text.
    let _ = write!(text, "{value:?}");
    let mut hasher = DefaultHasher::new();
    hasher.write(&text.rest);
    hasher.finish()
}

impl Fingerprint {
    /// Reads words and what is between them, up to the first octet behind an ignored word. Returns what is behind that.
    fn read<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let is_of_word = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'_';
        let mut at = 0;
        while at < text.len() {
            let word = text[at..].iter().take_while(|octet| is_of_word(octet)).count();
            self.word.extend_from_slice(&text[at..at + word]);
            at += word;
            let Some(next) = text.get(at) else { break };
            let is_ignored = IGNORED.iter().any(|ignored| ignored.as_bytes() == self.word);
            self.word.clear();
            if is_ignored {
                self.rest.extend_from_slice(&text[..at]);
                self.state = State::Name;
                self.name(*next);
                return &text[at + 1..];
            }
            at += 1;
        }
        self.rest.extend_from_slice(text);
        &[]
    }

    /// Up to the colon: quotation marks of JSON, which are escaped within strings.
    fn name(&mut self, octet: u8) {
        match octet {
            b':' => self.state = State::Value(0),
            b'"' | b'\\' => {}
            _ => {
                self.state = State::Reading;
                self.rest.push(octet);
            }
        }
    }

    /// Only numbers are left out: whether there is a value is part of the state.
    fn value(&mut self, octet: u8, depth: u32) {
        self.state = match (octet, depth) {
            (b'(' | b'{' | b'[', _) => State::Value(depth + 1),
            (b')' | b'}' | b']' | b',', 0) => State::Reading,
            (b')' | b'}' | b']', _) => State::Value(depth - 1),
            (_, _) => State::Value(depth),
        };
        if !octet.is_ascii_digit() {
            self.rest.push(octet);
        }
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut text = text.as_bytes();
        while let [octet, rest @ ..] = text {
            text = match self.state {
                State::Reading => self.read(text),
                State::Name => {
                    self.name(*octet);
                    rest
                }
                State::Value(depth) => {
                    self.value(*octet, depth);
                    rest
                }
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[allow(dead_code, reason = "read by Debug")]
    struct Row {
        version: Option<(u32, u32)>,
        epoch: u32,
        document: &'static str,
    }

    #[test]
    fn ignored_fields_are_no_part_of_a_state() {
        let row = |version, epoch, document| fingerprint(&Row { version: Some((version, 7)), epoch, document });
        let document = r#"{"version":1,"last":2}"#;
        assert_eq!(row(1, 5, document), row(2, 5, document));
        assert_eq!(row(1, 5, document), row(1, 5, r#"{"version":14,"last":2}"#));
        assert_ne!(row(1, 5, document), row(1, 6, document));
        assert_ne!(fingerprint(&Row { version: None, epoch: 5, document }), row(1, 5, document));
        assert_ne!(row(1, 5, document), row(1, 5, r#"{"version":1,"last":3}"#));
        assert_ne!(row(1, 5, "version"), row(1, 5, "conversion"));
    }
}
