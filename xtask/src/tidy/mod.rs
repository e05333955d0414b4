//! `cargo xtask tidy`: the house rules that no compiler checks. One small function for each rule, and for each a test
//! that shows it failing.

use crate::tree::Tree;
use anyhow::Result;

mod book;
mod evidence;
mod identifiers;
mod layers;
mod links;
mod missing_values;
mod modules;
mod rust;
mod test_code;
mod text;
mod words;

/// Something that a rule found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; 0 when the finding is about the whole file.
    line: usize,
    message: String,
}

impl Finding {
    fn in_line(path: &str, index: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line: index + 1, message: message.into() }
    }

    fn in_file(path: &str, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line: 0, message: message.into() }
    }
}

/// A rule: everything in the tree that breaks it.
type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[Rule] = &[
    text::line_length,
    text::trailing_space_and_tabs,
    text::end_of_file,
    text::machine_paths,
    rust::file_length,
    rust::unfinished_code,
    rust::unsafe_code,
    rust::workspace_lints,
    rust::crate_documentation,
    layers::dependencies,
    links::targets,
    book::completeness,
    book::links_to_documents,
    identifiers::existence,
    words::words_that_went,
    test_code::one_binary,
    test_code::modules_are_declared,
    missing_values::missing_values_fail,
    modules::completeness,
    evidence::tables_are_those_of_results,
    evidence::plots_are_those_of_results,
    evidence::commits_exist,
];

/// Applies every rule and prints what was found; `false` when anything was.
pub(crate) fn run(tree: &Tree) -> Result<bool> {
    for warning in rust::files_to_split(tree) {
        println!("warning: {}", describe(&warning));
    }
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    for finding in &findings {
        println!("{}", describe(finding));
    }
    println!("tidy: {} files, {} rules, {} findings", tree.files.len(), RULES.len(), findings.len());
    Ok(findings.is_empty())
}

fn describe(finding: &Finding) -> String {
    match finding.line {
        0 => format!("{}: {}", finding.path, finding.message),
        line => format!("{}:{line}: {}", finding.path, finding.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_anywhere_fails_the_run() {
        let chapters = "- [requirements](spec/requirements.md)\n- [decisions](spec/decisions.md)\n";
        let good = [
            ("docs/spec/requirements.md", ""),
            ("docs/spec/decisions.md", ""),
            (crate::book::SUMMARY, chapters),
            ("ARCHITECTURE.md", ""),
        ];
        assert!(run(&Tree::of(&good)).unwrap());
        assert!(!run(&Tree::of(&[&good[..], &[("a.md", "trailing \n")]].concat())).unwrap());
    }

    #[test]
    fn a_finding_names_its_place() {
        assert_eq!(describe(&Finding::in_line("a.rs", 4, "is wrong")), "a.rs:5: is wrong");
        assert_eq!(describe(&Finding::in_file("a.rs", "is wrong")), "a.rs: is wrong");
    }
}
