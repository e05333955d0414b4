//! Links between Markdown files lead somewhere.

use super::Finding;
use crate::conformance;
use crate::markdown::{links, prose, resolve, without_code};
use crate::tree::Tree;

/// Every relative link names a file or directory of the repository, and its fragment a heading of that file. The table
/// of requirements is generated, and `cargo xtask conformance --check` compares it with the tree.
pub(super) fn targets(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_suffix(".md").filter(|file| file.path != conformance::OUTPUT) {
        for (index, line) in prose(&file.text) {
            for link in links(&without_code(line)) {
                if let Some(complaint) = complaint(tree, &file.path, link) {
                    findings.push(Finding::in_line(&file.path, index, complaint));
                }
            }
        }
    }
    findings
}

/// The error of a link in the file `from`.
fn complaint(tree: &Tree, from: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { from.to_owned() } else { resolve(from, path)? };
    if !tree.paths.contains(&target) {
        return Some(format!("link to {link}: there is no {target}"));
    }
    let headings = tree.file(&target).filter(|_| !fragment.is_empty())?;
    let missing = !prose(&headings.text).any(|(_, line)| line.starts_with('#') && anchor(line) == fragment);
    missing.then(|| format!("link to {link}: {target} has no heading #{fragment}"))
}

/// The fragment under which a heading is found: lower case, spaces as hyphens, punctuation gone.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", "# One (and) `two`\n"), ("crates/c.rs", "")]);
        targets(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# Top\n[1](b.md) [2](../crates/) [3](b.md#one-and-two) [4](#top) [5](https://example.org/x)\n";
        assert_eq!(found(text), [""; 0]);
        assert_eq!(found("`[code](nowhere)`\n```\n[fenced](nowhere)\n```\n"), [""; 0]);
    }

    #[test]
    fn the_generated_table_is_left_to_its_own_check() {
        assert!(targets(&Tree::of(&[(conformance::OUTPUT, "[1](gone.rs)\n")])).is_empty());
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(found("[1](c.md)"), ["link to c.md: there is no docs/c.md"]);
        assert_eq!(found("[1](b.md#three)"), ["link to b.md#three: docs/b.md has no heading #three"]);
    }
}
