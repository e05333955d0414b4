//! Every document is a chapter of the book, and so is every one that a chapter links to.

use super::Finding;
use crate::book::{SUMMARY, chapters, linked};
use crate::conformance;
use crate::tree::Tree;

/// Every document in `docs` stands once in the list of chapters. (That chapters exist is a matter of links.)
pub(super) fn completeness(tree: &Tree) -> Vec<Finding> {
    let chapters = chapters(tree);
    let documents = tree.with_suffix(".md").map(|file| &file.path);
    let documents = documents.filter(|path| path.starts_with("docs/") && *path != SUMMARY);
    let finding = |path: &String| match chapters.iter().filter(|chapter| *chapter == path).count() {
        1 => None,
        0 => Some(Finding::in_file(path, format!("is no chapter: name it in {SUMMARY}"))),
        times => Some(Finding::in_file(path, format!("stands {times} times in {SUMMARY}"))),
    };
    documents.filter_map(finding).collect()
}

/// A chapter's link to a document leads to another chapter: elsewhere the book has only sources, as text. The links of
/// the generated table of requirements are left to `cargo xtask conformance --check`.
pub(super) fn links_to_documents(tree: &Tree) -> Vec<Finding> {
    let chapters = chapters(tree);
    let in_chapter = |path: &String| {
        let strangers = tree.file(path).into_iter().flat_map(linked);
        let strangers = strangers.filter(|target| target.ends_with(".md") && !chapters.contains(target));
        let finding = |target| Finding::in_file(path, format!("links to {target}, which {SUMMARY} does not name"));
        strangers.map(finding).collect::<Vec<_>>()
    };
    chapters.iter().filter(|path| *path != conformance::OUTPUT).flat_map(in_chapter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_no_chapter_is_found() {
        let summary = "[Top](../README.md)\n\n- [a](a.md)\n  - [b](spec/b.md)\n- [c](c.md)\n- [again](c.md)\n";
        let files =
            [("docs/a.md", ""), ("docs/spec/b.md", ""), ("docs/c.md", ""), ("docs/d.md", ""), ("crates/e.md", "")];
        let tree = Tree::of(&[&files[..], &[(SUMMARY, summary)]].concat());
        let found: Vec<String> = completeness(&tree).into_iter().map(|f| format!("{} {}", f.path, f.message)).collect();
        let expected =
            ["docs/c.md stands 2 times in docs/SUMMARY.md", "docs/d.md is no chapter: name it in docs/SUMMARY.md"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_link_to_a_document_that_is_no_chapter_is_found() {
        let tree = Tree::of(&[
            (SUMMARY, "- [a](a.md)\n- [b](b.md)\n"),
            ("docs/a.md", "[b](b.md#x) `[code](../c.md)` [source](../crates/c.rs) [far](https://example.org/d.md)\n"),
            ("docs/b.md", "[a](a.md) [c](../crates/c.md)\n"),
        ]);
        let found: Vec<String> =
            links_to_documents(&tree).into_iter().map(|f| format!("{} {}", f.path, f.message)).collect();
        assert_eq!(found, ["docs/b.md links to crates/c.md, which docs/SUMMARY.md does not name"]);
    }
}
