//! Text of a log line: `TIME LEVEL PART: MESSAGE FIELD=VALUE …`.

use super::stderr::Stderr;
use crate::terminal::is_escaped;
use std::fmt::{self, Write};
use tracing::Level;
use tracing::field::{Field, Visit};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// Octets of message and fields; what is longer is cut. With the rest a line is less than `PIPE_BUF`, which a pipe
/// takes as a whole.
const LIMIT_OCTETS: usize = 3840;

/// Form of the beginning of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Time and level.
    Plain,
    /// The level as sd-daemon(3) has it. The journal records the time.
    Journal,
}

impl Format {
    /// The journal's, if stderr is the stream that the service manager names.
    pub(super) fn of_environment(stderr: &Stderr) -> Self {
        let stream = std::env::var("JOURNAL_STREAM").ok();
        Self::of_stream(stream.as_deref(), stderr.device_and_inode())
    }

    /// `stream`: device and inode of the journal's stream. A process may inherit the name and have another stderr.
    fn of_stream(stream: Option<&str>, stderr: Option<(u64, u64)>) -> Self {
        let parse = |stream: &str| {
            let (device, inode) = stream.split_once(':')?;
            Some((device.parse().ok()?, inode.parse().ok()?))
        };
        match stream.and_then(parse) {
            Some(stream) if Some(stream) == stderr => Format::Journal,
            _ => Format::Plain,
        }
    }

    /// The line of an event, with its end.
    pub(super) fn line(self, level: Level, target: &str, line: &Line) -> String {
        let mut text = match self {
            Format::Plain => {
                let mut text = String::new();
                // A clock before 1970 has no other way to be logged.
                let _ = SystemTime.format_time(&mut Writer::new(&mut text));
                text + " " + level.as_str() + " "
            }
            Format::Journal => prefix(level),
        };
        text += part(target);
        text += ": ";
        text += &line.message.text;
        text += &line.fields.text;
        if line.message.is_cut || line.fields.is_cut {
            text.push('…');
        }
        text.push('\n');
        text
    }

    /// A line without time and part.
    pub(super) fn plain(self, level: Level, message: &str) -> String {
        let mut text = match self {
            Format::Plain => String::new(),
            Format::Journal => prefix(level),
        };
        let mut piece = Piece::default();
        piece.push(message);
        text += &piece.text;
        text.push('\n');
        text
    }
}

/// Level of syslog(3).
fn prefix(level: Level) -> String {
    let priority = match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    };
    format!("<{priority}>")
}

/// The part of the program that an event belongs to: the crate, without the prefix of all.
fn part(target: &str) -> &str {
    let name = target.split("::").next().unwrap_or(target);
    name.strip_prefix("srdma_").unwrap_or(name)
}

/// Message and fields of an event.
#[derive(Debug, Default)]
pub(super) struct Line {
    message: Piece,
    fields: Piece,
}

impl Line {
    pub(super) fn field(&mut self, name: &str, value: &dyn fmt::Display) {
        let mut text = Limited::default();
        // It stops at the limit.
        let _ = write!(text, "{value}");
        if name == "message" {
            self.message.push(&text.0);
            return;
        }
        let fields = &mut self.fields;
        fields.push(" ");
        fields.push(name);
        fields.push("=");
        let is_plain = |c: char| !c.is_whitespace() && !is_escaped(c) && !['"', '=', '\\'].contains(&c);
        if !text.0.is_empty() && text.0.chars().all(is_plain) {
            fields.push(&text.0);
        } else {
            fields.push("\"");
            fields.push(&text.0.replace('\\', "\\\\").replace('"', "\\\""));
            fields.push("\"");
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field.name(), &format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field.name(), &value);
    }
}

/// Text without control characters, cut at the limit.
#[derive(Debug, Default)]
struct Piece {
    text: String,
    is_cut: bool,
}

impl Piece {
    fn push(&mut self, text: &str) {
        for c in text.chars() {
            let before = self.text.len();
            if is_escaped(c) {
                self.text.extend(c.escape_default());
            } else {
                self.text.push(c);
            }
            self.is_cut |= self.text.len() > LIMIT_OCTETS / 2;
            if self.is_cut {
                self.text.truncate(before);
                return;
            }
        }
    }
}

/// Text that ends at the limit, so that a value of megabytes costs no more.
#[derive(Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LIMIT_OCTETS.saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(message: &str, fields: &[(&str, &str)]) -> String {
        let mut line = Line::default();
        line.field("message", &message);
        fields.iter().for_each(|(name, value)| line.field(name, value));
        Format::Journal.line(Level::WARN, "srdma_node::daemon::control", &line)
    }

    #[test]
    fn a_line_has_level_part_message_and_fields() {
        assert_eq!(journal("link down", &[("port", "n4")]), "<4>node: link down port=n4\n");
        let mut line = Line::default();
        line.field("groups", &3);
        line.field("message", &"registered");
        let text = Format::Plain.line(Level::INFO, "isis", &line);
        let (time, rest) = text.split_once(' ').unwrap();
        assert_eq!(rest, "INFO isis: registered groups=3\n");
        assert!(time.len() == 27 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    }

    #[test]
    fn control_characters_of_foreign_text_are_escaped() {
        let text = journal("a\n<0>kernel: b\r\x1b[2J\u{9b}2J\x07\0\x7f\u{202e}\u{2028}ü", &[]);
        assert_eq!(text, "<4>node: a\\n<0>kernel: b\\r\\u{1b}[2J\\u{9b}2J\\u{7}\\u{0}\\u{7f}\\u{202e}\\u{2028}ü\n");
        assert_eq!(journal("x", &[("name", "N1\x1b[31m")]), "<4>node: x name=\"N1\\u{1b}[31m\"\n");
    }

    #[test]
    fn a_value_cannot_pretend_to_be_a_field() {
        let fields = [("reason", "no port=n5"), ("a", ""), ("b", "say \"no\" \\"), ("c", "x=1"), ("d", "[::1]:0")];
        let expected = "<4>node: x reason=\"no port=n5\" a=\"\" b=\"say \\\"no\\\" \\\\\" c=\"x=1\" d=[::1]:0\n";
        assert_eq!(journal("x", &fields), expected);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        for long in ["ü".repeat(1 << 20), "\n".repeat(1 << 20), "x".repeat(1 << 20)] {
            let text = journal(&long, &[("reason", &long), ("port", &long)]);
            assert!(text.len() < 4096 && text.ends_with("…\n") && text.lines().count() == 1, "{}", text.len());
        }
        assert!(Format::Plain.plain(Level::ERROR, &"x\n".repeat(5000)).len() < 4096);
    }

    #[test]
    fn the_journal_has_the_time_itself() {
        assert_eq!(Format::of_stream(Some("8:42"), Some((8, 42))), Format::Journal);
        for (stream, stderr) in [
            (None, Some((8, 42))),
            (Some("8:43"), Some((8, 42))),
            (Some("9:42"), Some((8, 42))),
            (Some("8"), Some((8, 42))),
            (Some(""), Some((8, 42))),
            (Some("8:42"), None),
        ] {
            assert_eq!(Format::of_stream(stream, stderr), Format::Plain, "{stream:?}");
        }
        assert_eq!(Format::Journal.plain(Level::ERROR, "srdma: wrong"), "<3>srdma: wrong\n");
        assert_eq!(Format::Plain.plain(Level::ERROR, "srdma: wrong"), "srdma: wrong\n");
    }

    #[test]
    fn parts_are_crates_or_targets() {
        assert_eq!(
            ["srdma_node::daemon::isis", "isis", "srdma::log", "hyper"].map(part),
            ["node", "isis", "srdma", "hyper"]
        );
    }
}
