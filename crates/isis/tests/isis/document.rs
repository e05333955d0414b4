//! `docs/isis.md` explains every drop reason and every cause of an overload bit.

use srdma_isis::{IsisDrop, Overload};
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../docs/isis.md");

/// Names in the first column of the table behind a text.
fn first_column(before: &str) -> BTreeSet<&str> {
    let (_, behind) = DOCUMENT.split_once(before).unwrap_or_else(|| panic!("there is no {before}"));
    let table = behind.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = table.skip(2).map(|line| line.split('|').nth(1).unwrap_or(""));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_drop_reason_is_explained_and_no_other() {
    let names: BTreeSet<&str> = IsisDrop::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(names.len(), IsisDrop::ALL.len());
    assert_eq!(first_column("Dropped frames, by reason:"), names);
}

#[test]
fn every_cause_of_an_overload_bit_is_explained() {
    let (_, section) = DOCUMENT.split_once("## Overload").expect("a section");
    for cause in Overload::ALL {
        assert!(
            section.contains(&format!("`{}` (D", cause.name())) || section.contains(&format!("`{}`;", cause.name()))
        );
    }
}
