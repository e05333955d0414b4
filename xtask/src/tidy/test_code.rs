//! Rules for tests.

use super::Finding;
use crate::regions::Regions;
use crate::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// A crate has one test binary: linking is most of what building tests costs. It is `tests/NAME/main.rs`, or the only
/// file in `tests`. No test needs a process of its own: the counting allocator counts for each thread, and processes
/// that are killed are children.
pub(super) fn one_binary(tree: &Tree) -> Vec<Finding> {
    let roots = || tree.files.iter().filter_map(|file| Some((file, test_root(&file.path)?)));
    let extra = |(file, name): (&File, &str)| {
        let is_first = roots().find(|(_, other)| *other == name).is_some_and(|(first, _)| first.path == file.path);
        (!is_first).then(|| Finding::in_file(&file.path, format!("a second test binary of {name}: make it a module")))
    };
    roots().filter_map(extra).collect()
}

/// The crate whose test binary has the file `path` as its root.
fn test_root(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/tests/")?;
    let is_root = rest.ends_with(".rs") && (!rest.contains('/') || is_main_of_directory(rest));
    is_root.then_some(name)
}

/// Every Rust file of a crate belongs to it: a file that no `mod` declares is not compiled, and its tests do not run.
pub(super) fn modules_are_declared(tree: &Tree) -> Vec<Finding> {
    let sources: Vec<&File> = tree.with_suffix(".rs").filter(|file| file.path.starts_with("crates/")).collect();
    let declared: BTreeSet<String> = sources.iter().flat_map(|file| declared_files(file)).collect();
    let is_orphan = |file: &&&File| !is_root(&file.path) && !declared.contains(&file.path);
    let message = "no `mod` declares this file: it is not compiled";
    sources.iter().filter(is_orphan).map(|file| Finding::in_file(&file.path, message)).collect()
}

fn is_main_of_directory(rest: &str) -> bool {
    rest.split('/').count() == 2 && rest.ends_with("/main.rs")
}

/// True if cargo finds the file by itself.
fn is_root(path: &str) -> bool {
    let Some((_, rest)) = path.trim_start_matches("crates/").split_once('/') else {
        return false;
    };
    let in_folder = |folder: &str| {
        let rest = rest.strip_prefix(folder)?.strip_prefix('/')?;
        Some(!rest.contains('/') || is_main_of_directory(rest))
    };
    let folders = ["tests", "benches", "examples", "src/bin"];
    matches!(rest, "build.rs" | "src/lib.rs" | "src/main.rs") || folders.iter().any(|f| in_folder(f) == Some(true))
}

/// The files that the `mod NAME;` of `file` may mean.
fn declared_files(file: &File) -> Vec<String> {
    let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let own = name.trim_end_matches(".rs");
    let is_directory_root = is_root(&file.path) || own == "mod";
    let base = if is_directory_root { directory.to_owned() } else { format!("{directory}/{own}") };
    let mut files = Vec::new();
    let mut path_attribute = None;
    // Inline modules add a directory: the stack holds their indentation and name.
    let mut inline: Vec<(usize, &str)> = Vec::new();
    for line in file.text.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(path) = text.strip_prefix("#[path = \"").and_then(|rest| rest.split('"').next()) {
            path_attribute = Some(path);
        }
        if text.starts_with('}') {
            inline.retain(|(at, _)| *at < indent);
        }
        let Some(rest) = text.split("mod ").nth(1).filter(|_| is_mod_item(text)) else {
            continue;
        };
        if let Some(module) = rest.strip_suffix(" {") {
            inline.push((indent, module));
        } else if let Some(module) = rest.split(';').next() {
            let inner: String = inline.iter().map(|(_, name)| format!("{name}/")).collect();
            match path_attribute.take() {
                Some(path) => files.extend(crate::markdown::resolve(&file.path, path)),
                None => {
                    files.push(format!("{base}/{inner}{module}.rs"));
                    files.push(format!("{base}/{inner}{module}/mod.rs"));
                }
            }
        }
    }
    files
}

fn is_mod_item(text: &str) -> bool {
    ["mod ", "pub mod ", "pub(crate) mod ", "pub(super) mod "].iter().any(|start| text.starts_with(start))
        || (text.starts_with("pub(in ") && text.contains(") mod "))
}

/// No assertion holds because a value is missing: `None < Some(x)` is true, two members of JSON that do not exist are
/// equal, and one that does not exist differs from every value.
pub(super) fn missing_values_fail(tree: &Tree) -> Vec<Finding> {
    const FORMS: [&str; 8] = [
        "as_u64() <",
        "as_i64() <",
        "as_f64() <",
        "as_str() <",
        concat!(" < ", "Some("),
        concat!(" <= ", "Some("),
        concat!(" < ", "None"),
        concat!(" <= ", "None"),
    ];
    let mut findings = Vec::new();
    for file in tree.with_suffix(".rs").filter(|file| file.path.starts_with("crates/")) {
        let regions = Regions::of(&file.path, &file.text);
        let mut messages: BTreeMap<usize, String> = Code::of(&file.text).comparisons().into_iter().collect();
        for (index, line) in file.text.lines().enumerate() {
            if let Some(form) = FORMS.iter().find(|form| line.contains(**form)) {
                messages.insert(index, format!("`{}` holds for a missing value: use `.expect(…)`", form.trim()));
            }
        }
        let in_tests = messages.into_iter().filter(|(index, _)| regions.is_test(*index));
        findings.extend(in_tests.map(|(index, message)| Finding::in_line(&file.path, index, message)));
    }
    findings
}

/// The tokens of a Rust file, as far as comparisons need them.
struct Code<'a> {
    tokens: Vec<Token<'a>>,
    /// The other bracket of each bracket.
    partners: BTreeMap<usize, usize>,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// A part of the tokens.
type Part = std::ops::Range<usize>;

/// What an operand is, if a member of a JSON value does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// `null`, or what a conversion makes of it.
    Null,
    None,
}

/// What a comparison asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Different,
    /// The first one is less than the second one, or equal to it.
    Less,
}

impl<'a> Code<'a> {
    fn of(text: &'a str) -> Self {
        let tokens = tokens(text);
        let mut partners = BTreeMap::new();
        let mut open = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token.text {
                "(" | "[" | "{" => open.push(at),
                ")" | "]" | "}" => {
                    if let Some(start) = open.pop() {
                        partners.insert(start, at);
                        partners.insert(at, start);
                    }
                }
                _ => {}
            }
        }
        Code { tokens, partners }
    }

    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// The comparisons that hold for members that do not exist: lines, and why.
    fn comparisons(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let comparison = match token.text {
                "==" | "assert_eq" => Comparison::Equal,
                "!=" | "assert_ne" => Comparison::Different,
                "<" | "<=" | ">" | ">=" => Comparison::Less,
                _ => continue,
            };
            let (left, right) = if token.text.starts_with("assert") {
                let Some(end) = self.partners.get(&(at + 2)).filter(|_| self.text(at + 1) == "!") else { continue };
                let mut operands = self.split(at + 3..*end).into_iter();
                let (Some(left), Some(right)) = (operands.next(), operands.next()) else { continue };
                (left, right)
            } else {
                (self.before(at), self.after(at + 1))
            };
            let (left, right) = if token.text.starts_with('>') { (right, left) } else { (left, right) };
            let message = match comparison {
                Comparison::Different => "a member of JSON that does not exist differs: take it by `.as_…().expect(…)`",
                Comparison::Less => "a missing value is less than any other: take it by `.as_…().expect(…)`",
                Comparison::Equal => "two members of JSON are equal if neither exists: take one by `.as_…().expect(…)`",
            };
            if self.holds_without(comparison, left, right) {
                found.push((token.line, message.to_owned()));
            }
        }
        found
    }

    /// Whether the comparison can hold because a member does not exist. Tuples are compared by their parts.
    fn holds_without(&self, comparison: Comparison, left: Part, right: Part) -> bool {
        if let (Some(lefts), Some(rights)) = (self.parts_of_tuple(&left), self.parts_of_tuple(&right))
            && comparison != Comparison::Less
        {
            let mut pairs = lefts.into_iter().zip(rights);
            return pairs.any(|(left, right)| self.holds_without(comparison, left, right));
        }
        let (missing_left, missing_right) = (self.missing(left.clone()), self.missing(right.clone()));
        let is_absent = |part: &Part| match self.text(part.end - 1) {
            "None" | "Null" => true,
            _ => self.text(part.start) == "json" && part.len() == 5 && self.text(part.start + 3) == "null",
        };
        // An `Option` that may be `None` too: no literal and no constant.
        let is_open = |part: &Part| {
            let text = self.text(part.start);
            let is_fixed = text.starts_with(|first: char| first == '"' || first.is_ascii_digit())
                || text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            text != "Some" && !is_fixed && !is_absent(part)
        };
        match comparison {
            Comparison::Equal => match (missing_left, missing_right) {
                (Some(_), Some(_)) => true,
                (Some(Missing::None), None) => is_open(&right),
                (None, Some(Missing::None)) => is_open(&left),
                _ => false,
            },
            Comparison::Different => {
                (missing_left.is_some() && !is_absent(&right)) || (missing_right.is_some() && !is_absent(&left))
            }
            // `null` has no order.
            Comparison::Less => {
                let is_none = |missing| missing == Some(Missing::None);
                is_none(missing_left) || (is_none(missing_right) && is_open(&left))
            }
        }
    }

    /// The parts of `(a, b)` or `[a, b]`.
    fn parts_of_tuple(&self, part: &Part) -> Option<Vec<Part>> {
        let is_tuple = matches!(self.text(part.start), "(" | "[") && self.partners.get(&part.start)? + 1 == part.end;
        is_tuple.then(|| self.split(part.start + 1..part.end - 1)).filter(|parts| parts.len() > 1)
    }

    /// The parts between commas outside of brackets.
    fn split(&self, part: Part) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut start, mut at) = (part.start, part.start);
        while at < part.end {
            if self.text(at) == "," {
                parts.push(start..at);
                start = at + 1;
            }
            at = self.partners.get(&at).map_or(at, |end| *end) + 1;
        }
        if start < part.end {
            parts.push(start..part.end);
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// The operand that ends before a token.
    fn before(&self, end: usize) -> Part {
        let mut start = end;
        while start > 0 {
            start = match self.text(start - 1) {
                text if is_separator(text) || matches!(text, "(" | "[" | "{" | "}") => break,
                ")" | "]" => self.partners.get(&(start - 1)).copied().unwrap_or(0),
                _ => start - 1,
            };
        }
        start..end
    }

    /// The operand that begins with a token.
    fn after(&self, start: usize) -> Part {
        let mut end = start;
        while end < self.tokens.len() {
            end = match self.text(end) {
                text if is_separator(text) || matches!(text, ")" | "]" | "{" | "}") => break,
                "(" | "[" => self.partners.get(&end).map_or(self.tokens.len(), |end| end + 1),
                _ => end + 1,
            };
        }
        start..end
    }

    /// What the operand is if the member of JSON that it takes does not exist; `None` if it takes none, or fails.
    fn missing(&self, part: Part) -> Option<Missing> {
        let mut at = part.start;
        while matches!(self.text(at), "&" | "*") {
            at += 1;
        }
        let mut missing = self.variable(at);
        at += 1;
        while at < part.end {
            let end = self.partners.get(&at).copied();
            match (self.text(at), end) {
                ("::", _) => at += 1,
                ("?", _) => {}
                ("[", Some(end)) => {
                    if self.is_key(at, end) {
                        missing = Some(Missing::Null);
                    }
                    at = end;
                }
                ("(", Some(end)) => {
                    missing = None;
                    at = end;
                }
                (".", _) => {
                    let method = self.text(at + 1);
                    let end = self.partners.get(&(at + 2)).filter(|_| self.text(at + 2) == "(");
                    missing = match method {
                        "clone" | "cloned" | "copied" | "to_owned" | "as_ref" | "as_deref" | "map" | "and_then" => {
                            missing
                        }
                        "unwrap_or" | "unwrap_or_default" | "to_string" => missing.map(|_| Missing::Null),
                        "get" if self.text(at + 3).starts_with('"') && end == Some(&(at + 4)) => Some(Missing::None),
                        "as_u64" | "as_i64" | "as_f64" | "as_bool" | "as_str" | "as_array" | "as_object" => {
                            missing.map(|_| Missing::None)
                        }
                        _ => None,
                    };
                    at = end.copied().unwrap_or(at + 1);
                }
                _ => return None,
            }
            at += 1;
        }
        missing
    }

    /// Whether the index between two brackets is the name of a member.
    fn is_key(&self, open: usize, close: usize) -> bool {
        let index = self.text(open + 1);
        close == open + 2
            && (index.starts_with('"') || (is_word(index) && is_word(self.text(open - 1)) && self.is_json(open - 1)))
    }

    /// Whether a variable is a JSON value: the file takes members of it by name, or says so.
    fn is_json(&self, variable: usize) -> bool {
        let name = self.text(variable);
        let mut places = (0..self.tokens.len()).filter(|&at| self.text(at) == name);
        places.any(|at| {
            let is_part_of_path = |text: &&str| is_word(text) || matches!(*text, "&" | "'" | "::");
            let mut kind = (at + 2..at + 6).map(|at| self.text(at)).take_while(is_part_of_path);
            let is_declared = self.text(at + 1) == ":" && kind.any(|text| text == "Value");
            is_declared || (self.text(at + 1) == "[" && self.text(at + 2).starts_with('"'))
        })
    }

    /// What a variable is that the last `let` of its name takes from a JSON value.
    fn variable(&self, at: usize) -> Option<Missing> {
        let name = self.text(at);
        for place in (0..at).rev() {
            match self.text(place) {
                "fn" => return None,
                text if text == name && self.text(place + 1) == "=" && self.text(place - 1) == "let" => {
                    let value = self.after(place + 2);
                    // `let a = a["b"]` takes from an earlier one.
                    if !value.contains(&at) {
                        return self.missing(value);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Whether no operand of a comparison contains this token, outside of brackets.
fn is_separator(text: &str) -> bool {
    const SEPARATORS: [&str; 22] = [
        ",", ";", "&&", "||", "|", "=>", "=", "..", "..=", "return", "if", "while", "match", "in", "let", "else", "==",
        "!=", "<", ">", "<=", ">=",
    ];
    SEPARATORS.contains(&text)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Words, literals and operators, without comments.
fn tokens(text: &str) -> Vec<Token<'_>> {
    const OPERATORS: [&str; 12] = ["..=", "==", "!=", "<=", ">=", "=>", "->", "&&", "||", "::", "..", "//"];
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 0);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", &rest[rest.find('#').unwrap_or(0)..][..hashes]);
            let start = rest.find('"').unwrap_or(0) + 1;
            rest[start..].find(&end).map_or(rest.len(), |found| start + found + end.len())
        } else if first == '"' {
            end_of_literal(rest, '"')
        } else if first == '\'' && (rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'')) {
            end_of_literal(rest, '\'')
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if word > 0 {
            word
        } else {
            OPERATORS.iter().find(|operator| rest.starts_with(**operator)).map_or(first.len_utf8(), |found| found.len())
        };
        let token = &rest[..length];
        if !first.is_whitespace() && !token.starts_with("//") {
            tokens.push(Token { text: token, line });
        }
        line += token.matches('\n').count();
        at += length;
    }
    tokens
}

/// The number of `#` of the raw string at the start of a text.
fn raw_string(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = rest.find(|c| c != '#')?;
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// The length of the literal at the start of a text, with its quotes.
fn end_of_literal(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
        rule(&Tree::of(files)).into_iter().map(|finding| format!("{}: {}", finding.path, finding.message)).collect()
    }

    #[test]
    fn a_second_test_binary_is_found() {
        let one = ("crates/rc/tests/rc/main.rs", "");
        let other = ("crates/io/tests/io.rs", "");
        assert_eq!(found(one_binary, &[one, other, ("crates/rc/tests/rc/group.rs", "")]), [""; 0]);
        let second = "crates/rc/tests/transfer.rs: a second test binary of rc: make it a module";
        assert_eq!(found(one_binary, &[one, ("crates/rc/tests/transfer.rs", "")]), [second]);
    }

    #[test]
    fn a_file_that_no_module_declares_is_found() {
        let files = [
            ("crates/rc/src/lib.rs", "mod a;\npub(crate) mod b;\nmod inner {\n    pub mod c;\n}\n"),
            ("crates/rc/src/a.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/rc/src/a/tests.rs", ""),
            ("crates/rc/src/b/mod.rs", "mod d;\n"),
            ("crates/rc/src/b/d.rs", ""),
            ("crates/rc/src/inner/c.rs", ""),
            ("crates/rc/tests/rc/main.rs", "#[path = \"../other.rs\"]\nmod elsewhere;\n"),
            ("crates/rc/benches/speed.rs", ""),
        ];
        assert_eq!(found(modules_are_declared, &files), [""; 0]);
        let lost = [&files[..], &[("crates/rc/tests/rc/lost.rs", ""), ("crates/rc/src/d.rs", "")]].concat();
        let expected = ["crates/rc/tests/rc/lost.rs", "crates/rc/src/d.rs"];
        assert_eq!(
            found(modules_are_declared, &lost),
            expected.map(|path| format!("{path}: no `mod` declares this file: it is not compiled"))
        );
    }

    #[test]
    fn assertions_that_hold_without_a_value_are_found() {
        let line = |text: &str| found(missing_values_fail, &[("crates/rc/tests/rc/main.rs", text)]).len();
        assert_eq!(line(concat!("assert!(a[\"b\"].as_u64() < ", "Some(3));")), 1);
        assert_eq!(line("assert!(a.as_f64() <= b.as_f64());"), 1);
        assert_eq!(line(concat!("assert!(a <= ", "Some(3));")), 1);
        assert_eq!(line("assert!(a.as_u64() > Some(3) && a.as_u64().expect(\"a\") < 3);"), 0);
        for equal in [
            r#"assert_eq!(receiver["sha256"], result["source"]["sha256"], "{receiver}");"#,
            r#"assert_eq!(a["b"].as_u64(), c["d"].as_u64());"#,
            r#"assert!(all.iter().all(|host| host["sha256"] == source["sha256"]));"#,
            r#"assert!(after["load"].as_f64() >= after["bound"].as_f64(), "{name}");"#,
        ] {
            assert_eq!(line(equal), 1, "{equal}");
        }
        for good in [
            r#"assert_eq!(receiver["sha256"], source["sha256"].as_str().expect("a digest"), "{receiver}");"#,
            r#"assert_eq!(run["lost"], 0); let other = run["lost"];"#,
            r#"assert!(a["b"].as_u64() == Some(3) && c["d"] == "text");"#,
            r#"assert_eq!(found, ["a", "b"]);"#,
        ] {
            assert_eq!(line(good), 0, "{good}");
        }
        assert_eq!(found(missing_values_fail, &[("crates/rc/src/lib.rs", "if a.as_u64() < b {}")]).len(), 0);
    }

    /// The lines of a test in which a comparison is found.
    fn lines(text: &str) -> Vec<usize> {
        let findings = missing_values_fail(&Tree::of(&[("crates/rc/tests/rc/main.rs", text)]));
        findings.into_iter().map(|finding| finding.line).collect()
    }

    fn are_found(wrong: &[&str], good: &[&str]) {
        for text in wrong {
            assert_eq!(lines(text).len(), 1, "{text}");
        }
        for text in good {
            assert_eq!(lines(text), [0; 0], "{text}");
        }
    }

    #[test]
    fn tuples_are_compared_by_their_parts() {
        let wrong = [
            r#"assert_eq!((&one["digest"], &one["counts"]), (&three["digest"], &three["counts"]));"#,
            r#"assert_eq!((&a["sha256"], &a["matches"]), (&b["sha256"], &Value::Bool(true)), "{host}");"#,
            r#"assert!((a["b"].as_str(), 3) == (c["d"].as_str(), 3));"#,
            r#"assert_eq!([&a["b"], &a["c"]], [&0.into(), &d["c"]]);"#,
        ];
        let good = [
            r#"assert_eq!((&a["b"], &a["c"]), (&1.into(), &2.into()), "{a}");"#,
            r#"assert_eq!((&a["b"], &Value::Null), (&digest, &c["d"]));"#,
            r#"assert_eq!((packet["ipv6.src"].as_str(), packet["op"].as_str()), (PROXY, "129"));"#,
        ];
        are_found(&wrong, &good);
        let text = "assert!(true);\nassert_eq!(\n    (&a[\"b\"], &a[\"c\"]),\n    (&d[\"b\"], &0.into()),\n);\n";
        assert_eq!(lines(text), [2]);
    }

    #[test]
    fn differences_from_a_missing_member_are_found() {
        let wrong = [
            r#"assert_ne!(counters["lost"], 0, "{counters}");"#,
            r#"assert_ne!(now["tree"][1][1].as_str(), Some(spine.as_str()));"#,
            r#"assert!(links.iter().any(|link| link["lost"] != 0), "{result}");"#,
            r#"let is_gone = || status()["circuits"][0]["state"] != "up";"#,
            r#"assert!(0 != a["b"].clone());"#,
            r#"assert!(a["b"].as_u64().unwrap_or_default() != 3);"#,
        ];
        let good = [
            r#"assert_ne!(counters["lost"].as_u64().expect("a counter"), 0, "{counters}");"#,
            r#"assert!(a["b"] != Value::Null && a["c"].as_u64() != None && a["d"] != json!(null));"#,
            r#"assert_ne!(a["b"].as_array().unwrap().len(), 2);"#,
            r#"assert!(names != ["a"] && hash(["a", "b"]) != hash(["c"]));"#,
        ];
        are_found(&wrong, &good);
    }

    #[test]
    fn comparisons_with_other_options_are_found() {
        let wrong = [
            r#"assert!(a["b"].as_u64() > a["c"]["d"].as_u64().map(|packets| 3 * packets));"#,
            r#"assert!(Some(3) > a["b"].as_u64());"#,
            r#"assert!(a["b"].as_u64() >= limit);"#,
            r#"assert!(a["b"].as_u64() < limit);"#,
            r#"assert_eq!(a["b"].as_u64(), number(cell));"#,
            r#"assert!(before == a.get("b"));"#,
        ];
        let good = [
            r#"assert!(a["b"].as_u64() > Some(0) && a["c"].as_u64() >= Some(b["c"].as_u64().unwrap()));"#,
            r#"assert!(a["b"].as_u64().expect("a number") > 3 * a["c"].as_u64().expect("a number"));"#,
            r#"assert_eq!(a["b"].as_str(), None); assert!(counts["refused"] > 0);"#,
            r#"let a: Vec<Option<u64>> = b["c"].as_array().unwrap().iter().map(Value::as_u64).collect::<Vec<_>>();"#,
            r#"assert_eq!(jobs.get("a", "b"), Err(Unknown)); assert!(Some(map["a"]) == "b".get(0));"#,
        ];
        are_found(&wrong, &good);
    }

    #[test]
    fn members_by_variables_are_found() {
        let json = "fn same(a: &Value, b: &serde_json::Value, c: &[u64]) {\n    ";
        for wrong in ["assert_eq!(a[name], b[name]);", "assert!(a[name].as_u64() == b[name].as_u64());"] {
            assert_eq!(lines(&format!("{json}{wrong}\n}}")), [2], "{wrong}");
        }
        for good in ["assert_eq!(c[at], c[other]);", "assert_eq!(a[name], c[at]);", "assert_ne!(c[at], c[other]);"] {
            assert_eq!(lines(&format!("{json}{good}\n}}")), [0; 0], "{good}");
        }
        assert_eq!(
            lines("let all = a[\"b\"];\nassert_eq!(a[name], a[other]);"),
            [2],
            "its members have names elsewhere"
        );
    }

    #[test]
    fn variables_that_are_members_are_found() {
        let taken =
            "fn a() {\n    let digest = b[\"sha256\"].clone();\n}\nfn b() {\n    let digest = of(&b[\"sha256\"]);\n";
        let compared = "    assert_eq!(received[\"sha256\"], digest);\n";
        assert_eq!(lines(&format!("{taken}{compared}}}")), [0; 0]);
        let again = "    let digest = sent[\"sha256\"].as_str();\n    let digest = digest.map(str::to_owned);\n";
        assert_eq!(lines(&format!("{taken}{again}{compared}}}")), [8]);
    }

    #[test]
    fn literals_and_comments_are_no_code() {
        let good = [
            r###"let a = r#"assert_ne!(a["b"], 0)"#; // assert_ne!(a["b"], 0);"###,
            r#"let (quote, text) = ('"', "\"assert_ne!(a[b], 0)");"#,
            r#"fn f<'a>(a: &'a str) -> char { '\'' }"#,
        ];
        are_found(&[r#"let quote = '"'; assert_ne!(a["b"], '"');"#], &good);
    }
}
