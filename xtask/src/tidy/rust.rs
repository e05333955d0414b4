//! Rules for Rust files.

use super::Finding;
use crate::regions::is_test_file;
use crate::tree::{File, Tree};

const MAX_LINES: usize = 800;
const MAX_TEST_LINES: usize = 1000;
const WORTH_SPLITTING_LINES: usize = 500;

/// Marks of unfinished code, or of tests that do not run.
const UNFINISHED: [&str; 7] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("#[", "ignore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
];

/// Places where `unsafe` is allowed: one intrinsic of the ICRC, code that talks to the kernel, memory of applications,
/// the interface to C, memory of Python objects, and calls of libibverbs.
const UNSAFE_ALLOWED: [&str; 7] = [
    "crates/wire/src/icrc",
    "crates/io/src/",
    "crates/frame/src/memory.rs",
    "crates/srdma/src/memory/",
    "crates/capi/src/",
    "crates/python/src/memory/",
    "crates/verbs/src/sys/",
];

/// No file is longer than can be read: 800 lines, 1,000 for tests.
pub(super) fn file_length(tree: &Tree) -> Vec<Finding> {
    let too_long = |file: &File| {
        let limit = if is_test_file(&file.path) { MAX_TEST_LINES } else { MAX_LINES };
        let lines = file.text.lines().count();
        (lines > limit).then(|| Finding::in_file(&file.path, format!("{lines} lines, at most {limit}")))
    };
    tree.with_suffix(".rs").filter_map(too_long).collect()
}

/// Files that are allowed, but long enough to ask whether each should be split.
pub(super) fn files_to_split(tree: &Tree) -> Vec<Finding> {
    let long = |file: &File| {
        let lines = file.text.lines().count();
        (lines > WORTH_SPLITTING_LINES)
            .then(|| Finding::in_file(&file.path, format!("{lines} lines: one thing still?")))
    };
    tree.with_suffix(".rs").filter_map(long).collect()
}

/// No placeholder, no debugging aid, no test that is not run; those that need root are run by `cargo xtask labs`.
pub(super) fn unfinished_code(tree: &Tree) -> Vec<Finding> {
    let runs_in_labs = concat!("#[", "ignore = \"needs root\"]");
    code_lines(tree, |_, line| {
        if line.trim() == runs_in_labs {
            return None;
        }
        let marker = UNFINISHED.iter().find(|marker| contains_word(line, marker))?;
        Some(format!("`{marker}` marks something unfinished"))
    })
}

/// Unsafe code is in the ICRC, in memory that is shared with kernels and applications, in `io`, `capi` and `verbs::sys`
/// alone.
pub(super) fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    const FORMS: [&str; 6] = [
        concat!("un", "safe {"),
        concat!("un", "safe fn"),
        concat!("un", "safe impl"),
        concat!("un", "safe extern"),
        concat!("allow(un", "safe_code"),
        concat!("expect(un", "safe_code"),
    ];
    code_lines(tree, |path, line| {
        let allowed = UNSAFE_ALLOWED.iter().any(|place| path.starts_with(place));
        let form = FORMS.iter().find(|form| contains_word(line, form)).filter(|_| !allowed)?;
        Some(format!("`{form}` outside {}", UNSAFE_ALLOWED.join(" or ")))
    })
}

/// Every crate takes over the lints of the workspace.
pub(super) fn workspace_lints(tree: &Tree) -> Vec<Finding> {
    tree.with_suffix("/Cargo.toml")
        .filter(|file| !file.text.contains("[lints]\nworkspace = true\n"))
        .map(|file| Finding::in_file(&file.path, "does not take over the lints of the workspace"))
        .collect()
}

/// Every crate has a description at its top.
pub(super) fn crate_documentation(tree: &Tree) -> Vec<Finding> {
    let is_root = |path: &str| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    tree.files
        .iter()
        .filter(|file| is_root(&file.path) && !file.text.starts_with("//! "))
        .map(|file| Finding::in_line(&file.path, 0, "a crate begins with `//!` and its description"))
        .collect()
}

fn code_lines(tree: &Tree, check: impl Fn(&str, &str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.with_suffix(".rs") {
        for (index, line) in file.text.lines().enumerate() {
            findings.extend(check(&file.path, line).map(|message| Finding::in_line(&file.path, index, message)));
        }
    }
    findings
}

/// Does `line` contain `word` with no letter, digit or underscore around it?
fn contains_word(line: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let after = &line[at + word.len()..];
        !line[..at].ends_with(is_letter) && (word.ends_with('(') || !after.starts_with(is_letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        rule(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn long_files_are_found() {
        let text = "\n".repeat(801);
        assert_eq!(found(file_length, "crates/rc/src/a.rs", &text), ["801 lines, at most 800"]);
        assert_eq!(found(file_length, "crates/rc/tests/a.rs", &text), [""; 0]);
        assert_eq!(found(file_length, "crates/rc/tests/a.rs", &"\n".repeat(1001)), ["1001 lines, at most 1000"]);
    }

    #[test]
    fn long_files_are_pointed_out_before_they_are_too_long() {
        assert_eq!(found(files_to_split, "a.rs", &"\n".repeat(501)), ["501 lines: one thing still?"]);
        assert_eq!(found(files_to_split, "a.rs", &"\n".repeat(500)), [""; 0]);
    }

    #[test]
    fn every_mark_of_unfinished_code_is_found() {
        for marker in UNFINISHED {
            assert_eq!(found(unfinished_code, "a.rs", &format!("    {marker}")).len(), 1, "{marker}");
        }
        assert_eq!(found(unfinished_code, "a.rs", concat!("XX", "XX // not a marker")), [""; 0]);
        assert_eq!(found(unfinished_code, "a.rs", concat!("#[", "ignore = \"needs root\"]")), [""; 0]);
        assert_eq!(found(unfinished_code, "a.rs", concat!("#[", "ignore = \"slow\"]")).len(), 1);
    }

    #[test]
    fn unsafe_code_is_found_outside_the_icrc() {
        for text in [concat!("let y = un", "safe { x };"), concat!("#![allow(un", "safe_code)]")] {
            assert_eq!(found(unsafe_code, "crates/rc/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(found(unsafe_code, "crates/wire/src/icrc.rs", text), [""; 0]);
            assert_eq!(found(unsafe_code, "crates/verbs/src/sys/pair.rs", text), [""; 0]);
            assert_eq!(found(unsafe_code, "crates/verbs/src/queue_pair.rs", text).len(), 1, "{text}");
        }
        assert_eq!(found(unsafe_code, "a.rs", "// unsafe at any speed"), [""; 0]);
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert_eq!(found(workspace_lints, "crates/rc/Cargo.toml", "[package]\n").len(), 1);
        assert_eq!(found(workspace_lints, "crates/rc/Cargo.toml", "[lints]\nworkspace = true\n"), [""; 0]);
    }

    #[test]
    fn a_crate_without_documentation_is_found() {
        assert_eq!(found(crate_documentation, "crates/rc/src/lib.rs", "pub mod a;").len(), 1);
        assert_eq!(found(crate_documentation, "crates/rc/src/lib.rs", "//! What it is."), [""; 0]);
    }
}
