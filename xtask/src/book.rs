//! `cargo xtask book`: the documents as a book, by mdbook.
//!
//! Documents link to each other and to sources, from wherever they lie in the repository. The book has everything in
//! one place: `docs` and the README at its top, and below `repository` what else is linked to, chapters as they are and
//! sources as text.

use crate::external::Program;
use crate::markdown::{links, prose, resolve, with_links, without_code};
use crate::tree::{File, Tree};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const MDBOOK: Program = Program { name: "mdbook", package: "mdbook", question: &["--version"] };

/// The list of chapters.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Directory of the book's sources and output, as in `book.toml`.
const GATHERED: &str = "target/book/src";
const BUILT: &str = "target/book/html";

/// Builds the book and prints its path.
pub(crate) fn run(tree: &Tree) -> Result<bool> {
    MDBOOK.check()?;
    let root = Tree::root();
    let into = root.join(GATHERED);
    if into.exists() {
        fs::remove_dir_all(&into)?;
    }
    for (path, octets) in gathered(tree)? {
        let place = into.join(path);
        fs::create_dir_all(place.parent().unwrap_or(&into))?;
        fs::write(&place, octets).with_context(|| format!("cannot write {}", place.display()))?;
    }
    let is_built = Command::new(MDBOOK.name).arg("build").current_dir(&root).status()?.success();
    if is_built {
        println!("{BUILT}/index.html");
    }
    Ok(is_built)
}

/// The chapters, as paths of the repository, in the order of the book.
pub(crate) fn chapters(tree: &Tree) -> Vec<String> {
    let summary = tree.file(SUMMARY).map_or("", |file| &file.text);
    let links = prose(summary).flat_map(|(_, line)| links(line).map(str::to_owned).collect::<Vec<_>>());
    links.filter_map(|link| resolve(SUMMARY, &link)).collect()
}

/// The targets of a chapter's links in the repository.
pub(crate) fn linked(chapter: &File) -> impl Iterator<Item = String> {
    let lines = prose(&chapter.text).map(|(_, line)| without_code(line));
    lines.flat_map(|line| links(&line).filter_map(|link| target(&chapter.path, link)).collect::<Vec<_>>())
}

/// Every file of the book, with its content.
fn gathered(tree: &Tree) -> Result<Vec<(String, Vec<u8>)>> {
    let chapters: BTreeSet<String> = chapters(tree).into_iter().chain([SUMMARY.to_owned()]).collect();
    let mut files = Vec::new();
    let mut sources = BTreeSet::new();
    for chapter in &chapters {
        let Some(file) = tree.file(chapter) else { bail!("{SUMMARY}: there is no {chapter}") };
        sources.extend(linked(file).filter(|path| !chapters.contains(path)));
        let place = place(chapter, &chapters, tree);
        let text = with_links(&file.text, |link| in_book(link, chapter, &place, &chapters, tree));
        files.push((place, text.into_bytes()));
    }
    for source in sources {
        files.push((place(&source, &chapters, tree), content(&source, tree)?));
    }
    Ok(files)
}

/// The target of a chapter's link in the repository; `None` for other links.
fn target(chapter: &str, link: &str) -> Option<String> {
    let (path, _) = link.split_once('#').unwrap_or((link, ""));
    let is_elsewhere = path.is_empty() || link.contains("://") || link.starts_with("mailto:");
    if is_elsewhere { None } else { resolve(chapter, path) }
}

/// Path of a repository's file in the book. Browsers show files with this suffix as text.
fn place(path: &str, chapters: &BTreeSet<String>, tree: &Tree) -> String {
    if chapters.contains(path) {
        // Under this name mdbook makes it what a directory shows.
        let name = path.strip_suffix("README.md").map_or(path.to_owned(), |directory| format!("{directory}index.md"));
        let is_at_top = name == "index.md";
        let in_docs = name.strip_prefix("docs/").map(str::to_owned);
        return in_docs.unwrap_or_else(|| if is_at_top { name } else { format!("repository/{name}") });
    }
    if tree.file(path).is_some() {
        format!("repository/{path}.txt")
    } else if Tree::root().join(path).is_dir() {
        format!("repository/{path}/index.txt")
    } else {
        format!("repository/{path}")
    }
}

/// A link as it is in the book.
fn in_book(link: &str, chapter: &str, from: &str, chapters: &BTreeSet<String>, tree: &Tree) -> String {
    let Some(target) = target(chapter, link) else { return link.to_owned() };
    let fragment = link.split_once('#').map(|(_, fragment)| format!("#{fragment}")).unwrap_or_default();
    let up = "../".repeat(from.matches('/').count());
    format!("{up}{}{fragment}", place(&target, chapters, tree))
}

/// A source, or the names of what is in a directory.
fn content(path: &str, tree: &Tree) -> Result<Vec<u8>> {
    let place = Tree::root().join(path);
    if place.is_dir() {
        let inside = tree.paths.iter().filter(|other| Path::new(other).parent() == Some(Path::new(path)));
        return Ok(inside.map(|name| format!("{name}\n")).collect::<String>().into_bytes());
    }
    fs::read(&place).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered_text(tree: &Tree, path: &str) -> String {
        let files = gathered(tree).unwrap();
        let file = files.into_iter().find(|(place, _)| place == path);
        String::from_utf8(file.unwrap_or_else(|| panic!("there is no {path}")).1).unwrap()
    }

    #[test]
    fn links_are_rewritten_to_places_in_the_book() {
        let tree = Tree::of(&[
            (SUMMARY, "[Top](../README.md)\n\n- [a](a.md)\n  - [b](spec/b.md)\n- [c](../C.md)\n"),
            ("README.md", "[a](docs/a.md#one) [source](xtask/src/main.rs) [far](https://example.org/a.md)\n"),
            ("docs/a.md", "[b](spec/b.md) [c](../C.md) [top](../README.md) [here](#one) `[code](../C.md)`\n"),
            ("docs/spec/b.md", "[a](../a.md) [source](../../xtask/src/main.rs)\n"),
            ("C.md", "[b](docs/spec/b.md) [sources](xtask/src/tidy)\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
            ("xtask/src/tidy/mod.rs", ""),
        ]);
        for (path, expected) in [
            ("SUMMARY.md", "[Top](index.md)\n\n- [a](a.md)\n  - [b](spec/b.md)\n- [c](repository/C.md)\n"),
            ("index.md", "[a](a.md#one) [source](repository/xtask/src/main.rs.txt) [far](https://example.org/a.md)\n"),
            ("a.md", "[b](spec/b.md) [c](repository/C.md) [top](index.md) [here](#one) `[code](../C.md)`\n"),
            ("spec/b.md", "[a](../a.md) [source](../repository/xtask/src/main.rs.txt)\n"),
            ("repository/C.md", "[b](../spec/b.md) [sources](../repository/xtask/src/tidy/index.txt)\n"),
            ("repository/xtask/src/tidy/index.txt", "xtask/src/tidy/mod.rs\n"),
        ] {
            assert_eq!(gathered_text(&tree, path), expected, "{path}");
        }
    }

    #[test]
    fn the_book_of_this_repository_contains_its_link_targets() {
        let files = gathered(&Tree::of_repository().unwrap()).unwrap();
        let places: BTreeSet<&str> = files.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places.len(), files.len(), "two files have one place");
        for (from, octets) in files.iter().filter(|(place, _)| place.ends_with(".md")) {
            for (_, line) in prose(std::str::from_utf8(octets).unwrap()) {
                for target in links(&without_code(line)).filter_map(|link| target(from, link)) {
                    assert!(places.contains(target.as_str()), "{from} links to {target}");
                }
            }
        }
    }
}
