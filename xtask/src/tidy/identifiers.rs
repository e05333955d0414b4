//! Every requirement and decision id that is mentioned exists.

use super::Finding;
use crate::ids::{Catalogue, mentions};
use crate::regions::Regions;
use crate::tree::{File, Tree};

/// Ids in code and documents are defined in `docs/spec/`.
pub(super) fn existence(tree: &Tree) -> Vec<Finding> {
    let catalogue = match Catalogue::of(tree) {
        Ok(catalogue) => catalogue,
        Err(error) => return vec![Finding::in_file("docs/spec", format!("{error:#}"))],
    };
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| may_mention_ids(file)) {
        let regions = Regions::of(&file.path, &file.text);
        let makes_up_ids = |index| file.path.starts_with("xtask/") && regions.is_test(index);
        for (index, line) in file.text.lines().enumerate().filter(|(index, _)| !makes_up_ids(*index)) {
            for id in mentions(line).into_iter().filter(|id| !catalogue.contains(id)) {
                findings.push(Finding::in_line(&file.path, index, format!("{id} is not defined in docs/spec/")));
            }
        }
    }
    findings
}

/// Code and documents. (The tests of these chores make up ids of their own and are left out.)
fn may_mention_ids(file: &File) -> bool {
    let kind = [".rs", ".md", ".toml"].iter().any(|suffix| file.path.ends_with(suffix));
    kind && !file.path.starts_with("testdata/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let requirements = ("docs/spec/requirements.md", "| MT-3-1 | DEF | 3 | Text. |\n");
        let decisions = ("docs/spec/decisions.md", "| D1 | gap | decision |\n");
        let tree = Tree::of(&[requirements, decisions, ("crates/rc/src/a.rs", text)]);
        existence(&tree).into_iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn an_id_that_does_not_exist_is_found() {
        assert_eq!(
            found("/// As MT-3-1 and D1 say.\n/// (MT-3-2, D99)\n"),
            ["2: MT-3-2 is not defined in docs/spec/", "2: D99 is not defined in docs/spec/"]
        );
    }

    #[test]
    fn a_missing_table_is_found() {
        let findings = existence(&Tree::of(&[]));
        assert_eq!(findings[0].message, "docs/spec/requirements.md is missing");
    }
}
