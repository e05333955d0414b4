//! Requirement and decision ids: where they are defined, and where a text mentions one.

use crate::tree::Tree;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// Document with the requirements.
pub(crate) const REQUIREMENTS: &str = "docs/spec/requirements.md";
/// Document with the decisions.
pub(crate) const DECISIONS: &str = "docs/spec/decisions.md";

/// The families of requirement ids, one for each draft.
const FAMILIES: [&str; 4] = ["MT-", "FC-", "CN-", "PP-"];

/// A row of one of the two tables.
pub(crate) struct Entry {
    pub(crate) id: String,
    /// MUST, SHOULD, … for a requirement; empty for a decision.
    pub(crate) level: String,
    /// The requirement, or the gap that a decision fills.
    pub(crate) text: String,
}

/// Every id that exists, in the order of its table.
pub(crate) struct Catalogue {
    pub(crate) requirements: Vec<Entry>,
    pub(crate) decisions: Vec<Entry>,
}

impl Catalogue {
    /// Reads the two tables.
    ///
    /// # Errors
    /// When a table is missing, or defines an id twice.
    pub(crate) fn of(tree: &Tree) -> Result<Catalogue> {
        let requirements = entries(tree, REQUIREMENTS, |cells| match cells {
            [id, level, _, text] => Some(Entry { id: id.clone(), level: level.clone(), text: text.clone() }),
            _ => None,
        })?;
        let decisions = entries(tree, DECISIONS, |cells| match cells {
            [id, gap, _] => Some(Entry { id: id.clone(), level: String::new(), text: gap.clone() }),
            _ => None,
        })?;
        Ok(Catalogue { requirements, decisions })
    }

    /// Is `id` defined?
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.requirements.iter().chain(&self.decisions).any(|entry| entry.id == id)
    }
}

/// The rows of the tables in `path` whose first cell is an id.
fn entries(tree: &Tree, path: &str, read: impl Fn(&[String]) -> Option<Entry>) -> Result<Vec<Entry>> {
    let file = tree.file(path).with_context(|| format!("{path} is missing"))?;
    let mut lines_of_ids = BTreeMap::new();
    let mut entries = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let cells: Vec<String> = match line.strip_prefix('|').and_then(|row| row.trim_end().strip_suffix('|')) {
            Some(row) => row.split('|').map(|cell| cell.trim().to_owned()).collect(),
            None => continue,
        };
        if cells.first().is_none_or(|id| mentions(id).as_slice() != [id.as_str()]) {
            continue;
        }
        let Some(entry) = read(&cells) else {
            bail!("{path}:{}: a row of {} cells, unlike the table", index + 1, cells.len());
        };
        if let Some(earlier) = lines_of_ids.insert(entry.id.clone(), index + 1) {
            bail!("{path}:{}: {} is already defined in line {earlier}", index + 1, entry.id);
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The words of `line` that have the shape of an id, whether or not it exists: `MT-5.3.1-1`, `FC-O-1`, `D16`.
///
/// A requirement id that was cut short after its section has the shape too, so that it is reported as unknown.
pub(crate) fn mentions(line: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    line.split(|c: char| !is_part(c))
        .map(|word| word.trim_end_matches(['.', '-', ':']))
        .filter(|word| is_requirement(word) || is_decision(word))
        .collect()
}

fn is_requirement(word: &str) -> bool {
    FAMILIES
        .iter()
        .find_map(|family| word.strip_prefix(family))
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("O-"))
}

fn is_decision(word: &str) -> bool {
    word.strip_prefix('D').is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_as_whole_words() {
        assert_eq!(mentions("/// refused (MT-5.3.1-1, D26), see FC-O-1."), ["MT-5.3.1-1", "D26", "FC-O-1"]);
        assert_eq!(mentions("D1–D8 and D22: the headend"), ["D1", "D8", "D22"]);
        assert_eq!(mentions("cut short: MT-5.3"), ["MT-5.3"]);
    }

    #[test]
    fn other_words_are_not_ids() {
        let line = "0xD4 D 2001:db8:D1::1 d5 D1x MT CN-tower draft-D7 R4 ID42";
        assert_eq!(mentions(line), Vec::<&str>::new());
    }

    fn tree(requirements: &str) -> Tree {
        Tree::of(&[
            (REQUIREMENTS, requirements),
            (DECISIONS, "| id | gap | decision |\n|---|---|---|\n| D1 | a | b |\n"),
        ])
    }

    #[test]
    fn tables_are_read_row_by_row() {
        let catalogue =
            Catalogue::of(&tree("| id | level | § | requirement |\n| MT-3-1 | DEF | 3 | Text. |\n")).unwrap();
        assert!(catalogue.contains("MT-3-1") && catalogue.contains("D1") && !catalogue.contains("MT-3-2"));
        assert_eq!(catalogue.requirements[0].level, "DEF");
        assert_eq!(catalogue.decisions[0].text, "a");
    }

    #[test]
    fn a_second_definition_is_refused() {
        let error = Catalogue::of(&tree("| MT-3-1 | DEF | 3 | a |\n| MT-3-1 | DEF | 3 | b |\n")).err().unwrap();
        assert_eq!(error.to_string(), "docs/spec/requirements.md:2: MT-3-1 is already defined in line 1");
    }

    #[test]
    fn a_row_of_the_wrong_width_is_refused() {
        let error = Catalogue::of(&tree("| MT-3-1 | DEF | a |\n")).err().unwrap();
        assert!(error.to_string().starts_with("docs/spec/requirements.md:1: a row of 3 cells"));
    }
}
