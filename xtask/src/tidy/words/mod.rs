//! Words that are no longer used: names and phrases that docs/glossary.md has replaced.

use super::Finding;
use crate::conformance;
use crate::tree::{File, Tree};
use std::collections::BTreeMap;

mod table;
mod uses;

use table::TABLE;
use uses::uses;

/// Kind of the text or name that contains a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Name of a file, module or directory.
    File,
    /// Type, trait or enum variant.
    Type,
    /// Function, where it is defined and where it is called.
    Function,
    /// Field, variable, constant or module in code.
    Name,
    /// Flag of the command line.
    Flag,
    /// Key or value in JSON and TOML, metric, command: a name in a string or in a document's code.
    Key,
    /// Comments, messages and documents.
    Text,
}

/// Words that are refused.
struct Entry {
    /// In lower case; several words separated by spaces are a phrase, or consecutive parts of a name.
    words: &'static [&'static str],
    kinds: &'static [Kind],
    /// Prefixes of paths; the empty one is everywhere.
    places: &'static [&'static str],
    /// The term that replaced them.
    instead: &'static str,
}

/// Files that quote the old words, were recorded, or are generated.
const EXEMPT: [&str; 9] = [
    "CHANGELOG.md",
    "docs/glossary.md",
    "docs/spec/",
    conformance::OUTPUT,
    "testdata/",
    "fuzz/corpus/",
    "page/dist/",
    "page/package-lock.json",
    "xtask/src/tidy/words/",
];

/// No word of the table stands where the table refuses it.
pub(super) fn words_that_went(tree: &Tree) -> Vec<Finding> {
    refused(tree, TABLE)
}

fn refused(tree: &Tree, table: &[Entry]) -> Vec<Finding> {
    let by_first_word = by_first_word(table);
    let files = tree.files.iter().filter(|file| !EXEMPT.iter().any(|place| file.path.starts_with(place)));
    let files = files.filter(|file| !file.path.ends_with(".lock"));
    files.flat_map(|file| refused_in_file(file, &by_first_word)).collect()
}

/// Each phrase of the table, split into words, by its first word.
type ByFirstWord<'a> = BTreeMap<&'a str, Vec<(Vec<&'a str>, &'a Entry)>>;

fn by_first_word(table: &[Entry]) -> ByFirstWord<'_> {
    let mut found = ByFirstWord::new();
    for entry in table {
        for phrase in entry.words {
            let words: Vec<&str> = phrase.split(' ').collect();
            found.entry(words[0]).or_default().push((words, entry));
        }
    }
    found
}

fn refused_in_file(file: &File, by_first_word: &ByFirstWord<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for found in uses(&file.path, &file.text) {
        for (index, (word, line)) in found.words.iter().enumerate() {
            for (phrase, entry) in by_first_word.get(word.as_str()).into_iter().flatten() {
                let rest = &found.words[index..];
                let matches =
                    rest.len() >= phrase.len() && rest.iter().zip(phrase).all(|((word, _), other)| word == other);
                let is_here = || entry.places.iter().any(|place| file.path.starts_with(place));
                if matches && entry.kinds.contains(&found.kind) && is_here() {
                    let kind = format!("{:?}", found.kind).to_lowercase();
                    let message = format!("`{}` ({kind}): use {}", phrase.join(" "), entry.instead);
                    findings.push(Finding::in_line(&file.path, *line, message));
                }
            }
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::code_spans;

    const TEST_TABLE: &[Entry] = &[
        Entry { words: &["deed", "deeds"], kinds: table::ALL, places: &[""], instead: "recovery snapshot" },
        Entry { words: &["node part"], kinds: table::NAMES, places: &["crates/api/"], instead: "group entry" },
        Entry { words: &["what is told"], kinds: table::TEXT, places: &["docs/", "crates/"], instead: "a noun" },
        Entry { words: &["storm"], kinds: &[Kind::Flag, Kind::File], places: &[""], instead: "chaos" },
    ];

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = refused(&Tree::of(&[(path, text)]), TEST_TABLE).into_iter();
        findings.map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn words_are_found_in_every_kind() {
        for text in ["struct GroupDeed;", "fn deed_of()", "let deeds = 1;", "\"deed\"", "// Its deed.", "\"--deed\""] {
            let found = found("crates/rc/src/a.rs", text);
            assert!(!found.is_empty() && found[0].starts_with("1: `deed"), "{text}: {found:?}");
        }
        assert_eq!(found("crates/rc/src/deed.rs", ""), ["1: `deed` (file): use recovery snapshot"]);
        assert_eq!(found("docs/a.md", "\n`deed`\n"), ["2: `deed` (key): use recovery snapshot"]);
        assert_eq!(found("crates/rc/src/a.rs", "// indeed\nlet indeed = 1;"), [""; 0]);
    }

    #[test]
    fn phrases_are_found_over_line_ends_and_in_names() {
        assert_eq!(found("docs/a.md", "It is what\nis told.\n"), ["1: `what is told` (text): use a noun"]);
        assert_eq!(found("crates/rc/src/a.rs", "//! Of what\n//! is told.\n").len(), 1);
        assert_eq!(found("docs/a.md", "It is what.\n\nIs told\n"), [""; 0]);
        assert_eq!(found("crates/api/src/a.rs", "NodePart { node_part }").len(), 2);
    }

    #[test]
    fn words_are_right_elsewhere_and_in_another_kind() {
        assert_eq!(found("crates/rc/src/a.rs", "NodePart { node_part }"), [""; 0]);
        assert_eq!(found("crates/rc/src/a.rs", "// A PFC storm.\nlet storm = 1;"), [""; 0]);
        assert_eq!(found("crates/chaos/tests/storm.rs", "").len(), 1);
        assert_eq!(found("README.md", "what is told"), [""; 0]);
    }

    #[test]
    fn quotations_are_exempt() {
        for path in EXEMPT {
            assert_eq!(found(path, "deed"), [""; 0], "{path}");
        }
        assert_eq!(found("Cargo.lock", "deed"), [""; 0]);
    }

    /// The last table of the glossary has the words in backticks in its last column.
    #[test]
    fn every_word_of_the_glossary_is_in_the_table() {
        let tree = Tree::of_repository().unwrap();
        let glossary = &tree.file("docs/glossary.md").unwrap().text;
        let (_, last) = glossary.split_once("## Words that are no longer used").unwrap();
        let columns = last.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(3));
        let words = columns.flat_map(code_spans).map(|word| word.rsplit("… ").next().unwrap_or(word).replace('_', " "));
        let is_known = |word: &String| TABLE.iter().any(|entry| entry.words.contains(&word.as_str()));
        let unknown: Vec<String> = words.filter(|word| !is_known(word)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn the_table_is_in_lower_case() {
        for entry in TABLE {
            let is_lower = |phrase: &&str| phrase.chars().all(|c| c.is_lowercase() || c.is_ascii_digit() || c == ' ');
            assert!(entry.words.iter().all(is_lower), "{:?}", entry.words);
            assert!(!entry.words.is_empty() && !entry.kinds.is_empty() && !entry.places.is_empty());
        }
    }
}
