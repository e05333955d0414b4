//! `cargo xtask conformance`: writes docs/conformance.md, one row for each requirement and decision, from the ids that
//! code, tests and documents mention, and from the remarks of docs/spec/partly.md.
//!
//! Evidence is a test function with the id in a comment, or a case of the conformance tester that lists it. Headers of
//! files, helpers, constants, texts that a test compares and lists of what a profile does not test are none.

use crate::ids::{Catalogue, Entry, mentions};
use crate::regions::Regions;
use crate::tree::{File, Tree};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The file that is written.
pub(crate) const OUTPUT: &str = "docs/conformance.md";

/// What the evidence of a requirement does not show, written by hand.
const PARTLY: &str = "docs/spec/partly.md";

/// The requirements that need a remark: an audit of the tests found them to be shown partly, and no test since has
/// completed them.
const NEED_REMARKS: [&str; 8] =
    ["MT-3-1", "MT-5.1-3", "MT-5.3.2-2", "MT-6.2-2", "MT-8-1", "MT-9-1", "CN-4.1-2", "PP-4-6"];

/// The cases of the conformance tester: they show what a device does, and do nothing of it.
const CASES: &str = "crates/conform/src/profile/";

/// Product code that checks, measures or models what other code does.
const CHECKERS: [&str; 11] = [
    "crates/bench/",
    "crates/chaos/",
    "crates/cluster/",
    "crates/conform/",
    "crates/fabric-sim/src/end_to_end/claims",
    "crates/fabric-sim/src/wan/claims",
    "crates/fuzz-targets/",
    "crates/model-check/",
    "crates/sim/src/invariants",
    "crates/sim/src/transfer",
    "crates/testkit/",
];

/// Maximum length of a row's text, in characters; the full text is in `docs/spec/`.
const MAX_TEXT: usize = 110;

/// The functions or cases of one file that mention an id; none when only the file's name is shown.
type Places = BTreeMap<String, BTreeSet<String>>;

/// Mentions of an id.
#[derive(Default)]
struct Mentions {
    /// Product code.
    done: Places,
    /// Test functions and conformance cases.
    shown: Places,
    /// Documents outside `docs/spec/`.
    described: Places,
}

/// Writes the table, or with `check` only prints whether it is up to date. `false` when it is not.
pub(crate) fn run(tree: &Tree, check: bool) -> Result<bool> {
    let catalogue = Catalogue::of(tree)?;
    let table = render(&catalogue, &collect(tree), &remarks(tree, &catalogue)?);
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
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            for id in mentions(line) {
                let of_id = found.entry(id.to_owned()).or_default();
                if is_document(file) {
                    of_id.described.entry(file.path.clone()).or_default();
                } else if let Some(name) = evidence(file, &regions, &lines[..=index], id) {
                    of_id.shown.entry(file.path.clone()).or_default().insert(name.to_owned());
                } else if !regions.is_test(index) && !CHECKERS.iter().any(|checker| file.path.starts_with(checker)) {
                    of_id.done.entry(file.path.clone()).or_default();
                }
            }
        }
    }
    found
}

/// The test function or conformance case for which the last of these lines names `id` as shown.
fn evidence<'a>(file: &File, regions: &Regions<'a>, lines: &[&'a str], id: &str) -> Option<&'a str> {
    if file.path.starts_with(CASES) {
        return case_of(lines, id);
    }
    regions.test_of_comment(lines.len() - 1)
}

/// The case whose list of requirements, `&["MT-…", …]`, the last line contains: its name is the last literal before the
/// list that is a name, at most four lines above.
fn case_of<'a>(lines: &[&'a str], id: &str) -> Option<&'a str> {
    let (last, above) = lines.split_last()?;
    let (before, list) = last.split_once("&[")?;
    let is_listed = list.contains(&format!("\"{id}\""));
    let is_name = |text: &&str| {
        let mut characters = text.chars();
        characters.next().is_some_and(|c| c.is_ascii_lowercase())
            && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let name_in = |line: &'a str| line.split('"').skip(1).step_by(2).find(is_name);
    name_in(before).or_else(|| above.iter().rev().take(4).find_map(|line| name_in(line))).filter(|_| is_listed)
}

/// The rows of docs/spec/partly.md: what the evidence does not show, by requirement.
fn remarks(tree: &Tree, catalogue: &Catalogue) -> Result<BTreeMap<String, String>> {
    let file = tree.file(PARTLY).with_context(|| format!("{PARTLY} is missing"))?;
    let mut remarks = BTreeMap::new();
    for (index, line) in file.text.lines().enumerate() {
        let Some(row) = line.strip_prefix('|').and_then(|row| row.trim_end().strip_suffix('|')) else { continue };
        let Some((id, remark)) = row.split_once('|').map(|(id, remark)| (id.trim(), remark.trim())) else { continue };
        if mentions(id).as_slice() != [id] {
            continue;
        }
        if !catalogue.requirements.iter().any(|entry| entry.id == id) {
            bail!("{PARTLY}:{}: {id} is not a requirement", index + 1);
        }
        if !remark.starts_with("partly: ") || remark.contains('|') {
            bail!("{PARTLY}:{}: {id}: a remark begins with \"partly: \" and is one cell", index + 1);
        }
        if remarks.insert(id.to_owned(), remark.to_owned()).is_some() {
            bail!("{PARTLY}:{}: {id} has two remarks", index + 1);
        }
    }
    let exists = |id: &&&str| catalogue.requirements.iter().any(|entry| entry.id == ***id);
    if let Some(id) = NEED_REMARKS.iter().filter(exists).find(|id| !remarks.contains_key(**id)) {
        bail!("{PARTLY}: {id} has no remark, and is shown partly");
    }
    Ok(remarks)
}

/// Rust, and the Python modules of the package.
fn is_code(file: &File) -> bool {
    let is_rust = file.path.starts_with("crates/") && file.path.ends_with(".rs");
    is_rust || file.path.starts_with("crates/python/python/") && file.path.ends_with(".py")
}

/// Documents that explain; not the definitions, not the history and not the table itself.
fn is_document(file: &File) -> bool {
    file.path.starts_with("docs/")
        && file.path.ends_with(".md")
        && !file.path.starts_with("docs/spec/")
        && file.path != OUTPUT
}

fn render(catalogue: &Catalogue, found: &BTreeMap<String, Mentions>, remarks: &BTreeMap<String, String>) -> String {
    let mut page = String::from(
        "# Conformance\n\n\
         Written by `cargo xtask conformance` from the ids that code, tests and documents mention; do not edit.\n\
         A row is shown when code does it (\"done in\"), and a test function has its id in a comment or a case of\n\
         `srdma conform` lists it (\"shown by\"). Headers of files, helpers, constants and lists of what is not\n\
         tested do not count, and code that only checks is not \"done in\". \"open\" means that nothing does.\n\
         [What is shown partly](spec/partly.md) is written by hand. The full texts are in\n\
         [requirements](spec/requirements.md) and [decisions](spec/decisions.md).\n",
    );
    let tables = [("Requirements", &catalogue.requirements), ("Decisions", &catalogue.decisions)];
    for (title, entries) in tables {
        let _ = write!(page, "\n## {title}\n\nDone and shown: {}.\n\n", count_by_family(entries, found, remarks));
        page.push_str("| id | level | text | done in | shown by | not shown | described in |\n");
        page.push_str("|---|---|---|---|---|---|---|\n");
        for entry in entries {
            let remark = remarks.get(&entry.id).map_or("", String::as_str);
            page.push_str(&row(entry, found.get(&entry.id).unwrap_or(&Mentions::default()), remark));
        }
    }
    page
}

/// Number of each family's entries with both code and a test, and how many of them partly:
/// `MT 30 of 36 (2 partly), FC 0 of 17`.
fn count_by_family(
    entries: &[Entry],
    found: &BTreeMap<String, Mentions>,
    remarks: &BTreeMap<String, String>,
) -> String {
    #[derive(Default)]
    struct Count {
        met: usize,
        partly: usize,
        all: usize,
    }
    let mut counts: Vec<(&str, Count)> = Vec::new();
    for entry in entries {
        let family = entry.id.split(|c: char| c == '-' || c.is_ascii_digit()).next().unwrap_or_default();
        let met = found.get(&entry.id).is_some_and(|mentions| !mentions.done.is_empty() && !mentions.shown.is_empty());
        if counts.last().is_none_or(|(last, ..)| *last != family) {
            counts.push((family, Count::default()));
        }
        if let Some((_, count)) = counts.last_mut() {
            count.met += usize::from(met);
            count.partly += usize::from(met && remarks.contains_key(&entry.id));
            count.all += 1;
        }
    }
    let text = |(family, Count { met, partly, all }): &(&str, Count)| match partly {
        0 => format!("{family} {met} of {all}"),
        _ => format!("{family} {met} of {all} ({partly} partly)"),
    };
    counts.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn row(entry: &Entry, mentions: &Mentions, remark: &str) -> String {
    let or_open = |cell: String| if cell.is_empty() { "open".to_owned() } else { cell };
    format!(
        "| {} | {} | {} | {} | {} | {remark} | {} |\n",
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

    const REQUIREMENTS: &str = "| MT-3-2 | DEF | 3 | Traffic is RoCEv2. More. |\n| MT-4-1 | MUST | 3 | Trees. |\n";
    const CODE: &str = "\
/// Refuses (MT-3-2, D1).
fn refuse() {}

#[cfg(test)]
mod tests {
    //! MT-4-1
    /// MT-4-1
    const NAME: &str = \"MT-4-1\";
    /// MT-3-2
    #[test]
    fn refuses() {
        assert!(text.contains(\"MT-4-1: \"));
    }
    /// MT-4-1
    fn helper() {}
}
";
    /// A profile: two cases, and what it does not test.
    const PROFILE: &str = "\
//! MT-4-1
fn cases() {
    // MT-4-1
    case(
        \"lists-of-others\",
        \"Lists of other edges are passed over.\",
        &[\"MT-3-2\", \"RFC 8754 4.3.2\"],
    );
    Case::new(\"other\", \"Text.\", &[\"D1\"]);
    untested: vec![
        (\"MT-4-1\", \"queue pairs are the hosts'\"),
    ];
}
";

    fn tree(more: &[(&str, &str)]) -> Tree {
        let decisions = ("docs/spec/decisions.md", "| D1 | A gap | A decision. |\n");
        Tree::of(&[&[("docs/spec/requirements.md", REQUIREMENTS), decisions], more].concat())
    }

    fn page_of(tree: &Tree) -> Result<String> {
        let catalogue = Catalogue::of(tree)?;
        Ok(render(&catalogue, &collect(tree), &remarks(tree, &catalogue)?))
    }

    fn page(more: &[(&str, &str)]) -> String {
        let files = [("docs/multicast.md", "As D1 says.\n"), (PARTLY, ""), ("crates/rc/src/a.rs", CODE)];
        page_of(&tree(&[&files, more].concat())).unwrap()
    }

    #[test]
    fn comments_of_tests_are_evidence_and_nothing_else() {
        let page = page(&[]);
        let row = "| MT-3-2 | DEF | Traffic is RoCEv2. | [rc/a.rs](../crates/rc/src/a.rs) \
                   | [rc/a.rs](../crates/rc/src/a.rs): `refuses` |  |  |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("Done and shown: MT 1 of 2."), "{page}");
        assert!(page.contains("| MT-4-1 | MUST | Trees. | open | open |  |  |\n"), "{page}");
        let decision =
            "| D1 | – | A gap | [rc/a.rs](../crates/rc/src/a.rs) | open |  | [multicast.md](../docs/multicast.md) |";
        assert!(page.contains(decision), "{page}");
    }

    #[test]
    fn conformance_cases_are_evidence_and_what_they_leave_out_is_not() {
        let path = "crates/conform/src/profile/usid.rs";
        let page = page(&[(path, PROFILE), ("crates/chaos/src/checks.rs", "/// Checks MT-4-1.\nfn check() {}\n")]);
        let link = |case: &str| format!("[conform/profile/usid.rs](../{path}): `{case}`");
        assert!(page.contains(&format!("{}<br>[rc/a.rs]", link("lists-of-others"))), "{page}");
        assert!(page.contains(&format!("| {} |", link("other"))), "{page}");
        assert!(page.contains("| MT-4-1 | MUST | Trees. | open | open |  |  |\n"), "{page}");
    }

    #[test]
    fn remarks_are_shown_and_counted() {
        let files = [("crates/rc/src/a.rs", CODE), (PARTLY, "| id | x |\n|---|---|\n| MT-3-2 | partly: by half |\n")];
        let page = page_of(&tree(&files)).unwrap();
        assert!(page.contains("Done and shown: MT 1 of 2 (1 partly)."), "{page}");
        assert!(page.contains("`refuses` | partly: by half |  |"), "{page}");
    }

    #[test]
    fn wrong_remarks_are_refused() {
        let error = |remarks: &str| page_of(&tree(&[(PARTLY, remarks)])).unwrap_err().to_string();
        assert_eq!(error("| MT-9-1 | partly: x |"), "docs/spec/partly.md:1: MT-9-1 is not a requirement");
        let form = "docs/spec/partly.md:1: MT-3-2: a remark begins with \"partly: \" and is one cell";
        assert_eq!((error("| MT-3-2 | all |"), error("| MT-3-2 | partly: a | b |")), (form.into(), form.into()));
        let twice = "| MT-3-2 | partly: a |\n| MT-3-2 | partly: b |";
        assert_eq!(error(twice), "docs/spec/partly.md:2: MT-3-2 has two remarks");
    }

    #[test]
    fn what_is_shown_partly_needs_a_remark() {
        let requirements = ("docs/spec/requirements.md", "| MT-8-1 | MUST | 8 | State. |\n");
        let decisions = ("docs/spec/decisions.md", "| D1 | A gap | A decision. |\n");
        let error = page_of(&Tree::of(&[requirements, decisions, (PARTLY, "")])).unwrap_err().to_string();
        assert_eq!(error, "docs/spec/partly.md: MT-8-1 has no remark, and is shown partly");
    }

    #[test]
    fn a_table_that_is_out_of_date_fails_the_check() {
        let tree = tree(&[(PARTLY, "")]);
        assert!(!run(&tree, true).unwrap());
        let current = page_of(&tree).unwrap();
        assert!(run(&self::tree(&[(PARTLY, ""), (OUTPUT, &current)]), true).unwrap());
    }

    #[test]
    fn long_texts_end_at_a_word() {
        let short = shorten(&"word ".repeat(60));
        assert!(short.ends_with("word …") && short.chars().count() <= MAX_TEXT + 2, "{short}");
        assert_eq!(shorten("One. Two."), "One.");
    }
}
