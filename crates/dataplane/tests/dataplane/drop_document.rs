//! `docs/drops.md` explains every reason, and no other.

use srdma_dataplane::DropReason;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../docs/drops.md");

#[test]
fn every_reason_is_explained_once() {
    let rows: Vec<Vec<&str>> = DOCUMENT
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let explained: BTreeSet<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let known: BTreeSet<&str> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(explained, known);
    assert_eq!(rows.len(), known.len(), "a reason stands there twice");
    for row in rows {
        assert!(row.len() == 3 && row.iter().all(|cell| cell.len() > 2), "{row:?}");
    }
}
