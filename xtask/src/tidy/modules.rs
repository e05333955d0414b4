//! ARCHITECTURE.md names every module.

use super::Finding;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

const DOCUMENT: &str = "ARCHITECTURE.md";

/// The section of each crate in ARCHITECTURE.md links every file and directory at the top of the crate's `src`. (That
/// links lead somewhere is checked for all documents.)
pub(super) fn completeness(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.file(DOCUMENT) else {
        return vec![Finding::in_file(DOCUMENT, "is missing")];
    };
    let named = named(&document.text);
    let mut findings = Vec::new();
    for (name, modules) in modules(tree) {
        let Some(named) = named.get(name) else {
            findings.push(Finding::in_file(DOCUMENT, format!("has no section for crates/{name}")));
            continue;
        };
        let missing = modules.difference(named);
        let message = |module| format!("the section of crates/{name} does not link its module {module}");
        findings.extend(missing.map(|module| Finding::in_file(DOCUMENT, message(module))));
    }
    findings
}

/// For each crate, the modules at the top of its `src`: those that are files, and those that are directories.
fn modules(tree: &Tree) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut modules: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in tree.with_suffix(".rs") {
        let Some((name, inside)) = in_source(&file.path) else {
            continue;
        };
        let module = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
        if !["lib", "main", "bin", "tests"].contains(&module) {
            modules.entry(name).or_default().insert(module);
        }
    }
    modules
}

/// The crate and the rest of a path `crates/NAME/src/REST`.
fn in_source(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("crates/")?.split_once("/src/")
}

/// For each crate, the modules that its section links. A heading may name several crates.
fn named(document: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut crates: Vec<&str> = Vec::new();
    for line in document.lines() {
        if line.starts_with('#') {
            crates = line.split('`').filter_map(|part| part.strip_prefix("crates/")).collect();
            for name in &crates {
                named.entry(name).or_default();
            }
        }
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if let Some((name, inside)) = in_source(target).filter(|(name, _)| crates.contains(name)) {
                let module = inside.split(['/', '#']).next().unwrap_or(inside).trim_end_matches(".rs");
                named.entry(name).or_default().insert(module);
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 4] = [
        ("crates/rc/src/lib.rs", ""),
        ("crates/rc/src/psn.rs", ""),
        ("crates/rc/src/rate/mod.rs", ""),
        ("crates/rc/src/rate/dcqcn.rs", ""),
    ];

    fn found(document: &str, files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(&[files, &[(DOCUMENT, document)]].concat());
        completeness(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_document_that_links_every_module_passes() {
        let text =
            "### `crates/rc` and `crates/api`\n[`psn`](crates/rc/src/psn.rs), [`rate`](crates/rc/src/rate/mod.rs)\n";
        assert_eq!(found(text, &FILES), [""; 0]);
    }

    #[test]
    fn a_module_that_is_not_linked_is_found() {
        let text =
            "### `crates/rc`\n[`psn`](crates/rc/src/psn.rs)\n### `crates/io`\n[`rate`](crates/rc/src/rate/mod.rs)\n";
        assert_eq!(found(text, &FILES), ["the section of crates/rc does not link its module rate"]);
    }

    #[test]
    fn a_crate_without_a_section_is_found() {
        assert_eq!(found("### `crates/io`\n", &FILES), ["has no section for crates/rc"]);
    }
}
