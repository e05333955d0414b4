//! The words of a file, each with its kind of name or text.

use super::Kind;
use crate::markdown::code_spans;

/// Consecutive words in one name, one comment or one paragraph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Use {
    pub(super) kind: Kind,
    /// In lower case, each with the index of its line.
    pub(super) words: Vec<(String, usize)>,
}

/// Every use of words in the file `path`.
pub(super) fn uses(path: &str, text: &str) -> Vec<Use> {
    let mut uses = vec![of_path(path)];
    if path.ends_with(".rs") {
        Rust { uses: &mut uses, line: 0 }.read(text);
    } else if path.ends_with(".md") {
        read_markdown(text, &mut uses);
    } else {
        read_other(text, &mut uses);
    }
    uses
}

/// The words of the path's directories and of its name without suffix.
fn of_path(path: &str) -> Use {
    let words = path.split('/').flat_map(|part| words_of(part.split('.').next().unwrap_or(part)));
    Use { kind: Kind::File, words: words.map(|word| (word, 0)).collect() }
}

/// The words of a name in snake case, kebab case or camel case.
fn words_of(name: &str) -> Vec<String> {
    let is_shouted = !name.contains(|c: char| c.is_lowercase());
    let mut words = vec![String::new()];
    for c in name.chars() {
        if !c.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        if c.is_uppercase() && !is_shouted {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Adds the words of prose, and the flags in it; text between backticks is code, and left out.
fn add_prose(text: &str, first_line: usize, uses: &mut Vec<Use>) {
    let mut words = Vec::new();
    let mut in_code = false;
    for (offset, line) in text.split('\n').enumerate() {
        for (index, piece) in line.split('`').enumerate() {
            in_code ^= index > 0;
            add_flags(piece, first_line + offset, uses);
            if !in_code {
                let pieces = piece.split(|c: char| !is_name(c)).filter(|word| !word.is_empty() && !word.contains('_'));
                words.extend(pieces.map(|word| (word.to_lowercase(), first_line + offset)));
            }
        }
    }
    uses.push(Use { kind: Kind::Text, words });
}

fn add_flags(text: &str, line: usize, uses: &mut Vec<Use>) {
    for flag in text.split("--").skip(1) {
        let name = flag.split(|c: char| !is_name(c) && c != '-').next().unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            add_name(Kind::Flag, name, line, uses);
        }
    }
}

fn add_name(kind: Kind, name: &str, line: usize, uses: &mut Vec<Use>) {
    uses.push(Use { kind, words: words_of(name).into_iter().map(|word| (word, line)).collect() });
}

/// Adds the words of a string: one name, or prose.
fn add_string(text: &str, line: usize, uses: &mut Vec<Use>) {
    if !text.is_empty() && text.chars().all(|c| is_name(c) || c == '-') {
        add_flags(text, line, uses);
        add_name(Kind::Key, text, line, uses);
    } else {
        add_prose(text, line, uses);
    }
}

/// Reads Rust: comments and strings, and names by what stands around them.
struct Rust<'a> {
    uses: &'a mut Vec<Use>,
    line: usize,
}

impl Rust<'_> {
    fn read(&mut self, text: &str) {
        let mut rest = text;
        let mut is_after_fn = false;
        while let Some(c) = rest.chars().next() {
            let length = if rest.starts_with("//") {
                self.comments(rest)
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
                add_prose(&rest[..end], self.line, self.uses);
                end
            } else if c == '"' {
                self.string(rest)
            } else if let Some(hashes) = raw_string(rest) {
                self.raw_string(rest, hashes)
            } else if c == '\'' {
                character(rest)
            } else if is_name(c) {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                let (name, after) = rest.split_at(length);
                self.name(name, after, is_after_fn);
                is_after_fn = name == "fn";
                length
            } else {
                c.len_utf8()
            };
            let (read, after) = rest.split_at(length);
            self.line += read.matches('\n').count();
            rest = after;
        }
    }

    fn name(&mut self, name: &str, after: &str, is_after_fn: bool) {
        let is_type = name.starts_with(char::is_uppercase) && name.contains(|c: char| c.is_lowercase());
        let kind = if is_type {
            Kind::Type
        } else if is_after_fn || after.starts_with('(') || after.starts_with("::<") {
            Kind::Function
        } else {
            Kind::Name
        };
        add_name(kind, name, self.line, self.uses);
    }

    /// Line comments that follow each other are one text. Returns the length without the last line feed.
    fn comments(&mut self, text: &str) -> usize {
        let mut length = 0;
        let mut prose = String::new();
        for line in text.split_inclusive('\n') {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                break;
            };
            prose.push_str(comment.trim_start_matches(['/', '!']));
            length += line.len();
        }
        add_prose(prose.trim_end(), self.line, self.uses);
        length - usize::from(text[..length].ends_with('\n'))
    }

    fn string(&mut self, text: &str) -> usize {
        let mut is_escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        });
        let end = end.map_or(text.len(), |(at, _)| at);
        add_string(&text[1..end].replace("\\n", " \u{b7} "), self.line, self.uses);
        (end + 1).min(text.len())
    }

    fn raw_string(&mut self, text: &str, hashes: usize) -> usize {
        let begin = text.find('"').unwrap_or(0) + 1;
        let closing = format!("\"{}", "#".repeat(hashes));
        let end = text[begin..].find(&closing).map_or(text.len(), |at| begin + at);
        add_string(&text[begin..end], self.line, self.uses);
        (end + closing.len()).min(text.len())
    }
}

/// The number of `#` if a raw string begins here.
fn raw_string(text: &str) -> Option<usize> {
    let text = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let quote = text.trim_start_matches('#');
    quote.starts_with('"').then(|| text.len() - quote.len())
}

/// The length of a character literal, or that of the quotation mark of a lifetime.
fn character(text: &str) -> usize {
    let mut rest = text.chars().skip(1);
    match (rest.next(), rest.next()) {
        (Some('\\'), _) => text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1,
    }
}

/// Prose by paragraphs; in code the flags, keys and quoted names.
fn read_markdown(text: &str, uses: &mut Vec<Use>) {
    let mut is_fenced = false;
    let (mut paragraph, mut begin) = (String::new(), 0);
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || is_fenced || line.trim().is_empty() {
            add_prose(&std::mem::take(&mut paragraph), begin, uses);
            begin = index + 1;
        }
        if is_fenced && !is_fence {
            read_code_line(line, index, uses);
        } else if !is_fence && !line.trim().is_empty() {
            let quoted = code_spans(line).filter(|code| code.chars().all(|c| is_name(c) || c == '-'));
            quoted.for_each(|code| add_name(Kind::Key, code, index, uses));
            paragraph.push_str(line);
            paragraph.push('\n');
        }
        is_fenced ^= is_fence;
    }
    add_prose(&paragraph, begin, uses);
}

/// Scripts, configuration and the page: every line is read as code and as prose.
fn read_other(text: &str, uses: &mut Vec<Use>) {
    for (index, line) in text.lines().enumerate() {
        read_code_line(line, index, uses);
        let names = line.split(|c: char| !is_name(c)).filter(|name| !name.is_empty());
        names.for_each(|name| add_name(Kind::Name, name, index, uses));
        add_prose(&line.replace('`', " "), index, uses);
    }
}

/// Keys: names before `=`, in the brackets of a table, and between quotation marks.
fn read_code_line(line: &str, index: usize, uses: &mut Vec<Use>) {
    add_flags(line, index, uses);
    let text = line.trim();
    let key = text.split('=').next().filter(|_| text.contains('=')).unwrap_or_default().trim();
    let table = text.trim_matches(['[', ']']);
    let quoted = line.split('"').skip(1).step_by(2);
    let names = quoted.chain([key]).chain(text.starts_with('[').then_some(table));
    let names = names.filter(|name| !name.is_empty() && name.chars().all(|c| is_name(c) || matches!(c, '-' | '.')));
    names.for_each(|name| add_name(Kind::Key, name, index, uses));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str, kind: Kind) -> Vec<String> {
        let line = |words: &[(String, usize)]| words.first().map_or(0, |(_, line)| line + 1);
        let join =
            |words: &[(String, usize)]| words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ");
        let uses = uses(path, text).into_iter().filter(|found| found.kind == kind && !found.words.is_empty());
        uses.map(|found| format!("{}: {}", line(&found.words), join(&found.words))).collect()
    }

    const RUST: &str = "\
//! One two
//! three `four`.
fn five_six(seven: EightNine) -> &'static str {
    let c = '\"'; // ten
    call(\"eleven\", \"twelve 13\", r#\"a \"b\"\"#, '\\'', \"--all-of\")
}
";

    #[test]
    fn words_of_rust_have_their_kinds() {
        let of = |kind| found("crates/a_b/src/c.rs", RUST, kind);
        assert_eq!(of(Kind::File), ["1: crates a b src c"]);
        assert_eq!(of(Kind::Text), ["1: one two three", "4: ten", "5: twelve 13", "5: a b"]);
        assert_eq!(of(Kind::Function), ["3: five six", "5: call"]);
        assert_eq!(of(Kind::Type), ["3: eight nine"]);
        assert_eq!(of(Kind::Key), ["5: eleven", "5: all of"]);
        assert_eq!(of(Kind::Flag), ["5: all of"]);
        assert_eq!(of(Kind::Name)[..3], ["3: fn", "3: seven", "3: static"]);
    }

    #[test]
    fn words_of_markdown_have_their_kinds() {
        let text = "# Top\n\nOne\ntwo `key` `--flag x`.\n\n```toml\n[[table.x]]\nvalue = \"name\" # not prose\n```\n";
        let of = |kind| found("a.md", text, kind);
        assert_eq!(of(Kind::Text), ["1: top", "3: one two"]);
        assert_eq!(of(Kind::Key), ["4: key", "7: table x", "8: name", "8: value"]);
        assert_eq!(of(Kind::Flag), ["4: flag"]);
    }

    #[test]
    fn words_of_other_files_are_names_and_prose() {
        let of = |kind| found("a.toml", "key = \"value\" # one two\n", kind);
        assert_eq!(of(Kind::Key), ["1: value", "1: key"]);
        assert_eq!(of(Kind::Text), ["1: key value one two"]);
    }
}
