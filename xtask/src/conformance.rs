//! `cargo xtask conformance`: writes docs/conformance.md, one row for each requirement and decision, from the ids that
//! code, tests and documents mention.

use crate::ids::{Catalogue, Entry, mentions};
use crate::regions::Regions;
use crate::tree::{File, Tree};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The file that is written.
pub(crate) const OUTPUT: &str = "docs/conformance.md";

/// The cases of the conformance tester: they show what a device does, and do nothing of it.
const CASES: &str = "crates/conform/";

/// Maximum length of a row's text, in characters; the full text is in `docs/spec/`.
const MAX_TEXT: usize = 110;

/// The functions of one file that mention an id; no function when only the file's own documentation does.
type Places = BTreeMap<String, BTreeSet<String>>;

/// Mentions of an id.
#[derive(Default)]
struct Mentions {
    /// Product code.
    done: Places,
    /// Tests.
    shown: Places,
    /// Documents outside `docs/spec/`.
    described: Places,
}

/// Writes the table, or with `check` only prints whether it is up to date. `false` when it is not.
pub(crate) fn run(tree: &Tree, check: bool) -> Result<bool> {
    let table = render(&Catalogue::of(tree)?, &collect(tree));
    let is_current = tree.file(OUTPUT).is_some_and(|file| file.text == table);
    if check && !is_current {
        println!("{OUTPUT} is out of date: run `cargo xtask conformance` and commit the result");
        return Ok(false);
    }
    if !is_current {
        std::fs::write(Tree::root().join(OUTPUT), table).with_context(|| format!("cannot write {OUTPUT}"))?;
    }
    println!("{OUTPUT} is {}", if is_current { "up to date" } else { "written" });
    Ok(true)
}

/// Every mention of an id in the product, by id.
fn collect(tree: &Tree) -> BTreeMap<String, Mentions> {
    let mut found: BTreeMap<String, Mentions> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| is_code(file) || is_document(file)) {
        let regions = Regions::of(&file.path, &file.text);
        for (index, line) in file.text.lines().enumerate() {
            let shows = regions.is_test(index) || file.path.starts_with(CASES);
            for id in mentions(line) {
                let mentions = found.entry(id.to_owned()).or_default();
                let functions = if is_document(file) {
                    mentions.described.entry(file.path.clone()).or_default()
                } else if shows {
                    mentions.shown.entry(file.path.clone()).or_default()
                } else {
                    mentions.done.entry(file.path.clone()).or_default()
                };
                functions.extend(regions.function(index).filter(|_| shows).map(str::to_owned));
            }
        }
    }
    found
}

fn is_code(file: &File) -> bool {
    file.path.starts_with("crates/") && file.path.ends_with(".rs")
}

/// Documents that explain; not the definitions, not the history and not the table itself.
fn is_document(file: &File) -> bool {
    file.path.starts_with("docs/")
        && file.path.ends_with(".md")
        && !file.path.starts_with("docs/spec/")
        && file.path != OUTPUT
}

fn render(catalogue: &Catalogue, found: &BTreeMap<String, Mentions>) -> String {
    let mut page = String::from(
        "# Conformance\n\n\
         Written by `cargo xtask conformance` from the ids that code, tests and documents mention; do not edit.\n\
         A row is met when code does it (\"done in\") and a test shows it (\"shown by\"). \"open\" means that nothing\n\
         mentions the id there yet. The full texts are in [requirements](spec/requirements.md) and\n\
         [decisions](spec/decisions.md).\n",
    );
    let tables = [("Requirements", &catalogue.requirements), ("Decisions", &catalogue.decisions)];
    for (title, entries) in tables {
        let _ = write!(page, "\n## {title}\n\nDone and shown: {}.\n\n", count_by_family(entries, found));
        page.push_str("| id | level | text | done in | shown by | described in |\n|---|---|---|---|---|---|\n");
        for entry in entries {
            page.push_str(&row(entry, found.get(&entry.id).unwrap_or(&Mentions::default())));
        }
    }
    page
}

/// Number of each family's entries with both code and a test: `MT 30 of 36, FC 0 of 17`.
fn count_by_family(entries: &[Entry], found: &BTreeMap<String, Mentions>) -> String {
    let mut counts: Vec<(&str, usize, usize)> = Vec::new();
    for entry in entries {
        let family = entry.id.split(|c: char| c == '-' || c.is_ascii_digit()).next().unwrap_or_default();
        let met = found.get(&entry.id).is_some_and(|mentions| !mentions.done.is_empty() && !mentions.shown.is_empty());
        if counts.last().is_none_or(|(last, ..)| *last != family) {
            counts.push((family, 0, 0));
        }
        if let Some((_, done, all)) = counts.last_mut() {
            *done += usize::from(met);
            *all += 1;
        }
    }
    counts.iter().map(|(family, met, all)| format!("{family} {met} of {all}")).collect::<Vec<_>>().join(", ")
}

fn row(entry: &Entry, mentions: &Mentions) -> String {
    let or_open = |cell: String| if cell.is_empty() { "open".to_owned() } else { cell };
    format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        entry.id,
        if entry.level.is_empty() { "–" } else { &entry.level },
        shorten(&entry.text),
        or_open(cell(&mentions.done)),
        or_open(cell(&mentions.shown)),
        cell(&mentions.described),
    )
}

/// One link for each file, with the functions that mention the id.
fn cell(places: &Places) -> String {
    let link = |(path, functions): (&String, &BTreeSet<String>)| {
        let name = path.strip_prefix("crates/").or(path.strip_prefix("docs/")).unwrap_or(path).replace("/src/", "/");
        let functions: Vec<String> = functions.iter().map(|function| format!("`{function}`")).collect();
        let separator = if functions.is_empty() { "" } else { ": " };
        format!("[{name}](../{path}){separator}{}", functions.join(", "))
    };
    places.iter().map(link).collect::<Vec<_>>().join("<br>")
}

/// The first sentence of `text`, or as many of its words as fit.
fn shorten(text: &str) -> String {
    let sentence = text.split_inclusive(". ").next().unwrap_or(text).trim();
    if sentence.chars().count() <= MAX_TEXT {
        return sentence.to_owned();
    }
    let mut short = String::new();
    for word in sentence.split(' ') {
        if short.chars().count() + word.chars().count() >= MAX_TEXT {
            break;
        }
        short.push_str(word);
        short.push(' ');
    }
    let is_half = |character| short.matches(character).count() % 2 == 1;
    let closing = if is_half('`') {
        "`"
    } else if is_half('*') {
        "*"
    } else {
        ""
    };
    format!("{}{closing} …", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIREMENTS: &str = "| MT-3-1 | DEF | 3 | Traffic is RoCEv2. More. |\n| MT-3-2 | MUST | 3 | Trees. |\n";
    const CODE: &str = "\
/// Refuses (MT-3-1, D1).
fn refuse() {}

#[cfg(test)]
mod tests {
    /// MT-3-1
    #[test]
    fn refuses() {}
}
";

    fn page() -> String {
        let tree = Tree::of(&[
            ("docs/spec/requirements.md", REQUIREMENTS),
            ("docs/spec/decisions.md", "| D1 | A gap | A decision. |\n"),
            ("docs/multicast.md", "As D1 says.\n"),
            ("crates/rc/src/a.rs", CODE),
        ]);
        render(&Catalogue::of(&tree).unwrap(), &collect(&tree))
    }

    #[test]
    fn mentions_become_links_to_files_and_tests() {
        let page = page();
        let row = "| MT-3-1 | DEF | Traffic is RoCEv2. | [rc/a.rs](../crates/rc/src/a.rs) \
                   | [rc/a.rs](../crates/rc/src/a.rs): `refuses` |  |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("Done and shown: MT 1 of 2."), "{page}");
    }

    #[test]
    fn an_id_without_mentions_is_open() {
        let page = page();
        assert!(page.contains("| MT-3-2 | MUST | Trees. | open | open |  |\n"), "{page}");
        let decision =
            "| D1 | – | A gap | [rc/a.rs](../crates/rc/src/a.rs) | open | [multicast.md](../docs/multicast.md) |";
        assert!(page.contains(decision), "{page}");
    }

    #[test]
    fn a_table_that_is_out_of_date_fails_the_check() {
        let files = [("docs/spec/requirements.md", REQUIREMENTS), ("docs/spec/decisions.md", "| D1 | a | b |\n")];
        let tree = Tree::of(&files);
        assert!(!run(&tree, true).unwrap());
        let current = render(&Catalogue::of(&tree).unwrap(), &collect(&tree));
        assert!(run(&Tree::of(&[files[0], files[1], (OUTPUT, &current)]), true).unwrap());
    }

    #[test]
    fn long_texts_end_at_a_word() {
        let short = shorten(&"word ".repeat(60));
        assert!(short.ends_with("word …") && short.chars().count() <= MAX_TEXT + 2, "{short}");
        assert_eq!(shorten("One. Two."), "One.");
    }
}
