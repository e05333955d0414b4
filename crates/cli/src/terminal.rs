//! Text of others on a terminal: what could control it, end a line, or change the order of a line is escaped (D107).

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;

/// Whether a character could end a line, control a terminal, or change the order in which a line is shown.
pub(crate) fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// A text in one line.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, is_escaped)
}

/// A text of several lines, whose ends stay.
pub(crate) fn escaped_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c != '\n' && is_escaped(c))
}

fn replaced(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut replaced = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            replaced.extend(c.escape_default());
        } else {
            replaced.push(c);
        }
    }
    Cow::Owned(replaced)
}

/// The same value with [`escaped`] strings, so that text made of it has the lines of this program only.
///
/// # Errors
///
/// If the value cannot be represented as JSON.
pub(crate) fn shown<T: Serialize + DeserializeOwned>(value: &T) -> serde_json::Result<T> {
    serde_json::from_value(escaped_value(serde_json::to_value(value)?))
}

fn escaped_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escaped(&text).into_owned()),
        Value::Array(values) => values.into_iter().map(escaped_value).collect(),
        Value::Object(fields) => {
            let escape = |(key, value): (String, Value)| (escaped(&key).into_owned(), escaped_value(value));
            Value::Object(fields.into_iter().map(escape).collect())
        }
        value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const FOREIGN: &str = "a\n\x1b[2J\x1b]0;owned\x07\u{9b}2J\u{202e}\u{2066}\u{61c}\t\x7fü";
    const ESCAPED: &str = "a\\n\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}\\u{2066}\\u{61c}\\t\\u{7f}ü";

    #[test]
    fn control_characters_and_overrides_are_escaped() {
        assert_eq!(escaped(FOREIGN), ESCAPED);
        assert_eq!(escaped_lines(FOREIGN), ESCAPED.replacen("\\n", "\n", 1));
        for plain in ["", "leaf 1", "größer ↑ 世界", "a\\u{1b}"] {
            assert!(matches!(escaped(plain), Cow::Borrowed(text) if text == plain));
        }
    }

    #[test]
    fn strings_at_any_depth_of_a_value_are_escaped() {
        type Nested = (u64, BTreeMap<String, Vec<Option<String>>>);
        let value: Nested = (u64::MAX, BTreeMap::from([(FOREIGN.to_owned(), vec![Some(FOREIGN.to_owned()), None])]));
        let expected: Nested = (u64::MAX, BTreeMap::from([(ESCAPED.to_owned(), vec![Some(ESCAPED.to_owned()), None])]));
        assert_eq!(shown(&value).unwrap(), expected);
    }
}
